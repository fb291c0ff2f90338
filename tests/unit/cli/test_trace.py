"""`cw trace`: text and JSON, exit codes, files that are written whole and never over others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builders.traces import SACCT, row
from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

HEAD = "timestamp,duration,num_gpus,gpu_time,cluster\n"


@pytest.fixture
def philly(tmp_path: Path) -> str:
    days = "".join(f"2017-10-{1 + k % 28:02} 07:{k % 60:02}:00,{10.0 + k},1,0,vc\n" for k in range(200))
    (tmp_path / "philly.csv").write_text(HEAD + days, encoding="utf-8")
    return str(tmp_path / "philly.csv")


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["trace", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_inspect_says_what_the_trace_holds_and_what_it_does_not_record(philly):
    code, text, _ = run("inspect", philly)
    assert code == 0
    assert "200 = 200 of jobs + 0 parts + 0 rejected" in text
    assert "local time America/Los_Angeles" in text
    assert "wait      not recorded" in text
    assert "start and wait: replayed waits cannot be compared with real ones" in text


def test_a_zone_that_nobody_gave_is_named_as_assumed(tmp_path):
    (tmp_path / "jobs").write_text(f"{SACCT}\n{row('7')}\n", encoding="utf-8")
    assert "local time UTC (assumed; say which with --zone)" in run("inspect", tmp_path / "jobs")[1]
    assert "local time Europe/Berlin\n" in run("inspect", tmp_path / "jobs", "--zone", "Europe/Berlin")[1]


def test_rejected_rows_are_shown_with_their_lines_and_change_the_exit_code(tmp_path, philly):
    spoiled = Path(philly).read_text(encoding="utf-8") + "2017-10-09 08:00:00,-5,1,0,vc\nnever,5,1,0,vc\n"
    (tmp_path / "spoiled.csv").write_text(spoiled, encoding="utf-8")
    code, text, remark = run("inspect", tmp_path / "spoiled.csv")
    assert code == 3
    assert "1 × a negative run time" in text
    assert "line 202: 2017-10-09 08:00:00,-5,1,0,vc" in text
    assert "[bad-time]" in text
    assert remark == "2 rows were rejected\n"


def test_inspect_gives_everything_as_json(philly):
    code, text, _ = run("inspect", philly, "--format", "json")
    values = json.loads(text)
    assert (code, values["jobs"], values["run_s"]["largest"], values["wait_s"]["p50"]) == (0, 200, 209.0, None)


@pytest.mark.parametrize("arguments", [("inspect", "nowhere"), ("inspect",), ("inspect", "x", "--kind", "y")])
def test_wrong_usage_is_2(arguments):
    try:
        code, _, _ = run(*arguments)
    except InvalidInput:
        return  # shown by the entry point, with 2
    assert code == 2


@pytest.mark.parametrize("form", ["csv", "swf", "json"])
def test_export_writes_a_file_whole_and_not_over_another(tmp_path, philly, form):
    out = tmp_path / "out"
    assert run("export", philly, "--to", form, "--out", out)[0] == 0
    first = out.read_text(encoding="utf-8")
    assert first.count("\n") >= 200
    with pytest.raises(InvalidInput, match="exists"):
        run("export", philly, "--to", form, "--out", out)
    assert run("export", philly, "--to", form, "--out", out, "--force")[0] == 0
    assert out.read_text(encoding="utf-8") == first
    assert run("export", philly, "--to", form)[1] == first


@pytest.mark.parametrize("form", ["csv", "swf"])
def test_what_was_exported_is_read_again_with_the_same_figures(tmp_path, philly, form):
    out = tmp_path / "again"
    run("export", philly, "--to", form, "--out", out)
    one = json.loads(run("inspect", philly, "--format", "json")[1])
    other = json.loads(run("inspect", out, "--format", "json", "--processors-per-gpu", "1")[1])
    for name in ("jobs", "run_s", "gpu_hours", "sizes"):
        assert one[name] == other[name]
    assert one["window_s"] == other["window_s"]


def test_exported_json_holds_a_job_a_line(tmp_path):
    (tmp_path / "jobs").write_text(f"{SACCT}\n{row('7', Timelimit='UNLIMITED')}\n", encoding="utf-8")
    _, text, _ = run("export", tmp_path / "jobs", "--to", "json")
    (job,) = json.loads(text)["jobs"]
    assert (job["id"], job["limit_s"], job["cause"], job["gpus_per_task"]) == ("7", "inf", None, 8)


def test_a_mapping_reads_anybodys_csv(tmp_path):
    (tmp_path / "jobs.csv").write_text("at,took,n\n1700000000,60000,4\n", encoding="utf-8")
    code, text, _ = run("inspect", tmp_path / "jobs.csv", "--map", "submit=at:s,run=took:ms,gpus=n", "--format", "json")
    values = json.loads(text)
    assert (code, values["run_s"]["largest"], values["sizes"][0]["gpus"]) == (0, 60.0, "4-7")


def test_fit_shows_distances_and_writes_a_document(tmp_path, philly):
    out = tmp_path / "fit.json"
    code, text, remark = run("fit", philly, "--out", out)
    assert code == 0
    assert "fitted to 200 jobs in 27.0 d" in text
    assert "run times by size" in text
    assert "time limits: 0% have none, 100% are not recorded" in text
    assert str(out) in remark
    assert json.loads(out.read_text(encoding="utf-8")) == json.loads(run("fit", philly, "--format", "json")[1])


def test_too_few_jobs_cannot_be_fitted(tmp_path):
    (tmp_path / "few.csv").write_text(HEAD + "2017-10-09 08:00:00,5,1,5,vc\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="only 1 jobs of 1"):
        run("fit", tmp_path / "few.csv")


def test_hostile_text_stays_text(tmp_path):
    name = 'ev|l\x1b[31m;"$(x)"'
    (tmp_path / "h.csv").write_text(
        f'at,took,who\n1700000000,60,"{name.replace(chr(34), chr(34) * 2)}"\n', encoding="utf-8"
    )
    code, text, _ = run("inspect", tmp_path / "h.csv", "--map", "submit=at:s,run=took,queue=who")
    assert code == 0
    assert "\x1b" not in text
