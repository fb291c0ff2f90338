"""JSON of Slurm: plain and wrapped numbers, lists and lone objects."""

import json
from pathlib import Path

import pytest

from clusterwright.model.observations import Run
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "slurm-json"


def read(value: object) -> Run:
    transcript = read_output([json.dumps(value).encode()], kind="slurm-json")
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def fixture(name: str) -> Run:
    return read(json.loads((FIXTURES / name).read_text()))


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_recognises_every_fixture():
    for path in FIXTURES.iterdir():
        assert read_output([path.read_bytes()]).kind == "slurm-json", path.name


def test_wrapped_numbers_that_are_not_set_are_absent():
    run = fixture("jobs-24.05.json")
    assert run.version == "24.05.3"
    assert values(run, "nodes", job="501") == [2.0]
    assert values(run, "end", job="501") == []
    assert values(run, "start", job="501") == ["2025-02-19T21:20:00Z"]
    assert values(run, "time_limit", job="501")[0].value == 172800
    assert values(run, "time_limit", job="502_[1-9]") == ["unlimited"]
    assert values(run, "array_tasks", job="502_[1-9]") == [9.0]
    assert run.condition("gpus_allocated") == 16.0


def test_plain_numbers_and_marks_for_no_value():
    run = fixture("nodes-22.05.json")
    assert values(run, "memory_free", node="gpu-01") == []
    assert values(run, "cpu_load", node="gpu-01") == [64.02]
    assert values(run, "cpu_load", node="gpu-02") == []
    assert run.condition("gpus_on_nodes_taking_jobs") == 8.0


def test_flags_beside_the_state_count():
    run = fixture("nodes-22.05.json")
    assert values(run, "takes_jobs", node="gpu-01") == [False]
    assert values(run, "takes_jobs", node="gpu-02") == [True]
    assert "reason-without-drain" in codes(run)


def test_a_lone_node_and_a_lone_job_are_read():
    run = read(
        {"name": "w1", "hostname": "w1", "state": ["IDLE"], "gres": "gpu:x:1(S:0)", "gres_used": "gpu:x:0(IDX:N/A)"}
    )
    assert run.condition("gpus_configured") == 1.0
    assert run.condition("gpus_allocated") == 0.0
    run = read({"job_id": 3, "job_state": ["COMPLETED"], "exit_code": 256})
    assert values(run, "exit_code") == [1.0]


def test_accounting_in_json_is_the_same_accounting():
    run = fixture("sacct-22.05.json")
    assert run.condition("allocations") == 1.0
    assert str(run.condition("gpu_time")) == "32 GPU-h"
    assert values(run, "gpus_allocated", job="3", step="batch") == [8.0]
    assert "still-running" in codes(run)


def test_groups_of_sinfo_are_nodes():
    group = {"node": {"state": ["IDLE", "DRAIN"]}, "nodes": {"nodes": ["a1", "a2"]}, "gres": {"total": "gpu:4"}}
    run = read({"sinfo": [{**group, "partition": {"name": "p"}}]})
    assert run.condition("gpus_configured") == 8.0
    assert values(run, "takes_jobs", node="a2") == [False]


def test_statistics_are_no_capacity():
    run = fixture("sdiag-24.05.json")
    assert [o.value for o in run.observations if o.subject == (("name", "jobs_pending"),)] == [4.0]
    assert "statistics-only" in codes(run)
    assert run.condition("nodes_listed") is None


def test_an_answer_with_errors_is_incomplete():
    run = read({"jobs": [], "errors": [{"description": "Unable to contact slurm controller"}], "meta": {}})
    assert "slurm-error" in codes(run)
    assert run.missing


def test_no_node_is_zero_nodes_and_no_gpus():
    run = read({"nodes": []})
    assert run.condition("nodes_listed") == 0.0
    assert run.condition("gpus_configured") is None


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"jobs": 3}', '{"nodes": [1, null, "x"], "state"', '{"nodes": {"a": []}', "null", '{"jobs": [{}'],
)
def test_other_shapes_end_in_a_refusal(text):
    assert read_output([text.encode()], kind="slurm-json").refusal is not None


@pytest.mark.parametrize("odd", [None, [], {}, "x", 1e308, True, {"set": True, "number": "x"}, {"number": 10**40}])
def test_odd_values_in_any_place_raise_nothing(odd):
    keys = ("job_id", "job_state", "time_limit", "start_time", "exit_code", "nodes", "tres_alloc_str",
            "array_task_id", "name", "state", "gres", "cpus", "partitions", "reason_changed_at")  # fmt: skip
    for key in keys:
        read_output([json.dumps({"jobs": [{"job_id": 1, key: odd}]}).encode()], kind="slurm-json")
        read_output([json.dumps({"nodes": [{"name": "n", key: odd}]}).encode()], kind="slurm-json")
