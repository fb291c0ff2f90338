"""Tables of jobs and nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clusterwright.model.jobs import (
    Attempt,
    AttemptState,
    Blocker,
    BlockerKind,
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
from clusterwright.report.queues import job_values, render_jobs, render_nodes


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
    text = render_jobs([running, fencing, failed, waiting], {waiting.id: [blocker]}, frozenset({"n1"}), 185.0)
    assert text.splitlines() == [
        "JOB  NAME   QUEUE    STATE               TRY  GPUS    TIME        NODES",
        "1    train  default  RUNNING             1    4 of 8  1 min 05 s  n1 (virtual)",
        "2    train  default  RECOVERING/FENCING  1    4 of 8  1 min 05 s  n1 (virtual)",
        "3    train  default  FAILED              0    8       1 h 02 min  -",
        "    user code: rank 0 on n1: exit code 1",
        "4    train  default  PENDING             0    8       1 min 25 s  -",
        "    HARDWARE_WAIT: 4 GPUs free; held by jobs 1, 2; in 5 s job 1 ends",
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


def test_values_carry_the_blockers() -> None:
    values = job_values(job(4), [Blocker(BlockerKind.HELD, "held")])
    assert values["blockers"][0]["kind"] == "HELD"
    assert values["state"] == "PENDING"
