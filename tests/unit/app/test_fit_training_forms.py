"""An answer about training in every form: what the page says, JSON, CSV, XLSX and Markdown say too."""

from __future__ import annotations

import csv
import datetime
import io
import json
import zipfile
from pathlib import Path

import pytest

from clusterwright.app.exporting import write_answers
from clusterwright.app.fitting import FitRequest, describe_fit, fit, markdown_of_fit
from clusterwright.app.fitting_batches import Row, fit_batch, read_batch
from clusterwright.app.fitting_forms import csv_of_fit, values_of_fit, write_architecture

TODAY = datetime.date(2026, 6, 30)
#: Questions of all kinds: held, with spare nodes, with adapters, on the host, without failures, late, too big.
QUESTIONS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("llama-3.1-8b", "h100,a100", {"gpus": "16", "tokens": "10G", "survive": "1"}),
    ("llama-3.3-70b", "h100", {"gpus": "8", "method": "lora", "tokens": "50M"}),
    ("llama-3.1-8b", "l40s", {"method": "qlora"}),
    ("llama-3.3-70b", "h100", {"gpus": "8", "offload": "optimizer", "failures": "0"}),
    ("llama-3.3-70b", "h100", {"gpus": "64", "tokens": "10T", "deadline": "10d"}),
    ("llama-3.3-70b", "h100", {"gpus": "8"}),
    ("llama-3.1-8b", "h100", {"budget": "$5k", "survive": "1"}),
)


def request(model: str, machines: str, options: dict[str, str]) -> FitRequest:
    return FitRequest(model, machines.split(","), TODAY, options, train=True)


@pytest.mark.parametrize(("model", "machines", "options"), QUESTIONS)
def test_every_form_can_be_made_and_says_the_verdict(model, machines, options) -> None:
    answer = fit(request(model, machines, options))
    values = json.loads(json.dumps(values_of_fit(answer), allow_nan=False))
    assert values["holds"] == answer.holds
    for width in (80, 140):
        text = describe_fit(answer, width)
        assert " ".join(values["verdict"].split()) in " ".join(text.split())
        assert all(len(line) <= width for line in text.splitlines() if "--" not in line)
    assert values["verdict"].split(";")[0] in markdown_of_fit(answer).replace("\\", "")
    rows = list(csv.DictReader(io.StringIO(csv_of_fit(answer))))
    assert [row["GPU"] for row in rows] == [fit_.machine.asked for fit_ in answer.fits]
    for row, machine in zip(rows, values["machines"], strict=True):
        if machine["verdict"] == "holds":
            assert float(row["tokens/s"]) == machine["tokens_s"]["value"]
            assert float(row["goodput, low"]) == machine["goodput"]["low"]
            assert float(row["checkpoint stall, s"]) == machine["interruptions"]["checkpoint_stall_s"]
            assert float(row["step, s"]) == pytest.approx(sum(machine["step_s"].values()))


def test_json_has_what_the_page_has() -> None:
    answer = fit(request(*QUESTIONS[0]))
    values, text = values_of_fit(answer), describe_fit(answer, 200)
    machine = values["machines"][0]
    for key in ("ideal_days", "days", "goodput", "interruptions", "fits_surely", "settings", "memory_terms_gib"):
        assert machine[key] is not None
    assert machine["interruptions"]["spare_nodes"] == 1
    assert all(effect["what"] in text for effect in values["effects"])
    assert all(asked["question"] in text for asked in values["ask"])
    assert all(line in text for line in values["basis"])
    assert all(option in text for option in machine["settings"]["options"])
    big = fit(request(*QUESTIONS[5]))
    said = describe_fit(big, 300)
    assert all(remedy["what"] in said for remedy in values_of_fit(big)["remedies"])
    assert values_of_fit(big)["remedies"]


def test_nothing_fails_where_the_question_says_so() -> None:
    answer = fit(request(*QUESTIONS[3]))
    assert "nothing fails, as stated" in describe_fit(answer)
    assert values_of_fit(answer)["machines"][0]["interruptions"]["mttf_h"] is None


@pytest.mark.parametrize("ending", ["md", "csv", "xlsx", "json"])
def test_training_is_written_to_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    write_answers(path, [Row(1, "", fit(request(*QUESTIONS[1])))])
    if ending == "xlsx":
        with zipfile.ZipFile(path) as book:
            text = "".join(book.read(name).decode() for name in book.namelist() if name.endswith(".xml"))
    else:
        text = path.read_text()
    assert "goodput" in text
    assert "--tensor-model-parallel-size" in text


def test_a_batch_takes_the_options_of_training(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(
        "model,gpu,train,method,rank,gpus,offload\n"
        "llama-3.1-8b,h100,yes,lora,8,1,\n"
        "llama-3.1-8b,h100,yes,,,8,optimizer\n"
        "llama-3.1-8b,h100,yes,qlora,,1,optimizer\n"
    )
    rows = fit_batch(str(path), read_batch(str(path)), FitRequest("", [], TODAY))
    assert [row.answer is not None and row.answer.holds for row in rows] == [True, True, False]
    assert "offload" in rows[2].problems[0]


def test_the_file_of_an_answer_says_method_rank_offload_and_spares(tmp_path: Path) -> None:
    path = tmp_path / "lora.yaml"
    write_architecture(fit(request("llama-3.3-70b", "h100", {"gpus": "8", "method": "lora", "survive": "1"})), path)
    text = path.read_text()
    for line in ("method: lora", "adapter_rank: 16", "spares: 1", "gpu-[001-002]"):
        assert line in text
    write_architecture(fit(request("llama-3.3-70b", "h100", {"gpus": "8", "offload": "optimizer"})), path, replace=True)
    assert "offload: optimizer" in path.read_text()
