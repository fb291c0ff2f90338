"""Accounting as a stream: rows for a trace, sums over all of them, memory that does not hold them."""

import tracemalloc

import pytest

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run
from clusterwright.readers import building
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.memos import LONGEST, MOST, Memo
from clusterwright.readers.reading import read_output
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm import sacct
from clusterwright.readers.slurm.accounting import iterate_jobs

HEADER = "JobID|User|Account|State|Submit|Eligible|Start|End|Elapsed|AllocTRES\n"


def record(job: object, state="COMPLETED", gpus=8, account="red", elapsed="01:00:00", start="10:00:00") -> str:
    day = "2026-03-02T"
    tres = f"cpu=64,gres/gpu={gpus},mem=512G,node=1" if gpus else ""
    return f"{job}|ann|{account}|{state}|{day}08:00:00|{day}09:30:00|{day}{start}|{day}23:00:00|{elapsed}|{tres}\n"


def read(text: str) -> Run:
    transcript = read_output([text.encode()], kind="slurm-sacct")
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and dict(o.subject) == subject]


def test_rows_carry_values_for_a_trace():
    run = RunBuilder("sacct")
    job, step = iterate_jobs(Source([(HEADER + record(7) + record("7.batch", gpus=4)).encode()]), run)
    assert (job.job, job.step, job.state, job.attempt, job.line) == ("7", "", "COMPLETED", 1, 2)
    assert (job.elapsed_s, job.gpus, job.gpu_seconds, job.waited_s) == (3600.0, 8, 28800.0, 1800.0)
    assert job.submit is not None
    assert job.submit.isoformat() == "2026-03-02T08:00:00"
    assert (step.step, step.gpus, step.subject) == ("batch", 4, (("job", "7"), ("step", "batch")))
    assert job.cells["Account"] == "red"


def test_rows_that_contradict_themselves_are_counted_with_samples_and_not_given():
    run = RunBuilder("sacct")
    body = HEADER + record(1) + record(2, start="23:30:00") + record(3, elapsed="-1:00") + record(1) + "4|ann|red\n"
    assert [row.job for row in iterate_jobs(Source([body.encode()]), run)] == ["1"]
    built = run.build()
    assert built.rejected == 3
    assert "ends 1800 s before it starts" in built.unread[0].why
    assert built.missing == ("end: the last row is cut",)
    assert "record-listed-twice" in {notice.code for notice in built.notices}


def test_a_stream_without_records_is_refused():
    with pytest.raises(Refused):
        list(iterate_jobs(Source([HEADER.encode()]), RunBuilder("sacct")))


def test_attempts_of_a_requeued_job_are_numbered_and_those_of_its_steps_too():
    run = RunBuilder("sacct")
    rows = [record(5, "REQUEUED"), record("5.batch", "CANCELLED"), record(5, start="12:00:00"),
            record("5.batch", start="12:00:00")]  # fmt: skip
    found = [(r.step, r.attempt) for r in iterate_jobs(Source([(HEADER + "".join(rows)).encode()]), run)]
    assert found == [("", 1), ("batch", 1), ("", 2), ("batch", 2)]


def test_sums_by_state_and_by_account_cover_every_attempt_and_no_step():
    run = read(HEADER + record(1) + record("1.batch") + record(2, "FAILED", account="blue") + record(3, gpus=2))
    assert values(run, "allocations_by_state", state="COMPLETED") == [2.0]
    assert [str(v) for v in values(run, "gpu_time_by_state", state="COMPLETED")] == ["10 GPU-h"]
    assert [str(v) for v in values(run, "gpu_time_by_account", account="blue")] == ["8 GPU-h"]


def test_a_sum_says_what_it_lacks_and_is_no_zero_where_nothing_is_known():
    run = read(HEADER + record(1) + record(2, gpus=0) + record(3, "FAILED", gpus=0, account=""))
    assert [str(v) for v in values(run, "gpu_time_by_state", state="COMPLETED")] == ["8 GPU-h"]
    assert values(run, "allocations_without_gpu_time", state="COMPLETED") == [1.0]
    (unknown,) = values(run, "gpu_time_by_account", account="(none)")
    assert isinstance(unknown, NoValue)
    assert unknown.lack is Lack.ABSENT


def test_no_sum_of_gpu_time_where_the_listing_has_no_resources():
    run = read("JobID|State|Elapsed\n1|COMPLETED|01:00:00\n")
    assert values(run, "allocations_by_state", state="COMPLETED") == [1.0]
    assert not [o for o in run.observations if o.name.startswith("gpu_time")]


def test_two_records_of_one_attempt_are_not_billed_twice():
    run = read(HEADER + record(1, "RUNNING", elapsed="00:30:00") + record(1))
    assert run.condition("gpu_time") is None
    assert [str(v) for v in values(run, "gpu_time_by_account", account="red")] == ["4 GPU-h"]
    assert {"states-conflict", "attempt-listed-twice"} <= {notice.code for notice in run.notices}


def test_rows_beyond_the_room_for_observations_are_summarised_and_said_and_nothing_is_missing(monkeypatch):
    monkeypatch.setattr(building, "MOST_OBSERVATIONS", 200)
    monkeypatch.setattr(sacct, "_ROOM", 60)
    transcript = read_output([(HEADER + "".join(record(n) for n in range(50))).encode()], kind="slurm-sacct")
    (run,) = transcript.runs
    assert transcript.outcome is Outcome.READ
    listed = run.condition("records_listed")
    assert listed == float(len([o for o in run.observations if o.name == "job_state"])) < 50
    assert run.condition("records") == 50.0
    assert str(run.condition("gpu_time")) == "400 GPU-h"
    assert values(run, "allocations_by_state", state="COMPLETED") == [50.0]
    (said,) = [notice.message for notice in run.notices if notice.code == "records-summarised"]
    assert f"{50 - int(listed)} more" in said


def test_many_requeued_jobs_are_named_up_to_a_bound_and_then_counted():
    rows = "".join(record(n, "REQUEUED") + record(n, start="12:00:00") for n in range(150))
    run = read(HEADER + rows)
    said = [notice.message for notice in run.notices if notice.code == "requeued-attempts"]
    assert len(said) == 101
    assert said[-1] == "50 more jobs like these"
    assert not run.missing
    assert len([o for o in run.observations if o.name == "attempts"]) == 150


def test_steps_before_their_allocation_do_not_count_as_jobs_without_one():
    run = read(HEADER + record("9.0", elapsed="02:00:00") + record(9))
    assert "allocation-not-listed" not in {notice.code for notice in run.notices}
    assert "step-longer-than-allocation" in {notice.code for notice in run.notices}


def test_equal_cells_share_one_value():
    run = read(HEADER + record(1) + record(2))
    first, second = (o.value for o in run.observations if o.name == "elapsed")
    assert isinstance(first, Quantity)
    assert first is second


def test_a_record_keeps_a_few_hundred_bytes():
    rows = 20_000
    source = Source(chunk for chunk in [HEADER.encode(), *(record(n).encode() for n in range(rows))])
    run = RunBuilder("sacct")
    tracemalloc.start()
    try:
        count = sum(1 for _ in iterate_jobs(source, run))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == rows
    assert peak / rows < 600


def test_a_memo_calls_once_for_a_text_and_stays_bounded():
    calls: list[str] = []
    memo = Memo(lambda text: calls.append(text) or len(text))
    assert [memo["ab"], memo["ab"], memo["x" * (LONGEST + 1)]] == [2, 2, LONGEST + 1]
    assert len(calls) == 2
    assert len(memo) == 1
    for n in range(MOST + 10):
        memo[str(n)]
    assert len(memo) <= MOST
