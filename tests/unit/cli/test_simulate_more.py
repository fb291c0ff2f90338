"""`cw simulate` and `cw what-if`: windows, warm-up, speeds, budgets, CPU and memory, MIG, through the commands."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builders.simulated import CLUSTER, SACCT
from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

QUICK = ("--seeds", "1", "--jobs", "1", "--failures", "none")
DAY_MS = 86_400_000
TWO = """apiVersion: clusterwright/v1alpha1
cluster: two classes
pools:
  gpu: {nodes: "g-[01-08]", shape: hgx-h100-sxm-8, price: $2.40/GPU-h}
  other: {nodes: "x-[01-08]", shape: hgx-b200-sxm-8, price: $4.40/GPU-h}
scheduling: {engine: slurm, backfill: easy}
"""


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, " ".join(result.stdout.split())


def values(*arguments: object) -> dict:
    result = CliRunner().invoke(app, [*map(str, arguments), "--format", "json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return json.loads(result.stdout)


def two(folder: Path) -> Path:
    (folder / "two.yaml").write_text(TWO)
    return folder / "two.yaml"


def trace_in(folder: Path, *rows: tuple[int, int, int], account: str = "research", extra: str = "") -> Path:
    """A trace of sacct: jobs of 8 GPUs as (submitted, started, seconds of run time), hours after 2026-05-04."""
    lines = [
        "JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|NNodes|AllocTRES|Restarts"
    ]
    begin = datetime(2026, 5, 4)
    for number, (submit_h, start_h, run_s) in enumerate(rows, 100):
        submit, start = (begin + timedelta(hours=h) for h in (submit_h, start_h))
        lines.append(
            f"{number}|u|{account}|gpu|normal|COMPLETED|{submit.isoformat()}|{submit.isoformat()}|{start.isoformat()}|"
            f"{(start + timedelta(seconds=run_s)).isoformat()}|{run_s}|2-00:00:00|1|"
            f"cpu=8,gres/gpu{extra}=8,mem=100G,node=1|0"
        )
    (folder / "jobs.txt").write_text("\n".join((*lines, "")))
    return folder / "jobs.txt"


def test_a_warm_up_is_in_the_cluster_and_in_no_figure():
    replay = ("simulate", CLUSTER, "--trace", SACCT, *QUICK)
    whole, warm = values(*replay, "--days", "3"), values(*replay, "--days", "2", "--warm-up", "1 d")
    assert (whole["warm_up_s"], warm["warm_up_s"], warm["days"]) == (0, 86400, 2)
    assert warm["ledger"]["installed_gpu_ms"] == warm["ledger"]["sum_of_lines_gpu_ms"] == 2 * 64 * DAY_MS
    assert whole["ledger"]["installed_gpu_ms"] == 3 * 64 * DAY_MS
    assert 0 < warm["groups"][0]["jobs"] < whole["groups"][0]["jobs"]
    assert warm["calibration"]["groups"][0]["jobs"] == warm["groups"][0]["jobs"]
    _, text = run(*replay, "--days", "2", "--warm-up", "1 d")
    assert "2 days after a warm-up of 24 h" in text
    assert {f["name"]: f["origin"] for f in warm["rests_on"]}["jobs.warm_up"] == "declared"
    assert {f["name"]: f["origin"] for f in whole["rests_on"]}["jobs.warm_up"] == "assumed"


def test_work_that_is_not_saved_at_the_end_is_told_apart_in_every_form():
    replay = ("simulate", CLUSTER, "--trace", SACCT, *QUICK, "--days", "3")
    found = values(*replay)
    assert found["ledger"]["not_saved_yet_gpu_hours"]["value"] > 0
    assert found["ettr_saved"]["value"] < found["ettr"]["value"]
    _, text = run(*replay)
    assert f"ETTR would be {found['ettr_saved']['value']:.3f} if all of them were lost" in text
    _, page = run(*replay, "--format", "html")
    assert f"{found['ettr_saved']['value']:.2f} if work not saved at the end were lost" in page


def test_drawn_jobs_have_a_warm_up_of_their_own_that_is_said():
    found = values("simulate", CLUSTER, "--trace", SACCT, "--draw", "--days", "1", *QUICK)
    assert found["warm_up_s"] == 2 * 86400
    assert found["ledger"]["installed_gpu_ms"] == 64 * DAY_MS
    (figure,) = [f for f in found["rests_on"] if f["name"] == "jobs.warm_up"]
    assert "99 %" in figure["basis"]
    cold = values("simulate", CLUSTER, "--trace", SACCT, "--draw", "--days", "1", "--warm-up", "0 s", *QUICK)
    assert cold["warm_up_s"] == 0


def test_a_window_begins_with_what_ran_and_waited(tmp_path):
    """One node: one job runs from 0 h to 10 h, another waits behind it, one comes at 7 h; the window begins at 6 h."""
    trace = trace_in(tmp_path, (0, 0, 36_000), (1, 10, 7200), (7, 12, 3600), (40, 40, 60))
    nodes = ("simulate", "--nodes", "1x8", "--trace", trace, *QUICK, "--tolerance", "9")
    found = values(*nodes, "--since", "2026-05-04T06:00", "--until", "2026-05-04T14:00")
    assert found["jobs"] == 3
    assert found["groups"][0]["jobs"] == 1
    assert found["groups"][0]["wait_s"]["max"]["value"] == 5 * 3600
    assert found["ledger"]["installed_gpu_ms"] == 8 * 8 * 3_600_000
    hours = {line: f["value"] for line, f in found["ledger"]["gpu_hours"].items() if f["value"]}
    assert hours == {"productive": 56.0, "free without demand": 8.0}
    assert "1 jobs run, with what was left of them, and 1 wait" in found["remarks"][0]
    assert values(*nodes, "--since", "6 h", "--days", "0.25")["days"] == 0.25


def test_a_faster_gpu_is_told_by_speed_and_the_ledger_follows(tmp_path):
    trace = trace_in(tmp_path, (0, 0, 7200), (1, 2, 3600), (23, 23, 3600))
    asked = ("what-if", CLUSTER, "--trace", trace, *QUICK, "--days", "0.5", "--set", "pools.gpu.shape=hgx-h200-sxm-8")
    told = values(*asked, "--speed", "h200=2")
    sides = [told[side]["ledger"]["gpu_hours"]["productive"]["value"] for side in ("as_it_is", "changed")]
    assert sides == [8 * 3, 8 * 1.5]
    assert told["as_it_is"]["cost"]["per_successful_gpu_hour"] == told["changed"]["cost"]["per_successful_gpu_hour"]
    assert {f["name"]: f["origin"] for f in told["changed"]["rests_on"]}["speeds.gpu"] == "declared"
    silent = values(*asked)
    (equal,) = [f for f in silent["changed"]["rests_on"] if f["name"].startswith("speeds")]
    assert (equal["name"], equal["value"], equal["origin"]) == ("speeds.equal", 1.0, "assumed")
    assert not [f for f in silent["as_it_is"]["rests_on"] if f["name"].startswith("speeds")]


def test_another_gpu_class_runs_at_the_ratio_of_the_catalogue_as_an_assumed_bound(tmp_path):
    trace = trace_in(tmp_path, (0, 0, 7200), (23, 23, 3600), extra=":h100")
    found = values("simulate", two(tmp_path), "--trace", trace, *QUICK, "--ask", "other-gpu", "--pool", "other")
    assert "assumed: ratio of dense fp16 peaks" in found["basis"]
    assert "upper bound of the change" in found["basis"]
    assert "cost of all GPUs per job that succeeded" in found["answer"]
    before, after = (f["ledger"]["gpu_hours"]["productive"]["value"] for f in found["futures"])
    (ratio,) = [f["value"] for f in found["futures"][1]["rests_on"] if f["name"].startswith("speeds.other")]
    assert ratio > 2
    assert after == pytest.approx(before / ratio, rel=1e-5)
    declared = values(
        "simulate",
        two(tmp_path),
        "--trace",
        trace,
        *QUICK,
        "--ask",
        "other-gpu",
        "--pool",
        "other",
        "--speed",
        "b200=1.5",
    )
    assert "speed × 1.5, declared" in declared["basis"]


def test_another_gpu_class_of_which_nobody_knows_the_speed_is_said_to_be_as_fast(tmp_path):
    trace = trace_in(tmp_path, (0, 0, 7200), (23, 23, 3600))
    found = values("simulate", two(tmp_path), "--trace", trace, *QUICK, "--ask", "other-gpu", "--pool", "other")
    assert "run as fast on every pool, because nobody said how fast" in found["basis"]
    known = values(
        "simulate", two(tmp_path), "--trace", trace, *QUICK, "--ask", "other-gpu", "--pool", "other",
        "--speed", "catalogue=h100",
    )  # fmt: skip
    assert "assumed: ratio of dense fp16 peaks" in known["basis"]


def test_jobs_that_have_no_quota_of_the_other_gpus_are_named(tmp_path):
    queues = "  queues:\n    research: {guarantee: {gpu: 64, other: 8}}\n"
    (tmp_path / "quota.yaml").write_text(
        TWO.replace("{engine: slurm, backfill: easy}\n", "\n  engine: slurm\n" + queues)
    )
    trace = trace_in(tmp_path, (0, 0, 7200), (23, 23, 3600))
    rows = trace.read_text().replace("|1|cpu=8,gres/gpu=8,", "|2|cpu=8,gres/gpu=16,", 1)
    trace.write_text(rows)
    asked = ("simulate", tmp_path / "quota.yaml", "--trace", trace, *QUICK, "--ask", "other-gpu", "--pool", "other")
    found = values(*asked)
    assert "1 of 2 jobs can never run there" in found["answer"]
    assert found["futures"][1]["never_fit"][0]["why"] == "queue research may use 8 GPUs at most"
    assert run(*asked)[0] == 3


def test_a_budget_stops_admission_until_what_was_planned_is_free_again(tmp_path):
    trace = trace_in(tmp_path, *((0, 0, 3600) for _ in range(4)), (50, 50, 60))
    budget = "scheduling.queues.research.budget={gpu_time: 400 GPU-h, every: 1 d, starts: 2026-05-01}"
    found = values("simulate", CLUSTER, "--trace", trace, *QUICK, "--set", budget, "--tolerance", "99")
    # a time limit of two days plans 8 × 24 GPU-h of the first day and as many of the second: two jobs at a time
    assert found["groups"][0]["wait_s"]["max"]["value"] == 3600
    assert found["futures"][0]["lines_gpu_ms"]["free with demand"] > 0
    assert any("budgets begin full" in remark for remark in found["remarks"])
    free = values("simulate", CLUSTER, "--trace", trace, *QUICK)
    assert free["groups"][0]["wait_s"]["max"]["value"] == 0


def test_cpu_and_memory_are_capacity_where_both_sides_are_known(tmp_path):
    """Two jobs of 8 cores at once: on nodes with 12 cores each needs a node of its own, whatever GPUs are free."""
    trace = trace_in(tmp_path, (0, 0, 7200), (0, 0, 7200), (23, 23, 60))
    host = (
        "--set",
        "pools.gpu.hardware.gpus=16",
        "--set",
        "pools.gpu.hardware.cpu_cores=12",
        "--set",
        "pools.gpu.nodes=1",
    )
    asked = ("simulate", CLUSTER, "--trace", trace, *QUICK, "--tolerance", "99", *host)
    without = values(*asked)
    assert any("memory of jobs is not modelled: pools.gpu.hardware.ram" in r for r in without["remarks"])
    assert without["groups"][0]["wait_s"]["max"]["value"] == 7200
    assert values(*asked, "--gpus-only")["groups"][0]["wait_s"]["max"]["value"] == 0
    never = values(*asked, "--set", "pools.gpu.hardware.ram=64 GiB")
    assert never["never_fit"][0]["jobs"] == 3


def test_cpu_and_memory_that_are_never_short_change_nothing(tmp_path):
    """The jobs of the example ask for 12 cores and 200 GiB for a GPU; a DGX H100 has 14 and 256."""
    asked = ("simulate", CLUSTER, "--trace", SACCT, *QUICK, "--days", "3", "--set", "pools.gpu.shape=dgx-h100")
    found = values(*asked, "--events", tmp_path / "with")
    values(*asked, "--events", tmp_path / "without", "--gpus-only")
    assert (tmp_path / "with").read_bytes() == (tmp_path / "without").read_bytes()
    assert not any("not modelled" in remark for remark in found["remarks"])


def test_mig_slices_are_capacity_of_their_own_flavor(tmp_path):
    (tmp_path / "mig.yaml").write_text(TWO.replace("shape: hgx-b200-sxm-8", "shape: hgx-h100-sxm-8, sharing: mig"))
    trace = trace_in(tmp_path, *((0, 0, 3600) for n in range(8)), (23, 23, 3600), extra=":1g.10gb")
    found = values("simulate", tmp_path / "mig.yaml", "--trace", trace, *QUICK)
    assert found["pools"][1] == {"name": "other", "nodes": 8, "gpus_per_node": 56}
    assert found["groups"][0]["wait_s"]["max"]["value"] == 0
    assert any("one of 7 slices" in remark for remark in found["remarks"])
    # 8 nodes × 8 GPUs of 2.40 and 8 × 56 slices of 4.40 ÷ 7 for a day
    assert found["cost"]["installed"]["value"] == pytest.approx(24 * 64 * (2.40 + 4.40))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--since", "noon"), "--since is 'noon'"),
        (("--since", "2030-01-01"), "leave nothing of the trace"),
        (("--until", "2026-05-06", "--days", "1"), "leave out --days"),
        (("--warm-up", "20 d"), "nothing is left to count"),
        (("--warm-up", "5 GB"), "--warm-up"),
        (("--days", "10", "--warm-up", "5 d"), "after --warm-up"),
        (("--speed", "h200"), "--speed is 'h200'"),
        (("--speed", "hx00=2"), "no pool, no GPU"),
    ],
)
def test_wrong_input_is_named(arguments, said):
    with pytest.raises(InvalidInput) as found:
        run("simulate", CLUSTER, "--trace", SACCT, *QUICK, *arguments)
    assert said in str(found.value)


def test_a_warm_up_is_about_a_trace():
    with pytest.raises(InvalidInput, match="about a trace"):
        run("simulate", CLUSTER, "--warm-up", "1 d")
