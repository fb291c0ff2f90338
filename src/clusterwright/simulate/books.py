"""Who holds which GPUs and which are out of use, node by node, told to the ledger as it changes.

Three counts meet in the ledger and none is made from the others: what is installed (the scenario), what attempts hold
(their placements), and what is free (the queue's own count), so that its balance checks the whole simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clusterwright.ledger.accounting import Ledger
from clusterwright.ledger.lines import Entry, Line
from clusterwright.queueing.clusters import Floor
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.requests import Demand, Placement, Request
from clusterwright.queueing.state import State
from clusterwright.simulate.scenarios import Scenario

#: Nodes of a domain that a job has for itself, which came back while it ran.
_EXCLUSIVE = Entry(Line.RESERVED, "domain of one job")


class _Side:
    """What is told of one flavor: GPUs that attempts hold more since the last count, and what was said then."""

    __slots__ = ("blocker", "flavor", "floor", "free", "more", "places")

    def __init__(self, flavor: str, floor: Floor, places: list[int]) -> None:
        self.flavor, self.floor, self.places = flavor, floor, places
        self.more, self.free, self.blocker = 0, -1, ""


class Books:
    """The nodes as the ledger sees them. Indexes are places in the scenario's nodes.

    Attributes:
        out: why nobody may use a node, None while the queue may.
        absent: nodes that are not there yet.
        on: by node, the GPUs that each job holds of it, in the order in which they started.
    """

    def __init__(self, scenario: Scenario, state: State, ledger: Ledger) -> None:
        self._state, self.ledger = state, ledger
        nodes = scenario.nodes
        self.quiet = scenario.quiet
        self.names = [n.name for n in nodes]
        self.flavors = [n.flavor for n in nodes]
        self.gpus = [n.gpus for n in nodes]
        self.out: list[Entry | None] = [None] * len(nodes)
        self.on: list[dict[int, int]] = [{} for _ in nodes]
        at = {n.name: i for i, n in enumerate(nodes)}
        self._sides = {f: _Side(f, floor, [at[n] for n in floor.names]) for f, floor in state.cluster.floors.items()}
        self.places = {f: side.places for f, side in self._sides.items()}
        self.spots = [state.cluster.floors[n.flavor].index[n.name] for n in nodes]
        self.absent = {n for d in scenario.deliveries for n in d.nodes}
        self._installed = dict.fromkeys(state.cluster.flavors, 0)
        self._exclusive: set[int] = set()

    def install(self, at_s: float, nodes: Iterable[int]) -> None:
        """Nodes are there from now on."""
        nodes = tuple(nodes)
        self.absent.difference_update(nodes)
        for node in nodes:
            self._installed[self.flavors[node]] += self.gpus[node]
        for flavor, gpus in self._installed.items():
            self.ledger.install(at_s, flavor, gpus)

    def take(self, job: int, placement: Placement, demand: Demand) -> dict[int, int]:
        """An attempt holds a placement from now on; returns its GPUs by node, nothing where nodes never change.

        Of an exclusive domain it holds all GPUs that are not out of use.
        """
        side = self._sides[placement.flavor]
        if placement.domain is None:
            side.more += placement.gpus
            if self.quiet:
                return {}
            if len(placement.runs) == 1:
                node = side.places[placement.runs[0][1]]
                self.on[node][job] = placement.gpus
                return {node: placement.gpus}
        places, out, absent = side.places, self.out, self.absent
        taken = side.floor.effect(placement, demand).gpus
        shares = {places[n]: g for n, g in taken.items() if out[places[n]] is None and places[n] not in absent}
        for node, gpus in shares.items():
            self.on[node][job] = gpus
        if placement.domain is not None:
            side.more += sum(shares.values())
        return shares

    def give(self, at_ms: int, job: int, flavor: str, gpus: int, shares: Mapping[int, int]) -> None:
        """An attempt gave all its GPUs back."""
        self._sides[flavor].more -= gpus
        for node, part in shares.items():
            del self.on[node][job]
            entry = self.out[node]
            if entry is not None:
                self.ledger.put_out(at_ms / 1000, flavor, entry.line, part, entry.why)
        if self._exclusive:
            self._open(at_ms / 1000)

    def set_out(self, at_s: float, node: int, entry: Entry | None) -> None:
        """Nobody may use a node, for this reason; None lets the queue use it again."""
        flavor = self.flavors[node]
        if entry is None and self._state.cluster.floors[flavor].closed[self.spots[node]] and not self.on[node]:
            entry = _EXCLUSIVE
            self._exclusive.add(node)
        old = self.out[node]
        if old == entry:
            return
        unheld = self.gpus[node] - sum(self.on[node].values())
        if old is not None:
            self.ledger.put_out(at_s, flavor, old.line, -unheld, old.why)
        if entry is not None:
            self.ledger.put_out(at_s, flavor, entry.line, unheld, entry.why)
        self.out[node] = entry

    def count(self, at_ms: int) -> None:
        """Tell the ledger what is held and free now, and why the first who waits does not get what is free."""
        state = self._state
        for side in self._sides.values():
            free, blocker = side.floor.free_gpus, ""
            if state.waiting:
                if state.claims:
                    kept = [c.kept for c in state.claims.values() if c.placement.flavor == side.flavor]
                    free += sum(sum(some.values()) for some in kept)
                if free:
                    blocker = _blocker(state, side.flavor, free)
            if side.more or free != side.free or blocker != side.blocker:
                self.ledger.count(at_ms, side.flavor, side.more, free, blocker)
                side.more, side.free, side.blocker = 0, free, blocker

    def _open(self, at_s: float) -> None:
        for node in sorted(self._exclusive):
            if not self._state.cluster.floors[self.flavors[node]].closed[self.spots[node]]:
                self._exclusive.discard(node)
                if self.out[node] == _EXCLUSIVE:
                    self.set_out(at_s, node, None)


def _blocker(state: State, flavor: str, free: int) -> str:
    """Why the first waiting job that could use a flavor does not get its free GPUs; "" when nobody wants them."""
    head = _head(state, flavor)
    if head is None:
        wanted = any(flavor in (r.demand.flavors or (flavor,)) for r in state.overdrawn.values())
        return "BUDGET" if wanted else ""
    if head.id in state.claims:
        return "PREEMPTING"
    if free < head.demand.least_gpus or _short(state, flavor, head):
        return "HARDWARE_WAIT"
    if gpus_allowed(head, flavor, state.usage, state.policy) < head.demand.least_gpus:
        return "QUOTA_WAIT"
    return "FRAGMENTED" if head.demand.topology is None else "TOPOLOGY"


def _short(state: State, flavor: str, head: Request) -> bool:
    """Whether all nodes together have too little CPU or memory left for a job; a floor counts them in thousandths."""
    spare = state.cluster.floors[flavor].spare
    needs = head.demand.least_resources
    return any(name in spare and int(spare[name].sum()) < round(amount * 1000) for name, amount in needs)


def _head(state: State, flavor: str) -> Request | None:
    for line in state.lines.values():
        bunch = line.head()
        if bunch is not None and flavor in (bunch.demand.flavors or (flavor,)):
            return bunch[0]
    return None
