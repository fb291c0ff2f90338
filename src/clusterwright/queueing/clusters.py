"""The capacity of a cluster: one floor of nodes for each flavor, in order of declaration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from clusterwright.lib.errors import InvalidInput
from clusterwright.queueing.floors import Floor
from clusterwright.queueing.gangs import NoFit, complaint
from clusterwright.queueing.nodes import NodeInfo
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.replacing import replace_nodes
from clusterwright.queueing.requests import Demand, Placement
from clusterwright.queueing.shortfalls import BestDomain, Moves, best_domain, largest, moves

__all__ = ["Cluster", "Floor", "NoFit", "NodeInfo"]


class Cluster:
    """Nodes and what is free on them; changed by `take`, `give` and the floors' `set_usable` only.

    Args:
        nodes: in order of declaration, no name twice.
        levels: names of the levels of the nodes' paths, widest first.
        policy: how ties are broken and nodes are filled.

    Raises:
        InvalidInput: a name twice, fewer than no GPUs, a path deeper than the levels.
    """

    def __init__(self, nodes: Iterable[NodeInfo], levels: Sequence[str] = (), policy: Policy | None = None) -> None:
        nodes = list(nodes)
        _validate(nodes, levels)
        self.levels = tuple(levels)
        by_flavor: dict[str, list[NodeInfo]] = {}
        for node in nodes:
            by_flavor.setdefault(node.flavor, []).append(node)
        self.flavors = tuple(by_flavor)
        self.floors = {flavor: Floor(flavor, some, levels, policy) for flavor, some in by_flavor.items()}

    def find(self, demand: Demand, flavor: str, gpus_at_most: float = float("inf")) -> Placement | NoFit:
        """Where the largest gang would go now that fits and has at most so many GPUs; takes nothing."""
        floor = self.floors.get(flavor)
        return NoFit.IMPOSSIBLE if floor is None else floor.find(demand, gpus_at_most)

    def take(self, placement: Placement, demand: Demand) -> None:
        """Hold what a placement says; a ValueError when it is not free."""
        self.floors[placement.flavor].take(placement, demand)

    def give(self, placement: Placement, demand: Demand) -> None:
        """Give back what `take` took."""
        self.floors[placement.flavor].give(placement, demand)

    def could_ever(self, demand: Demand, flavor: str) -> bool:
        """Whether the smallest gang fits on all nodes of a flavor were they up and empty (kept by demand)."""
        floor = self.floors.get(flavor)
        return floor is not None and floor.could_ever(demand)

    def holds(self, demand: Demand) -> bool:
        """Whether usable nodes hold as many tasks as the first group needs; cheap, and no more than that."""
        group = demand.groups[0]
        for flavor in demand.flavors or self.flavors:
            floor = self.floors.get(flavor)
            if floor is not None and floor.holds(group.gpus, group.fewest):
                return True
        return False

    def complaint(self, demand: Demand, flavor: str) -> str:
        """What is wrong with the demand's topology wish here, "" when nothing is; `find` says MISCONFIGURED then."""
        floor = self.floors.get(flavor)
        return "" if floor is None else complaint(floor.layout, demand)

    def best_domain(self, demand: Demand, flavor: str) -> BestDomain | None:
        """The domain that comes closest to holding the smallest gang now."""
        floor = self.floors.get(flavor)
        return None if floor is None else best_domain(floor, demand)

    def largest(self, demand: Demand, flavor: str) -> tuple[int, ...]:
        """By group, how many of its tasks all nodes would hold for it alone, up and empty, at most its count."""
        floor = self.floors.get(flavor)
        return (0,) * len(demand.groups) if floor is None else largest(floor, demand)

    def moves(self, demand: Demand, flavor: str) -> Moves | None:
        """What must at least leave so that the smallest gang fits; None where that would not do."""
        floor = self.floors.get(flavor)
        return None if floor is None else moves(floor, demand)

    def replace(
        self, placement: Placement, demand: Demand, lost: Collection[int], spares: Collection[int] | None = None
    ) -> Placement | NoFit:
        """A held placement with the tasks of lost nodes on others (`replacing.replace_nodes`); takes nothing."""
        return replace_nodes(self.floors[placement.flavor], placement, demand, lost, spares)

    def fork(self) -> Cluster:
        """A copy for trying things out."""
        twin = object.__new__(Cluster)
        twin.levels, twin.flavors = self.levels, self.flavors
        twin.floors = {flavor: floor.fork() for flavor, floor in self.floors.items()}
        return twin


def _validate(nodes: Sequence[NodeInfo], levels: Sequence[str]) -> None:
    seen, problems = set[str](), list[str]()
    for node in nodes:
        if node.name in seen:
            problems.append(f"node '{node.name}' is declared twice")
        seen.add(node.name)
        if node.gpus < 0:
            problems.append(f"node '{node.name}' has {node.gpus} GPUs; 0 or more are possible")
        if levels and len(node.path) > len(levels):
            named = ", ".join(levels)
            problems.append(f"node '{node.name}' is in {len(node.path)} domains but the levels are {named}")
    if problems:
        raise InvalidInput(*problems)
