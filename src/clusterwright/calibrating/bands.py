"""Bands from errors of rows held out: between which factors on an estimate nine of ten measurements lie.

An end of a band is a quantile of measured ÷ predicted, with the correction for few rows that makes it hold for a row
that was not among them (split conformal prediction: Lei et al., Journal of the American Statistical Association 113,
2018, section 2). The two ends are set apart from each other: what an estimate leaves out, as a queue, only adds.

Rows of one run (model × GPU × engine × mode) are not independent: they count as at most PER_RUN, and it is runs that
tell how much the next one may differ. Few engines have been run with many models on one GPU, so the ends of an engine
on a GPU are drawn towards those of the engine, these towards those of all engines: k runs have the weight k ÷ (k +
RUNS) against the wider set (partial pooling; Gelman and Hill, Data Analysis Using Regression, 2007, section 12.2). The
next run lies beyond the extremes of k others on one side with a chance of 1 ÷ (k + 1), so that RUNS is the fewest from
which an end could stand for itself; a set of fewer than LEAST rows has no ends at all. Prefill on workers of its own is
a mode of its own: its queues are of another kind.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from clusterwright.calibrating.measurements import Measurement
from clusterwright.physics.serving.constants import Array

Mode = Literal["aggregated", "disaggregated"]
#: Share of the measurements that a band is to hold.
HELD: Final = 0.90
#: Runs that weigh as much as the wider set; rows of one run that count.
RUNS: Final = round(1 / (1 - HELD)) - 1
PER_RUN: Final = 20
#: Rows of a set, one for each twentieth: fewer have no row to put beyond an end.
LEAST: Final = round(2 / (1 - HELD))


@dataclass(frozen=True, slots=True)
class Found:
    """A band: factors on the estimate, from how many rows of the narrowest set with enough, and which, in words."""

    low: float
    high: float
    rows: int
    of: str


class Bands:
    """Bands of one time (TTFT or TPOT) by engine, GPU and mode.

    Args:
        rows: held out; `ratios` measured ÷ predicted of each, shape (rows,), nan where not measured.
    """

    def __init__(self, rows: Sequence[Measurement], ratios: Array) -> None:
        places: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place in np.flatnonzero(np.isfinite(ratios)).tolist():
            row = rows[place]
            for key, _ in _narrowing(row.engine, row.gpu, mode_of(row)):
                places[key].append(place)
        self._own = {key: self._of_set(rows, ratios, found) for key, found in places.items() if len(found) >= LEAST}

    def of(self, engine: str, gpu: str, mode: Mode) -> Found | None:
        """The band of an engine on a GPU; None where there are fewer than LEAST rows in all."""
        band: Found | None = None
        for key, words in _narrowing(engine, gpu, mode):
            if key in self._own:
                band = _drawn(band, *self._own[key], words)
        return band

    @staticmethod
    def _of_set(rows: Sequence[Measurement], ratios: Array, places: list[int]) -> tuple[tuple[float, float], int, int]:
        """(ends, runs, rows) of one set."""
        runs = Counter(rows[i].group for i in places)
        weights = np.array([min(1.0, PER_RUN / runs[rows[i].group]) for i in places])
        return ends(ratios[places], weights), len(runs), len(places)


def _drawn(wider: Found | None, own: tuple[float, float], runs: int, rows: int, words: str) -> Found:
    """A set's ends, drawn towards those of the wider one."""
    if wider is None:
        return Found(*own, rows, words)
    share = runs / (runs + RUNS)
    low, high = (
        math.exp(share * math.log(end) + (1 - share) * math.log(far))
        for end, far in zip(own, (wider.low, wider.high), strict=True)
    )
    return Found(low, high, rows, words)


def ends(ratios: Array, weights: Array | None = None) -> tuple[float, float]:
    """The factors between which a share HELD of further rows lies, half of the rest on either side.

    Of few rows they are the lowest and the highest ratio.

    Args:
        ratios: measured ÷ predicted, shape (rows,). weights: of each row, 1 unless given.
    """
    order = np.argsort(ratios)
    weight = np.ones(len(ratios)) if weights is None else weights[order]
    all_rows = float(weight.sum())
    wanted = min((1 + HELD) / 2 * (all_rows + 1), all_rows) - 1e-9
    high = int(np.searchsorted(np.cumsum(weight), wanted))
    low = len(ratios) - 1 - int(np.searchsorted(np.cumsum(weight[::-1]), wanted))
    return float(ratios[order[low]]), float(ratios[order[high]])


def mode_of(row: Measurement) -> Mode:
    """Whether a row's prefill runs on workers of its own."""
    return "disaggregated" if row.prefill else "aggregated"


def _narrowing(engine: str, gpu: str, mode: Mode) -> Iterator[tuple[tuple[str, ...], str]]:
    """(key, in words) of the sets that a row belongs to, widest first."""
    apart = ", prefill apart" if mode == "disaggregated" else ""
    yield (), "all engines, prefill apart or not"
    yield (mode,), f"all engines{apart}"
    yield (mode, engine), f"{engine} on all GPUs{apart}"
    yield (mode, engine, gpu), f"{engine} on {gpu}{apart}"
