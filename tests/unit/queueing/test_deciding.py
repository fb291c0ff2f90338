"""Who starts in one cycle, on which nodes, and what is said to the others."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.model.jobs import JobId
from clusterwright.model.outlooks import Blocker, BlockerKind
from clusterwright.queueing.blockers import why
from clusterwright.queueing.clusters import NodeInfo
from clusterwright.queueing.cycling import run_cycle
from clusterwright.queueing.decisions import Start
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.requests import Request
from clusterwright.queueing.state import State

from .builders import group, held, node, nodes, state_of, waiting


class Found:
    """A cycle that has run."""

    def __init__(self, state: State, now_s: float = 0.0) -> None:
        self.state, self.now_s = state, now_s
        self.starts = run_cycle(state, now_s).starts

    @property
    def started(self) -> list[str]:
        return [s.request.id for s in self.starts]

    def blockers(self, job: int) -> list[Blocker]:
        return list(why(JobId(str(job)), self.state, self.now_s))

    def only(self, job: int = 1) -> Blocker:
        (blocker,) = self.blockers(job)
        return blocker

    def nodes_of(self, start: Start) -> list[str]:
        names = self.state.cluster.floors[start.placement.flavor].names
        return [names[n] for _, n, tasks in start.placement.runs for _ in range(tasks)]


def run(infos: list[NodeInfo], *jobs: Request, now_s: float = 0.0, **more: Any) -> Found:
    return Found(state_of(infos, *jobs, **more), now_s)


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
    assert run(nodes(2), *jobs).started == ["3", "1"]


def test_ids_are_ordered_as_numbers() -> None:
    assert run(nodes(1), waiting(10, at_s=0), waiting(9, at_s=0)).started == ["9"]


def test_best_effort_sets_a_job_aside_that_does_not_fit() -> None:
    assert run(nodes(1), waiting(1, group(2)), waiting(2)).started == ["2"]


def test_a_strict_queue_blocks_behind_its_head_and_says_so() -> None:
    jobs = [waiting(1, group(2), queue="a"), waiting(2, queue="a"), waiting(3, queue="a")]
    found = run(nodes(2), *jobs, tree=tree(strict=True), running=[held(9, "n2", queue="elsewhere")])
    assert found.started == []
    assert found.only(1).kind is BlockerKind.HARDWARE_WAIT
    assert found.only(3).kind is BlockerKind.ORDER
    assert found.only(3).numbers == {"position": 3}
    assert found.only(3).holders == ("1",)


def test_a_held_job_does_not_block_a_strict_queue() -> None:
    jobs = [waiting(1, queue="a", hold="held by its owner"), waiting(2, queue="a")]
    found = run(nodes(1), *jobs, tree=tree(strict=True))
    assert found.started == ["2"]
    assert found.blockers(1)[0].kind is BlockerKind.HELD


def test_what_stays_within_its_guarantee_goes_before_what_borrows() -> None:
    jobs = [waiting(1, group(2), queue="a", priority=9), waiting(2, queue="b")]
    assert run(nodes(2), *jobs, tree=tree()).started == ["2"]


def test_quota_wait_names_numbers_and_holders() -> None:
    holding = held(7, "n1", queue="b", limit_s=160.0)
    found = run(nodes(2), waiting(1, queue="b"), tree=tree(), running=[holding], now_s=100.0).only()
    assert found.kind is BlockerKind.QUOTA_WAIT
    assert found.numbers["used_gpus"] == 8
    assert found.numbers["available_gpus"] == 0
    assert found.numbers["next_release_s"] == 60
    assert found.holders == ("7",)
    assert "job 7 frees 8 GPUs (its time limit)" in found.next_step


def test_no_next_release_is_invented_for_a_holder_without_time_limit() -> None:
    found = run(nodes(2), waiting(1, queue="b"), tree=tree(), running=[held(7, "n1", queue="b")]).only()
    assert "next_release_s" not in found.numbers
    assert found.next_step == ""


def test_never_fits_says_what_would() -> None:
    found = run(nodes(2), waiting(1, group(3))).only()
    assert found.kind is BlockerKind.NEVER_FITS
    assert found.numbers["largest_main_tasks"] == 2


def test_a_job_that_quota_can_never_hold_never_fits() -> None:
    found = run(nodes(4), waiting(1, group(2), queue="b"), tree=tree()).only()
    assert found.kind is BlockerKind.NEVER_FITS
    assert found.numbers["potential_gpus"] == 8


def test_a_queue_may_not_use_a_model_it_does_not_name() -> None:
    found = run([node("n1", flavor="b200")], waiting(1, queue="a"), tree=tree()).only()
    assert found.kind is BlockerKind.NEVER_FITS


def test_an_unknown_model_names_the_known_ones() -> None:
    found = run(nodes(1), waiting(1, flavor="h200")).only()
    assert found.kind is BlockerKind.NEVER_FITS
    assert "models here: h100" in found.message


def test_a_node_that_is_down_is_hardware_wait_and_not_never() -> None:
    found = run([node("n1"), node("n2", usable=False)], waiting(1, group(2))).only()
    assert found.kind is BlockerKind.HARDWARE_WAIT
    assert (found.numbers["free_gpus"], found.numbers["needed_gpus"], found.numbers["down_gpus"]) == (8, 16, 8)
    assert "1 node takes no jobs (n2)" in found.message


def test_enough_gpus_in_the_wrong_places_are_fragmented() -> None:
    found = run(nodes(2), waiting(1), running=[held(8, "n1", 4), held(9, "n2", 4)]).only()
    assert found.kind is BlockerKind.FRAGMENTED


def test_an_attempt_never_mixes_gpu_models() -> None:
    assert run([node("n1"), node("n2", flavor="b200")], waiting(1, group(2))).started == []


def test_excluded_nodes_are_never_used() -> None:
    job = waiting(1, exclude=frozenset({"n1"}))
    found = run(nodes(2), job)
    assert found.nodes_of(found.starts[0]) == ["n2"]
    assert run(nodes(1), job).only().kind is BlockerKind.NEVER_FITS


def test_an_avoided_node_is_used_only_when_nothing_else_could_ever_hold_the_job() -> None:
    job = waiting(1, avoid=frozenset({"n1"}))
    found = run(nodes(2), job)
    assert found.nodes_of(found.starts[0]) == ["n2"]
    busy = run(nodes(2), job, running=[held(9, "n2")]).only()
    assert busy.kind is BlockerKind.HARDWARE_WAIT
    assert busy.numbers["avoided_nodes"] == 1
    found = run([node("n1"), node("n2", usable=False)], job)
    assert found.nodes_of(found.starts[0]) == ["n1"]


def test_a_node_that_is_down_is_not_said_to_be_avoided_as_well() -> None:
    infos = [node("n1"), node("n2", usable=False)]
    found = run(infos, waiting(1, avoid=frozenset({"n2"})), running=[held(9, "n1")]).only()
    assert "avoided_nodes" not in found.numbers


def test_an_elastic_job_shrinks_rather_than_use_an_avoided_node() -> None:
    found = run(nodes(2), waiting(1, group(2, least=1), avoid=frozenset({"n1"})))
    assert found.nodes_of(found.starts[0]) == ["n2"]


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"hold": "held by its owner"}, BlockerKind.HELD),
        ({"gates": {"job 3": "same checkpoint directory"}}, BlockerKind.GATED),
        ({"not_before_s": 5.0, "max_restarts": 2, "restarts": 1}, BlockerKind.BACKOFF),
    ],
)
def test_a_job_that_is_not_ready_says_why(more: dict[str, Any], kind: BlockerKind) -> None:
    found = run(nodes(1), waiting(1, **more))
    assert (found.started, found.only().kind) == ([], kind)


def test_backoff_counts_attempts() -> None:
    found = run(nodes(1), waiting(1, not_before_s=5.0, max_restarts=2, restarts=1), now_s=1.0).only()
    assert found.numbers == {"wait_s": 4.0, "attempt": 2, "attempts": 3}


def test_a_queue_that_is_not_declared_or_a_group_is_misconfigured() -> None:
    found = run(nodes(1), waiting(1, queue="nope"), waiting(2, queue="all"), tree=tree())
    assert [found.only(j).kind for j in (1, 2)] == [BlockerKind.MISCONFIGURED] * 2
    assert "queues that take jobs: a, b" in found.only(1).message


def test_every_blocker_is_kept_not_only_the_first() -> None:
    running = [held(7, "n1", queue="b"), held(8, "n2", queue="elsewhere")]
    found = run(nodes(2), waiting(1, queue="b"), tree=tree(), running=running)
    assert [b.kind for b in found.blockers(1)] == [BlockerKind.QUOTA_WAIT, BlockerKind.HARDWARE_WAIT]


def test_what_can_be_shown_never_to_fit_is_called_never_though_there_are_gpus_enough() -> None:
    sizes = [2 * i + 20 for i in range(30)]
    half = sum(sizes) // 2 | 1
    groups = [group(1, size, name=f"of-{size}") for size in sizes]
    found = run([node("n1", half), node("n2", sum(sizes) - half)], waiting(1, *groups)).only()
    assert found.kind is BlockerKind.NEVER_FITS  # tasks of even sizes fill no node of an odd size


def test_a_job_that_excludes_every_node_is_told_so() -> None:
    found = run(nodes(2), waiting(1, exclude=frozenset({"n1", "n2"}))).only()
    assert found.kind is BlockerKind.NEVER_FITS
    assert found.message == "the job excludes all 2 nodes with h100; the job needs 1 × 8 GPUs"
    assert found.next_step == "exclude fewer nodes, ask for less, or add nodes or quota"


def test_excluded_nodes_are_counted_where_the_rest_is_too_small_or_in_use() -> None:
    never = run(nodes(2), waiting(1, group(2), exclude=frozenset({"n2"}))).only()
    assert "all 1 usable nodes (1 more is excluded by the job) hold 1 of 2 tasks" in never.message
    waits = run(nodes(2), waiting(1, exclude=frozenset({"n2"})), running=[held(9, "n1")]).only()
    assert waits.kind is BlockerKind.HARDWARE_WAIT
    assert waits.message.endswith("the job excludes 1 node")
