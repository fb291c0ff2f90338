"""What a file says about sharing, as the queue decides by it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.scheduling import Scheduling
from clusterwright.model.sources import Source
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.declared import declared_budgets, declared_policy, declared_tree
from clusterwright.queueing.policies import (
    Backfill,
    FairShare,
    NodeTie,
    Packing,
    Policy,
    PreemptionPolicy,
    Reclaim,
    WithinQueue,
)
from clusterwright.queueing.quotas import Quota


def scheduling(text: str) -> Scheduling:
    head = "apiVersion: clusterwright/v1alpha1\ncluster: c\nscheduling:\n  engine: local\n"
    found = parse_architecture(Source("cluster.yaml", head + text)).architecture.scheduling
    assert found is not None
    return found


def test_nothing_declared_is_no_quota_and_the_default_policy() -> None:
    assert declared_tree(None).queues == ()
    assert declared_policy(None) == declared_policy(scheduling("")) == Policy()
    assert declared_budgets(None) == declared_budgets(scheduling("")) == {}


def test_every_policy_of_the_file_is_the_queues_policy() -> None:
    policy = declared_policy(
        scheduling(
            """
  backfill: easy
  guaranteed_only: true
  packing: emptiest
  tie_break: declared
  fair_share: {now: true, half_life: 7 d, by_user: true}
  preemption:
    within_queue: lower-or-newer-equal
    reclaim: any
    borrow_and_preempt: lower-priority
    borrow_and_preempt_up_to: 50
    grace: 2 min
    minimum_runtime: 1 h
  queues:
    all: {}
    research: {parent: all, weight: 2.5}
    product: {parent: all, weight: 0}
"""
        )
    )
    assert policy == Policy(
        backfill=Backfill.EASY,
        preemption=PreemptionPolicy(WithinQueue.LOWER_OR_NEWER, Reclaim.ANY, 50.0, 3600.0, 120.0),
        fair=FairShare(now=True, half_life_s=7 * 86_400.0, by_user=True),
        guaranteed_only=True,
        node_tie=NodeTie.DECLARED,
        packing=Packing.EMPTIEST,
        weights={"research": 2.5, "product": 0},
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", None),
        ("{borrow_and_preempt_up_to: 50}", None),
        ("{borrow_and_preempt: lower-priority}", float("inf")),
        ("{borrow_and_preempt: lower-priority, borrow_and_preempt_up_to: -5}", -5.0),
    ],
)
def test_a_borrowing_job_preempts_up_to_the_threshold_and_only_if_it_may_at_all(
    text: str, expected: float | None
) -> None:
    assert declared_policy(scheduling(f"  preemption: {text}\n")).preemption.borrow_below == expected


def test_grace_that_is_not_given_is_the_default_and_zero_stays_zero() -> None:
    assert declared_policy(scheduling("  preemption: {}\n")).preemption.grace_s == PreemptionPolicy().grace_s
    assert declared_policy(scheduling("  preemption: {grace: 0 s}\n")).preemption.grace_s == 0


def test_quotas_are_by_pool_and_slack_is_marked() -> None:
    tree = declared_tree(
        scheduling(
            """
  queues:
    all: {guarantee: {h100: 8}}
    research: {parent: all, guarantee: {h100: 16}, borrow: {h100: 4}, lend: {h100: 2}, strategy: strict}
    product: {parent: all, guarantee: {h100: 16, b200: 8}, borrow: {h100: 4}}
    spare: {parent: all, guarantee: {h100: 8}, slack: true}
"""
        )
    )
    assert tree.by_name["research"].quotas == {"h100": Quota(16, 4, 2)}
    assert tree.by_name["product"].quotas == {"h100": Quota(16, 4), "b200": Quota(8, 0)}
    assert [q.name for q in tree.queues if q.slack] == ["spare"]
    assert tree.strict("research")


def test_budgets_are_by_queue_in_gpu_hours_and_seconds() -> None:
    found = declared_budgets(
        scheduling(
            """
  queues:
    research: {budget: {gpu_time: 5000 GPU-h, every: 30 d, starts: 2026-01-01, until: 2027-01-01}}
    product: {budget: {gpu_time: 100 GPU-h}}
    other: {}
"""
        )
    )
    year = [datetime(y, 1, 1, tzinfo=UTC).timestamp() for y in (2026, 2027)]
    assert found == {
        "research": Budget(5000, every_s=30 * 86_400.0, from_s=year[0], until_s=year[1]),
        "product": Budget(100),
    }


@pytest.mark.parametrize(
    "text",
    [
        "{gpu_time: 5000}",
        "{gpu_time: 5000 h}",
        "{gpu_time: 5000 GPU-h, every: 1 min}",
        "{gpu_time: 5000 GPU-h, until: soon}",
        "{every: 30 d}",
    ],
)
def test_a_budget_that_says_something_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        scheduling(f"  queues: {{research: {{budget: {text}}}}}\n")
