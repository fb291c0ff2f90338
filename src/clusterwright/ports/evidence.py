"""Where evidence is kept: records in a chain that only grows, raw outputs by their digest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from clusterwright.model.records import Record


@dataclass(frozen=True, slots=True)
class Appended:
    """A record, and whether it was there before."""

    record: Record
    was_there: bool


class EvidenceStore(Protocol):
    """Durable evidence. What an operation returned is on disk; Unavailable when the world does not let it happen."""

    def keep(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep a raw output; returns (its digest, its size in bytes). Keeping it twice keeps it once."""
        ...

    def raw(self, digest: str) -> Iterator[bytes]:
        """The bytes of a raw output, in pieces; InvalidInput when it is not there or was altered."""
        ...

    def append(self, content: Any, added: str, same: str = "") -> Appended:
        """Append a record with this content, unless the same content is there.

        Args:
            content: a plain value.
            added: time of adding as ISO 8601; not part of what makes content the same.
            same: what two records of the same content have in common, where their content holds something random;
                the digest of the content when empty.
        """
        ...

    def records(self) -> Iterator[Record]:
        """Every record, in the order of the chain; InvalidInput at one that cannot be read."""
        ...

    def find_faults(self) -> list[str]:
        """What is wrong with chain, files and index, in words; empty when everything verifies."""
        ...

    def close(self) -> None:
        """Release files; further calls are misuse."""
        ...
