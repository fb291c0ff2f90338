"""What happens to nodes that fail: it is noticed, they are drained, rebooted, repaired, or new ones put in their place.

From the instant of a failure nothing new starts on the node, though people know of it only when it is detected; jobs on
it hold their GPUs idle until then. A domain that fails is repaired as one. Where several outages of a node overlap, the
later one counts. A job on a node whose failure ends only a job is struck with the probability of its part of the GPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from clusterwright.ledger.lines import Entry, Line, to_ms
from clusterwright.simulate.agenda import Order
from clusterwright.simulate.failing import Cause, Effect, Failing, Failure
from clusterwright.simulate.happenings import Happening
from clusterwright.simulate.interruptions import Interruptions
from clusterwright.simulate.planned import Plans
from clusterwright.simulate.repairs import Course, Crew, Histories, draw_course, return_s
from clusterwright.simulate.roster import Roster
from clusterwright.simulate.scenarios import Strike
from clusterwright.simulate.streams import Streams
from clusterwright.simulate.world import World


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
        failing: what fails next, and when.
        draining: nodes on which work begins once no job uses them any more.
        failures: that struck something.
    """

    def __init__(self, world: World, jobs: Interruptions, streams: Streams) -> None:
        scenario, books = world.scenario, world.books
        self._books, self._agenda, self._jobs, self._rotten = books, world.agenda, jobs, world.rotten
        self._faults = scenario.faults
        self.failing = Failing(
            self._faults.causes, scenario.population(), streams, self._faults.lemons, sorted(books.absent)
        )
        self._roster = Roster(world, self.failing)
        self._plans = Plans(world, self._roster, jobs, streams)
        names = [*(c.name for c in self._faults.causes), *(s.name for s in self._faults.strikes)]
        self._draws = {name: streams.of("care", name) for name in names}
        self._chance = streams.of("struck")
        self._crew = Crew(self._faults.crew)
        self._eviction = self._faults.eviction
        self._histories = {} if self._eviction is None else {self._eviction: Histories(self._eviction)}
        self._replacements = streams.of("replacements")
        self._outage: list[_Outage | None] = [None] * len(scenario.nodes)
        self.draining: set[int] = set()
        self.failures = 0

    def begin(self) -> None:
        """Say what is out of use at instant 0, and enter everything that is known by then."""
        self._roster.begin()
        self._plans.begin()
        for strike in self._faults.strikes:
            self._agenda.enter(math.ceil(strike.at_s * 1000), Order.NODE, self._fail_as_given, strike)

    def fail_until(self, now_ms: int) -> bool:
        """Let everything fail that is due; whether there was anything."""
        found = False
        while self.failing.next_ms <= now_ms:
            failure = self.failing.pop()
            if failure is not None:
                found = True
                self._fail(failure, now_ms)
        return found

    def _fail_as_given(self, now_ms: int, _: int, strike: Strike) -> None:
        gone, reason = self._books.absent | self._roster.maintained, self._roster.reason
        nodes = tuple(n for n in strike.nodes if n not in gone and reason[n] is None)
        if nodes:
            cause = Cause(strike.name, 0.0, effect=strike.effect)
            self._fail(Failure(now_ms / 1000, cause, nodes[0], nodes), now_ms)

    # -- failures ---------------------------------------------------------------------------------------------

    def _fail(self, failure: Failure, now_ms: int) -> None:
        self.failures += 1
        cause, now_s = failure.cause, now_ms / 1000
        care = self._faults.care_of.get(cause.name, self._faults.care)
        course = draw_course(care, self._draws[cause.name])
        self._roster.tell(now_ms, Happening.FAILED, failure.nodes, f"{cause.name} ({cause.effect.value})")
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
                self._roster.down(node, now_ms, Entry(Line.UNHEALTHY, cause.name))
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
                self._roster.down(node, now_ms, Entry(Line.DRAINED, outage.cause.name), running=True)
                self.draining.add(node)
                outage.awaited.add(node)
            care = self._faults.care_of.get(outage.cause.name, self._faults.care)
            if not math.isinf(care.drain_at_most_s):
                self._agenda.enter(now_ms + to_ms(care.drain_at_most_s), Order.NODE, self._drain_out, outage)
        elif outage.cause.effect is Effect.SILENT:
            for node in mine:
                self._roster.down(node, now_ms, Entry(Line.UNHEALTHY, outage.cause.name))
                for job in list(self._books.on[node]):
                    self._jobs.strike(job, now_ms, now_ms, node_lost=True, why=outage.cause.name)
        for node in mine:
            self._roster.bring_spare(node, now_ms)
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
                self.failing.stop(node, now_ms / 1000)
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
                self._back(node, now_ms, new=False)

    def _renew(self, now_ms: int, _: int, what: tuple[_Outage, int]) -> None:
        outage, node = what
        if self._outage[node] is outage:
            self._back(node, now_ms, new=True)

    def _back(self, node: int, now_ms: int, *, new: bool) -> None:
        self._outage[node] = None
        self.draining.discard(node)
        self._roster.up(node, now_ms, new=new)
