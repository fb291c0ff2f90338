"""Kill -9 at random moments, while a job does everything to survive its own end."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterwright.app.running import start_cluster
from clusterwright.engines.local.identities import Identity, read_identity, send_signal
from clusterwright.engines.local.layout import Layout
from clusterwright.model.jobs import JobId, JobSpec, JobState, NodeSpec, TaskGroup

from .conftest import processes_naming

pytestmark = pytest.mark.local

HYDRA = Path(__file__).parent / "programs" / "hydra.py"
KILLS = 30


def within(seconds: float, condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def overlaps(text: str) -> list[str]:
    """Lines written by an attempt after a newer one had begun to write."""
    newest, late = 0, []
    for line in text.splitlines():
        epoch = int(line.split()[0])
        if epoch < newest:
            late.append(line)
        newest = max(newest, epoch)
    return late


def test_the_check_itself_sees_an_overlap() -> None:
    assert overlaps("1 0 7 main start\n2 0 8 main start\n1 0 7 main alive\n") == ["1 0 7 main alive"]


@pytest.mark.timeout(240)
def test_thirty_kills_lose_no_job_overlap_no_attempt_and_leave_no_process(tmp_path: Path) -> None:
    rng = random.Random(20240917)
    layout = Layout(tmp_path / "state")
    exclusive, stop = tmp_path / "exclusive", tmp_path / "stop"
    nodes = [NodeSpec("n1", 1, "h100"), NodeSpec("n2", 1, "h100")]
    argv = (sys.executable, "-I", "-S", str(HYDRA), str(exclusive), str(stop))
    spec = JobSpec("hydra", (TaskGroup(argv, count=2, gpus=1, min_count=1),), grace_s=0.2)
    with start_cluster(layout.root, nodes, stop_grace_s=0.5) as cluster:
        engine = cluster.engine
        job = engine.submit(spec)
        for _ in range(KILLS):
            victims = rng.choice([["agent-n1"], ["agent-n2"], ["controlplane"], ["controlplane", "agent-n1"]])
            if rng.random() < 0.6:
                engine.wait(job, lambda j: j.state is JobState.RUNNING, timeout_s=60)
            time.sleep(rng.uniform(0.0, 0.3))
            kill_all(layout, victims)
        engine.wait(job, lambda j: j.state is JobState.RUNNING, timeout_s=60)
        stop.touch()
        ended = engine.wait(job, timeout_s=60)
        assert ended.state is JobState.SUCCEEDED
        assert [j.id for j in engine.jobs()] == [JobId("1")]
        assert len(ended.attempts) > 1
        assert [a.epoch for a in ended.attempts] == sorted({a.epoch for a in ended.attempts})
        assert not processes_naming(str(exclusive)), "left over while the cluster is still up"
    text = exclusive.read_text()
    kinds = {line.split()[3] for line in text.splitlines()}
    assert kinds == {"main", "session", "daemon", "nameless"}
    assert overlaps(text) == []
    assert processes_naming(str(tmp_path)) == {}


def kill_all(layout: Layout, names: list[str]) -> None:
    """Kill -9 the processes of these names, together, as soon as all of them live."""
    found: list[Identity] = []

    def all_alive() -> bool:
        found[:] = [i for n in names if (i := read_identity(layout, n)) is not None]
        return len(found) == len(names)

    within(30, all_alive, f"{names} alive")
    killed = [send_signal(i, signal.SIGKILL) for i in found]
    assert any(killed)
