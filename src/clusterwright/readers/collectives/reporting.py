"""Reading one output of nccl-tests or rccl-tests: its form, its runs, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import Source
from clusterwright.readers.collectives.records import Record
from clusterwright.readers.collectives.runs import finish
from clusterwright.readers.collectives.structured import holds_json, read_json
from clusterwright.readers.collectives.tables import read_tables
from clusterwright.readers.refusing import Refused

#: Tools with tables like those of nccl-tests, in another order.
_OTHERS: Final = {
    "mscclpp-test of MSCCL++": re.compile(r"^# (?:Initializing|Setting up the connection in) MSCCL\+\+", re.MULTILINE),
    "nccom-test of AWS Neuron": re.compile(r"\bnccom-test\b|^[ \t]*size\(B\) +count\(elems\) ", re.MULTILINE),
}


def read_collectives(source: Source) -> Sequence[Run]:
    """Every run in an output; Refused when there is none, or when it is a template without numbers."""
    structured = holds_json(source.head)
    records = read_json(source.text(prefixes=True)) if structured else read_tables(source.lines())
    if not records:
        raise Refused("no run of nccl-tests in it: no parameters, no ranks, no table", 1, source.head)
    rows = sum(len(record.rows) for record in records)
    ours = any(record.parameters or record.ranks for record in records)
    other = next((name for name, form in _OTHERS.items() if form.search(source.head)), None)
    if other is not None and not ours:
        raise Refused(f"this is {other}, which is not read; it is no result of nccl-tests", 1, source.head)
    if not rows and any(record.placeholders for record in records):
        line, text, _ = next(rejected for record in records for rejected in record.rejected)
        raise Refused("a template: placeholders stand where numbers should be, nothing was measured", line, text)
    _refuse_torn(records)
    return [finish(record) for record in records]


def _refuse_torn(records: Sequence[Record]) -> None:
    """An output of nothing but torn rows holds no measurement."""
    whole = any(r.rows or r.ranks or r.parameters or r.layout or r.failures for r in records)
    torn = [rejected for record in records for rejected in record.rejected if record.torn]
    if not whole and torn:
        line, text, why = torn[0]
        raise Refused(
            f"no whole row: {why}; run again with NCCL_DEBUG_FILE set so that the log goes elsewhere", line, text
        )
