"""`cw fit` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clusterwright.cli.main import app

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
