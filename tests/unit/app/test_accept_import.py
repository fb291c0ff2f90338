"""A directory that came back → what counts of it: only what the manifest protects, of the plan of this file."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from builders.acceptance import TWO_WORKERS, nccl_output
from clusterwright.app.accepting_results import ImportRequest, import_acceptance
from clusterwright.judging.acceptance_runs import State
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.evidence import Outcome

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
NODES = ("gpu-001", "gpu-002")


def record(unit, attempt=1, minutes=30, **changes):
    began, ended = NOW - timedelta(minutes=minutes), NOW - timedelta(minutes=minutes - 3)
    return {
        "format": "clusterwright-run/1", "test": "collective-in-node", "reader": "nccl-tests", "unit": unit,
        "attempt": attempt, "role": "", "node": unit, "nodes": unit, "engine": "kubernetes",
        "started": f"{began:%Y-%m-%dT%H:%M:%SZ}", "ended": f"{ended:%Y-%m-%dT%H:%M:%SZ}", "exit_code": 0,
        "timed_out": False, "lacking": "", "image": "", "driver": "595.91.07", "kernel": "6.8", "files": "stdout.txt",
    } | changes  # fmt: skip


def collect(root):
    paths = sorted(p for p in root.rglob("*") if p.is_file() and p.name != "manifest.json")
    files = [
        {"path": p.relative_to(root).as_posix(), "sha256": sha256(p.read_bytes()).hexdigest(), "bytes": 1}
        for p in paths
    ]
    manifest = {"format": "clusterwright-results/1", "runs": [], "files": files}
    (root / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.fixture
def results(tmp_path):
    for node in NODES:
        folder = tmp_path / "collective-in-node" / node
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(record(node)), encoding="utf-8")
        (folder / "stdout.txt").write_text(nccl_output(host=node), encoding="utf-8")
    collect(tmp_path)
    return tmp_path


def imported(root):
    return import_acceptance(ImportRequest([TWO_WORKERS], str(root)), now=NOW)


def verdict(root):
    return next(v for v in imported(root).verdicts if v.id == "all-reduce-in-node")


def test_what_the_manifest_protects_counts(results):
    found = verdict(results)
    assert found.outcome is Outcome.MET, found.reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ('{"format": "clusterwright-results/1", "files": [{"path', "cannot be read"),
        ("[]", "cannot be read"),
        ('{"format": "other/1", "files": []}', "cannot be read"),
        ('{"format": "clusterwright-results/1", "files": []}', "lists no file"),
        ('{"format": "clusterwright-results/1", "files": {}}', "lists no file"),
    ],
)
def test_under_a_manifest_that_is_none_nothing_counts(results, text, said):
    (results / "manifest.json").write_text(text, encoding="utf-8")
    found = verdict(results)
    assert found.outcome is Outcome.NOT_MEASURED
    assert "not protected by the manifest" in found.reason
    assert said in found.reason


def test_runs_without_a_manifest_do_not_count_and_the_reason_says_what_writes_it(results):
    (results / "manifest.json").unlink()
    found = verdict(results)
    assert found.outcome is Outcome.NOT_MEASURED
    assert "collect.sh writes it" in found.reason


def test_files_that_the_manifest_lacks_do_not_count(results):
    manifest = json.loads((results / "manifest.json").read_text("utf-8"))
    manifest["files"] = [f for f in manifest["files"] if f["path"] != "collective-in-node/gpu-002/stdout.txt"]
    (results / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    found = verdict(results)
    assert found.outcome is Outcome.NOT_MEASURED
    assert "stdout.txt not protected by the manifest: it is not in it (gpu-002)" in found.reason


def test_a_record_that_was_altered_is_the_reason(results):
    place = results / "collective-in-node" / "gpu-002" / "run.json"
    place.write_text(place.read_text("utf-8") + " ", encoding="utf-8")
    reason = verdict(results).reason
    assert reason == (
        "scope too small: 1 of 2 nodes, without gpu-002; run.json was altered after it was collected (gpu-002)"
    )


def test_plain_outputs_that_never_had_a_manifest_are_only_remarked(tmp_path):
    (tmp_path / "gpu-001.txt").write_text(nccl_output(), encoding="utf-8")
    found = imported(tmp_path)
    assert any("there is no manifest" in r for r in found.remarks)
    assert found.others[0][1].startswith("nccl-tests")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cluster": "elsewhere"}, "results of the cluster 'elsewhere', the file describes 'two-workers'"),
        ({"tests": [{"id": "x", "claims": ["no-xid", "tea-hot"]}]}, "claims that the file does not make: tea-hot"),
    ],
)
def test_results_of_another_plan_are_refused_with_the_names(results, change, said):
    plan = {"format": "clusterwright-acceptance/1", "cluster": "two-workers", "tests": []} | change
    (results / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    collect(results)
    with pytest.raises(InvalidInput, match=said):
        imported(results)


def printed(files, folder="collective-in-node/gpu-002", sums=True):
    text = "started\n"
    for name, content in files.items():
        text += f"\nclusterwright-file: {folder}/{name}\n"
        text += "".join(f"| {line}\n" for line in content.splitlines())
        if sums:
            text += f"clusterwright-sum: {sha256(content.encode()).hexdigest()} {len(content)} whole plain\n"
    return text + "clusterwright-end\n"


def slow_attempt(**changes):
    first = json.dumps(record("gpu-002", minutes=90, **changes)) + "\n"
    return {"stdout.txt": nccl_output(busbw=200.0, host="gpu-002"), "run.json": first}


@pytest.mark.parametrize("sums", [True, False])
def test_an_attempt_that_only_the_log_of_a_pod_holds_counts(results, sums):
    (results / "pods").mkdir()
    (results / "pods" / "cw-a.log").write_text(printed(slow_attempt(), sums=sums), encoding="utf-8")
    collect(results)
    found = imported(results)
    assert next(v for v in found.verdicts if v.id == "all-reduce-in-node").outcome is Outcome.NOT_MET
    unit = next(u for u in found.findings.units if (u.test, u.unit) == ("collective-in-node", "gpu-002"))
    assert unit.attempts == 2


def test_the_log_of_a_pod_that_was_fetched_is_no_second_attempt(results):
    (results / "pods").mkdir()
    same = {
        name: (results / "collective-in-node" / "gpu-002" / name).read_text("utf-8")
        for name in ("stdout.txt", "run.json")
    }
    (results / "pods" / "cw-a.log").write_text(printed(same, sums=False), encoding="utf-8")
    collect(results)
    units = imported(results).findings.units
    assert all(u.attempts <= 1 for u in units)


def test_a_file_that_is_not_what_its_digest_says_is_left_out_of_the_attempt(results):
    (results / "pods").mkdir()
    text = printed(slow_attempt()).replace("200.00", "900.00")
    (results / "pods" / "cw-a.log").write_text(text, encoding="utf-8")
    collect(results)
    found = imported(results)
    assert all("cw-a.log" not in str(e) for e in found.findings.evidence)
    assert next(v for v in found.verdicts if v.id == "all-reduce-in-node").outcome is not Outcome.NOT_MET


def test_a_slow_first_directory_is_not_overwritten_by_a_second(results):
    folder = results / "collective-in-node" / "gpu-002"
    shutil.copytree(folder, results / "collective-in-node" / "gpu-002.2")
    second = record("gpu-002", attempt=2, minutes=10)
    (results / "collective-in-node" / "gpu-002.2" / "run.json").write_text(json.dumps(second), encoding="utf-8")
    (folder / "stdout.txt").write_text(nccl_output(busbw=200.0, host="gpu-002"), encoding="utf-8")
    collect(results)
    assert verdict(results).outcome is Outcome.NOT_MET


def add(root, test, unit, text, reader, **changes):
    folder = root / test / unit
    folder.mkdir(parents=True)
    run = record(unit, test=test, reader=reader, **changes)
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (folder / "stdout.txt").write_text(text, encoding="utf-8")
    collect(root)


def test_the_reason_is_that_of_the_test_that_was_meant_for_the_claim(results):
    shutil.rmtree(results / "collective-in-node" / "gpu-002")
    shutil.rmtree(results / "collective-in-node" / "gpu-001")
    for node in NODES:
        add(results, "collective-in-node", node, "torchrun: command not found\n", "nccl-tests")
    hosts = nccl_output(ranks=8).splitlines()
    both = "\n".join([line.replace("gpu-001", "gpu-002") if "Rank  7" in line else line for line in hosts])
    add(results, "collective-all", "all", both, "nccl-tests", nodes="gpu-001,gpu-002", node="gpu-001")
    reason = verdict(results).reason
    assert "unreadable" in reason
    assert "other scope" not in reason
    assert "other readings" not in reason


def diagnosis(status):
    results = [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": i, "status": status} for i in range(8)]
    tests = [{"name": "targeted_power", "results": results, "test_summary": {"status": status}}]
    return json.dumps({
        "dcgm_version": "4.5.2", "driver_version": "595.91.07",
        "entity_groups": [{"entity_group": "GPU", "entity_group_id": 1, "entities": [
            {"entity_id": i, "device_id": "2330", "serial_num": str(i)} for i in range(8)]}],
        "DCGM Diagnostic": {"test_categories": [{"category": "Stress", "tests": tests}]},
    })  # fmt: skip


def test_a_failure_in_a_test_of_another_claim_names_the_test_that_saw_it(results):
    add(results, "sustained-load", "gpu-001", diagnosis("Fail"), "dcgm-diag")
    found = imported(results)
    assert found.exit_code == 1
    failed = next(v for v in found.verdicts if v.id == "dcgm-level-3")
    assert failed.outcome is Outcome.NOT_MET
    assert failed.reason.endswith("(seen by sustained-load)")


def test_a_load_that_was_none_is_the_reason_of_the_claim_about_the_log(results):
    add(results, "sustained-load", "gpu-001", "{}", "dcgm-diag")
    add(results, "kernel-log", "gpu-001", "2026-11-01T00:00:00,000000+00:00 Linux version 6.8\n", "kernel-log")
    reason = next(v for v in imported(results).verdicts if v.id == "no-xid").reason
    assert reason.startswith("no load came before it: its output is unreadable")


def test_a_node_that_said_it_has_no_such_hardware_did_report(results):
    shutil.rmtree(results / "collective-in-node")
    place = results / "rdma-write" / "gpu-001+gpu-002.server"
    place.mkdir(parents=True)
    pair = {"test": "rdma-write", "nodes": "gpu-001,gpu-002", "node": "gpu-001", "exit_code": None}
    said = record("gpu-001+gpu-002", role="server", lacking="no such hardware: no RDMA device", **pair)
    (place / "run.json").write_text(json.dumps(said), encoding="utf-8")
    collect(results)
    found = imported(results)
    assert found.silent == ("gpu-002",)
    unit = next(u for u in found.findings.units if u.test == "rdma-write")
    assert unit.state is State.LACKING
    assert unit.reason == "no such hardware: no RDMA device, as gpu-001 says"
