"""What a reader is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import Source


@dataclass(frozen=True, slots=True)
class Head:
    """What recognition may look at.

    Args:
        text: beginning of the output, clean, without prefixes, at most 64 KiB.
        name: of the file, lower case, without its directory; a hint only.
    """

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """One kind of output.

    Args:
        kind: its name, as `cw read --kind` takes it.
        title: what it reads, for people.
        recognise: how sure this is its kind, 0 (not at all) to 100 (nothing else prints this).
        read: the runs in it; raises Refused, and nothing else, when it cannot be read at all.
    """

    kind: str
    title: str
    recognise: Callable[[Head], int]
    read: Callable[[Source], Sequence[Run]]
