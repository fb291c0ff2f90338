"""What is wrong with a model, a price, a NIC or a batch, said with its place."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest

from clusterwright.app.exporting import check_answers
from clusterwright.app.fitting import FitRequest, fit
from clusterwright.app.fitting_batches import fit_batch, read_batch
from clusterwright.app.fitting_models import find_model
from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.errors import InvalidInput

TODAY = datetime.date(2026, 11, 30)
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def refused(path: Path | str) -> str:
    with pytest.raises(InvalidInput) as caught:
        find_model(load_catalogue(()), str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "this file is empty"),
        (b" \n\t", "this file is empty"),
        (b"llama\n", ":1:1: this is a file, but not JSON"),
        (b'{"a": 1,\n "b": }', ":2:7: this is a file, but not JSON"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b"[1, 2]", "holds no JSON object"),
        (b'"llama"', "holds no JSON object"),
        (b"\x89PNG\r\n\x1a\n", "is not UTF-8"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"hidden_size": 4096}', "the config has no 'architectures'"),
        (b'{"model_type": "llama"}', "the config has no 'architectures'; its model_type is 'llama'"),
        (b'{"architectures": 7}', "the config has no 'architectures'"),
        (b'{"architectures": ["LlamaForCausalML"]}', "nearest: LlamaForCausalLM"),
    ],
)
@pytest.mark.parametrize("name", ["config.json", "notes.txt"])
def test_a_file_that_is_no_config_is_told_what_it_is(content: bytes, says: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    said = refused(path)
    assert says in said
    assert str(path) in said


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"num_hidden_layers": 10**30}, "num_hidden_layers is 1e+30"),
        ({"num_hidden_layers": 2001}, "from 1 to 2,000 makes sense"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"hidden_size": -4096}, "hidden_size is -4.1e+03"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0"),
        ({"vocab_size": "many"}, "vocab_size is not a whole number"),
        ({"vocab_size": True}, "vocab_size is not a whole number"),
        ({"quantization_config": [1]}, "quantization_config is not a mapping"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": 128}}, "of another kind"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(changed: dict[str, object], says: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | changed))
    said = refused(tmp_path)
    assert says in said
    assert str(tmp_path) in said


def test_a_config_may_have_any_name_and_a_byte_order_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    monkeypatch.chdir(tmp_path)
    assert find_model(load_catalogue(()), "mine").parameters == 8_030_261_248


def test_a_name_of_the_catalogue_goes_before_a_file_that_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llama-3.1-8b").write_text("notes")
    (tmp_path / "llama-3.3-70b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_model(load_catalogue(()), "llama-3.1-8b").hidden == 4096
    assert find_model(load_catalogue(()), "llama-3.3-70b").hidden == 8192
    assert "not JSON" in refused("./llama-3.1-8b")


def test_folders_and_nothing_are_told_apart(tmp_path: Path) -> None:
    assert "a directory without a config.json" in refused(tmp_path)
    assert "no such file" in refused(tmp_path / "missing.json")
    assert "no model is named" in refused("  ")
    assert "no model 'a" in refused("a\0b")
    assert "no model" in refused("x" * 5000)
    assert len(refused("x" * 5000)) < 500


def asked(**options: str) -> FitRequest:
    return FitRequest("llama-3.1-8b", ["h100"], TODAY, {name.replace("_", "-"): text for name, text in options.items()})


def test_a_price_of_what_is_not_there_is_refused_rather_than_replaced_by_a_published_one() -> None:
    with pytest.raises(InvalidInput, match="--price: no GPU or node is called 'h10'"):
        fit(asked(price="h10=2"))
    price = fit(asked(price="h100=2,h200=3")).first.price
    assert price is not None
    assert price.value == 2


def test_a_nic_without_rate_is_refused_where_it_stands() -> None:
    with pytest.raises(InvalidInput, match="--nic: '0Gb/s' is out of range"):
        fit(asked(nic="0Gb/s"))


def batch(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "q.csv"
    path.write_bytes(text.encode())
    try:
        rows = fit_batch(str(path), read_batch(str(path)), FitRequest("", [], TODAY))
    except InvalidInput as error:
        return [str(problem) for problem in error.problems]
    return [problem for row in rows for problem in row.problems]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no column 'model'"),
        ("model\nllama-3.1-8b\n", "q.csv:1:1: no column 'gpu'"),
        ("model;gpu\nllama-3.1-8b;h100\n", "columns are parted by commas"),
        ("model,gpu,rate,Rate\n", "two columns 'rate'"),
        ("model,gpu,\nllama-3.1-8b,h100,5\n", "column 3 has no name"),
        ("model,gpu\n\n\n", "holds no question"),
        ("model,gpu\nllama-9,h100\n", "q.csv:2: llama-9: no model 'llama-9'"),
        ("model,gpu\nllama-3.1-8b,h10\n", "q.csv:2: h10: no GPU or node 'h10'"),
        ("model,gpu\nllama-3.1-8b,h100,5\n", "q.csv:2: more values than columns"),
        ("model,gpu\n,h100\n", "q.csv:2: no model"),
        ("model,gpu\nllama-3.1-8b,\n", "q.csv:2: GPU: name at least one GPU"),
        ("model,gpu,train\nllama-3.1-8b,h100,perhaps\n", "q.csv:2: train: 'perhaps' is neither yes nor no"),
        ("model,gpu,nic\nllama-3.1-8b,h100,0Gb/s\n", "q.csv:2: nic: '0Gb/s' is out of range"),
        ("model,gpu,price\nllama-3.1-8b,h100,h10=2\n", "q.csv:2: price: no GPU or node is called 'h10'"),
        ('label,model,gpu\n"two\nlines",llama-9,h100\n', "q.csv:3: llama-9"),
        ("model,gpu\n" + "a" * 140_000 + ",h100\n", "q.csv:2:1: is no CSV: field larger"),
    ],
)
def test_a_batch_says_in_which_line_what_is_wrong(text: str, says: str, tmp_path: Path) -> None:
    assert any(says in problem for problem in batch(tmp_path, text)), batch(tmp_path, text)


@pytest.mark.parametrize("text", ["\ufeffmodel,gpu\r\nllama-3.1-8b,h100\r\n", "Model, GPU \nllama-3.1-8b,h100"])
def test_a_batch_as_spreadsheets_write_it_is_read(text: str, tmp_path: Path) -> None:
    assert batch(tmp_path, text) == []


def test_where_answers_go_is_looked_at_before_any_is_computed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    os.symlink(tmp_path / "nowhere", tmp_path / "dangling.csv")
    for name, says in (
        ("a.csv", "exists"),
        ("dangling.csv", "exists"),
        ("a.doc", "ends in '.doc'"),
        ("a", "no ending"),
    ):
        with pytest.raises(InvalidInput, match=says):
            check_answers(tmp_path / name)
    check_answers(tmp_path / "a.csv", replace_file=True)
