"""What the catalogue's entry of a model says in a few numbers, read from the model layer by layer."""

from __future__ import annotations

from typing import Any

from clusterwright.model.decoders import Attention, Decoder, Experts, LatentAttention, Layer, Mixer, Mlp, StateMixer


def summary_of(decoder: Decoder) -> dict[str, Any]:
    """Fields of `LanguageModel` that follow from a decoder.

    `attention` is mha or gqa only where hidden width, heads and widths of one kind of layer give the count exactly.
    """
    mixers = [layer.mixer for layer in decoder.layers if layer.mixer is not None]
    fields: dict[str, Any] = {
        "layers": len(decoder.layers),
        "hidden": decoder.hidden,
        "vocab": decoder.vocab,
        "tied_embeddings": decoder.tied,
        "max_context": decoder.max_context,
        "heads": max((m.heads for m in mixers), default=1),
        **_feeds(decoder.layers),
    }
    attention = [m for m in mixers if isinstance(m, Attention)]
    if attention and all((m.kv_heads, m.key_dim) == (attention[0].kv_heads, attention[0].key_dim) for m in attention):
        fields |= {"kv_heads": attention[0].kv_heads, "head_dim": attention[0].key_dim, "heads": attention[0].heads}
    windows = [m.window for m in attention if m.window is not None]
    if windows:
        fields["window"] = {"tokens": windows[0], "layers": len(windows)}
    latent = next((m for m in mixers if isinstance(m, LatentAttention)), None)
    if latent is not None:
        fields["latent"] = _latent(latent)
    return fields | _kind(decoder, mixers, fields)


def _latent(mixer: LatentAttention) -> dict[str, Any]:
    return {
        "kv_rank": mixer.kv_rank,
        "q_rank": mixer.q_rank,
        "rope_dim": mixer.rope_dim,
        "nope_dim": mixer.nope_dim,
        "value_dim": mixer.value_dim,
    }


def _feeds(layers: tuple[Layer, ...]) -> dict[str, Any]:
    dense = [layer.feed for layer in layers if isinstance(layer.feed, Mlp)]
    routed = [layer.feed for layer in layers if isinstance(layer.feed, Experts)]
    fields: dict[str, Any] = {}
    if dense:
        fields |= {"intermediate": max(mlp.width for mlp in dense), "mlp_matrices": dense[0].matrices}
    if routed:
        feed = routed[0]
        leading = next(number for number, layer in enumerate(layers) if isinstance(layer.feed, Experts))
        fields["mlp_matrices"] = feed.matrices
        fields["moe"] = {
            "experts": feed.experts,
            "active": feed.active,
            "intermediate": feed.width,
            "shared_experts": -(-feed.shared_width // feed.width),
            "shared_intermediate": feed.shared_width,
            "dense_layers": leading if dense else 0,
        }
    if not dense and not routed:
        fields["intermediate"] = 1
    return fields


def _kind(decoder: Decoder, mixers: list[Mixer], fields: dict[str, Any]) -> dict[str, Any]:
    if any(isinstance(m, StateMixer) for m in mixers):
        return {"attention": "hybrid"}
    if any(not isinstance(m, Attention | LatentAttention) or m.index is not None for m in mixers):
        return {"attention": "sparse"}
    if any(isinstance(m, LatentAttention) for m in mixers):
        return {"attention": "mla"}
    if any(isinstance(m, Attention) and m.chunk is not None for m in mixers):
        return {"attention": "chunked"}
    small = _small_terms(decoder, fields)
    if small is None:
        return {"attention": "mixed"}
    return small | {"attention": "mha" if fields["kv_heads"] == fields["heads"] else "gqa"}


def _small_terms(decoder: Decoder, fields: dict[str, Any]) -> dict[str, Any] | None:
    """Which biases and norms make the plain count exact; None where none do, or layers differ or are left out."""
    whole = all(layer.mixer is not None and layer.feed is not None for layer in decoder.layers)
    if not whole or "kv_heads" not in fields or fields["heads"] % fields["kv_heads"]:
        return None
    for qkv in (False, True):
        for output in (False, True):
            for norm in (False, True):
                small = {"qkv_bias": qkv, "output_bias": output, "qk_norm": norm}
                if _plain_count(fields | small) == decoder.parameters:
                    return small
    return None


def _plain_count(fields: dict[str, Any]) -> int:
    hidden, query = fields["hidden"], fields["heads"] * fields["head_dim"]
    kv = fields["kv_heads"] * fields["head_dim"]
    attention = 2 * hidden * (query + kv) + (query + 2 * kv) * fields["qkv_bias"] + hidden * fields["output_bias"]
    attention += 2 * fields["head_dim"] * fields["qk_norm"] + 2 * hidden
    moe = fields.get("moe")
    dense = moe["dense_layers"] if moe else fields["layers"]
    total = fields["layers"] * attention + dense * fields["mlp_matrices"] * hidden * fields.get("intermediate", 0)
    if moe:
        width = moe["experts"] * moe["intermediate"] + moe["shared_intermediate"]
        total += (fields["layers"] - dense) * (fields["mlp_matrices"] * hidden * width + hidden * moe["experts"])
    tables = fields["vocab"] * hidden * (1 if fields["tied_embeddings"] else 2)
    return int(total + tables + hidden)
