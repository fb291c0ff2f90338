"""Every transition of a job, without a process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clusterwright.engines.local import lifecycles
from clusterwright.engines.local.lifecycles import Action, Change, Started
from clusterwright.model.jobs import (
    MAX_LOST_STARTS,
    AgentIdentity,
    AttemptEnd,
    AttemptState,
    Cause,
    Exclusion,
    Exit,
    Job,
    JobId,
    JobSpec,
    JobState,
    TaskGroup,
    TaskPlacement,
)

N1, N2 = AgentIdentity("n1", 1, "b1", 100, 1), AgentIdentity("n2", 1, "b2", 200, 1)
TASKS = (TaskPlacement("main", 0, "n1", ("g0",)), TaskPlacement("main", 1, "n2", ("g0",)))


def pending(**more: Any) -> Job:
    spec = JobSpec("job", (TaskGroup(("p",), 2, 1),), **more)
    return Job(JobId("1"), spec, JobState.PENDING, "/ckpt", 0.0, 0.0)


def admitted(**more: Any) -> Job:
    change = lifecycles.begin(
        pending(**more), TASKS, agents=(N1, N2), flavor="h100", epoch=7, port=4000, why="fits", now_s=1.0
    )
    assert change.actions == (Action.LAUNCH,)
    opened = lifecycles.on_opened(change.job, 7, 1.0)
    assert opened.actions == (Action.LAUNCH,)
    return opened.job


def running(**more: Any) -> Job:
    return lifecycles.on_started(admitted(**more), 7, [Started(0, 11, 1, 2.0), Started(1, 12, 1, 2.0)], 2.0).job


def exits(job: Job, **ends: Exit) -> Change:
    return lifecycles.on_exited(job, 7, {int(k[1:]): (e, 3.0) for k, e in ends.items()}, 3.0)


def fenced(job: Job) -> Job:
    return lifecycles.on_fenced(job, 4.0).job


def state_of(job: Job) -> AttemptState:
    assert job.attempt is not None
    return job.attempt.state


def test_it_runs_only_when_every_rank_does() -> None:
    first = lifecycles.on_started(admitted(), 7, [Started(0, 11, 1, 2.0)], 2.0)
    assert first.job.state is JobState.STARTING
    second = lifecycles.on_started(first.job, 7, [Started(1, 12, 1, 2.5)], 2.5)
    assert second.job.state is JobState.RUNNING
    assert [e.kind for e in second.events] == ["started"]


def test_a_report_of_another_epoch_changes_nothing() -> None:
    job = running()
    assert lifecycles.on_started(job, 6, [Started(0, 99, 1, 2.0)], 2.0).job is job
    assert lifecycles.on_exited(job, 6, {0: (Exit(code=1), 3.0)}, 3.0).job is job


def test_a_repeated_report_changes_nothing() -> None:
    job = exits(running(), r0=Exit(code=0)).job
    again = exits(job, r0=Exit(code=1))
    assert (again.job, again.events) == (job, ())


def test_it_succeeds_when_every_rank_ended_with_0_and_nothing_is_left() -> None:
    change = exits(running(), r0=Exit(code=0), r1=Exit(code=0))
    assert change.actions == (Action.FENCE,)
    assert (change.job.state, state_of(change.job)) == (JobState.COMPLETING, AttemptState.FENCING)
    assert fenced(change.job).state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (Exit(code=3), Cause.USER_CODE),
        (Exit(signal=11), Cause.USER_CODE),
        (Exit(signal=9), Cause.UNKNOWN),
        (Exit(error="cannot start 'x': No such file or directory"), Cause.SETUP),
        (Exit(error="the process that watched this rank was killed"), Cause.PLATFORM),
    ],
)
def test_a_failure_is_charged_to_what_is_known(end: Exit, cause: Cause) -> None:
    job = exits(running(), r1=end).job
    assert job.attempt is not None
    assert job.attempt.cause is cause
    assert "rank 1 on n2" in job.attempt.detail
    assert fenced(job).state is JobState.FAILED
    assert fenced(job).cause is cause


def test_failures_are_retried_with_doubling_backoff_up_to_the_limit() -> None:
    job, waits = running(max_restarts=2, backoff_s=10.0), []
    for _ in range(2):
        job = fenced(exits(job, r0=Exit(code=1)).job)
        assert job.state is JobState.PENDING
        waits.append(job.not_before_s - 4.0)
        change = lifecycles.begin(job, TASKS, agents=(N1, N2), flavor="", epoch=7, port=1, why="", now_s=1.0)
        job = lifecycles.on_started(change.job, 7, [Started(0, 11, 1, 2.0), Started(1, 12, 1, 2.0)], 2.0).job
    assert waits == [10.0, 20.0]
    assert fenced(exits(job, r0=Exit(code=1)).job).state is JobState.FAILED


def test_a_lost_node_requeues_without_counting_and_is_excluded() -> None:
    change = lifecycles.on_node_lost(running(), N2, "gone", 3.0)
    assert change.actions == (Action.FENCE,)
    assert (change.job.state, state_of(change.job)) == (JobState.RECOVERING, AttemptState.FENCING)
    job = fenced(change.job)
    assert (job.state, job.restarts, job.not_before_s) == (JobState.PENDING, 0, 0.0)
    assert job.exclusions == (Exclusion("n2", 1),)
    assert job.attempt is not None
    assert job.attempt.lost == (N2,)


def test_losing_a_node_that_it_does_not_use_or_that_is_known_changes_nothing() -> None:
    job = running()
    assert lifecycles.on_node_lost(job, replace(N2, boot="other"), "gone", 3.0).job is job
    lost = lifecycles.on_node_lost(job, N2, "gone", 3.0).job
    assert lifecycles.on_node_lost(lost, N2, "gone", 3.0).job is lost


def test_a_second_node_lost_while_fencing_is_fenced_too() -> None:
    lost = lifecycles.on_node_lost(running(), N2, "gone", 3.0).job
    both = lifecycles.on_node_lost(lost, N1, "gone", 3.1).job
    assert both.attempt is not None
    assert both.attempt.lost == (N2, N1)
    assert fenced(both).exclusions == (Exclusion("n2", 1), Exclusion("n1", 1))


def test_cancel_before_the_start_ends_at_once() -> None:
    assert lifecycles.cancel(pending(), 1.0).job.state is JobState.CANCELLED


def test_cancel_stops_with_grace_then_kills() -> None:
    stopping = lifecycles.cancel(running(grace_s=5.0), 3.0)
    assert stopping.actions == (Action.TERMINATE,)
    assert (stopping.job.state, state_of(stopping.job)) == (JobState.COMPLETING, AttemptState.STOPPING)
    assert lifecycles.on_grace_over(stopping.job, 7.9).actions == ()
    killed = lifecycles.on_grace_over(stopping.job, 8.0)
    assert killed.actions == (Action.FENCE,)
    assert fenced(killed.job).state is JobState.CANCELLED


def test_a_job_that_obeys_is_not_kept_waiting_for_its_grace() -> None:
    stopping = lifecycles.cancel(running(), 3.0).job
    change = exits(stopping, r0=Exit(code=0), r1=Exit(signal=15))
    assert change.actions == (Action.FENCE,)
    assert fenced(change.job).state is JobState.CANCELLED


def test_cancel_while_recovering_ends_the_job_after_the_fence() -> None:
    recovering = lifecycles.on_node_lost(running(), N2, "gone", 3.0).job
    assert fenced(lifecycles.cancel(recovering, 3.5).job).state is JobState.CANCELLED


def test_cancel_does_not_turn_a_success_or_a_final_failure_into_something_else() -> None:
    done = exits(running(), r0=Exit(code=0), r1=Exit(code=0)).job
    assert fenced(lifecycles.cancel(done, 3.5).job).state is JobState.SUCCEEDED
    failed = exits(running(), r0=Exit(code=1)).job
    assert fenced(lifecycles.cancel(failed, 3.5).job).state is JobState.FAILED


def test_a_preempted_job_that_ends_with_0_on_sigterm_is_requeued_all_the_same() -> None:
    stopping = lifecycles.stop(running(), AttemptEnd.PREEMPTED, 3.0, "for a more urgent job").job
    assert stopping.state is JobState.PREEMPTING
    assert fenced(exits(stopping, r0=Exit(code=0), r1=Exit(code=0)).job).state is JobState.PENDING


def test_a_time_limit_ends_the_job_for_good() -> None:
    stopping = lifecycles.stop(running(), AttemptEnd.TIMEOUT, 3.0, "time limit of 1 s reached").job
    assert fenced(exits(stopping, r0=Exit(signal=15), r1=Exit(signal=15)).job).state is JobState.TIMEOUT


def test_a_job_that_loses_its_node_at_every_start_is_held_and_after_release_may_try_as_often() -> None:
    job, lost = admitted(), N2
    for number in range(1, 2 * MAX_LOST_STARTS + 1):
        change = lifecycles.on_fenced(lifecycles.on_node_lost(job, lost, "no heartbeat", 3.0).job, 4.0)
        assert change.job.held == (number % MAX_LOST_STARTS == 0)
        assert ("held" in [e.kind for e in change.events]) == change.job.held
        if change.job.held:
            assert f"{number} attempts in a row lost a node before every rank ran" in change.job.held_why
            assert "node n2 lost: no heartbeat" in change.job.held_why
        waiting = replace(change.job, held=False, held_why="")
        job = lifecycles.begin(
            waiting, TASKS, agents=(N1, lost), flavor="h100", epoch=8, port=4000, why="fits", now_s=5.0
        ).job


def test_a_loss_while_it_runs_starts_the_count_anew() -> None:
    assert fenced(lifecycles.on_node_lost(running(), N2, "gone", 3.0).job).lost_starts == 0
    assert fenced(lifecycles.on_node_lost(admitted(), N2, "gone", 3.0).job).lost_starts == 1


def test_a_node_lost_while_stopping_does_not_change_why_it_stopped() -> None:
    stopping = lifecycles.cancel(running(), 3.0).job
    assert fenced(lifecycles.on_node_lost(stopping, N1, "gone", 3.1).job).state is JobState.CANCELLED


def test_ends_that_the_fence_itself_causes_are_no_failures() -> None:
    lost = lifecycles.on_node_lost(running(), N2, "gone", 3.0).job
    change = exits(lost, r0=Exit(error="the process that watched this rank was killed"))
    assert change.events == ()
    assert change.job.attempt is not None
    assert change.job.attempt.ranks[0].exit == Exit(signal=9)
    assert change.job.attempt.end is AttemptEnd.NODE_LOST


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("code 0", Exit(code=0)),
        ("signal 15", Exit(signal=15)),
        ("error cannot start 'x y': no", Exit(error="cannot start 'x y': no")),
        ("", Exit(error="unreadable exit record: ''")),
        ("code x", Exit(error="unreadable exit record: 'code x'")),
    ],
)
def test_exit_records_are_read_and_never_guessed(line: str, end: Exit) -> None:
    assert lifecycles.parse_exit(line) == end


def unopened(**more: Any) -> Job:
    return lifecycles.begin(
        pending(**more), TASKS, agents=(N1, N2), flavor="h100", epoch=7, port=4000, why="fits", now_s=1.0
    ).job


def test_the_epoch_is_final_when_it_was_opened_and_only_once() -> None:
    job = lifecycles.on_opened(unopened(), 42, 2.0).job
    assert job.attempts[0].epoch == 42
    assert lifecycles.on_opened(job, 43, 3.0) == Change(job)


def test_a_cancel_before_anything_was_started_waits_for_no_grace() -> None:
    change = lifecycles.cancel(unopened(grace_s=600.0), 2.0)
    assert change.actions == (Action.FENCE,)
    assert fenced(change.job).state is JobState.CANCELLED


def test_a_directory_that_is_waited_for_costs_no_restart_and_a_wrong_one_fails() -> None:
    waits = fenced(lifecycles.on_unlaunchable(unopened(), "busy", 2.0, waits=True).job)
    assert (waits.state, waits.restarts, waits.attempts[0].end) == (JobState.PENDING, 0, AttemptEnd.BLOCKED)
    fails = fenced(lifecycles.on_unlaunchable(unopened(), "no such", 2.0).job)
    assert (fails.state, fails.cause, fails.detail) == (JobState.FAILED, Cause.SETUP, "no such")


def test_a_shutdown_shortens_the_grace_of_what_stops_already_and_never_prolongs_it() -> None:
    stopping = lifecycles.cancel(running(grace_s=60.0), 3.0).job
    sooner = lifecycles.stop(stopping, AttemptEnd.SHUTDOWN, 4.0, "the cluster was stopped", 1.0).job.attempts[0]
    assert (sooner.stop_by_s, sooner.end) == (5.0, AttemptEnd.CANCELLED)
    later = lifecycles.stop(stopping, AttemptEnd.SHUTDOWN, 4.0, "the cluster was stopped", 600.0).job.attempts[0]
    assert later.stop_by_s == 63.0


def test_an_epoch_that_stays_open_is_told() -> None:
    change = lifecycles.on_fenced(lifecycles.on_unlaunchable(unopened(), "x", 2.0).job, 3.0, "no space")
    assert change.events[0].data["unclosed"] == "no space"


def test_a_long_fence_says_where_to_look_for_what_cannot_be_killed() -> None:
    job = exits(running(), r0=Exit(code=1)).job
    assert lifecycles.why_not_running(job.attempts[0], 4.0, 2).next_step == ""
    assert "uninterruptible" in lifecycles.why_not_running(job.attempts[0], 99.0, 2).next_step
