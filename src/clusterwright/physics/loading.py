"""GiB of weights on a GPU as an engine loads them.

That is not the checkpoint divided by the number of GPUs: KV heads, routers, norms and low-rank projections are copied
to every rank; the vocabulary is padded; experts that do not divide leave one rank with more; kernels want padded
widths; MLA keeps a second, absorbed form of its up-projections; draft layers stay on disk unless speculation is on.

Sources: vLLM `vocab_parallel_embedding` (padding to 64), `quantization/mxfp4` (widths rounded up to 128 and 256 for
Marlin), `attention/backends/mla/common.process_weights_after_loading` (W_UV, W_UK_T), `rotary_embedding` (cosine and
sine of every position in the model's format), `fused_moe/layer.determine_expert_map`,
`v1/spec_decode` (load_eagle_model: embedding and head shared with the target); SGLang took these over.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.model.decoders import (
    BITS,
    Attention,
    CompressedAttention,
    Decoder,
    Experts,
    LatentAttention,
    Layer,
    Part,
    Role,
)
from clusterwright.physics.caches_by_layer import stage_bounds
from clusterwright.physics.layouts import Layout

#: Roles that divide over attention ranks.
_ATTENTION: Final[frozenset[Role]] = frozenset({"attention", "indexer", "compressor", "state"})
#: Roles that weight quantisation changes.
LINEAR: Final[frozenset[Role]] = frozenset({"attention", "state", "mlp", "shared", "experts"})
#: Name of the term that a role is counted in.
_TERMS: Final[dict[Role, str]] = {
    "attention": "attention", "indexer": "attention", "compressor": "attention", "state": "attention",
    "mlp": "MLP", "shared": "MLP", "experts": "experts", "embedding": "embedding", "head": "head",
    "vision": "towers",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Loading:
    """What an engine does to weights when it loads them.

    Args:
        vocab_multiple: rows of embedding and head are rounded up to it.
        absorbed: MLA's up-projections are kept a second time, in 16 bit.
        mxfp4_width, mxfp4_hidden: multiples that widths of mxfp4 experts are rounded up to (per rank; hidden).
        drafts: draft layers are loaded (speculation is on).
        towers: vision and audio towers are loaded.
        rotary: one table of cosines and sines up to the longest position.
    """

    vocab_multiple: int = 64
    absorbed: bool = True
    mxfp4_width: int = 128
    mxfp4_hidden: int = 256
    drafts: bool = False
    towers: bool = True
    rotary: bool = True


@dataclass(frozen=True, slots=True)
class LoadedWeights:
    """Bytes of weights on one GPU of every pipeline stage.

    Args:
        stages: per stage, (term, B).
    """

    stages: tuple[tuple[tuple[str, int], ...], ...]

    def stage_bytes(self, index: int) -> int:
        """B on one GPU of a stage."""
        return sum(size for _, size in self.stages[index])

    @property
    def largest(self) -> int:
        """B on the fullest GPU."""
        return max(self.stage_bytes(i) for i in range(len(self.stages)))

    @property
    def smallest(self) -> int:
        """B on the emptiest GPU."""
        return min(self.stage_bytes(i) for i in range(len(self.stages)))


def expert_share(experts: int, layout: Layout) -> float:
    """Share of a layer's experts on the fullest rank: whole experts over ep ranks, each divided over the others."""
    ranks = layout.tp * layout.dp
    ep = min(layout.ep, ranks)
    return math.ceil(experts / ep) / experts / max(1, ranks // ep)


def part_bytes(part: Part, layout: Layout) -> int:
    """B of a part on the fullest rank of its stage, scales included."""
    size = loaded_bytes(part)
    if part.split == "none":
        return size
    if part.split == "experts":
        return math.ceil(size * expert_share(part.copies, layout))
    ranks = layout.attention_tp if part.role in _ATTENTION else layout.tp
    if part.split == "kv":
        ranks = min(ranks, part.copies)
    return math.ceil(size / ranks)


def loaded_bytes(part: Part) -> int:
    """B of a part when nothing is divided; engines load fp32 weights as 16 bit, routers apart."""
    bits = 16 if part.stored == "fp32" and part.role not in ("router", "norm") else BITS[part.stored]
    return part.parameters * bits // 8 + part.scale_bytes


def load_weights(decoder: Decoder, layout: Layout, loading: Loading = Loading()) -> LoadedWeights:
    """Bytes on one GPU of every stage.

    The first stage holds the embedding and the towers, the last one head, last norm and draft layers; a tied table is
    on both. Draft layers use the model's own tables, whatever the checkpoint has: vLLM and SGLang share them.
    """
    of_kind = [layer_bytes(layer, layout, loading) for layer, _ in decoder.groups]
    of_drafts = [layer_bytes(_without_tables(x), layout, loading) for x in decoder.drafts] if loading.drafts else []
    bounds = stage_bounds(len(decoder.layers), layout.pp)
    made: dict[tuple[tuple[int, ...], bool, bool], tuple[tuple[str, int], ...]] = {}
    found = []
    for index, (first, end) in enumerate(bounds):
        # Long pipelines have many stages alike.
        alike = decoder.kinds[first:end], index == 0, index == len(bounds) - 1
        if alike not in made:
            made[alike] = _stage(decoder, layout, loading, of_kind, of_drafts, *alike)
        found.append(made[alike])
    return LoadedWeights(tuple(found))


def _stage(
    decoder: Decoder,
    layout: Layout,
    loading: Loading,
    of_kind: Sequence[Mapping[str, int]],
    of_drafts: Sequence[Mapping[str, int]],
    kinds: tuple[int, ...],
    first: bool,
    last: bool,
) -> tuple[tuple[str, int], ...]:
    """(term, B) of a stage whose layers are of these kinds."""
    sizes: dict[str, int] = {}
    for kind, count in Counter(kinds).items():
        _add_all(sizes, of_kind[kind], count)
    for drafted in of_drafts if last else ():
        _add_all(sizes, drafted, 1)
    for part in decoder.tables:
        if _on_stage(part, decoder, first, last) or (of_drafts and last and part.role == "embedding"):
            _add(sizes, _TERMS.get(part.role, "other"), _table_bytes(part, decoder, layout, loading))
    if first and loading.towers:
        for part in decoder.towers:
            _add(sizes, "towers", part_bytes(part, layout))
    if loading.rotary:
        _add(sizes, "rotary table", rotary_bytes(decoder))
    return tuple(sizes.items())


def _without_tables(layer: Layer) -> Layer:
    return replace(layer, parts=tuple(p for p in layer.parts if p.role not in ("embedding", "head")))


def layer_bytes(layer: Layer, layout: Layout, loading: Loading = Loading()) -> dict[str, int]:
    """B of one layer on the fullest rank of its stage, by term."""
    sizes: dict[str, int] = {}
    for part in layer.parts:
        size = part_bytes(part, layout)
        _add(sizes, _TERMS.get(part.role, "other"), size)
        if part.stored == "mxfp4" and isinstance(layer.feed, Experts) and part.split == "experts":
            _add(sizes, "padding of experts", math.ceil(size * (_padding(layer.feed, layout, loading) - 1)))
    if loading.absorbed and isinstance(layer.mixer, LatentAttention):
        _add(sizes, "absorbed MLA projections", absorbed_bytes(layer.mixer, layout))
    return sizes


def _add_all(sizes: dict[str, int], more: Mapping[str, int], count: int) -> None:
    for term, size in more.items():
        _add(sizes, term, size * count)


def _add(sizes: dict[str, int], term: str, size: int) -> None:
    if size:
        sizes[term] = sizes.get(term, 0) + size


def _padding(feed: Experts, layout: Layout, loading: Loading) -> float:
    ranks = max(1, layout.tp * layout.dp // min(layout.ep, layout.tp * layout.dp))
    width = feed.width / ranks
    padded = math.ceil(width / loading.mxfp4_width) * loading.mxfp4_width
    hidden = math.ceil(feed.hidden / loading.mxfp4_hidden) * loading.mxfp4_hidden
    return padded / width * hidden / feed.hidden


def absorbed_bytes(mixer: LatentAttention, layout: Layout) -> int:
    """B of the absorbed up-projections of one MLA layer on one rank."""
    heads = math.ceil(mixer.heads / layout.attention_tp)
    return heads * (mixer.nope_dim + mixer.value_dim) * mixer.kv_rank * 2


def _on_stage(part: Part, decoder: Decoder, first: bool, last: bool) -> bool:
    if part.role == "embedding":
        return first or (decoder.tied and last)
    return last


def _table_bytes(part: Part, decoder: Decoder, layout: Layout, loading: Loading) -> int:
    if part.role not in ("embedding", "head"):
        return part_bytes(part, layout)
    ranks = layout.attention_tp if part.role == "embedding" else layout.tp
    rows = math.ceil(decoder.vocab / loading.vocab_multiple) * loading.vocab_multiple
    return math.ceil(loaded_bytes(part) * rows / decoder.vocab / ranks)


def rotary_bytes(decoder: Decoder) -> int:
    """B of the table of cosines and sines in 16 bit that all layers share."""
    widths = [
        mixer.rope_dim if isinstance(mixer, LatentAttention | CompressedAttention) else mixer.key_dim
        for layer, _ in decoder.groups
        if isinstance(mixer := layer.mixer, Attention | LatentAttention | CompressedAttention)
    ]
    return decoder.max_context * max(widths, default=0) * 2


@dataclass(frozen=True, slots=True)
class Quantisation:
    """A weight format with its scales, for linear layers.

    Args:
        bits: per weight.
        group: weights that share scale (and zero point); 0 for one per matrix, left out as too small.
        scale_bits: of scale and zero point together.
    """

    bits: int
    group: int = 0
    scale_bits: int = 16

    def scale_bytes(self, parameters: int) -> int:
        """B of the scales of so many weights."""
        return math.ceil(parameters / self.group) * self.scale_bits // 8 if self.group else 0


#: Formats that a plan can ask for, by name: (stored format, scales).
QUANTISATIONS: Final[Mapping[str, tuple[str, Quantisation]]] = {
    "bf16": ("bf16", Quantisation(16)),
    "fp16": ("fp16", Quantisation(16)),
    "fp8": ("fp8", Quantisation(8)),
    "fp8-block": ("fp8", Quantisation(8, 128 * 128, 32)),
    "int8": ("int8", Quantisation(8)),
    "nvfp4": ("nvfp4", Quantisation(4, 16, 8)),
    "mxfp4": ("mxfp4", Quantisation(4, 32, 8)),
    "int4": ("int4", Quantisation(4, 128, 16)),
    "int4-zero": ("int4", Quantisation(4, 128, 20)),
    "int4-32": ("int4", Quantisation(4, 32, 16)),
    "nf4": ("int4", Quantisation(4, 64, 32)),
}


def requantised(decoder: Decoder, name: str, roles: frozenset[Role] = LINEAR) -> Decoder:
    """The same model with the linear layers of `roles` stored in another format; tables, norms, routers stay.

    Raises:
        KeyError: no such format (QUANTISATIONS).
    """
    stored, form = QUANTISATIONS[name]

    def changed(part: Part) -> Part:
        if part.role not in roles:
            return part
        return replace(part, stored=stored, scale_bytes=form.scale_bytes(part.parameters))

    def layer(value: Layer) -> Layer:
        return replace(value, parts=tuple(changed(p) for p in value.parts))

    kinds = {old: layer(old) for old in {*decoder.layers, *decoder.drafts}}
    return replace(
        decoder,
        layers=tuple(kinds[old] for old in decoder.layers),
        drafts=tuple(kinds[old] for old in decoder.drafts),
    )
