"""squeue: jobs, arrays, reasons; unknown is not zero."""

from pathlib import Path

from clusterwright.model.observations import Lack, NoValue, Run
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "slurm-squeue"


def read(text: str) -> Run:
    transcript = read_output([text.encode()], kind="slurm-squeue")
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_recognises_every_fixture():
    for path in FIXTURES.iterdir():
        assert read_output([path.read_bytes()]).kind == "slurm-squeue", path.name


def test_default_listing_gives_arrays_and_reasons():
    run = read((FIXTURES / "default-22.05.txt").read_text())
    assert run.condition("jobs_listed") == 5.0
    assert values(run, "array_tasks", job="4_[2-20%2]") == [19.0]
    assert values(run, "array_throttle", job="4_[2-20%2]") == [2.0]
    assert values(run, "waits_for", job="4_[2-20%2]") == ["capacity"]
    assert values(run, "waits_for", job="6") == ["held"]
    assert values(run, "node_list", job="3") == ["gpu-[002-003]"]
    assert "cells-may-be-cut" in codes(run), "train-ve is eight letters wide"


def test_long_listing_has_limits_and_its_time():
    run = read((FIXTURES / "long-22.05.txt").read_text())
    assert values(run, "time_limit", job="1")[0].value == 604800
    assert run.condition("printed") is not None


def test_a_job_name_with_blanks_takes_the_middle():
    run = read("             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
               "                77     batch my big j      ada PD       0:00      2 (Nodes required for job)\n"
               "")  # fmt: skip
    assert values(run, "job_name", job="77") == ["my big j"]
    assert values(run, "pending_reason", job="77") == ["Nodes required for job"]


def test_a_cut_job_id_is_rejected():
    run = read((FIXTURES / "custom-22.05.txt").read_text())
    assert run.rejected == 1
    assert "4_[2-2" in run.unread[0].text


def test_resources_that_say_not_available_are_unknown_and_not_zero():
    run = read("JOBID|STATE|TRES_PER_NODE\n5|RUNNING|N/A\n6|RUNNING|gres/gpu:4\n")
    (lack,) = values(run, "gpus_per_node", job="5")
    assert isinstance(lack, NoValue)
    assert lack.lack is Lack.ABSENT
    assert values(run, "gpus_per_node", job="6") == [4.0]
    assert "gpus-unknown" in codes(run)


def test_allocated_gpus_are_added_over_running_jobs_only():
    run = read(
        "JOBID|STATE|TRES_ALLOC\n1|RUNNING|cpu=1,gres/gpu=2\n2|PENDING|cpu=1,gres/gpu=8\n3|RUNNING|cpu=4,node=1\n"
    )
    assert run.condition("gpus_allocated") == 2.0
    (lack,) = values(run, "gpus_allocated", job="3")
    assert isinstance(lack, NoValue)


def test_reasons_with_commas_are_split_by_bars_only():
    run = read("a,b|PENDING|2|Nodes required for job are DOWN, DRAINED or reserved|ada\n"
               "a|NODE_FAIL|2|NodeDown|bo\na|PENDING|1|JobHeldUser|bo\n")  # fmt: skip
    assert values(run, "waits_for") == ["capacity", "held"]
    assert {"node-fail", "jobs-held"} <= codes(run)
    assert run.condition("jobs_listed") == 3.0, "rows without an id are jobs of their own"


def test_times_without_a_header_are_told_apart_by_arithmetic():
    run = read("7|#RUNNING|#2:00:00|#1:30:00|#30:00|#cpu=1,gres/gpu=1|#\n8|#PENDING|#1:00:00|#1:00:00|#0:00|#cpu=1|#\n")
    assert values(run, "time_limit", job="7")[0].value == 7200
    assert values(run, "elapsed", job="7")[0].value == 1800
    assert values(run, "time_left", job="8")[0].value == 3600


def test_a_dependency_that_is_never_satisfied_is_stuck():
    run = read("JOBID|STATE|REASON|DEPENDENCY\n9|PENDING|DependencyNeverSatisfied|afterok:8(failed)\n")
    assert {"job-stuck", "jobs-never-starts"} <= codes(run)


def test_control_characters_separate_fields_and_records():
    data = b"JOBID\x1fNAME\x1fSTATE\x1e\n12_3\x1fna\xffme\x1fRUNNING\x1e\n13\x1fx\x1fPENDING\x1e\n"
    transcript = read_output([data])
    assert transcript.kind == "slurm-squeue"
    (run,) = transcript.runs
    assert values(run, "job_state", job="12_3") == ["RUNNING"]
    assert values(run, "job_name", job="12_3") == ["na\ufffdme"]
    assert run.condition("jobs_listed") == 2.0


def test_an_empty_queue_is_no_job_and_an_empty_file_is_refused():
    run = read("JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n")
    assert run.condition("jobs_listed") == 0.0
    assert read_output([b""]).refusal is not None


def test_a_cut_list_of_tasks_is_unreadable():
    run = read("JOBID|STATE\n7_[1-3,5,8-1...]|PENDING\n")
    (tasks,) = values(run, "array_tasks")
    assert isinstance(tasks, NoValue)
