"""The control plane takes GPUs of running jobs for others, and forgets nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clusterwright.engines.local.explaining import AT_ONCE, Reasons
from clusterwright.lib.errors import Unavailable
from clusterwright.model.jobs import AttemptEnd, AttemptState, JobId, JobState, NodeSpec
from clusterwright.model.outlooks import BlockerKind
from clusterwright.ports.stores import NewEvent
from clusterwright.queueing.policies import Policy, PreemptionPolicy, WithinQueue

from .test_controlplane import FullStore, Scene, in_loop

ONE = [NodeSpec("n1", 2, "h100")]
POLICY = Policy(preemption=PreemptionPolicy(within_queue=WithinQueue.LOWER, grace_s=7.0))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Callable[[], Scene]]:
    """Builds a scene of one node with 2 GPUs whose policy preempts."""
    made: list[Scene] = []

    def build() -> Scene:
        s = Scene(tmp_path, ONE)
        made.append(s)
        s.store = FullStore()
        s.config = replace(s.config, policy=POLICY)
        s.start()
        s.hello("n1")
        return s

    yield build
    for agent in (a for s in made for a in s.agents.values()):
        agent.kill()
        agent.wait()


def runs(s: Scene, gpus: int, **more: int) -> JobId:
    job = s.submit(gpus=gpus, **more)
    s.plane.on_ranks([s.report(job, rank) for rank in range(gpus)])
    assert s.plane.jobs[job].state is JobState.RUNNING
    return job


def ends(s: Scene, job: JobId) -> None:
    """Its ranks end as they were told, and every process is gone."""
    attempt = s.plane.jobs[job].attempts[-1]
    s.plane.on_ranks([s.report(job, r.rank, exit="signal 15", epoch=attempt.epoch) for r in attempt.ranks])
    s.plane.on_fenced(job)
    s.plane.tick()


@in_loop
def test_who_must_leave_gets_sigterm_and_the_declared_grace_and_waits_without_a_counted_restart(
    scene: Callable[[], Scene],
) -> None:
    s = scene()
    low = runs(s, 2)
    high = s.submit(gpus=2, priority=5)
    attempt = s.plane.jobs[low].attempts[-1]
    assert s.sent["n1"][-1] == {"type": "signal", "job": low, "epoch": attempt.epoch, "signal": 15}
    assert (attempt.state, attempt.end, attempt.preempted_by) == (
        AttemptState.STOPPING,
        AttemptEnd.PREEMPTED,
        high,
    )
    assert attempt.stop_by_s == s.time.now + 7.0
    assert [b.kind for b in s.plane.outlook(s.plane.jobs[high]).blockers] == [BlockerKind.PREEMPTING]
    ends(s, low)
    assert s.plane.jobs[high].state is JobState.STARTING
    assert (s.plane.jobs[low].state, s.plane.jobs[low].restarts) == (JobState.PENDING, 0)
    kinds = [e.kind for e in s.store.history if e.job == low]
    assert kinds[kinds.index("preempted") :] == [
        "preempted",
        "stopping",
        "rank_exited",
        "rank_exited",
        "fencing",
        "fenced",
        "requeued",
        "blocked_by",
    ]


@in_loop
def test_a_restarted_control_plane_keeps_for_the_winner_what_came_free(scene: Callable[[], Scene]) -> None:
    s = scene()
    first, second = runs(s, 1), runs(s, 1)
    high = s.submit(gpus=2, priority=5)
    ends(s, first)
    s.start()
    s.hello("n1", ranks=[s.report(second, 0)])
    small = s.submit(gpus=1, priority=4)
    s.plane.tick()
    assert s.plane.jobs[small].state is JobState.PENDING
    claim = s.plane.jobs[high].claim
    assert claim is not None
    assert set(claim.victims) == {first, second}
    ends(s, second)
    assert s.plane.jobs[high].state is JobState.STARTING
    assert s.plane.jobs[high].claim is None
    assert [e.kind for e in s.store.history].count("preempted") == 2


@in_loop
def test_a_preemption_that_cannot_be_written_has_not_happened(scene: Callable[[], Scene]) -> None:
    s = scene()
    low = runs(s, 2)
    high = s.submit(gpus=2, priority=5, held=True)
    told = len(s.sent["n1"])
    s.store.full = True  # type: ignore[attr-defined]
    s.plane.jobs[high] = replace(s.plane.jobs[high], held=False)
    s.plane._undecided = True
    s.plane.schedule()
    assert (s.plane.jobs[low].state, s.plane.jobs[high].claim, len(s.sent["n1"])) == (JobState.RUNNING, None, told)
    s.store.full = False  # type: ignore[attr-defined]
    s.plane.schedule()
    assert s.plane.jobs[low].state is JobState.PREEMPTING
    assert s.plane.jobs[high].claim is not None


@pytest.mark.parametrize("end", ["cancelled", "held"])
@in_loop
def test_what_was_kept_for_a_winner_is_free_again_when_it_goes(scene: Callable[[], Scene], end: str) -> None:
    s = scene()
    first, second = runs(s, 1), runs(s, 1)
    high = s.submit(gpus=2, priority=5)
    ends(s, first)
    if end == "cancelled":
        s.plane.cancel(s.plane.jobs[high])
    else:
        s.plane.hold([s.plane.jobs[high]], held=True)
    s.plane.tick()
    assert s.plane.jobs[high].claim is None
    assert s.plane.jobs[first].state is JobState.STARTING
    assert s.plane.jobs[second].state is JobState.PREEMPTING


@in_loop
def test_a_victim_that_started_nothing_yet_is_cleared_without_grace(scene: Callable[[], Scene]) -> None:
    s = scene()
    s.plane._claims.open = lambda job, attempt, done: None  # type: ignore[method-assign]
    low = s.submit(gpus=2)
    high = s.submit(gpus=2, priority=5)
    attempt = s.plane.jobs[low].attempts[-1]
    assert (attempt.state, attempt.end, attempt.preempted_by) == (AttemptState.FENCING, AttemptEnd.PREEMPTED, high)


@in_loop
def test_history_is_told_why_hundreds_of_jobs_wait_a_few_at_a_time(scene: Callable[[], Scene]) -> None:
    s = scene()
    runs(s, 2, priority=9)
    for _ in range(2 * AT_ONCE + 5):
        s.plane.submit(s.plane.jobs[JobId("1")].spec, "")
    for _ in range(4):
        s.plane.tick()
    told = {e.job for e in s.store.history if e.kind == "blocked_by"}
    assert told == {j.id for j in s.plane.jobs.values() if j.state is JobState.PENDING}
    before = len(s.store.history)
    for _ in range(4):
        s.plane._undecided = True
        s.plane.tick()
    assert len(s.store.history) == before


@in_loop
def test_reasons_that_could_not_be_written_are_told_later(scene: Callable[[], Scene]) -> None:
    s = scene()
    runs(s, 2)
    job = s.submit(gpus=2)
    reasons, told = Reasons(), list[NewEvent]()
    assert s.plane._decided is not None
    reasons.decided(s.plane._decided)

    def fail(_events: Sequence[NewEvent]) -> None:
        raise Unavailable("no space")

    with pytest.raises(Unavailable):
        reasons.look(fail)
    assert not reasons.look(told.extend)
    assert [(e.job, e.data["blockers"][0]["kind"]) for e in told] == [(job, "HARDWARE_WAIT")]
