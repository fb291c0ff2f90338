"""Models that a catalogue file describes by a few numbers instead of its config.json, layer by layer.

Plain softmax attention with one kind of layer, SwiGLU or two-matrix feed-forward blocks, one kind of expert.
"""

from __future__ import annotations

from typing import Final

from clusterwright.model.decoders import Attention, Decoder, Experts, Layer, Mlp, Part
from clusterwright.model.language_models import LanguageModel

#: Kinds of attention that a few numbers describe whole.
PLAIN: Final = ("mha", "gqa")
#: How the checkpoint stores linear layers → (format, elements that share a scale, B of the scale).
_STORED: Final = {
    "bf16": ("bf16", 0, 0),
    "fp8": ("fp8", 128 * 128, 4),
    "mxfp4": ("mxfp4", 32, 1),
    "nvfp4": ("nvfp4", 16, 1),
    "int4": ("int4", 128, 2),
}


def plain_decoder(model: LanguageModel) -> Decoder:
    """The model layer by layer.

    Raises:
        ValueError: for attention that a few numbers do not describe; such a model needs its config.
    """
    if model.attention not in PLAIN or model.kv_heads is None or model.head_dim is None:
        raise ValueError(f"{model.attention} attention does not follow from a few numbers")
    attention = Attention(model.heads, model.kv_heads, model.head_dim, model.head_dim)
    windowed = attention
    if model.window is not None:
        windowed = Attention(*(model.heads, model.kv_heads, model.head_dim, model.head_dim), model.window.tokens)
    whole = model.layers - (model.window.layers if model.window else 0)
    layers = tuple(
        _layer(model, attention if number >= model.layers - whole else windowed, number)
        for number in range(model.layers)
    )
    table = model.vocab * model.hidden
    tables = [Part("embedding", table, 0, "tp"), Part("norm", model.hidden, model.hidden, "none")]
    if not model.tied_embeddings:
        tables.append(Part("head", table, table, "tp"))
    return Decoder(
        name=model.name,
        architecture=model.family,
        hidden=model.hidden,
        vocab=model.vocab,
        max_context=model.max_context,
        layers=layers,
        tables=tuple(tables),
        tied=model.tied_embeddings,
    )


def _layer(model: LanguageModel, attention: Attention, number: int) -> Layer:
    hidden, moe = model.hidden, model.moe
    inner, keys = attention.heads * attention.key_dim, attention.kv_heads * attention.key_dim
    parts = [
        _linear(model, "attention", 2 * hidden * inner),
        _linear(model, "attention", 2 * hidden * keys, split="kv", copies=attention.kv_heads),
        *_small(model, attention),
    ]
    feed: Mlp | Experts
    if moe is None or number < moe.dense_layers:
        feed = Mlp(model.intermediate or 0, model.mlp_matrices)
        parts.append(_linear(model, "mlp", model.mlp_matrices * hidden * feed.width))
        return Layer(attention, feed, tuple(parts))
    each = model.mlp_matrices * hidden * moe.intermediate
    feed = Experts(moe.experts, moe.active, moe.intermediate, hidden, moe.shared_intermediate, model.mlp_matrices)
    parts.append(Part("router", hidden * moe.experts, hidden * moe.experts, "none"))
    parts.append(
        _linear(model, "experts", moe.experts * each, split="experts", copies=moe.experts, active=moe.active * each)
    )
    if moe.shared_intermediate:
        parts.append(_linear(model, "shared", model.mlp_matrices * hidden * moe.shared_intermediate))
    return Layer(attention, feed, tuple(parts))


def _small(model: LanguageModel, attention: Attention) -> list[Part]:
    """Norms and biases of one layer."""
    inner, keys = attention.heads * attention.key_dim, attention.kv_heads * attention.key_dim
    norms = 2 * model.hidden + (2 * attention.key_dim if model.qk_norm else 0)
    found = [Part("norm", norms, norms, "none")]
    if model.qkv_bias:
        found.append(Part("attention", inner, inner, "tp"))
        found.append(Part("attention", 2 * keys, 2 * keys, "kv", copies=attention.kv_heads))
    if model.output_bias:
        found.append(Part("attention", model.hidden, model.hidden, "none"))
    return found


def _linear(
    model: LanguageModel, role: str, parameters: int, *, split: str = "tp", copies: int = 1, active: int | None = None
) -> Part:
    """A linear layer as the checkpoint stores it; mxfp4 checkpoints quantise experts only."""
    native = model.native_precision
    stored, group, scale = _STORED["bf16" if native == "mxfp4" and role != "experts" else native]
    scales = -(-parameters // group) * scale if group else 0
    used = parameters if active is None else active
    return Part(role, parameters, used, split, stored, scales, copies)  # type: ignore[arg-type]  # literals above
