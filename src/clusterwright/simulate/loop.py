"""The simulation: arrivals, ends and what happens to nodes around the queue's own cycles.

At each instant first attempts end, then nodes change, then jobs arrive, and then the queue runs one cycle; what an end
of the cycle's own makes possible at the same instant (a victim that leaves at once) follows in a further one. Who
starts, where, who makes room and who takes a lost node's place is the answer of `queueing`; here it is only carried
out. Time is whole milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from clusterwright.ledger.accounting import Ledger
from clusterwright.ledger.attempts import Ending
from clusterwright.ledger.lines import Account, to_ms
from clusterwright.ledger.totals import Lines
from clusterwright.model.jobs import Cause, JobId
from clusterwright.queueing.budgets import Budgets
from clusterwright.queueing.clusters import NoFit
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.decisions import Preemption, Start
from clusterwright.queueing.policies import Backfill
from clusterwright.queueing.replacing import shrink
from clusterwright.queueing.requests import Placement, Request
from clusterwright.queueing.state import State
from clusterwright.simulate.agenda import Agenda, Order
from clusterwright.simulate.attempts import Attempt, Spent, leave
from clusterwright.simulate.books import Books
from clusterwright.simulate.happenings import Event, Happening
from clusterwright.simulate.jobs import NONE_MS, Fate
from clusterwright.simulate.loading import Load, SharedStore
from clusterwright.simulate.running import LOADING_MS, Run, Stop, ending_of
from clusterwright.simulate.scenarios import NodeLoss, Scenario
from clusterwright.simulate.speeds import paces_of, wall_ms, work_ms
from clusterwright.simulate.streams import Streams
from clusterwright.simulate.tallies import Fared, Results, Tallies
from clusterwright.simulate.upkeep import Upkeep

_NEVER: Final = math.inf
_NO_GATES: Final = MappingProxyType[str, str]({})
#: Instants between two looks at `watch`.
_PACE: Final = 1024
_FARED: Final = {
    Fate.SUCCEED: Fared.SUCCEEDED,
    Fate.FAIL: Fared.FAILED,
    Fate.CANCEL: Fared.CANCELLED,
    Fate.TIME_OUT: Fared.TIMED_OUT,
}


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
        self.scenario, self._seed, self._replication, self._observe = scenario, seed, replication, observe
        self.state = State(
            scenario.nodes,
            levels=scenario.levels,
            tree=scenario.tree,
            policy=scenario.policy,
            windows=scenario.windows,
            budgets=Budgets(scenario.tree, scenario.budgets) if scenario.budgets else None,
        )
        until_s = scenario.until_s
        self._until_ms = _NEVER if until_s is None else to_ms(until_s)
        self._agenda = Agenda()
        self._counted_ms = to_ms(scenario.counted_from_s)
        self._ledger = Ledger(scenario.counted_from_s)
        self._books = Books(scenario, self.state, self._ledger)
        self._upkeep = Upkeep(scenario, self.state, self._books, self._agenda, self, Streams(seed, replication))
        rate = scenario.store_bytes_per_s
        self._store = None if rate is None else SharedStore(rate)
        self._store_s = 0.0
        jobs = scenario.jobs
        self._tallies = Tallies(jobs.work_ms)
        self._kinds, self._kind, self._fate = jobs.kinds, jobs.kind.data, jobs.fate.data
        self._submit, self._limit, self._work = jobs.submit_ms.data, jobs.limit_ms.data, jobs.work_ms.data
        self._running: dict[int, Run] = {}
        self._accounts: dict[tuple[int, str], Account] = {}
        self._saves = scenario.policy.preemption.active
        self._fails = bool(scenario.faults.causes)
        self._timed = (
            scenario.policy.backfill is Backfill.EASY
            or scenario.policy.preemption.minimum_runtime_s > 0
            or bool(scenario.windows or scenario.maintenance)
            or any(k.backoff_ms for k in jobs.kinds)
            or bool(scenario.budgets)
        )
        self._paces = paces_of(jobs.kinds)
        self._next = self._ended = self._cycles = self._preemptions = 0
        self._retried: dict[int, int] = {}
        self._now_ms = 0
        self._wake_ms: float = _NEVER

    # -- the loop ---------------------------------------------------------------------------------------------

    def run(self, watch: Callable[[Progress], bool] | None = None) -> Outcome:
        """Run to the end, or until `watch` says so."""
        self._upkeep.begin()
        self._books.count_free(0.0)
        stopped, instants = False, 0
        while (now_ms := self._next_ms()) < self._until_ms:
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
        due: float = entries[0][0] if entries else _NEVER
        if self._next < len(self._submit) and self._submit[self._next] < due:
            due = self._submit[self._next]
        if self._wake_ms < due:
            due = self._wake_ms
        if self._store is not None:
            due = min(due, self._loaded_ms())
        if self._until_ms == _NEVER and not self._running and self._next == len(self._submit):
            return due if self.state.waiting else _NEVER  # repairs may still let a job start, failures may not
        return min(due, max(self._now_ms, self._upkeep.next_ms)) if self._fails else due

    def _step(self, now_ms: int) -> None:
        agenda, upkeep = self._agenda, self._upkeep
        agenda.run_until(now_ms)
        while (self._store is not None and self._load_until(now_ms)) or (self._fails and upkeep.fail_until(now_ms)):
            agenda.run_until(now_ms)
        submit, number, count = self._submit, self._next, len(self._submit)
        while number < count and submit[number] <= now_ms:
            self._arrive(number, now_ms)
            number += 1
        self._next = number
        now_s = now_ms / 1000
        if self._wake_ms <= now_ms:
            self.state.wake()
        self._cycles += 1
        decided = run_cycle(self.state, now_s)
        for start in decided.starts:
            self._start(start, now_ms)
        for preemption in decided.preemptions:
            self._preempt(preemption, now_ms)
        self._books.count_free(now_s)
        if self._timed:
            wake_s = self.state.next_wake_s(now_s)
            self._wake_ms = _NEVER if wake_s is None else max(now_ms + 1, math.ceil(wake_s * 1000))

    def _progress(self) -> Progress:
        return Progress(self._now_ms / 1000, self._next, self._ended, len(self._submit))

    def _close(self, stopped: bool) -> Outcome:
        at_ms = self._now_ms if stopped or self._until_ms == _NEVER else int(self._until_ms)
        for number in list(self._running):
            run = self._running.pop(number)
            spent = run.account_for(at_ms)
            self._note(run, spent)
            self._tallies.lost[number] -= run.gpus * spent.lost_ms
            self._tallies.unsaved[number] = run.gpus * spent.lost_ms
            self._release_books(run, at_ms / 1000)
            self._ledger.charge(run.account, run.record(spent, Ending.RUNNING, Cause.UNKNOWN))
        lines = self._ledger.close(at_ms / 1000, partial=stopped)
        return Outcome(
            scenario=self.scenario,
            seed=self._seed,
            replication=self._replication,
            results=self._tallies.close(at_ms),
            lines=lines,
            ended_s=at_ms / 1000,
            partial=stopped,
            failures=self._upkeep.failures,
            cycles=self._cycles,
            preemptions=self._preemptions,
        )

    # -- jobs come and start ----------------------------------------------------------------------------------

    def _arrive(self, number: int, now_ms: int) -> None:
        kind = self._kinds[self._kind[number]]
        limit_ms = self._limit[number]
        now_s = now_ms / 1000
        request = Request(
            JobId(str(number)), kind.demand, now_s, kind.queue, kind.priority,
            None if limit_ms == NONE_MS else limit_ms / 1000,
            None if kind.grace_ms is None else kind.grace_ms / 1000,
            kind.user, kind.preemptible, kind.reservation, "", _NO_GATES,
        )  # fmt: skip
        self._tallies.queued_ms[number] = now_ms
        self._tallies.fared[number] = Fared.WAITING
        self.state.submit(request)
        if self._observe is not None:
            self.tell(Event(now_ms, Happening.SUBMITTED, number, (), kind.demand.most_gpus, kind.queue))

    def _start(self, start: Start, now_ms: int) -> None:
        run = self._begin(start.request, start.placement, start.borrowed, now_ms)
        if self._observe is not None:
            self._tell_start(run, now_ms, start.reason)

    def _begin(self, request: Request, placement: Placement, borrowed: bool, now_ms: int) -> Run:
        """An attempt of a job begins on a placement that the queue holds for it."""
        number, tallies = int(request.id), self._tallies
        place = self._kind[number]
        kind, fate, first = self._kinds[place], self._fate[number], not tallies.attempts[number]
        tallies.attempts[number] += 1
        tallies.waited_ms[number] += now_ms - tallies.queued_ms[number]
        tallies.fared[number] = Fared.RUNNING
        if first:
            tallies.start_ms[number] = now_ms
        full, left = kind.demand.most_gpus, tallies.left_ms[number]
        if kind.speeds and (pace := self._paces.get((place, placement.flavor))):
            left = wall_ms(left, pace)
        if placement.gpus != full:
            left = -(-left * full // placement.gpus)
        starting = kind.starting_ms if first else kind.restart_ms
        attempt = Attempt(left + (fate != Fate.SUCCEED), kind.checkpoints, starting)
        account = self._accounts.get((place, placement.flavor))
        if account is None:
            account = Account(placement.flavor, kind.queue, kind.team, kind.size)
            self._accounts[place, placement.flavor] = account
        now_s, books = now_ms / 1000, self._books
        if books.quiet and placement.domain is None:
            shares: dict[int, int] = {}
            gpus = placement.gpus
            self._ledger.admit(now_s, placement.flavor, gpus)
        else:
            shares = books.shares(placement, request.demand)
            gpus = sum(shares.values())
            books.take(now_s, number, placement.flavor, shares)
        run = Run(
            number, kind, fate, request, placement, borrowed, account, now_ms, gpus, full, attempt, shares,
            left != self._work[number] and tallies.left_ms[number] < self._work[number],
        )  # fmt: skip
        self._running[number] = run
        if self._upkeep.rotten and not self._upkeep.rotten.isdisjoint(shares):
            run.wrong_ms = now_ms
        if kind.bytes_each and self._store is not None:
            self._load(run, now_ms)
        self._expect(run)
        return run

    def _expect(self, run: Run) -> None:
        """Enter when an attempt ends if nothing happens to it, and its checkpoints where the queue asks for them."""
        ends_ms, limit_ms = run.natural_end_ms, self._limit[run.number]
        if limit_ms != NONE_MS and ends_ms > run.admitted_ms + limit_ms:
            ends_ms, run.stop = run.admitted_ms + limit_ms, Stop.LIMIT
        elif run.attempt.starting_ms == LOADING_MS:
            return
        run.due = self._agenda.enter(ends_ms, Order.ATTEMPT, self._end, run)
        if self._saves and run.attempt.checkpoints.every_ms and run.attempt.starting_ms != LOADING_MS:
            self._expect_save(run, run.admitted_ms + run.attempt.starting_ms)

    def _expect_save(self, run: Run, since_ms: int) -> None:
        checkpoints = run.attempt.checkpoints
        durable_ms = since_ms + (checkpoints.every_ms or 0) + checkpoints.stall_ms + checkpoints.write_ms
        if durable_ms < run.natural_end_ms:
            self._agenda.enter(durable_ms, Order.ATTEMPT, self._save, run)

    def _save(self, now_ms: int, _: int, run: Run) -> None:
        """A checkpoint is durable; the queue prefers victims that lose little."""
        if self._running.get(run.number) is run and run.stopped_ms is None:
            since_ms = now_ms - run.attempt.checkpoints.write_ms
            self.state.saved(run.request.id, since_ms / 1000)
            self._expect_save(run, since_ms)

    # -- loading ----------------------------------------------------------------------------------------------

    def _load(self, run: Run, now_ms: int) -> None:
        assert self._store is not None
        nodes = len({node for _, node, _ in run.placement.runs})
        load = Load(nodes, run.kind.bytes_each)
        self._store.begin(run.number, max(now_ms / 1000, self._store_s), load, run.kind.reader_bytes_per_s)
        run.attempt = replace(run.attempt, starting_ms=LOADING_MS)

    def _loaded_ms(self) -> float:
        assert self._store is not None
        due_s = self._store.next_s
        return _NEVER if math.isinf(due_s) else max(self._now_ms, math.ceil(due_s * 1000))

    def _load_until(self, now_ms: int) -> bool:
        """Let every start go on that has read all; whether there was one."""
        assert self._store is not None
        found = False
        while self._loaded_ms() <= now_ms:
            self._store_s = self._store.next_s
            number = self._store.pop()
            assert isinstance(number, int)
            self._loaded(self._running[number], now_ms)
            found = True
        return found

    def _loaded(self, run: Run, now_ms: int) -> None:
        first = self._tallies.attempts[run.number] == 1
        starting = now_ms - run.admitted_ms + (run.kind.starting_ms if first else run.kind.restart_ms)
        run.attempt = replace(run.attempt, starting_ms=starting)
        self._expect(run)
        self._tell_job(now_ms, Happening.LOADED, run, "")

    def _stop_loading(self, run: Run, now_s: float) -> None:
        if self._store is not None and run.attempt.starting_ms == LOADING_MS:
            self._store.cancel(run.number, max(now_s, self._store_s))

    # -- attempts end -----------------------------------------------------------------------------------------

    def _end(self, now_ms: int, entry: int, run: Run) -> None:
        """An attempt gives its GPUs back."""
        if run.due != entry:
            return
        number, now_s = run.number, now_ms / 1000
        del self._running[number]
        self._stop_loading(run, now_s)
        spent = run.account_at_end(now_ms)
        ending, cause = ending_of(run, spent)
        self._note(run, spent)
        record = run.record(spent, ending, cause)
        replacement = self._replacement(run) if run.stop is Stop.NODE_LOST else None
        limit_ms = self._limit[number]
        if now_ms == run.admitted_ms + limit_ms:  # to the last bit when the queue expects it
            now_s = max(now_s, run.admitted_ms / 1000 + limit_ms / 1000)
        self.state.release(run.request.id, now_s)
        self._release_books(run, now_s)
        self._ledger.charge(run.account, record)
        if self._observe is not None:
            self._tell_job(now_ms, Happening.ENDED, run, _said(ending, cause))
        self._upkeep.look_at_drains(now_ms)
        if replacement is not None:
            self._go_on(run, replacement, now_ms)
        else:
            self._settle(run, spent.finished, cause, now_ms)

    def _note(self, run: Run, spent: Spent) -> None:
        """Add an attempt to what is known of its job."""
        tallies, number = self._tallies, run.number
        kept = spent.productive_ms
        tallies.held[number] += run.gpus * spent.total_ms
        tallies.productive[number] += run.gpus * kept
        tallies.lost[number] += run.gpus * spent.lost_ms
        if spent.finished:
            tallies.left_ms[number] = 0
        elif kept:
            if run.placement.gpus != run.full_gpus:
                kept = kept * run.placement.gpus // run.full_gpus
            if run.kind.speeds and (pace := self._paces.get((self._kind[number], run.placement.flavor))):
                kept = work_ms(kept, pace)
            tallies.left_ms[number] = max(1, tallies.left_ms[number] - kept)

    def _release_books(self, run: Run, now_s: float) -> None:
        if run.shares:
            self._books.give(now_s, run.number, run.placement.flavor, run.shares)

    def _settle(self, run: Run, finished: bool, cause: Cause, now_ms: int) -> None:
        """What becomes of a job whose attempt ended."""
        number = run.number
        if run.stop is Stop.LIMIT:
            self._over(number, Fared.TIMED_OUT, now_ms)
        elif run.stop in (Stop.NODE_LOST, Stop.LEFT) or cause is Cause.HARDWARE:
            self._come_back(run, 0, now_ms)
        elif run.stop is Stop.JOB_LOST or (run.fate == Fate.FAIL and not finished):
            retried, most = self._retried.get(number, 0), run.kind.retries
            if most is not None and retried >= most:
                self._over(number, Fared.FAILED, now_ms)
            else:
                self._retried[number] = retried + 1
                self._come_back(run, run.kind.backoff_ms, now_ms)
        else:
            self._over(number, _FARED[Fate(run.fate)], now_ms)

    def _over(self, number: int, fared: Fared, now_ms: int) -> None:
        self._tallies.fared[number] = fared
        self._tallies.end_ms[number] = now_ms
        self._retried.pop(number, None)
        self._ended += 1

    def _come_back(self, run: Run, backoff_ms: int, now_ms: int) -> None:
        """A job waits again, as old as its eviction."""
        request, demand = run.request, run.request.demand
        if run.stop is Stop.NODE_LOST and self.scenario.avoid_lost:
            floor = self.state.cluster.floors[run.placement.flavor]
            lost = {floor.names[n] for n in self._lost(run)}
            demand = replace(demand, avoid=demand.avoid | lost)
        not_before_s = (now_ms + backoff_ms) / 1000 if backoff_ms else 0.0
        self._tallies.queued_ms[run.number] = now_ms
        self._tallies.fared[run.number] = Fared.WAITING
        self.state.submit(replace(request, demand=demand, queued_at_s=now_ms / 1000, not_before_s=not_before_s))

    # -- nodes are lost ---------------------------------------------------------------------------------------

    def _lost(self, run: Run) -> set[int]:
        """Nodes of an attempt that are out of use, by index within the flavor."""
        places, out = self._books.places[run.placement.flavor], self._books.out
        return {n for _, n, _ in run.placement.runs if out[places[n]] is not None}

    def _replacement(self, run: Run) -> Placement | None:
        """Where a gang goes on after it lost nodes, as the queue says; None when it has to wait anew."""
        how, lost = self.scenario.node_loss, self._lost(run)
        found: Placement | NoFit = NoFit.IMPOSSIBLE
        if how is NodeLoss.REPLACE:
            found = self.state.cluster.replace(run.placement, run.request.demand, lost)
        elif how is NodeLoss.SHRINK:
            found = shrink(run.placement, run.request.demand, lost)
        return found if isinstance(found, Placement) else None

    def _go_on(self, run: Run, placement: Placement, now_ms: int) -> None:
        self.state.start(run.request, placement, now_ms / 1000, borrowed=run.borrowed)
        self._tallies.queued_ms[run.number] = now_ms
        new = self._begin(run.request, placement, run.borrowed, now_ms)
        if self._observe is not None:
            self._tell_start(new, now_ms, f"{self.scenario.node_loss.value} lost nodes")

    def strike(self, job: int, at_ms: int, until_ms: int, *, node_lost: bool, why: str) -> None:
        """The work of a job stops; it holds its GPUs until `until_ms`, or its end if that comes before."""
        run = self._running[job]
        if run.stopped_ms is not None:
            if node_lost:
                run.stop = Stop.NODE_LOST
            return
        ends_by_s = self.state.running[run.request.id].ends_by_s
        if ends_by_s is not None:
            until_ms = min(until_ms, max(at_ms, to_ms(ends_by_s)))
        self._stop_loading(run, at_ms / 1000)
        run.stopped_ms, run.spent = at_ms, None
        run.stop = Stop.NODE_LOST if node_lost else Stop.JOB_LOST
        run.due = self._agenda.enter(until_ms, Order.ATTEMPT, self._end, run)
        self._tell_job(at_ms, Happening.INTERRUPTED, run, why)

    def spoil(self, job: int, at_ms: int) -> None:
        """What a job does from now on is wrong, and nobody knows."""
        run = self._running[job]
        if run.wrong_ms is None:
            run.wrong_ms = at_ms

    # -- jobs have to leave -----------------------------------------------------------------------------------

    def _preempt(self, preemption: Preemption, now_ms: int) -> None:
        for victim, by_s in zip(preemption.victims, preemption.leaving_at_s, strict=True):
            self._preemptions += now_ms >= self._counted_ms
            self._leave(self._running[int(victim)], now_ms, to_ms(by_s), preemption.reason)

    def push_out(self, job: int, at_ms: int, why: str) -> None:
        """A job has to leave its nodes, with its grace."""
        run = self._running[job]
        if run.request.id in self.state.leaving:
            return
        asked = run.request.grace_s
        grace_s = self.scenario.policy.preemption.grace_s if asked is None else asked
        self.state.leave(run.request.id, at_ms / 1000 + grace_s)
        by_s = self.state.running[run.request.id].ends_by_s
        self._leave(run, at_ms, at_ms if by_s is None else max(at_ms, to_ms(by_s)), why)

    def _leave(self, run: Run, now_ms: int, by_ms: int, why: str) -> None:
        """A job is told to leave by an instant; it saves its work before if it can."""
        if run.stopped_ms is not None:  # it hangs: nobody answers before it is killed
            run.due = self._agenda.enter(by_ms, Order.ATTEMPT, self._end, run)
            return
        run.stop = Stop.LEFT
        if run.wrong_ms is None:
            after_ms, spent = leave(run.attempt, now_ms - run.admitted_ms, by_ms - now_ms)
            run.spent = spent
        else:
            after_ms, run.stopped_ms = now_ms - run.admitted_ms, now_ms
        run.due = self._agenda.enter(run.admitted_ms + after_ms, Order.ATTEMPT, self._end, run)
        self._tell_job(now_ms, Happening.TOLD_TO_LEAVE, run, why)

    # -- the log ----------------------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Write into the log."""
        if self._observe is not None:
            self._observe(event)

    def _tell_job(self, now_ms: int, what: Happening, run: Run, detail: str) -> None:
        if self._observe is not None:
            self._observe(Event(now_ms, what, run.number, (), run.gpus, detail))

    def _tell_start(self, run: Run, now_ms: int, detail: str) -> None:
        names = self.state.cluster.floors[run.placement.flavor].names
        nodes = tuple(dict.fromkeys(names[n] for _, n, _ in run.placement.runs))
        self.tell(Event(now_ms, Happening.STARTED, run.number, nodes, run.gpus, detail))


def _said(ending: Ending, cause: Cause) -> str:
    return f"{ending.value} ({cause.value})" if ending is Ending.FAILED else ending.value
