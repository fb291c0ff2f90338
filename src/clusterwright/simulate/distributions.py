"""How a measure is spread over jobs: number, mean, quantiles, and who the jobs are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Quantiles of every spread.
QUANTILES: Final = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Spread:
    """A measure over jobs; every number but `jobs` is None without jobs.

    Quantiles are linear between the jobs' values (numpy's default, Hyndman and Fan type 7).
    """

    jobs: int
    mean: float | None = None
    median: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    most: float | None = None


def spread_of(values: Floats) -> Spread:
    """The spread of (jobs,) values."""
    if not len(values):
        return Spread(0)
    median, p90, p95, p99 = (float(q) for q in np.quantile(values, QUANTILES))
    return Spread(len(values), float(values.mean()), median, p90, p95, p99, float(values.max()))


def spread_by(values: Floats, codes: NDArray[np.integer[Any]], names: tuple[str, ...]) -> dict[str, Spread]:
    """The spread for each name that has jobs, in the order of the names.

    Args:
        codes: (jobs,) int, index into `names`.
    """
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    parts = {name: values[order[bounds[i] : bounds[i + 1]]] for i, name in enumerate(names)}
    return {name: spread_of(part) for name, part in parts.items() if len(part)}
