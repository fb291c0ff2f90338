"""Stores and bundles of evidence in `cw judge` and `cw prove`: what was kept counts as if it lay there as outputs."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.app.judging_outputs import (
    OutputRequest,
    describe_judgement,
    judge_outputs,
    values_of_judgement,
)
from clusterwright.app.kept_evidence import load_kept
from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.evidence import Outcome

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
"""


def dcgm(*failing):
    tests = [
        {"name": name, "results": [
            {"entity_group": "GPU", "entity_group_id": 0, "entity_id": gpu,
             "status": "Fail" if gpu in failing and name == "memory" else "Pass"} for gpu in range(8)
        ]} for name in ("memory", "pcie", "targeted_power")
    ]  # fmt: skip
    return json.dumps({
        "DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]},
        "entity_groups": [{"entity_group": "GPU", "entity_group_id": 0,
                           "entities": [{"entity_id": g, "device_id": "2330"} for g in range(8)]}],
        "metadata": {"version": "4.2.3", "Driver Version Detected": "570.86.15"},
    })  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The file, and one output per host of which that of gpu-001 is kept in ./evidence."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(FILE)
    for host in ("gpu-001", "gpu-002"):
        write(tmp_path / "out" / host / "dcgm.json", dcgm())
    cw("evidence", "add", "out/gpu-001/dcgm.json", "--nodes", "gpu-001", "--engine", "slurm")
    return tmp_path


def write(path, text, days_old=1.0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    then = (datetime.now(UTC) - timedelta(days=days_old)).timestamp()
    os.utime(path, (then, then))


def cw(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def judged(*paths, evidence=("evidence",), keys=(), **fields):
    kept = load_kept(paths_of(evidence), paths_of(keys))
    return judge_outputs(OutputRequest(paths, engine="slurm", **fields), kept=kept)


def paths_of(texts):
    return [Path(text) for text in texts]


def outcome(found):
    (verdict,) = found.verdicts
    return verdict.outcome


def test_what_was_kept_counts_beside_outputs(here):
    assert outcome(judged("cluster.yaml", "out/gpu-002", evidence=())) is Outcome.NOT_MEASURED
    assert outcome(judged("cluster.yaml", "out/gpu-002")) is Outcome.MET


def test_kept_evidence_alone_is_judged(here):
    found = judged("cluster.yaml")
    assert outcome(found) is Outcome.NOT_MEASURED
    assert "without gpu-002" in found.verdicts[0].reason
    cw("evidence", "add", "out/gpu-002/dcgm.json", "--nodes", "gpu-002", "--engine", "slurm")
    assert outcome(judged("cluster.yaml")) is Outcome.MET


def test_kept_with_another_engine_or_with_none_is_not_measured(here):
    cw("evidence", "add", "out/gpu-002/dcgm.json", "--nodes", "gpu-002")
    found = judged("cluster.yaml")
    assert outcome(found) is Outcome.NOT_MEASURED
    assert "run on no engine" in found.verdicts[0].reason


def test_a_kept_failure_is_not_met_although_a_later_output_passes(here):
    write(here / "bad.json", dcgm(5), days_old=2)
    cw("evidence", "add", "bad.json", "--nodes", "gpu-002", "--engine", "slurm")
    found = judged("cluster.yaml", "out")
    assert outcome(found) is Outcome.NOT_MET
    text = describe_judgement(found)
    assert "[evidence, " in text
    assert found.exit_code == 1


def test_a_kept_failure_that_is_too_old_does_not_count_where_there_are_claims(here):
    write(here / "bad.json", dcgm(5), days_old=40)
    cw("evidence", "add", "bad.json", "--nodes", "gpu-002", "--engine", "slurm")
    assert judged("cluster.yaml", "out").exit_code == 0
    assert judged().exit_code == 1


def test_an_output_that_is_kept_too_counts_once(here):
    found = judged("out/gpu-001", nodes="gpu-001")
    assert [len(k.evidence) for k in found.kept] == [0]
    assert values_of_judgement(found)["kept"] == [{"source": "evidence", "remark": None, "records": []}]


def test_a_store_among_the_outputs_is_left_alone(here):
    cw("evidence", "add", "out/gpu-001/dcgm.json", "--store", "out/store")
    found = judged("cluster.yaml", "out", evidence=())
    assert len(found.outputs) == 2
    assert not [o.path for o in found.outputs if "objects" in o.path]
    with pytest.raises(InvalidInput, match="is a store of evidence"):
        judged("cluster.yaml", "evidence", evidence=())


def test_a_bundle_counts_and_is_said_to_be_of_anybody_without_a_key(here):
    done = json.loads(cw("evidence", "export", "b.tar", "--format", "json").stdout)
    found = judged("cluster.yaml", "out/gpu-002", evidence=("b.tar",))
    assert outcome(found) is Outcome.MET
    assert any("whoever signed it" in remark for remark in found.remarks)
    assert "whoever signed it" in describe_judgement(found)
    (here / "key.pub").write_text(done["public_key"])
    assert judged("cluster.yaml", "out/gpu-002", evidence=("b.tar",), keys=("key.pub",)).remarks == ()


def test_an_altered_bundle_is_refused(here):
    cw("evidence", "export", "b", "--format", "json")
    records = here / "b" / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b"gpu-001", b"gpu-002"))
    with pytest.raises(InvalidInput):
        judged("cluster.yaml", evidence=("b",))


def test_a_record_of_a_store_and_of_its_bundle_counts_once(here):
    cw("evidence", "export", "b.tar")
    kept = load_kept(paths_of(("evidence", "b.tar")))
    assert [len(k.evidence) for k in kept] == [1, 0]


def test_without_an_architecture_the_records_are_told(here):
    text = describe_judgement(judged())
    assert "evidence: 1 records" in text
    assert "dcgm_failures 0" in text


def test_the_command_needs_outputs_or_evidence(here):
    with pytest.raises(InvalidInput, match="--evidence"):
        cw("judge", "cluster.yaml")
    assert cw("judge", "cluster.yaml", "--evidence", "evidence").exit_code == 3
    assert cw("judge", "cluster.yaml", "out/gpu-002", "--engine", "slurm", "--evidence", "evidence").exit_code == 0


def test_prove_meets_claims_by_evidence(here):
    def met(*more):
        cw("prove", "cluster.yaml", "--skip-rehearsal", "--out", "proof", *more)
        record = json.loads((here / "proof" / "report.json").read_text())
        steps = {s["name"]: s["state"] for s in record["steps"]}
        return [v["outcome"] for v in record["verdicts"]], steps["accept on hardware"], str(record["inputs"])

    cw("evidence", "add", "out/gpu-002/dcgm.json", "--nodes", "gpu-002", "--engine", "slurm")
    assert met()[:2] == (["not measured"], "not run")
    outcomes, step, inputs = met("--evidence", "evidence")
    assert (outcomes, step) == (["met"], "done")
    assert "evidence evidence" in inputs
