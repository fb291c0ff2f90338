"""Disks that are full, directories that do not answer or belong to somebody else, processes that were stopped."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusterwright.app.running import ClusterHandle, start_cluster, stop
from clusterwright.engines.local import fences
from clusterwright.engines.local.identities import alive, send_signal
from clusterwright.engines.local.layout import Layout
from clusterwright.engines.local.shim import read_fence
from clusterwright.lib.errors import Unavailable
from clusterwright.model.jobs import AttemptEnd, Cause, JobId, JobState, NodeSpec
from clusterwright.model.outlooks import BlockerKind

from .conftest import processes_naming
from .test_chaos import within
from .test_recovery import SLEEP, TWO, UNTIL, kill, python, running, shared, spec
from .test_running_commands import Shell, shell

pytestmark = pytest.mark.local

__all__ = ["shared", "shell"]

Disk = Callable[[str], Path]

#: Ignores SIGTERM.
STUBBORN = python("import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True); time.sleep(600)")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Mounts small disks of a given size."""
    mounted: list[Path] = []

    def mount(size: str) -> Path:
        directory = tmp_path / f"disk-{len(mounted)}"
        directory.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip(f"no permission to mount a small disk: {made.stderr.strip()}")
        mounted.append(directory)
        return directory

    yield mount
    for directory in mounted:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def remount(directory: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(directory)], check=True)


def fill(directory: Path) -> Path:
    """Everything that is free, in one file."""
    ballast = directory / "ballast"
    with ballast.open("ab", buffering=0) as file:
        while shutil.disk_usage(directory).free:
            try:
                file.write(b"x" * 4096)
            except OSError:
                break
    return ballast


def answers(cluster: ClusterHandle) -> bool:
    try:
        return bool(cluster.engine.jobs())
    except Unavailable:
        return False


def says(directory: Path) -> str:
    found = read_fence(str(fences.fence_path(str(directory))))
    return "" if found is None else found[1]


# -- the disk with the state is full ---------------------------------------------------------------------------------


def test_a_full_state_disk_is_named_by_cancel_and_submit_and_down_ends_the_cluster(shell: Shell, disk: Disk) -> None:
    state = disk("3m")
    shell.state, shell.environment["CLUSTERWRIGHT_STATE"] = state, str(state)
    shell.cw("up", "--nodes", "n1", "--gpus", "2", "--detach")
    filler = "trap '' TERM; while :; do head -c 100000 /dev/zero; sleep .01; done"
    shell.cw("submit", "--grace", "1 s", "--", "sh", "-c", filler)
    within(60, lambda: shutil.disk_usage(state).free == 0, "the disk is full")
    for command in (["cancel", "1"], ["submit", "--", "true"]):
        said = shell.cw(*command, code=2).stderr
        assert "state.db: the state cannot be used" in said
        assert "free some space there" in said
    shell.cw("down", "--grace", "0.2 s")
    assert processes_naming(str(state)) == {}


def test_a_full_state_disk_loses_no_end_and_no_node(disk: Disk, tmp_path: Path) -> None:
    state = disk("16m")
    with start_cluster(state, TWO, heartbeat_s=0.1, heartbeat_timeout_s=1.0, stop_grace_s=0.5) as cluster:
        engine = cluster.engine
        job = engine.submit(spec(python(UNTIL, str(tmp_path / "end"))))
        rank = running(engine, job).attempts[0].ranks[0]
        ballast = fill(state)
        with pytest.raises(Unavailable, match="the state cannot be used"):
            engine.submit(spec(SLEEP))
        (tmp_path / "end").touch()
        within(20, lambda: not Path(f"/proc/{rank.pid}").exists(), "the rank ended")
        time.sleep(1.5)  # longer than the heartbeat timeout: silence that nobody could write down is no loss
        ballast.unlink()
        assert engine.wait(job, timeout_s=60).state is JobState.SUCCEEDED
        assert [j.id for j in engine.jobs()] == [job]
        assert [e.kind for e in engine.events() if e.kind == "node_lost"] == []


def test_a_control_plane_that_starts_on_a_full_disk_says_so_and_goes_on_when_it_can(disk: Disk) -> None:
    state = disk("16m")
    with start_cluster(state, TWO, stop_grace_s=0.5) as cluster:
        job = cluster.engine.submit(spec(SLEEP))
        running(cluster.engine, job)
        ballast = fill(state)
        kill(cluster, "controlplane")
        with pytest.raises(Unavailable, match=r"cannot be used|does not answer"):
            cluster.engine.cancel(job)
        ballast.unlink()
        within(30, lambda: answers(cluster), "the state is written again")
        after = running(cluster.engine, job)
        assert len(after.attempts) == 1
        cluster.engine.cancel(job)
        assert cluster.engine.wait(job, timeout_s=60).state is JobState.CANCELLED
    assert processes_naming(str(state)) == {}


# -- the checkpoint directory cannot be written ----------------------------------------------------------------------


def test_a_checkpoint_directory_where_nothing_can_be_written_fails_the_job_at_once(shared: ClusterHandle) -> None:
    ended = shared.engine.wait(shared.engine.submit(spec(SLEEP, checkpoint_dir="/sys")), timeout_s=30)
    assert (ended.state, ended.cause) == (JobState.FAILED, Cause.SETUP)
    assert "checkpoint directory /sys cannot be used: /sys/.clusterwright-epoch: " in ended.detail


def test_a_failure_on_a_full_checkpoint_disk_ends_every_rank(shared: ClusterHandle, disk: Disk) -> None:
    ckpt = disk("2m")
    code = (
        "import os, sys, time\nif os.environ['RANK'] == '1': time.sleep(600)\n"
        "try:\n    open(sys.argv[1] + '/fill', 'wb', 0).write(b'x' * 4_000_000)\n"
        "    while open(sys.argv[1] + '/fill', 'ab', 0).write(b'x' * 4096): pass\nexcept OSError: sys.exit(1)"
    )
    job = shared.engine.submit(spec(python(code, str(ckpt)), count=2, checkpoint_dir=str(ckpt)))
    ended = shared.engine.wait(job, timeout_s=60)
    assert shutil.disk_usage(ckpt).free == 0
    assert (ended.state, ended.cause) == (JobState.FAILED, Cause.USER_CODE)
    assert processes_naming(str(ckpt)) == {}
    assert says(ckpt) == "closed"
    assert sorted(p.name for p in ckpt.iterdir()) == [fences.NAME, "fill"]


def test_only_the_next_use_of_a_directory_waits_for_its_epoch_to_be_closed(shared: ClusterHandle, disk: Disk) -> None:
    engine, ckpt = shared.engine, disk("2m")
    job = engine.submit(spec(SLEEP, checkpoint_dir=str(ckpt)))
    running(engine, job)
    remount(ckpt, "ro")
    engine.cancel(job)
    assert engine.wait(job, timeout_s=30).state is JobState.CANCELLED
    assert says(ckpt) == "open"
    fenced = next(e for e in engine.events(job=job) if e.kind == "fenced")
    assert "Read-only file system" in fenced.data["unclosed"]
    second = engine.submit(spec(python("pass"), checkpoint_dir=str(ckpt)))
    (blocker,) = engine.why(second)
    assert blocker.kind is BlockerKind.GATED
    assert f"{ckpt}/{fences.NAME}: Read-only file system" in blocker.message
    other = engine.submit(spec(python("pass"), gpus=2, count=2))
    assert engine.wait(other, timeout_s=30).state is JobState.SUCCEEDED
    remount(ckpt, "rw")
    ended = engine.wait(second, timeout_s=60)
    assert (ended.state, len(ended.attempts), ended.attempts[0].epoch) == (JobState.SUCCEEDED, 1, 2)


def test_a_requeued_job_waits_for_its_directory_and_goes_on_in_it(disk: Disk, tmp_path: Path) -> None:
    ckpt = disk("2m")
    with start_cluster(tmp_path / "state", TWO, stop_grace_s=0.5) as cluster:
        engine = cluster.engine
        job = engine.submit(spec(SLEEP, checkpoint_dir=str(ckpt)))
        running(engine, job)
        remount(ckpt, "ro")
        engine.requeue(job)
        waiting = engine.wait(job, lambda j: j.state is JobState.PENDING, timeout_s=30)
        assert (waiting.restarts, [b.kind for b in engine.why(job)]) == (0, [BlockerKind.GATED])
        kill(cluster, "controlplane")  # what it knew about the directory is lost with it
        engine.wait(job, lambda j: len(j.attempts) == 2 and j.state is JobState.PENDING, timeout_s=30)
        assert engine.job(job).attempts[1].end is AttemptEnd.BLOCKED
        assert "Read-only" in engine.why(job)[0].message
        remount(ckpt, "rw")
        assert len(running(engine, job, attempt=3).attempts) == 3
    assert processes_naming(str(tmp_path)) == {}


# -- nothing starts late ---------------------------------------------------------------------------------------------


def test_a_launch_that_an_agent_has_not_read_yet_holds_the_fence_until_it_was_dropped(
    disk: Disk, tmp_path: Path
) -> None:
    """The epoch file says open all the time: only what the agent confirms keeps the late rank from starting."""
    ckpt = disk("2m")
    with start_cluster(tmp_path / "state", TWO, stop_grace_s=0.5) as cluster:
        engine = cluster.engine
        hung = kill(cluster, "agent-n2", signal.SIGSTOP)
        job = engine.submit(spec(SLEEP, count=2, gpus=2, checkpoint_dir=str(ckpt)))
        engine.wait(job, lambda j: bool(j.attempts) and any(r.pid for r in j.attempts[0].ranks), timeout_s=30)
        remount(ckpt, "ro")
        engine.cancel(job)
        within(30, lambda: "agent of n2 confirms" in "".join(b.message for b in engine.why(job)), "the agent asked")
        assert not engine.job(job).state.final
        send_signal(hung, signal.SIGCONT)
        ended = engine.wait(job, timeout_s=30)
        assert (ended.state, says(ckpt)) == (JobState.CANCELLED, "open")
        late = [r.rank for r in ended.attempts[0].ranks if ended.attempts[0].node_of(r) == "n2"]
        layout = Layout(cluster.state_dir)
        assert [r for r in late if (layout.rank(job, 1, r) / "exit").exists()] == []
        assert alive(hung)
        assert [n.incarnation for n in engine.nodes()] == [1, 1]
    assert processes_naming(str(tmp_path)) == {}


def test_an_agent_that_never_confirms_is_lost_and_the_fence_goes_on(disk: Disk, tmp_path: Path) -> None:
    ckpt = disk("2m")
    with start_cluster(tmp_path / "state", TWO, heartbeat_s=0.1, heartbeat_timeout_s=2.0) as cluster:
        engine = cluster.engine
        hung = kill(cluster, "agent-n2", signal.SIGSTOP)
        job = engine.submit(spec(SLEEP, count=2, gpus=2, checkpoint_dir=str(ckpt)))
        engine.wait(job, lambda j: bool(j.attempts) and any(r.pid for r in j.attempts[0].ranks), timeout_s=30)
        remount(ckpt, "ro")
        engine.cancel(job)
        assert engine.wait(job, timeout_s=60).state is JobState.CANCELLED
        assert not alive(hung)
    assert processes_naming(str(tmp_path)) == {}


# -- the checkpoint directory is somebody else's, or does not answer -------------------------------------------------


def test_two_clusters_take_turns_in_one_checkpoint_directory(shared: ClusterHandle, tmp_path: Path) -> None:
    ckpt = tmp_path / "ckpt"
    first = shared.engine.submit(spec(STUBBORN, checkpoint_dir=str(ckpt)))
    held = running(shared.engine, first).attempts[0]
    with start_cluster(tmp_path / "other", TWO[:1], stop_grace_s=0.5) as other:
        second = other.engine.submit(spec(SLEEP, checkpoint_dir=str(ckpt)))
        other.engine.wait(second, lambda j: j.state is JobState.PENDING and len(j.attempts) == 1, timeout_s=30)
        (blocker,) = other.engine.why(second)
        assert blocker.kind is BlockerKind.GATED
        assert f"job {first} of another cluster" in blocker.message
        assert f"state in {shared.state_dir} on " in blocker.message
        assert [n.used for n in other.engine.nodes()] == [()]
        shared.engine.cancel(first)
        after = running(other.engine, second, attempt=2).attempts[1]
        assert not Path(f"/proc/{held.ranks[0].pid}").exists()
        assert after.epoch == held.epoch + 1
        kill(other, "supervisor", signal.SIGSTOP)
        other.engine.cancel(second)
        other.engine.wait(second, timeout_s=30)
    assert says(ckpt) == "closed"


def test_the_epoch_of_a_cluster_that_is_gone_is_freed_by_hand(shared: ClusterHandle, tmp_path: Path) -> None:
    ckpt = tmp_path / "ckpt"
    fences.open_epoch(str(ckpt), fences.Owner("gone", "7", "/gone"), 5)
    job = shared.engine.submit(spec(python("pass"), checkpoint_dir=str(ckpt)))
    shared.engine.wait(job, lambda j: j.state is JobState.PENDING and len(j.attempts) == 1, timeout_s=30)
    assert "if no process of that cluster is left, remove the file" in shared.engine.why(job)[0].message
    fences.fence_path(str(ckpt)).unlink()
    assert shared.engine.wait(job, timeout_s=60).state is JobState.SUCCEEDED


def test_a_pipe_in_place_of_the_epoch_file_fails_the_job_at_once(shared: ClusterHandle, tmp_path: Path) -> None:
    os.mkfifo(fences.fence_path(str(tmp_path)))
    ended = shared.engine.wait(shared.engine.submit(spec(SLEEP, checkpoint_dir=str(tmp_path))), timeout_s=30)
    assert (ended.state, ended.cause) == (JobState.FAILED, Cause.SETUP)
    assert "is not a regular file; remove it" in ended.detail


def test_a_directory_that_does_not_answer_holds_up_its_own_job_only(shared: ClusterHandle, tmp_path: Path) -> None:
    """Somebody else's lock on the epoch file: opening it waits as it would on a file system that hangs."""
    engine, path = shared.engine, fences.fence_path(str(tmp_path))
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        job = engine.submit(spec(python("pass"), checkpoint_dir=str(tmp_path)))
        assert "is being opened" in engine.why(job)[0].message
        assert engine.wait(engine.submit(spec(python("pass"))), timeout_s=30).state is JobState.SUCCEEDED
        engine.wait(job, lambda j: j.state is JobState.PENDING and len(j.attempts) == 1, timeout_s=40)
        (blocker,) = engine.why(job)
        assert blocker.kind is BlockerKind.GATED
        assert "no answer within" in blocker.message
        assert [n.used for n in engine.nodes()] == [(), ()]
        cancelled = engine.submit(spec(python("pass"), checkpoint_dir=str(tmp_path)))
        engine.cancel(cancelled)
        assert engine.job(cancelled).state is JobState.CANCELLED
    ended = engine.wait(job, timeout_s=60)
    assert (ended.state, len(ended.attempts)) == (JobState.SUCCEEDED, 2)
    assert says(tmp_path) == "closed"


# -- ending a cluster ------------------------------------------------------------------------------------------------


def test_down_shortens_the_grace_of_what_is_being_cancelled(tmp_path: Path) -> None:
    with start_cluster(tmp_path / "state", TWO, detach=True) as cluster:
        job = cluster.engine.submit(spec(STUBBORN, grace_s=600.0))
        running(cluster.engine, job)
        within(20, lambda: [line.text for line in cluster.engine.logs(job)] == ["on"], "the rank is stubborn")
        cluster.engine.cancel(job)
        began = time.monotonic()
        assert stop(tmp_path / "state", grace_s=0.5)
        assert time.monotonic() - began < 10
    with start_cluster(tmp_path / "state", TWO, detach=True) as cluster:
        assert cluster.engine.job(JobId("1")).state is JobState.CANCELLED


@pytest.mark.parametrize("names", [["supervisor"], ["controlplane"], ["supervisor", "controlplane"]], ids=str)
def test_down_ends_a_cluster_whose_processes_were_stopped(tmp_path: Path, names: list[str]) -> None:
    with start_cluster(tmp_path / "state", [NodeSpec("n1", 1)], detach=True) as cluster:
        running(cluster.engine, cluster.engine.submit(spec(SLEEP)))
        for name in names:
            kill(cluster, name, signal.SIGSTOP)
        began = time.monotonic()
        assert stop(tmp_path / "state", grace_s=0.5)
        assert time.monotonic() - began < 12
        assert processes_naming(str(tmp_path)) == {}


def test_without_a_control_plane_ranks_still_get_their_grace(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n    open(sys.argv[1], 'w').write('saved'); sys.exit(0)\n"
        "signal.signal(15, end)\nprint('on', flush=True)\ntime.sleep(600)"
    )
    with start_cluster(tmp_path / "state", TWO, detach=True) as cluster:
        job = cluster.engine.submit(spec(python(code, str(tmp_path / "saved"))))
        running(cluster.engine, job)
        within(20, lambda: [line.text for line in cluster.engine.logs(job)] == ["on"], "the rank listens")
        for name in ("supervisor", "controlplane"):
            kill(cluster, name)
        assert stop(tmp_path / "state", grace_s=30.0)
        assert (tmp_path / "saved").read_text() == "saved"


def test_down_says_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterwright.app.running.TELL_S", 0.1)
    told: list[str] = []
    with start_cluster(tmp_path / "state", TWO, detach=True) as cluster:
        running(cluster.engine, cluster.engine.submit(spec(STUBBORN, grace_s=1.0)))
        assert stop(tmp_path / "state", grace_s=1.0, progress=told.append)
    assert any("waiting for the supervisor (pid " in line and "s at most" in line for line in told)
