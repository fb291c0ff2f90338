"""The control plane with clock, store and messages as plain values: no socket, no ranks."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clusterwright.engines.local import fences
from clusterwright.engines.local.configs import ClusterConfig, read_config, write_config
from clusterwright.engines.local.controlplane import ControlPlane
from clusterwright.engines.local.directories import Directories
from clusterwright.engines.local.fences import Owner
from clusterwright.engines.local.identities import read_stat
from clusterwright.engines.local.layout import Layout
from clusterwright.engines.local.links import Link
from clusterwright.engines.local.shim import read_fence
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.model.jobs import (
    AttemptEnd,
    AttemptState,
    Cause,
    Event,
    Job,
    JobId,
    JobSpec,
    JobState,
    Node,
    NodeSpec,
    NodeState,
    TaskGroup,
)
from clusterwright.model.outlooks import BlockerKind
from clusterwright.ports.stores import NewEvent, Snapshot
from clusterwright.queueing.quotas import Queue, QueueTree, Quota

VIRTUAL = [NodeSpec("n1", 2, "h100"), NodeSpec("n2", 2, "h100")]


class MemoryStore:
    """A store that forgets on exit and can be made to fail."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.nodes: dict[str, Node] = {}
        self.history: list[Event] = []

    def load(self) -> Snapshot:
        return Snapshot(tuple(self.jobs.values()), tuple(self.nodes.values()))

    def commit(self, *, jobs: Sequence[Job] = (), nodes: Sequence[Node] = (), events: Sequence[NewEvent] = ()) -> int:
        self.jobs.update({j.id: j for j in jobs})
        self.nodes.update({n.spec.name: n for n in nodes})
        for e in events:
            self.history.append(Event(len(self.history) + 1, e.at_s, e.kind, e.job, e.epoch, e.node, e.data))
        return len(self.history)

    def forget_nodes(self, names: Sequence[str]) -> None:
        for name in names:
            self.nodes.pop(name, None)

    def events(self, after: int = 0, *, job: JobId | None = None, limit: int = 10_000) -> tuple[Event, ...]:
        return tuple(e for e in self.history if e.seq > after and job in (None, e.job))[:limit]

    def close(self) -> None:
        pass


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def now_s(self) -> float:
        return self.now

    def monotonic_s(self) -> float:
        return self.now


class Inline(Directories):
    """Reaches directories at once and in the same thread."""

    async def run(self, directory: str, work: Callable[[], Any], timeout_s: float) -> Any:
        return work()

    def start(
        self, directory: str, work: Callable[[], Any], timeout_s: float, done: Callable[[Any], None]
    ) -> Callable[[], object]:
        try:
            outcome = work()
        except OSError as error:
            outcome = error
        done(outcome)
        return lambda: None


class Scene:
    """One control plane, and the messages its agents get. Every incarnation of an agent is a process that sleeps."""

    def __init__(self, root: Path, nodes: Sequence[NodeSpec], tree: QueueTree | None = None) -> None:
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.layout = Layout(root / "state")
        self.layout.make()
        self.store: MemoryStore = MemoryStore()
        self.time = Time()
        self.config = ClusterConfig("cluster", tuple(nodes), tree or QueueTree(), heartbeat_timeout_s=10.0)
        self.sent: dict[str, list[dict[str, Any]]] = {}
        self.plane = self.start()

    def start(self) -> ControlPlane:
        self.plane = ControlPlane(self.layout, self.config, self.store, self.time, Inline())
        self.plane.recover()
        return self.plane

    def hello(self, node: str, boot: str = "b1", devices: Sequence[str] = (), ranks: Sequence[Any] = ()) -> bool:
        if node + boot not in self.agents:
            self.agents[node + boot] = subprocess.Popen(["sleep", "600"])
        agent = read_stat(self.agents[node + boot].pid)
        assert agent is not None
        box = self.sent.setdefault(node, [])
        message = {"node": node, "boot": boot, "pid": agent.pid, "starttime": agent.starttime, "devices": list(devices)}
        return self.plane.on_hello({**message, "ranks": list(ranks)}, Link(boot, box.append, lambda: None))

    def submit(self, count: int = 1, gpus: int = 1, **more: Any) -> JobId:
        spec = JobSpec("job", (TaskGroup(("p", "a b"), count, gpus),), **more)
        return self.plane.submit(spec, "", spec.checkpoint_dir)

    def launched(self, node: str) -> list[dict[str, Any]]:
        return [r for m in self.sent.get(node, []) if m["type"] == "launch" for r in m["ranks"]]

    def report(self, job: JobId, rank: int, *, exit: str | None = None, epoch: int = 1) -> dict[str, Any]:
        # A pid that cannot exist: above the largest that Linux gives (proc(5), pid_max).
        process = {"pid": 2**22 + 1 + rank, "starttime": 1, "started_at_s": self.time.now}
        return {"job": job, "epoch": epoch, "rank": rank, **process, "exit": exit, "ended_at_s": None}


Stage = Callable[..., Scene]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Builds scenes; their agents end with the test."""
    scenes: list[Scene] = []

    def build(nodes: Sequence[NodeSpec] = VIRTUAL, tree: QueueTree | None = None) -> Scene:
        scenes.append(Scene(tmp_path, nodes, tree))
        return scenes[-1]

    yield build
    for agent in (a for s in scenes for a in s.agents.values()):
        agent.kill()
        agent.wait()


def in_loop(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test inside an event loop, which background tasks of the control plane need."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        async def inside() -> None:
            test(**fixtures)

        asyncio.run(inside())

    return run


@in_loop
def test_a_launch_is_ordered_once_the_epoch_is_open(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    job = s.submit(gpus=2)
    first, second = s.launched("n1")
    fence = read_fence(str(fences.fence_path(s.plane.jobs[job].checkpoint_dir)))
    assert fence == (1, "open", "cluster", job)
    assert (first["argv"], first["env"]["CUDA_VISIBLE_DEVICES"]) == (["p", "a b"], "VIRTUAL-0,VIRTUAL-1")
    assert (first["env"]["LOCAL_RANK"], second["env"]["LOCAL_RANK"]) == ("0", "1")


@in_loop
def test_real_gpus_are_named_by_what_the_agent_found(stage: Stage) -> None:
    s = stage([NodeSpec("n1", 2, "h100", virtual=False)])
    s.hello("n1", devices=["GPU-aa", "GPU-bb", "GPU-cc"])
    s.submit(gpus=2)
    env = s.launched("n1")[0]["env"]
    assert (env["CUDA_VISIBLE_DEVICES"], env["CLUSTERWRIGHT_VIRTUAL"]) == ("GPU-aa,GPU-bb", "0")


@in_loop
def test_a_node_with_fewer_real_gpus_than_declared_is_down_and_says_so(stage: Stage) -> None:
    s = stage([NodeSpec("n1", 2, "h100", virtual=False)])
    s.hello("n1", devices=["GPU-aa"])
    node = s.plane.nodes["n1"]
    assert (node.state, node.reason) == (NodeState.DOWN, "1 of 2 declared GPUs found through NVML")
    assert s.plane.outlook(s.plane.jobs[s.submit(gpus=1)]).blockers[0].kind is BlockerKind.HARDWARE_WAIT


@in_loop
def test_a_restarted_control_plane_orders_only_what_was_not_reported(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    job = s.submit(gpus=2)
    s.sent.clear()
    s.start()
    assert s.plane.jobs[job].state is JobState.STARTING
    s.hello("n1", ranks=[s.report(job, 0)])
    assert [r["rank"] for r in s.launched("n1")] == [1]
    s.plane.on_ranks([s.report(job, 1)])
    assert s.plane.jobs[job].state is JobState.RUNNING
    assert s.plane.nodes["n1"].incarnation == 1


@in_loop
def test_an_agent_that_forgot_a_running_rank_is_not_believed(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    job = s.submit()
    s.plane.on_ranks([s.report(job, 0)])
    s.start()
    s.hello("n1")
    attempt = s.plane.jobs[job].attempt
    assert attempt is not None
    assert (attempt.state, attempt.cause) == (AttemptState.FENCING, Cause.PLATFORM)


@in_loop
def test_silence_beyond_the_timeout_loses_the_node_and_a_heartbeat_prevents_it(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    s.hello("n2")
    for _ in range(15):
        s.time.now += 0.9
        s.plane.on_heartbeat("n2")
        s.plane.tick()
    assert not s.plane.nodes["n1"].up
    assert s.plane.nodes["n2"].up
    assert "no heartbeat for 10." in s.plane.nodes["n1"].reason


@in_loop
def test_the_control_planes_own_absence_is_no_agents_fault(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    s.time.now += 3600
    s.plane.tick()
    assert s.plane.nodes["n1"].up


@in_loop
def test_a_time_limit_counts_from_the_moment_all_ranks_run(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    job = s.submit(time_limit_s=5.0)
    s.time.now += 0.9
    s.plane.on_ranks([s.report(job, 0)])
    for seconds, state in ((4.9, JobState.RUNNING), (0.2, JobState.COMPLETING)):
        s.time.now += seconds
        s.plane.on_heartbeat("n1")
        s.plane.tick()
        assert s.plane.jobs[job].state is state
    assert s.sent["n1"][-1]["signal"] == 15


@in_loop
def test_the_same_token_twice_is_one_job(stage: Stage) -> None:
    s = stage()
    spec = JobSpec("job", (TaskGroup(("p",)),))
    assert s.plane.submit(spec, "t") == s.plane.submit(spec, "t") != s.plane.submit(spec, "u")


@in_loop
def test_a_queue_that_takes_no_jobs_is_refused_with_the_choices(stage: Stage) -> None:
    tree = QueueTree((Queue("all"), Queue("a", "all", {"h100": Quota(2)})))
    s = stage(VIRTUAL, tree)
    with pytest.raises(InvalidInput, match="queue 'all' takes no jobs; queues: a"):
        s.submit(queue="all")


@in_loop
def test_without_declared_queues_only_the_default_one_takes_jobs(stage: Stage) -> None:
    s = stage()
    with pytest.raises(InvalidInput, match="queue 'nope' does not exist: no queues are declared"):
        s.submit(queue="nope")
    assert s.submit(queue="default") == "1"


@in_loop
def test_an_attempt_whose_agent_was_replaced_while_nobody_looked_is_lost(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    job = s.submit()
    s.plane.on_ranks([s.report(job, 0)])
    s.hello("n1", boot="b2")
    found = s.plane.jobs[job]
    assert found.state is JobState.RECOVERING
    assert found.exclusions[0].incarnation == 1
    assert s.plane.nodes["n1"].incarnation == 2


@in_loop
def test_a_node_that_is_no_longer_declared_loses_its_attempts_and_its_row(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    job = s.submit()
    s.config = ClusterConfig("cluster", tuple(VIRTUAL[1:]), QueueTree())
    s.start()
    assert s.plane.jobs[job].state is JobState.RECOVERING
    assert list(s.store.nodes) == ["n2"]


@in_loop
def test_a_checkpoint_directory_of_another_cluster_is_left_alone(stage: Stage, tmp_path: Path) -> None:
    s = stage()
    (tmp_path / "ckpt").mkdir()
    fences.fence_path(str(tmp_path / "ckpt")).write_text("garbage")
    s.hello("n1")
    job = s.submit(checkpoint_dir=str(tmp_path / "ckpt"))
    attempt = s.plane.jobs[job].attempt
    assert attempt is not None
    assert (attempt.state, attempt.cause) == (AttemptState.FENCING, Cause.SETUP)
    assert "cannot be read" in attempt.detail
    assert s.launched("n1") == []


@in_loop
def test_epochs_continue_after_those_that_a_directory_has_seen(stage: Stage, tmp_path: Path) -> None:
    s = stage()
    other = Owner("other", "1")
    fences.open_epoch(str(tmp_path / "ckpt"), other, 41)
    fences.close_epoch(str(tmp_path / "ckpt"), other)
    s.hello("n1")
    attempt = s.plane.jobs[s.submit(checkpoint_dir=str(tmp_path / "ckpt"))].attempt
    assert attempt is not None
    assert attempt.epoch == 42


def test_the_config_survives_being_written_and_read(tmp_path: Path) -> None:
    tree = QueueTree((Queue("all", None, {}, True), Queue("a", "all", {"h100": Quota(2, 1, None)})))
    config = ClusterConfig("id", (NodeSpec("n1", 2, "h100", False, ("row", "rack")),), tree, False, 0.5, 3.0)
    layout = Layout(tmp_path)
    write_config(layout, config)
    assert read_config(layout) == config
    assert os.stat(layout.config).st_mode & 0o077 == 0


@in_loop
def test_the_first_attempt_goes_where_it_is_told_and_later_ones_wherever_there_is_room(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    s.hello("n2")
    job = s.submit(gpus=1, first_nodes=("n2",))
    assert s.plane.jobs[job].attempts[0].nodes == ("n2",)
    s.plane.on_ranks([s.report(job, 0)])
    s.plane.lose("n2", "its process ended")
    s.plane.on_fenced(job)
    s.plane.schedule()
    assert [a.nodes for a in s.plane.jobs[job].attempts] == [("n2",), ("n1",)]
    with pytest.raises(InvalidInput, match="first node 'n9' does not exist; nodes: n1, n2"):
        s.submit(first_nodes=("n9",))


@in_loop
def test_of_jobs_released_together_the_queue_decides_which_goes_first(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    low = s.submit(gpus=2, held=True)
    high = s.submit(gpus=2, held=True, priority=9)
    s.plane.hold([s.plane.jobs[j] for j in (low, high)], held=False)
    assert [s.plane.jobs[j].state for j in (low, high)] == [JobState.PENDING, JobState.STARTING]
    assert [e.kind for e in s.store.history].count("released") == 2


@in_loop
def test_a_busy_directory_gives_the_gpus_back_and_says_whose_it_is(stage: Stage, tmp_path: Path) -> None:
    s = stage()
    ckpt = tmp_path / "ckpt"
    fences.open_epoch(str(ckpt), Owner("other", "1", "/elsewhere"), 1)
    s.hello("n1")
    job = s.submit(checkpoint_dir=str(ckpt))
    attempt = s.plane.jobs[job].attempts[0]
    assert (attempt.state, attempt.end, s.launched("n1")) == (AttemptState.FENCING, AttemptEnd.BLOCKED, [])
    s.plane.on_fenced(job)
    (blocker,) = s.plane.outlook(s.plane.jobs[job]).blockers
    assert blocker.kind is BlockerKind.GATED
    assert "state in /elsewhere" in blocker.message
    assert len(s.plane.jobs[job].attempts) == 1


@in_loop
def test_a_returning_agent_is_told_again_to_drop_what_is_over(stage: Stage) -> None:
    s = stage()
    s.hello("n1")
    job = s.submit()
    s.plane.on_ranks([s.report(job, 0, exit="code 1")])
    s.sent.clear()
    s.hello("n1", ranks=[s.report(job, 0, exit="code 1")])
    assert {"type": "drop", "job": job, "epoch": 1} in s.sent["n1"]
    assert s.launched("n1") == []


class FullStore(MemoryStore):
    full = False

    def commit(self, *, jobs: Sequence[Job] = (), nodes: Sequence[Node] = (), events: Sequence[NewEvent] = ()) -> int:
        if self.full:
            raise Unavailable("no space")
        return super().commit(jobs=jobs, nodes=nodes, events=events)


@in_loop
def test_what_cannot_be_written_has_not_happened_and_is_done_when_it_can(stage: Stage) -> None:
    s = stage()
    s.store = store = FullStore()
    s.start()
    s.hello("n1")
    job = s.submit()
    s.plane.on_ranks([s.report(job, 0)])
    store.full = True
    before = s.plane.jobs[job]
    for change in (lambda: s.submit(), lambda: s.plane.cancel(before), lambda: s.plane.lose("n1", "gone")):
        with pytest.raises(Unavailable, match="no space"):
            change()
    assert s.plane.jobs == {job: before}
    assert s.plane.nodes["n1"].up
    assert s.plane.trouble == "no space"
    store.full = False
    s.plane.cancel(before)
    assert s.plane.jobs[job].state is JobState.COMPLETING
    assert s.plane.trouble == ""


@in_loop
def test_an_epoch_opened_while_the_state_was_full_is_opened_again_and_launched(stage: Stage) -> None:
    s = stage()
    s.store = store = FullStore()
    s.start()
    s.hello("n1")
    job = s.submit(held=True)
    attempt_epochs = []

    def outcome(opened: int | OSError) -> None:
        store.full = True
        s.plane._on_epoch(job, 1, opened)
        store.full = False
        attempt_epochs.append(opened)

    real, s.plane._claims.open = s.plane._claims.open, lambda j, a, done: real(j, a, outcome)  # type: ignore[method-assign]
    s.plane.hold([s.plane.jobs[job]], held=False)
    assert s.launched("n1") == []
    s.plane._claims.open = real  # type: ignore[method-assign]
    s.plane.tick()
    assert attempt_epochs == [1]
    assert [m["epoch"] for m in s.sent["n1"] if m["type"] == "launch"] == [2]
