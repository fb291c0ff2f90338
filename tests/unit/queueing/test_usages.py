"""Quota in use, kept up to date: the check table, further resources, changes of quota, and what is unhealthy."""

from __future__ import annotations

import math

import pytest

from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import Queue, QueueTree, Quota
from clusterwright.queueing.usages import Lack, Share, Usage

from .quota_table import FLAVOR, TABLE, Row, queue

OTHER = "b200"


def usage(*queues: Queue, weights: dict[str, float] | None = None) -> Usage:
    return Usage(QueueTree(queues), Policy(weights=weights or {}), (FLAVOR, OTHER))


@pytest.mark.parametrize("row", TABLE, ids=[r.name for r in TABLE])
def test_available_and_potential_are_those_of_the_table(row: Row) -> None:
    tree = Usage(row.tree)
    for name, gpus in row.used.items():
        tree.add(name, FLAVOR, gpus)
    assert {q: tree.available(q, FLAVOR) for q in row.available} == row.available
    assert {q: tree.raw_available(q, FLAVOR) for q in row.raw} == row.raw
    assert {q: tree.potential(q, FLAVOR) for q in row.potential} == row.potential


@pytest.mark.parametrize("row", TABLE, ids=[r.name for r in TABLE])
def test_what_is_taken_away_again_leaves_no_trace(row: Row) -> None:
    tree, fresh = Usage(row.tree), Usage(row.tree)
    for name, gpus in row.used.items():
        tree.add(name, FLAVOR, gpus)
    for name, gpus in row.used.items():
        tree.remove(name, FLAVOR, gpus)
    assert [tree.available(q, FLAVOR) for q in row.available] == [fresh.available(q, FLAVOR) for q in row.available]
    assert [tree.usage(q.name, FLAVOR) for q in row.tree.queues] == [0] * len(row.tree.queues)


# -- names and queues ------------------------------------------------------------------------------------------------


def test_without_queues_nothing_is_limited_and_every_name_is_accepted() -> None:
    free = usage()
    free.add("anything", FLAVOR, 10_000, [("cpu", 1e9)])
    assert free.available("anything", FLAVOR) == free.potential("anything", FLAVOR) == math.inf
    assert free.guaranteed_available("anything", FLAVOR) == math.inf
    assert free.fits("anything", FLAVOR, 10_000)
    assert free.could_ever("anything", FLAVOR, 10_000)
    assert free.names("anything") == (FLAVOR, OTHER)
    assert not free.borrows("anything", FLAVOR, 10_000)
    assert free.share("anything", FLAVOR, 10_000) == 0


def test_a_queue_that_the_tree_does_not_know_may_use_nothing() -> None:
    tree = usage(queue("group", 10, None), queue("q1", 10))
    tree.add("gone", FLAVOR, 5)
    assert tree.available("gone", FLAVOR) == tree.potential("gone", FLAVOR) == tree.usage("gone", FLAVOR) == 0
    assert not tree.fits("gone", FLAVOR, 1)
    assert not tree.could_ever("gone", FLAVOR, 1)
    assert tree.names("gone") == tree.path("gone") == tree.shares("gone") == ()
    assert tree.available("q1", FLAVOR) == 20


def test_a_queue_borrows_only_what_it_names() -> None:
    tree = usage(
        Queue("group", None, {FLAVOR: Quota(8), OTHER: Quota(8)}),
        Queue("q1", "group", {FLAVOR: Quota(0)}),
    )
    assert tree.names("q1") == (FLAVOR,)
    assert tree.fits("q1", FLAVOR, 8)
    assert tree.could_ever("q1", FLAVOR, 8)
    assert not tree.fits("q1", OTHER, 1)
    assert not tree.could_ever("q1", OTHER, 1)
    assert tree.lacking("q1", OTHER, 1) == (Lack("gpu", 1, 0, 0),)
    assert tree.fits("q1", OTHER, 0)  # a job without GPUs takes none of them


def test_a_flavor_that_comes_later_is_one_that_nobody_names() -> None:
    tree = usage(queue("q1", 10, None))
    assert not tree.fits("q1", "mi300x", 1)
    tree.add("q1", "mi300x", 2)
    assert tree.usage("q1", "mi300x") == 2
    assert tree.available("q1", FLAVOR) == 10


# -- further resources -----------------------------------------------------------------------------------------------


def with_cpu(name: str, gpus: float, cores: float, parent: str | None = "group") -> Queue:
    return Queue(name, parent, {FLAVOR: Quota(gpus)}, others={"cpu": {FLAVOR: Quota(cores)}})


def test_all_that_a_job_needs_must_fit() -> None:
    tree = usage(with_cpu("group", 8, 64, None), with_cpu("q1", 8, 64))
    assert tree.fits("q1", FLAVOR, 8, [("cpu", 128)])
    assert not tree.fits("q1", FLAVOR, 8, [("cpu", 129)])
    assert tree.lacking("q1", FLAVOR, 8, [("cpu", 129)]) == (Lack("cpu", 129, 128, 128),)
    tree.add("q1", FLAVOR, 4, [("cpu", 100)])
    assert tree.available("q1", FLAVOR, "cpu") == 28
    assert tree.available("q1", FLAVOR) == 12
    assert tree.borrows("q1", FLAVOR, 1, [("cpu", 1)])
    assert not tree.borrows("q1", FLAVOR, 1)
    assert not tree.could_ever("q1", FLAVOR, 1, [("cpu", 129)])


def test_a_resource_is_limited_for_the_trees_that_name_it_and_free_elsewhere() -> None:
    tree = usage(with_cpu("one", 8, 64, None), queue("sibling", 8, "one"), queue("two", 8, None))
    assert tree.fits("two", FLAVOR, 8, [("cpu", 1e6), ("memory", 1e6)])
    assert tree.available("two", FLAVOR, "cpu") == math.inf
    assert not tree.fits("sibling", FLAVOR, 8, [("cpu", 1)])
    assert not tree.named("sibling", FLAVOR, "cpu")


def test_fractions_of_cores_and_gib_leave_no_rounding_behind() -> None:
    tree = usage(with_cpu("q1", 8, 0.3, None))
    for _ in range(3):
        assert tree.fits("q1", FLAVOR, 0, [("cpu", 0.1)])
        tree.add("q1", FLAVOR, 0, [("cpu", 0.1)])
    assert tree.available("q1", FLAVOR, "cpu") == 0
    for _ in range(3):
        tree.remove("q1", FLAVOR, 0, [("cpu", 0.1)])
    assert tree.usage("q1", FLAVOR, "cpu") == 0


def test_use_of_a_resource_counts_from_before_it_was_limited() -> None:
    tree = usage(queue("q1", 8, None))
    tree.add("q1", FLAVOR, 1, [("cpu", 30)])
    tree.set_quota("q1", FLAVOR, Quota(32), "cpu")
    assert tree.available("q1", FLAVOR, "cpu") == 2


# -- changes of quota ------------------------------------------------------------------------------------------------


def test_lowering_a_guarantee_evicts_nobody_and_admits_nothing_new() -> None:
    tree = usage(queue("group", 0, None), queue("q1", 10), queue("q2", 10))
    tree.add("q1", FLAVOR, 10)
    tree.add("q2", FLAVOR, 6)
    tree.set_quota("q1", FLAVOR, Quota(4))
    assert tree.usage("q1", FLAVOR) == 10
    assert tree.raw_available("q1", FLAVOR) == -2
    assert tree.available("q1", FLAVOR) == tree.available("q2", FLAVOR) == 0
    assert tree.borrows("q1", FLAVOR, 0)


def test_a_fork_is_a_what_if() -> None:
    tree = usage(queue("group", 0, None), queue("q1", 10), queue("q2", 10))
    tree.add("q1", FLAVOR, 10)
    fork = tree.fork()
    fork.set_quota("q1", FLAVOR, Quota(4))
    fork.add("q2", FLAVOR, 1)
    assert (tree.available("q2", FLAVOR), fork.available("q2", FLAVOR)) == (10, 3)
    tree.set_quota("q1", FLAVOR, Quota(20))
    assert (tree.subtree("q1", FLAVOR), fork.subtree("q1", FLAVOR)) == (20, 4)


# -- guaranteed quota only -------------------------------------------------------------------------------------------


def test_jobs_that_may_not_be_preempted_stay_within_the_guarantee() -> None:
    tree = usage(queue("group", 10, None), queue("q1", 10), queue("q2", 10))
    assert (tree.available("q1", FLAVOR), tree.guaranteed_available("q1", FLAVOR)) == (30, 10)
    tree.add("q1", FLAVOR, 4, preemptible=False)
    assert tree.guaranteed_available("q1", FLAVOR) == 6
    assert tree.fits("q1", FLAVOR, 6, guaranteed=True)
    assert not tree.fits("q1", FLAVOR, 7, guaranteed=True)
    tree.add("q1", FLAVOR, 8)  # the queue borrows 2, with jobs that may be evicted
    assert tree.guaranteed_available("q1", FLAVOR) == 6
    tree.remove("q1", FLAVOR, 4, preemptible=False)
    assert tree.guaranteed_available("q1", FLAVOR) == 10


def test_what_others_borrowed_of_the_guarantee_is_not_free() -> None:
    tree = usage(queue("group", 0, None), queue("q1", 10), queue("q2", 10))
    tree.add("q2", FLAVOR, 17)
    assert tree.guaranteed_available("q1", FLAVOR) == 3


# -- slack -----------------------------------------------------------------------------------------------------------


def slack_tree() -> Usage:
    slack = Queue("slack", "group", {FLAVOR: Quota(8)}, slack=True)
    return usage(queue("group", 0, None), queue("q1", 16), queue("q2", 16), slack)


def test_unhealthy_gpus_are_taken_from_what_slack_lends_so_guarantees_stay_true() -> None:
    tree = slack_tree()
    assert tree.available("q1", FLAVOR) == 40
    assert tree.withdraw(FLAVOR, 6) == 0
    assert tree.available("q1", FLAVOR) == tree.potential("q1", FLAVOR) == 34
    tree.add("q1", FLAVOR, 18)
    assert tree.available("q2", FLAVOR) == 16  # its guarantee, and not one of the six


def test_what_slack_cannot_cover_is_told() -> None:
    tree = slack_tree()
    assert tree.withdraw(FLAVOR, 11) == 3
    assert tree.available("q1", FLAVOR) == 32


def test_the_number_withdrawn_is_the_total_and_goes_back_when_nodes_do() -> None:
    tree = slack_tree()
    tree.withdraw(FLAVOR, 6)
    tree.withdraw(FLAVOR, 2)
    assert tree.available("q1", FLAVOR) == 38
    assert tree.withdraw(FLAVOR, 0) == 0
    assert tree.available("q1", FLAVOR) == 40


def test_slack_gives_no_more_than_it_lends_in_order_of_declaration() -> None:
    first = Queue("first", "group", {FLAVOR: Quota(8, lend=3)}, slack=True)
    second = Queue("second", "group", {FLAVOR: Quota(4)}, slack=True)
    tree = usage(queue("group", 0, None), queue("q1", 16), first, second)
    assert tree.withdraw(FLAVOR, 5) == 0
    assert tree.available("q1", FLAVOR) == 18
    assert tree.withdraw(FLAVOR, 9) == 2


def test_a_change_of_slack_quota_keeps_what_is_withdrawn() -> None:
    tree = slack_tree()
    tree.withdraw(FLAVOR, 6)
    tree.set_quota("slack", FLAVOR, Quota(10))
    assert tree.available("q1", FLAVOR) == 36
    fork = tree.fork()
    fork.withdraw(FLAVOR, 0)
    assert (tree.available("q1", FLAVOR), fork.available("q1", FLAVOR)) == (36, 42)


# -- dominant resource share -----------------------------------------------------------------------------------------


def test_a_queue_that_does_not_borrow_has_no_share() -> None:
    tree = usage(queue("group", 0, None), queue("q1", 10), queue("q2", 10))
    tree.add("q1", FLAVOR, 10)
    assert tree.share("q1", FLAVOR) == 0
    assert tree.share("q1", FLAVOR, 1) == 1000 * 1 / 20


def test_a_queue_without_a_parent_has_nobody_to_borrow_from() -> None:
    tree = usage(queue("alone", 10, None))
    tree.add("alone", FLAVOR, 11)
    assert tree.share("alone", FLAVOR, 5) == 0
    assert tree.shares("alone", FLAVOR, 5) == ()


def test_what_is_borrowed_is_summed_over_flavors_and_compared_with_all_that_could_be_lent() -> None:
    both = {FLAVOR: Quota(10), OTHER: Quota(10)}
    tree = usage(Queue("group"), Queue("q1", "group", both), Queue("q2", "group", both))
    tree.add("q1", FLAVOR, 12)
    tree.add("q1", OTHER, 13)
    assert tree.share("q1") == 1000 * 5 / 40
    assert tree.share("q1", OTHER, 1) == 1000 * 6 / 40
    assert tree.share("q1", OTHER, -2) == 1000 * 3 / 40


def test_the_resource_with_the_highest_ratio_dominates() -> None:
    tree = usage(with_cpu("group", 0, 0, None), with_cpu("q1", 10, 100), with_cpu("q2", 10, 100))
    tree.add("q1", FLAVOR, 12, [("cpu", 150)])
    assert tree.share("q1") == 1000 * 50 / 200
    assert tree.share("q1", FLAVOR, 0, [("cpu", 50)]) == 1000 * 100 / 200


def test_weight_divides_the_share_and_weight_zero_makes_it_infinite_once_it_borrows() -> None:
    tree = usage(
        queue("group", 0, None),
        queue("q1", 10),
        queue("q2", 10),
        queue("q3", 0),
        weights={"q1": 2, "q3": 0},
    )
    tree.add("q1", FLAVOR, 12)
    assert tree.share("q1") == 1000 * 2 / 20 / 2
    assert tree.share("q3") == 0
    assert tree.shares("q3", FLAVOR, 2) == (Share(math.inf, 100.0),)
    assert tree.shares("q3", FLAVOR, 1) < tree.shares("q3", FLAVOR, 2)


def test_the_shares_of_groups_count_only_what_their_branch_takes_from_above() -> None:
    tree = usage(
        queue("root", 0, None),
        queue("left", 0, "root"),
        queue("right", 20, "root"),
        queue("a", 10, "left", lend=6),
        queue("b", 10, "left"),
    )
    tree.add("b", FLAVOR, 10)
    # a borrows 4 of b's branch; of its 14 the first 4 are its own and never seen above.
    assert tree.shares("a", FLAVOR, 14) == (Share(1000 * 4 / 36), Share(1000 * 4 / 36))
    assert tree.shares("a", FLAVOR, 10) == (Share(0), Share(0))


def test_lendable_follows_the_quotas() -> None:
    tree = usage(queue("group", 0, None), queue("q1", 10), queue("q2", 10))
    tree.add("q1", FLAVOR, 12)
    assert tree.share("q1") == 100
    tree.set_quota("q2", FLAVOR, Quota(30))
    assert tree.share("q1") == 50
