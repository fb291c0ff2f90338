"""One measured TTFT and TPOT with everything that a prediction needs to know about the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from clusterwright.physics.layouts import Layout


@dataclass(frozen=True, slots=True)
class Worker:
    """Engines of one kind in a run: the layout of one and how many there are; 0: as many as keep up."""

    layout: Layout
    count: int = 1


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of a benchmark, closed loop.

    Args:
        id: names the row in what is printed.
        engine, version: vllm, sglang, tensorrt-llm; version "" where it is not told.
        model, gpu: as the run names them.
        weights: format they are served in, None: as the checkpoint stores them.
        cache: format of keys and values.
        prompt, output: mean tokens; `cached` prompt tokens came from a cache of prefixes.
        prefill: None where one worker does both.
        accepted: tokens that a step gives per sequence, above 1 with speculation; `width` tokens that it computes.
        ttft_s, tpot_s: means, None where not measured.
        notes: what was assumed because the row does not tell.
    """

    id: str
    engine: str
    version: str
    model: str
    gpu: str
    weights: str | None
    cache: str
    prompt: float
    output: float
    concurrency: float
    decode: Worker
    prefill: Worker | None
    ttft_s: float | None
    tpot_s: float | None
    cached: float = 0.0
    width: float = 1.0
    accepted: float = 1.0
    notes: tuple[str, ...] = ()

    @property
    def counts_told(self) -> bool:
        """Whether the numbers of prefill and decode workers are known."""
        return self.prefill is None or self.prefill.count > 0

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Model × GPU × engine × mode: rows that are held out together."""
        return self.model, self.gpu, self.engine, "disaggregated" if self.prefill else "aggregated"


@dataclass(frozen=True, slots=True)
class Left:
    """A row that was not used, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows of some inputs: those that can be predicted and those that were left out."""

    rows: tuple[Measurement, ...]
    left: tuple[Left, ...] = field(default=())

    def without_assumed_counts(self) -> Measured:
        """Rows whose worker counts are told; the others left out, since a fit to a guess is none."""
        told = tuple(row for row in self.rows if row.counts_told)
        left = tuple(Left(row.id, "worker counts are not told") for row in self.rows if not row.counts_told)
        return Measured(told, self.left + left)


def joined(parts: Iterable[Measured]) -> Measured:
    """All parts as one."""
    rows: list[Measurement] = []
    left: list[Left] = []
    for part in parts:
        rows.extend(part.rows)
        left.extend(part.left)
    return Measured(tuple(rows), tuple(left))
