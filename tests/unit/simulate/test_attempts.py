import pytest

from clusterwright.simulate.attempts import (
    ALWAYS,
    NEVER,
    Attempt,
    Checkpoints,
    Spent,
    leave,
    plan_checkpoints,
    saved_ms,
    spend,
)

#: 100 of work, 10 of stall; 25 to start; 1,000 of work: 9 checkpoints, the end needs none.
STOPPING = Attempt(1000, Checkpoints(100, 10), starting_ms=25)
#: The copy stops the work for 10, the write goes on for 60 beside it.
BEHIND = Attempt(1000, Checkpoints(100, 10, 60), starting_ms=25)


def test_an_attempt_that_is_left_alone_does_all_its_work() -> None:
    assert STOPPING.length_ms == 25 + 1000 + 9 * 10
    assert spend(STOPPING, 10_000) == Spent(25, 1000, 90, 0, finished=True)


@pytest.mark.parametrize(
    ("ran_ms", "starting", "saved", "blocked", "lost"),
    [
        (0, 0, 0, 0, 0),
        (24, 24, 0, 0, 0),
        (25 + 99, 25, 0, 0, 99),
        (25 + 100, 25, 0, 0, 100),
        (25 + 109, 25, 0, 9, 100),  # within the stall: not saved yet
        (25 + 110, 25, 100, 10, 0),
        (25 + 110 + 40, 25, 100, 10, 40),
        (25 + 9 * 110 + 99, 25, 900, 90, 99),
    ],
)
def test_an_interruption_loses_the_work_since_the_last_checkpoint(
    ran_ms: int, starting: int, saved: int, blocked: int, lost: int
) -> None:
    spent = spend(STOPPING, ran_ms)
    assert (spent.starting_ms, spent.productive_ms, spent.blocked_ms, spent.lost_ms) == (starting, saved, blocked, lost)
    assert spent.total_ms == ran_ms


def test_a_checkpoint_written_behind_counts_once_it_is_written() -> None:
    assert spend(BEHIND, 25 + 110 + 59) == Spent(25, 0, 0, 159, 10)
    assert spend(BEHIND, 25 + 110 + 60) == Spent(25, 100, 10, 60)


def test_a_slow_write_stretches_the_interval() -> None:
    slow = plan_checkpoints(60, 2, size_bytes=5.68e12, write_bytes_per_s=20e9)
    assert (slow.interval_ms, slow.every_ms) == (60_000, 284_000)
    attempt = Attempt(1_000_000, slow)
    assert attempt.length_ms == 1_000_000 + 3 * 2000


def test_without_checkpoints_everything_is_lost() -> None:
    assert spend(Attempt(1000, NEVER, 10), 900) == Spent(10, lost_ms=890)


def test_what_counts_at_once_is_never_lost() -> None:
    assert spend(Attempt(1000, ALWAYS, 10), 900) == Spent(10, 890)


def test_time_until_the_gpus_are_released_is_held() -> None:
    assert spend(STOPPING, 25 + 150, held_ms=600).held_ms == 600
    assert spend(STOPPING, 25 + 150, held_ms=600).total_ms == 775


def test_a_silent_failure_takes_the_checkpoints_after_it() -> None:
    # Three checkpoints were written by 400; the failure came during the second interval.
    assert spend(STOPPING, 400).productive_ms == 300
    assert spend(STOPPING, 400, wrong_after_ms=25 + 150) == Spent(25, 100, 10, 245, 20)
    assert spend(STOPPING, 400, wrong_after_ms=10) == Spent(25, 0, 0, 345, 30)
    assert spend(STOPPING, 10_000, wrong_after_ms=25 + 150) == Spent(25, 100, 10, 900, 80)
    assert spend(STOPPING, 10_000, wrong_after_ms=5000).finished


def test_who_is_told_to_leave_saves_when_the_grace_allows_it() -> None:
    assert leave(STOPPING, 25 + 150, grace_ms=10) == (25 + 160, Spent(25, 140, 20, 0))
    assert leave(STOPPING, 25 + 150, grace_ms=9) == (25 + 150, Spent(25, 100, 10, 40))
    assert leave(BEHIND, 25 + 150, grace_ms=69) == (25 + 170, Spent(25, 100, 10, 40, 20))
    assert leave(BEHIND, 25 + 150, grace_ms=70) == (25 + 220, Spent(25, 140, 20, 0, 60))


def test_a_checkpoint_that_has_begun_is_completed() -> None:
    assert leave(STOPPING, 25 + 104, grace_ms=6) == (25 + 110, Spent(25, 100, 10, 0))
    assert leave(STOPPING, 25 + 104, grace_ms=5) == (25 + 104, Spent(25, 0, 0, 100, 4))


def test_who_cannot_save_waits_for_what_is_being_written() -> None:
    # At 25 + 150 the first copy, of 25 + 110, needs 20 more to be durable; a new one would need 10 + 60.
    assert leave(BEHIND, 25 + 150, grace_ms=20) == (25 + 170, Spent(25, 100, 10, 40, 20))
    assert leave(BEHIND, 25 + 150, grace_ms=19) == (25 + 150, Spent(25, 0, 0, 140, 10))
    assert leave(BEHIND, 25 + 110, grace_ms=1000) == (25 + 170, Spent(25, 100, 10, 0, 60))


def test_who_has_nothing_to_save_leaves_at_once() -> None:
    assert leave(STOPPING, 25 + 110, grace_ms=1000) == (25 + 110, Spent(25, 100, 10, 0))
    assert leave(STOPPING, 20, grace_ms=1000) == (20, Spent(20, 0, 0, 0))
    assert leave(Attempt(1000, NEVER), 400, grace_ms=1000) == (400, Spent(0, 0, 0, 400))
    assert leave(Attempt(1000, ALWAYS), 400, grace_ms=1000) == (400, Spent(0, 400, 0, 0))


def test_who_has_ended_is_not_told_to_leave() -> None:
    assert leave(STOPPING, STOPPING.length_ms + 5, 100) == (STOPPING.length_ms, Spent(25, 1000, 90, 0, finished=True))


def test_saved_work_is_known_while_it_runs() -> None:
    assert [saved_ms(BEHIND, 25 + t) for t in (0, 169, 170, 280, 5000)] == [0, 0, 100, 200, 900]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Checkpoints(-1),
        lambda: Checkpoints(0, 5),
        lambda: Attempt(0),
        lambda: plan_checkpoints(60, 1, 10.0),
        lambda: plan_checkpoints(0, 1),
        lambda: spend(STOPPING, -1),
    ],
)
def test_times_that_cannot_be_are_refused(make: object) -> None:
    with pytest.raises(ValueError):
        make()  # type: ignore[operator]
