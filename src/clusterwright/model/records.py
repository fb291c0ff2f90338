"""The chain of evidence records: each holds the digest of the one before, and fields that can be withheld singly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from clusterwright.lib.commitments import Field, canonical, digest_of, flatten, open_field, unflatten, withhold

#: Grows when the record's form changes; another version is refused, never guessed at.
VERSION: Final = 1
#: What stands before the first record.
ORIGIN: Final = "sha256:" + "0" * 64


@dataclass(frozen=True, slots=True)
class Record:
    """One link of the chain.

    Args:
        sequence: from 1.
        previous: id of the record before, ORIGIN for the first.
        fields: everything that it says, each with its commitment, in a fixed order.
    """

    sequence: int
    previous: str
    fields: tuple[Field, ...]

    @property
    def id(self) -> str:
        """Digest over the place in the chain and every commitment; the same after fields were withheld."""
        pairs = [[field.place, field.commitment] for field in self.fields]
        return digest_of(
            canonical({"version": VERSION, "sequence": self.sequence, "previous": self.previous, "fields": pairs})
        )

    @property
    def content(self) -> Any:
        """What it says, as a plain value, with stand-ins for what is withheld; ValueError when it does not fit."""
        return unflatten((field.place, field.value) for field in self.fields)

    @property
    def withheld(self) -> tuple[str, ...]:
        """Places of the fields that are withheld."""
        return tuple(field.place for field in self.fields if field.withheld)


def seal(content: Any, *, sequence: int, previous: str, salts: Callable[[], str]) -> Record:
    """The next record of a chain.

    Args:
        content: a plain value (as JSON has them).
        salts: draws a fresh random salt at every call.
    """
    fields = tuple(open_field(place, value, salts()) for place, value in flatten(content))
    return Record(sequence, previous, fields)


def redact(record: Record, stand_in: Callable[[str, Any], Any | None]) -> Record:
    """The record with fields withheld.

    Args:
        stand_in: (place, value) → what to show instead, or None to keep the field open.
    """
    fields = []
    for field in record.fields:
        shown = None if field.withheld else stand_in(field.place, field.value)
        fields.append(field if shown is None else withhold(field, shown))
    return replace(record, fields=tuple(fields))


def record_values(record: Record) -> dict[str, Any]:
    """A record as plain values, for a file."""
    return {
        "version": VERSION,
        "sequence": record.sequence,
        "previous": record.previous,
        "id": record.id,
        "fields": [
            {"place": f.place, "commitment": f.commitment, "value": f.value} | ({"salt": f.salt} if f.salt else {})
            for f in record.fields
        ],
    }


def parse_record(values: Any) -> Record:
    """A record from its plain values.

    Raises:
        ValueError: when it has another version or form, or the id that it names is not its own.
    """
    if not isinstance(values, Mapping) or values.get("version") != VERSION:
        raise ValueError(f"not an evidence record of version {VERSION}")
    fields = values.get("fields")
    sequence, previous = values.get("sequence"), values.get("previous")
    if not isinstance(fields, list) or not isinstance(sequence, int) or not isinstance(previous, str):
        raise ValueError("not an evidence record: a part is missing")
    found = []
    for field in fields:
        if not isinstance(field, Mapping) or not isinstance(field.get("place"), str):
            raise ValueError("not an evidence record: a field has no place")
        texts = field.get("commitment"), field.get("salt", "")
        if not all(isinstance(text, str) for text in texts) or "value" not in field:
            raise ValueError(f"not an evidence record: {field['place']} has no commitment")
        found.append(Field(field["place"], str(texts[0]), str(texts[1]), field["value"]))
    record = Record(sequence, previous, tuple(found))
    if record.id != values.get("id"):
        raise ValueError(f"record {sequence} was altered: its id does not follow from its fields")
    return record


def find_faults(records: Sequence[Record], *, head: str = "", first: str = ORIGIN) -> list[str]:
    """What is wrong with a chain, in words; empty when it verifies.

    Args:
        records: from the first on.
        head: id that the last one must have, "" when none is known (then a cut-off end cannot be seen).
        first: what the first one must name as previous.
    """
    faults: list[str] = []
    previous = first
    for position, record in enumerate(records, 1):
        if record.sequence != position:
            faults.append(f"record {record.sequence} stands at place {position}: records were left out or reordered")
        if record.previous != previous:
            faults.append(f"record {record.sequence} does not follow the one before it")
        for field in record.fields:
            if not field.holds:
                faults.append(f"record {record.sequence}: {field.place} was altered")
        previous = record.id
    if head and previous != head:
        faults.append(f"the chain ends at {previous[:19]}…, not at {head[:19]}…: the end was cut off or exchanged")
    return faults
