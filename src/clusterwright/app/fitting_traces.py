"""A trace of requests on disk: CSV, or JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from typing import Any

from clusterwright.files.streams import stream_bytes
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.plan.fitting.request_traces import Requests, summarise


def read_requests(path: str) -> Requests:
    """Summarise a trace; a bare number of a time counts milliseconds in JSON lines and seconds in CSV.

    Raises:
        InvalidInput: it cannot be read, or no row has lengths.
    """
    text = b"".join(stream_bytes(path)).decode("utf-8", "replace")
    lines = text.splitlines()
    is_json = text.lstrip()[:1] == "{"
    try:
        rows = _json_lines(lines) if is_json else csv.DictReader(lines)
        return summarise(rows, times_in_ms=is_json)
    except csv.Error as error:
        raise InvalidInput(Problem(Place(path), "", f"is no CSV: {error}")) from None


def _json_lines(lines: list[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        try:
            value = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            value = {}
        if value is not None:
            yield value if isinstance(value, dict) else {}
