"""Models of the catalogue layer by layer, found as users name them."""

from __future__ import annotations

import pytest

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.catalogue.counting import compare
from clusterwright.catalogue.parsing import parse_catalogue
from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.errors import InvalidInput

CATALOGUE = load_catalogue()


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"),
        ("Llama-70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("Meta-Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("r1", "deepseek-ai/DeepSeek-R1"),
        ("Qwen3-235B", "Qwen/Qwen3-235B-A22B"),
        ("gpt_oss_120b", "openai/gpt-oss-120b"),
        ("Llama-2-7b-chat-hf", "meta-llama/Llama-2-7b-hf"),
    ],
)
def test_names_that_people_use(name: str, id_: str) -> None:
    decoder = CATALOGUE.find_decoder(name)
    assert decoder is not None
    assert decoder.name == id_


def test_a_decoder_is_built_once() -> None:
    assert CATALOGUE.find_decoder("llama-3.3-70b") is CATALOGUE.find_decoder("meta-llama/Llama-3.3-70B-Instruct")


def test_what_is_not_there_is_none() -> None:
    assert CATALOGUE.find_decoder("no-such-model") is None
    plain = {name: dict(fields) for name, fields in CATALOGUE.raw["models"].items()}
    plain["openai/gpt-oss-20b"].pop("config")
    assert Catalogue({"models": plain}).find_decoder("gpt-oss-20b") is None


OWN = """
models:
  acme/tiny:
    source: "config.json of our own repository"
    date: 2026-11-30
    family: llama
    config:
      architectures: [LlamaForCausalLM]
      hidden_size: 256
      num_hidden_layers: 2
      num_attention_heads: 4
      num_key_value_heads: 2
      intermediate_size: 512
      vocab_size: 1000
      max_position_embeddings: 2048
      tie_word_embeddings: true
"""


def test_a_users_config_gives_every_field() -> None:
    own = parse_catalogue({"own.yaml": OWN}, CATALOGUE)
    model, decoder = own.model("tiny"), own.find_decoder("acme/tiny")
    assert decoder is not None
    assert decoder.parameters == 1000 * 256 + 256 + 2 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512 + 2 * 256)
    assert (model.attention, model.layers, model.heads, model.kv_heads, model.head_dim) == ("gqa", 2, 4, 2, 64)
    assert model.tied_embeddings


def test_a_users_config_that_cannot_be_counted_is_refused_in_place() -> None:
    with pytest.raises(InvalidInput, match="architecture 'SomethingNew' is not known"):
        parse_catalogue({"own.yaml": OWN.replace("LlamaForCausalLM", "SomethingNew")}, CATALOGUE)


def test_ways_of_counting() -> None:
    decoder = CATALOGUE.find_decoder("deepseek-v3")
    assert decoder is not None
    assert compare(decoder, 684_531_386_000).way == "with draft layers and scales"
    assert compare(decoder, 671_000_000_000).rounded
    assert not compare(decoder, 671_000_000_000).exact
    assert not compare(decoder, 672_000_000_000).rounded
    assert compare(decoder, decoder.parameters + 77).way == "the model, but for 77 buffers"


def test_no_model_of_the_catalogue_is_without_context() -> None:
    found = {model.name: CATALOGUE.find_decoder(model.name) for model in CATALOGUE.models}
    assert all(decoder.max_context >= 1024 for decoder in found.values() if decoder is not None)
    recurrent = found["mistralai/Mamba-Codestral-7B-v0.1"]
    assert recurrent is not None
    assert recurrent.max_context == 262144
