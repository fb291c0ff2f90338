"""Fair share: whom a job may evict, from whom first, and usage that fades."""

from __future__ import annotations

import math
from random import Random

import pytest

from clusterwright.queueing.fairness import DecayedUsage, Take, heaviest, may_evict
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import Queue, QueueTree
from clusterwright.queueing.usages import Usage

from .quota_table import FLAVOR, queue

DAY = 86_400.0


def usage(*queues: Queue, used: dict[str, float], weights: dict[str, float] | None = None) -> Usage:
    tree = Usage(QueueTree(queues), Policy(weights=weights or {}), (FLAVOR,))
    for name, gpus in used.items():
        tree.add(name, FLAVOR, gpus)
    return tree


def flat(used: dict[str, float], weights: dict[str, float] | None = None) -> Usage:
    """Three queues without guarantee that share 30 GPUs of their group."""
    return usage(queue("group", 30, None), *(queue(q, 0) for q in "abc"), used=used, weights=weights)


def take(name: str, gpus: float) -> Take:
    return Take(name, FLAVOR, gpus)


# -- whom a job may evict --------------------------------------------------------------------------------------------


def test_a_job_may_evict_while_its_queue_stays_at_or_below_what_the_other_keeps() -> None:
    tree = flat({"a": 20, "b": 10})
    assert may_evict(tree, take("c", 10), take("a", 10))  # 10 ≤ 20 − 10
    assert not may_evict(tree, take("c", 11), take("a", 10))
    assert not may_evict(tree, take("c", 10), take("a", 11))


def test_no_eviction_can_be_answered_by_its_reverse() -> None:
    tree = flat({"a": 15, "b": 15})
    assert not may_evict(tree, take("c", 8), take("a", 8))
    tree.remove("a", FLAVOR, 7)
    tree.add("c", FLAVOR, 7)
    assert not may_evict(tree, take("a", 7), take("c", 7))


def test_weights_count() -> None:
    assert not may_evict(flat({"a": 15}), take("c", 10), take("a", 10))
    assert may_evict(flat({"a": 15}, {"c": 2}), take("c", 10), take("a", 10))
    assert not may_evict(flat({"a": 15}, {"c": 0}), take("c", 1), take("a", 10))


def test_a_queue_within_its_guarantee_is_no_victim() -> None:
    tree = usage(queue("group", 0, None), queue("a", 20), queue("b", 10), used={"a": 20, "b": 10})
    assert not may_evict(tree, take("b", 1), take("a", 1))


def test_a_queue_that_owes_nothing_takes_back_what_is_borrowed() -> None:
    tree = usage(queue("group", 0, None), queue("a", 20), queue("b", 10), used={"a": 30})
    assert may_evict(tree, take("b", 10), take("a", 10))
    assert not may_evict(tree, take("b", 11), take("a", 10))


def branches(used: dict[str, float]) -> Usage:
    """left (a, b) and right (c), each with 10 GPUs guaranteed to the branch, and 20 more above both."""
    return usage(
        queue("root", 20, None),
        queue("left", 10, "root"),
        queue("right", 10, "root"),
        queue("a", 0, "left"),
        queue("b", 0, "left"),
        queue("c", 0, "right"),
        used=used,
    )


def test_queues_of_two_branches_are_compared_by_what_their_branches_take() -> None:
    tree = branches({"a": 6, "b": 6, "c": 28})
    # The branch of a takes 2 of the shared 20, that of c 18: what a itself uses of its branch does not matter.
    assert may_evict(tree, take("a", 8), take("c", 8))
    assert not may_evict(tree, take("a", 9), take("c", 8))


def test_a_branch_within_its_guarantee_has_no_victims_for_another_branch() -> None:
    tree = branches({"a": 8, "c": 30})
    assert tree.share("a") > 0
    assert not may_evict(tree, take("c", 1), take("a", 4))
    assert may_evict(tree, take("b", 4), take("a", 4))


def test_within_a_queue_shares_do_not_decide_and_other_trees_share_nothing() -> None:
    tree = usage(queue("a", 10, None), queue("b", 10, None), used={"a": 10, "b": 12})
    assert may_evict(tree, take("a", 5), take("a", 5))
    assert not may_evict(tree, take("a", 1), take("b", 1))
    assert not may_evict(tree, take("gone", 1), take("b", 1))


# -- from whom first -------------------------------------------------------------------------------------------------


def test_the_queue_that_borrows_most_gives_first() -> None:
    tree = flat({"a": 12, "b": 18})
    assert heaviest(tree, "c", ["a", "b"]) == "b"
    assert heaviest(tree, "c", ["a"]) == "a"
    assert heaviest(tree, "c", []) is None


def test_the_branch_that_takes_most_is_entered_before_its_queues_are_compared() -> None:
    tree = branches({"a": 16, "b": 10, "c": 14})
    assert heaviest(tree, "c", ["a", "b", "c"]) == "a"
    tree.add("c", FLAVOR, 20)
    assert heaviest(tree, "a", ["a", "b", "c"]) == "c"


def test_own_branch_is_entered_even_if_it_takes_nothing_from_above() -> None:
    tree = branches({"a": 6, "b": 4})
    assert heaviest(tree, "b", ["a", "c"]) == "a"
    assert heaviest(tree, "c", ["a", "b"]) is None


def test_a_queue_may_always_turn_to_its_own_jobs() -> None:
    tree = usage(queue("group", 0, None), queue("a", 10), queue("b", 10), used={"a": 10})
    assert heaviest(tree, "a", ["a"]) == "a"
    assert heaviest(tree, "b", ["a"]) is None


# -- usage over time -------------------------------------------------------------------------------------------------


def integral(gpus: float, start: float, end: float, now: float, half_life: float) -> float:
    """∫ g · 2^((x − now) / h) dx over the interval, by a fine sum of midpoints."""
    steps = 20_000
    width = (end - start) / steps
    return sum(gpus * 2 ** ((start + (i + 0.5) * width - now) / half_life) * width for i in range(steps))


def test_usage_halves_in_a_half_life() -> None:
    decayed = DecayedUsage(DAY)
    decayed.charge("a", 8, 0, 100)
    before = decayed.value("a", 100)
    assert decayed.value("a", 100 + DAY) == pytest.approx(before / 2, rel=1e-12)
    assert decayed.value("a", 100 + 10 * DAY) == pytest.approx(before / 1024, rel=1e-12)


def test_an_interval_counts_as_the_integral_of_what_is_left_of_it() -> None:
    decayed = DecayedUsage(DAY)
    decayed.charge("a", 8, 1000, 200_000)
    decayed.charge("a", 3, 150_000, 160_000)
    expected = integral(8, 1000, 200_000, 250_000, DAY) + integral(3, 150_000, 160_000, 250_000, DAY)
    assert decayed.value("a", 250_000) == pytest.approx(expected, rel=1e-7)


def test_a_running_job_counts_as_it_runs_and_ends_as_if_charged_at_once() -> None:
    running, charged = DecayedUsage(DAY), DecayedUsage(DAY)
    running.begin("a", 8, 5000)
    assert running.value("a", 5000) == 0
    assert running.value("a", 5060) == pytest.approx(8 * 60, rel=1e-3)
    assert running.value("a", 5000 + 1000 * DAY) == pytest.approx(8 * DAY / math.log(2), rel=1e-9)
    assert running.value("a", 90_000) == pytest.approx(integral(8, 5000, 90_000, 90_000, DAY), rel=1e-7)
    running.end("a", 8, 100_000)
    charged.charge("a", 8, 5000, 100_000)
    assert running.value("a", 300_000) == pytest.approx(charged.value("a", 300_000), rel=1e-9)


def test_order_holds_over_years_of_short_half_lives() -> None:
    """Far beyond what a float could grow to without a new origin: 2^2920 of the first day."""
    decayed, random = DecayedUsage(DAY / 4), Random(1)
    kept: list[tuple[str, float, float, float]] = []
    for day in range(730):
        key, gpus, hours = random.choice("abc"), random.randint(1, 64), random.uniform(1, 30)
        kept.append((key, gpus, day * DAY, day * DAY + hours * 3600))
        decayed.charge(*kept[-1])
    now = 730 * DAY + 8 * 3600
    full = DAY / 4 / math.log(2)
    for key in "abc":
        expected = sum(
            g * full * (math.exp((b - now) / full) - math.exp((a - now) / full)) for k, g, a, b in kept if k == key
        )
        assert decayed.value(key, now) == pytest.approx(expected, rel=1e-9)


def test_weights_divide_usage_and_weight_zero_comes_last() -> None:
    decayed = DecayedUsage(DAY, {"b": 2, "c": 0})
    for key in "abc":
        decayed.charge(key, 4, 0, 60)
    assert decayed.value("b") == decayed.value("a") / 2
    assert decayed.value("c") == math.inf
    assert decayed.value("never") == 0


def test_without_a_time_the_latest_that_was_told_counts() -> None:
    decayed = DecayedUsage(DAY)
    decayed.charge("a", 4, 0, 60)
    decayed.charge("b", 4, DAY, DAY + 60)
    assert decayed.value("a") == decayed.value("a", DAY + 60)
    assert decayed.value("a") == pytest.approx(decayed.value("b") / 2, rel=1e-9)


def test_a_fork_keeps_what_was_and_goes_its_own_way() -> None:
    decayed = DecayedUsage(DAY)
    decayed.begin("a", 4, 0)
    fork = decayed.fork()
    fork.end("a", 4, 100)
    assert fork.value("a", DAY) < decayed.value("a", DAY)
    decayed.end("a", 4, 100)
    assert fork.value("a", DAY) == decayed.value("a", DAY)


@pytest.mark.parametrize("half_life", [0.0, -1.0, math.inf, math.nan])
def test_an_impossible_half_life_is_refused(half_life: float) -> None:
    with pytest.raises(ValueError, match="half_life_s"):
        DecayedUsage(half_life)
