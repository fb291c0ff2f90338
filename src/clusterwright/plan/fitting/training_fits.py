"""One machine's answer about training, with the ranges of its figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from clusterwright.lib.scales import DAY_S
from clusterwright.physics.training.calibration import CALIBRATED
from clusterwright.plan.fitting.bands import Band
from clusterwright.plan.fitting.interruptions import Interruptions
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.prices import HourPrice
from clusterwright.plan.searching.machines import system
from clusterwright.plan.searching.training import TrainingRow, TrainingSearch

TrainingVerdict = Literal["holds", "late", "too big", "impossible", "unknown"]


@dataclass(frozen=True)
class TrainingFit:
    """One machine's answer.

    Args:
        search: None where the machine cannot train at all. best: None where nothing holds.
        missed: why not, in words.
        losses: of `best`. wanted: tokens to train on, None where nobody said.
        tokens: that a budget buys, where one was given.
    """

    machine: Machine
    verdict: TrainingVerdict
    price: HourPrice | None
    search: TrainingSearch | None = None
    best: TrainingRow | None = None
    missed: str = ""
    losses: Interruptions | None = None
    wanted: float | None = None
    tokens: float | None = None

    @property
    def chosen(self) -> TrainingRow:
        """The best layout.

        Raises:
            ValueError: nothing holds.
        """
        if self.best is None:
            raise ValueError(f"nothing holds on {self.machine.asked}")
        return self.best

    @property
    def lost(self) -> Interruptions:
        """What the best layout loses by failures and checkpoints.

        Raises:
            ValueError: nothing holds.
        """
        if self.losses is None:
            raise ValueError(f"nothing holds on {self.machine.asked}")
        return self.losses

    @property
    def tokens_s(self) -> Band:
        """Tokens per second of the job, without losses."""
        low, high = self.chosen.step.band
        return Band(self.chosen.tokens_s, self.chosen.tokens_s * low, self.chosen.tokens_s * high)

    @property
    def ideal_days(self) -> Band | None:
        """To the target if nothing failed and checkpoints cost nothing."""
        if self.wanted is None:
            return None
        days, (low, high) = self.lost.run.ideal_days, self.chosen.step.band
        return Band(days, days / high, days / low)

    @property
    def days(self) -> Band | None:
        """To the target, with what checkpoints, failures and missing nodes take."""
        ideal = self.ideal_days
        return None if ideal is None else _lengthened(ideal, self.lost.goodput)

    @property
    def bought_days(self) -> float | None:
        """Until the tokens that a budget buys are done; None without a budget, inf where nothing gets done."""
        if self.tokens is None:
            return None
        tokens_s = self.chosen.tokens_s * self.lost.goodput.value
        return self.tokens / tokens_s / DAY_S if tokens_s else math.inf

    @property
    def memory_gib(self) -> Band:
        """Of the fullest GPU."""
        low, high = self.chosen.memory.band
        return Band(self.chosen.memory_gib, self.chosen.memory_gib * low, self.chosen.memory_gib * high)

    @property
    def tighter(self) -> TrainingRow | None:
        """A faster layout that fits only if memory is not above its estimate; None where the chosen one is fastest."""
        found = None if self.search is None else self.search.best
        return None if found is None or found.step_s >= self.chosen.step_s * 0.999 else found

    @property
    def measured(self) -> bool:
        """Whether runs on this GPU were among those that constants were fitted to."""
        assert self.search is not None
        return CALIBRATED.knows(system(self.search.question.pool).name)

    @property
    def spare_gpus(self) -> int:
        """Of spare nodes that were asked for."""
        return (self.lost.spares or 0) * self.machine.gpus_per_node

    @property
    def gpus(self) -> int:
        """That are paid for: those of the job and of spare nodes."""
        return self.chosen.gpus + self.spare_gpus

    @property
    def gpu_h_per_mtok(self) -> Band:
        """GPU-hours per million tokens, spare nodes included."""
        hours, (low, high) = self.gpus / self.chosen.tokens_s / 3600 * 1e6, self.chosen.step.band
        return _lengthened(Band(hours, hours / high, hours / low), self.lost.goodput)

    @property
    def per_h(self) -> float | None:
        """Money per hour of the job and its spare nodes."""
        return None if self.price is None else self.price.value * self.gpus

    @property
    def per_mtok(self) -> Band | None:
        """Money per million tokens."""
        price, hours = self.price, self.gpu_h_per_mtok
        if price is None:
            return None
        low = None if hours.low is None else hours.low * price.low
        return Band(hours.value * price.value, low, None if hours.high is None else hours.high * price.high)

    @property
    def cost(self) -> Band | None:
        """Money of the whole run."""
        each = self.per_mtok
        return None if each is None or self.wanted is None else each.times(self.wanted / 1e6)


def _lengthened(ideal: Band, kept: Band) -> Band:
    """A time by the share of it that is useful; without an end where nothing is."""

    def by(value: float | None, share: float | None) -> float | None:
        return value / share if value is not None and share else None

    return Band(by(ideal.value, kept.value) or math.inf, by(ideal.low, kept.high), by(ideal.high, kept.low))
