"""`cw calibrate`: files to constants to a catalogue file, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

HEAD = "backend,backend_version,model,system,precision,isl,osl,concurrency,tp_size,ttft_ms,tpot_ms\n"
ROWS = [(16, 190, 11.8), (8, 150, 10.6), (32, 240, 14.1), (64, 330, 18.6), (4, 130, 10.1), (2, 120, 9.9)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = [
        f"vllm,0.12.0,Qwen/Qwen3-32B,h100_sxm,bf16,{isl},{osl},{c},4,{ttft * isl / 1024},{tpot}"
        for isl, osl in ((1024, 512), (2048, 512))
        for c, ttft, tpot in ROWS
    ]
    path = tmp_path / "runs.csv"
    path.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["calibrate", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def result(path: Path, concurrency: int) -> None:
    path.write_text(
        json.dumps(
            {
                "backend": "vllm", "model_id": "/models/qwen", "num_prompts": 100, "completed": 100, "failed": 0,
                "request_rate": "inf", "max_concurrency": concurrency, "duration": 60.0, "total_input_tokens": 102400,
                "total_output_tokens": 51200, "request_throughput": 1.7, "output_throughput": 853.0,
                "mean_ttft_ms": 100.0 + 4 * concurrency, "median_ttft_ms": 100.0 + 4 * concurrency,
                "mean_tpot_ms": 9.5 + 0.14 * concurrency, "median_tpot_ms": 9.5 + 0.14 * concurrency,
            }
        ),
        encoding="utf-8",
    )  # fmt: skip


def test_a_table_is_refitted_written_and_read_again(table, tmp_path):
    own = tmp_path / "own.yaml"
    code, text, said = run(table, "--write", own)
    assert code == 0
    assert "vllm 0.12.0 on h100-sxm-80: 12 rows, Qwen/Qwen3-32B" in text
    assert "held out: TTFT mean" in text
    assert "fitted range: prompt 1024 to 2048" in text
    assert f"written: {own}" in said
    before = json.loads(run(table, "--format", "json")[1])["refits"][0]["before"]["tpot"]["mean"]
    again = json.loads(run(table, "--catalogue", own, "--format", "json")[1])["refits"][0]["before"]["tpot"]["mean"]
    assert again < before


def test_outputs_of_a_benchmark_need_what_they_do_not_tell(tmp_path):
    for concurrency in (1, 2, 4, 8, 16, 32, 48, 64):
        result(tmp_path / f"c{concurrency}.json", concurrency)
    code, text, _ = run(tmp_path)
    assert code == 2
    assert "the GPU is not told: --gpu" in text
    code, text, _ = run(tmp_path, "--gpu", "H100", "--model", "Qwen/Qwen3-32B", "--tp", "4")
    assert code == 0
    assert "8 rows" in text


def test_rows_left_out_are_said_and_make_the_result_incomplete(table):
    with table.open("a", encoding="utf-8") as file:
        file.write("vllm,0.12.0,nobody/knows,h100_sxm,bf16,1024,512,8,4,100,10\n")
    code, text, _ = run(table)
    assert code == 3
    assert "left out: runs.csv:14: model nobody/knows is not known layer by layer" in text


def test_files_without_measurements_fit_nothing(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing here\n", encoding="utf-8")
    code, text, _ = run(path)
    assert code == 2
    assert "holds no result of a serving benchmark" in text


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--engine", "llama.cpp", "is not one of vllm"),
        ("--weights", "q4", "is not one of"),
        ("--tp", "0", "a parallel size is at least 1"),
    ],
)
def test_wrong_options_are_refused(table, option, value, reason):
    with pytest.raises(InvalidInput, match=reason):
        run(table, option, value)


def test_an_evidence_store_gives_its_raw_outputs(tmp_path):
    outputs, store = tmp_path / "outputs", tmp_path / "store"
    outputs.mkdir()
    for concurrency in (1, 2, 4, 8, 16, 32, 48, 64):
        result(outputs / f"c{concurrency}.json", concurrency)
    added = CliRunner().invoke(app, ["evidence", "add", str(outputs), "--store", str(store)])
    assert added.exit_code in (0, 3), added.output
    code, text, _ = run(store, "--gpu", "H100", "--model", "Qwen/Qwen3-32B", "--tp", "4")
    assert code == 0
    assert "8 rows" in text
