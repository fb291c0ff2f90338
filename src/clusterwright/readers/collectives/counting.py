"""How many ranks took part and which operation ran, from everything that an output says about it.

The rank list counts first. Where it is cut or missing, the launch, the library's log, and the rows themselves tell:
operations that split their buffer print a share of it (`count`), and busbw / algbw is a function of the ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from clusterwright.readers.collectives.programs import (
    OPERATIONS,
    operation_by_columns,
    ranks_by_count,
    ranks_by_factor,
)
from clusterwright.readers.collectives.ranks import Membership, membership
from clusterwright.readers.collectives.records import Record
from clusterwright.readers.collectives.rows import Row


@dataclass(frozen=True, slots=True)
class Participants:
    """What ran and with whom.

    Args:
        operation: "" when more than one remains possible.
        operation_by: how it is known.
        claims: (source, number of ranks) of every source that names one, the trusted first.
    """

    operation: str
    operation_by: str
    members: Membership
    claims: tuple[tuple[str, int], ...]

    @property
    def disagreement(self) -> str:
        """The claims in words when they differ, else ""."""
        if len({ranks for _, ranks in self.claims}) < 2:
            return ""
        return ", ".join(f"{ranks} by {source}" for source, ranks in self.claims)


def participants(record: Record) -> Participants:
    """Everything that the record says about its ranks and operation."""
    members = membership(record.ranks)
    shared = _shared(record)
    operation, by = _operation(record, None if members.ranks == 1 else shared)
    if record.alone:
        return Participants(operation, by, replace(members, known_by="rank list"), ())
    claims = list(_claims(record, members, operation, shared))
    if members.ranks is None and claims:
        source, ranks = claims[0]
        members = replace(members, ranks=ranks, known_by=source)
    return Participants(operation, by, members, tuple(claims))


def _operation(record: Record, shared: int | None) -> tuple[str, str]:
    if record.program:
        return OPERATIONS[record.program], record.named_by
    row = _largest(record)
    if row is None:
        return "", ""
    root = int(row.root) if re.fullmatch(r"-?\d{1,8}", row.root) else None
    numbers = {place: isinstance(half.values.get("wrong"), float) for place, half in row.halves.items()}
    found = operation_by_columns(
        row.redop,
        root,
        shared,
        reduction_column=bool(row.redop) or (record.layout is not None and "redop" in record.layout.columns),
        in_place_checked=numbers.get("in") if numbers.get("out") and "in" in numbers else None,
    )
    return (found, "the columns") if found else ("", "")


def _claims(record: Record, members: Membership, operation: str, shared: int | None) -> Iterator[tuple[str, int]]:
    """Numbers of ranks by source. `-np` counts processes, each with threads and GPUs of its own."""
    if members.ranks is not None:
        yield members.known_by, members.ranks
    for source, number in record.declared_ranks.items():
        each = _whole(record.parameters.get("nThread", "1")) * _whole(record.parameters.get("nGpus", "1"))
        yield source, number * each if "launch" in source else number
    split = members.groups
    if operation in ("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter", "") and shared and shared > 1:
        yield "size divided by count", shared * split
    if operation and members.ranks != 1:
        fitted = ranks_by_factor(operation, islice(_pairs(iter(record.rows)), 5_000))
        if fitted is not None:
            yield "busbw divided by algbw", fitted * split


def _shared(record: Record) -> int | None:
    """Ranks that share the buffer of the largest row, None when rows contradict or do not tell."""
    found = {
        ranks_by_count(row.size, row.count, row.type)
        for row in record.rows[-50:]
        if row.count is not None and row.count > 0
    }
    return found.pop() if len(found) == 1 else None


def _largest(record: Record) -> Row | None:
    return max(record.rows, key=lambda row: row.size, default=None)


def _pairs(rows: Iterator[Row]) -> Iterator[tuple[float, float]]:
    for row in rows:
        for half in row.halves.values():
            algbw, busbw = half.number("algbw", "GB/s"), half.number("busbw", "GB/s")
            if algbw is not None and busbw is not None:
                yield algbw, busbw


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 7 else 1
