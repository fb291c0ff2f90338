"""Whether a replay may be believed: replayed waits against real ones, by size and by account.

A replay decides by the declared policy, the site decided by its own, with priorities and holds that a trace does not
tell. Before anything is changed on a replay, its waits are therefore compared with those that the trace recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clusterwright.ledger.lines import size_class
from clusterwright.simulate.distributions import Floats, Spread, spread_of
from clusterwright.simulate.loop import Outcome
from clusterwright.simulate.outcomes import queue_times
from clusterwright.simulate.tracing import Replay
from clusterwright.traces.tables import Trace


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far replayed waits may be from real ones: within either bound is good enough.

    The defaults are a choice: half of the real wait, or ten minutes, below which a wait is seldom planned for.

    Args:
        share: of the real value.
        least_s: that is always tolerated, s.
        fewest_jobs: a class with fewer jobs is shown and not judged.
    """

    share: float = 0.5
    least_s: float = 600.0
    fewest_jobs: int = 30


@dataclass(frozen=True, slots=True)
class Match:
    """One class of jobs.

    Args:
        real, replayed: waits in s of the same jobs.
        error_s: mean absolute difference of the waits, job by job.
        within: whether both median and p90 are within the tolerance; None when the class has too few jobs.
    """

    real: Spread
    replayed: Spread
    error_s: float
    within: bool | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """A replay against its trace.

    Args:
        whole: over all jobs that are compared.
        by_size, by_account: the same by class of size and by account.
        uncompared: jobs of the replay whose real wait is not recorded, and jobs that did not start in the replay.
    """

    tolerance: Tolerance
    whole: Match | None
    by_size: Mapping[str, Match]
    by_account: Mapping[str, Match]
    uncompared: Mapping[str, int]

    @property
    def outside(self) -> tuple[str, ...]:
        """The classes that are outside the tolerance."""
        found = [] if self.whole is None or self.whole.within is not False else ["all jobs"]
        found += [f"size {name}" for name, match in self.by_size.items() if match.within is False]
        return (*found, *(f"account {name}" for name, match in self.by_account.items() if match.within is False))

    @property
    def reliable(self) -> bool:
        """Whether a what-if on this replay may be relied on: all jobs were judged, and no class is outside."""
        return self.whole is not None and self.whole.within is True and not self.outside

    @property
    def verdict(self) -> str:
        """One sentence for every result that rests on the replay."""
        if self.whole is None or self.whole.within is None:
            return "Not to be relied on: too few waits are recorded to compare the replay with."
        if self.reliable:
            return "The replay is within the stated tolerance of the real waits."
        return f"Not to be relied on: the replay is outside the stated tolerance for {', '.join(self.outside)}."


def calibrate(outcome: Outcome, replay: Replay, trace: Trace, tolerance: Tolerance | None = None) -> Calibration:
    """Compare the waits of a replay with those of its trace."""
    tolerance = tolerance or Tolerance()
    real, replayed = trace.wait_s[replay.rows], queue_times(outcome)
    known, started = ~np.isnan(real), ~np.isnan(replayed)
    both = known & started
    sizes = [size_class(g) for g in outcome.scenario.jobs.gpus.tolist()]
    accounts = [trace.account[r] for r in replay.rows.tolist()]
    return Calibration(
        tolerance,
        _match(real[both], replayed[both], tolerance) if both.any() else None,
        _by(sizes, real, replayed, both, tolerance),
        _by(accounts, real, replayed, both, tolerance),
        {"real wait not recorded": int((~known).sum()), "did not start in the replay": int((known & ~started).sum())},
    )


def _by(
    names: list[str],
    real: Floats,
    replayed: Floats,
    both: np.ndarray[tuple[int], np.dtype[np.bool_]],
    tolerance: Tolerance,
) -> dict[str, Match]:
    places: dict[str, list[int]] = {}
    for place in np.flatnonzero(both).tolist():
        if names[place]:
            places.setdefault(names[place], []).append(place)
    return {name: _match(real[at], replayed[at], tolerance) for name, at in sorted(places.items())}


def _match(real: Floats, replayed: Floats, tolerance: Tolerance) -> Match:
    ours, theirs = spread_of(replayed), spread_of(real)
    within: bool | None = None
    if len(real) >= tolerance.fewest_jobs:
        pairs = ((theirs.median, ours.median), (theirs.p90, ours.p90))
        within = all(
            abs(o - t) <= max(tolerance.least_s, tolerance.share * t)
            for t, o in pairs
            if t is not None and o is not None
        )
    return Match(theirs, ours, float(np.abs(replayed - real).mean()), within)
