"""`cw fit` as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app
from clusterwright.lib.errors import InvalidInput

RUN = CliRunner()
CHAT = ["--rate", "5", "--in", "1000", "--out", "200", "--ttft", "1s", "--tpot", "50ms"]


def fit(*arguments: str) -> tuple[int, str]:
    done = RUN.invoke(app, ["fit", *arguments], env={"COLUMNS": "100"})
    return done.exit_code, done.output


def test_the_verdict_stands_in_the_first_line() -> None:
    code, text = fit("llama-3.1-8b", "h100,l40s", *CHAT, "--price", "h100=2,l40s=1")
    assert code == 0
    assert text.startswith("Yes: ")
    for part in ("replicas for load", "TTFT p95", "vllm serve meta-llama/Llama-3.1-8B", "Why popular layouts lost"):
        assert part in text
    assert "Assumptions by effect" in text
    assert "How good these numbers are" in text


def test_what_does_not_hold_ends_with_one() -> None:
    code, text = fit("llama-3.3-70b", "h100", "--gpus", "1")
    assert code == 1
    assert text.startswith("No: ")
    assert "does not fit" in text


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    done = RUN.invoke(app, ["fit", "llama-3.3-70b", "h100,h200,b200,gb200-nvl72", *CHAT], env={"COLUMNS": str(width)})
    assert max(len(line) for line in done.output.splitlines()) <= width


def test_a_config_on_disk_is_a_model(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    code, text = fit(str(tmp_path), "h100", *CHAT)
    assert code == 0
    assert "8.03 B parameters" in text


def test_a_page_in_markdown() -> None:
    code, text = fit("llama-3.1-8b", "h100", *CHAT, "--format", "markdown")
    assert code == 0
    assert text.startswith("# llama-3.1-8b on h100")
    assert "| replicas for load |" in text


def test_a_customer_and_a_profile(tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text("skus: {mine: {shape: dgx-h100, price: $3.33}}\nprices: {h100: 1.0777}\n", encoding="utf-8")
    code, text = fit("llama-3.1-8b", "mine", *CHAT, "--profile", str(profile), "--audience", "customer")
    assert code == 0
    assert "$3.33" in text
    assert "1.08" not in text
    assert "$1.08" in fit("llama-3.1-8b", "mine", *CHAT, "--profile", str(profile))[1]


def test_json_and_csv_are_whole(tmp_path: Path) -> None:
    values = json.loads(fit("llama-3.1-8b", "h100", *CHAT, "--format", "json", "--bom")[1])
    best = values["machines"][0]
    assert values["holds"]
    assert best["tpot_s"]["low"] <= best["tpot_s"]["value"] <= best["tpot_s"]["high"]
    assert values["bill"]["lines"][0]["what"] == "nodes"
    head, row = fit("llama-3.1-8b", "h100", *CHAT, "--format", "csv")[1].splitlines()
    assert head.startswith("model,GPU,rank")
    assert row.startswith("llama-3.1-8b,h100,1,holds")


def test_the_written_file_is_an_architecture_that_can_be_planned(tmp_path: Path) -> None:
    for name, arguments in (("s", CHAT), ("t", ["--train", "--tokens", "20G", "--gpus", "16"])):
        path = tmp_path / f"{name}.yaml"
        assert fit("llama-3.1-8b", "h100", *arguments, "--write", str(path))[0] == 0
        planned = RUN.invoke(app, ["plan", str(path), "--format", "json"])
        assert planned.exit_code in (0, 1, 3), planned.output
        assert json.loads(planned.stdout)
    assert fit("llama-3.1-8b", "h100", *CHAT, "--write", str(path))[0] != 0


def test_a_batch_ends_with_the_worst_of_its_rows(tmp_path: Path) -> None:
    path, out = tmp_path / "q.csv", tmp_path / "a.csv"
    path.write_text("model,gpu,gpus\nllama-3.1-8b,h100,\nllama-3.3-70b,h100,1\n", encoding="utf-8")
    code, text = fit("--batch", str(path), "--to", str(out))
    assert code == 1
    assert "2 questions: 1 held, 1 not, 0 invalid" in text
    assert out.read_text(encoding="utf-8").count("\n") == 3


def test_the_main_lines_are_there_in_their_order() -> None:
    options = ["--rate", "50", "--ttft", "1s", "--tpot", "50ms", "--price", "h100=2.5,h200=3.5"]
    code, text = fit("llama-3.3-70b", "h100,h200", *options)
    assert code == 0
    lines = text.splitlines()
    wanted = [
        "Yes: ", "Asked: meta-llama/Llama-3.3-70B-Instruct, 70.55 B parameters", "fits and holds",
        "layout of a replica", "replicas for load", "GPUs", "nodes", "longest request", "at once, 8k each",
        "TTFT p95, ms", "TPOT p95, ms", "req/s of a replica", "per hour", "per Mtok out",
        "Memory of the fullest GPU", "  weights ", "  KV cache ", "Start each replica with",
        "  vllm serve meta-llama/Llama-3.3-70B-Instruct", "What binds", "Other sizes of a replica",
        "Why popular layouts lost", "Assumptions by effect", "Worth asking", "How good these numbers are",
    ]  # fmt: skip
    at = -1
    for start in wanted:
        at = next((i for i in range(at + 1, len(lines)) if lines[i].startswith(start)), len(lines))
        assert at < len(lines), start


def test_every_figure_of_the_table_that_is_estimated_has_a_range() -> None:
    lines = fit("llama-3.3-70b", "h100", "--rate", "50", "--ttft", "1s", "--tpot", "50ms")[1].splitlines()
    for label in (
        "replicas for load",
        "GPUs",
        "TTFT p95",
        "TPOT p95",
        "req/s of a replica",
        "per hour",
        "per Mtok out",
    ):
        line = next(x for x in lines if x.startswith(label) and "(" in x)
        assert "–" in line, label


def test_training_at_a_terminal() -> None:
    code, text = fit("llama-3.1-8b", "h100,t4", "--train", "--tokens", "20G", "--gpus", "16", "--price", "2")
    assert code == 0
    assert text.startswith("Yes: 16 × h100 in 2 nodes train llama-3.1-8b at ")
    for part in (
        "20 B tokens take",
        "MFU",
        "Where a step's time goes",
        "t4: t4 has no unit for bf16",
        "Daly's interval",
    ):
        assert part in " ".join(text.split())
    assert max(len(line) for line in text.splitlines()) <= 100


def refused(*arguments: str) -> str:
    """What is said of a question that cannot be asked."""
    done = RUN.invoke(app, ["fit", *arguments])
    assert isinstance(done.exception, InvalidInput)
    return str(done.exception)


def test_a_batch_file_that_is_missing_is_said_before_where_answers_go(tmp_path: Path) -> None:
    assert "none.csv: no such file" in refused("--batch", str(tmp_path / "none.csv"))
    (tmp_path / "q.csv").write_text("model,gpu\nllama-3.1-8b,h100\n", encoding="utf-8")
    assert "--batch needs --to FILE" in refused("--batch", str(tmp_path / "q.csv"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--survive", "1e9"], "--survive: '1e9' is out of range: from 0 to 10,000 nodes"),
        (["--rate", "1e15"], "--rate: '1e15' is out of range"),
        (["--power", "1e30kW"], "--power: '1e30kW' is out of range: from 1 W to 100 GW"),
        (["--nic", "0Gb/s"], "--nic: '0Gb/s' is out of range"),
        (["--rate", "-1"], "'-1' is out of range"),
        (["--to", "answer.doc"], "no form ends in '.doc'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_does(arguments: list[str], says: str) -> None:
    assert says in refused("llama-3.1-8b", "h100", *arguments)


def test_money_is_never_written_with_an_exponent() -> None:
    code, text = fit("llama-3.3-70b", "h100", "--rate", "1e7", "--in", "1e6", "--out", "1e4")
    assert code in (0, 1)
    assert not re.search("[$€£][0-9.,]+e", text)


def test_a_release_that_is_not_modelled_is_said_to_be() -> None:
    code, text = fit("llama-3.1-8b", "h100", "--engine", "vllm 0.99")
    assert code == 0
    assert "planned as 0.28, the newest modelled" in text
