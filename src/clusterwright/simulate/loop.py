"""The simulation: arrivals, ends and what happens to nodes around the queue's own cycles.

At each instant first attempts end, then nodes change, then jobs arrive, and then the queue runs one cycle; what an end
of the cycle's own makes possible at the same instant (a victim that leaves at once) follows in a further one. Who
starts, where, who makes room and who takes a lost node's place is the answer of `queueing`; here it is only carried
out. Time is whole milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from clusterwright.ledger.lines import to_ms
from clusterwright.ledger.totals import Lines
from clusterwright.model.jobs import JobId
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.policies import Backfill
from clusterwright.queueing.requests import Request
from clusterwright.simulate.beginnings import Beginnings
from clusterwright.simulate.endings import Endings
from clusterwright.simulate.happenings import Event, Happening
from clusterwright.simulate.interruptions import Interruptions
from clusterwright.simulate.jobs import NONE_MS
from clusterwright.simulate.scenarios import Scenario
from clusterwright.simulate.streams import Streams
from clusterwright.simulate.tallies import Fared, Results
from clusterwright.simulate.upkeep import Upkeep
from clusterwright.simulate.world import World

_NEVER: Final = math.inf
_NO_GATES: Final = MappingProxyType[str, str]({})
#: Instants between two looks at `watch`.
_PACE: Final = 1024
_WAITING: Final = int(Fared.WAITING)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a simulation is: simulated time, and jobs that were submitted and that ended for good."""

    now_s: float
    submitted: int
    ended: int
    jobs: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a simulation found out.

    Args:
        lines: of the ledger, which sum to installed GPUs × time exactly.
        ended_s: when it stopped; jobs that had not ended then are counted as such.
        partial: whether it was stopped before its end.
        failures: of nodes and domains that struck something.
        cycles: of the queue.
        preemptions: attempts that had to leave for another job, from `counted_from_s` on.
    """

    scenario: Scenario
    seed: int
    replication: int
    results: Results
    lines: Lines
    ended_s: float
    partial: bool
    failures: int
    cycles: int
    preemptions: int


def simulate(
    scenario: Scenario,
    seed: int = 0,
    replication: int = 0,
    *,
    observe: Callable[[Event], None] | None = None,
    watch: Callable[[Progress], bool] | None = None,
) -> Outcome:
    """Simulate a scenario; the same scenario, seed and replication give the same events byte for byte.

    Args:
        observe: called with every event, in order.
        watch: called about every thousand instants; when it says True the simulation stops, and its outcome is
            partial.
    """
    return Simulation(scenario, seed, replication, observe).run(watch)


class Simulation:
    """One run of a scenario.

    Attributes:
        state: of the queue, which decides everything.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int = 0,
        replication: int = 0,
        observe: Callable[[Event], None] | None = None,
    ) -> None:
        self.scenario, self._seed, self._replication = scenario, seed, replication
        world = self._world = World(scenario, observe)
        self.state, self._running = world.state, world.running
        self._endings = Endings(world)
        self._beginnings = Beginnings(world, self._endings.end)
        self._interruptions = Interruptions(world, self._beginnings, self._endings.end)
        self._upkeep = Upkeep(world, self._interruptions, Streams(seed, replication))
        self._endings.serve(self._beginnings, self._upkeep)
        self._agenda, self._failing, self._books = world.agenda, self._upkeep.failing, world.books
        until_s = scenario.until_s
        self._until_ms = _NEVER if until_s is None else to_ms(until_s)
        self._endless = until_s is None
        jobs = scenario.jobs
        self._kinds, self._kind, self._limit = jobs.kinds, jobs.kind.data, jobs.limit_ms.data
        self._submit, self._count = jobs.submit_ms.data, len(jobs)
        self._loads = self._beginnings.loads
        self._timed = (
            scenario.policy.backfill is Backfill.EASY
            or scenario.policy.preemption.minimum_runtime_s > 0
            or bool(scenario.windows or scenario.maintenance)
            or any(k.backoff_ms for k in jobs.kinds)
            or bool(scenario.budgets)
        )
        self._next = self._cycles = self._now_ms = 0
        self._wake_ms: float = _NEVER
        self._submit_ms: float = self._submit[0] if self._count else _NEVER

    # -- the loop ---------------------------------------------------------------------------------------------

    def run(self, watch: Callable[[Progress], bool] | None = None) -> Outcome:
        """Run to the end, or until `watch` says so."""
        self._upkeep.begin()
        self._books.count(0)
        stopped, instants, until_ms = False, 0, self._until_ms
        while (now_ms := self._next_ms()) < until_ms:
            self._now_ms = int(now_ms)
            self._step(self._now_ms)
            instants += 1
            if watch is not None and not instants % _PACE and watch(self._progress()):
                stopped = True
                break
        return self._close(stopped)

    def _next_ms(self) -> float:
        """The next instant at which something happens; infinite when nothing will that matters to a job."""
        entries = self._agenda.entries
        due = self._submit_ms
        if entries and entries[0][0] < due:
            due = entries[0][0]
        if self._wake_ms < due:
            due = self._wake_ms
        if self._loads:
            due = min(due, self._beginnings.loaded_ms(self._now_ms))
        if self._endless and not self._running and self._next == self._count:
            return due if self.state.waiting else _NEVER  # repairs may still let a job start, failures may not
        fails_ms = self._failing.next_ms
        return due if due <= fails_ms else max(self._now_ms, fails_ms)

    def _step(self, now_ms: int) -> None:
        agenda, state = self._agenda, self.state
        if agenda.entries and agenda.entries[0][0] <= now_ms:
            agenda.run_until(now_ms)
        while (self._loads and self._beginnings.load_until(now_ms)) or (
            self._failing.next_ms <= now_ms and self._upkeep.fail_until(now_ms)
        ):
            agenda.run_until(now_ms)
        if self._submit_ms <= now_ms:
            self._arrive_until(now_ms)
        if self._wake_ms <= now_ms:
            state.wake()
        if state.waiting:  # without anybody who waits there is nothing to decide
            self._decide(now_ms)
        self._books.count(now_ms)
        if self._timed:
            wake_s = state.next_wake_s(now_ms / 1000)
            self._wake_ms = _NEVER if wake_s is None else max(now_ms + 1, math.ceil(wake_s * 1000))

    def _decide(self, now_ms: int) -> None:
        """Ask the queue, and carry out what it says."""
        self._cycles += 1
        decided, begin = run_cycle(self.state, now_ms / 1000), self._beginnings.begin
        for start in decided.starts:
            run = begin(start.request, start.placement, start.borrowed, now_ms)
            if self._world.observe is not None:
                self._world.tell_start(now_ms, run, start.reason)
        for preemption in decided.preemptions:
            self._interruptions.preempt(preemption, now_ms)

    def _arrive_until(self, now_ms: int) -> None:
        """Submit every job whose time has come."""
        submit, number, count, observe = self._submit, self._next, self._count, self._world.observe
        tallies, state, now_s = self._world.tallies, self.state, now_ms / 1000
        while number < count and submit[number] <= now_ms:
            kind, limit_ms = self._kinds[self._kind[number]], self._limit[number]
            request = Request(
                JobId(str(number)), kind.demand, now_s, kind.queue, kind.priority,
                None if limit_ms == NONE_MS else limit_ms / 1000,
                None if kind.grace_ms is None else kind.grace_ms / 1000,
                kind.user, kind.preemptible, kind.reservation, "", _NO_GATES,
            )  # fmt: skip
            tallies.queued_ms[number] = now_ms
            tallies.fared[number] = _WAITING
            state.submit(request)
            if observe is not None:
                observe(Event(now_ms, Happening.SUBMITTED, number, (), kind.demand.most_gpus, kind.queue))
            number += 1
        self._next, self._submit_ms = number, submit[number] if number < count else _NEVER

    def _progress(self) -> Progress:
        return Progress(self._now_ms / 1000, self._next, self._endings.ended, self._count)

    def _close(self, stopped: bool) -> Outcome:
        at_ms = self._now_ms if stopped or self._until_ms == _NEVER else int(self._until_ms)
        self._endings.cut_off(at_ms)
        lines = self._world.ledger.close(at_ms / 1000, partial=stopped)
        return Outcome(
            scenario=self.scenario,
            seed=self._seed,
            replication=self._replication,
            results=self._world.tallies.close(at_ms),
            lines=lines,
            ended_s=at_ms / 1000,
            partial=stopped,
            failures=self._upkeep.failures,
            cycles=self._cycles,
            preemptions=self._interruptions.preemptions,
        )
