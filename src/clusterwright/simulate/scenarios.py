"""Everything a simulation starts from, as one value: the cluster, what arrives, what goes wrong, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.ledger.lines import to_ms
from clusterwright.lib.scales import DAY_S
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.nodes import NodeInfo
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import QueueTree
from clusterwright.queueing.windows import Window
from clusterwright.simulate.expansions import Delivery
from clusterwright.simulate.failing import Cause, Effect, Lemons, Population
from clusterwright.simulate.jobs import Jobs
from clusterwright.simulate.maintaining import Maintenance
from clusterwright.simulate.repairs import Care, Eviction

#: All nodes are alike.
NO_LEMONS: Final = Lemons()
#: Failures are noticed and repaired at once.
AT_ONCE: Final = Care()


class NodeLoss(StrEnum):
    """What becomes of a gang that lost a node.

    REPLACE: other nodes take the place of the lost ones at once; SHRINK: it goes on smaller; REQUEUE: it gives up all
    of its nodes and waits. Where the first two are not possible the job is requeued.
    """

    REPLACE = "replace"
    SHRINK = "shrink"
    REQUEUE = "requeue"


@dataclass(frozen=True, slots=True)
class Strike:
    """A failure at a given instant, beside those that are drawn; nodes that are out then are passed over."""

    at_s: float
    nodes: tuple[int, ...]
    name: str = "given failure"
    effect: Effect = Effect.NODE


@dataclass(frozen=True)
class Faults:
    """What goes wrong, and what is done about it.

    Args:
        care: of causes that `care_of` does not name.
        care_of: by name of the cause.
        crew: repairs at the same time; None is without limit.
        eviction: of nodes that keep failing; None keeps them all.
        strikes: failures that are given; their care goes by their name.
    """

    causes: tuple[Cause, ...] = ()
    lemons: Lemons = NO_LEMONS
    care: Care = AT_ONCE
    care_of: Mapping[str, Care] = field(default_factory=dict)
    crew: int | None = None
    eviction: Eviction | None = None
    strikes: tuple[Strike, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """What is simulated. Indexes of nodes are places in `nodes`; instants are seconds from 0.

    Args:
        nodes: all that ever exist, those of `deliveries` included.
        levels: of the nodes' paths, widest first.
        windows: reservations of the queue.
        budgets: GPU-hours by queue or group; their times are seconds from instant 0, too.
        spares: indexes of nodes that nobody may use until another one is out.
        spare_level: level in whose domain a spare is looked for first, "" for none.
        node_loss: what becomes of a gang that lost a node.
        avoid_lost: whether a job uses nodes that it lost once only when it cannot do without.
        maintenance: windows in which nodes are down.
        announced_s: how long before its beginning the queue learns of a maintenance window. A job without a time limit
            never starts on a node while it knows of a window there; the default is a choice, one day.
        store_bytes_per_s: of the store that attempts load from; None where they load nothing.
        counted_from_s: the ledger begins then, and jobs that are submitted before are in no statistic; what happens
            before only fills the cluster (warm-up).
        until_s: end of the simulation; None is when every job has ended or none can start any more.
        prices: of a GPU-hour by flavor.
        currency: of the prices.
    """

    nodes: tuple[NodeInfo, ...]
    jobs: Jobs
    levels: tuple[str, ...] = ()
    tree: QueueTree = field(default_factory=QueueTree)
    policy: Policy = field(default_factory=Policy)
    windows: tuple[Window, ...] = ()
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    faults: Faults = Faults()
    spares: tuple[int, ...] = ()
    spare_level: str = ""
    node_loss: NodeLoss = NodeLoss.REQUEUE
    avoid_lost: bool = True
    maintenance: tuple[Maintenance, ...] = ()
    announced_s: float = DAY_S
    deliveries: tuple[Delivery, ...] = ()
    store_bytes_per_s: float | None = None
    counted_from_s: float = 0.0
    until_s: float | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    currency: str = "USD"

    def __post_init__(self) -> None:
        count = len(self.nodes)
        named = [*self.spares, *(n for m in self.maintenance for n in m.nodes)]
        named += [n for d in self.deliveries for n in d.nodes] + [n for s in self.faults.strikes for n in s.nodes]
        if any(not 0 <= n < count for n in named):
            raise ValueError(f"a spare, a maintenance, a delivery or a strike names a node that is none of the {count}")
        if self.counted_from_s < 0 or (self.until_s is not None and self.counted_from_s >= self.until_s):
            raise ValueError(f"what counts begins at {self.counted_from_s} s, not between 0 and the end")
        if self.until_s is None and any(m.every_s is not None for m in self.maintenance):
            raise ValueError("maintenance that repeats needs an end of the simulation")
        if self.store_bytes_per_s is None and any(k.bytes_each for k in self.jobs.kinds):
            raise ValueError("jobs load from a store whose rate is not given")

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Jobs that are in the statistics, (jobs,) bool."""
        return np.asarray(self.jobs.submit_ms >= to_ms(self.counted_from_s))

    @property
    def quiet(self) -> bool:
        """Whether every node is there and usable all the time."""
        away = self.spares or self.maintenance or self.deliveries or self.faults.causes or self.faults.strikes
        return not away and all(n.usable for n in self.nodes)

    def domains(self, level: str) -> tuple[int, ...]:
        """The domain of a level above each node, by number; −1 for none."""
        at = self.levels.index(level)
        numbers: dict[tuple[str, ...], int] = {}
        return tuple(numbers.setdefault(n.path[: at + 1], len(numbers)) if len(n.path) > at else -1 for n in self.nodes)

    def population(self) -> Population:
        """The nodes as what can fail."""
        return Population(
            len(self.nodes), {level: np.array(self.domains(level), dtype=np.intp) for level in self.levels}
        )
