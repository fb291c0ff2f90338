"""Memory of a training job per GPU and pipeline stage, for one layout or for arrays of them.

A stage's peak = model states + what is gathered + activations in flight + the larger of logits and the layer at work +
communication buffers, times reserved ÷ allocated, plus CUDA context and NCCL. Terms add up to the figure (math.fsum
in their order); the job needs what its fullest stage needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clusterwright.lib.scales import GIB
from clusterwright.model.decoders import Decoder, Layer
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.activations import ELEMENT, Kept, kept
from clusterwright.physics.training.recipes import MEMORY, SHARDS_WEIGHTS, MemoryConstants, Recipe
from clusterwright.physics.training.shares import (
    Portion,
    adapter_parameters,
    expert_ranks,
    stage_portions,
    table_portions,
)
from clusterwright.physics.training.stages import in_flight, pipelines, stage_counts
from clusterwright.physics.training.states import states_of

#: Factors on the estimate between which nineteen of twenty measured peaks lie (`tools/validation/training_memory.py`).
BAND: Final = (0.88, 1.14)
Terms = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StageMemory:
    """GiB on every GPU of one pipeline stage; `terms` add up to `total_gib` exactly (math.fsum)."""

    stage: int
    layers: int
    terms: tuple[tuple[str, float], ...]

    @property
    def total_gib(self) -> float:
        """Sum of the terms."""
        return math.fsum(value for _, value in self.terms)


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Memory of a job.

    Args:
        stages: in order.
        host_gib: states that the host holds per GPU.
        band: factors on the peak between which measurements are expected.
    """

    stages: tuple[StageMemory, ...]
    host_gib: float
    band: tuple[float, float] = BAND

    @property
    def peak(self) -> StageMemory:
        """The fullest stage."""
        return max(self.stages, key=lambda stage: stage.total_gib)

    def fits(self, gpu_gib: float) -> bool:
        """Whether the fullest stage fits into what CUDA reports of a GPU."""
        return self.peak.total_gib <= gpu_gib


def training_memory(
    decoder: Decoder, layout: Layout, recipe: Recipe, constants: MemoryConstants = MEMORY
) -> TrainingMemory:
    """Memory per stage of one layout.

    Raises:
        ValueError: if the layers do not divide as the recipe says.
    """
    sizes = {name: float(getattr(layout, name)) for name in ("tp", "cp", "dp", "ep", "etp")}
    stages = tuple(
        StageMemory(stage, int(counts.sum()), tuple((k, float(v) / GIB) for k, v in terms.items()))
        for stage, (counts, terms) in enumerate(_stages(decoder, layout.pp, layout.vp, sizes, recipe, constants))
    )
    return TrainingMemory(stages, host_bytes(decoder, layout, recipe) / GIB)


def training_memory_arrays(
    decoder: Decoder,
    layouts: Mapping[str, np.ndarray[Any, Any]],
    recipe: Recipe,
    constants: MemoryConstants = MEMORY,
    micro_batch: np.ndarray[Any, Any] | None = None,
) -> np.ndarray[Any, Any]:
    """GiB on the fullest GPU of every layout, the figure of `training_memory` for many at once.

    Args:
        layouts: (n,) integer arrays tp, pp, dp and, where not 1, cp, vp, ep, etp.
        micro_batch: (n,) sequences per micro-batch, the recipe's where None.

    Returns:
        (n,) float64 GiB.
    """
    n = len(layouts["tp"])
    full = {k: np.asarray(layouts.get(k, 1)) * np.ones(n) for k in ("tp", "pp", "dp", "cp", "vp", "ep", "etp")}
    micro = np.full(n, float(recipe.micro_batch)) if micro_batch is None else np.asarray(micro_batch, float)
    total = np.zeros(n)
    for pp, vp, rows in pipelines(full["pp"], full["vp"]):
        sizes = {k: full[k][rows] for k in ("tp", "cp", "dp", "ep", "etp")}
        for _, terms in _stages(decoder, pp, vp, sizes, recipe, constants, micro[rows], only_fullest=True):
            total[rows] = np.maximum(total[rows], sum(terms.values()) / GIB)
    return total


def host_bytes(decoder: Decoder, layout: Layout, recipe: Recipe) -> float:
    """B of states that the host holds per GPU when they are offloaded."""
    states = states_of(recipe)
    if not states.host:
        return 0.0
    if recipe.adapter_rank is not None:
        frozen = MEMORY.frozen(recipe.base) if recipe.offload == "parameters" else 0.0
        return decoder.parameters / layout.gpus * frozen
    return decoder.parameters / layout.gpus * states.host


def churned(terms: Iterable[str], recipe: Recipe) -> list[str]:
    """Terms that the allocator's reserve grows with: what comes and goes within a step, and under Megatron, whose
    published runs the reserve is from, the states as well, unless they are frozen.
    """
    still: tuple[str, ...] = ("weights", "gradients", "optimizer", "communication buckets")
    if recipe.framework in ("megatron", "megatron-deepspeed"):
        still = ("weights",) if recipe.adapter_rank is not None else ()
    return [name for name in terms if name not in still]


def _stages(
    decoder: Decoder,
    pp: int,
    vp: int,
    sizes: Mapping[str, Any],
    recipe: Recipe,
    constants: MemoryConstants,
    micro: Any = None,
    only_fullest: bool = False,
) -> list[tuple[np.ndarray[Any, Any], Terms]]:
    """Terms in B of every stage; of those in the middle with equal layers the earliest, which holds most micro-batches,
    where only the fullest is asked for.
    """
    counts = stage_counts(decoder, pp, vp, recipe.stage_layers, recipe.drafts)
    job = _Job(decoder, pp, vp, sizes, recipe, constants, float(recipe.micro_batch) if micro is None else micro)
    return [(counts[i], job.terms(counts, i)) for i in (_candidates(counts) if only_fullest else range(pp))]


def _candidates(counts: np.ndarray[Any, Any]) -> list[int]:
    last = len(counts) - 1
    earliest: dict[bytes, int] = {}
    for stage in range(1, last):
        earliest.setdefault(counts[stage].tobytes(), stage)
    return sorted({0, last, *earliest.values()})


@dataclass(frozen=True)
class _Job:
    """One decoder under a recipe with pp and vp fixed; other sizes are numbers or arrays of equal length."""

    decoder: Decoder
    pp: int
    vp: int
    sizes: Mapping[str, Any]
    recipe: Recipe
    constants: MemoryConstants
    micro: Any

    def terms(self, counts: np.ndarray[Any, Any], stage: int) -> Terms:
        held = stage_portions(self.decoder, counts, stage, self.recipe.drafts)
        found = self._states(held, counts, stage)
        found["gathered layers"] = self._gathered(held, stage)
        activations, work = self._activations(counts, stage)
        logits = self._logits(stage)
        found["activations"] = activations
        found["layer at work"] = np.where(work >= logits, work, 0.0)
        found["logits"] = np.where(logits > work, logits, 0.0)
        found["communication buckets"] = self._buckets()
        found["allocator reserve"] = sum(found[name] for name in churned(found, self.recipe)) * (
            self.constants.reserved(self.recipe) - 1
        )
        found["CUDA context and NCCL"] = self._context()
        return found

    def _states(self, held: list[tuple[float, Portion]], counts: np.ndarray[Any, Any], stage: int) -> Terms:
        """Weights, gradients, optimizer of a stage; experts have fewer data-parallel ranks than the rest."""
        tp, dense, experts = self.sizes["tp"], *self._parameters(held)
        copies, most = self.sizes["dp"] * self.sizes["cp"], self.recipe.shard_ranks or math.inf
        ranks = np.minimum(copies, most)
        expert_copies = np.maximum(ranks * tp / self._expert_ranks(), 1.0)
        states = states_of(self.recipe)
        if self.recipe.adapter_rank is not None:
            trained = self._adapters(counts, stage) / tp
            return {
                "weights": self._frozen(held, stage, ranks, expert_copies) + trained * states.weights.at(ranks),
                "gradients": trained * states.gradients.at(ranks),
                "optimizer": trained * states.optimizer.at(ranks),
            }
        return {
            name: dense * part.at(ranks) + experts * part.at(expert_copies)
            for name, part in (
                ("weights", states.weights),
                ("gradients", states.gradients),
                ("optimizer", states.optimizer),
            )
        }

    def _frozen(self, held: list[tuple[float, Portion]], stage: int, ranks: Any, expert_copies: Any) -> Any:
        """B of weights that are not trained; under a 4-bit base tables stay in 16 bits, for linear layers are quantised
        (QLoRA, arXiv:2305.14314, section 3; `bitsandbytes` leaves embedding and head as they are).
        """
        if self.recipe.offload == "parameters":
            return 0.0 * ranks
        dense, experts = self._parameters(held)
        each, tables = self.constants.frozen(self.recipe.base), self._tables(stage)
        wide = 2.0 if self.recipe.base == "nf4" else each
        divided = self.recipe.sharding in SHARDS_WEIGHTS
        within, among = (ranks, expert_copies) if divided else (1.0, 1.0)
        return ((dense - tables) * each + tables * wide) / within + experts * each / among

    def _tables(self, stage: int) -> Any:
        found = table_portions(self.decoder, self.pp, stage, self.recipe.drafts)
        return sum(p.dense_at(self.sizes["tp"]) for p in found)

    def _parameters(self, held: list[tuple[float, Portion]]) -> tuple[Any, Any]:
        tp, ranks = self.sizes["tp"], self._expert_ranks()
        return sum(n * p.dense_at(tp) for n, p in held), sum(n * p.experts_at(ranks) for n, p in held)

    def _expert_ranks(self) -> Any:
        return expert_ranks(self.sizes["tp"], self.sizes["ep"], self.sizes["etp"])

    def _adapters(self, counts: np.ndarray[Any, Any], stage: int) -> float:
        rank = self.recipe.adapter_rank or 0
        return sum(
            float(n) * adapter_parameters(layer, self.decoder.hidden, rank)
            for n, (layer, _) in zip(counts[stage], self.decoder.groups, strict=True)
        )

    def _gathered(self, held: list[tuple[float, Portion]], stage: int) -> Any:
        """The unit at work and the one prefetched with 16-bit weights, and the gradients of the unit at work (PyTorch
        FSDP, arXiv:2304.11277, section 3.3); in a pipeline FSDP2 keeps weights and fp32 gradients of the whole stage.
        """
        if self.recipe.adapter_rank is not None:
            return self._gathered_frozen(held, stage)
        if self.recipe.sharding not in SHARDS_WEIGHTS:
            return 0.0
        if self.pp > 1 and self.recipe.framework == "torchtitan":
            dense, experts = self._parameters(held)
            return (dense + experts) * 6.0
        return self._largest(held) * 6.0

    def _gathered_frozen(self, held: list[tuple[float, Portion]], stage: int) -> Any:
        """Frozen weights have no gradients, one copy is not gathered; a 4-bit unit at work is widened."""
        layers = held[: len(held) - len(table_portions(self.decoder, self.pp, stage, self.recipe.drafts))]
        wide = self._largest(layers) * 2.0 if self.recipe.base == "nf4" and layers else 0.0
        if self.recipe.sharding not in SHARDS_WEIGHTS:
            return wide
        dense, experts = self._parameters(held)
        staged = self.pp > 1 and self.recipe.framework == "torchtitan"
        unit = dense + experts if staged else 2 * self._largest(held)
        copies = self.sizes["dp"] * self.sizes["cp"]
        return unit * self.constants.frozen(self.recipe.base) * (copies > 1) + wide

    def _largest(self, held: list[tuple[float, Portion]]) -> Any:
        """Parameters of the largest unit: a layer, the embedding or the head."""
        tp, ranks = self.sizes["tp"], self._expert_ranks()
        units = [p.dense_at(tp) + p.experts_at(ranks) for _, p in held]
        largest = units[0]
        for unit in units[1:]:
            largest = np.maximum(largest, unit)
        return largest

    def _activations(self, counts: np.ndarray[Any, Any], stage: int) -> tuple[Any, Any]:
        """(kept by all micro-batches in flight, held by the layer at work in the backward pass) in B."""
        recipe, tokens = self.recipe, self._tokens()
        share = self._covered(counts[stage])
        kept_b: Any = 0.0
        work: Any = 0.0
        for n, layer in self._layers(counts, stage):
            part = kept(layer, self.decoder.hidden, recipe)
            whole = self._at(part)
            entry = part.entry_at(self.sizes["tp"], recipe)
            kept_b = kept_b + n * (share * entry + (1 - share) * whole)
            again = self._at(kept(layer, self.decoder.hidden, recipe, everything=True))
            repeated = again - entry if share or recipe.framework == "torchtitan" else again - whole
            if recipe.recompute == "none":
                repeated = 0.0
            work = np.maximum(work, repeated + part.gradients / self.sizes["tp"])
        # Megatron gathers one input at a time again (arXiv:2205.05198, section 4.2.2), DTensor keeps both of a layer.
        inputs = 2 if recipe.framework == "torchtitan" else 1
        return kept_b * tokens, (work + self._gathered_planes(inputs)) * tokens

    def _gathered_planes(self, inputs: int) -> Any:
        """B per token of what products read whole, and of one gradient, where tensor ranks split the sequence."""
        split = self.recipe.sequence_parallel * (self.sizes["tp"] > 1)
        return ELEMENT * self.decoder.hidden * (inputs + 1) * split

    def _layers(self, counts: np.ndarray[Any, Any], stage: int) -> list[tuple[Any, Layer]]:
        """(micro-batches in flight through all layers of a kind, kind); draft layers run backward at once."""
        alive = in_flight(stage, self.pp, self.vp, self._micro_batches())
        kinds = zip(counts[stage], self.decoder.groups, strict=True)
        held: list[tuple[Any, Layer]] = [(n * alive, layer) for n, (layer, _) in kinds if n]
        return held + [(1.0, layer) for layer in self._drafts(stage)]

    def _drafts(self, stage: int) -> tuple[Layer, ...]:
        return self.decoder.drafts if self.recipe.drafts and stage == self.pp - 1 else ()

    def _at(self, part: Kept) -> Any:
        return part.at(self.sizes["tp"], self.sizes["etp"], self.recipe, self.recipe.sequence)

    def _covered(self, counts: np.ndarray[Any, Any]) -> float:
        """Share of a stage's layers under full recomputation."""
        if self.recipe.recompute != "full":
            return 0.0
        wanted, total = self.recipe.recompute_layers, float(counts.sum())
        return 1.0 if wanted is None or not total else min(1.0, wanted / total)

    def _tokens(self) -> Any:
        return self.micro * self.recipe.sequence / self.sizes["cp"]

    def _micro_batches(self) -> Any:
        return np.maximum(self.recipe.global_batch / (self.sizes["dp"] * self.micro), 1.0)

    def _logits(self, stage: int) -> Any:
        """B of logits at the head's backward pass, with what the head reads gathered from tensor ranks; those of draft
        layers wait for theirs, 16 bits wide as gradients where the loss is fused, else beside their fp32 softmax.
        """
        if stage != self.pp - 1:
            return 0.0
        vocabulary, tokens = self.decoder.vocab / self.sizes["tp"], self._tokens()
        if self.recipe.logits == "chunked":
            chunks = math.ceil(self.decoder.vocab / self.decoder.hidden)
            return self.constants.unfused * tokens * vocabulary / chunks
        each, waiting = (self._fused(), 2.0) if self.recipe.logits == "fused" else (self.constants.unfused, 6.0)
        logits = (each + waiting * len(self._drafts(stage))) * vocabulary
        return (logits + self._gathered_planes(1)) * tokens

    def _fused(self) -> float:
        compiled = self.recipe.framework == "torchtitan"
        return self.constants.compiled if compiled else self.constants.fused

    def _buckets(self) -> Any:
        """DeepSpeed's flat buffers for reducing and gathering, 16 bit; doubled over and over where they overlap."""
        if self.recipe.framework not in ("deepspeed", "megatron-deepspeed") or self.recipe.sharding == "ddp":
            return 0.0
        copies = self.constants.bucket_copies if self.recipe.framework == "deepspeed" else 1.0
        return 2 * self.constants.bucket_elements * 2.0 * copies

    def _context(self) -> Any:
        s = self.sizes
        groups = 1.0 + (s["tp"] > 1) + (s["dp"] * s["cp"] > 1) + (s["cp"] > 1) + (s["ep"] > 1) + 2.0 * (self.pp > 1)
        return (self.constants.context_gib + self.constants.communicator_gib * groups) * GIB
