"""Which node or failure domain fails next, when, and from what.

Every cause is a process of its own with its own random stream. Without ageing (shape 1) the failures of all targets
together are one Poisson process: its next time is one draw, and the target a second one, by weight. What strikes a node
that is down, evicted or not yet there is discarded (thinning), which is exact because such a process has no memory.
With a shape below or above 1 every target has a clock that runs while the target does, in arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clusterwright.lib.scales import DAY_S
from clusterwright.simulate.clocks import AgeingClock, Clock, PoissonClock
from clusterwright.simulate.streams import Streams

SECONDS_OF_1000_DAYS: Final = 1000 * DAY_S


class Effect(StrEnum):
    """What a failure does to the work on its nodes.

    NODE: the node is gone at once. JOB: the job ends, the node stays good. DRAIN: work goes on, and the node is
    repaired once it is free. SILENT: work goes on and is wrong, until somebody notices.
    """

    NODE = "node"
    JOB = "job"
    DRAIN = "drain"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why nodes fail, and how often.

    Args:
        name: names the random stream, so two causes of a process differ in it.
        per_1000_days: failures in 1,000 days of one running node, or of one domain of `level`.
        level: "" when it strikes one node, else the level whose whole domain it takes (switch, rack, power feed).
        shape: k of the Weibull time between failures of one target, 1 is exponential.
        lemons: whether lemons have more of it.
    """

    name: str
    per_1000_days: float
    level: str = ""
    shape: float = 1.0
    effect: Effect = Effect.NODE
    lemons: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.per_1000_days < math.inf or not 0 < self.shape < math.inf:
            raise ValueError(f"cause {self.name}: the rate is at least 0 and the shape above 0, both finite")


@dataclass(frozen=True, slots=True)
class Lemons:
    """Nodes that fail more often than the others; the mean over all nodes stays the declared rate.

    Args:
        share: of the nodes, from 0 to 1.
        multiple: of the rate of a good node, at least 1.
    """

    share: float = 0.0
    multiple: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or not 1 <= self.multiple < math.inf:
            raise ValueError("lemons are a share of 0 to 1 of the nodes, with a finite multiple of at least 1")

    def draw(self, nodes: int, generator: Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(nodes,) weights of mean 1, and which nodes are lemons: the rounded share of them."""
        chosen = np.zeros(nodes, dtype=np.bool_)
        chosen[generator.choice(nodes, size=round(self.share * nodes), replace=False)] = True
        weights = np.where(chosen, self.multiple, 1.0)
        return weights / (weights.mean() if nodes else 1.0), chosen


@dataclass(frozen=True)
class Population:
    """The nodes that can fail, those included that arrive later, and the domains above them.

    Args:
        nodes: how many.
        domains: level → (nodes,) index of the domain of each node at that level, -1 for none.
    """

    nodes: int
    domains: Mapping[str, NDArray[np.intp]] = field(default_factory=dict)

    def members(self, level: str) -> tuple[NDArray[np.intp], ...]:
        """Nodes of each domain of a level, by index of the domain.

        Raises:
            ValueError: if no such level was given.
        """
        if level not in self.domains:
            raise ValueError(f"no level '{level}' here; levels are {', '.join(self.domains) or 'none'}")
        of = self.domains[level]
        order = np.argsort(of, kind="stable")
        bounds = np.searchsorted(of[order], np.arange(int(of.max(initial=-1)) + 2))
        return tuple(order[a:b] for a, b in itertools.pairwise(bounds))


@dataclass(frozen=True, slots=True)
class Failure:
    """Something failed.

    Args:
        target: index of the node, or of the domain of the cause's level.
        nodes: running nodes that it strikes, in order of their index; at least one.
    """

    at_s: float
    cause: Cause
    target: int
    nodes: tuple[int, ...]


class Failing:
    """The failures of a cluster in order of time; `next_s` is when `pop` has something to say, infinite for never.

    `next_ms` is the whole millisecond at or after it.

    Args:
        causes: each an independent process.
        streams: a cause draws from `streams.of("failures", name)`, the lemons from `streams.of("lemons")`.
        absent: nodes that do not run yet; `start` them when they arrive.

    Raises:
        ValueError: if two causes share a name, or a level is unknown.
    """

    def __init__(
        self,
        causes: Iterable[Cause],
        population: Population,
        streams: Streams,
        lemons: Lemons = Lemons(),
        absent: Iterable[int] = (),
    ) -> None:
        self._causes = tuple(causes)
        if len({c.name for c in self._causes}) < len(self._causes):
            raise ValueError("two causes of failures have the same name")
        weights, self.lemons = lemons.draw(population.nodes, streams.of("lemons"))
        self._weights = weights.copy()
        self._good_weight = float(weights.min(initial=1.0))
        self._running = [True] * population.nodes
        self._members = {c.level: [m.tolist() for m in population.members(c.level)] for c in self._causes if c.level}
        self._clocks = [self._clock(c, weights, streams.of("failures", c.name)) for c in self._causes]
        self._ageing = [
            clock
            for cause, clock in zip(self._causes, self._clocks, strict=True)
            if isinstance(clock, AgeingClock) and not cause.level
        ]
        self._look()
        for node in absent:
            self.stop(node, 0.0)

    def _clock(self, cause: Cause, weights: NDArray[np.float64], generator: Generator) -> Clock:
        if cause.level:
            weights = np.ones(len(self._members[cause.level]))
        elif not cause.lemons:
            weights = np.ones(len(weights))
        rates = weights * (cause.per_1000_days / SECONDS_OF_1000_DAYS)
        return PoissonClock(rates, generator) if cause.shape == 1 else AgeingClock(rates, cause.shape, generator)

    def pop(self) -> Failure | None:
        """What happens at `next_s`; None when it strikes nothing that runs. Time goes on either way."""
        at_s = self.next_s
        for cause, clock in zip(self._causes, self._clocks, strict=True):
            if clock.next_s == at_s < math.inf:
                target = clock.pop()
                self._look()
                return None if target is None else self._strike(at_s, cause, target)
        return None

    def _look(self) -> None:
        self.next_s = min([clock.next_s for clock in self._clocks], default=math.inf)
        self.next_ms = math.inf if math.isinf(self.next_s) else math.ceil(self.next_s * 1000)

    def _strike(self, at_s: float, cause: Cause, target: int) -> Failure | None:
        struck = self._members[cause.level][target] if cause.level else (target,)
        nodes = tuple([node for node in struck if self._running[node]])
        return Failure(at_s, cause, target, nodes) if nodes else None

    def stop(self, node: int, at_s: float) -> None:
        """A node stops running (down, drained, evicted): it does not fail and does not age."""
        if self._running[node]:
            self._running[node] = False
            for clock in self._ageing:
                clock.stop(node, at_s)
            if self._ageing:
                self._look()

    def start(self, node: int, at_s: float, new: bool = False) -> None:
        """A node runs again with the age it had, or for the first time with age 0 when it is new."""
        if new:
            self._renew(node, at_s)
        if not self._running[node]:
            self._running[node] = True
            for clock in self._ageing:
                clock.start(node, at_s)
        if self._ageing:
            self._look()

    def replace(self, node: int, at_s: float) -> None:
        """A good node of age 0, no lemon, stands in the place of this one, whether that runs or is stopped."""
        self.lemons[node] = False
        self._weights[node] = self._good_weight
        self._renew(node, at_s)
        self._look()

    def _renew(self, node: int, at_s: float) -> None:
        for cause, clock in zip(self._causes, self._clocks, strict=True):
            if not cause.level:
                weight = float(self._weights[node]) if cause.lemons else 1.0
                clock.renew(node, at_s, cause.per_1000_days / SECONDS_OF_1000_DAYS * weight)
