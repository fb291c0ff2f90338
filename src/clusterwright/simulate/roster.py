"""Which nodes may be used: none that is out for a reason or maintained, and spares only in the place of another."""

from __future__ import annotations

from typing import Final

from clusterwright.ledger.lines import Entry, Line
from clusterwright.simulate.failing import Failing
from clusterwright.simulate.happenings import Event, Happening
from clusterwright.simulate.spares import Spares
from clusterwright.simulate.world import World

_SPARE: Final = Entry(Line.RESERVED, "spare")
_MAINTENANCE: Final = Entry(Line.DRAINED, "maintenance")


class Roster:
    """The nodes one by one.

    Attributes:
        reason: by node, why a failure keeps it out; None where none does.
        maintained: nodes that are in a window of maintenance.
        spares: that are ready.
    """

    def __init__(self, world: World, failing: Failing) -> None:
        scenario, books = world.scenario, world.books
        self._world, self._state, self._books, self._failing = world, world.state, books, failing
        self._rotten = world.rotten
        level = scenario.spare_level
        self.spares = Spares(
            [s for s in scenario.spares if s not in books.absent], scenario.domains(level) if level else ()
        )
        self.reason: list[Entry | None] = [None] * len(scenario.nodes)
        self.maintained: set[int] = set()
        self._taken_over: set[int] = set()

    def begin(self) -> None:
        """Say what is out of use at instant 0."""
        scenario, state, books = self._world.scenario, self._state, self._books
        there = [n for n in range(len(scenario.nodes)) if n not in books.absent]
        books.install(0.0, there)
        for node in sorted(books.absent):
            state.set_usable(scenario.nodes[node].name, usable=False)
        for node in there:
            if node in self.spares:
                state.set_usable(scenario.nodes[node].name, usable=False)
                books.set_out(0.0, node, _SPARE)
            elif not scenario.nodes[node].usable:
                books.set_out(0.0, node, Entry(Line.DRAINED, "as declared"))

    def open(self, node: int, now_ms: int) -> None:
        """A node that is fit is for the queue, or a spare if one took its place."""
        if node in self._taken_over:
            self._taken_over.discard(node)
            self.spares.give(node)
        if node in self.spares:
            self._books.set_out(now_ms / 1000, node, _SPARE)
            return
        self._state.set_usable(self._books.names[node], usable=True)
        self._books.set_out(now_ms / 1000, node, None)

    def down(self, node: int, now_ms: int, entry: Entry, *, running: bool = False) -> None:
        """Nothing starts on a node any more; unless it is running, it neither fails nor ages."""
        if not running:
            self._failing.stop(node, now_ms / 1000)
        self._rotten.discard(node)
        self.rest_spare(node)
        self._state.set_usable(self._books.names[node], usable=False)
        self.reason[node] = entry
        if node not in self.maintained:
            self._books.set_out(now_ms / 1000, node, entry)
        self.tell(now_ms, Happening.OUT, (node,), f"{entry.line.value}: {entry.why}")

    def up(self, node: int, now_ms: int, *, new: bool) -> None:
        """A node is fit again: for the queue, or as a spare if a spare took its place."""
        self.reason[node] = None
        if new:
            self._failing.replace(node, now_ms / 1000)
        self._failing.start(node, now_ms / 1000)
        self.tell(now_ms, Happening.BACK, (node,), "new" if new else "")
        if node in self.maintained:
            self._failing.stop(node, now_ms / 1000)
            return
        self.open(node, now_ms)

    def rest_spare(self, node: int) -> None:
        """A spare that waits cannot come in for now; it is a spare again afterwards, and nothing comes in for it."""
        if node in self.spares:
            self.spares.lose(node)
            self._taken_over.add(node)

    def bring_spare(self, node: int, now_ms: int) -> None:
        """A spare takes the place of a node, if there is one and none has taken it."""
        if node in self._taken_over:
            return
        spare = self.spares.take(node)
        if spare is None:
            return
        self._taken_over.add(node)
        self.tell(now_ms, Happening.SPARE_IN, (spare,), f"for {self._books.names[node]}")
        self.open(spare, now_ms)

    def maintain(self, node: int, now_ms: int) -> None:
        """Planned work on a node begins."""
        self.maintained.add(node)
        self.rest_spare(node)
        self._failing.stop(node, now_ms / 1000)
        self._state.set_usable(self._books.names[node], usable=False)
        self._books.set_out(now_ms / 1000, node, _MAINTENANCE)

    def hand_back(self, node: int, now_ms: int) -> None:
        """Planned work on a node is over; a failure may keep it out still."""
        self.maintained.discard(node)
        reason = self.reason[node]
        if reason is not None:
            self._books.set_out(now_ms / 1000, node, reason)
            return
        self._failing.start(node, now_ms / 1000)
        self.open(node, now_ms)

    def deliver(self, node: int, now_ms: int) -> None:
        """A new node is there."""
        self._failing.start(node, now_ms / 1000, new=True)
        if node in self._world.scenario.spares:
            self.spares.give(node)
        self.open(node, now_ms)

    def tell(self, now_ms: int, what: Happening, nodes: tuple[int, ...], detail: str) -> None:
        """Write of nodes into the log."""
        if self._world.observe is not None:
            self._world.observe(Event(now_ms, what, -1, tuple(self._books.names[n] for n in nodes), 0, detail))
