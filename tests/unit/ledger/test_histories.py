from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from clusterwright.ledger.histories import HistoryUsage, read_history
from clusterwright.ledger.lines import Line
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.jobs import (
    Attempt,
    AttemptState,
    Event,
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


def node(name: str = "n1", gpus: int = 8, model: str = "h100", **more: Any) -> Node:
    return Node(NodeSpec(name, gpus, model), NodeState.IDLE, tuple(f"VIRTUAL-{i}" for i in range(gpus)), **more)


def job(number: int = 1, *placements: dict[str, int], gpus: int = 8, **spec: Any) -> Job:
    """A job whose attempts had that many GPUs on those nodes."""
    attempts = tuple(
        Attempt(
            n + 1,
            n + 1,
            AttemptState.ENDED,
            tuple(TaskPlacement("main", i, at, ("d",) * count) for i, (at, count) in enumerate(placement.items())),
            (),
            (),
            "h100",
            0,
            0.0,
        )
        for n, placement in enumerate(placements)
    )
    made = JobSpec("train", (TaskGroup(("train",), gpus=gpus),), **spec)
    return Job(JobId(str(number)), made, JobState.PENDING, "/checkpoints", 0.0, 0.0, attempts=attempts)


def history(*events: tuple[Any, ...]) -> list[Event]:
    """(seconds, kind, job number or node name, data) each."""
    made = []
    for seq, (at_s, kind, *rest) in enumerate(events, 1):
        of, data = rest[0] if rest else None, rest[1] if len(rest) > 1 else {}
        named = {"job": JobId(str(of))} if isinstance(of, int) else {"node": of}
        made.append(Event(seq, float(at_s), kind, data=data, **named))
    return made


def read(events: Sequence[Event], jobs: Sequence[Job] = (), nodes: Sequence[Node] = (), **more: Any) -> HistoryUsage:
    found = read_history(events, jobs, list(nodes) or [node()], **({"as_of_s": 1000.0} | more))
    assert found.lines.total_gpu_ms == sum(found.lines.installed_gpu_ms.values())
    return found


def lines(found: HistoryUsage) -> dict[tuple[str, ...], float]:
    """GPU-seconds by line and detail."""
    return {key: n / 1000 for key, n in found.lines.by("line", "why").items()}


UP = (0, "node_up", "n1")
LIFE = (
    UP,
    (100, "submitted", 1),
    (100, "admitted", 1, {"attempt": 1}),
    (110, "started", 1),
)
DONE = ((900, "fencing", 1, {"end": "COMPLETED", "cause": None}), (905, "fenced", 1))


def test_a_job_that_succeeds() -> None:
    ended = (905, "ended", 1, {"state": "SUCCEEDED"})
    found = read(history(*LIFE, *DONE, ended), [job(1, {"n1": 8}, user="ada", queue="nlp")])
    assert lines(found) == {
        ("free without demand", ""): 8 * 195.0,
        ("starting", ""): 80.0,
        ("productive", ""): 8 * 790.0,
        ("held idle", ""): 40.0,
    }
    assert found.usage.by("user")["ada"].gpu_ms() == 8 * 805_000
    assert found.usage.cost_per_success({"h100": 3.6}) == pytest.approx(8 * 805 / 1000)
    assert found.lines.by("queue", "size")["nlp", "8"] == 8 * 805_000


def test_an_empty_history_has_no_lines() -> None:
    assert read_history([], [], [node()], as_of_s=10.0).lines.amounts == {}


def test_a_node_is_unknown_until_its_agent_reports() -> None:
    found = read(history((0, "control_plane_started", None), (10, "node_up", "n1")))
    assert lines(found) == {("unknown", "its agent had not reported yet"): 80.0, ("free without demand", ""): 7920.0}


def test_a_stopped_engine_knows_nothing_until_its_nodes_come_back() -> None:
    found = read(history(UP, (300, "cluster_stopped", None), (400, "node_up", "n1")))
    assert found.lines.of(Line.UNKNOWN, "the engine was stopped") == 8 * 100_000
    assert found.lines.of(Line.FREE) == 8 * 900_000


def test_a_lost_node_is_unhealthy_but_for_what_an_attempt_still_holds() -> None:
    lost = (
        (500, "fencing", 1, {"end": "NODE_LOST", "cause": "platform"}),
        (500, "node_lost", "n1"),
        (510, "fenced", 1),
        (510, "requeued", 1),
        (700, "node_up", "n1"),
    )
    found = lines(read(history(*LIFE, *lost), [job(1, {"n1": 6}, gpus=6)]))
    assert found["held idle", ""] == 60.0
    assert found["unhealthy", ""] == 2 * 10 + 8 * 190
    assert found["unknown", "checkpoints not recorded"] == 6 * 390


def test_checkpoints_that_were_recorded_divide_kept_from_lost() -> None:
    told = (
        (300, "checkpoint_seen", 1, {"stalled_s": 4.0}),
        (500, "fencing", 1, {"end": "NODE_LOST", "cause": "platform"}),
        (500, "fenced", 1),
        (500, "requeued", 1),
        (600, "admitted", 1, {"attempt": 2}),
        (610, "started", 1),
        (700, "fencing", 1, {"end": "PREEMPTED", "cause": None}),
        (700, "fenced", 1),
        (700, "requeued", 1),
    )
    found = lines(read(history(*LIFE, *told), [job(1, {"n1": 8}, {"n1": 8})]))
    assert found["productive", ""] == 8 * 186
    assert found["checkpoint-blocked", ""] == 32
    assert found["lost since checkpoint", "platform"] == 8 * 200
    assert found["preempted", ""] == 8 * 90


def test_a_job_that_failed_for_good_is_charged_to_its_cause() -> None:
    failed = ((200, "fencing", 1, {"end": "FAILED", "cause": "user code"}), (200, "fenced", 1))
    ended = (200, "ended", 1, {"state": "FAILED"})
    found = read(history(*LIFE, *failed, ended), [job(1, {"n1": 8})])
    assert lines(found)["failed", "user code"] == 8 * 90
    assert found.usage.cost_per_success({"h100": 1.0}) is None


@pytest.mark.parametrize(
    ("end", "key"),
    [
        ("SHUTDOWN", ("failed", "platform")),
        ("BLOCKED", ("failed", "setup")),
        ("TIMEOUT", ("lost since checkpoint", "time limit")),
        ("CANCELLED", ("lost since checkpoint", "cancelled")),
    ],
)
def test_every_end_of_the_engine_has_its_line(end: str, key: tuple[str, str]) -> None:
    over = ((200, "fencing", 1, {"end": end, "cause": None}), (200, "fenced", 1), (200, "ended", 1))
    assert lines(read(history(*LIFE, *over), [job(1, {"n1": 8})]))[key] == 8 * 90


def test_what_runs_now_is_cut_off_now() -> None:
    found = lines(read(history(*LIFE), [job(1, {"n1": 8})]))
    assert found["productive", "not saved yet"] == 8 * 890


def test_what_is_being_fenced_now_has_ended_its_work() -> None:
    found = lines(read(history(*LIFE, DONE[0]), [job(1, {"n1": 8})]))
    assert (found["productive", ""], found["held idle", ""]) == (8 * 790, 800)


def blocked(at_s: float, number: int, *kinds: str) -> tuple[Any, ...]:
    return at_s, "blocked_by", number, {"blockers": [{"kind": k, "message": ""} for k in kinds]}


def test_free_gpus_are_charged_to_what_blocks_the_first_who_waits() -> None:
    events = history(
        UP,
        (100, "submitted", 1),
        blocked(100, 1, "FRAGMENTED", "HARDWARE_WAIT"),
        (200, "submitted", 2),
        blocked(200, 2, "ORDER"),
        (300, "held", 1),
        (400, "released", 1),
        (500, "ended", 1, {"state": "CANCELLED"}),
        blocked(600, 2, "BACKOFF"),
    )
    found = lines(read(events, [job(1), job(2)]))
    assert found == {
        ("free without demand", ""): 8 * (100 + 400.0),
        ("free with demand", "FRAGMENTED"): 8 * (200 + 100.0),
        ("free with demand", "ORDER"): 8 * (100 + 100.0),
    }


def test_a_higher_priority_comes_first_and_other_models_do_not_want_these_gpus() -> None:
    events = history(
        (0, "node_up", "n1"),
        (0, "node_up", "b1"),
        (0, "submitted", 1),
        blocked(0, 1, "ORDER"),
        (0, "submitted", 2),
        blocked(0, 2, "QUOTA_WAIT"),
        (0, "submitted", 3),
        blocked(0, 3, "HARDWARE_WAIT"),
    )
    jobs = [job(1, gpu_model="h100"), job(2, gpu_model="h100", priority=5), job(3, gpus=0)]
    found = read(events, jobs, [node(), node("b1", 4, "b200")]).lines.by("flavor", "why")
    assert found == {("h100", "QUOTA_WAIT"): 8_000_000, ("b200", ""): 4_000_000}


def test_a_node_that_came_up_short_of_gpus_is_unhealthy() -> None:
    short = replace(node(), state=NodeState.DOWN, devices=("0", "1"))
    assert lines(read(history(UP), nodes=[short])) == {("unhealthy", ""): 8000.0}


def test_a_clock_that_steps_back_is_counted_and_breaks_nothing() -> None:
    found = read(history(UP, (50, "node_lost", "n1"), (40, "node_up", "n1")))
    assert found.clock_steps == 1
    assert found.lines.of(Line.UNHEALTHY) == 0


def test_an_interval_counts_what_is_within_it_and_is_partial_when_it_is_not_over() -> None:
    events, jobs = history(*LIFE, *DONE), [job(1, {"n1": 8})]
    first = read(events, jobs, until_s=500.0)
    second = read(events, jobs, since_s=500.0)
    assert (first.lines.of(Line.PRODUCTIVE), second.lines.of(Line.PRODUCTIVE)) == (8 * 390_000, 8 * 400_000)
    assert not first.lines.partial
    assert read(events, jobs, until_s=2000.0).lines.partial


def test_teams_are_those_of_queues() -> None:
    events, jobs = history(*LIFE), [job(1, {"n1": 8}, queue="nlp")]
    assert list(read(events, jobs, teams={"nlp": "research"}).usage.by("team")) == ["research"]
    assert list(read(events, jobs).usage.by("team")) == ["nlp"]


@pytest.mark.parametrize(
    ("jobs", "nodes", "says"),
    [
        ([], [node()], "job 1 is in the history, but there is no row of it"),
        ([job(1)], [node()], "attempt 1 of job 1 begins, which cannot be"),
        ([job(1, {"gone": 8})], [node()], "node gone ran jobs"),
        ([job(1, {"n1": 9})], [node()], "n1 has 8 GPUs, the history puts 9 to use"),
        ([job(1, {"n1": 1, "b1": 1})], [node(), node("b1", 4, "b200")], "several models"),
    ],
)
def test_contradictions_are_named(jobs: list[Job], nodes: list[Node], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read(history(*LIFE), jobs, nodes)


def test_a_history_without_its_beginning_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"event 2 \(started\) is of job 1, whose submission is not in the history"):
        read(history(UP, (5, "started", 1)), [job(1)])
