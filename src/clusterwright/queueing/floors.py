"""The nodes of one flavor and what is free on them.

Node indexes are in the order of the policy's tie rule, so the first is the best of equals. An exclusive domain counts
as fully taken: what its job leaves idle is nobody's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from clusterwright.queueing.domains import Flags, Ints, lay_out
from clusterwright.queueing.effects import Effect, effect_of
from clusterwright.queueing.fitting import Fit, fit
from clusterwright.queueing.gangs import PARTS, NoFit, Space
from clusterwright.queueing.nodes import NodeInfo, resources_of_nodes
from clusterwright.queueing.policies import NodeTie, Packing, Policy
from clusterwright.queueing.requests import Demand, Placement
from clusterwright.queueing.shelves import Shelves

#: More free GPUs than any node has.
_FULL: Final = np.iinfo(np.int32).max
#: Answers about empty nodes that are kept by demand, before they are forgotten.
_KEPT: Final = 100_000


class Floor:
    """All nodes of one flavor.

    Args:
        names: by node index, in the order in which ties are broken.
        index: node index by name.
        total: `(nodes,) int32`, GPUs.
        free: `(nodes,) int32`, GPUs no job holds, of unusable nodes too; to be read only.
        usable: `(nodes,) bool`, to be read only.
        resources, spare: by further resource, `(nodes,) int64` in thousandths, all of it and what is free.
        closed: `(nodes,) bool`, nodes of exclusive domains that are held.
        version: grows when capacity is given back or a node becomes usable; what did not fit still does not until then.
    """

    def __init__(
        self, flavor: str, nodes: Sequence[NodeInfo], levels: Sequence[str] = (), policy: Policy | None = None
    ):
        policy = policy or Policy()
        by_name, count = policy.node_tie is NodeTie.NAME, len(nodes)
        nodes = sorted(nodes, key=lambda n: n.name) if by_name else list(nodes)
        self.flavor = flavor
        self.packing = policy.packing
        self.names = tuple(n.name for n in nodes)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.layout = lay_out([n.path for n in nodes], levels, by_name=by_name)
        self.total = np.array([n.gpus for n in nodes], dtype=np.int32)
        self.resources = resources_of_nodes(nodes)
        self.version = 0
        self.usable = np.array([n.usable for n in nodes], dtype=np.bool_)
        self.spare = {name: total.copy() for name, total in self.resources.items()}
        self._bare_tasks = np.zeros(len(nodes), dtype=np.int64)
        self.closed = np.zeros(len(nodes), dtype=np.bool_)
        self._shelves = Shelves(self.total, emptiest=policy.packing is Packing.EMPTIEST)
        self.free = self._shelves.free
        self._totals: list[int] = self.total.tolist()
        self._singles: dict[int, list[Placement | None]] = defaultdict(lambda: [None] * count)
        self._ever: dict[Demand, Fit | NoFit] = {}
        for i, node in enumerate(nodes):
            if node.usable:
                self._shelves.admit(i)

    def fork(self) -> Floor:
        """A copy that shares only what never changes."""
        twin = object.__new__(Floor)
        twin.__dict__.update(self.__dict__)
        twin.usable, twin._bare_tasks, twin.closed = self.usable.copy(), self._bare_tasks.copy(), self.closed.copy()
        twin.spare = {name: spare.copy() for name, spare in self.spare.items()}
        twin._shelves = self._shelves.fork()
        twin.free = twin._shelves.free
        return twin

    @property
    def free_gpus(self) -> int:
        """Free GPUs of usable nodes."""
        return self._shelves.free_gpus

    def slots(self, gpus: int) -> int:
        """Tasks of this many GPUs that the usable nodes hold now; of no GPUs, the usable nodes."""
        return self._shelves.slots(gpus) if gpus > 0 else self._shelves.nodes

    def holds(self, gpus: int, tasks: int) -> bool:
        """Whether the usable nodes hold so many tasks of this many GPUs now; without GPUs, whether there is a node."""
        return self._shelves.holds(gpus, tasks)

    def set_usable(self, node: int, usable: bool) -> None:
        """Let a node take tasks or not; what runs on it keeps its GPUs."""
        if bool(self.usable[node]) == usable:
            return
        self.usable[node] = usable
        if usable:
            self._shelves.admit(node)
            self.version += 1
        else:
            self._shelves.dismiss(node)

    def find(self, demand: Demand, gpus_at_most: float = float("inf")) -> Placement | NoFit:
        """Where the largest gang would go now that fits and has at most so many GPUs; takes nothing."""
        gpus = demand.single
        if gpus is not None:
            node = -1 if gpus > gpus_at_most else self._shelves.pick(gpus) if gpus else self._first_open()
            return NoFit.IMPOSSIBLE if node < 0 else self._singles[gpus][node] or self._single(node, gpus)
        group = demand.groups[0]
        if group.gpus > 0 and self._shelves.slots(group.gpus) < group.fewest:
            return NoFit.IMPOSSIBLE
        if group.gpus > 0 and self._anywhere(demand) and group.gpus * group.count <= gpus_at_most:
            node = self._shelves.pick(group.gpus * group.count)
            if node >= 0:
                return Placement(self.flavor, ((0, node, group.count),), group.gpus * group.count)
        return self._find(self.free, self.spare, demand, gpus_at_most)

    def find_in(
        self, free: Ints, demand: Demand, gpus_at_most: float = float("inf"), spare: Mapping[str, Ints] | None = None
    ) -> Placement | NoFit:
        """What `find` would answer if this were free, on the nodes that are usable now.

        A node of an exclusive domain that is held stays closed unless GPUs of it are free here.

        Args:
            free: `(nodes,) int32` GPUs by node (less than none is none); `put_back` and `take_away` change such an
                array by a placement.
            spare: further resources in thousandths, as `self.spare`; unset are those of now.
        """
        gpus = demand.single
        if gpus:
            node = self._pick_in(free, gpus) if gpus <= gpus_at_most else -1
            return NoFit.IMPOSSIBLE if node < 0 else self._singles[gpus][node] or self._single(node, gpus)
        return self._find(np.maximum(free, 0), self.spare if spare is None else spare, demand, gpus_at_most)

    def could_ever(self, demand: Demand) -> bool:
        """Whether the smallest gang fits on all nodes were they up and empty (an unfinished search counts)."""
        known = self._ever.get(demand)
        if known is None:
            if len(self._ever) >= _KEPT:
                self._ever.clear()
            known = self._ever[demand] = self.fit_empty(demand)
        return known not in (NoFit.IMPOSSIBLE, NoFit.MISCONFIGURED)

    def fit_empty(self, demand: Demand, usable: Flags | None = None) -> Fit | NoFit:
        """Where the smallest gang goes on empty nodes, all of them or these, that it does not exclude."""
        free = self.total if usable is None else np.where(usable, self.total, -1)
        space = self.space(free, self.resources, demand.exclude, empty=np.ones(len(free), dtype=np.bool_))
        return fit(space, demand, demand.least_gpus)

    def space(
        self, free: Ints, spare: Mapping[str, Ints], skip: frozenset[str] = frozenset(), empty: Flags | None = None
    ) -> Space:
        """A space for `fit` without the nodes of these names."""
        gone = [self.index[name] for name in skip if name in self.index]
        if gone:
            free = free.copy()
            free[gone] = -1
        return Space(self.layout, free, spare, empty, self.packing)

    def empty(self, free: Ints) -> Flags:
        """`(nodes,) bool`: nodes without any job when this is free."""
        return np.asarray((free == self.total) & (self._bare_tasks == 0))

    def take(self, placement: Placement, demand: Demand) -> None:
        """Hold what a placement says.

        Raises:
            ValueError: some of it is not free; nothing is taken then.
        """
        runs, shelves = placement.runs, self._shelves
        if demand.single and len(runs) == 1:
            node = runs[0][1]
            left = shelves.on[node] - placement.gpus
            if left >= 0:
                shelves.put(node, left)
                return
        effect = self.effect(placement, demand)
        self._check(effect)
        for node, gpus in effect.gpus.items():
            shelves.put(node, int(self.free[node]) - gpus)
        self._count_further(effect, 1)

    def give(self, placement: Placement, demand: Demand) -> None:
        """Give back what `take` took.

        Raises:
            ValueError: more than a node has would be free; nothing is given then.
        """
        runs, shelves = placement.runs, self._shelves
        if demand.single and len(runs) == 1:
            node = runs[0][1]
            free = shelves.on[node] + placement.gpus
            if placement.gpus <= free <= self._totals[node]:
                self.version += 1
                shelves.put(node, free)
                return
        effect = self.effect(placement, demand)
        for node, gpus in effect.gpus.items():
            free = int(self.free[node]) + gpus
            if free > self.total[node]:
                raise ValueError(f"node {self.names[node]} would have {free} free of {self.total[node]} GPUs")
        self.version += 1
        for node, gpus in effect.gpus.items():
            shelves.put(node, int(self.free[node]) + gpus)
        self._count_further(effect, -1)

    def effect(self, placement: Placement, demand: Demand) -> Effect:
        """What a placement takes from each node."""
        return effect_of(self.layout, self.total, self.resources, placement, demand)

    def put_back(
        self, free: Ints, placement: Placement, demand: Demand, spare: Mapping[str, Ints] | None = None
    ) -> None:
        """Change arrays as `give` would change `free` (and `spare`)."""
        self._change(free, placement, demand, 1, spare or {})

    def take_away(
        self, free: Ints, placement: Placement, demand: Demand, spare: Mapping[str, Ints] | None = None
    ) -> None:
        """Change arrays as `take` would change `free` (and `spare`)."""
        self._change(free, placement, demand, -1, spare or {})

    def _change(self, free: Ints, placement: Placement, demand: Demand, sign: int, spare: Mapping[str, Ints]) -> None:
        if placement.domain is None and not spare:
            for group, node, tasks in placement.runs:
                free[node] += sign * tasks * demand.groups[group].gpus
            return
        effect = self.effect(placement, demand)
        for node, gpus in effect.gpus.items():
            free[node] += sign * gpus
        for name, amounts in spare.items():
            for node, parts in effect.further.get(name, {}).items():
                amounts[node] += sign * parts

    def _pick_in(self, free: Ints, gpus: int) -> int:
        """What `Shelves.pick` would answer if this were free."""
        fits = (free >= gpus) & self.usable
        if self.packing is Packing.EMPTIEST:
            node = int(np.where(fits, free, -1).argmax())
        else:
            node = int(np.where(fits, free, _FULL).argmin())
        return node if fits[node] else -1

    def _first_open(self) -> int:
        """The first node that takes tasks, full or not; −1 when there is none."""
        open_nodes = self.usable & ~self.closed
        first = int(open_nodes.argmax())
        return first if open_nodes[first] else -1

    def _single(self, node: int, gpus: int) -> Placement:
        """A placement of one task, made once."""
        made = self._singles[gpus][node] = Placement(self.flavor, ((0, node, 1),), gpus)
        return made

    @staticmethod
    def _anywhere(demand: Demand) -> bool:
        """Whether all tasks may share any one node that has the GPUs."""
        group = demand.groups[0]
        apart = len(demand.groups) > 1 or (group.spread and group.count > 1) or bool(group.resources)
        return not apart and demand.topology is None and not demand.exclude and not demand.avoid

    def _find(self, free: Ints, spare: Mapping[str, Ints], demand: Demand, at_most: float) -> Placement | NoFit:
        empty: Flags | None = None
        if demand.topology is not None and demand.topology.exclusive:
            empty = self.empty(free)
        usable = self.usable
        if self.closed.any():
            usable = usable & ~(self.closed & (free == 0))
        if not usable.all():
            free = np.where(usable, free, -1)
        found = fit(self.space(free, spare, demand.exclude | demand.avoid, empty), demand, at_most)
        if isinstance(found, NoFit) and demand.avoid and self._needs_avoided(demand):
            found = fit(self.space(free, spare, demand.exclude, empty), demand, at_most)
        return found if isinstance(found, NoFit) else self._placement(found, demand)

    def _needs_avoided(self, demand: Demand) -> bool:
        """Whether the smallest gang would not fit on the usable nodes it does not avoid, were they empty."""
        others = replace(demand, exclude=demand.exclude | demand.avoid)
        return isinstance(self.fit_empty(others, self.usable), NoFit)

    def _placement(self, found: Fit, demand: Demand) -> Placement:
        gpus = sum(tasks * demand.groups[group].gpus for group, _, tasks in found.runs)
        domain = None
        if demand.topology is not None and demand.topology.exclusive:
            domain = (demand.topology.level, found.spot[1])
        return Placement(self.flavor, found.runs, gpus, domain)

    def _check(self, effect: Effect) -> None:
        for node, gpus in effect.gpus.items():
            if self.free[node] < gpus or (effect.domain and self._bare_tasks[node]):
                raise ValueError(f"node {self.names[node]} has {self.free[node]} free GPUs, not {gpus}")
        for name, taken in effect.further.items():
            for node, parts in taken.items():
                if self.spare[name][node] < parts:
                    left = self.spare[name][node] / PARTS
                    raise ValueError(f"node {self.names[node]} has {left:g} {name} free, not {parts / PARTS:g}")

    def _count_further(self, effect: Effect, sign: int) -> None:
        """Take (or with −1 give) what is not GPUs."""
        for name, taken in effect.further.items():
            for node, parts in taken.items():
                self.spare[name][node] -= sign * parts
        for node, tasks in effect.bare_tasks.items():
            self._bare_tasks[node] += sign * tasks
        if effect.domain:
            self.closed[list(effect.domain)] = sign > 0
