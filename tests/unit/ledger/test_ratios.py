from __future__ import annotations

import pytest

from clusterwright.ledger.lines import Account, Entry, Line
from clusterwright.ledger.ratios import (
    allocated_share,
    fairness,
    goodput_share,
    jain_index,
    useful_of_allocated,
)
from clusterwright.ledger.totals import Lines

from .builders import US


def lines(**of: int) -> Lines:
    return Lines({(US, Entry(Line[name])): n for name, n in of.items()})


def test_useful_and_allocated_utilisation_differ_by_what_was_held_for_nothing() -> None:
    found = lines(FREE=40, UNHEALTHY=10, PRODUCTIVE=30, STARTING=5, LOST=10, PREEMPTED=5)
    assert goodput_share(found) == 0.3
    assert allocated_share(found) == 0.5
    assert useful_of_allocated(found) == 0.6


def test_an_unknown_interval_of_a_job_was_held_and_one_of_a_node_was_not() -> None:
    job = Lines({(US, Entry(Line.UNKNOWN, "checkpoints not recorded")): 5, (US, Entry(Line.PRODUCTIVE)): 5})
    node = Lines({(Account("h100"), Entry(Line.UNKNOWN, "the engine was stopped")): 5, (US, Entry(Line.PRODUCTIVE)): 5})
    assert (allocated_share(job), allocated_share(node)) == (1.0, 0.5)


def test_shares_of_nothing_are_unknown() -> None:
    assert goodput_share(Lines({})) is None
    assert allocated_share(Lines({})) is None
    assert useful_of_allocated(lines(FREE=1)) is None


def test_jain_gives_the_share_of_those_served_alike() -> None:
    assert jain_index([3.0, 3.0, 3.0]) == 1.0
    assert jain_index([1.0, 0.0, 0.0, 0.0]) == 0.25
    assert jain_index([1.0, 2.0, 3.0]) == pytest.approx(36 / 42)


def test_jain_holds_for_tiny_and_huge_amounts() -> None:
    assert jain_index([1e-200, 1e-200]) == 1.0
    assert jain_index([1e200, 1e200]) == 1.0


def test_jain_of_nothing_is_unknown() -> None:
    assert jain_index([]) is None
    assert jain_index([0.0, 0.0]) is None


def test_negative_amounts_have_no_jain_index() -> None:
    with pytest.raises(ValueError, match="negative"):
        jain_index([1.0, -1.0])


def test_fairness_compares_what_queues_got_with_what_they_were_entitled_to() -> None:
    assert fairness({"a": 10.0, "b": 30.0}, {"a": 10.0, "b": 30.0}) == 1.0
    assert fairness({"a": 10.0}, {"a": 10.0, "b": 30.0}) == 0.5
    assert fairness({"a": 10.0, "guest": 5.0}, {"a": 10.0, "guest": 0.0}) == 1.0
