"""sacct's JSON streams job by job, however its text is cut into pieces."""

from __future__ import annotations

import json

import pytest

from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.job_documents import describe_jobs, stream_jobs

JOB = {
    "job_id": 7, "user": "ada", "state": {"current": ["COMPLETED"]},
    "time": {"submission": 1740000000, "eligible": 1740000001, "start": 1740000060, "end": 1740003660,
             "elapsed": 3600, "limit": {"set": True, "infinite": False, "number": 90}},
    "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 8}], "requested": []}, "allocation_nodes": 1,
    "steps": [{"step": {"id": "7.batch", "name": "batch"}, "time": {"elapsed": 3600}, "state": ["COMPLETED"]}],
}  # fmt: skip


def document(*jobs):
    return json.dumps({"meta": {"command": ["show", "jobs"]}, "jobs": list(jobs), "errors": []}, indent=1)


@pytest.mark.parametrize("piece", [1, 7, 100, 10_000])
def test_jobs_come_out_whole(piece):
    text = document(JOB, {**JOB, "job_id": 8, "user": 'quote " and ] and }'}, {**JOB, "job_id": 9})
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    assert [job["job_id"] for job in stream_jobs(pieces)] == [7, 8, 9]


def test_an_empty_list_has_no_jobs():
    assert list(stream_jobs([document()])) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "holds no list"), ('{"jobs": [{"job_id": 7}, {"job_id"', "ends in the middle"),
        ('{"jobs": [{"job_id": 7} oops]}', "is no JSON"), ('{"jobs": [' + "[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_no_such_document_is_refused(text, said):
    with pytest.raises(Refused, match=said):
        list(stream_jobs([text]))


def test_records_are_those_of_a_table():
    (job, wrong, _), (step, _, _) = describe_jobs([JOB])
    assert (job.job, job.step, job.state, job.elapsed_s, job.gpus, wrong) == ("7", "", "COMPLETED", 3600.0, 8, "")
    assert (job.cells["TimelimitRaw"], job.cells["NNodes"]) == ("90", "1")
    assert (job.waited_s, step.job, step.step) == (59.0, "7", "batch")


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"array": {"job_id": 5, "task_id": {"set": True, "number": 3}}}, "5_3"),
        ({"array": {"job_id": 5, "task_id": {"set": False, "number": 0}, "task": "4-9%2"}}, "5_[4-9%2]"),
        ({"het": {"job_id": 5, "job_offset": {"set": True, "number": 1}}}, "5+1"),
        ({"array": {"job_id": 0, "task_id": None}, "het": {"job_id": 0}}, "7"),
    ],
)
def test_arrays_and_components_have_the_names_that_tables_give_them(more, name):
    row = next(describe_jobs([{**JOB, **more, "steps": []}]))[0]
    assert row.job == name


def test_unlimited_and_contradictory_jobs_are_told():
    unlimited = {**JOB, "time": {**JOB["time"], "limit": {"set": False, "infinite": True, "number": 0}}}
    backwards = {**JOB, "time": {**JOB["time"], "end": 1740000000}}
    (first, _, _), _, (_, wrong, _), _ = describe_jobs([unlimited, backwards])
    assert first.cells["Timelimit"] == "UNLIMITED"
    assert "before it starts" in wrong


def test_jobs_of_the_queue_are_refused_by_name():
    with pytest.raises(Refused, match="squeue or scontrol"):
        list(describe_jobs([{"job_id": 7, "job_state": ["PENDING"], "submit_time": 1740000000}]))


def test_a_job_without_an_id_is_unfit():
    ((_, wrong, _),) = describe_jobs([{**JOB, "job_id": None, "steps": []}])
    assert wrong == "a job without an id"
