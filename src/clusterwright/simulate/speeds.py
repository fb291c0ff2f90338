"""How fast a job works on another GPU class than the one on which its work was measured.

Work is kept in time at the measured speed; an attempt on a flavor takes work ÷ speed of wall time, and what it saved
there counts × speed. Speeds are whole millionths, so that both ways are whole numbers: what is left is rounded up and
what is saved rounded down, to the millisecond. Starts, stalls and the interval between checkpoints are wall time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from clusterwright.simulate.jobs import NONE_MS, Jobs, Kind

#: Parts of one in which a speed is counted.
MILLIONTHS: Final = 1_000_000


def paces_of(kinds: Sequence[Kind]) -> dict[tuple[int, str], int]:
    """(place of the kind, flavor) → speed in millionths, where it is not 1.

    Raises:
        ValueError: for a speed that is not above 0.
    """
    found = {}
    for place, kind in enumerate(kinds):
        for flavor, speed in kind.speeds:
            pace = round(speed * MILLIONTHS)
            if pace < 1:
                raise ValueError(f"a job on {flavor} works at {speed} times the speed, must be above 0")
            found[place, flavor] = pace
    return found


def wall_ms(work: int, pace: int) -> int:
    """Time that so many ms of work take, rounded up."""
    return -(-work * MILLIONTHS // pace)


def work_ms(took: int, pace: int) -> int:
    """Work that is done in so many ms, rounded down."""
    return took * pace // MILLIONTHS


def slowest_of(kind: Kind, flavors: Sequence[str]) -> float:
    """The lowest speed at which a job may have to run.

    Args:
        flavors: of the cluster, for jobs that take any.
    """
    speeds = dict(kind.speeds)
    return min((speeds.get(f, 1.0) for f in kind.demand.flavors or flavors), default=1.0)


def stretch_limits(jobs: Jobs, flavors: Sequence[str], before: Sequence[Kind] = ()) -> Jobs:
    """The jobs with time limits that leave as much room on the slowest flavor they may get as where they were measured.

    A limit is never shortened below what it was: nobody asks for less on a faster GPU. Without this a job that is moved
    to a slower class would be killed for the move alone.

    Args:
        before: the kinds, in the same order, for which the limits are stretched already.
    """
    new = [_stretch(kind, flavors) for kind in jobs.kinds]
    old = [_stretch(kind, flavors) for kind in before] or [Fraction(1)] * len(new)
    factors = [n / o for n, o in zip(new, old, strict=True)]
    if all(f == 1 for f in factors):
        return jobs
    limits = jobs.limit_ms.copy()
    for place, factor in enumerate(factors):
        chosen = (jobs.kind == place) & (limits != NONE_MS)
        if factor != 1 and chosen.any():
            limits[chosen] = [-(-n * factor.numerator // factor.denominator) for n in limits[chosen].tolist()]
    return replace(jobs, limit_ms=limits.astype(np.int64))


def _stretch(kind: Kind, flavors: Sequence[str]) -> Fraction:
    return max(Fraction(1), Fraction(MILLIONTHS, round(slowest_of(kind, flavors) * MILLIONTHS)))
