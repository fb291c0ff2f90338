"""sacct: allocations, steps and attempts; contradictions are rejected, nothing is billed twice."""

from pathlib import Path

import pytest

from clusterwright.model.observations import Lack, NoValue, Run
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "slurm-sacct"


def read(text: str) -> Run:
    transcript = read_output([text.encode()], kind="slurm-sacct")
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def fixture(name: str) -> Run:
    return read((FIXTURES / name).read_text())


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def allocation(run: Run, name: str, job: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and dict(o.subject) == {"job": job}]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_recognises_every_fixture():
    for path in FIXTURES.iterdir():
        assert read_output([path.read_bytes()]).kind == "slurm-sacct", path.name


def test_fixed_columns_follow_the_dashes_and_cut_cells_are_unreadable():
    run = fixture("default-22.05.txt")
    (name,) = allocation(run, "job_name", "1")
    assert isinstance(name, NoValue)
    assert name.lack is Lack.UNREADABLE
    assert allocation(run, "job_state", "2") == ["FAILED"]
    assert allocation(run, "exit_code", "2") == [3.0]
    assert values(run, "job_state", job="4_1", step="batch") == ["RUNNING"]
    assert run.rejected == 0


def test_a_cut_list_of_resources_is_unreadable_and_gives_no_sum():
    run = fixture("cut-columns-22.05.txt")
    (gpus,) = allocation(run, "gpus_allocated", "1")
    assert isinstance(gpus, NoValue)
    assert gpus.lack is Lack.UNREADABLE
    assert run.condition("gpu_time") is None


def test_gpu_time_counts_allocations_and_no_steps():
    run = fixture("wide.txt")
    assert allocation(run, "gpus_allocated", "900") == [16.0]
    assert values(run, "gpus_allocated", job="900", step="batch") == [8.0]
    assert str(allocation(run, "gpu_time", "900")[0]) == "32 GPU-h"
    assert values(run, "gpu_time", step="batch") == []


def test_attempts_of_a_requeued_job_are_added_up():
    run = fixture("wide.txt")
    assert allocation(run, "elapsed_total", "901")[0].value == 2400
    assert values(run, "job_state", job="901", attempt="2") == ["NODE_FAIL"]
    assert "requeued-attempts" in codes(run)


def test_a_running_job_has_no_end_and_is_charged_so_far():
    run = fixture("wide.txt")
    (end,) = allocation(run, "end", "902")
    assert isinstance(end, NoValue)
    assert allocation(run, "elapsed", "902")[0].value == 86430
    assert "still-running" in codes(run)


def test_rejects_an_end_before_the_start_and_a_cut_row():
    run = fixture("wide.txt")
    assert run.rejected == 2
    assert run.missing == ("end: the last row is cut",)
    assert allocation(run, "job_state", "903") == []


@pytest.mark.parametrize(
    ("header", "row", "why"),
    [("MaxRSS", "12Q", "no unit"), ("CPUTimeRAW", "-16", "negative"), ("Elapsed", "-1:00", "Elapsed is")],
)
def test_rejects_what_slurm_never_prints(header, row, why):
    run = read(f"JobID|State|{header}\n1|COMPLETED|{row}\n")
    assert run.rejected == 1
    assert why in run.unread[0].why


def test_wait_is_from_submission_to_start():
    run = fixture("wide.txt")
    assert allocation(run, "waited", "900")[0].value == 600


def test_memory_asked_per_core_says_so_and_zero_means_all():
    run = fixture("wide.txt")
    assert values(run, "memory_scope", job="901") == ["per core", "per core"]
    (whole,) = allocation(run, "memory_requested", "902")
    assert isinstance(whole, NoValue)


def test_a_job_without_an_account_is_listed():
    assert "no-account" in codes(fixture("wide.txt"))


def test_the_same_record_twice_counts_once():
    run = read("JobID|State|Start|Elapsed|AllocTRES\n" + "5|COMPLETED|2025-01-01T00:00:00|01:00:00|gres/gpu=8\n" * 3)
    assert run.condition("allocations") == 1.0
    assert str(run.condition("gpu_time")) == "8 GPU-h"
    assert "record-listed-twice" in codes(run)


def test_a_record_torn_by_a_line_break_is_joined():
    run = read("JobID|#JobName|#State|#Elapsed\n7|#two\nlines|#COMPLETED|#00:01:00\n8|#x|#FAILED|#00:00:01\n")
    assert values(run, "job_name", job="7") == ["two lines"]
    assert values(run, "elapsed", job="8")[0].value == 1
    assert "records-joined" in codes(run)


def test_a_row_with_too_many_fields_is_rejected():
    run = read("JobID|JobName|State\n7|a|b|COMPLETED\n8|x|FAILED\n")
    assert run.rejected == 1
    assert values(run, "job_state", job="8") == ["FAILED"]


def test_an_empty_list_of_resources_is_unknown_and_not_zero():
    run = read("JobID|State|Elapsed|AllocTRES\n7|COMPLETED|01:00:00|\n")
    (gpus,) = values(run, "gpus_allocated")
    assert isinstance(gpus, NoValue)
    assert "gpus-not-accounted" in codes(run)
    assert run.condition("gpu_time") is None


def test_a_job_id_used_again_is_named_and_not_added_up():
    run = read("JobID|User|State|Submit|Start|Elapsed\n9|a|COMPLETED|2017-01-01T00:00:00|2017-01-01T00:00:00|01:00:00\n"
               "9|b|RUNNING|2025-01-01T00:00:00|2025-01-01T00:00:00|02:00:00\n")  # fmt: skip
    assert "job-id-recycled" in codes(run)
    assert values(run, "elapsed_total") == []


def test_states_that_contradict_each_other_are_named():
    run = read(
        "JobID|State|Start|Elapsed\n9|FAILED|2025-01-01T00:00:00|01:00:00\n9|COMPLETED|2025-01-01T00:00:00|01:00:00\n"
    )
    assert "states-conflict" in codes(run)
    assert values(run, "elapsed_total") == []


def test_a_requeue_loop_is_named():
    rows = "".join(f"9|REQUEUED|2025-01-01T0{i}:00:00|00:30:00\n" for i in range(4))
    run = read("JobID|State|Start|Elapsed\n" + rows)
    assert "requeue-loop" in codes(run)
    assert values(run, "elapsed_total")[0].value == 7200


def test_over_without_an_end_uses_the_elapsed_time():
    run = read("JobID|State|Start|End|Elapsed\n9|CANCELLED by 100|2025-01-01T00:00:00|Unknown|00:00:17\n")
    assert "end-unknown" in codes(run)
    assert values(run, "cancelled_by") == ["100"]
    assert values(run, "elapsed")[0].value == 17


def test_columns_without_a_header_are_named_by_their_contents():
    run = read("|1|00:30:00|77|77||1|4000Mc|REQUEUED|02:00:00|00:29:00\n"
               "|1|00:30:00|77.batch|77.batch|10K|1|4000Mc|FAILED||00:00.106\n"
               "|1|00:10:00|77|77||1|4000Mc|FAILED|02:00:00|00:09:00\n"
               "|1|00:10:00|77.batch|77.batch|10K|1|4000Mc|FAILED||00:00.085\n|1|00\n")  # fmt: skip
    assert values(run, "elapsed_total")[0].value == 2400
    assert run.missing == ("end: the last row is cut", "header")


def test_only_steps_give_no_total():
    run = read("JobID|State|Elapsed|AllocTRES\n7.batch|COMPLETED|01:00:00|gres/gpu=8\n")
    assert "allocation-not-listed" in codes(run)
    assert run.condition("gpu_time") is None


def test_a_header_alone_is_refused():
    assert read_output([b"JobID|State|Elapsed\n"]).refusal is not None
