"""What every layer of a model keeps per token and per sequence on one GPU.

A layer keeps entries (keys and values, latent vectors, index keys, compressed entries) for every token, for the tokens
of a window, or a state of fixed size. An engine turns entries into blocks (`physics.engines`); the sums here are what
the entries themselves take.

Sources: vLLM `kv_cache_interface` (AttentionSpec, MLAAttentionSpec, SlidingWindowMLASpec, MambaSpec) and
`parallel_state.get_pp_indices`; arXiv:2405.04434 (MLA); DeepSeek-V3.2-Exp and DeepSeek-V4 model code (index keys of
128 fp8 + 4 B scale; entries of 448 fp8 + 64 bf16 + 8 B scale).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from clusterwright.model.decoders import (
    Attention,
    CompressedAttention,
    Decoder,
    LatentAttention,
    Layer,
    Mixer,
    StateMixer,
)
from clusterwright.physics.layouts import Layout

#: Bits of one cached element; nvfp4 carries one fp8 scale per 16 elements.
KV_BITS: Final[dict[str, float]] = {
    "fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "nvfp4": 4.5, "fp8_ds_mla": 8,
}  # fmt: skip

#: Positions that a convolution of width 4 keeps, the only width in use.
_TAPS: Final = 3

#: For every token; for the tokens of a window; for those of the current chunk; one state per sequence.
Kind = Literal["full", "window", "chunk", "state"]


@dataclass(frozen=True, slots=True)
class Kept:
    """Entries of one kind that one layer keeps on one GPU.

    Args:
        entry_bytes: B of one entry; of the whole state for kind `state`.
        span: tokens of the window or chunk, 0 without.
        ratio: tokens that share one entry.
        role: kv, index (keys of an indexer), compressor (fp32 partial sums of entries to come), state.
    """

    kind: Kind
    entry_bytes: int
    span: int = 0
    ratio: int = 1
    role: Literal["kv", "index", "compressor", "state"] = "kv"

    def bytes_of(self, tokens: int, in_flight: int = 0) -> int:
        """B that a sequence of `tokens` takes; `in_flight` more tokens stay beside a window while a step runs."""
        if self.kind == "state":
            return self.entry_bytes
        kept = tokens if self.kind == "full" else min(tokens, self.span + in_flight)
        return math.ceil(kept / self.ratio) * self.entry_bytes


@dataclass(frozen=True, slots=True)
class StateFormats:
    """Number formats of recurrent and convolution states.

    fp32 recurrent states are what the configs of Qwen3.5 and Nemotron-3 ask for and SGLang's default; vLLM and
    TensorRT-LLM keep those of models that say nothing in the model's own 16 bit.

    Args:
        recurrent: of recurrent states whatever the config asks for, "" for what it asks for.
        unasked: of those whose config says nothing.
        drafted: tokens drafted per step; the convolution's state holds so many positions more than its own three.
    """

    recurrent: str = ""
    unasked: str = "fp32"
    convolution: str = "bf16"
    drafted: int = 0

    def of(self, mixer: StateMixer) -> str:
        """Format of a mixer's recurrent state."""
        return self.recurrent or mixer.asked or self.unasked


@lru_cache(maxsize=4096)
def layer_keeps(
    mixer: Mixer | None, tp: int, kv_format: str, states: StateFormats = StateFormats()
) -> tuple[Kept, ...]:
    """What one layer keeps on one of `tp` attention ranks; nothing where it reads an earlier layer's cache."""
    if isinstance(mixer, Attention):
        return _attention(mixer, tp, kv_format) if mixer.owns_cache else ()
    if isinstance(mixer, LatentAttention):
        return _latent(mixer, kv_format)
    if isinstance(mixer, CompressedAttention):
        return _compressed(mixer, kv_format)
    if isinstance(mixer, StateMixer):
        return (_state(mixer, tp, states),)
    return ()


def _elements(count: int, kv_format: str) -> int:
    return math.ceil(count * KV_BITS[kv_format] / 8)


def _attention(mixer: Attention, tp: int, kv_format: str) -> tuple[Kept, ...]:
    heads = max(1, math.ceil(mixer.kv_heads / tp))
    entry = heads * (_elements(mixer.key_dim, kv_format) + _elements(mixer.value_dim, kv_format))
    if mixer.window is not None:
        return (Kept("window", entry, mixer.window),)
    if mixer.chunk is not None:
        return (Kept("chunk", entry, mixer.chunk),)
    kept = Kept("full", entry)
    if mixer.index is None or not mixer.index.owns_cache:
        return (kept,)
    return (kept, Kept("full", _elements(mixer.index.dim, kv_format), role="index"))


def _latent(mixer: LatentAttention, kv_format: str) -> tuple[Kept, ...]:
    if kv_format == "fp8_ds_mla":
        entry = mixer.kv_rank + 4 * math.ceil(mixer.kv_rank / 128) + 2 * mixer.rope_dim
    else:
        entry = _elements(mixer.kv_rank + mixer.rope_dim, kv_format)
    latent = Kept("full", entry)
    if mixer.index is None or not mixer.index.owns_cache:
        return (latent,)
    return (latent, Kept("full", index_bytes(mixer.index.dim), role="index"))


def index_bytes(dim: int) -> int:
    """B of one index key: fp8 elements and one fp32 scale per 128 of them."""
    return dim + 4 * math.ceil(dim / 128)


def _compressed(mixer: CompressedAttention, kv_format: str) -> tuple[Kept, ...]:
    if KV_BITS[kv_format] <= 8:
        nope = mixer.head_dim - mixer.rope_dim
        entry = nope + 2 * mixer.rope_dim + 8 * math.ceil(nope / 448)
    else:
        entry = _elements(mixer.head_dim, kv_format)
    kept = [Kept("window", entry, mixer.window)]
    if mixer.ratio:
        overlap = 2 if mixer.index is not None else 1
        kept.append(Kept("full", entry, ratio=mixer.ratio))
        kept.append(Kept("window", 2 * overlap * mixer.head_dim * 4, overlap * mixer.ratio, role="compressor"))
        if mixer.index is not None and mixer.index.owns_cache:
            kept.append(Kept("full", index_bytes(mixer.index.dim), ratio=mixer.ratio, role="index"))
            kept.append(Kept("window", 2 * overlap * mixer.index.dim * 4, overlap * mixer.ratio, role="compressor"))
    return tuple(kept)


def _state(mixer: StateMixer, tp: int, states: StateFormats) -> Kept:
    ranks = min(tp, mixer.heads)
    recurrent = math.ceil(mixer.state_elements / ranks) * KV_BITS[states.of(mixer)] / 8
    positions = (_TAPS + states.drafted) / _TAPS
    convolution = math.ceil(mixer.conv_elements / ranks) * positions * KV_BITS[states.convolution] / 8
    return Kept("state", int(recurrent + convolution), role="state")


def stage_bounds(layers: int, pp: int) -> tuple[tuple[int, int], ...]:
    """(first, past the last) layer of every pipeline stage.

    Layers that do not divide go one each to the stages before the last one, backwards (vLLM `get_pp_indices`; SGLang
    took it over).

    Raises:
        ValueError: more stages than layers.
    """
    if pp > layers:
        raise ValueError(f"pp = {pp} exceeds the {layers} layers")
    sizes = [layers // pp] * pp
    for extra in range(layers % pp):
        sizes[(pp - 2 - extra) % pp] += 1
    ends = [sum(sizes[: i + 1]) for i in range(pp)]
    return tuple((end - size, end) for end, size in zip(ends, sizes, strict=True))


def stages(decoder: Decoder, pp: int) -> tuple[tuple[Layer, ...], ...]:
    """Layers of every pipeline stage, in order.

    Raises:
        ValueError: more stages than layers.
    """
    return tuple(decoder.layers[first:end] for first, end in stage_bounds(len(decoder.layers), pp))


def kept_by(
    layers: Iterable[Layer], layout: Layout, kv_format: str, states: StateFormats = StateFormats()
) -> tuple[Kept, ...]:
    """What `layers` keep on one GPU, in order."""
    return tuple(k for layer in layers for k in layer_keeps(layer.mixer, layout.attention_tp, kv_format, states))


def kept_on_stages(
    decoder: Decoder,
    layout: Layout,
    kv_format: str,
    states: StateFormats = StateFormats(),
    drafting: Iterable[Layer] = (),
) -> tuple[tuple[Kept, ...], ...]:
    """What the layers of every stage keep on one GPU, in order; `drafting` layers are on the last stage."""
    of_kind = [kept_by((layer,), layout, kv_format, states) for layer, _ in decoder.groups]
    found = [
        [kept for kind in decoder.kinds[first:end] for kept in of_kind[kind]]
        for first, end in stage_bounds(len(decoder.layers), layout.pp)
    ]
    found[-1] += kept_by(drafting, layout, kv_format, states)
    return tuple(tuple(kept) for kept in found)


def bytes_per_token(
    decoder: Decoder, layout: Layout, kv_format: str = "bf16", *, windows: bool = False, drafts: bool = False
) -> float:
    """B that one more token of a long sequence takes on the GPU of the fullest stage.

    Args:
        windows: count windowed layers as if they kept every token (engines without a window-aware pool).
        drafts: the draft layers keep entries too, on the last stage.
    """
    kinds = ("full", "window", "chunk") if windows else ("full",)
    held = kept_on_stages(decoder, layout, kv_format, drafting=decoder.drafts if drafts else ())
    found = (sum(k.entry_bytes / k.ratio for k in kept if k.kind in kinds and k.role != "compressor") for kept in held)
    return max(found) / layout.dcp


def sequence_bytes(decoder: Decoder, layout: Layout, kv_format: str, tokens: int, in_flight: int = 0) -> int:
    """B of all that one sequence of `tokens` keeps on the GPU of the fullest stage, without rounding to blocks."""
    local = math.ceil(tokens / layout.dcp)
    return max(
        sum(k.bytes_of(local if k.kind == "full" else tokens, in_flight) for k in kept)
        for kept in kept_on_stages(decoder, layout, kv_format)
    )


def state_bytes(decoder: Decoder, layout: Layout, states: StateFormats = StateFormats()) -> int:
    """B of the states of one sequence on the GPU of the fullest stage."""
    return max(
        sum(k.entry_bytes for k in kept if k.kind == "state")
        for kept in kept_on_stages(decoder, layout, "bf16", states)
    )
