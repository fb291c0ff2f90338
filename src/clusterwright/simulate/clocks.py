"""When the next of many equal things happens, with and without ageing.

The ageing clocks start in equilibrium: the first interval of a target is what is left of a running one, not a whole one
(the forward recurrence time of a renewal process; D. R. Cox, "Renewal Theory", 1962, section 5.2). The declared rate
therefore holds from the first day on, also where young targets fail more often.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clusterwright.simulate.durations import weibull_scale_s


class Clock(Protocol):
    """The events of one cause on all its targets."""

    @property
    def next_s(self) -> float:
        """When the next event is due, infinite for never."""

    def pop(self) -> int | None:
        """The target of the event at `next_s`, None when it is discarded; moves on to the next event."""

    def stop(self, target: int, at_s: float) -> None:
        """The target's time stands still."""

    def start(self, target: int, at_s: float) -> None:
        """The target's time, which stood still, goes on."""

    def renew(self, target: int, at_s: float, rate: float) -> None:
        """The target is replaced by a new one with that rate, at most the one it had, 1/s."""


class PoissonClock:
    """Targets without memory: one stream of events, each on a target chosen by its rate.

    Args:
        rates: (targets,) float64 1/s.
    """

    def __init__(self, rates: NDArray[np.float64], generator: Generator) -> None:
        self._drawn = rates
        self._rates = rates.copy()
        self._bounds = np.cumsum(rates)
        self._total = float(self._bounds[-1]) if len(rates) else 0.0
        self._generator = generator
        self._next_s = 0.0
        self._advance()

    @property
    def next_s(self) -> float:
        """When the next event is due, infinite for never."""
        return self._next_s

    def pop(self) -> int | None:
        """The target of the event at `next_s`; None for an event that a replaced target no longer has."""
        mark = self._generator.random() * self._total
        target = min(int(self._bounds.searchsorted(mark, side="right")), len(self._bounds) - 1)
        self._advance()
        kept = self._rates[target] / self._drawn[target]
        return target if kept == 1 or self._generator.random() < kept else None

    def stop(self, target: int, at_s: float) -> None:
        """Nothing changes: whoever asks discards events of targets that do not run."""

    def start(self, target: int, at_s: float) -> None:
        """Nothing changes."""

    def renew(self, target: int, at_s: float, rate: float) -> None:
        """The target has that rate from now on."""
        self._rates[target] = rate

    def _advance(self) -> None:
        self._next_s += self._generator.standard_exponential() / self._total if self._total else math.inf


class AgeingClock:
    """Targets whose hazard depends on their age since their last event: Weibull intervals of the declared mean.

    Args:
        rates: (targets,) float64 1/s, one over the mean interval of running time.
        shape: k; below 1 what failed lately fails sooner again.
    """

    def __init__(self, rates: NDArray[np.float64], shape: float, generator: Generator) -> None:
        self._rates = rates.copy()
        self._shape = shape
        self._generator = generator
        count = len(rates)
        with np.errstate(divide="ignore"):
            scales = weibull_scale_s(1.0, shape) / rates
        biased = generator.standard_gamma(1 + 1 / shape, count) ** (1 / shape)
        self._due = np.where(rates > 0, generator.random(count), np.inf) * scales * biased
        self._left = np.full(count, np.nan)
        self._first: int | None = None

    @property
    def next_s(self) -> float:
        """When the next event is due, infinite for never."""
        if not len(self._due):
            return math.inf
        if self._first is None:
            self._first = int(self._due.argmin())
        return float(self._due[self._first])

    def pop(self) -> int | None:
        """The target of the event at `next_s`, whose age is then 0."""
        at_s = self.next_s
        target = self._first
        assert target is not None
        self._due[target] = at_s + self._life(target)
        self._first = None
        return target

    def stop(self, target: int, at_s: float) -> None:
        """The target's age stands still."""
        self._left[target] = self._due[target] - at_s
        self._due[target] = math.inf
        self._first = None

    def start(self, target: int, at_s: float) -> None:
        """The target's age goes on from where it stood."""
        self._due[target] = at_s + self._left[target]
        self._first = None

    def renew(self, target: int, at_s: float, rate: float) -> None:
        """The target has age 0 and that rate, whether it runs or stands still."""
        self._rates[target] = rate
        life = self._life(target)
        if math.isinf(self._due[target]):
            self._left[target] = life
        else:
            self._due[target] = at_s + life
        self._first = None

    def _life(self, target: int) -> float:
        if not self._rates[target]:
            return math.inf
        scale = weibull_scale_s(1.0, self._shape) / float(self._rates[target])
        return scale * float(self._generator.weibull(self._shape))
