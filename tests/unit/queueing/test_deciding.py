from __future__ import annotations

from typing import Any

import pytest

from clusterwright.model.jobs import Blocker, BlockerKind, JobId
from clusterwright.queueing.deciding import decide
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.states import Decisions, Holding, NodeView, QueueState, Waiting

from .builders import group, node, waiting


def run(nodes: list[NodeView], *jobs: Waiting, **more: Any) -> Decisions:
    return decide(QueueState(tuple(nodes), jobs, **more))


def only(decisions: Decisions, job: int = 1) -> Blocker:
    (blocker,) = decisions.blockers[JobId(str(job))]
    return blocker


def started(decisions: Decisions) -> list[str]:
    return [s.id for s in decisions.starts]


def tree(*, strict: bool = False) -> QueueTree:
    return QueueTree(
        (
            Queue("all"),
            Queue("a", "all", {"h100": Quota(8)}, strict=strict),
            Queue("b", "all", {"h100": Quota(8, borrow=0)}, strict=strict),
        )
    )


def test_higher_priority_goes_first_then_the_older() -> None:
    jobs = [waiting(1), waiting(2), waiting(3, priority=5)]
    assert started(run([node("n1"), node("n2")], *jobs)) == ["3", "1"]


def test_ids_are_ordered_as_numbers() -> None:
    assert started(run([node("n1")], waiting(10, at_s=0), waiting(9, at_s=0))) == ["9"]


def test_best_effort_sets_a_job_aside_that_does_not_fit() -> None:
    assert started(run([node("n1")], waiting(1, group(2)), waiting(2))) == ["2"]


def test_a_strict_queue_blocks_behind_its_head_and_says_so() -> None:
    nodes = [node("n1"), node("n2", free=0)]
    jobs = [waiting(1, group(2), queue="a"), waiting(2, queue="a"), waiting(3, queue="a")]
    found = run(nodes, *jobs, tree=tree(strict=True))
    assert found.starts == ()
    assert only(found, 1).kind is BlockerKind.HARDWARE_WAIT
    assert only(found, 3).kind is BlockerKind.ORDER
    assert only(found, 3).numbers == {"position": 3}
    assert only(found, 3).holders == ("1",)


def test_a_held_job_does_not_block_a_strict_queue() -> None:
    found = run([node("n1")], waiting(1, queue="a", held=True), waiting(2, queue="a"), tree=tree(strict=True))
    assert started(found) == ["2"]
    assert only(found, 1).kind is BlockerKind.HELD


def test_what_stays_within_its_guarantee_goes_before_what_borrows() -> None:
    jobs = [waiting(1, group(2), queue="a", priority=9), waiting(2, queue="b")]
    found = run([node("n1"), node("n2")], *jobs, tree=tree())
    assert started(found) == ["2"]


def test_quota_wait_names_numbers_and_holders() -> None:
    holding = Holding(JobId("7"), "b", "h100", 8, ends_by_s=160.0)
    found = only(run([node("n1"), node("n2")], waiting(1, queue="b"), tree=tree(), holdings=(holding,), now_s=100.0))
    assert found.kind is BlockerKind.QUOTA_WAIT
    assert found.numbers["used_gpus"] == 8
    assert found.numbers["available_gpus"] == 0
    assert found.numbers["next_release_s"] == 60
    assert found.holders == ("7",)
    assert "job 7 frees 8 GPUs (its time limit)" in found.next_step


def test_no_next_release_is_invented_for_a_holder_without_time_limit() -> None:
    holding = Holding(JobId("7"), "b", "h100", 8)
    found = only(run([node("n1"), node("n2")], waiting(1, queue="b"), tree=tree(), holdings=(holding,)))
    assert "next_release_s" not in found.numbers
    assert found.next_step == ""


def test_never_fits_says_what_would() -> None:
    found = only(run([node("n1"), node("n2")], waiting(1, group(3))))
    assert found.kind is BlockerKind.NEVER_FITS
    assert found.numbers["largest_main_tasks"] == 2


def test_a_job_that_quota_can_never_hold_never_fits() -> None:
    nodes = [node(f"n{i}") for i in range(4)]
    found = only(run(nodes, waiting(1, group(2), queue="b"), tree=tree()))
    assert found.kind is BlockerKind.NEVER_FITS
    assert found.numbers["potential_gpus"] == 8


def test_a_queue_may_not_use_a_model_it_does_not_name() -> None:
    found = only(run([node("n1", flavor="b200")], waiting(1, queue="a"), tree=tree()))
    assert found.kind is BlockerKind.NEVER_FITS


def test_an_unknown_model_names_the_known_ones() -> None:
    found = only(run([node("n1")], waiting(1, flavor="h200")))
    assert found.kind is BlockerKind.NEVER_FITS
    assert "models here: h100" in found.message


def test_a_node_that_is_down_is_hardware_wait_and_not_never() -> None:
    found = only(run([node("n1"), node("n2", up=False, reason="agent gone")], waiting(1, group(2))))
    assert found.kind is BlockerKind.HARDWARE_WAIT
    assert (found.numbers["free_gpus"], found.numbers["needed_gpus"], found.numbers["down_gpus"]) == (8, 16, 8)
    assert "node n2 is down (agent gone)" in found.message


def test_enough_gpus_in_the_wrong_places_are_fragmented() -> None:
    found = only(run([node("n1", free=4), node("n2", free=4)], waiting(1, group(1, 8))))
    assert found.kind is BlockerKind.FRAGMENTED


def test_an_attempt_never_mixes_gpu_models() -> None:
    found = run([node("n1"), node("n2", flavor="b200")], waiting(1, group(2)))
    assert found.starts == ()


def test_excluded_nodes_are_never_used() -> None:
    jobs = waiting(1, exclude=frozenset({"n1"}))
    assert run([node("n1"), node("n2")], jobs).starts[0].tasks[0].node == "n2"
    assert only(run([node("n1")], jobs)).kind is BlockerKind.NEVER_FITS


def test_an_avoided_node_is_used_only_when_nothing_else_could_ever_hold_the_job() -> None:
    job = waiting(1, avoid=frozenset({"n1"}))
    assert run([node("n1"), node("n2")], job).starts[0].tasks[0].node == "n2"
    busy = run([node("n1"), node("n2", free=0)], job)
    assert only(busy).kind is BlockerKind.HARDWARE_WAIT
    assert only(busy).numbers["avoided_nodes"] == 1
    assert run([node("n1"), node("n2", up=False)], job).starts[0].tasks[0].node == "n1"


def test_an_elastic_job_shrinks_rather_than_use_an_avoided_node() -> None:
    found = run([node("n1"), node("n2")], waiting(1, group(2, min_count=1), avoid=frozenset({"n1"})))
    assert [t.node for t in found.starts[0].tasks] == ["n2"]


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"held": True}, BlockerKind.HELD),
        ({"gates": {"job 3": "same checkpoint directory"}}, BlockerKind.GATED),
        ({"not_before_s": 5.0, "max_restarts": 2, "restarts": 1}, BlockerKind.BACKOFF),
    ],
)
def test_a_job_that_is_not_ready_says_why(more: dict[str, Any], kind: BlockerKind) -> None:
    assert only(run([node("n1")], waiting(1, **more))).kind is kind


def test_backoff_counts_attempts() -> None:
    found = only(run([node("n1")], waiting(1, not_before_s=5.0, max_restarts=2, restarts=1), now_s=1.0))
    assert found.numbers == {"wait_s": 4.0, "attempt": 2, "attempts": 3}


def test_a_queue_that_is_not_declared_or_a_group_is_misconfigured() -> None:
    found = run([node("n1")], waiting(1, queue="nope"), waiting(2, queue="all"), tree=tree())
    assert [only(found, j).kind for j in (1, 2)] == [BlockerKind.MISCONFIGURED] * 2
    assert "queues that take jobs: a, b" in only(found, 1).message


def test_every_blocker_is_kept_not_only_the_first() -> None:
    holding = Holding(JobId("7"), "b", "h100", 8)
    found = run([node("n1", free=0), node("n2", free=0)], waiting(1, queue="b"), tree=tree(), holdings=(holding,))
    kinds = [b.kind for b in found.blockers[JobId("1")]]
    assert kinds == [BlockerKind.QUOTA_WAIT, BlockerKind.HARDWARE_WAIT]


def test_an_unfinished_search_is_not_called_never() -> None:
    sizes = [2 * i + 20 for i in range(30)]
    half = sum(sizes) // 2 | 1
    groups = [group(1, size, name=f"of-{size}") for size in sizes]
    found = only(run([node("n1", half), node("n2", sum(sizes) - half)], waiting(1, *groups)))
    assert found.kind is BlockerKind.FRAGMENTED


def test_a_job_that_excludes_every_node_is_told_so() -> None:
    found = only(run([node("n1"), node("n2")], waiting(1, exclude=frozenset({"n1", "n2"}))))
    assert found.kind is BlockerKind.NEVER_FITS
    assert found.message == "the job excludes all 2 nodes with h100; the job needs 1 × 8 GPUs"
    assert found.next_step == "exclude fewer nodes, ask for less, or add nodes or quota"


def test_excluded_nodes_are_counted_where_the_rest_is_too_small_or_in_use() -> None:
    never = only(run([node("n1"), node("n2")], waiting(1, group(2), exclude=frozenset({"n2"}))))
    assert "all 1 usable nodes (1 more is excluded by the job) hold 1 of 2 tasks" in never.message
    waits = only(run([node("n1", free=0), node("n2")], waiting(1, exclude=frozenset({"n2"}))))
    assert waits.kind is BlockerKind.HARDWARE_WAIT
    assert waits.message.endswith("the job excludes 1 node")
