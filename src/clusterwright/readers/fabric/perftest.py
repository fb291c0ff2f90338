"""perftest: recognition and reading of its text and JSON outputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import Source
from clusterwright.readers.fabric.perftest_json import holds_perf_json, read_perf_json
from clusterwright.readers.fabric.perftest_records import COMMAND, TITLE, PerfRecord, read_perf_records
from clusterwright.readers.fabric.perftest_runs import finish_perf
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_HEADER: Final = re.compile(r"^[ \t]*#bytes +(?:#sl +)?#iterations\b", re.MULTILINE)
_BLOCK: Final = re.compile(r"^[ \t]*Number of qps {1,6}: \d|^[ \t]*Data ex\. method {0,3}:", re.MULTILINE)
#: What perftest says when it ends before its test.
_ENDED: Final = re.compile(
    r"^ {0,4}(?:Couldn't |Parser function exited|Unable to |Failed to |Unsupported )", re.MULTILINE
)


def recognise_perftest(head: Head) -> int:
    """How sure it is that perftest printed this."""
    text = head.text
    if _HEADER.search(text) or (_BLOCK.search(text) and any(map(TITLE.match, text.split("\n")))):
        return 97
    if holds_perf_json(text):
        return 95
    if _BLOCK.search(text):
        return 80
    if re.search(r"^ ?Completion with error at (?:client|server)\b", text, re.MULTILINE):
        return 75
    return 60 if any(map(COMMAND.search, text.split("\n")[:50])) and _ENDED.search(text) else 0


def read_perftest(source: Source) -> Sequence[Run]:
    """Every test in an output; both ends of one test count once."""
    if holds_perf_json(source.head):
        return read_perf_json(source.text(prefixes=True))
    records = read_perf_records(source.lines())
    if not records:
        ended = _ENDED.search(source.head)
        if ended is not None:
            line = source.head.count("\n", 0, ended.start()) + 1
            raise Refused("perftest ended before its test", line, source.head[ended.start() :].split("\n", 1)[0])
        raise Refused("no test of perftest in it", 1, source.head)
    kept: list[PerfRecord] = []
    ends: dict[tuple[str, str], int] = {}
    for record in records:
        local, remote = record.addresses.get("local", ""), record.addresses.get("remote", "")
        other = ends.get((remote, local)) if local and remote else None
        if other is not None and _same(kept[other], record):
            continue
        if local and remote:
            ends[local, remote] = len(kept)
        kept.append(record)
    return [finish_perf(record) for record in kept]


def _same(one: PerfRecord, other: PerfRecord) -> bool:
    """Whether two records are the two ends of one test: equal rows, addresses exchanged."""
    if one.rows and other.rows and [(r.size, r.values) for r in one.rows] != [(r.size, r.values) for r in other.rows]:
        return False
    if not one.rows:
        one.rows, one.columns = other.rows, one.columns or other.columns
    one.closed = one.closed or other.closed
    one.failures += [failure for failure in other.failures if failure not in one.failures]
    one.frequency = one.frequency or other.frequency
    one.both_ends = True
    return True


READER: Final = Reader(
    "perftest-bw-lat",
    "perftest: ib_write_bw, ib_read_lat and their kin, text or JSON",
    recognise_perftest,
    read_perftest,
)
