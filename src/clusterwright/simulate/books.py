"""Who holds which GPUs and which are out of use, node by node, told to the ledger as it changes.

Three counts meet in the ledger and none is made from the others: what is installed (the scenario), what attempts hold
(their placements), and what is free (the queue's own count), so that its balance checks the whole simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clusterwright.ledger.accounting import Ledger
from clusterwright.ledger.lines import Entry, Line
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.requests import Demand, Placement, Request
from clusterwright.queueing.state import State
from clusterwright.simulate.scenarios import Scenario

#: Nodes of a domain that a job has for itself, which came back while it ran.
_EXCLUSIVE = Entry(Line.RESERVED, "domain of one job")


class Books:
    """The nodes as the ledger sees them. Indexes are places in the scenario's nodes.

    Attributes:
        out: why nobody may use a node, None while the queue may.
        absent: nodes that are not there yet.
        on: by node, the jobs that hold GPUs of it, in the order in which they started.
    """

    def __init__(self, scenario: Scenario, state: State, ledger: Ledger) -> None:
        self._state, self.ledger = state, ledger
        nodes = scenario.nodes
        self.quiet = scenario.quiet
        self.names = [n.name for n in nodes]
        self.flavors = [n.flavor for n in nodes]
        self.gpus = [n.gpus for n in nodes]
        self.held = [0] * len(nodes)
        self.out: list[Entry | None] = [None] * len(nodes)
        self.on: list[dict[int, None]] = [{} for _ in nodes]
        at = {n.name: i for i, n in enumerate(nodes)}
        self.places = {f: [at[name] for name in floor.names] for f, floor in state.cluster.floors.items()}
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

    def shares(self, placement: Placement, demand: Demand) -> dict[int, int]:
        """GPUs of each node that a placement holds; of an exclusive domain all that are not out of use."""
        places = self.places[placement.flavor]
        if placement.domain is None and len(placement.runs) == 1:
            return {places[placement.runs[0][1]]: placement.gpus}
        effect = self._state.cluster.floors[placement.flavor].effect(placement, demand)
        there = [(places[n], gpus) for n, gpus in effect.gpus.items()]
        return {n: gpus for n, gpus in there if self.out[n] is None and n not in self.absent}

    def take(self, at_s: float, job: int, flavor: str, shares: Mapping[int, int]) -> None:
        """An attempt holds GPUs from now on."""
        for node, gpus in shares.items():
            self.held[node] += gpus
            self.on[node][job] = None
        self.ledger.admit(at_s, flavor, sum(shares.values()))

    def give(self, at_s: float, job: int, flavor: str, shares: Mapping[int, int]) -> None:
        """An attempt gave its GPUs back; the ledger is told of the attempt itself by charging it."""
        for node, gpus in shares.items():
            self.held[node] -= gpus
            del self.on[node][job]
            entry = self.out[node]
            if entry is not None:
                self.ledger.put_out(at_s, flavor, entry.line, gpus, entry.why)
        if self._exclusive:
            self._open(at_s)

    def set_out(self, at_s: float, node: int, entry: Entry | None) -> None:
        """Nobody may use a node, for this reason; None lets the queue use it again."""
        flavor = self.flavors[node]
        if entry is None and self._state.cluster.floors[flavor].closed[self.spots[node]] and not self.held[node]:
            entry = _EXCLUSIVE
            self._exclusive.add(node)
        old = self.out[node]
        if old == entry:
            return
        unheld = self.gpus[node] - self.held[node]
        if old is not None:
            self.ledger.put_out(at_s, flavor, old.line, -unheld, old.why)
        if entry is not None:
            self.ledger.put_out(at_s, flavor, entry.line, unheld, entry.why)
        self.out[node] = entry

    def count_free(self, at_s: float) -> None:
        """Tell the ledger what is free now, and why the first who waits does not get it."""
        state = self._state
        for flavor, floor in state.cluster.floors.items():
            free = floor.free_gpus
            if state.claims:
                free += sum(sum(c.kept.values()) for c in state.claims.values() if c.placement.flavor == flavor)
            blocker = _blocker(state, flavor, free) if free and state.waiting else ""
            self.ledger.free(at_s, flavor, free, blocker)

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
    if free < head.demand.least_gpus:
        return "HARDWARE_WAIT"
    if gpus_allowed(head, flavor, state.usage, state.policy) < head.demand.least_gpus:
        return "QUOTA_WAIT"
    return "FRAGMENTED" if head.demand.topology is None else "TOPOLOGY"


def _head(state: State, flavor: str) -> Request | None:
    for line in state.lines.values():
        bunch = line.head()
        if bunch is not None and flavor in (bunch.demand.flavors or (flavor,)):
            return bunch[0]
    return None
