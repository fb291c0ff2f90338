"""What every engine must do, whoever runs the processes behind it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import Cause, Job, JobId, JobSpec, JobState, NodeState, TaskGroup
from clusterwright.model.outlooks import BlockerKind
from clusterwright.ports.engines import Engine

pytestmark = pytest.mark.local

PRINT = "import os, sys; print(os.environ['RANK'], os.environ['WORLD_SIZE'], sys.argv[1:])"


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code, *arguments)


def spec(argv: tuple[str, ...], count: int = 1, gpus: int = 1, name: str = "job", **more: Any) -> JobSpec:
    least = more.pop("min_count", None)
    return JobSpec(name, (TaskGroup(argv, count, gpus, min_count=least),), **{"grace_s": 0.5, **more})


def wait(engine: Engine, job: JobId, condition: Callable[[Job], bool], seconds: float = 60.0) -> Job:
    deadline, seen = time.monotonic() + seconds, 0
    while not condition(found := engine.job(job)):
        assert time.monotonic() < deadline, (found.state, found.detail, engine.why(job))
        events = engine.events(seen, job=job, wait_s=1.0)
        seen = events[-1].seq if events else seen
    return found


def ended(engine: Engine, job: JobId) -> Job:
    return wait(engine, job, lambda j: j.state.final)


def running(engine: Engine, job: JobId) -> Job:
    return wait(engine, job, lambda j: j.state is JobState.RUNNING)


def test_a_job_runs_to_success_with_one_rank_per_gpu(engine: Engine) -> None:
    job = ended(engine, engine.submit(spec(python(PRINT), count=2, gpus=2)))
    assert job.state is JobState.SUCCEEDED
    lines = sorted(line.text for line in engine.logs(job.id))
    assert lines == [f"{rank} 4 []" for rank in range(4)]


def test_hostile_arguments_arrive_as_they_are(engine: Engine) -> None:
    hostile = ["a b", "'\"", "; rm -rf /", "$(id)", "ü\n2", "", "*", "--", "-x", "\\"]
    job = ended(engine, engine.submit(spec(python(PRINT, *hostile), gpus=0, name="'; DROP TABLE jobs; --")))
    assert job.state is JobState.SUCCEEDED
    assert [line.text for line in engine.logs(job.id)] == [f"0 1 {hostile}"]


def test_a_failing_job_says_which_rank_failed_and_how(engine: Engine) -> None:
    argv = python("import os, sys, time; sys.exit(3) if os.environ['RANK'] == '1' else time.sleep(600)")
    job = ended(engine, engine.submit(spec(argv, gpus=2)))
    assert (job.state, job.cause) == (JobState.FAILED, Cause.USER_CODE)
    assert "rank 1" in job.detail
    assert "exit code 3" in job.detail


def test_a_program_that_is_not_there_is_a_setup_failure(engine: Engine) -> None:
    job = ended(engine, engine.submit(spec(("/no/such/program",))))
    assert (job.state, job.cause) == (JobState.FAILED, Cause.SETUP)
    assert "/no/such/program" in job.detail


def test_a_failing_job_is_tried_again_as_often_as_allowed(engine: Engine) -> None:
    argv = python("import os, sys; sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] != '2')")
    job = ended(engine, engine.submit(spec(argv, max_restarts=2, backoff_s=0.01)))
    assert job.state is JobState.SUCCEEDED
    assert [a.number for a in job.attempts] == [1, 2, 3]
    assert len({a.epoch for a in job.attempts}) == 3


def test_cancel_ends_a_running_job_also_one_that_ignores_sigterm(engine: Engine) -> None:
    argv = python("import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True); time.sleep(600)")
    job = engine.submit(spec(argv))
    running(engine, job)
    engine.cancel(job)
    assert ended(engine, job).state is JobState.CANCELLED
    assert all(n.state is NodeState.IDLE for n in engine.nodes())


def test_cancel_of_a_job_that_ended_changes_nothing(engine: Engine) -> None:
    job = ended(engine, engine.submit(spec(python("pass"))))
    engine.cancel(job.id)
    assert engine.job(job.id) == job


def test_a_time_limit_ends_a_job(engine: Engine) -> None:
    job = ended(engine, engine.submit(spec(python("import time; time.sleep(600)"), time_limit_s=0.2)))
    assert job.state is JobState.TIMEOUT


def test_a_gang_waits_for_all_its_gpus_and_says_why_then_runs(engine: Engine) -> None:
    first = engine.submit(spec(python("import time; time.sleep(600)"), count=1, gpus=2))
    running(engine, first)
    gang = engine.submit(spec(python("pass"), count=2, gpus=2))
    assert engine.job(gang).state is JobState.PENDING
    (blocker,) = engine.why(gang)
    assert blocker.kind is BlockerKind.HARDWARE_WAIT
    assert (blocker.numbers["free_gpus"], blocker.numbers["needed_gpus"]) == (2, 4)
    assert blocker.holders == (first,)
    engine.cancel(first)
    assert ended(engine, gang).state is JobState.SUCCEEDED


def test_an_elastic_gang_starts_with_what_is_free(engine: Engine) -> None:
    first = engine.submit(spec(python("import time; time.sleep(600)"), gpus=2))
    running(engine, first)
    gang = ended(engine, engine.submit(spec(python(PRINT), count=2, gpus=2, min_count=1)))
    engine.cancel(first)
    assert sorted(line.text for line in engine.logs(gang.id)) == ["0 2 []", "1 2 []"]
    ended(engine, first)


def test_what_can_never_run_says_so(engine: Engine) -> None:
    job = engine.submit(spec(python("pass"), count=3, gpus=2))
    assert [b.kind for b in engine.why(job)] == [BlockerKind.NEVER_FITS]
    engine.cancel(job)
    assert engine.job(job).state is JobState.CANCELLED


def test_no_gpu_is_given_to_two_jobs_at_once(engine: Engine) -> None:
    jobs = [engine.submit(spec(python("import time; time.sleep(0.2)"))) for _ in range(6)]
    done = [ended(engine, j).attempts[0] for j in jobs]
    for one in done:
        for other in done:
            if one is not other and one.tasks[0].devices == other.tasks[0].devices:
                same_node = one.tasks[0].node == other.tasks[0].node
                assert not same_node or one.ended_at_s <= other.admitted_at_s or other.ended_at_s <= one.admitted_at_s  # type: ignore[operator]


def test_history_only_grows_and_tells_a_job_from_submission_to_end(engine: Engine) -> None:
    before = engine.events()
    job = ended(engine, engine.submit(spec(python("pass"))))
    after = engine.events()
    assert after[: len(before)] == before
    assert [e.seq for e in after] == list(range(1, len(after) + 1))
    kinds = [e.kind for e in engine.events(job=job.id)]
    assert [k for k in kinds if k != "rank_exited"] == [
        "submitted",
        "admitted",
        "started",
        "fencing",
        "fenced",
        "ended",
    ]


def test_nodes_say_what_they_have_and_what_is_used(engine: Engine) -> None:
    job = engine.submit(spec(python("import time; time.sleep(600)"), gpus=1))
    node = running(engine, job).attempts[0].nodes[0]
    found = {n.spec.name: n for n in engine.nodes()}
    assert list(found) == ["n1", "n2"]
    assert found[node].state is NodeState.MIXED
    assert len(found[node].used) == 1
    engine.cancel(job)
    ended(engine, job)


def test_an_unknown_job_is_the_users_mistake_and_names_the_known_ones(engine: Engine) -> None:
    for call in (engine.job, engine.why, engine.cancel):
        with pytest.raises(InvalidInput, match="no job '999'"):
            call(JobId("999"))


def test_an_unknown_excluded_node_is_refused_with_the_choices(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="nodes: n1, n2"):
        engine.submit(spec(python("pass"), exclude=("n7",)))


def test_following_logs_ends_with_the_job_and_misses_no_line(engine: Engine) -> None:
    code = "import time\nfor i in range(5): print(i, flush=True); time.sleep(0.05)\nprint('end', end='')"
    job = engine.submit(spec(python(code)))
    running(engine, job)
    assert [line.text for line in engine.logs(job, follow=True)] == ["0", "1", "2", "3", "4", "end"]
