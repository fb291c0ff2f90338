"""genai-perf and AIPerf: tables, CSV, JSON summaries and records of single requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.serving import genai_json, genai_tables

_TABLE: Final = re.compile(r"[│┃|] {0,80}(?:Metric|Statistic) {0,80}[│┃|].{0,400}?\b(?:avg|p99)\b")
_CSV: Final = re.compile(r"^\"?(?:Metric|Statistic)\"?,\"?(?:avg|min)\b", re.MULTILINE)
_METRIC: Final = re.compile(
    r'"(?:time_to_first_token|request_latency|request_throughput|inter_token_latency)"\s*:\s*\{'
)


def recognise(head: Head) -> int:
    """Sure by the title, strong by the columns and the keys."""
    if genai_tables.TITLE.search(head.text):
        return 100
    if _METRIC.search(head.text) and '"unit"' in head.text:
        return 97
    return 90 if _TABLE.search(head.text) or _CSV.search(head.text) else 0


def read(source: Source) -> Sequence[Run]:
    """The runs of the file."""
    head = source.head
    if genai_tables.TITLE.search(head) or _TABLE.search(head):
        return genai_tables.read_tables(source.lines())
    if _CSV.search(head):
        return genai_tables.read_csv(source.lines(prefixes=False))
    return genai_json.read_documents(source.text())


GENAI: Final = Reader("genai-perf", "genai-perf and AIPerf: tables, CSV, JSON", recognise, read)
