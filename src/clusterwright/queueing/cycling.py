"""One scheduling cycle: which jobs start now, and whom they make leave.

Jobs whose victims have left go first, then the others in their order (`ordering`). A job that cannot start blocks its
queue if that is strict, is passed if it is best effort, and with EASY backfill gets a promise that every job behind it
keeps (`promising`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.model.jobs import JobId
from clusterwright.queueing.arriving import start_alone, wait_alone
from clusterwright.queueing.commitments import Claim, Promise
from clusterwright.queueing.decisions import Decisions, Preemption, Start
from clusterwright.queueing.evicting import find_victims
from clusterwright.queueing.lines import Bunch, Line
from clusterwright.queueing.ordering import Order
from clusterwright.queueing.policies import Backfill
from clusterwright.queueing.promising import find_promise, renew_promise
from clusterwright.queueing.requests import Demand, Placement, Request, resources_of
from clusterwright.queueing.starting import NoStart, find_beside, find_start
from clusterwright.queueing.state import State
from clusterwright.queueing.turns import Turn, turn_of
from clusterwright.queueing.windows import Window, closing

_FOREVER: Final = float("inf")


def run_cycle(state: State, now_s: float) -> Decisions:
    """Decide what happens now, and write it into the state.

    No GPU is given twice, no quota exceeded by a start, a gang gets all of its tasks (or its minimum) or none.

    Args:
        now_s: the time, never before that of an earlier cycle.
    """
    if not state.waiting or not (state.wake_due(now_s) or state.claims):
        return _NOTHING
    request = state.newcomer
    if request is not None:
        if state.lone() and (start := start_alone(request, state, now_s)) is not None:
            return Decisions((start,))
        if wait_alone(request, state, now_s):
            return _NOTHING
    return _Cycle(state, now_s).run()


_NOTHING: Final = Decisions(())


def _never(_: Request) -> bool:
    return False


class _Cycle:
    __slots__ = (
        "_again", "_hopeless", "_promised", "_settled", "easy", "now_s", "order", "preemptions", "starts", "state",
    )  # fmt: skip

    def __init__(self, state: State, now_s: float) -> None:
        self.state, self.now_s, self.order = state, now_s, Order(state, now_s)
        self.starts: list[Start] = []
        self.preemptions: list[Preemption] = []
        self.easy = state.policy.backfill is Backfill.EASY
        self._hopeless: set[Demand] = set()
        self._again = self._settled = False
        self._promised: set[JobId] = set()  # a job is promised a start once in a cycle, so that passes end

    def run(self) -> Decisions:
        state = self.state
        state.seat_newcomer()
        for job in list(state.claims) if state.claims else ():
            self._second_pass(state.claims[job])
        if state.promise is not None:
            self._check_promise(state.promise)
        self._pass()
        while self._again:  # each follows a start, or a promise to a job nearer the front
            self._again = False
            state.wake()
            self._pass()
        if not self.starts and not self.preemptions:
            return _NOTHING
        return Decisions(tuple(self.starts), tuple(self.preemptions))

    def _pass(self) -> None:
        state, self._settled = self.state, False
        woken = state.take_woken()
        # Where a job that has no room changes nothing, only queues are looked at that wait for something there is.
        quick = len(woken) > 1 and not state.preempts and not (self.easy and state.promise is None)
        possible: list[Demand] = []
        if quick:
            possible = [d for d in state.asking if state.cluster.holds(d)]
            wanted = {q for d in possible for q in state.asking[d]}
            if state.promise is not None:
                wanted |= {q for q in woken if state.lines[q].ranked is None}
            woken &= wanted
        lines = [line for q in woken if (line := state.lines[q]).bunches]
        if len(lines) == 1 and not quick:
            self._pass_line(self._turn(lines[0]))
        elif lines:
            self._pass_lines(lines, possible, quick=quick)

    def _pass_line(self, turn: Turn) -> None:
        while not turn.closed and not self._again and (request := turn.next()) is not None:
            turn.closed = not self._take(turn, request)

    def _pass_lines(self, lines: Sequence[Line], possible: Sequence[Demand], *, quick: bool) -> None:
        state, held = self.state, self.state.promise
        offers = self.order.offers(lines, self._turn)
        for turn, request in offers:
            turn.closed = not self._take(turn, request)
            if quick and state.promise is not held:
                self._again = True  # others may be promised a start now
            if self._again:
                break
            if quick and self.starts and not (possible := [d for d in possible if state.cluster.holds(d)]):
                break
        offers.close()

    def _turn(self, line: Line) -> Turn:
        state = self.state
        head_only = not self.easy and state.tree.strict(line.queue)
        hopeless = _never if head_only else self._hopeless_at_all  # the head is looked at: its budget may set it apart
        return turn_of(line, state, self.now_s, head_only=head_only, hopeless=hopeless)

    def _hopeless_at_all(self, request: Request) -> bool:
        """Whether a job has no room and nothing follows from that: neither a preemption nor a promise."""
        promise = self.state.promise
        if self.state.preempts or (self.easy and promise is None) or self.state.cluster.holds(request.demand):
            return False
        return promise is None or self.order.behind(request, promise.request)

    # -- one job --------------------------------------------------------------------------------------------------

    def _take(self, turn: Turn, request: Request) -> bool:
        """Look at one job; whether its queue may offer another."""
        state, bunch = self.state, turn.bunch
        if state.budgets is not None and self._overdrawn(request):
            turn.advance()
            return True
        promise = state.promise if self.easy else None
        turn.looked += 1
        if promise is not None and self._passes(request, promise):
            depth = state.policy.backfill_depth
            if depth is not None and turn.looked > depth:
                return False
            self._backfill(bunch, request, promise)
            turn.advance()
            return True
        placement = self._find(request)
        if placement is not None:
            self._start(bunch, bunch.tried, request, placement)
            if promise is not None:
                self._outranked(request, promise)
            turn.advance()
            return True
        if state.preempts:
            self._try_preemption(request)
        if request.id in state.claims or (self.easy and self._promise(request)):
            bunch.tried += 1
        else:
            self._pass_over(bunch)
        turn.advance()
        return self.easy or not state.tree.strict(request.queue)

    def _passes(self, request: Request, promise: Promise) -> bool:
        """Whether a job that is offered now comes after the promised one."""
        if request.id == promise.request.id:
            return False
        return self._settled or self.order.behind(request, promise.request)

    def _overdrawn(self, request: Request) -> bool:
        """Whether a budget does not admit the job; it is set apart then."""
        budgets, gpus = self.state.budgets, request.demand.most_gpus
        assert budgets is not None
        refused = budgets.admits(request.queue, request.user, gpus, request.limit_s, self.now_s) is not None
        if refused:
            self.state.set_apart(request)
        return refused

    def _pass_over(self, bunch: Bunch) -> None:
        """What a job of the bunch lacks all of them lack, unless a window closes to some and not to others."""
        bunch.tried = bunch.tried + 1 if self.state.windows else len(bunch)

    def _find(self, request: Request) -> Placement | None:
        """Where a job can start now; what has no room now has none until the end of the cycle."""
        if self._hopeless and request.demand in self._hopeless:
            return None
        closed = self._closed(request)
        found = find_start(request, self.state, closed)
        if isinstance(found, Placement):
            return found
        if found is NoStart.ROOM and not closed:
            self._hopeless.add(request.demand)  # nothing comes free within a cycle
        return None

    def _closed(self, request: Request) -> Sequence[Window]:
        windows = self.state.windows
        return closing(windows, request, self.now_s) if windows else ()

    def _start(
        self, bunch: Bunch, place: int, request: Request, placement: Placement, passed: Request | None = None
    ) -> None:
        state = self.state
        if state.claims:
            state.drop_claim(request.id)
        borrowed = state.usage.borrows(request.queue, placement.flavor, placement.gpus)
        state.lines[request.queue].take(bunch, place)
        state.start(request, placement, self.now_s, borrowed=borrowed)
        self.starts.append(Start(request, placement, borrowed, None if passed is None else passed.id))

    # -- promises -------------------------------------------------------------------------------------------------

    def _check_promise(self, promise: Promise) -> None:
        """Void a promise after something unforeseen and at its time; place it anew after others passed."""
        if promise.surprises != self.state.surprises or promise.at_s <= self.now_s:
            self.state.promise = None
            self.state.wake()
        elif promise.passed and renew_promise(promise, self.state):
            self.state.wake()

    def _promise(self, request: Request) -> bool:
        """Promise a start to the first job that cannot; whether there is a promise now."""
        held = self.state.promise
        if held is not None and held.request.id == request.id:
            self._settled = True
            return True
        if request.id in self._promised:
            return False
        found = find_promise(request, self.state, self.now_s)
        if found is not None:
            self._promised.add(request.id)
            self._again |= held is not None  # who waits behind was judged by the promise to the other
            self._settled = True  # who is offered from now on comes after it
            self.state.promise = found
        return found is not None

    def _outranked(self, request: Request, promise: Promise) -> None:
        """A job before the promised one started: where that reaches beyond the promised time, promise again."""
        if request.id == promise.request.id:
            self.state.promise = None
        elif self._end_of(request) > promise.at_s:
            self.state.promise, self._again = None, True

    def _end_of(self, request: Request) -> float:
        return _FOREVER if request.limit_s is None else self.now_s + request.limit_s

    def _backfill(self, bunch: Bunch, request: Request, promise: Promise) -> None:
        """Start a job behind the promised one if that keeps the promise; moves the bunch on."""
        state, demand = self.state, request.demand
        if not state.cluster.holds(demand):
            self._pass_over(bunch)
            return
        window = promise.at_s - self.now_s
        if request.limit_s is not None and request.limit_s <= window:
            placement = self._find(request)
            if placement is None:
                self._pass_over(bunch)
            else:
                self._start(bunch, bunch.tried, request, placement, promise.request)
            return
        placement = find_beside(request, state, promise, self._closed(request))
        if placement is not None:
            self._start(bunch, bunch.tried, request, placement, promise.request)
            promise.passed = True
            if placement.flavor == promise.placement.flavor:
                state.cluster.floors[placement.flavor].take_away(promise.left, placement, demand, promise.spare)
                used, fixed = resources_of(demand, placement), not request.preemptible
                promise.usage.add(request.queue, placement.flavor, placement.gpus, used, preemptible=not fixed)
            return
        if demand in self._hopeless:
            self._pass_over(bunch)
        else:
            bunch.tried = bunch.next_within(bunch.tried + 1, window)

    # -- preemption -----------------------------------------------------------------------------------------------

    def _try_preemption(self, request: Request) -> None:
        """Make others leave for a job, where the policy allows; what they leave is kept for it."""
        state = self.state
        if request.id in state.claims:
            return
        found = find_victims(request, state, self.now_s)
        if found is None:
            return
        placement, victims = found
        if not victims:
            return  # who is leaving already makes room enough
        times = []
        for victim in victims:
            asked = state.running[victim].request.grace_s
            state.leave(victim, self.now_s + (state.policy.preemption.grace_s if asked is None else asked))
            times.append(state.running[victim].leaving_at_s or self.now_s)
        state.keep(Claim(request, placement, victims, {}))
        self.preemptions.append(Preemption(request, victims, tuple(times), placement))

    def _second_pass(self, claim: Claim) -> None:
        """Start a job whose victims have left; else keep what has come free for it."""
        state, request = self.state, claim.request
        state.drop_claim(request.id)
        placement = self._find(request)
        if placement is not None:
            line = state.lines[request.queue]
            bunch = line.bunch_of(request)
            self._start(bunch, bunch.place_of(request), request, placement)
            self.starts[-1] = Start(request, placement, self.starts[-1].borrowed, after_preemption=True)
        elif state.leaving:
            state.keep(claim)
        self._hopeless.clear()
