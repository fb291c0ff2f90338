"""What is planned: maintenance, reservations that begin and end, and nodes that are delivered."""

from __future__ import annotations

import math

from clusterwright.ledger.lines import Line, to_ms
from clusterwright.queueing.windows import Window
from clusterwright.simulate.agenda import Order
from clusterwright.simulate.expansions import Arrival, draw_arrivals
from clusterwright.simulate.happenings import Happening
from clusterwright.simulate.interruptions import Interruptions
from clusterwright.simulate.maintaining import Window as Work
from clusterwright.simulate.maintaining import plan_windows
from clusterwright.simulate.roster import Roster
from clusterwright.simulate.streams import Streams
from clusterwright.simulate.world import World


class Plans:
    """Carries out what is planned, at its time."""

    def __init__(self, world: World, roster: Roster, jobs: Interruptions, streams: Streams) -> None:
        self._scenario, self._state, self._books, self._agenda = world.scenario, world.state, world.books, world.agenda
        self._roster, self._jobs = roster, jobs
        self._arrivals = draw_arrivals(world.scenario.deliveries, streams)

    def begin(self) -> None:
        """Enter everything that is known at instant 0."""
        scenario, enter = self._scenario, self._agenda.enter
        for arrival in self._arrivals:
            enter(math.ceil(arrival.at_s * 1000), Order.NODE, self._arrive, arrival)
        for window in scenario.windows:
            for at_s in (window.start_s, window.end_s):
                enter(max(0, math.ceil(at_s * 1000)), Order.NODE, self._wake, None)
        until_s = math.inf if scenario.until_s is None else scenario.until_s
        for maintenance in scenario.maintenance:
            for work in plan_windows(maintenance, until_s):
                known_ms = max(0, to_ms(work.begin_s - scenario.announced_s))
                enter(known_ms, Order.NODE, self._announce, work)

    def _wake(self, _now_ms: int, _: int, what: None) -> None:
        self._state.wake()

    def _announce(self, now_ms: int, _: int, work: Work) -> None:
        names = frozenset(self._books.names[n] for n in work.nodes)
        window = Window(work.name, work.begin_s, work.end_s, names, maintenance=True)
        self._state.windows.append(window)
        self._state.surprises += 1
        begin_ms, end_ms = max(now_ms, to_ms(work.begin_s)), max(now_ms, to_ms(work.end_s))
        self._agenda.enter(begin_ms, Order.NODE, self._begin_work, work)
        self._agenda.enter(end_ms, Order.NODE, self._end_work, (work, window))

    def _begin_work(self, now_ms: int, _: int, work: Work) -> None:
        for node in work.nodes:
            if node in self._books.absent:
                continue
            self._roster.maintain(node, now_ms)
            for job in list(self._books.on[node]):
                self._jobs.push_out(job, now_ms, f"maintenance {work.name}")
        self._roster.tell(now_ms, Happening.OUT, work.nodes, f"{Line.DRAINED.value}: {work.name}")

    def _end_work(self, now_ms: int, _: int, what: tuple[Work, Window]) -> None:
        work, window = what
        self._state.windows.remove(window)
        for node in work.nodes:
            if node in self._roster.maintained:
                self._roster.hand_back(node, now_ms)
        self._state.wake()
        self._roster.tell(now_ms, Happening.BACK, work.nodes, f"maintenance {work.name} over")

    def _arrive(self, now_ms: int, _: int, arrival: Arrival) -> None:
        nodes = arrival.delivery.nodes
        self._books.install(now_ms / 1000, nodes)
        for node in nodes:
            self._roster.deliver(node, now_ms)
        self._roster.tell(now_ms, Happening.INSTALLED, nodes, arrival.delivery.name)
