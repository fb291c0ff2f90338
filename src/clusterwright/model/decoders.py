"""A language model layer by layer: what each layer mixes tokens with, what it multiplies, what it stores.

`huggingface.parse_config` makes these values from a config.json. Memory, traffic, work and splitting over GPUs follow
from them alone: no formula elsewhere asks for a family's name. Counts are exact; a model that is not known layer by
layer has no Decoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

#: How a part's parameters are divided when a layer is split over GPUs. tp: over all tensor ranks. kv: over tensor ranks
#: up to the number of KV heads, then copied. experts: over expert ranks (or tensor ranks without them). none: copied.
Split = Literal["tp", "kv", "experts", "none"]

Role = Literal[
    "attention", "indexer", "compressor", "state", "mlp", "shared", "experts", "router", "norm", "embedding", "head",
    "projection", "vision", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """Parameters of one kind in one layer (or of one table).

    Args:
        parameters: count; block scales of quantised formats are not parameters.
        active: of them, those that one token is multiplied with (experts: only the chosen ones; input table: 0).
        split: how they divide over GPUs.
        stored: number format in the checkpoint, one of `BITS`.
        scale_bytes: B of the scales that belong to them in the checkpoint; exact.
        copies: blocks that never divide further: KV heads of a `kv` part, experts of an `experts` part, else 1.
    """

    role: Role
    parameters: int
    active: int
    split: Split
    stored: str = "bf16"
    scale_bytes: int = 0
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Index:
    """Indexer of sparse attention: scores all cached tokens, then `top_k` of them are attended to.

    Args:
        heads, dim: of its own queries and keys.
        owns_cache: whether this layer computes and keeps its own index keys.
    """

    heads: int
    dim: int
    top_k: int
    owns_cache: bool = True


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax attention over cached keys and values.

    Args:
        heads, kv_heads: of queries, of keys and values.
        key_dim, value_dim: width of one head; value_dim is 0 where values are the cached keys themselves.
        window: tokens a query sees back, None for all.
        chunk: tokens of a block that queries see inside of (Llama 4), None without.
        owns_cache: False where the layer reads the cache of an earlier one.
        index: of attention to the blocks that an indexer chooses (MiniMax-M3), None without.
    """

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    chunk: int | None = None
    owns_cache: bool = True
    index: Index | None = None


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """MLA: one compressed vector of kv_rank + rope_dim elements per token, the same for every head.

    Args:
        q_rank: rank of compressed queries, None where they are not.
        nope_dim, value_dim: widths of a head without rotary part, of its values.
        index: of sparse attention (DSA), None where every token is attended to.
    """

    heads: int
    q_rank: int | None
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    index: Index | None = None


@dataclass(frozen=True, slots=True)
class CompressedAttention:
    """Attention over compressed entries beside a window of whole tokens (DeepSeek-V4: CSA, HCA).

    Args:
        head_dim: elements of one cached entry (keys serve as values), rope_dim of them rotary.
        ratio: tokens per compressed entry; 0 where the layer has its window only.
        window: tokens kept whole.
        index: selects among compressed entries, None where all are attended to.
    """

    heads: int
    head_dim: int
    rope_dim: int
    ratio: int
    window: int
    index: Index | None = None


@dataclass(frozen=True, slots=True)
class StateMixer:
    """A mixer with a state of fixed size per sequence: Mamba, gated delta net, other linear attention.

    Args:
        kind: mamba1, mamba2, gated-delta, kimi-delta, lightning, linear.
        heads: that tensor ranks divide.
        state_elements: of the recurrent state of one sequence and layer (heads × key × value widths).
        conv_elements: of the convolution's state of one sequence and layer.
        asked: number format that the config asks the recurrent state to be kept in, "" where it says nothing.
    """

    kind: str
    heads: int
    state_elements: int
    conv_elements: int
    asked: str = ""


Mixer = Attention | LatentAttention | CompressedAttention | StateMixer


@dataclass(frozen=True, slots=True)
class Mlp:
    """A dense feed-forward block: `matrices` of hidden × width (3 gated, 2 otherwise)."""

    width: int
    matrices: int = 3


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts.

    Args:
        experts: routed, `active` of them per token.
        width: of one expert; `hidden` the width it works in (the model's own unless tokens are projected first).
        shared_width: of all shared experts together, 0 without.
    """

    experts: int
    active: int
    width: int
    hidden: int
    shared_width: int = 0
    matrices: int = 3


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer; a layer may have a mixer only, or a feed-forward block only.

    Args:
        parts: every parameter of the layer, once.
        streams: residual streams, each as wide as the model, that hyper-connections mix before and after every block.
    """

    mixer: Mixer | None
    feed: Mlp | Experts | None
    parts: tuple[Part, ...]
    streams: int = 1

    @property
    def parameters(self) -> int:
        """All parameters of the layer."""
        return sum(p.parameters for p in self.parts)


@dataclass(frozen=True)
class Decoder:
    """A whole language model.

    Args:
        name: Hugging Face id, or how the user names it.
        architecture: first of config.json's `architectures`.
        layers: in order; equal layers are equal values.
        tables: embedding, head (absent when tied), last norm.
        drafts: multi-token-prediction layers; they run only when speculation is on.
        towers: vision and audio towers with their projectors, counted but not planned layer by layer.
        max_context: tokens that the config allows.
        kv_format: of the KV cache that the checkpoint has scales for, "" where it declares none; kv_declared_by: the
            quantiser that wrote so (modelopt, compressed-tensors).
        notes: what a reader should know (scaled rope, parts whose count is not in the config).
    """

    name: str
    architecture: str
    hidden: int
    vocab: int
    max_context: int
    layers: tuple[Layer, ...]
    tables: tuple[Part, ...]
    tied: bool
    drafts: tuple[Layer, ...] = ()
    towers: tuple[Part, ...] = ()
    kv_format: str = ""
    kv_declared_by: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def groups(self) -> tuple[tuple[Layer, int], ...]:
        """Different layers with how many there are of each, in order of first occurrence."""
        counts: dict[Layer, int] = {}
        for layer in self.layers:
            counts[layer] = counts.get(layer, 0) + 1
        return tuple(counts.items())

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """For every layer, in order, the position in `groups` of the layers that it equals."""
        positions = {layer: position for position, (layer, _) in enumerate(self.groups)}
        return tuple(positions[layer] for layer in self.layers)

    @cached_property
    def runs(self) -> tuple[tuple[Layer, int], ...]:
        """Equal neighbours folded, in order."""
        return tuple((layer, sum(1 for _ in same)) for layer, same in groupby(self.layers))

    def parts(self, *, drafts: bool = False, towers: bool = True) -> Iterator[tuple[Part, int]]:
        """(part, how often) over layers and tables; with draft layers and towers where asked."""
        for layer, count in self.groups:
            for part in layer.parts:
                yield part, count
        yield from ((part, 1) for part in self.tables)
        if drafts:
            yield from ((part, 1) for layer in self.drafts for part in layer.parts)
        if towers:
            yield from ((part, 1) for part in self.towers)

    @cached_property
    def parameters(self) -> int:
        """All parameters with towers, without draft layers."""
        return sum(part.parameters * count for part, count in self.parts())

    @cached_property
    def text_parameters(self) -> int:
        """All parameters without towers and draft layers."""
        return sum(part.parameters * count for part, count in self.parts(towers=False))

    @cached_property
    def multiplied(self) -> int:
        """Parameters that one token is multiplied with; a tied table counts once, as the head."""
        active = sum(part.active * count for part, count in self.parts(towers=False))
        return active + (self.vocab * self.hidden if self.tied else 0)

    @cached_property
    def active(self) -> int:
        """Parameters that one token uses, the input table counted too (the convention of model cards)."""
        embedding = sum(p.parameters for p in self.tables if p.role == "embedding")
        return self.multiplied + (0 if self.tied else embedding)

    @cached_property
    def is_moe(self) -> bool:
        """Whether any layer has routed experts."""
        return any(isinstance(layer.feed, Experts) for layer, _ in self.groups)

    @cached_property
    def checkpoint_bytes(self) -> int:
        """Bytes of the parameters as stored, scales included, draft layers and towers included."""
        return sum(stored_bytes(part) * count for part, count in self.parts(drafts=True))


#: Bits per parameter of a stored format, without scales.
BITS: dict[str, int] = {
    "int64": 64, "fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "nvfp4": 4, "mxfp4": 4, "int4": 4,
}  # fmt: skip


def stored_bytes(part: Part) -> int:
    """Bytes of a part in the checkpoint with its scales."""
    return part.parameters * BITS[part.stored] // 8 + part.scale_bytes
