"""Lines of public request traces → arrival times, lengths and prefix blocks.

Azure LLM inference 2023 (CSV: TIMESTAMP, ContextTokens, GeneratedTokens) and Mooncake (JSON lines: timestamp ms,
input_length, output_length, hash_ids of 512-token blocks). A line that is neither is an error, never skipped: a trace
with holes has other percentiles.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from clusterwright.physics.serving.arrivals import Stream
from clusterwright.physics.serving.lengths import observed
from clusterwright.physics.serving.prefixes import Reuse, prefix_reuse

#: Times are without a zone; only their differences are used.
_EPOCH: Final = datetime(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """Requests in order of arrival.

    Args:
        arrivals_s: from the first request.
        blocks: ids of the prompt's blocks, empty where the trace has none.
    """

    arrivals_s: tuple[float, ...]
    prompts: tuple[int, ...]
    outputs: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...] = ()

    @property
    def rate(self) -> float:
        """Requests per second over the whole trace."""
        span = self.arrivals_s[-1] - self.arrivals_s[0]
        return (len(self.arrivals_s) - 1) / span if span > 0 else 0.0

    def reuse(self, blocks: int | None = None) -> Reuse:
        """What a cache of `blocks` prefix blocks saves; None for one without limit."""
        return prefix_reuse(zip(self.prompts, self.blocks, strict=True), blocks=blocks)

    def stream(self, blocks: int | None = None) -> Stream:
        """Lengths as they are, and the share of prompt tokens that a cache of prefixes saves."""
        reused = self.reuse(blocks).share if self.blocks else 0.0
        return Stream(observed(self.prompts), observed(self.outputs), reused)


def parse_requests(lines: Iterable[str]) -> RequestTrace:
    """A trace from its lines, told apart by the first one.

    Raises:
        ValueError: the trace is empty, or a line lacks a field; with the line's number.
    """
    found = list(lines)
    if not found:
        raise ValueError("a trace without requests")
    rows = _mooncake(found) if found[0].lstrip().startswith("{") else _azure(found)
    if not rows:
        raise ValueError("a trace without requests")
    rows.sort(key=lambda row: row[0])
    start = rows[0][0]
    blocks = tuple(row[3] for row in rows) if any(row[3] for row in rows) else ()
    return RequestTrace(
        tuple(row[0] - start for row in rows), tuple(row[1] for row in rows), tuple(row[2] for row in rows), blocks
    )


_Row = tuple[float, int, int, tuple[int, ...]]


def _mooncake(lines: list[str]) -> list[_Row]:
    rows: list[_Row] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            ids = tuple(int(each) for each in row.get("hash_ids", ()))
            rows.append((float(row["timestamp"]) / 1e3, int(row["input_length"]), int(row["output_length"]), ids))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ValueError(f"line {number}: not a request: {problem}") from None
    return rows


def _azure(lines: list[str]) -> list[_Row]:
    rows: list[_Row] = []
    for number, row in enumerate(csv.DictReader(lines), 2):
        try:
            # Seven digits of a second are written; what datetime reads is microseconds.
            whole, _, part = row["TIMESTAMP"].partition(".")
            moment = (datetime.fromisoformat(whole) - _EPOCH).total_seconds() + (
                float(f"0.{part[:7]}") if part else 0.0
            )
            rows.append((moment, int(row["ContextTokens"]), int(row["GeneratedTokens"]), ()))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ValueError(f"line {number}: not a request: {problem}") from None
    return rows
