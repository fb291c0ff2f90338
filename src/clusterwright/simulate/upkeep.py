"""What happens to nodes: they fail, are noticed, repaired, replaced by spares, maintained, and new ones arrive.

From the instant of a failure nothing new starts on the node, though people know of it only when it is detected; jobs on
it hold their GPUs idle until then. A domain that fails is repaired as one. Where several outages of a node overlap, the
later one counts. A job on a node whose failure ends only a job is struck with the probability of its part of the GPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

from clusterwright.ledger.lines import Entry, Line, to_ms
from clusterwright.queueing.windows import Window
from clusterwright.simulate.agenda import Order
from clusterwright.simulate.expansions import Arrival, draw_arrivals
from clusterwright.simulate.failing import Cause, Effect, Failing, Failure
from clusterwright.simulate.happenings import Event, Happening
from clusterwright.simulate.maintaining import Window as Work
from clusterwright.simulate.maintaining import plan_windows
from clusterwright.simulate.repairs import Course, Crew, Histories, draw_course, return_s
from clusterwright.simulate.scenarios import Strike
from clusterwright.simulate.spares import Spares
from clusterwright.simulate.streams import Streams
from clusterwright.simulate.world import World

_SPARE: Final = Entry(Line.RESERVED, "spare")
_MAINTENANCE: Final = Entry(Line.DRAINED, "maintenance")


class Struck(Protocol):
    """What the nodes do to the jobs on them."""

    def strike(self, job: int, at_ms: int, until_ms: int, *, node_lost: bool, why: str) -> None:
        """The work of a job stops; it holds its GPUs until `until_ms`."""

    def spoil(self, job: int, at_ms: int) -> None:
        """What a job does from now on is wrong, and nobody knows."""

    def push_out(self, job: int, at_ms: int, why: str) -> None:
        """A job has to leave its nodes, with its grace."""


@dataclass(slots=True)
class _Outage:
    """Nodes that failed together.

    Args:
        renewed: those of them that new ones replace.
        awaited: of a drain, the nodes that still have jobs.
    """

    cause: Cause
    nodes: tuple[int, ...]
    course: Course
    renewed: dict[int, float]
    awaited: set[int]


class Upkeep:
    """The nodes of a simulation. Its calls never decide where a job runs.

    Attributes:
        draining: nodes on which work begins once no job uses them any more.
        failures: that struck something.
    """

    def __init__(self, world: World, jobs: Struck, streams: Streams) -> None:
        scenario, state, books = world.scenario, world.state, world.books
        self._world, self._scenario, self._state, self._books = world, scenario, state, books
        self._agenda, self._jobs, self._rotten = world.agenda, jobs, world.rotten
        self._faults = scenario.faults
        self._arrivals = draw_arrivals(scenario.deliveries, streams)
        self._failing = Failing(
            self._faults.causes, scenario.population(), streams, self._faults.lemons, sorted(books.absent)
        )
        names = [*(c.name for c in self._faults.causes), *(s.name for s in self._faults.strikes)]
        self._draws = {name: streams.of("care", name) for name in names}
        self._chance = streams.of("struck")
        self._crew = Crew(self._faults.crew)
        self._eviction = self._faults.eviction
        self._histories = {} if self._eviction is None else {self._eviction: Histories(self._eviction)}
        self._replacements = streams.of("replacements")
        level = scenario.spare_level
        self._spares = Spares(
            [s for s in scenario.spares if s not in books.absent], scenario.domains(level) if level else ()
        )
        self._outage: list[_Outage | None] = [None] * len(scenario.nodes)
        self._reason: list[Entry | None] = [None] * len(scenario.nodes)
        self.draining: set[int] = set()
        self._taken_over: set[int] = set()
        self._maintained: set[int] = set()
        self._due_s = self._due_ms = math.inf
        self.failures = 0

    def begin(self) -> None:
        """Enter everything that is known at instant 0."""
        scenario, state = self._scenario, self._state
        there = [n for n in range(len(scenario.nodes)) if n not in self._books.absent]
        self._books.install(0.0, there)
        for node in sorted(self._books.absent):
            state.set_usable(scenario.nodes[node].name, usable=False)
        for node in there:
            if node in self._spares:
                state.set_usable(scenario.nodes[node].name, usable=False)
                self._books.set_out(0.0, node, _SPARE)
            elif not scenario.nodes[node].usable:
                self._books.set_out(0.0, node, Entry(Line.DRAINED, "as declared"))
        for arrival in self._arrivals:
            self._agenda.enter(math.ceil(arrival.at_s * 1000), Order.NODE, self._arrive, arrival)
        for window in scenario.windows:
            for at_s in (window.start_s, window.end_s):
                self._agenda.enter(max(0, math.ceil(at_s * 1000)), Order.NODE, self._wake, None)
        for strike in self._faults.strikes:
            self._agenda.enter(math.ceil(strike.at_s * 1000), Order.NODE, self._fail_as_given, strike)
        until_s = math.inf if scenario.until_s is None else scenario.until_s
        for maintenance in scenario.maintenance:
            for work in plan_windows(maintenance, until_s):
                known_ms = max(0, to_ms(work.begin_s - scenario.announced_s))
                self._agenda.enter(known_ms, Order.NODE, self._announce, work)

    @property
    def next_ms(self) -> float:
        """When the next failure is due; infinite for never."""
        due_s = self._failing.next_s
        if due_s != self._due_s:
            self._due_s, self._due_ms = due_s, math.inf if math.isinf(due_s) else math.ceil(due_s * 1000)
        return self._due_ms

    def fail_until(self, now_ms: int) -> bool:
        """Let everything fail that is due; whether there was anything."""
        found = False
        while self.next_ms <= now_ms:
            failure = self._failing.pop()
            if failure is not None:
                found = True
                self._fail(failure, now_ms)
        return found

    def _fail_as_given(self, now_ms: int, _: int, strike: Strike) -> None:
        gone = self._books.absent | self._maintained
        nodes = tuple(n for n in strike.nodes if n not in gone and self._reason[n] is None)
        if nodes:
            cause = Cause(strike.name, 0.0, effect=strike.effect)
            self._fail(Failure(now_ms / 1000, cause, nodes[0], nodes), now_ms)

    # -- failures ---------------------------------------------------------------------------------------------

    def _fail(self, failure: Failure, now_ms: int) -> None:
        self.failures += 1
        cause, now_s = failure.cause, now_ms / 1000
        care = self._faults.care_of.get(cause.name, self._faults.care)
        course = draw_course(care, self._draws[cause.name])
        self._tell(now_ms, Happening.FAILED, failure.nodes, f"{cause.name} ({cause.effect.value})")
        noticed_ms = now_ms + to_ms(course.detection_s)
        if cause.effect is Effect.JOB:
            for node in failure.nodes:
                self._strike_one(node, now_ms, noticed_ms, cause.name)
            return
        nodes = tuple(n for n in failure.nodes if n not in self.draining or cause.effect is Effect.NODE)
        outage = _Outage(cause, nodes, course, {}, set())
        self._agenda.enter(noticed_ms, Order.ATTEMPT, self._notice, outage)
        for node in nodes:
            self._supersede(node, now_ms, outage)
            if self._eviction is not None and self._histories[self._eviction].fail(node, now_s):
                outage.renewed[node] = self._eviction.replacement.draw(self._replacements)
            if cause.effect is Effect.NODE:
                self._down(node, now_ms, Entry(Line.UNHEALTHY, cause.name))
                for job in list(self._books.on[node]):
                    self._jobs.strike(job, now_ms, noticed_ms, node_lost=True, why=cause.name)
            elif cause.effect is Effect.SILENT:
                self._rotten.add(node)
                for job in self._books.on[node]:
                    self._jobs.spoil(job, now_ms)

    def _supersede(self, node: int, now_ms: int, outage: _Outage) -> None:
        """An outage takes the place of an earlier one of its node, which then waits for one node less."""
        old, self._outage[node] = self._outage[node], outage
        if old is not None and node in old.awaited:
            old.awaited.discard(node)
            self.draining.discard(node)
            if not old.awaited:
                self._care(now_ms, old)

    def _strike_one(self, node: int, now_ms: int, noticed_ms: int, why: str) -> None:
        """End one job of a node: each with the chance of its GPUs, none with that of the free ones."""
        books = self._books
        mark = float(self._chance.random()) * max(books.gpus[node], 1)
        for job, gpus in list(books.on[node].items()):
            mark -= gpus
            if mark < 0:
                self._jobs.strike(job, now_ms, noticed_ms, node_lost=False, why=why)
                return

    def _notice(self, now_ms: int, _: int, outage: _Outage) -> None:
        """A failure is detected."""
        mine = tuple(n for n in outage.nodes if self._outage[n] is outage)
        if outage.cause.effect is Effect.DRAIN:
            for node in mine:
                self._down(node, now_ms, Entry(Line.DRAINED, outage.cause.name), running=True)
                self.draining.add(node)
                outage.awaited.add(node)
            care = self._faults.care_of.get(outage.cause.name, self._faults.care)
            if not math.isinf(care.drain_at_most_s):
                self._agenda.enter(now_ms + to_ms(care.drain_at_most_s), Order.NODE, self._drain_out, outage)
        elif outage.cause.effect is Effect.SILENT:
            for node in mine:
                self._down(node, now_ms, Entry(Line.UNHEALTHY, outage.cause.name))
                for job in list(self._books.on[node]):
                    self._jobs.strike(job, now_ms, now_ms, node_lost=True, why=outage.cause.name)
        for node in mine:
            self._bring_spare(node, now_ms)
        if outage.cause.effect is Effect.DRAIN:
            self.look_at_drains(now_ms)
        else:
            self._care(now_ms, outage)

    def look_at_drains(self, now_ms: int) -> None:
        """Begin work on drained nodes that no job uses any more."""
        if not self.draining:
            return
        for node in sorted(self.draining):
            outage = self._outage[node]
            if not self._books.on[node] and outage is not None:
                self.draining.discard(node)
                outage.awaited.discard(node)
                self._failing.stop(node, now_ms / 1000)
                if not outage.awaited:
                    self._care(now_ms, outage)

    def _drain_out(self, now_ms: int, _: int, outage: _Outage) -> None:
        """A drain has taken too long: the jobs have to leave."""
        for node in outage.nodes:
            if self._outage[node] is outage and node in self.draining:
                for job in list(self._books.on[node]):
                    self._jobs.push_out(job, now_ms, f"drain of {self._books.names[node]}")

    def _care(self, now_ms: int, outage: _Outage) -> None:
        for node, replacement_s in outage.renewed.items():
            if self._outage[node] is outage:
                self._agenda.enter(now_ms + to_ms(replacement_s), Order.NODE, self._renew, (outage, node))
        self._agenda.enter(now_ms + to_ms(outage.course.reboot_s), Order.NODE, self._repair, (outage, now_ms / 1000))

    def _repair(self, now_ms: int, _: int, what: tuple[_Outage, float]) -> None:
        """The reboot is over; people are asked now if it did not help."""
        outage, out_s = what
        if all(n in outage.renewed or self._outage[n] is not outage for n in outage.nodes):
            return
        back_ms = math.ceil(return_s(outage.course, out_s, self._crew) * 1000)
        self._agenda.enter(max(back_ms, now_ms), Order.NODE, self._return, outage)

    def _return(self, now_ms: int, _: int, outage: _Outage) -> None:
        for node in outage.nodes:
            if self._outage[node] is outage and node not in outage.renewed:
                self._up(node, now_ms, new=False)

    def _renew(self, now_ms: int, _: int, what: tuple[_Outage, int]) -> None:
        outage, node = what
        if self._outage[node] is outage:
            self._up(node, now_ms, new=True)

    # -- one node ---------------------------------------------------------------------------------------------

    def _down(self, node: int, now_ms: int, entry: Entry, *, running: bool = False) -> None:
        """Nothing starts on a node any more; unless it is running, it neither fails nor ages."""
        if not running:
            self._failing.stop(node, now_ms / 1000)
        self._rotten.discard(node)
        self._rest_spare(node)
        self._state.set_usable(self._books.names[node], usable=False)
        self._reason[node] = entry
        if node not in self._maintained:
            self._books.set_out(now_ms / 1000, node, entry)
        self._tell(now_ms, Happening.OUT, (node,), f"{entry.line.value}: {entry.why}")

    def _up(self, node: int, now_ms: int, *, new: bool) -> None:
        """A node is fit again: for the queue, or as a spare if a spare took its place."""
        self._outage[node] = self._reason[node] = None
        self.draining.discard(node)
        if new:
            self._failing.replace(node, now_ms / 1000)
        self._failing.start(node, now_ms / 1000)
        self._tell(now_ms, Happening.BACK, (node,), "new" if new else "")
        if node in self._maintained:
            self._failing.stop(node, now_ms / 1000)
            return
        self._open(node, now_ms)

    def _open(self, node: int, now_ms: int) -> None:
        if node in self._taken_over:
            self._taken_over.discard(node)
            self._spares.give(node)
        if node in self._spares:
            self._books.set_out(now_ms / 1000, node, _SPARE)
            return
        self._state.set_usable(self._books.names[node], usable=True)
        self._books.set_out(now_ms / 1000, node, None)

    def _rest_spare(self, node: int) -> None:
        """A spare that waits cannot come in for now; it is a spare again afterwards, and nothing comes in for it."""
        if node in self._spares:
            self._spares.lose(node)
            self._taken_over.add(node)

    def _bring_spare(self, node: int, now_ms: int) -> None:
        if node in self._taken_over:
            return
        spare = self._spares.take(node)
        if spare is None:
            return
        self._taken_over.add(node)
        self._tell(now_ms, Happening.SPARE_IN, (spare,), f"for {self._books.names[node]}")
        self._open(spare, now_ms)

    # -- planned ----------------------------------------------------------------------------------------------

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
            self._maintained.add(node)
            self._rest_spare(node)
            self._failing.stop(node, now_ms / 1000)
            self._state.set_usable(self._books.names[node], usable=False)
            self._books.set_out(now_ms / 1000, node, _MAINTENANCE)
            for job in list(self._books.on[node]):
                self._jobs.push_out(job, now_ms, f"maintenance {work.name}")
        self._tell(now_ms, Happening.OUT, work.nodes, f"{_MAINTENANCE.line.value}: {work.name}")

    def _end_work(self, now_ms: int, _: int, what: tuple[Work, Window]) -> None:
        work, window = what
        self._state.windows.remove(window)
        for node in work.nodes:
            if node not in self._maintained:
                continue
            self._maintained.discard(node)
            reason = self._reason[node]
            if reason is not None:
                self._books.set_out(now_ms / 1000, node, reason)
                continue
            self._failing.start(node, now_ms / 1000)
            self._open(node, now_ms)
        self._state.wake()
        self._tell(now_ms, Happening.BACK, work.nodes, f"maintenance {work.name} over")

    def _arrive(self, now_ms: int, _: int, arrival: Arrival) -> None:
        nodes = arrival.delivery.nodes
        self._books.install(now_ms / 1000, nodes)
        for node in nodes:
            self._failing.start(node, now_ms / 1000, new=True)
            if node in self._scenario.spares:
                self._spares.give(node)
            self._open(node, now_ms)
        self._tell(now_ms, Happening.INSTALLED, nodes, arrival.delivery.name)

    def _tell(self, now_ms: int, what: Happening, nodes: tuple[int, ...], detail: str) -> None:
        if self._world.observe is not None:
            self._world.observe(Event(now_ms, what, -1, tuple(self._books.names[n] for n in nodes), 0, detail))
