"""After a loss: what runs keeps its GPUs; the lost is placed again by priority, or waits, shrinks, gives way."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.plans import BASE, planned, subjects
from clusterwright.plan.placing import Nodes, Request, place
from clusterwright.plan.replacing import Running, place_again

TWO = [Nodes("gpu", ("n1", "n2"), 8)]
LEFT = [Nodes("gpu", ("n2",), 8)]
_FULL = BASE.replace("replicas: 2\n", "replicas: 1\n")


def nobody(taker: Request, victim: Request, state: Running) -> bool:
    return False


def anybody(taker: Request, victim: Request, state: Running) -> bool:
    return True


def after(requests: list[Request], may: object = nobody, left: list[Nodes] = LEFT) -> Running:
    return place_again(requests, left, place(requests, TWO).assignments, ["n1"], may)  # type: ignore[arg-type]


def test_what_runs_keeps_its_gpus_whoever_waits() -> None:
    held = Request("low", "gpu", 4, 2, priority=1)
    lost = Request("high", "gpu", 4, 2, priority=9)
    state = after([held, lost])
    assert (state.count("low"), state.count("high")) == (1, 1)
    assert not any(state.free["gpu"].values())
    assert state.preempted == []


def test_the_lost_is_placed_at_its_declared_number_higher_priority_first() -> None:
    chat, tune = Request("chat", "gpu", 4, 2, priority=1000), Request("tune", "gpu", 4, 1, priority=100)
    state = after([chat, tune])
    assert (state.count("chat"), state.count("tune")) == (2, 0)
    apart = after([Request("chat", "gpu", 4, 2, priority=1000, apart=True), tune])
    assert (apart.count("chat"), apart.count("tune")) == (1, 1)
    assert apart.nodes("tune") == ("n2",)


def test_gpus_are_taken_from_a_lower_priority_only_where_the_scheduler_may() -> None:
    low, high = Request("low", "gpu", 8, 1, priority=1), Request("zhigh", "gpu", 8, 1, priority=9)
    left = [Nodes("gpu", ("n2",), 8)]
    before = place([low, high], TWO)
    lost = next(a.node for a in before.assignments if a.workload == "zhigh")
    left = [Nodes("gpu", tuple(n for n in ("n1", "n2") if n != lost), 8)]
    kept = place_again([low, high], left, before.assignments, [lost], nobody)
    assert (kept.count("low"), kept.count("zhigh")) == (1, 0)
    taken = place_again([low, high], left, before.assignments, [lost], anybody)
    assert (taken.count("low"), taken.count("zhigh")) == (0, 1)
    assert taken.preempted == [("low", "zhigh")]


def test_equals_never_take_from_each_other() -> None:
    state = after([Request("a", "gpu", 8, 1, priority=5), Request("b", "gpu", 8, 1, priority=5)], anybody)
    assert state.preempted == []


def test_only_as_many_are_stopped_as_needed_and_who_is_stopped_is_placed_again_where_there_is_room() -> None:
    three = [Nodes("gpu", ("n1", "n2", "n3"), 8)]
    requests = [Request("small", "gpu", 2, 9, priority=1), Request("large", "gpu", 4, 1, priority=9)]
    before = place(requests, three)
    lost = next(a.node for a in before.assignments if a.workload == "large")
    left = [three[0].without([lost])]
    state = place_again(requests, left, before.assignments, [lost], anybody)
    assert state.count("large") == 1
    assert state.gpus(["small", "large"], "gpu") <= 16
    assert state.count("small") == 6


def test_an_elastic_job_shrinks_when_its_gpus_are_not_left() -> None:
    state = after([Request("job", "gpu", 16, 1, least=8)])
    assert state.count("job") == 1
    assert state.shrunk == {"job": 8}


def test_a_job_over_nodes_takes_whole_nodes_from_others() -> None:
    four = [Nodes("gpu", ("n1", "n2", "n3", "n4"), 8)]
    requests = [Request("job", "gpu", 16, 1, priority=9), Request("small", "gpu", 8, 2, priority=1)]
    before = place(requests, four)
    lost = next(a.node for a in before.assignments if a.workload == "job")
    left = [four[0].without([lost])]
    state = place_again(requests, left, before.assignments, [lost], anybody)
    assert (state.count("job"), state.count("small")) == (1, 1)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 20), st.integers(1, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=5
    ),
    st.integers(2, 5),
    st.sampled_from([2, 4, 8]),
    st.booleans(),
)
def test_no_gpu_is_held_twice_and_nobody_gets_more_than_declared(
    asked: list[tuple[int, int, int, bool]], count: int, size: int, may: bool
) -> None:
    requests = [Request(f"w{i}", "gpu", gpus, n, p, apart=apart) for i, (gpus, n, p, apart) in enumerate(asked)]
    pool = Nodes("gpu", tuple(f"n{i}" for i in range(count)), size)
    before = place(requests, [pool])
    state = place_again(requests, [pool.without(["n0"])], before.assignments, ["n0"], anybody if may else nobody)
    held = [(a.node, gpu) for parts in state.parts.values() for a in parts for gpu in a.gpus]
    free = [(node, gpu) for node, gpus in state.free["gpu"].items() for gpu in gpus]
    assert sorted([*held, *free]) == sorted((n, g) for n in pool.names[1:] for g in range(size))
    assert all(state.count(r.workload) <= r.replicas for r in requests)
    kept = {(a.workload, a.replica) for a in before.assignments} - {
        (a.workload, a.replica) for a in before.assignments if a.node == "n0"
    }
    if not may:
        assert kept <= state.parts.keys()
    for request in requests:
        nodes = [a.node for (name, _), parts in state.parts.items() if name == request.workload for a in parts]
        assert not request.apart or len(nodes) == len(set(nodes))


def test_a_large_loss_is_placed_again_by_preemption_in_time() -> None:
    pool = Nodes("gpu", tuple(f"g{i:04}" for i in range(2_000)), 8)
    requests = [Request("high", "gpu", 4, 2_000, priority=9), Request("low", "gpu", 2, 4_000, priority=1)]
    before = place(requests, [pool])
    lost = pool.names[:200]
    state = place_again(requests, [pool.without(lost)], before.assignments, lost, anybody)
    assert state.count("high") == 2_000
    assert state.gpus(["high", "low"], "gpu") == 1_800 * 8
    assert state.count("low") == (1_800 * 8 - 2_000 * 4) // 2


# In a plan


PRIORITIES = "priorities: {production: 1000, batch: 100}"


def scheduled(preemption: str = "", *more: str):  # type: ignore[no-untyped-def]
    rules = f", preemption: {{{preemption}}}" if preemption else ""
    return planned(
        f"scheduling={{engine: kubernetes, {PRIORITIES}{rules}}}",
        "workloads.chat.priority=production",
        "workloads.finetune.priority=batch",
        *more,
    )


def losses(plan):  # type: ignore[no-untyped-def]
    chat, tune = plan.workload("chat").service.losses[0], plan.workload("finetune").training.losses[0]
    return (chat.placeable, chat.reason), (tune.placeable, tune.reason)


def test_a_spread_replica_waits_for_a_node_and_the_job_takes_the_free_gpus() -> None:
    (chat, why), (tune, where) = losses(scheduled())
    assert (chat, tune) == (1, 1)
    assert why.endswith("1 waits for a node without one of its replicas (spread: required)")
    assert where == "without gpu-1 the job finds GPUs again on gpu-2"


def test_without_spread_the_higher_priority_is_created_first_and_the_job_waits() -> None:
    (chat, why), (tune, wait) = losses(scheduled("", "workloads.chat.serve.spread=preferred"))
    assert (chat, tune) == (2, 0)
    assert "1 placed again, after a cold start" in why
    assert wait == "without gpu-1 the job waits for 4 GPUs: none of those left is free, the others are held by chat (8)"


def test_a_full_cluster_places_nothing_again() -> None:
    plan = planned("workloads.finetune.train.gpus=8", "workloads.finetune.train.parallel={dp: 8}", text=_FULL)
    loss = plan.workload("chat").service.losses[0]
    assert (loss.surviving, loss.placeable, loss.carries) == (0, 0, False)
    assert "the others are held by finetune (8)" in loss.reason
    assert "workloads.chat.service.losses" in subjects(plan)


def test_preemption_in_a_queue_is_followed_and_between_queues_only_for_a_lent_guarantee() -> None:
    same = [f"workloads.{w}.queue=all" for w in ("chat", "finetune")]
    base = ["workloads.chat.serve.replicas=1", "workloads.finetune.train.gpus=8"]
    base.append("workloads.finetune.train.parallel={dp: 8}")
    for preemption, expected in (("", 0), ("within_queue: never", 0), ("within_queue: lower-priority", 1)):
        loss = scheduled(preemption, *base, *same).workload("chat").service.losses[0]
        assert loss.placeable == expected, preemption
        assert ("taken from finetune" in loss.reason) is bool(expected)
    apart = ["workloads.chat.queue=a", "workloads.finetune.queue=b"]
    for reclaim, promised, expected in (("never", 4, 0), ("any", 4, 1), ("any", 0, 0)):
        queues = f"queues: {{a: {{guarantee: {{gpu: {promised}}}}}, b: {{guarantee: {{gpu: 4}}}}}}"
        text = f"scheduling={{engine: kubernetes, {PRIORITIES}, preemption: {{reclaim: {reclaim}}}, {queues}}}"
        plan = planned(text, "workloads.chat.priority=production", "workloads.finetune.priority=batch", *base, *apart)
        assert plan.workload("chat").service.losses[0].placeable == expected, (reclaim, promised)


def test_all_nodes_as_spares_lose_nothing_and_say_so() -> None:
    plan = planned("pools.gpu.spares=9")
    assert plan.workload("chat").service.losses == ()
    assert plan.workload("finetune").training.losses == ()
    assert plan.workload("chat").service.tpot is None
    assert any("pool gpu has 0 nodes beside 2 spares of 8 GPUs" in m.message for m in plan.misfits)
