"""Outputs as files → verdicts: which argument is what, whose hosts, when, and what the exit code says."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clusterwright.app.judging_outputs import (
    OutputRequest,
    describe_judgement,
    judge_outputs,
    values_of_judgement,
)
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.evidence import Outcome

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FILE = """\
apiVersion: clusterwright/v1alpha1
cluster: prod
pools:
  gpu: {nodes: "gpu-[001-002]", shape: hgx-h100-sxm-8}
scheduling: {engine: slurm}
acceptance:
  requirements:
    dcgm:
      metric: dcgm_failures
      at_most: 0
      scope: {of: node, pool: gpu, nodes: 2}
      max_age: 30 days
    all-reduce:
      metric: busbw
      at_least: 45 GB/s
      scope: {of: pool, pool: gpu, nodes: 2}
      conditions: {operation: all-reduce, message_size: 8 GiB}
      max_age: 30 days
"""
NCCL = """\
./build/all_reduce_perf -b 1G -e 8G -f 8
# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 8589934592 step: 8(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1200 on    gpu-001 device  0 [0x1b] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1201 on    gpu-002 device  0 [0x1b] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1  23000.0   46.68   46.68      0  23010.0   46.66   46.66      0
  8589934592    2147483648     float     sum      -1   183000   46.94   46.94      0   183100   46.91   46.91      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 46.7981
#
"""  # noqa: E501


def dcgm(failing=()):
    tests = [
        {"name": name, "results": [
            {"entity_group": "GPU", "entity_group_id": 0, "entity_id": gpu,
             "status": "Fail" if gpu in failing and name == "memory" else "Pass"} for gpu in range(8)
        ]} for name in ("memory", "pcie", "targeted_power")
    ]  # fmt: skip
    entities = [{"entity_id": g, "device_id": "2330"} for g in range(8)]
    return json.dumps({
        "DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]},
        "entity_groups": [{"entity_group": "GPU", "entity_group_id": 0, "entities": entities}],
        "metadata": {"version": "4.2.3", "Driver Version Detected": "570.86.15"},
    })  # fmt: skip


def write(path: Path, text: str, days_old: float = 1.0) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    then = (NOW - timedelta(days=days_old)).timestamp()
    os.utime(path, (then, then))
    return str(path)


@pytest.fixture
def folder(tmp_path):
    """A whole healthy set of outputs, and the file whose claims they prove."""
    for host in ("gpu-001", "gpu-002"):
        write(tmp_path / "out" / host / "dcgm.json", dcgm())
    write(tmp_path / "out" / "all_reduce.log", NCCL)
    write(tmp_path / "cluster.yaml", FILE)
    return tmp_path


def judged(folder, *paths, **fields):
    body = {"engine": "slurm"} | fields
    return judge_outputs(OutputRequest([str(folder / p) for p in paths], **body), now=NOW)


def outcomes(found):
    return {v.id: v.outcome for v in found.verdicts}


def test_a_whole_healthy_folder_is_met(folder):
    found = judged(folder, "cluster.yaml", "out")
    assert outcomes(found) == {"dcgm": Outcome.MET, "all-reduce": Outcome.MET}
    assert found.exit_code == 0
    assert found.remarks == ()


def test_the_architecture_may_stand_anywhere_among_the_arguments(folder):
    assert judged(folder, "out", "cluster.yaml").name == "prod"
    assert judged(folder, "out").name == ""


def test_one_failing_gpu_of_one_host_is_not_met(folder):
    write(folder / "out" / "gpu-002" / "dcgm.json", dcgm(failing=(5,)))
    found = judged(folder, "cluster.yaml", "out")
    assert outcomes(found)["dcgm"] is Outcome.NOT_MET
    assert found.exit_code == 1


def test_a_host_without_output_is_named(folder):
    (folder / "out" / "gpu-002" / "dcgm.json").unlink()
    found = judged(folder, "cluster.yaml", "out")
    (verdict,) = [v for v in found.verdicts if v.id == "dcgm"]
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "without gpu-002" in verdict.reason
    assert found.exit_code == 3


def test_without_engine_nothing_is_measured_and_the_option_is_named(folder):
    found = judged(folder, "cluster.yaml", "out", engine="")
    assert set(outcomes(found).values()) == {Outcome.NOT_MEASURED}
    assert "--engine slurm" in found.remarks[0]


def test_outputs_of_unknown_hosts_are_asked_about(folder):
    write(folder / "lone" / "dcgm.json", dcgm())
    found = judged(folder, "cluster.yaml", "lone")
    assert outcomes(found)["dcgm"] is Outcome.NOT_MEASURED
    assert any("--nodes" in remark for remark in found.remarks)


def test_given_hosts_name_an_output_that_names_none(folder):
    write(folder / "lone" / "dcgm.json", dcgm())
    (output,) = judged(folder, "lone", nodes="gpu-001").outputs
    assert output.evidence.nodes == ("gpu-001",)
    assert output.named == "gpu-001, named by --nodes"


def test_old_files_are_stale_and_a_given_day_replaces_their_time(folder):
    write(folder / "out" / "all_reduce.log", NCCL, days_old=40)
    assert outcomes(judged(folder, "cluster.yaml", "out"))["all-reduce"] is Outcome.NOT_MEASURED
    assert outcomes(judged(folder, "cluster.yaml", "out", taken="2026-11-29"))["all-reduce"] is Outcome.MET


def test_it_says_where_a_time_comes_from(folder):
    assert {o.timed for o in judged(folder, "out").outputs} == {"time of the file"}
    assert {o.timed for o in judged(folder, "out", taken="2026-11-29").outputs} == {"given"}


def test_an_unreadable_file_among_good_ones_leaves_the_others(folder):
    write(folder / "out" / "gpu-001" / "noise.txt", "bash: dcgmi: command not found\n")
    assert judged(folder, "cluster.yaml", "out").exit_code == 0


def test_an_empty_output_is_no_pass(folder):
    write(folder / "out" / "gpu-002" / "dcgm.json", "")
    assert outcomes(judged(folder, "cluster.yaml", "out"))["dcgm"] is Outcome.NOT_MEASURED


def test_without_architecture_whole_good_outputs_are_0_and_cut_ones_3(folder):
    assert judged(folder, "out").exit_code == 0
    write(folder / "out" / "all_reduce.log", NCCL.split("# Out of")[0])
    assert judged(folder, "out").exit_code == 3


def test_without_architecture_a_failure_is_1(folder):
    write(folder / "out" / "gpu-001" / "dcgm.json", dcgm(failing=(0,)))
    assert judged(folder, "out").exit_code == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"engine": "slrum"}, "no engine 'slrum'"),
        ({"taken": "last week"}, "no time"),
        ({"nodes": "gpu-[1"}, "--nodes"),
        ({"kind": "nccl"}, "no kind 'nccl'"),
    ],
)
def test_wrong_options_are_named(folder, fields, said):
    with pytest.raises(InvalidInput, match=said):
        judged(folder, "out", **fields)


def test_an_architecture_alone_is_nothing_to_judge(folder):
    with pytest.raises(InvalidInput, match="no output is named"):
        judged(folder, "cluster.yaml")


def test_a_path_that_is_not_there_is_named(folder):
    with pytest.raises(InvalidInput, match="no such file"):
        judged(folder, "cluster.yaml", "oot")


def test_the_page_says_verdicts_first_and_what_to_run_next(folder):
    (folder / "out" / "gpu-002" / "dcgm.json").unlink()
    write(folder / "out" / "all_reduce.log", NCCL.replace("46.94", "12.00"))
    text = describe_judgement(judged(folder, "cluster.yaml", "out"))
    lines = text.splitlines()
    assert (
        lines[0] == "prod: 0 of 2 required claims met, 1 not met, 1 not measured; the oldest evidence is 1.0 days old"
    )
    assert text.index("not met:") < text.index("not measured:") < text.index("evidence:")
    assert "dcgmi diag -r 3" in text
    assert "[all_reduce.log, time of the file]" in text
    assert all(len(line) <= 120 for line in lines)
    assert len(lines) < 60


def test_without_architecture_it_says_what_each_kind_proves_and_does_not(folder):
    text = describe_judgement(judged(folder, "out"))
    assert text.count("does not prove:") == 2
    assert "beside what the system can reach:" in text


def test_the_values_are_plain_and_whole(folder):
    values = json.loads(json.dumps(values_of_judgement(judged(folder, "cluster.yaml", "out"))))
    assert values["exit_code"] == 0
    assert [v["outcome"] for v in values["verdicts"]] == ["met", "met"]
    assert {o["kind"] for o in values["outputs"]} == {"dcgm-diag", "nccl-tests"}
    assert all(o["evidence"].startswith("sha256:") for o in values["outputs"])


def test_a_node_that_differs_from_its_peers_is_named(tmp_path):
    for number in range(1, 7):
        driver = "535.104" if number == 6 else "570.86.15"
        text = dcgm().replace("570.86.15", driver)
        write(tmp_path / f"gpu-{number:03}" / "dcgm.json", text)
    write(tmp_path / "gpu-006" / "dcgm.json", dcgm(failing=(1,)))
    found = judge_outputs(OutputRequest([str(tmp_path)], nodes="gpu-[001-006]"), now=NOW)
    assert [o.node for group in found.groups for o in group.outliers] == ["gpu-006"]
    assert "differ from their peers:" in describe_judgement(found)
