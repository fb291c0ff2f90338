"""Processes that a launcher started together and that never met: each prints rank 0 and a table of its own.

It happens when the tests were built without MPI. Their lines mix, so the tables cannot be told apart; together they
are one run that measured nothing between GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from clusterwright.readers.collectives.records import Record


def join_alone(records: Sequence[Record]) -> list[Record]:
    """The records, with those that several lonely processes printed through each other joined into one."""
    start = next((i for i, record in enumerate(records) if _begins_alone(record)), None)
    if start is None:
        return list(records)
    group = list(takewhile(_is_piece, records[start:]))
    end = start + len(group)
    lonely = sum(1 for record in group if record.ranks)
    if lonely < 2:
        return list(records)
    if start and not (records[start - 1].rows or records[start - 1].ranks):
        start -= 1
    first = records[start]
    for record in records[start + 1 : end]:
        _add(first, record)
    first.alone = lonely
    return [*records[:start], first, *records[end:]]


def _begins_alone(record: Record) -> bool:
    return [rank.rank for rank in record.ranks] == [0] and not record.rows and record.bounds is None


def _is_piece(record: Record) -> bool:
    return all(rank.rank == 0 for rank in record.ranks) and not (record.ranks and record.bounds)


def _add(first: Record, other: Record) -> None:
    first.program, first.named_by = first.program or other.program, first.named_by or other.named_by
    first.parameters = first.parameters or other.parameters
    first.layout = first.layout or other.layout
    first.bounds = first.bounds or other.bounds
    first.average = first.average or other.average
    first.ranks += other.ranks
    for row in other.rows:
        first.keep_row(row)
    for line, text, why in other.rejected:
        first.reject(line, text, why)
    first.failures += other.failures
    first.elisions += other.elisions
    first.versions = {**other.versions, **first.versions}
