"""Answers of Prometheus to a query (instant or range) as samples: metrics of the exporter that were asked for there.

Source: Prometheus HTTP API v1, result types vector and matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clusterwright.readers.dcgm.exposition import Sample
from clusterwright.readers.documents import load_json
from clusterwright.readers.refusing import Refused


def samples_of(text: str, first_line: int = 1) -> Iterator[Sample]:
    """The samples of an answer, the last of each series in a range; Refused for an error or another shape."""
    value = load_json(text, first_line=first_line).value
    if isinstance(value, dict) and value.get("status") == "error":
        raise Refused(f"Prometheus answers with an error: {value.get('error', '')}", first_line)
    data = value.get("data") if isinstance(value, dict) else None
    results = data.get("result") if isinstance(data, dict) else None
    if not isinstance(results, list):
        raise Refused("neither metrics nor an answer of Prometheus", first_line)
    for item in results:
        sample = _sample(item) if isinstance(item, dict) else None
        if sample is not None:
            yield sample


def _sample(item: dict[str, Any]) -> Sample | None:
    metric = item.get("metric")
    pairs = item.get("values")
    pair = item.get("value") if not isinstance(pairs, list) else (pairs[-1] if pairs else None)
    if not isinstance(metric, dict) or not isinstance(pair, list) or len(pair) != 2:
        return None
    labels = tuple((str(k), str(v)) for k, v in metric.items() if k != "__name__")
    seconds = pair[0]
    stamp = f"{seconds:.3f}" if isinstance(seconds, int | float) and not isinstance(seconds, bool) else ""
    return Sample(str(metric.get("__name__", "")), labels, False, str(pair[1]), stamp)
