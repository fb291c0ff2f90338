"""What stops attempts before their end: failures strike them, errors spoil their work, others make them leave."""

from __future__ import annotations

from clusterwright.ledger.lines import to_ms
from clusterwright.queueing.decisions import Preemption
from clusterwright.simulate.agenda import Call, Order
from clusterwright.simulate.attempts import leave
from clusterwright.simulate.beginnings import Beginnings
from clusterwright.simulate.happenings import Happening
from clusterwright.simulate.running import Run, Stop
from clusterwright.simulate.world import World


class Interruptions:
    """Stops attempts.

    Args:
        end: what the agenda calls when an attempt is over.

    Attributes:
        preemptions: attempts that had to leave for another job, from when on the ledger counts.
    """

    def __init__(self, world: World, beginnings: Beginnings, end: Call) -> None:
        self._world, self._beginnings, self._end = world, beginnings, end
        self.preemptions = 0

    def strike(self, job: int, at_ms: int, until_ms: int, *, node_lost: bool, why: str) -> None:
        """The work of a job stops; it holds its GPUs until `until_ms`, or its end if that comes before."""
        run = self._world.running[job]
        if run.stopped_ms is not None:
            if node_lost:
                run.stop = Stop.NODE_LOST
            return
        ends_by_s = self._world.state.running[run.request.id].ends_by_s
        if ends_by_s is not None:
            until_ms = min(until_ms, max(at_ms, to_ms(ends_by_s)))
        self._beginnings.stop_loading(run, at_ms / 1000)
        run.stopped_ms, run.spent = at_ms, None
        run.stop = Stop.NODE_LOST if node_lost else Stop.JOB_LOST
        run.due = self._world.agenda.enter(until_ms, Order.ATTEMPT, self._end, run)
        self._world.tell_job(at_ms, Happening.INTERRUPTED, run, why)

    def spoil(self, job: int, at_ms: int) -> None:
        """What a job does from now on is wrong, and nobody knows."""
        run = self._world.running[job]
        if run.wrong_ms is None:
            run.wrong_ms = at_ms

    def preempt(self, preemption: Preemption, now_ms: int) -> None:
        """Jobs have to leave for another one, as the queue says."""
        for victim, by_s in zip(preemption.victims, preemption.leaving_at_s, strict=True):
            self.preemptions += now_ms >= self._world.counted_ms
            self._leave(self._world.running[int(victim)], now_ms, to_ms(by_s), preemption.reason)

    def push_out(self, job: int, at_ms: int, why: str) -> None:
        """A job has to leave its nodes, with its grace."""
        run, state = self._world.running[job], self._world.state
        if run.request.id in state.leaving:
            return
        asked = run.request.grace_s
        grace_s = self._world.scenario.policy.preemption.grace_s if asked is None else asked
        state.leave(run.request.id, at_ms / 1000 + grace_s)
        by_s = state.running[run.request.id].ends_by_s
        self._leave(run, at_ms, at_ms if by_s is None else max(at_ms, to_ms(by_s)), why)

    def _leave(self, run: Run, now_ms: int, by_ms: int, why: str) -> None:
        """A job is told to leave by an instant; it saves its work before if it can."""
        agenda = self._world.agenda
        if run.stopped_ms is not None:  # it hangs: nobody answers before it is killed
            run.due = agenda.enter(by_ms, Order.ATTEMPT, self._end, run)
            return
        run.stop = Stop.LEFT
        if run.wrong_ms is None:
            after_ms, spent = leave(run.attempt, now_ms - run.admitted_ms, by_ms - now_ms)
            run.spent = spent
        else:
            after_ms, run.stopped_ms = now_ms - run.admitted_ms, now_ms
        run.due = agenda.enter(run.admitted_ms + after_ms, Order.ATTEMPT, self._end, run)
        self._world.tell_job(now_ms, Happening.TOLD_TO_LEAVE, run, why)
