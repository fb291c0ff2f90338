"""The declared sharing with real processes: preemption, backfill, budgets, strict queues."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusterwright.app.running import ClusterHandle, start_cluster
from clusterwright.engines.local.client import LocalEngine
from clusterwright.model.jobs import AttemptEnd, JobId, JobState, NodeSpec
from clusterwright.model.outlooks import BlockerKind
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.policies import Backfill, Policy, PreemptionPolicy, WithinQueue
from clusterwright.queueing.quotas import Queue, QueueTree, Quota

from .conftest import processes_naming
from .test_chaos import within
from .test_recovery import UNTIL, kill, python, running, spec

pytestmark = pytest.mark.local

PREEMPT = Policy(preemption=PreemptionPolicy(within_queue=WithinQueue.LOWER, grace_s=60.0))
#: Saves when it is told to leave, once the file that its argument names is there; ends well if it finds what it saved.
SAVES = """
import os, signal, sys, time
saved = os.path.join(os.environ['CLUSTERWRIGHT_CHECKPOINT_DIR'], 'saved')
if os.path.exists(saved): print('resumed'); sys.exit(0)
def leave(*_):
    print('told', flush=True)
    while not os.path.exists(sys.argv[1]): time.sleep(0.02)
    open(saved, 'w').close()
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print('on', flush=True)
while True: time.sleep(1)
"""


@contextmanager
def one_node(directory: Path, gpus: int, **more: Any) -> Iterator[ClusterHandle]:
    with start_cluster(directory / "state", [NodeSpec("n1", gpus, "h100")], stop_grace_s=1.0, **more) as cluster:
        yield cluster
    assert processes_naming(str(directory)) == {}


def says(engine: LocalEngine, job: JobId, word: str) -> None:
    within(30, lambda: word in [line.text for line in engine.logs(job)], f"job {job} says {word}")


def seq(engine: LocalEngine, job: JobId, kind: str) -> int:
    return next(e.seq for e in engine.events(job=job) if e.kind == kind)


def test_a_higher_priority_takes_the_gpus_and_the_victim_goes_on_later_from_its_checkpoint(tmp_path: Path) -> None:
    with one_node(tmp_path, 2, policy=PREEMPT) as cluster:
        engine, may_leave = cluster.engine, tmp_path / "leave"
        low = engine.submit(spec(python(SAVES, str(may_leave)), gpus=2))
        says(engine, low, "on")
        high = engine.submit(spec(python(UNTIL, str(tmp_path / "end")), gpus=2, priority=5))
        says(engine, low, "told")
        (outlook,) = engine.outlooks(high)
        assert [b.kind for b in outlook.blockers] == [BlockerKind.PREEMPTING]
        assert outlook.promise is not None
        assert (outlook.promise.basis, outlook.promise.jobs) == (f"when job {low} has left", (low,))
        assert engine.job(low).state is JobState.PREEMPTING
        assert engine.job(high).state is JobState.PENDING
        may_leave.touch()
        running(engine, high)
        left = engine.job(low)
        assert (left.state, left.restarts, left.attempts[0].end) == (JobState.PENDING, 0, AttemptEnd.PREEMPTED)
        assert left.attempts[0].preempted_by == high
        assert os.path.exists(os.path.join(left.checkpoint_dir, "saved"))
        assert seq(engine, low, "fenced") < seq(engine, high, "admitted")
        told = next(e for e in engine.events(job=low) if e.kind == "preempted")
        assert told.data["preempted_by"] == high
        assert "priority 5" in told.data["why"]
        (tmp_path / "end").touch()
        assert engine.wait(high, timeout_s=60).state is JobState.SUCCEEDED
        again = engine.wait(low, timeout_s=60)
        assert (again.state, len(again.attempts), again.restarts) == (JobState.SUCCEEDED, 2, 0)
        assert {line.text for line in engine.logs(low)} == {"resumed"}


def test_a_preemption_goes_on_for_its_winner_when_the_control_plane_is_killed(tmp_path: Path) -> None:
    with one_node(tmp_path, 2, policy=PREEMPT) as cluster:
        engine, may_leave = cluster.engine, tmp_path / "leave"
        low = engine.submit(spec(python(SAVES, str(may_leave)), gpus=1))
        says(engine, low, "on")
        high = engine.submit(spec(python(UNTIL, str(tmp_path / "end")), gpus=2, priority=5))
        says(engine, low, "told")
        kill(cluster, "controlplane", signal.SIGKILL)
        claim = engine.job(high).claim
        assert claim is not None
        assert (claim.victims, claim.gpus) == ((low,), 2)
        assert engine.job(low).state is JobState.PREEMPTING
        other = engine.submit(spec(python("pass"), gpus=1))
        (outlook,) = engine.outlooks(other)
        assert outlook.blockers[0].kind is BlockerKind.HARDWARE_WAIT
        may_leave.touch()
        assert len(running(engine, high).attempts) == 1
        assert engine.job(high).claim is None
        assert [e.kind for e in engine.events(job=low)].count("preempted") == 1
        (tmp_path / "end").touch()
        assert [engine.wait(j, timeout_s=60).state for j in (high, low, other)] == [JobState.SUCCEEDED] * 3
        assert seq(engine, high, "admitted") < seq(engine, other, "admitted")


def test_a_job_passes_the_one_that_cannot_start_only_where_that_keeps_its_promise(tmp_path: Path) -> None:
    with one_node(tmp_path, 4, policy=Policy(backfill=Backfill.EASY)) as cluster:
        engine, end = cluster.engine, tmp_path / "end"
        first = engine.submit(spec(python(UNTIL, str(end)), gpus=3, time_limit_s=3000.0))
        started = running(engine, first).attempts[0].started_at_s
        head = engine.submit(spec(python("pass"), gpus=4, time_limit_s=3000.0))
        long = engine.submit(spec(python("pass"), gpus=1, time_limit_s=9000.0))
        short = engine.submit(spec(python("pass"), gpus=1, time_limit_s=300.0))
        assert engine.wait(short, timeout_s=60).state is JobState.SUCCEEDED
        admitted = next(e for e in engine.events(job=short) if e.kind == "admitted")
        assert f"backfilled before job {head}" in admitted.data["why"]
        promised, passed_over = engine.outlooks(head, long)
        assert started is not None
        assert promised.promise is not None
        assert promised.promise.at_s == pytest.approx(started + 3000.0)
        assert promised.promise.basis == f"if job {first} runs to its limit"
        assert (promised.position, passed_over.position, passed_over.promise) == (1, 2, None)
        assert [b.kind for b in passed_over.blockers] == [BlockerKind.ORDER]
        assert passed_over.blockers[0].holders == (head,)
        end.touch()
        assert [engine.wait(j, timeout_s=60).state for j in (head, long)] == [JobState.SUCCEEDED] * 2
        assert seq(engine, head, "admitted") < seq(engine, long, "admitted")


def test_a_budget_keeps_a_job_out_and_stands_in_nobodys_way(tmp_path: Path) -> None:
    tree = QueueTree((Queue("a", None, {"h100": Quota(2)}, strict=True),))
    with one_node(tmp_path, 2, tree=tree, budgets={"a": Budget(1.0)}) as cluster:
        engine = cluster.engine
        large = engine.submit(spec(python("pass"), gpus=1, queue="a", time_limit_s=7200.0))
        small = engine.submit(spec(python("pass"), gpus=1, queue="a", time_limit_s=60.0))
        assert engine.wait(small, timeout_s=60).state is JobState.SUCCEEDED
        (outlook,) = engine.outlooks(large)
        assert [b.kind for b in outlook.blockers] == [BlockerKind.BUDGET]
        assert (outlook.position, outlook.promise) == (None, None)
        numbers = outlook.blockers[0].numbers
        assert (numbers["needed_gpu_hours"], numbers["budget_gpu_hours"]) == (2.0, 1.0)
        assert 0 < numbers["used_gpu_hours"] < 60 / 3600


def test_a_strict_queue_starts_in_order(tmp_path: Path) -> None:
    tree = QueueTree((Queue("a", None, {"h100": Quota(2)}, strict=True),))
    with one_node(tmp_path, 2, tree=tree) as cluster:
        engine, end = cluster.engine, tmp_path / "end"
        first = engine.submit(spec(python(UNTIL, str(end)), gpus=1, queue="a"))
        running(engine, first)
        head = engine.submit(spec(python("pass"), gpus=2, queue="a"))
        behind = engine.submit(spec(python("pass"), gpus=1, queue="a"))
        waits, ordered = engine.outlooks(head, behind)
        assert waits.blockers[0].kind in (BlockerKind.QUOTA_WAIT, BlockerKind.HARDWARE_WAIT)
        assert [b.kind for b in ordered.blockers] == [BlockerKind.ORDER]
        assert (waits.position, ordered.position) == (1, 2)
        end.touch()
        assert [engine.wait(j, timeout_s=60).state for j in (head, behind)] == [JobState.SUCCEEDED] * 2
        assert seq(engine, head, "admitted") < seq(engine, behind, "admitted")
