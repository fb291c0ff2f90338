"""When the next of many equal things happens, with and without ageing.

The ageing clocks start in equilibrium: the first interval of a target is what is left of a running one, not a whole one
(the forward recurrence time of a renewal process; D. R. Cox, "Renewal Theory", 1962, section 5.2). The declared rate
therefore holds from the first day on, also where young targets fail more often.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clusterwright.simulate.durations import weibull_scale_s

#: Events that are drawn at a time: one call of numpy costs as much as a hundred numbers.
_BLOCK: Final = 256


class Clock(Protocol):
    """The events of one cause on all its targets.

    Args:
        next_s: when the next event is due, infinite for never.
    """

    next_s: float

    def pop(self) -> int | None:
        """The target of the event at `next_s`, None when it is discarded; moves on to the next event."""

    def renew(self, target: int, at_s: float, rate: float) -> None:
        """The target is replaced by a new one with that rate, at most the one it had, 1/s."""


class PoissonClock:
    """Targets without memory: one stream of events, each on a target chosen by its rate.

    Args:
        rates: (targets,) float64 1/s.
    """

    def __init__(self, rates: NDArray[np.float64], generator: Generator) -> None:
        self._rates = rates
        self._bounds = np.cumsum(rates)
        self._total = float(self._bounds[-1]) if len(rates) else 0.0
        self._generator = generator
        self._kept: dict[int, float] = {}
        self._drawn: list[tuple[float, int]] = []
        self._target = 0
        self.next_s = 0.0
        self._advance()

    def pop(self) -> int | None:
        """The target of the event at `next_s`; None for an event that a replaced target no longer has."""
        target = self._target
        self._advance()
        kept = self._kept.get(target, 1.0)
        return target if kept == 1.0 or self._generator.random() < kept else None

    def renew(self, target: int, at_s: float, rate: float) -> None:
        """The target has that rate from now on."""
        self._kept[target] = rate / float(self._rates[target]) if rate else 1.0

    def _advance(self) -> None:
        if not self._total:
            self.next_s = math.inf
            return
        if not self._drawn:
            with np.errstate(over="ignore"):  # beyond every time there is: never
                gaps = self._generator.standard_exponential(_BLOCK) / self._total
            marks = self._generator.random(_BLOCK) * self._total
            targets = np.minimum(self._bounds.searchsorted(marks, side="right"), len(self._bounds) - 1)
            self._drawn = list(zip(gaps.tolist(), targets.tolist(), strict=True))[::-1]
        gap_s, self._target = self._drawn.pop()
        self.next_s += gap_s


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
        with np.errstate(divide="ignore", over="ignore"):
            scales = weibull_scale_s(1.0, shape) / rates
        biased = generator.standard_gamma(1 + 1 / shape, count) ** (1 / shape)
        self._due = np.where(rates > 0, generator.random(count), np.inf) * scales * biased
        self._left = np.full(count, np.nan)
        self._first, self.next_s = 0, math.inf
        self._look()

    def pop(self) -> int | None:
        """The target of the event at `next_s`, whose age is then 0."""
        target = self._first
        self._due[target] = self.next_s + self._life(target)
        self._look()
        return target

    def stop(self, target: int, at_s: float) -> None:
        """The target's age stands still."""
        self._left[target] = self._due[target] - at_s
        self._set(target, math.inf)

    def start(self, target: int, at_s: float) -> None:
        """The target's age goes on from where it stood."""
        self._set(target, at_s + float(self._left[target]))

    def renew(self, target: int, at_s: float, rate: float) -> None:
        """The target has age 0 and that rate, whether it runs or stands still."""
        self._rates[target] = rate
        life = self._life(target)
        if math.isinf(self._due[target]):
            self._left[target] = life
        else:
            self._set(target, at_s + life)

    def _set(self, target: int, due_s: float) -> None:
        self._due[target] = due_s
        if due_s < self.next_s:
            self._first, self.next_s = target, due_s
        elif target == self._first:
            self._look()

    def _look(self) -> None:
        if len(self._due):
            self._first = int(self._due.argmin())
            self.next_s = float(self._due[self._first])

    def _life(self, target: int) -> float:
        if not self._rates[target]:
            return math.inf
        scale = weibull_scale_s(1.0, self._shape) / float(self._rates[target])
        return scale * float(self._generator.weibull(self._shape))
