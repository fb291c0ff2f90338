"""Processes of the engine die or hang; jobs go on, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterwright.app.running import ClusterHandle, connect, real_nodes, start_cluster, stop
from clusterwright.engines.local.client import LocalEngine
from clusterwright.engines.local.gpus import discover_gpus
from clusterwright.engines.local.identities import Identity, alive, read_identity, read_stat, send_signal
from clusterwright.engines.local.layout import Layout
from clusterwright.lib.errors import Unavailable
from clusterwright.model.jobs import AttemptEnd, Cause, Job, JobId, JobSpec, JobState, NodeSpec, TaskGroup
from clusterwright.model.outlooks import BlockerKind

from .conftest import processes_naming
from .test_chaos import within

pytestmark = pytest.mark.local

TWO = [NodeSpec("n1", 2, "h100"), NodeSpec("n2", 2, "h100")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHandle]:
    """A cluster for tests that kill none of its own processes and end their jobs."""
    directory = tmp_path_factory.mktemp("shared")
    with start_cluster(directory / "state", TWO, stop_grace_s=1.0) as handle:
        yield handle
    assert processes_naming(str(directory)) == {}


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code, *arguments)


SLEEP = python("import time; time.sleep(600)")
#: Ends with code 0 as soon as a file is there.
UNTIL = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"


def spec(argv: tuple[str, ...], count: int = 1, gpus: int = 1, **more: Any) -> JobSpec:
    least = more.pop("min_count", None)
    return JobSpec("job", (TaskGroup(argv, count, gpus, min_count=least),), **{"grace_s": 0.3, **more})


def running(engine: LocalEngine, job: JobId, attempt: int = 1) -> Job:
    return engine.wait(job, lambda j: j.state is JobState.RUNNING and len(j.attempts) >= attempt, timeout_s=60)


def kill(cluster: ClusterHandle, name: str, number: signal.Signals = signal.SIGKILL) -> Identity:
    found = read_identity(Layout(cluster.state_dir), name)
    assert found is not None
    assert send_signal(found, number)
    if number is signal.SIGKILL:
        within(10, lambda: not alive(found), f"{name} dead")
    return found


def pids(job: Job) -> list[int | None]:
    assert job.attempt is not None
    return [r.pid for r in job.attempt.ranks]


def kinds(engine: LocalEngine, job: JobId) -> list[str]:
    return [e.kind for e in engine.events(job=job)]


def test_a_killed_control_plane_comes_back_and_adopts_what_runs(cluster: ClusterHandle, tmp_path: Path) -> None:
    engine = cluster.engine
    job = engine.submit(spec(python(UNTIL, str(tmp_path / "end")), count=2))
    before = running(engine, job)
    kill(cluster, "controlplane")
    after = engine.job(job)
    assert (after.state, pids(after)) == (JobState.RUNNING, pids(before))
    (tmp_path / "end").touch()
    ended = engine.wait(job, timeout_s=60)
    assert (ended.state, len(ended.attempts)) == (JobState.SUCCEEDED, 1)


def test_an_end_while_the_control_plane_is_dead_is_not_missed(cluster: ClusterHandle, tmp_path: Path) -> None:
    engine = cluster.engine
    job = engine.submit(spec(python(UNTIL, str(tmp_path / "end")), count=2))
    running(engine, job)
    kill(cluster, "controlplane")
    (tmp_path / "end").touch()
    ended = engine.wait(job, timeout_s=60)
    assert (ended.state, len(ended.attempts)) == (JobState.SUCCEEDED, 1)


def test_a_success_that_only_the_shim_saw_counts(tmp_path: Path) -> None:
    """Control plane and both agents are dead when the ranks end; their exit files tell."""
    layout = Layout(tmp_path / "state")
    with start_cluster(layout.root, TWO, restart_agents=False) as cluster:
        engine = cluster.engine
        job = engine.submit(spec(python(UNTIL, str(tmp_path / "end")), count=2))
        files = [layout.rank(job, 1, r.rank) / "exit" for r in running(engine, job).attempts[0].ranks]
        supervisor = kill(cluster, "supervisor", signal.SIGSTOP)
        for name in ("controlplane", "agent-n1", "agent-n2"):
            kill(cluster, name)
        (tmp_path / "end").touch()
        within(20, lambda: all(f.exists() for f in files), "exit files")
        send_signal(supervisor, signal.SIGCONT)
        ended = engine.wait(job, timeout_s=60)
    assert (ended.state, len(ended.attempts)) == (JobState.SUCCEEDED, 1)
    assert processes_naming(str(tmp_path)) == {}


def test_a_lost_node_is_seen_at_once_and_the_job_goes_on_without_it(tmp_path: Path) -> None:
    with start_cluster(tmp_path / "state", TWO, restart_agents=False) as cluster:
        engine = cluster.engine
        job = engine.submit(spec(SLEEP, count=2, gpus=2, min_count=1))
        running(engine, job)
        killed_at_s = cluster.kill_agent("n2")
        again = running(engine, job, attempt=2)
        lost = next(e for e in engine.events() if e.kind == "node_lost")
        assert 0 <= lost.at_s - killed_at_s < 5
        assert again.attempts[0].end is AttemptEnd.NODE_LOST
        assert again.attempts[0].cause is Cause.PLATFORM
        assert again.attempts[1].nodes == ("n1",)
        assert [e.node for e in again.exclusions] == ["n2"]
        assert {n.spec.name: n.up for n in engine.nodes()} == {"n1": True, "n2": False}
        assert [k for k in kinds(engine, job) if k in ("fencing", "fenced")] == ["fencing", "fenced"]
        with pytest.raises(Unavailable, match="the agent of node n2 does not run"):
            cluster.kill_agent("n2")
    assert processes_naming(str(tmp_path)) == {}


def test_a_node_that_returned_is_used_again_only_when_nothing_else_fits(cluster: ClusterHandle) -> None:
    engine = cluster.engine
    job = engine.submit(spec(SLEEP, count=2, gpus=2))
    running(engine, job)
    cluster.kill_agent("n2")
    again = running(engine, job, attempt=2)
    assert again.attempts[1].nodes == ("n1", "n2")
    assert {n.spec.name: n.incarnation for n in engine.nodes()} == {"n1": 1, "n2": 2}
    engine.cancel(job)
    engine.wait(job, timeout_s=60)


def test_a_hung_agent_is_lost_killed_and_waited_for(tmp_path: Path) -> None:
    with start_cluster(tmp_path / "state", TWO, heartbeat_s=0.1, heartbeat_timeout_s=1.0) as cluster:
        engine = cluster.engine
        job = engine.submit(spec(SLEEP, count=1, gpus=2))
        node = running(engine, job).attempts[0].nodes[0]
        hung = kill(cluster, f"agent-{node}", signal.SIGSTOP)
        again = running(engine, job, attempt=2)
        assert not alive(hung)
        assert again.attempts[1].nodes != (node,)
        assert "no heartbeat" in again.attempts[0].detail
        fenced = next(e for e in engine.events(job=job) if e.kind == "fenced")
        readmitted = [e for e in engine.events(job=job) if e.kind == "admitted"][1]
        assert fenced.seq < readmitted.seq
    assert processes_naming(str(tmp_path)) == {}


def test_a_control_plane_that_was_stopped_blames_no_agent(tmp_path: Path) -> None:
    with start_cluster(tmp_path / "state", TWO, heartbeat_s=0.1, heartbeat_timeout_s=1.0) as cluster:
        engine = cluster.engine
        plane = kill(cluster, "controlplane", signal.SIGSTOP)
        time.sleep(1.5)  # longer than the heartbeat timeout: this is what is tested
        send_signal(plane, signal.SIGCONT)
        assert all(n.up and n.incarnation == 1 for n in engine.nodes())
        assert [e.kind for e in engine.events() if e.kind == "node_lost"] == []


def test_a_killed_shim_ends_the_attempt_and_leaves_nothing(shared: ClusterHandle, tmp_path: Path) -> None:
    marker = str(tmp_path / "marker")
    code = "import os, sys, time\nif os.fork() == 0: os.setsid(); os.execve(sys.executable, [sys.executable, '-c', "
    code += "'import time; time.sleep(600)', sys.argv[1]], {})\ntime.sleep(600)"
    engine = shared.engine
    job = engine.submit(spec(python(code, marker)))
    shim = running(engine, job).attempts[0].ranks[0]
    within(20, lambda: len(processes_naming(marker)) == 3, "shim, rank and nameless child")
    assert shim.pid is not None
    os.kill(shim.pid, signal.SIGKILL)
    ended = engine.wait(job, timeout_s=60)
    assert (ended.state, ended.cause) == (JobState.FAILED, Cause.PLATFORM)
    assert processes_naming(marker) == {}


def test_children_left_running_by_a_success_are_cleared(shared: ClusterHandle, tmp_path: Path) -> None:
    marker = str(tmp_path / "marker")
    code = "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(600)"
    ended = shared.engine.wait(shared.engine.submit(spec(python(code, marker))), timeout_s=60)
    assert ended.state is JobState.SUCCEEDED
    assert processes_naming(marker) == {}


def test_two_jobs_never_run_in_one_checkpoint_directory(shared: ClusterHandle, tmp_path: Path) -> None:
    engine = shared.engine
    first = engine.submit(spec(SLEEP, checkpoint_dir=str(tmp_path / "ckpt")))
    running(engine, first)
    second = engine.submit(spec(python("pass"), checkpoint_dir=str(tmp_path / "x" / ".." / "ckpt")))
    assert [b.kind for b in engine.why(second)] == [BlockerKind.GATED]
    engine.cancel(first)
    ended = engine.wait(second, timeout_s=60)
    assert ended.state is JobState.SUCCEEDED
    assert ended.attempts[0].epoch > engine.job(first).attempts[0].epoch


def test_a_checkpoint_directory_that_cannot_be_made_is_a_setup_failure(shared: ClusterHandle, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    job = shared.engine.submit(spec(SLEEP, checkpoint_dir=str(tmp_path / "file" / "ckpt")))
    ended = shared.engine.wait(job, timeout_s=60)
    assert (ended.state, ended.cause) == (JobState.FAILED, Cause.SETUP)
    assert str(tmp_path / "file") in ended.detail


def test_requeue_preempts_and_the_job_runs_again(shared: ClusterHandle) -> None:
    job = shared.engine.submit(spec(SLEEP))
    running(shared.engine, job)
    shared.engine.requeue(job)
    again = running(shared.engine, job, attempt=2)
    assert again.attempts[0].end is AttemptEnd.PREEMPTED
    assert again.restarts == 0
    shared.engine.cancel(job)
    assert shared.engine.wait(job, timeout_s=60).state is JobState.CANCELLED


def test_a_held_job_waits_until_it_is_released(shared: ClusterHandle) -> None:
    job = shared.engine.submit(spec(python("pass"), held=True))
    assert [b.kind for b in shared.engine.why(job)] == [BlockerKind.HELD]
    shared.engine.release(job)
    assert shared.engine.wait(job, timeout_s=60).state is JobState.SUCCEEDED


ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def test_a_rank_sees_what_torchrun_would_set(shared: ClusterHandle) -> None:
    import json

    engine = shared.engine
    job = engine.wait(
        engine.submit(spec(python(ENVIRONMENT), count=2, gpus=2, env={"RANK": "9", "A": "é=b"})), timeout_s=60
    )
    found = {int(e["RANK"]): e for e in (json.loads(line.text) for line in engine.logs(job.id))}
    assert sorted(found) == [0, 1, 2, 3]
    last = found[3]
    expected = {
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "1",
        "NODE_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "ROLE_RANK": "3",
        "ROLE_WORLD_SIZE": "4",
        "MASTER_ADDR": "127.0.0.1",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "CUDA_VISIBLE_DEVICES": "VIRTUAL-0,VIRTUAL-1",
        "CLUSTERWRIGHT_VIRTUAL": "1",
        "CLUSTERWRIGHT_NODE": "n2",
        "CLUSTERWRIGHT_JOB": job.id,
        "CLUSTERWRIGHT_ATTEMPT": "1",
        "CLUSTERWRIGHT_EPOCH": "1",
        "CLUSTERWRIGHT_CHECKPOINT_DIR": job.checkpoint_dir,
        "A": "é=b",
    }
    assert {k: last.get(k) for k in expected} == expected
    assert len({e["MASTER_PORT"] for e in found.values()}) == 1
    assert 1024 <= int(last["MASTER_PORT"]) < 65536
    assert "CLUSTERWRIGHT_SHIM" not in last
    assert "CLUSTERWRIGHT_BOOT" not in last


def test_a_deep_and_hostile_state_directory_works(tmp_path: Path) -> None:
    root = tmp_path / ("a b; 'c'\n" + "x" * 100) / ("y" * 100)
    with start_cluster(root, TWO[:1]) as cluster:
        job = cluster.engine.submit(spec(python("print('here')")))
        assert cluster.engine.wait(job, timeout_s=60).state is JobState.SUCCEEDED
        assert [line.text for line in cluster.engine.logs(job)] == ["here"]


def test_jobs_that_run_when_the_cluster_stops_run_again_at_the_next_start(tmp_path: Path) -> None:
    with start_cluster(tmp_path / "state", TWO) as cluster:
        job = cluster.engine.submit(spec(SLEEP, max_restarts=0))
        running(cluster.engine, job)
    assert processes_naming(str(tmp_path)) == {}
    with pytest.raises(Unavailable, match="no cluster is up"):
        connect(tmp_path / "state").jobs()
    with start_cluster(tmp_path / "state", TWO) as cluster:
        again = running(cluster.engine, job, attempt=2)
        assert again.attempts[0].end is AttemptEnd.SHUTDOWN
        assert again.attempts[1].epoch > again.attempts[0].epoch


def test_a_second_cluster_in_one_directory_is_refused(shared: ClusterHandle) -> None:
    with pytest.raises(Unavailable, match="already up"):
        start_cluster(shared.state_dir, TWO)


def test_after_the_loss_of_the_supervisor_everything_is_taken_over(tmp_path: Path) -> None:
    with start_cluster(tmp_path / "state", TWO, detach=True) as first:
        job = first.engine.submit(spec(SLEEP, count=2))
        before = running(first.engine, job)
        kill(first, "supervisor")
        with start_cluster(tmp_path / "state", TWO) as cluster:
            after = cluster.engine.job(job)
            assert (after.state, pids(after)) == (JobState.RUNNING, pids(before))
    assert processes_naming(str(tmp_path)) == {}


@pytest.mark.parametrize("also", [[], ["controlplane"]], ids=["supervisor", "supervisor and control plane"])
def test_down_clears_what_a_lost_supervisor_left(tmp_path: Path, also: list[str]) -> None:
    with start_cluster(tmp_path / "state", TWO, detach=True) as cluster:
        running(cluster.engine, cluster.engine.submit(spec(SLEEP, count=2)))
        for name in ("supervisor", *also):
            kill(cluster, name)
        assert stop(tmp_path / "state", grace_s=0.2)
        assert processes_naming(str(tmp_path)) == {}


def test_nothing_outlives_an_owner_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from clusterwright.app.running import start_cluster\n"
        "from clusterwright.model.jobs import JobSpec, NodeSpec, TaskGroup\n"
        "cluster = start_cluster(Path(sys.argv[1]), [NodeSpec('n1', 1)], stop_grace_s=0.2)\n"
        "cluster.engine.submit(JobSpec('job', (TaskGroup(('sleep', '600'), 1, 1),)))\n"
        "print('up', flush=True)\ntime.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "state")], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    owner.kill()
    owner.wait()
    owner.stdout.close()
    within(30, lambda: processes_naming(str(tmp_path)) == {}, "everything gone")


def test_a_start_that_cannot_succeed_leaves_nothing(tmp_path: Path) -> None:
    real = NodeSpec("n1", 64, "h100", virtual=False)
    with pytest.raises(Unavailable, match="of 64 declared GPUs found"):
        start_cluster(tmp_path / "state", [real])
    assert processes_naming(str(tmp_path)) == {}


def test_a_bad_request_does_not_hurt_the_control_plane(shared: ClusterHandle) -> None:
    from clusterwright.engines.local import wire

    plane = read_identity(Layout(shared.state_dir), "controlplane")
    for junk in (
        b"not json\n",
        b"[]\n",
        b'{"type": "nope"}\n',
        b'{"type": "submit", "spec": {}, "token": ""}\n',
        b"\xff\n",
    ):
        connection = wire.connect(shared.state_dir / "run" / "cp.sock", timeout_s=5)
        connection.sendall(junk)
        connection.recv(65536)
        connection.close()
    assert [n.up for n in shared.engine.nodes()] == [True, True]
    assert read_identity(Layout(shared.state_dir), "controlplane") == plane


def zombies() -> list[int]:
    """Children of this process that ended and were not collected."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := read_stat(int(name))) and stat.parent == os.getpid() and stat.state == "Z":
            found.append(stat.pid)
    return found


def test_stopping_leaves_no_zombie_behind(tmp_path: Path) -> None:
    before = zombies()
    with start_cluster(tmp_path / "state", TWO):
        pass
    assert zombies() == before


def test_a_working_directory_that_is_not_there_is_a_setup_failure(shared: ClusterHandle, tmp_path: Path) -> None:
    job = shared.engine.submit(spec(SLEEP, workdir=str(tmp_path / "gone")))
    ended = shared.engine.wait(job, timeout_s=60)
    assert (ended.state, ended.cause) == (JobState.FAILED, Cause.SETUP)
    assert str(tmp_path / "gone") in ended.detail


def test_this_machines_own_gpus_make_one_node_and_none_make_none() -> None:
    gpus = discover_gpus()
    if gpus:
        (node,) = real_nodes()
        assert (node.gpus, node.virtual) == (len(gpus), False)
    else:
        with pytest.raises(Unavailable, match="declare virtual nodes with --nodes"):
            real_nodes()
