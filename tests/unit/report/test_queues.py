"""Tables of jobs and nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clusterwright.model.jobs import (
    Attempt,
    AttemptState,
    Cause,
    Job,
    JobId,
    JobSpec,
    JobState,
    Node,
    NodeSpec,
    NodeState,
    TaskGroup,
    TaskPlacement,
)
from clusterwright.model.outlooks import Blocker, BlockerKind, Outlook, PromisedStart
from clusterwright.report.queues import job_values, render_jobs, render_nodes, render_why


def job(number: int, state: JobState = JobState.PENDING, **more: Any) -> Job:
    spec = JobSpec("train", (TaskGroup(("p",), 2, 4, min_count=1),))
    return Job(JobId(str(number)), spec, state, "/ckpt", 100.0, 100.0, **more)


def attempt(state: AttemptState) -> Attempt:
    tasks = (TaskPlacement("main", 0, "n1", ("0", "1", "2", "3")),)
    return Attempt(1, 1, state, tasks, (), (), "h100", 4000, 110.0, started_at_s=120.0)


def test_no_jobs() -> None:
    assert render_jobs([], {}, frozenset(), 0.0) == "no jobs"


def test_jobs_with_reasons_outcomes_and_what_is_virtual() -> None:
    running = job(1, JobState.RUNNING, attempts=(attempt(AttemptState.RUNNING),))
    fencing = job(2, JobState.RECOVERING, attempts=(attempt(AttemptState.FENCING),))
    failed = job(3, JobState.FAILED, cause=Cause.USER_CODE, detail="rank 0 on n1: exit code 1", ended_at_s=3820.0)
    waiting = job(4)
    blocker = Blocker(BlockerKind.HARDWARE_WAIT, "4 GPUs free", {}, ("1", "2"), "in 5 s job 1 ends")
    outlook = Outlook((blocker, blocker), 2, PromisedStart(905.0, "if job 1 runs to its limit", (JobId("1"),)))
    text = render_jobs([running, fencing, failed, waiting], {waiting.id: outlook}, frozenset({"n1"}), 185.0)
    assert text.splitlines() == [
        "JOB  NAME   QUEUE    STATE               TRY  GPUS    TIME        NODES",
        "1    train  default  RUNNING             1    4 of 8  1 min 05 s  n1 (virtual)",
        "2    train  default  RECOVERING/FENCING  1    4 of 8  1 min 05 s  n1 (virtual)",
        "3    train  default  FAILED              0    8       1 h 02 min  -",
        "    user code: rank 0 on n1: exit code 1",
        "4    train  default  PENDING             0    8       1 min 25 s  -",
        "    position 2; HARDWARE_WAIT: 4 GPUs free; held by jobs 1, 2; in 5 s job 1 ends; 1 more reason: `cw why 4`",
        "    starts in 12 min 00 s if job 1 runs to its limit",
        "virtual: the processes are real, the GPUs are not",
    ]


def test_a_name_cannot_break_the_table() -> None:
    hostile = replace(job(1), spec=replace(job(1).spec, name="a\nb\x1b[31m"))
    assert "a\\nb\\u001b[31m" in render_jobs([hostile], {}, frozenset(), 0.0).splitlines()[1]


def test_nodes_say_whether_their_gpus_are_real() -> None:
    nodes = [
        Node(NodeSpec("n1", 2, "h100"), NodeState.MIXED, ("a", "b"), ("a",), incarnation=2),
        Node(NodeSpec("gpu-2", 8, "", virtual=False), NodeState.DOWN, reason="its agent's process is gone"),
    ]
    assert render_nodes(nodes).splitlines() == [
        "NODE   STATE  GPUS  MODEL  KIND     AGENT  REASON",
        "n1     mixed  1/2   h100   virtual  #2     -",
        "gpu-2  down   0/0   -      real     -      its agent's process is gone",
        "virtual: the processes are real, the GPUs are not",
    ]


def test_why_gives_every_reason_with_its_numbers_and_when_it_was_looked_at() -> None:
    wait = Blocker(BlockerKind.HARDWARE_WAIT, "4 GPUs free", {"free_gpus": 4, "needed_gpus": 8}, ("1",), "", 3600.0)
    outlook = Outlook((wait, Blocker(BlockerKind.HELD, "held by its owner", evaluated_at_s=0.0)), 3)
    assert render_why(job(4), outlook, 185.0).splitlines() == [
        "job 4 \"train\" is PENDING, position 3 in queue 'default'",
        "    HARDWARE_WAIT: 4 GPUs free; held by job 1",
        "        free_gpus 4, needed_gpus 8; looked at 1970-01-01 01:00:00 UTC",
        "    HELD: held by its owner",
        "        looked at 1970-01-01 00:00:00 UTC",
    ]


def test_why_of_a_job_that_does_not_wait_says_what_became_of_it() -> None:
    failed = job(3, JobState.FAILED, cause=Cause.USER_CODE, detail="rank 0 on n1: exit code 1", ended_at_s=3820.0)
    assert render_why(failed, Outlook(), 0.0).splitlines() == [
        'job 3 "train" is FAILED',
        "user code: rank 0 on n1: exit code 1",
    ]


def test_values_carry_the_place_the_blockers_and_the_promise() -> None:
    promise = PromisedStart(60.0, "when job 2 has left", (JobId("2"),))
    values = job_values(job(4), Outlook((Blocker(BlockerKind.HELD, "held"),), 1, promise))
    assert values["blockers"][0]["kind"] == "HELD"
    assert (values["state"], values["position"]) == ("PENDING", 1)
    assert values["promise"] == {"at_s": 60.0, "basis": "when job 2 has left", "jobs": ("2",)}
