"""Attempts end: they give their GPUs back, are charged, and their job is over, goes on elsewhere, or waits again."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from clusterwright.ledger.attempts import Ending, charge_finished
from clusterwright.model.jobs import Cause
from clusterwright.queueing.clusters import NoFit
from clusterwright.queueing.replacing import shrink
from clusterwright.queueing.requests import Placement
from clusterwright.simulate.attempts import Spent
from clusterwright.simulate.beginnings import Beginnings
from clusterwright.simulate.happenings import Happening
from clusterwright.simulate.jobs import Fate
from clusterwright.simulate.running import Run, Stop, ending_of
from clusterwright.simulate.scenarios import NodeLoss
from clusterwright.simulate.speeds import work_ms
from clusterwright.simulate.tallies import Fared
from clusterwright.simulate.upkeep import Upkeep
from clusterwright.simulate.world import World

_DONE: Final = Stop.DONE
_FARED: Final = {
    Fate.SUCCEED: Fared.SUCCEEDED,
    Fate.FAIL: Fared.FAILED,
    Fate.CANCEL: Fared.CANCELLED,
    Fate.TIME_OUT: Fared.TIMED_OUT,
}


class Endings:
    """Ends attempts.

    Attributes:
        ended: jobs that are over.
    """

    def __init__(self, world: World) -> None:
        self._world, self._state, self._books, self._ledger = world, world.state, world.books, world.ledger
        self._tallies, self._running, self._counted_ms = world.tallies, world.running, world.counted_ms
        self._limit = world.scenario.jobs.limit_ms.data
        self._retried: dict[int, int] = {}
        self.ended = 0

    def serve(self, beginnings: Beginnings, upkeep: Upkeep) -> None:
        """Who begins attempts that go on elsewhere, and who waits for nodes to become free."""
        self._beginnings, self._upkeep = beginnings, upkeep

    def end(self, now_ms: int, entry: int, run: Run) -> None:
        """An attempt gives its GPUs back, unless another end was entered for it since."""
        if run.due != entry:
            return
        del self._running[run.number]
        if run.stop is _DONE and not run.fate and run.wrong_ms is None:
            self._finish(run, now_ms)
        else:
            self._break_off(run, now_ms)

    def cut_off(self, at_ms: int) -> None:
        """The simulation ends: charge what still runs for what it did so far."""
        for number in list(self._running):
            run = self._running.pop(number)
            spent = run.account_for(at_ms)
            self._note(run, spent)
            self._tallies.lost[number] -= run.gpus * spent.lost_ms
            self._tallies.unsaved[number] = run.gpus * spent.lost_ms
            self._books.give(at_ms, number, run.placement.flavor, run.gpus, run.shares)
            self._ledger.divide(run.sums, run.record(spent, Ending.RUNNING, Cause.UNKNOWN))
        self._books.count(at_ms)

    def _finish(self, run: Run, now_ms: int) -> None:
        """An attempt has done all of its work, and its job is over: what nearly all of them come to."""
        number, gpus, tallies, work = run.number, run.gpus, self._tallies, run.work_ms
        took_ms = now_ms - run.admitted_ms
        tallies.held[number] += gpus * took_ms
        tallies.productive[number] += gpus * work
        tallies.left_ms[number] = 0
        if run.admitted_ms >= self._counted_ms:
            charge_finished(run.sums, gpus, run.starting_ms, work, took_ms - run.starting_ms - work)
        else:
            spent = Spent(run.starting_ms, work, took_ms - run.starting_ms - work, finished=True)
            self._ledger.divide(run.sums, run.record(spent, Ending.COMPLETED, Cause.UNKNOWN))
        self._release(run, now_ms)
        if self._world.observe is not None:
            self._world.tell_job(now_ms, Happening.ENDED, run, Ending.COMPLETED.value)
        if self._upkeep.draining:
            self._upkeep.look_at_drains(now_ms)
        self._over(number, Fared.SUCCEEDED, now_ms)

    def _break_off(self, run: Run, now_ms: int) -> None:
        """An attempt ends in any other way."""
        self._beginnings.stop_loading(run, now_ms / 1000)
        spent = run.account_for(now_ms)
        ending, cause = ending_of(run, spent)
        self._note(run, spent)
        replacement = self._replacement(run) if run.stop is Stop.NODE_LOST else None
        self._release(run, now_ms)
        self._ledger.divide(run.sums, run.record(spent, ending, cause))
        self._world.tell_job(now_ms, Happening.ENDED, run, _said(ending, cause))
        self._upkeep.look_at_drains(now_ms)
        if replacement is not None:
            self._go_on(run, replacement, now_ms)
        else:
            self._settle(run, spent.finished, cause, now_ms)

    def _release(self, run: Run, now_ms: int) -> None:
        now_s, limit_ms = now_ms / 1000, self._limit[run.number]
        if now_ms == run.admitted_ms + limit_ms:  # to the last bit when the queue expects it
            now_s = max(now_s, run.admitted_ms / 1000 + limit_ms / 1000)
        self._state.release(run.request.id, now_s)
        self._books.give(now_ms, run.number, run.placement.flavor, run.gpus, run.shares)

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
            if run.placement.gpus != run.terms.full_gpus:
                kept = kept * run.placement.gpus // run.terms.full_gpus
            if pace := run.terms.paces.get(run.placement.flavor):
                kept = work_ms(kept, pace)
            tallies.left_ms[number] = max(1, tallies.left_ms[number] - kept)

    # -- what becomes of the job ------------------------------------------------------------------------------

    def _settle(self, run: Run, finished: bool, cause: Cause, now_ms: int) -> None:
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

    def _over(self, number: int, fared: int, now_ms: int) -> None:
        self._tallies.fared[number] = fared
        self._tallies.end_ms[number] = now_ms
        self.ended += 1
        if self._retried:
            self._retried.pop(number, None)

    def _come_back(self, run: Run, backoff_ms: int, now_ms: int) -> None:
        """A job waits again, as old as its eviction."""
        request, demand = run.request, run.request.demand
        if run.stop is Stop.NODE_LOST and self._world.scenario.avoid_lost:
            floor = self._state.cluster.floors[run.placement.flavor]
            lost = {floor.names[n] for n in self._lost(run)}
            demand = replace(demand, avoid=demand.avoid | lost)
        not_before_s = (now_ms + backoff_ms) / 1000 if backoff_ms else 0.0
        self._tallies.queued_ms[run.number] = now_ms
        self._tallies.fared[run.number] = Fared.WAITING
        self._state.submit(replace(request, demand=demand, queued_at_s=now_ms / 1000, not_before_s=not_before_s))

    # -- nodes were lost --------------------------------------------------------------------------------------

    def _lost(self, run: Run) -> set[int]:
        """Nodes of an attempt that are out of use, by index within the flavor."""
        places, out = self._books.places[run.placement.flavor], self._books.out
        return {n for _, n, _ in run.placement.runs if out[places[n]] is not None}

    def _replacement(self, run: Run) -> Placement | None:
        """Where a gang goes on after it lost nodes, as the queue says; None when it has to wait anew."""
        how, lost = self._world.scenario.node_loss, self._lost(run)
        found: Placement | NoFit = NoFit.IMPOSSIBLE
        if how is NodeLoss.REPLACE:
            found = self._state.cluster.replace(run.placement, run.request.demand, lost)
        elif how is NodeLoss.SHRINK:
            found = shrink(run.placement, run.request.demand, lost)
        return found if isinstance(found, Placement) else None

    def _go_on(self, run: Run, placement: Placement, now_ms: int) -> None:
        self._state.start(run.request, placement, now_ms / 1000, borrowed=run.borrowed)
        self._tallies.queued_ms[run.number] = now_ms
        new = self._beginnings.begin(run.request, placement, run.borrowed, now_ms)
        self._world.tell_start(now_ms, new, f"{self._world.scenario.node_loss.value} lost nodes")


def _said(ending: Ending, cause: Cause) -> str:
    return f"{ending.value} ({cause.value})" if ending is Ending.FAILED else ending.value
