"""Decoders for rows of public start-up logs: from the model's config where there is one, else from the row's shape.

A row's shape is plain numbers (layers, heads, widths); what it leaves out is filled so that the published parameter
count comes out: the number of matrices of an MLP, then its width.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from clusterwright.model.decoders import (
    Attention,
    Decoder,
    Experts,
    LatentAttention,
    Layer,
    Mixer,
    Mlp,
    Part,
    StateMixer,
)
from clusterwright.model.huggingface import UnknownArchitecture, parse_config
from clusterwright.physics.loading import requantised

#: Part of a row's model name → config file of a model of the same shape; first match wins. Other names are looked for
#: among the files themselves; a distilled model has the shape of what it was distilled into.
_CONFIGS: Final = (
    ("Distill", None),
    ("Llama-3.1-Nemotron-70B", "meta-llama--Meta-Llama-3.1-70B"),
    ("Llama-3.1-405B", "meta-llama--Meta-Llama-3.1-405B"),
    ("Llama-3.1-70B", "meta-llama--Meta-Llama-3.1-70B"),
    ("Llama-3.3-70B", "meta-llama--Meta-Llama-3.1-70B"),
    ("Llama-3.1-8B", "meta-llama--Meta-Llama-3.1-8B"),
    ("Meta-Llama-3-70B", "meta-llama--Meta-Llama-3.1-70B"),
    ("Meta-Llama-3-8B", "meta-llama--Meta-Llama-3.1-8B"),
    ("DSR1", "deepseek-ai--DeepSeek-R1"),
    ("Kimi-K2-", "moonshotai--Kimi-K2-Instruct"),
    ("Qwen3-Coder-30B-A3B-Instruct-FP8", "Qwen--Qwen3-30B-A3B-FP8"),
    ("Qwen3-Coder-30B-A3B", "Qwen--Qwen3-30B-A3B"),
)
#: What a row's weight format is called → QUANTISATIONS, and which roles it changes (None: every linear layer).
_FORMATS: Final = (
    ("mxfp4", "mxfp4"),
    ("nvfp4", "nvfp4"),
    ("awq", "int4-zero"),
    ("gptq", "int4"),
    ("gguf", "int4-32"),
    ("bitsandbytes", "nf4"),
    ("4bit", "nf4"),
    ("int8", "int8"),
    ("fp8 block", "fp8-block"),
    ("fp8", "fp8"),
    ("fp16", "fp16"),
    ("bf16", "bf16"),
)
#: Widths of MLA that shapes leave out: DeepSeek-V2, V3, Kimi-K2 share them (their config.json).
_NOPE, _VALUE, _Q_RANK = 128, 128, 1536
#: Gated delta net of Qwen3-Next, Qwen3.5 and later: key heads, width of a head; value heads are twice the query heads.
_STATE_KEYS, _STATE = 16, 128
#: Contexts that differ from the nearest config or shape: 8,192; 16,384 with linear rope scaling by 4.
_CONTEXTS: Final = (("Meta-Llama-3-8B", 8192), ("deepseek-coder-6.7b", 4 * 16384))
#: Windows that shapes leave out (config.json).
_WINDOWS: Final = (("e5-mistral-7b", 4096),)
#: Experts per token and dense layers at the start where a shape leaves them out.
_ACTIVE, _DENSE_LAYERS = 8, 1


def decoder_of(row: Mapping[str, Any], configs: Path) -> Decoder | None:
    """The row's model in the row's weight format; None where the row names no shape."""
    name, shape = str(row["model"]), row["shape"] or {}
    found = _configured(name, str(configs)) if shape.get("layers") else None
    if found is None and _plain(shape):
        found = shape_decoder(name, shape)
    if found is None:
        return None
    context = next((tokens for part, tokens in _CONTEXTS if part in name), found.max_context)
    return replace(_stored(found, name, str(row["weight_dtype"] or "")), max_context=context)


def _plain(shape: Mapping[str, Any]) -> bool:
    """Whether plain numbers are enough: attention of a kind that `_mixers` knows, with its widths."""
    needed = ("layers", "hidden", "heads")
    needed += ("qk_rope_head_dim",) if "kv_lora_rank" in shape else ("kv_heads", "head_dim")
    kind = str(shape.get("attn", ""))
    return all(shape.get(key) for key in needed) and not any(word in kind for word in ("v4", "dsa", "indexer"))


def weights_known(row: Mapping[str, Any]) -> bool:
    """Whether the row says enough to count its weights: a size or widths, and a format."""
    shape = row["shape"] or {}
    return bool(row["weight_dtype"] and row["tp"] and (shape.get("params_b") or shape.get("intermediate")))


@cache
def _configured(name: str, configs: str) -> Decoder | None:
    file = _file_of(name, configs)
    path = Path(configs) / f"{file}_config.json"
    if file is None or not path.exists():
        return None
    beside = path.with_name(f"{file}_hf_quant_config.json")
    try:
        quantization = json.loads(beside.read_text()) if beside.exists() else None
        return parse_config(json.loads(path.read_text()), name=name, quantization=quantization)
    except UnknownArchitecture:
        return None


def _file_of(name: str, configs: str) -> str | None:
    """Stem of the config whose model's name is the longest inside the row's."""
    for part, file in _CONFIGS:
        if part in name:
            return file
    stems = [f.name.removesuffix("_config.json") for f in Path(configs).glob("*_config.json")]
    named = [s for s in stems if not s.endswith("_hf_quant") and s.split("--")[-1].lower() in name.lower()]
    return max(named, key=lambda s: len(s.split("--")[-1]), default=None)


def _stored(decoder: Decoder, name: str, weights: str) -> Decoder:
    stored = {part.stored for part, _ in decoder.parts(towers=False)}
    if stored & {"fp8", "mxfp4", "nvfp4"} and not ("int4" in weights and "Kimi" in name):
        return decoder
    if "Kimi" in name and "int4" in weights:
        return requantised(requantised(decoder, "bf16"), "int4-32", frozenset({"experts"}))
    form = next((ours for theirs, ours in _FORMATS if theirs in weights.lower()), None)
    return requantised(decoder, form) if form and form != "bf16" else decoder


def shape_decoder(name: str, shape: Mapping[str, Any]) -> Decoder:
    """A Decoder of plain numbers; layers differ only in what they attend to."""
    layers, hidden, vocab = shape["layers"], shape["hidden"], shape.get("vocab") or 32000
    window = next((tokens for part, tokens in _WINDOWS if part in name), None)
    mixers = [replace(m, window=window) if window and isinstance(m, Attention) else m for m in _mixers(shape)]
    attention = _attention_parts(shape)
    feed, feed_parts = _feed(shape, sum(p.parameters for p in attention) * layers, vocab)
    norm = Part("norm", 2 * hidden, 2 * hidden, "none")
    parts = (*attention, *feed_parts, norm)
    tied = bool(shape.get("tied"))
    table = Part("embedding", vocab * hidden, 0, "tp")
    head = () if tied else (Part("head", vocab * hidden, vocab * hidden, "tp"),)
    return Decoder(
        name=name,
        architecture="",
        hidden=hidden,
        vocab=vocab,
        max_context=131072,
        layers=tuple(Layer(mixer, feed, parts) for mixer in mixers),
        tables=(table, *head, Part("norm", hidden, hidden, "none")),
        tied=tied,
    )


def _mixers(shape: Mapping[str, Any]) -> list[Mixer]:
    layers, heads, kind = shape["layers"], shape["heads"], str(shape.get("attn", ""))
    if "kv_lora_rank" in shape:
        mla = LatentAttention(heads, _Q_RANK, shape["kv_lora_rank"], shape["qk_rope_head_dim"], _NOPE, _VALUE)
        return [mla] * layers
    kv, dim = shape["kv_heads"], shape["head_dim"]
    full = Attention(heads, kv, dim, dim)
    interval = shape.get("full_attention_interval") or (4 if "GDN 3:1" in kind else 0)
    if interval:
        values = 2 * heads
        state = StateMixer("gated-delta", values, values * _STATE**2, 3 * _STATE * (2 * _STATE_KEYS + values))
        return [full if i % interval == interval - 1 else state for i in range(layers)]
    if shape.get("sliding_window"):
        window = Attention(heads, kv, dim, dim, window=shape["sliding_window"])
        every = 6 if "5:1" in kind else 2
        return [full if i % every == every - 1 else window for i in range(layers)]
    return [full] * layers


def _attention_parts(shape: Mapping[str, Any]) -> tuple[Part, ...]:
    hidden, heads = shape["hidden"], shape["heads"]
    if "kv_lora_rank" in shape:
        rank, rope = shape["kv_lora_rank"], shape["qk_rope_head_dim"]
        up = heads * (_NOPE + rope) * _Q_RANK + heads * (_NOPE + _VALUE) * rank + heads * _VALUE * hidden
        down = hidden * (_Q_RANK + rank + rope)
        return (Part("attention", up, up, "tp"), Part("attention", down, down, "none"))
    dim, kv = shape["head_dim"], shape["kv_heads"]
    queries, cached = 2 * hidden * heads * dim, 2 * hidden * kv * dim
    return (
        Part("attention", queries, queries, "tp"),
        Part("attention", cached, cached, "kv", copies=kv),
    )


def _feed(shape: Mapping[str, Any], attention: int, vocab: int) -> tuple[Mlp | Experts, tuple[Part, ...]]:
    hidden, layers = shape["hidden"], shape["layers"]
    if shape.get("experts"):
        width = shape.get("moe_intermediate") or shape["intermediate"]
        experts = Experts(shape["experts"], _ACTIVE, width, hidden)
        size = 3 * hidden * width
        router = hidden * shape["experts"]
        return experts, (
            Part("experts", size * shape["experts"], size * _ACTIVE, "experts", copies=shape["experts"]),
            Part("router", router, router, "none"),
        )
    total = float(shape.get("params_b") or 0) * 1e9
    tables = vocab * hidden * (1 if shape.get("tied") else 2)
    left = max(0.0, total - attention - tables) / layers / hidden
    width = shape.get("intermediate") or int(left / 3) or 4 * hidden
    matrices = 2 if left and abs(left - 2 * width) < abs(left - 3 * width) else 3
    size = matrices * hidden * width
    return Mlp(width, matrices), (Part("mlp", size, size, "tp"),)
