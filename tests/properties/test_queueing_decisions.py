"""What holds for every decision, whatever the cluster, the queues and the jobs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.model.jobs import JobId, TaskGroup
from clusterwright.queueing.deciding import decide
from clusterwright.queueing.quotas import Balance, Queue, QueueTree, Quota
from clusterwright.queueing.states import Holding, NodeView, QueueState, Waiting

FLAVORS = ("h100", "b200")
NAMES = [f"n{i}" for i in range(5)]
LEAVES = ("a", "b", "c")

limits = st.none() | st.integers(0, 12)
quotas = st.builds(Quota, st.integers(0, 16), limits, limits)


@st.composite
def nodes(draw: st.DrawFn) -> NodeView:
    name = draw(st.sampled_from(NAMES))
    devices = tuple(f"{name}:{i}" for i in range(draw(st.integers(0, 8))))
    free = tuple(d for d in devices if draw(st.booleans()))
    topology = (f"r{draw(st.integers(0, 1))}",) if draw(st.booleans()) else ()
    return NodeView(name, draw(st.sampled_from(FLAVORS)), devices, free, draw(st.booleans()), "", topology)


@st.composite
def groups(draw: st.DrawFn) -> tuple[TaskGroup, ...]:
    found = []
    for name in ("x", "y")[: draw(st.integers(1, 2))]:
        count = draw(st.integers(1, 4))
        least = draw(st.none() | st.integers(1, count))
        gpus, spread = draw(st.integers(0, 8)), draw(st.booleans())
        found.append(TaskGroup(("p",), count, gpus, name, min_count=least, spread=spread))
    return tuple(found)


@st.composite
def states(draw: st.DrawFn) -> QueueState:
    found = tuple(draw(st.lists(nodes(), max_size=5, unique_by=lambda n: n.name)))
    names = st.frozensets(st.sampled_from(NAMES), max_size=2)
    waiting = tuple(
        Waiting(
            id=JobId(str(i)),
            groups=draw(groups()),
            queued_at_s=draw(st.integers(0, 3)),
            queue=draw(st.sampled_from([*LEAVES, "nowhere"])),
            priority=draw(st.integers(-1, 1)),
            flavor=draw(st.none() | st.sampled_from([*FLAVORS, "other"])),
            exclude=draw(names),
            avoid=draw(names),
            held=draw(st.integers(0, 9)) == 0,
            not_before_s=draw(st.sampled_from([0.0, 0.0, 5.0])),
        )
        for i in range(draw(st.integers(0, 5)))
    )
    tree = QueueTree(tuple(draw(trees())) if draw(st.booleans()) else ())
    holdings = tuple(
        Holding(JobId(f"9{f}"), "a", f, used)
        for f in FLAVORS
        if (used := sum(len(n.devices) - len(n.free) for n in found if n.flavor == f))
    )
    return QueueState(found, waiting, holdings, tree, now_s=1.0)


@st.composite
def trees(draw: st.DrawFn) -> list[Queue]:
    def quota() -> dict[str, Quota]:
        return {f: draw(quotas) for f in FLAVORS if draw(st.booleans())}

    return [Queue("root", None, quota()), *(Queue(n, "root", quota(), draw(st.booleans())) for n in LEAVES)]


@settings(max_examples=200, deadline=None)
@given(states())
def test_no_device_is_given_twice_and_only_free_ones_of_usable_nodes(state: QueueState) -> None:
    free = {n.name: set(n.free) for n in state.nodes if n.up}
    by_id = {w.id: w for w in state.waiting}
    for start in decide(state).starts:
        for task in start.tasks:
            assert task.node not in by_id[start.id].exclude
            assert len(set(task.devices)) == len(task.devices)
            assert set(task.devices) <= free[task.node]
            free[task.node] -= set(task.devices)


@settings(max_examples=200, deadline=None)
@given(states())
def test_a_gang_gets_between_its_minimum_and_its_count_on_one_model(state: QueueState) -> None:
    flavors = {n.name: n.flavor for n in state.nodes}
    by_id = {w.id: w for w in state.waiting}
    for start in decide(state).starts:
        job = by_id[start.id]
        assert {flavors[t.node] for t in start.tasks} == {start.flavor}
        assert job.flavor in (None, start.flavor)
        for group in job.groups:
            mine = [t for t in start.tasks if t.group == group.name]
            assert group.least <= len(mine) <= group.count
            assert all(len(t.devices) == group.gpus for t in mine)
            if group.spread:
                assert max(Counter(t.node for t in mine).values()) == 1


@settings(max_examples=200, deadline=None)
@given(states())
def test_every_job_starts_or_says_why_not_and_one_that_is_not_ready_never_starts(state: QueueState) -> None:
    found = decide(state)
    starting = {s.id for s in found.starts}
    assert starting.isdisjoint(found.blockers)
    assert starting | set(found.blockers) == {w.id for w in state.waiting}
    assert all(found.blockers.values())
    assert not starting & {w.id for w in state.waiting if w.held or w.not_before_s > state.now_s}


@settings(max_examples=200, deadline=None)
@given(states())
def test_no_start_takes_more_than_its_queue_had_available(state: QueueState) -> None:
    if not state.tree.queues:
        return
    used: dict[str, Counter[str]] = {f: Counter() for f in FLAVORS}
    for holding in state.holdings:
        used[holding.flavor][holding.queue] += holding.gpus
    queue_of = {w.id: w.queue for w in state.waiting}
    for start in decide(state).starts:
        gpus = sum(len(t.devices) for t in start.tasks)
        queue = queue_of[start.id]
        assert gpus <= Balance(state.tree, start.flavor, used[start.flavor]).available(queue)
        used[start.flavor][queue] += gpus


@settings(max_examples=100, deadline=None)
@given(states())
def test_the_same_state_gives_the_same_decisions(state: QueueState) -> None:
    assert decide(state) == decide(state)
