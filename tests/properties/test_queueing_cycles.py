"""What holds for every cycle, whatever the cluster, the queues, the policy and the jobs."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.states import FLAVORS, live, random_request
from clusterwright.model.jobs import JobId
from clusterwright.queueing.asking import what_if_gone, what_if_job
from clusterwright.queueing.blockers import why
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.decisions import Decisions
from clusterwright.queueing.evicting import find_victims
from clusterwright.queueing.gangs import NoFit
from clusterwright.queueing.limits import gpus_allowed
from clusterwright.queueing.quotas import Balance
from clusterwright.queueing.requests import Request
from clusterwright.queueing.state import State

SETTINGS = settings(max_examples=100, deadline=None)
seeds = st.integers(0, 2**32)


def nothing(before: State, decisions: Decisions, state: State, now_s: float) -> None:
    """Nothing to look at."""


def held_gpus(state: State) -> Counter[tuple[str, int]]:
    """GPUs that running jobs hold, by flavor and node."""
    held: Counter[tuple[str, int]] = Counter()
    for holding in state.running.values():
        floor = state.cluster.floors[holding.placement.flavor]
        for node, gpus in floor.effect(holding.placement, holding.request.demand).gpus.items():
            held[holding.placement.flavor, node] += gpus
    return held


@SETTINGS
@given(seeds)
def test_no_gpu_is_given_twice_and_what_is_free_adds_up(seed: int) -> None:
    def look(before: State, decisions: Decisions, state: State, now_s: float) -> None:
        held = held_gpus(state)
        kept: Counter[tuple[str, int]] = Counter()
        for claim in state.claims.values():
            for node, gpus in claim.kept.items():
                kept[claim.placement.flavor, node] += gpus
        for flavor, floor in state.cluster.floors.items():
            for node, total in enumerate(floor.total.tolist()):
                assert floor.free[node] == total - held[flavor, node] - kept[flavor, node]
                assert floor.free[node] >= 0
        for start in decisions.starts:
            floor = before.cluster.floors[start.placement.flavor]
            names = {floor.names[node] for _, node, _ in start.placement.runs}
            assert all(floor.usable[node] for _, node, _ in start.placement.runs)
            assert not names & start.request.demand.exclude

    live(seed, look)


@SETTINGS
@given(seeds)
def test_a_gang_is_whole_or_at_least_its_minimum_and_keeps_its_topology(seed: int) -> None:
    def look(before: State, decisions: Decisions, state: State, now_s: float) -> None:
        for start in decisions.starts:
            demand, placement = start.request.demand, start.placement
            layout = state.cluster.floors[placement.flavor].layout
            for number, group in enumerate(demand.groups):
                mine = [(node, tasks) for g, node, tasks in placement.runs if g == number]
                assert group.fewest <= sum(t for _, t in mine) <= group.count
                if group.spread:
                    assert all(t == 1 for _, t in mine)
                    assert len({n for n, _ in mine}) == len(mine)
            wish = demand.topology
            if wish is not None and wish.level and wish.required:
                domains = layout.of[layout.depths[wish.level] - 1]
                assert len({int(domains[node]) for _, node, _ in placement.runs}) == 1

    live(seed, look)


@SETTINGS
@given(seeds)
def test_no_start_takes_more_than_its_queue_had_available(seed: int) -> None:
    def look(before: State, decisions: Decisions, state: State, now_s: float) -> None:
        tree = state.tree
        if not tree.queues:
            return
        used = {f: Counter[str]() for f in FLAVORS}
        for holding in before.running.values():
            used[holding.placement.flavor][holding.request.queue] += holding.placement.gpus
        for start in decisions.starts:
            flavor, queue = start.placement.flavor, start.request.queue
            balance = Balance(tree, flavor, used[flavor])
            assert balance.named(queue) or not start.placement.gpus
            assert start.placement.gpus <= balance.available(queue)
            used[flavor][queue] += start.placement.gpus
        for flavor in FLAVORS:
            for leaf in tree.leaves:
                claimed = sum(
                    c.placement.gpus
                    for c in state.claims.values()
                    if (c.placement.flavor, c.request.queue) == (flavor, leaf)
                )
                held = sum(
                    h.placement.gpus
                    for h in state.running.values()
                    if (h.placement.flavor, h.request.queue) == (flavor, leaf)
                )
                assert state.usage.usage(leaf, flavor) == held + claimed

    live(seed, look)


@SETTINGS
@given(seeds)
def test_without_arrivals_or_exits_a_second_cycle_decides_nothing(seed: int) -> None:
    def look(before: State, decisions: Decisions, state: State, now_s: float) -> None:
        again = state.fork()
        again.wake()
        found = run_cycle(again, now_s)
        assert not found.starts, [s.reason for s in found.starts]
        for _ in range(len(state.running) + 1):
            if not found:
                break
            again.wake()
            found = run_cycle(again, now_s)
        assert not found

    live(seed, look)


@SETTINGS
@given(seeds)
def test_a_job_that_comes_alone_is_decided_about_as_in_a_whole_cycle(seed: int) -> None:
    def look(before: State, decisions: Decisions, state: State, now_s: float) -> None:
        before.seat_newcomer()  # who has a place in a line is looked at in a whole cycle
        assert run_cycle(before, now_s) == decisions
        assert before.waiting == state.waiting

    live(seed, look)


@SETTINGS
@given(seeds)
def test_every_waiting_job_has_a_reason(seed: int) -> None:
    def look(before: State, decisions: Decisions, state: State, now_s: float) -> None:
        assert {s.request.id for s in decisions.starts} <= set(before.waiting)
        for job in state.waiting:
            assert why(job, state, now_s), job

    live(seed, look)


@SETTINGS
@given(seeds)
def test_a_job_that_would_start_has_no_reason_to_wait(seed: int) -> None:
    def look(before: State, decisions: Decisions, state: State, now_s: float) -> None:
        if len(decisions.starts) == 1 and not before.claims:
            start = decisions.starts[0]
            before.wake_due(now_s)
            if start.backfilled is None and before.promise is None:
                assert not why(start.request.id, before, now_s)

    live(seed, look)


@SETTINGS
@given(seeds)
def test_victims_are_permitted_enough_and_none_could_stay(seed: int) -> None:
    def fits(request: Request, state: State, gone: set[JobId], now_s: float) -> bool:
        other = state.fork()
        for job in gone | set(other.leaving):
            other.release(job, now_s)
        flavors = other.flavors_of(request)
        return any(
            gpus_allowed(request, f, other.usage, other.policy) >= request.demand.least_gpus
            and not isinstance(other.cluster.find(request.demand, f, request.demand.least_gpus), NoFit)
            for f in flavors
        )

    def look(before: State, decisions: Decisions, state: State, now_s: float) -> None:
        if state.claims or state.windows or not state.policy.preemption.active:
            return
        for request in list(state.waiting.values()):
            if request.queue == "nowhere":
                continue
            found = find_victims(request, state, now_s)
            if found is None:
                continue
            victims = set(found[1])
            assert fits(request, state, victims, now_s)
            for victim in victims:
                holding = state.running[victim]
                assert holding.request.preemptible
                assert now_s - holding.started_at_s >= state.policy.preemption.minimum_runtime_s
                flavor = found[0].flavor
                assert holding.placement.flavor == flavor
                others = state.fork()
                for job in (victims - {victim}) | set(others.leaving):
                    others.release(job, now_s)
                allowed = gpus_allowed(request, flavor, others.usage, others.policy)
                least = request.demand.least_gpus
                placed = others.cluster.find(request.demand, flavor, least)
                assert allowed < least or isinstance(placed, NoFit), "a victim could have stayed"

    live(seed, look)


@SETTINGS
@given(seeds)
def test_what_if_is_what_doing_it_gives_and_touches_nothing(seed: int) -> None:
    state, now_s = live(seed, nothing)
    request = random_request(Random(seed), 999, now_s)
    free = {f: floor.free.tolist() for f, floor in state.cluster.floors.items()}
    waiting, running = set(state.waiting), set(state.running)
    answer = what_if_job(request, state, now_s)
    gone = sorted(state.running)[:1]
    after_end = what_if_gone(gone, state, now_s)
    assert free == {f: floor.free.tolist() for f, floor in state.cluster.floors.items()}
    assert (waiting, running) == (set(state.waiting), set(state.running))
    ended = state.fork()
    for job in gone:
        ended.release(job, now_s)
    assert run_cycle(ended, now_s) == after_end.decisions
    state.submit(request)
    assert run_cycle(state, now_s).starts == answer.decisions.starts
    if request.id in state.waiting:
        assert answer.blockers == why(request.id, state, now_s)


@SETTINGS
@given(seeds)
def test_a_promise_is_kept_when_jobs_run_to_their_limits(seed: int) -> None:
    """Only ends move the story on: a promised job starts at its promise or before, whoever is backfilled.

    A job that comes before it starts first even so: as jobs end, a queue borrows less, and its jobs move forward.
    """
    state, now_s = live(seed, nothing)
    if state.windows or state.policy.preemption.active or state.policy.fair.half_life_s is not None:
        return
    promised: dict[JobId, float] = {}
    for _ in range(60):
        if state.promise is not None:
            job = state.promise.request.id
            assert state.promise.at_s <= promised.get(job, float("inf"))
            promised[job] = state.promise.at_s
        ends = [e for h in state.running.values() if (e := h.ends_by_s) is not None]
        if not ends:
            break
        now_s = max(now_s, min(ends))
        for job, holding in list(state.running.items()):
            if (end := holding.ends_by_s) is not None and end <= now_s:
                state.release(job, now_s)
        standing = None if state.promise is None else state.promise.request.id
        for start in run_cycle(state, now_s).starts:
            assert now_s <= promised.pop(start.request.id, float("inf"))
            if start.backfilled is None and start.request.id != standing:
                promised.clear()
