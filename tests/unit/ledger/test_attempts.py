from __future__ import annotations

import pytest

from clusterwright.ledger.attempts import ENTRIES, Ending, charge_attempt, charge_finished, charge_part
from clusterwright.ledger.lines import Entry, Line
from clusterwright.model.jobs import Cause

from .builders import attempt, charged, one


def test_a_completed_attempt_is_productive_from_the_moment_it_runs() -> None:
    assert charged(attempt()) == {one(Line.STARTING): 80.0, one(Line.PRODUCTIVE): 720.0}


def test_stalls_are_taken_out_of_the_work_they_are_in() -> None:
    found = charged(attempt(saved_s=70.0, stalled_s=6.0, stalled_since_s=2.5))
    assert found == {one(Line.STARTING): 80.0, one(Line.PRODUCTIVE): 652.0, one(Line.CHECKPOINT): 68.0}


def test_a_failure_loses_what_was_not_saved() -> None:
    found = charged(attempt(Ending.FAILED, cause=Cause.HARDWARE, saved_s=70.0, stopped_s=90.0))
    assert found == {
        one(Line.STARTING): 80.0,
        one(Line.PRODUCTIVE): 480.0,
        one(Line.LOST, "hardware"): 160.0,
        one(Line.HELD_IDLE): 80.0,
    }


@pytest.mark.parametrize("cause", Cause)
def test_a_failure_without_any_checkpoint_is_charged_to_its_cause(cause: Cause) -> None:
    assert charged(attempt(Ending.FAILED, cause=cause))[one(Line.FAILED, cause.value)] == 720.0


def test_a_failure_before_the_first_checkpoint_of_a_resumed_attempt_is_lost_since_the_earlier_one() -> None:
    found = charged(attempt(Ending.FAILED, cause=Cause.PLATFORM, resumed=True))
    assert found == {one(Line.STARTING): 80.0, one(Line.LOST, "platform"): 720.0}


def test_a_start_that_fails_is_charged_to_its_cause_alone() -> None:
    found = charged(attempt(Ending.FAILED, cause=Cause.SETUP, started_s=None))
    assert found == {one(Line.FAILED, "setup"): 800.0}


def test_a_preemption_costs_what_was_not_saved() -> None:
    found = charged(attempt(Ending.PREEMPTED, saved_s=70.0))
    assert found == {one(Line.STARTING): 80.0, one(Line.PRODUCTIVE): 480.0, one(Line.PREEMPTED): 240.0}


@pytest.mark.parametrize("ending", [Ending.CANCELLED, Ending.TIME_LIMIT])
def test_what_its_owner_or_the_limit_ended_unsaved_is_lost_and_says_why(ending: Ending) -> None:
    assert charged(attempt(ending))[one(Line.LOST, ending.value)] == 720.0


def test_a_service_that_is_cancelled_was_productive() -> None:
    found = charged(attempt(Ending.CANCELLED, saved_s=100.0))
    assert found == {one(Line.STARTING): 80.0, one(Line.PRODUCTIVE): 720.0}


def test_a_cut_off_attempt_is_productive_but_says_what_is_not_saved() -> None:
    found = charged(attempt(Ending.RUNNING, saved_s=70.0))
    assert found[one(Line.PRODUCTIVE, "not saved yet")] == 240.0
    assert found[one(Line.PRODUCTIVE)] == 480.0


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.PREEMPTED, Ending.CANCELLED])
def test_interrupted_work_is_unknown_where_nobody_writes_checkpoints_down(ending: Ending) -> None:
    found = charged(attempt(ending, checkpoints_known=False))
    assert found == {one(Line.STARTING): 80.0, one(Line.UNKNOWN, "checkpoints not recorded"): 720.0}


def test_completed_work_is_productive_even_where_nobody_writes_checkpoints_down() -> None:
    assert charged(attempt(checkpoints_known=False))[one(Line.PRODUCTIVE)] == 720.0


@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize("started_s", [None, 10.0])
def test_every_way_to_end_accounts_for_all_of_the_time(ending: Ending, started_s: float | None) -> None:
    assert sum(charged(attempt(ending, started_s=started_s, stopped_s=93.7)).values()) == 800.0


@pytest.mark.parametrize(
    "facts",
    [
        {"started_s": 101.0},
        {"admitted_s": 11.0},
        {"saved_s": 9.0},
        {"saved_s": 95.0, "stopped_s": 90.0},
        {"stopped_s": 101.0},
        {"saved_s": 50.0, "started_s": None},
    ],
)
def test_instants_out_of_order_are_refused(facts: dict[str, float | None]) -> None:
    with pytest.raises(ValueError, match="order"):
        charged(attempt(**facts))


@pytest.mark.parametrize("facts", [{"stalled_s": 61.0}, {"stalled_since_s": 31.0}, {"stalled_s": -1.0}])
def test_stalls_longer_than_the_work_are_refused(facts: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="stalls"):
        charged(attempt(saved_s=70.0, **facts))


def test_parts_of_an_attempt_add_up_to_the_whole() -> None:
    record = attempt(Ending.FAILED, saved_s=70.0, stalled_s=3.3337, stalled_since_s=1.0, stopped_s=90.0)
    whole, parts = [0] * len(ENTRIES), [0] * len(ENTRIES)
    charge_attempt(whole, record)
    for begin in range(0, 100_000, 7_001):
        charge_part(parts, record, begin, begin + 7_001)
    assert parts == whole


def test_every_entry_of_attempts_is_there_once() -> None:
    assert len(set(ENTRIES)) == len(ENTRIES)
    assert Entry(Line.FAILED, "out of memory") in ENTRIES


def test_an_attempt_that_finished_is_charged_alike_without_a_record() -> None:
    direct, recorded = [0] * len(ENTRIES), [0] * len(ENTRIES)
    charge_finished(direct, 8, 10_000, 84_000, 6_000)
    charge_attempt(recorded, attempt(saved_s=100.0, stalled_s=6.0))
    assert direct == recorded
