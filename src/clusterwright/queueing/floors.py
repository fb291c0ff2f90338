"""The nodes of one flavor and what is free on them, indexed so that most questions cost no look at every node.

Usable nodes are kept by their number of free GPUs: a heap of node indexes for each number, cleaned when read, and a
bit mask of the numbers that occur. Node indexes are in the order of the policy's tie rule, so the first is the best of
equals. An exclusive domain counts as fully taken: what its job leaves idle is nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np

from clusterwright.queueing.domains import Flags, Ints, lay_out
from clusterwright.queueing.fitting import Fit, fit
from clusterwright.queueing.gangs import PARTS, NoFit, Space, thousandths
from clusterwright.queueing.policies import NodeTie, Packing, Policy
from clusterwright.queueing.requests import Demand, Placement

#: Answers about empty nodes that are kept by demand, before they are forgotten.
_KEPT: Final = 100_000


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node as declared.

    Args:
        path: names of the domains above it, widest first.
        usable: whether it takes tasks now.
        resources: further capacity by name (`cpu` in cores, `memory` in GiB); a node without a resource that others of
            its flavor declare has none of it, and a resource that no node declares is not counted.
    """

    name: str
    flavor: str
    gpus: int
    path: tuple[str, ...] = ()
    usable: bool = True
    resources: tuple[tuple[str, float], ...] = ()


class Floor:
    """All nodes of one flavor.

    Args:
        names: by node index, in the order in which ties are broken.
        index: node index by name.
        total: `(nodes,) int32`, GPUs.
        free: `(nodes,) int32`, GPUs no job holds, of unusable nodes too; to be read only.
        usable: `(nodes,) bool`, to be read only.
        version: grows when capacity is given back or a node becomes usable; what did not fit still does not until then.
    """

    def __init__(
        self, flavor: str, nodes: Sequence[NodeInfo], levels: Sequence[str] = (), policy: Policy | None = None
    ):
        policy = policy or Policy()
        by_name = policy.node_tie is NodeTie.NAME
        nodes = sorted(nodes, key=lambda n: n.name) if by_name else list(nodes)
        self.flavor = flavor
        self.packing = policy.packing
        self.names = tuple(n.name for n in nodes)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.layout = lay_out([n.path for n in nodes], levels, by_name=by_name)
        self.total = np.array([n.gpus for n in nodes], dtype=np.int32)
        self.free = self.total.copy()
        self.usable = np.array([n.usable for n in nodes], dtype=np.bool_)
        self.version = 0
        self.free_gpus = 0
        self.resources = _resources(nodes)
        self.spare = {name: total.copy() for name, total in self.resources.items()}
        self._zero_tasks = np.zeros(len(nodes), dtype=np.int64)
        self._closed = np.zeros(len(nodes), dtype=np.bool_)
        self._open = np.full(len(nodes), -1, dtype=np.int32)
        self._free: list[int] = self.total.tolist()
        self._up = [False] * len(nodes)
        most = int(self.total.max(initial=0))
        self._counts = [0] * (most + 1)
        self._mask = 0
        self._heaps: list[list[int]] = [[] for _ in range(most + 1)]
        self._queued: list[set[int]] = [set() for _ in range(most + 1)]
        self._placements: dict[tuple[int, int], Placement] = {}
        self._ever: dict[tuple[Demand, bool], Fit | NoFit] = {}
        for i, node in enumerate(nodes):
            if node.usable:
                self._enter(i)

    def fork(self) -> Floor:
        """A copy that shares only what never changes."""
        twin = object.__new__(Floor)
        twin.__dict__.update(self.__dict__)
        for name in ("free", "usable", "_zero_tasks", "_closed", "_open", "_free", "_up", "_counts"):
            setattr(twin, name, getattr(self, name).copy())
        twin.spare = {name: spare.copy() for name, spare in self.spare.items()}
        twin._heaps = [heap.copy() for heap in self._heaps]
        twin._queued = [queued.copy() for queued in self._queued]
        return twin

    def slots(self, gpus: int) -> int:
        """Tasks of this many GPUs that the usable nodes hold now; of no GPUs, the usable nodes."""
        if gpus <= 0:
            return sum(self._counts)
        return sum(self._counts[free] * (free // gpus) for free in range(gpus, len(self._counts)))

    def set_usable(self, node: int, usable: bool) -> None:
        """Let a node take tasks or not; what runs on it keeps its GPUs."""
        if self._up[node] == usable:
            return
        if usable:
            self.usable[node] = True
            self._enter(node)
            self.version += 1
        else:
            self.usable[node] = self._up[node] = False
            self._open[node] = -1
            self._count(self._free[node], -1)
            self.free_gpus -= self._free[node]

    def find(self, demand: Demand, gpus_at_most: float = float("inf")) -> Placement | NoFit:
        """Where the largest gang would go now that fits and has at most so many GPUs; takes nothing."""
        gpus = demand.single
        if gpus:
            return self._place_on_one(gpus, gpus, 1) if gpus <= gpus_at_most else NoFit.IMPOSSIBLE
        group = demand.groups[0]
        if group.gpus > 0 and self._too_few(group.gpus, group.fewest):
            return NoFit.IMPOSSIBLE
        if len(demand.groups) == 1 and self._plain(demand) and group.gpus * group.count <= gpus_at_most:
            on_one = self._place_on_one(group.gpus * group.count, group.gpus, group.count)
            if not isinstance(on_one, NoFit):
                return on_one
        return self._find(self._open, self.spare, demand, gpus_at_most)

    def find_in(
        self, free: Ints, demand: Demand, gpus_at_most: float = float("inf"), spare: Mapping[str, Ints] | None = None
    ) -> Placement | NoFit:
        """What `find` would answer if this were free, on the nodes that are usable now.

        Args:
            free: `(nodes,) int32` GPUs by node (less than none is none); `put_back` and `take_away` change such an
                array by a placement.
            spare: further resources in thousandths, as `self.spare`; unset are those of now.
        """
        usable = self.usable & ~(self._closed & (free <= 0))
        return self._find(
            np.where(usable, free, -1), self.spare if spare is None else spare, demand, gpus_at_most, free
        )

    def could_ever(self, demand: Demand) -> bool:
        """Whether the smallest gang fits on all nodes were they up and empty (an unfinished search counts)."""
        found = self.ever(demand, avoiding=False)
        return found not in (NoFit.IMPOSSIBLE, NoFit.MISCONFIGURED)

    def ever(self, demand: Demand, *, avoiding: bool) -> Fit | NoFit:
        """Where the smallest gang goes were all nodes up and empty, without those it excludes (and avoids)."""
        known = self._ever.get((demand, avoiding))
        if known is None:
            if len(self._ever) >= _KEPT:
                self._ever.clear()
            skip = demand.exclude | demand.avoid if avoiding else demand.exclude
            free = self.without(self.total, skip)
            empty = np.ones(len(free), dtype=np.bool_)
            space = Space(self.layout, free, self.resources, empty, self.packing)
            known = self._ever[demand, avoiding] = fit(space, demand, demand.least_gpus)
        return known

    def without(self, free: Ints, names: frozenset[str]) -> Ints:
        """`free` with −1 on the nodes of these names."""
        skip = [self.index[name] for name in names if name in self.index]
        if not skip:
            return free
        free = free.copy()
        free[skip] = -1
        return free

    def take(self, placement: Placement, demand: Demand) -> None:
        """Hold what a placement says.

        Raises:
            ValueError: some of it is not free; nothing is taken then.
        """
        runs = placement.runs
        if demand.single and len(runs) == 1:
            node = runs[0][1]
            left = self._free[node] - placement.gpus
            if left < 0:
                raise ValueError(f"node {self.names[node]} has {self._free[node]} free GPUs, not {placement.gpus}")
            self._set(node, left)
            return
        self._check(placement, demand)
        for node, gpus in self.effect(placement, demand).items():
            self._set(node, self._free[node] - gpus)
        self._count_further(placement, demand, 1)

    def give(self, placement: Placement, demand: Demand) -> None:
        """Give back what `take` took.

        Raises:
            ValueError: more than a node has would be free; nothing is given then.
        """
        self.version += 1
        runs = placement.runs
        if demand.single and len(runs) == 1:
            node = runs[0][1]
            free = self._free[node] + placement.gpus
            if free >= len(self._counts) or free > self.total[node]:
                raise ValueError(f"node {self.names[node]} would have {free} free of {self.total[node]} GPUs")
            self._set(node, free)
            return
        effect = self.effect(placement, demand)
        for node, gpus in effect.items():
            if self._free[node] + gpus > self.total[node]:
                raise ValueError(f"node {self.names[node]} would have more free GPUs than it has")
        for node, gpus in effect.items():
            self._set(node, self._free[node] + gpus)
        self._count_further(placement, demand, -1)

    def effect(self, placement: Placement, demand: Demand) -> dict[int, int]:
        """GPUs a placement takes by node; an exclusive domain is taken whole."""
        if placement.domain is not None:
            return {n: int(self.total[n]) for n in self._domain(placement)}
        taken: dict[int, int] = {}
        for group, node, tasks in placement.runs:
            taken[node] = taken.get(node, 0) + tasks * demand.groups[group].gpus
        return taken

    def put_back(self, free: Ints, placement: Placement, demand: Demand) -> None:
        """Change an array as `give` would change `free`."""
        for node, gpus in self.effect(placement, demand).items():
            free[node] += gpus

    def take_away(self, free: Ints, placement: Placement, demand: Demand) -> None:
        """Change an array as `take` would change `free`."""
        for node, gpus in self.effect(placement, demand).items():
            free[node] -= gpus

    def _place_on_one(self, gpus: int, each: int, tasks: int) -> Placement | NoFit:
        """All tasks on the fullest node (or the emptiest, by policy) with this many free GPUs."""
        above = self._mask >> gpus
        if not above:
            return NoFit.IMPOSSIBLE
        if self.packing is Packing.FULLEST:
            free = gpus + (above & -above).bit_length() - 1
        else:
            free = self._mask.bit_length() - 1
        heap, state, up = self._heaps[free], self._free, self._up
        while True:
            node = heap[0]
            if state[node] == free and up[node]:
                break
            self._queued[free].discard(heappop(heap))
        if tasks != 1:
            return Placement(self.flavor, ((0, node, tasks),), gpus)
        known = self._placements.get((node, gpus))
        if known is None:
            known = self._placements[node, gpus] = Placement(self.flavor, ((0, node, 1),), gpus)
        return known

    def _plain(self, demand: Demand) -> bool:
        """Whether the first group may go to any one node that has the GPUs."""
        group = demand.groups[0]
        free_to_go = demand.topology is None and not demand.exclude and not demand.avoid
        return group.gpus > 0 and free_to_go and not group.resources and not (group.spread and group.count > 1)

    def _too_few(self, gpus: int, tasks: int) -> bool:
        return not self._mask >> gpus or self.slots(gpus) < tasks

    def _find(
        self, free: Ints, spare: Mapping[str, Ints], demand: Demand, at_most: float, raw: Ints | None = None
    ) -> Placement | NoFit:
        empty: Flags | None = None
        if demand.topology is not None and demand.topology.exclusive:
            empty = ((self.free if raw is None else raw) == self.total) & (self._zero_tasks == 0)
        allowed = self.without(free, demand.exclude | demand.avoid)
        found = fit(Space(self.layout, allowed, spare, empty, self.packing), demand, at_most)
        if isinstance(found, NoFit) and demand.avoid and isinstance(self.ever(demand, avoiding=True), NoFit):
            allowed = self.without(free, demand.exclude)
            found = fit(Space(self.layout, allowed, spare, empty, self.packing), demand, at_most)
        return found if isinstance(found, NoFit) else self._placement(found, demand)

    def _placement(self, found: Fit, demand: Demand) -> Placement:
        gpus = sum(tasks * demand.groups[group].gpus for group, _, tasks in found.runs)
        domain = None
        if demand.topology is not None and demand.topology.exclusive:
            domain = (demand.topology.level, found.spot[1])
        return Placement(self.flavor, found.runs, gpus, domain)

    def _domain(self, placement: Placement) -> list[int]:
        assert placement.domain is not None
        level, domain = placement.domain
        return [int(n) for n in self.layout.members(self.layout.depths[level], domain)]

    def _check(self, placement: Placement, demand: Demand) -> None:
        for node, gpus in self.effect(placement, demand).items():
            if self._free[node] < gpus or (placement.domain is not None and self._zero_tasks[node]):
                raise ValueError(f"node {self.names[node]} has {self._free[node]} free GPUs, not {gpus}")
        for name, taken in self._further(placement, demand).items():
            for node, parts in taken.items():
                if self.spare[name][node] < parts:
                    raise ValueError(f"node {self.names[node]} has {self.spare[name][node] / PARTS:g} {name} free")

    def _count_further(self, placement: Placement, demand: Demand, sign: int) -> None:
        """Take (or with −1 give) what is not GPUs."""
        for name, taken in self._further(placement, demand).items():
            for node, parts in taken.items():
                self.spare[name][node] -= sign * parts
        for group, node, tasks in placement.runs:
            if not demand.groups[group].gpus:
                self._zero_tasks[node] += sign * tasks
        if placement.domain is not None:
            nodes = self._domain(placement)
            self._closed[nodes] = sign > 0
            for node in nodes:
                if self._up[node]:
                    self._open[node] = -1 if sign > 0 else self._free[node]

    def _further(self, placement: Placement, demand: Demand) -> dict[str, dict[int, int]]:
        """Thousandths of further resources a placement takes, by name and node."""
        taken: dict[str, dict[int, int]] = {}
        if not self.spare:
            return taken
        if placement.domain is not None:
            nodes = self._domain(placement)
            return {name: {n: int(total[n]) for n in nodes} for name, total in self.resources.items()}
        for group, node, tasks in placement.runs:
            for name, need in demand.groups[group].resources:
                if name in self.spare:
                    of = taken.setdefault(name, {})
                    of[node] = of.get(node, 0) + tasks * thousandths(need)
        return taken

    def _enter(self, node: int) -> None:
        """Count a node among the usable ones."""
        self._up[node] = True
        free = self._free[node]
        self._open[node] = -1 if self._closed[node] else free
        self.free_gpus += free
        self._count(free, 1)
        self._queue(node, free)

    def _set(self, node: int, free: int) -> None:
        before = self._free[node]
        self._free[node] = free
        self.free[node] = free
        if not self._up[node]:
            return
        self._open[node] = free
        self.free_gpus += free - before
        counts = self._counts
        counts[before] -= 1
        if not counts[before]:
            self._mask ^= 1 << before
        counts[free] += 1
        self._mask |= 1 << free
        queued = self._queued[free]
        if node not in queued:
            queued.add(node)
            heappush(self._heaps[free], node)

    def _count(self, free: int, change: int) -> None:
        self._counts[free] += change
        if self._counts[free]:
            self._mask |= 1 << free
        else:
            self._mask &= ~(1 << free)

    def _queue(self, node: int, free: int) -> None:
        if node not in self._queued[free]:
            self._queued[free].add(node)
            heappush(self._heaps[free], node)


def _resources(nodes: Sequence[NodeInfo]) -> dict[str, Ints]:
    """Further capacity by name in thousandths, rounded down."""
    names = sorted({name for node in nodes for name, _ in node.resources})
    amounts = [dict(node.resources) for node in nodes]
    return {n: np.array([int(round(a.get(n, 0.0) * PARTS, 6)) for a in amounts], dtype=np.int64) for n in names}
