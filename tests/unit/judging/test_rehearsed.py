"""What a rehearsal showed: every way in which tasks or a recovery can be wrong is seen."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from clusterwright.judging.concluding import conclude_loss, tell_loss
from clusterwright.judging.executing import JobReport, Report, compare_execution, parse_report
from clusterwright.judging.expecting import Expectation, ExpectedJob, ExpectedTask, Promise, Unexpected
from clusterwright.judging.recovering import (
    Eviction,
    LoggedStep,
    LossObservation,
    Neighbour,
    compare_loss,
    describe_time,
    parse_step_log,
    time_loss,
)
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import MomentKind, RehearsalOutcome
from clusterwright.model.jobs import Event, JobId

JOB = ExpectedJob("chat-0", "chat", (ExpectedTask("gpu", "n1", 2),), shared_stores=("object",))
OTHER = ExpectedJob("tune", "tune", (ExpectedTask("gpu", "n1", 1), ExpectedTask("gpu", "n2", 1)))
BOTH = Expectation((JOB, OTHER))


def report(rank: int, node: str, devices: str, pids: tuple[int, ...], local_rank: int = 0, **more: Any) -> Report:
    members = tuple(enumerate(pids))
    fields = {"stores": {"object": ""}} | more
    return Report(node, tuple(devices.split(",")), rank, local_rank, len(pids), pids[rank], members, **fields)


CHAT = JobReport((report(0, "n1", "a,b", (10, 11)), report(1, "n1", "a,b", (10, 11), 1)))
TUNE = JobReport((report(0, "n1", "c", (20, 21)), report(1, "n2", "a", (20, 21))))


def failing(chat: JobReport = CHAT, tune: JobReport = TUNE) -> tuple[set[str], float]:
    checks, reading = compare_execution(BOTH, {"chat-0": chat, "tune": tune})
    assert isinstance(reading.value, Quantity)
    return {c.name for c in checks if not c.holds}, reading.value.value


def test_tasks_that_land_as_expected_are_all_as_expected() -> None:
    assert failing() == (set(), 1.0)


def with_rank(found: JobReport, rank: int, **fields: Any) -> JobReport:
    return JobReport(tuple(replace(r, **fields) if r.rank == rank else r for r in found.reports))


@pytest.mark.parametrize(
    ("chat", "tune", "check", "share"),
    [
        (JobReport(()), TUNE, "chat-0: every rank reports", 0.5),
        (JobReport(CHAT.reports[:1]), TUNE, "chat-0: every rank reports", 0.75),
        (JobReport((*CHAT.reports, CHAT.reports[0])), TUNE, "chat-0: every rank reports", 0.5),
        (replace(CHAT, unreadable=("Traceback",)), TUNE, "chat-0: every rank reports", 1.0),
        (with_rank(CHAT, 1, node="n2"), TUNE, "chat-0: nodes", 0.5),
        (CHAT, with_rank(TUNE, 1, node="n1"), "tune: nodes", 0.0),
        (with_rank(CHAT, 1, local_rank=0), TUNE, "chat-0: devices", 0.5),
        (with_rank(CHAT, 1, local_rank=2), TUNE, "chat-0: devices", 0.75),
        (with_rank(CHAT, 0, devices=("a",)), TUNE, "chat-0: devices", 0.75),
        (CHAT, with_rank(TUNE, 0, devices=("b",)), "devices given to two jobs at once", 0.25),
        (with_rank(CHAT, 0, world_size=4), TUNE, "chat-0: membership", 0.75),
        (with_rank(CHAT, 0, members=((0, 10),)), TUNE, "chat-0: membership", 0.75),
        (with_rank(CHAT, 0, members=((0, 10), (1, 99))), TUNE, "chat-0: membership", 0.75),
        (with_rank(CHAT, 0, failure="nobody came"), TUNE, "chat-0: membership", 0.75),
        (with_rank(CHAT, 0, stores={"object": "not visible"}), TUNE, "chat-0: mounts", 0.75),
        (with_rank(CHAT, 0, stores={}), TUNE, "chat-0: mounts", 0.75),
    ],
)
def test_what_is_not_as_expected_is_named_and_counted(
    chat: JobReport, tune: JobReport, check: str, share: float
) -> None:
    names, found = failing(chat, tune)
    assert check in names
    assert found == share


def test_nothing_reported_is_nothing_as_expected() -> None:
    names, share = failing(JobReport(()), JobReport(()))
    assert share == 0
    assert "devices given to two jobs at once" in names


def test_replicas_without_a_place_count_as_not_as_expected() -> None:
    expectation = Expectation((JOB,), (Unexpected("chat", 2, "1 of 2 replicas have a place"),))
    checks, reading = compare_execution(expectation, {"chat-0": CHAT})
    assert isinstance(reading.value, Quantity)
    assert reading.value.value == 0.5
    assert [c.seen for c in checks if not c.holds] == ["1 of 2 replicas have a place"]


def test_a_share_is_unknown_where_the_plan_does_not_say_how_many() -> None:
    _, reading = compare_execution(Expectation((JOB,), (Unexpected("tune", None, "no layout"),)), {"chat-0": CHAT})
    assert reading.value is None
    assert reading.unreadable


def test_almost_all_is_not_shown_as_all() -> None:
    big = ExpectedJob("big", "big", (ExpectedTask("gpu", "n1", 2000),))
    reports = tuple(
        Report("n1", tuple(map(str, range(2000))), r, r, 2000, r, tuple((i, i) for i in range(2000)), {})
        for r in range(1999)
    )
    _, reading = compare_execution(Expectation((big,)), {"big": JobReport(reports)})
    assert str(reading.value) == "99.9%"


LINE = {
    "node": "n1", "devices": ["a"], "rank": 0, "local_rank": 0, "world_size": 1, "pid": 7, "meeting": "",
    "members": [{"rank": 0, "pid": 7}],
    "stores": {"object": {"visible": True, "label": "object", "writable": True, "missing": []}},
}  # fmt: skip


def test_a_reporters_line_is_read() -> None:
    found = parse_report(json.dumps(LINE))
    assert isinstance(found, Report)
    assert found.stores == {"object": ""}


@pytest.mark.parametrize("line", ["", "null", "[]", "{}", "Traceback (most recent call last):", '{"node": "n1"}'])
def test_a_line_that_is_no_report_is_kept_as_text(line: str) -> None:
    assert parse_report(line) == line


@pytest.mark.parametrize(
    ("store", "problem"),
    [
        ({"visible": False, "label": "", "writable": False}, "not visible"),
        ({"visible": True, "label": "nvme", "writable": True}, "is nvme"),
        ({"visible": True, "label": "object", "writable": False, "why": "Read-only"}, "not writable: Read-only"),
        ({"visible": True, "label": "object", "writable": True, "missing": ["tune-1"]}, "what tune-1 wrote"),
    ],
)
def test_a_store_that_is_not_as_it_should_be_is_a_problem(store: dict[str, Any], problem: str) -> None:
    found = parse_report(json.dumps(LINE | {"stores": {"object": store}}))
    assert isinstance(found, Report)
    assert problem in found.stores["object"]


def steps(epoch: int, first: int, last: int, at_s: float) -> tuple[LoggedStep, ...]:
    return tuple(LoggedStep(epoch, 0, step, at_s + step) for step in range(first, last + 1))


SEEN = LossObservation(
    job="tune",
    workload="tune",
    trains=True,
    nodes=("n1", "n2"),
    victim="node",
    node="n1",
    taken="the agent of n1",
    killed_at_s=125.5,
    detected_at_s=126.0,
    old_epoch=1,
    new_epoch=2,
    new_nodes=("n2",),
    new_ranks=1,
    resumed_step=20,
    written_by=1,
    log=steps(1, 1, 25, 100.0) + steps(2, 21, 40, 110.0),
    unreadable=(),
    final=(1, 2),
    expected=(1, 2),
    ended="SUCCEEDED",
    waits="",
    interval_s=10.0,
    steps=40,
)


def wrong(**fields: Any) -> set[str]:
    return {c.name for c in compare_loss(replace(SEEN, **fields)) if not c.holds}


def test_a_good_recovery_passes_and_is_timed() -> None:
    assert wrong() == set()
    values = {r.metric: r.value.value for r in time_loss(SEEN) if isinstance(r.value, Quantity)}
    assert values == {"detection_time": 0.5, "recovery_time": 5.5, "lost_work": 5.5}
    assert dict(time_loss(SEEN)[2].conditions) == {"checkpoints every": "10 s"}


@pytest.mark.parametrize(
    ("fields", "check"),
    [
        ({"detected_at_s": None}, "loss noticed"),
        ({"new_epoch": None, "waits": "PENDING: HARDWARE_WAIT"}, "job restarted"),
        ({"new_nodes": ("n1",)}, "lost node excluded"),
        ({"new_nodes": ()}, "lost node excluded"),
        ({"log": steps(1, 1, 25, 100.0) + steps(2, 21, 40, 110.0) + steps(1, 26, 26, 200.0)}, "fencing"),
        ({"log": ()}, "fencing"),
        ({"unreadable": ("1 0 2",)}, "fencing"),
        ({"resumed_step": 0}, "resumed from a checkpoint"),
        ({"resumed_step": None}, "resumed from a checkpoint"),
        ({"written_by": 2}, "resumed from a checkpoint"),
        ({"log": steps(1, 1, 25, 100.0) + steps(2, 22, 40, 110.0)}, "every step done, in order"),
        ({"log": steps(1, 1, 25, 100.0) + steps(2, 21, 39, 110.0)}, "every step done, in order"),
        ({"final": (1, 3)}, "final state"),
        ({"final": None, "ended": "FAILED"}, "final state"),
    ],
)
def test_what_must_hold_after_a_loss_is_checked(fields: dict[str, Any], check: str) -> None:
    assert check in wrong(**fields)


def test_a_node_name_that_begins_like_the_lost_one_is_another_node() -> None:
    assert wrong(new_nodes=("n10",)) == set()


def test_a_process_may_come_back_on_its_node() -> None:
    assert wrong(victim="process", new_nodes=("n1",)) == set()
    assert "loss noticed" in wrong(victim="process", new_nodes=("n1",), detected_at_s=None)


def test_work_goes_on_when_the_last_rank_has_done_a_step() -> None:
    late = (LoggedStep(2, 1, 21, 140.0),)
    assert replace(SEEN, log=SEEN.log + late, new_ranks=2).recovered_at_s == 140.0
    assert replace(SEEN, new_ranks=2).recovered_at_s is None, "one rank never came back"


def test_a_recovery_that_ended_badly_is_not_timed() -> None:
    for fields in ({"final": None, "ended": "FAILED"}, {"final": (1, 3)}):
        found = {r.metric for r in time_loss(replace(SEEN, **fields))}  # type: ignore[arg-type]
        assert found == {"detection_time", "lost_work"}


def test_what_was_not_seen_has_no_reading() -> None:
    found = time_loss(replace(SEEN, detected_at_s=None, new_epoch=None, resumed_step=None))
    assert found == ()


def test_a_line_that_is_no_step_is_kept() -> None:
    found, unreadable = parse_step_log(["1 0 5 12.5", "1 0 6", "x y z w"])
    assert found == (LoggedStep(1, 0, 5, 12.5),)
    assert unreadable == ("1 0 6", "x y z w")


def test_of_three_attempts_the_one_in_between_is_no_overlap() -> None:
    three = steps(1, 1, 25, 100.0) + steps(2, 21, 22, 110.0) + steps(3, 21, 40, 120.0)
    fields = {"log": three, "new_epoch": 3}
    assert wrong(**fields) == {"fencing"}
    assert wrong(**fields, between=(2,)) == set()
    assert "resumed from a checkpoint" not in wrong(**fields, between=(2,), written_by=2)


CHAT_0 = Neighbour("chat-0", "chat", True, ("n1",), ())
CHAT_1 = Neighbour("chat-1", "chat", True, ("n2",), ("n2",))


def test_replicas_that_must_be_apart_share_no_node() -> None:
    assert wrong(neighbours=(CHAT_0, CHAT_1)) == set()
    both = (replace(CHAT_0, after=("n2",)), CHAT_1)
    assert wrong(neighbours=both) == {"chat: replicas apart"}
    assert wrong(neighbours=tuple(replace(n, apart=False) for n in both)) == set()


GONE = replace(
    SEEN,
    new_epoch=None,
    new_nodes=(),
    new_ranks=0,
    final=None,
    resumed_step=None,
    ended="PENDING",
    waits="waits for 4 GPUs held by chat-0 (4 GPUs on n2, priority 9): 0 free",
    log=steps(1, 1, 25, 100.0),
)


def test_the_plan_and_what_was_seen_must_agree_and_both_are_shown() -> None:
    promise = Promise("tune", "n1", 1, 1, 1, "without n1 the job finds GPUs again on n2")
    assert wrong(promise=promise) == set()
    assert wrong(promise=replace(promise, again=0)) == {"agrees with the plan"}
    (check,) = (c for c in compare_loss(replace(GONE, promise=promise)) if c.name == "agrees with the plan")
    assert not check.holds
    assert check.expected == promise.text
    assert check.seen == f"without n1 tune {GONE.waits}"


def test_no_room_names_the_holders_and_times_no_recovery() -> None:
    found = conclude_loss("worker-loss", GONE, ())
    assert found.outcome is RehearsalOutcome.FAILED
    assert found.reason == "without n1 tune waits for 4 GPUs held by chat-0 (4 GPUs on n2, priority 9): 0 free"
    assert {r.metric for r in found.readings} == {"detection_time"}


def test_a_service_runs_on_where_the_plan_said_that_a_replica_waits() -> None:
    lost = replace(GONE, job="chat-0", workload="chat", trains=False, neighbours=(CHAT_1,))
    promise = Promise("chat", "n1", 1, 1, 2, "without n1 1 replica runs on, 1 carries the load; 1 waits")
    found = conclude_loss("worker-loss", replace(lost, promise=promise), ())
    assert found.outcome is RehearsalOutcome.PASSED
    assert "1 of 2 replicas runs on and carries the load as planned; chat-0 waits for" in found.reason
    assert "recovery_time" not in {r.metric for r in found.readings}
    for other in (None, replace(promise, needed=2), replace(promise, again=2)):
        found = conclude_loss("worker-loss", replace(lost, promise=other), ())
        assert found.outcome is RehearsalOutcome.FAILED
    assert "agrees with the plan" in {c.name for c in found.checks if not c.holds}


def test_a_good_recovery_is_told_with_what_it_cost_whom() -> None:
    beside = (CHAT_0, replace(CHAT_1, after=()), Neighbour("idle", "idle", False, (), ()))
    seen = replace(SEEN, neighbours=beside, evictions=(Eviction("tune", ("chat-1",), 126.5),))
    found = conclude_loss("worker-loss", seen, ())
    assert found.reason == (
        "noticed in 500 ms, working again after 5.5 s, 5.5 s of work done again with checkpoints every 10 s here; "
        "chat-1 gave way by the declared preemption; chat-0 finds no place"
    )


def test_a_clock_that_was_set_back_is_said_in_place_of_a_time() -> None:
    found = conclude_loss("worker-loss", replace(SEEN, detected_at_s=100.0), ())
    assert found.reason.startswith("noticed in an unknown time (the clock was set back), working again after 5.5 s")


def test_the_timeline_has_kinds_and_leaves_out_what_is_only_the_rehearsals_own() -> None:
    def event(at_s: float, kind: str, job: str | None = None, **more: Any) -> Event:
        return Event(1, at_s, kind, None if job is None else JobId(job), None, more.pop("node", None), more)

    events = (
        event(100.0, "admitted", "2", why="4 GPUs on 1 node"),
        event(100.0, "admitted", "1"),
        event(126.0, "node_lost", node="n1"),
        event(126.2, "blocked_by", "2", blockers=[{"kind": k, "message": "held"} for k in ("HELD", "HARDWARE_WAIT")]),
        event(126.3, "blocked_by", "2", blockers=[{"kind": "HARDWARE_WAIT", "message": "0 free"}]),
    )
    told = tell_loss(SEEN, events, {JobId("1"): "chat-0", JobId("2"): "tune"}, 90.0)
    assert [(m.what, m.kind) for m in told] == [
        ("tune admitted: 4 GPUs on 1 node", MomentKind.EVENT),
        ("the agent of n1 killed with -9", MomentKind.LOSS),
        ("n1 node lost", MomentKind.NOTICED),
        ("tune blocked by: 0 free", MomentKind.EVENT),
        ("every rank of tune has done a step again", MomentKind.RECOVERED),
    ]
    assert told[1].at_s == 35.5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "< 1 ms"), (0.00061, "< 1 ms"), (0.0016, "2 ms"), (0.5302, "530 ms"), (0.9996, "1.0 s"), (5.55, "5.5 s"),
        (9.96, "10 s"), (59.7, "1 min"), (125.0, "2 min 5 s"),
    ],
)  # fmt: skip
def test_times_are_no_more_precise_than_they_are(seconds: float, text: str) -> None:
    assert describe_time(seconds) == text
