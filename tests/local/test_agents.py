"""A real agent, with the test as its control plane."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterwright.app.running import start_cluster
from clusterwright.app.wiring import child_command
from clusterwright.engines.local import fences, wire
from clusterwright.engines.local.configs import ClusterConfig, write_config
from clusterwright.engines.local.layout import TAG, Layout, agent_tag
from clusterwright.engines.local.wire import Message
from clusterwright.model.jobs import JobSpec, JobState, NodeSpec, TaskGroup
from clusterwright.queueing.quotas import QueueTree

from .conftest import processes_naming

pytestmark = pytest.mark.local

RANKS = 200
LIMIT = "import resource, time; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"


class Plane:
    """The other end of one agent."""

    def __init__(self, directory: Path) -> None:
        self.layout, self.boot, self.cluster = Layout(directory / "state"), uuid.uuid4().hex, uuid.uuid4().hex
        self.layout.make()
        write_config(self.layout, ClusterConfig(self.cluster, (NodeSpec("n1", 0),), QueueTree(), heartbeat_s=0.02))
        self.checkpoint = str(directory / "ckpt")
        assert fences.open_epoch(self.checkpoint, fences.Owner(self.cluster, "1"), 1) == 1
        with wire.listen(self.layout.run / "cp.sock") as listener:
            environment = {**os.environ, TAG: agent_tag(self.cluster, "n1", self.boot), "CLUSTERWRIGHT_BOOT": self.boot}
            self.process = subprocess.Popen(child_command(self.layout.root, "agent", "n1"), env=environment)
            listener.settimeout(60)
            self.connection, _ = listener.accept()
        self.connection.settimeout(60)
        self.latest = dict[int, Message]()
        self.lines = self.connection.makefile("rb")
        assert self.receive()["type"] == "hello"

    def receive(self) -> Message:
        return wire.decode(self.lines.readline())

    def send(self, kind: str, **fields: Any) -> None:
        self.connection.sendall(wire.encode({"type": kind, **fields}))

    def launch(self, *argv: str) -> None:
        orders = [
            {
                "rank": rank,
                "argv": argv,
                "env": {TAG: f"{self.cluster}/job/1/1/{rank}"},
                "directory": str(self.layout.rank("1", 1, rank)),
                "workdir": "/",
                "fence": str(fences.fence_path(self.checkpoint)),
            }
            for rank in range(RANKS)
        ]
        self.send("launch", job="1", epoch=1, ranks=orders)

    def reports(self, until: Callable[[dict[int, Message]], bool]) -> int:
        """Take reports in until a condition on the latest of each rank holds; how many heartbeats came meanwhile."""
        beats = 0
        while not until(self.latest):
            message = self.receive()
            beats += message["type"] == "heartbeat"
            self.latest.update({r["rank"]: r for r in message.get("ranks", ())})
        return beats

    def close(self) -> None:
        self.send("exit")
        assert self.process.wait(timeout=60) == 0
        self.lines.close()
        self.connection.close()


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    found = Plane(tmp_path)
    try:
        yield found
        found.close()
    finally:
        found.process.kill()
        found.process.wait()
    assert processes_naming(str(tmp_path)) == {}


def all_started(latest: dict[int, Message]) -> bool:
    return len(latest) == RANKS


def all_ended(latest: dict[int, Message]) -> bool:
    return all_started(latest) and all(r["exit"] for r in latest.values())


@pytest.mark.timeout(120)
def test_it_says_that_it_lives_while_it_launches_many_ranks(plane: Plane) -> None:
    plane.launch("true")
    assert plane.reports(all_started) >= 2
    assert all(r["pid"] is not None for r in plane.latest.values())
    plane.reports(all_ended)
    assert {r["exit"] for r in plane.latest.values()} == {"code 0"}


@pytest.mark.timeout(120)
def test_ranks_that_are_stopped_before_their_turn_are_never_started(plane: Plane) -> None:
    plane.launch("sleep", "600")
    plane.reports(lambda latest: len(latest) > 0)
    plane.send("signal", job="1", epoch=1, signal=int(signal.SIGTERM))
    plane.reports(all_ended)
    unstarted = [r for r in plane.latest.values() if r["exit"] == "error stopped before it was started"]
    assert unstarted
    assert {r["pid"] for r in unstarted} == {None}


def test_more_ranks_than_the_shell_may_open_files_run_with_the_limit_of_that_shell(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    argv = (sys.executable, "-I", "-S", "-c", LIMIT)
    resource.setrlimit(resource.RLIMIT_NOFILE, (48, hard))
    try:
        with start_cluster(tmp_path / "state", [NodeSpec("n1", 0)]) as cluster:
            job = cluster.engine.submit(JobSpec("job", (TaskGroup(argv, ranks=60),)))
            ended = cluster.engine.wait(job, timeout_s=120)
            assert ended.state is JobState.SUCCEEDED, ended.detail
            assert {line.text for line in cluster.engine.logs(job)} == {"48"}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
