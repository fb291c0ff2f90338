"""What a training step takes ideally: FLOP, bytes and kernels of a micro-batch and of a step, over datasheet rates.

`speed` multiplies them with calibrated constants and adds them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from clusterwright.model.decoders import (
    CompressedAttention,
    Decoder,
    Experts,
    LatentAttention,
    Layer,
    StateMixer,
)
from clusterwright.physics.training.activations import kept
from clusterwright.physics.training.exchanges import (
    context_exchange,
    copies_exchange,
    expert_exchange,
    stage_exchange,
    tensor_exchange,
)
from clusterwright.physics.training.recipes import MEMORY, SHARDS_WEIGHTS, Recipe
from clusterwright.physics.training.shares import expert_ranks, portion
from clusterwright.physics.training.stages import stage_paces
from clusterwright.physics.training.states import states_of
from clusterwright.physics.training.systems import System
from clusterwright.physics.training.work import Work, work_of

#: Kernels of an expert block ÷ those of a dense one.
EXPERT_KERNELS: Final = 4.0
#: Kernels of one more round of attention ÷ those of its block: attention, correction of output and of statistic, of
#: norm, product, rotation of queries and of keys, attention, product, addition.
ROUND_KERNELS: Final = 0.4
Sizes = Mapping[str, Any]


def amounts(
    decoder: Decoder, sizes: Sizes, recipe: Recipe, system: System, micro: Any = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ideal seconds (amount ÷ datasheet rate; launches: number of layer passes) of an average stage per micro-batch
    (head and stage exchange: of the last stage), and per step with how full stages are.
    """
    tp, pp, cp, dp = (sizes[k] for k in ("tp", "pp", "cp", "dp"))
    batch = float(recipe.micro_batch) if micro is None else np.asarray(micro, float)
    m = np.maximum(recipe.global_batch / (dp * batch), 1.0)
    tokens = batch * recipe.sequence / cp
    mine = tokens / (tp * pp)
    layers = list(decoder.groups) + ([(layer, 1) for layer in decoder.drafts] if recipe.drafts else [])
    work, peak = work_of(decoder, recipe), system.peak(recipe.precision)
    dense, experts = work.dense * mine / peak, work.experts * mine / peak
    head = work.head * tokens / tp / system.bf16
    attention = _attention(work, system) * mine
    passes = _passes(layers, decoder, recipe, tokens, sizes) / pp / system.memory_bytes_s
    per_micro = {
        "dense products": dense,
        "expert products": experts,
        "head": head,
        "attention": attention,
        "state scan": work.scan * mine / system.fp32,
        "elementwise passes": passes,
        "launches": _launches(layers, cp) / pp,
        "dequantisation": dequantisation(layers, sizes, recipe, system) / pp,
        "tensor exchange": tensor_exchange(layers, decoder, tokens, sizes, system) / pp,
        "context exchange": context_exchange(layers, tokens, sizes, system) / pp,
        "expert exchange": expert_exchange(layers, tokens, sizes, system, recipe) / pp,
        "stage exchange": stage_exchange(layers, decoder.hidden, tokens, sizes, system),
    }
    step = _per_step(decoder, sizes, recipe, system, m)
    step["micro-batches"] = m
    step["fullest stage"], step["last stage"] = stage_paces(decoder, recipe, pp, sizes["vp"])
    return per_micro, step


def _attention(work: Work, system: System) -> float:
    """s per token: the backward kernel computes scores again, 7/6 of the model's FLOP, two rounds of exponentials."""
    return work.attention * 7 / 6 / system.bf16 + 2 * work.scores / system.exponentials_s


def _passes(layers: list[tuple[Layer, int]], decoder: Decoder, recipe: Recipe, tokens: Any, sizes: Sizes) -> Any:
    """B of what the layers keep, read and written once, per micro-batch and GPU (all stages)."""
    plain = Recipe(sequence=recipe.sequence)
    total: Any = 0.0
    for layer, count in layers:
        part = kept(layer, decoder.hidden, plain, everything=True)
        if _has_biases(layer):
            part = replace(part, routed=2 * part.routed, routed_inner=2 * part.routed_inner)
        total = total + count * part.at(sizes["tp"], sizes["etp"], plain, recipe.sequence)
    return total * tokens


def _has_biases(layer: Layer) -> bool:
    """Whether experts add biases: added to and reduced from what every product puts out, beside clamped gates, which is
    twice the passes (known from one model, gpt-oss).
    """
    feed = layer.feed
    if not isinstance(feed, Experts):
        return False
    plain = feed.experts * feed.matrices * feed.hidden * feed.width
    return sum(p.parameters for p in layer.parts if p.role == "experts") > plain


def _launches(layers: list[tuple[Layer, int]], cp: Any) -> Any:
    """Layer passes, of two blocks each."""
    return sum(count * (_mixer_kernels(layer, cp) + _feed_kernels(layer)) / 2 for layer, count in layers)


def _mixer_kernels(layer: Layer, cp: Any) -> Any:
    """Kernels of what mixes tokens ÷ those of plain attention: half as many more for low ranks or a scan, for
    compressing entries, for choosing among them, and for hyper-connections around the block; attention runs once for
    the keys of every context rank and joins what it finds (Transformer Engine `context_parallel.py`).
    """
    mixer = layer.mixer
    if mixer is None:
        return 0.0
    extra = [
        isinstance(mixer, CompressedAttention | LatentAttention | StateMixer),
        isinstance(mixer, CompressedAttention) and mixer.ratio > 0,
        getattr(mixer, "index", None) is not None,
        layer.streams > 1,
    ]
    rounds = 0.0 if isinstance(mixer, StateMixer) else ROUND_KERNELS * (cp - 1)
    return 1.0 + 0.5 * sum(extra) + rounds


def _feed_kernels(layer: Layer) -> float:
    """Kernels of a feed-forward block ÷ those of a dense one: experts route, permute and exchange as well."""
    if layer.feed is None:
        return 0.0
    return (EXPERT_KERNELS if isinstance(layer.feed, Experts) else 1.0) + 0.5 * (layer.streams > 1)


#: B of GPU memory that turning one 4-bit weight into 16 bits costs each time it is multiplied. From one published pair
#: with everything else alike: Llama 3.1 8B, batches of 2 × 2,048 tokens on an RTX 4090, 3,083 tokens/s with LoRA and
#: 2,413 with QLoRA (torchtune README, 2024-09): .37 s more for three passes over 7 G weights at 1,008 GB/s.
DEQUANTISED_BYTES: Final = 18.0


def dequantisation(layers: list[tuple[Layer, int]], sizes: Sizes, recipe: Recipe, system: System) -> Any:
    """s per micro-batch of turning a 4-bit base into 16 bits: forward, backward, once more where it is recomputed."""
    if recipe.adapter_rank is None or recipe.base != "nf4":
        return 0.0 * sizes["tp"]
    tp, ranks = sizes["tp"], expert_ranks(sizes["tp"], sizes["ep"], sizes["etp"])
    held = sum(n * (p.dense_at(tp) + p.experts_at(ranks)) for n, p in ((n, portion(x.parts)) for x, n in layers))
    times = 3 if recipe.recompute == "full" else 2
    return times * DEQUANTISED_BYTES * held / system.memory_bytes_s


def _moved(recipe: Recipe, m: Any) -> Any:
    """B per parameter that is reduced or gathered in a step: gradients in the format in which they are reduced, with
    every micro-batch where ranks keep only their share of them (ZeRO, arXiv:1910.02054, section 7), and weights as they
    are kept; whole copies gather what they reduced.

    Megatron's distributed optimizer and torchtitan's FSDP reduce in fp32 (`grad_reduce_in_fp32`, `reduce_dtype`),
    DeepSpeed and plain copies in 16 bits, unless the recipe states what gradients are accumulated in.
    """
    stated, sharding = recipe.gradient_accumulation_bytes, recipe.sharding
    reduced = stated if stated is not None else 4.0 if sharding in ("distributed", "fsdp") else 2.0
    if sharding in SHARDS_WEIGHTS:
        return m * (2 * 2.0 + reduced)
    if sharding == "ddp":
        return 2 * reduced
    gathered = 1.0 if recipe.low_precision and recipe.fp8_weights else 2.0
    return reduced * (m if sharding == "zero2" else 1.0) + gathered


def _per_step(decoder: Decoder, sizes: Sizes, recipe: Recipe, system: System, m: Any) -> dict[str, Any]:
    """Ideal s of exchanging gradients and weights, of the optimizer's pass and of transfers to the host."""
    tp, pp, cp, dp = (sizes[k] for k in ("tp", "pp", "cp", "dp"))
    whole = portion(tuple(part for layer in decoder.layers for part in layer.parts) + decoder.tables)
    ranks = expert_ranks(tp, sizes["ep"], sizes["etp"])
    dense, experts = whole.dense_at(tp) / pp, whole.experts_at(ranks) / pp
    copies = dp * cp
    expert_copies = np.maximum(copies * tp / ranks, 1.0)
    shards = recipe.sharding in SHARDS_WEIGHTS
    sent = copies_exchange(dense, copies, tp, system) + copies_exchange(experts, expert_copies, ranks, system)
    held = dense / copies + experts / expert_copies
    if recipe.adapter_rank is not None:  # adapters themselves are too few to count
        frozen = 2 * m * MEMORY.frozen(recipe.base)
        hosted = frozen * held / system.host_bytes_s if recipe.offload == "parameters" else 0.0 * held
        gathered = frozen * sent if shards else 0.0 * sent
        return {"gradients and weights": gathered, "optimizer": 0.0 * held, "host transfers": hosted}
    volume = _moved(recipe, m)
    states = states_of(recipe)
    per_parameter = 2 * (recipe.master_bytes + 2 * recipe.moment_bytes) + 4.0 + 2.0
    divided = recipe.sharding != "ddp"
    updated = held if divided else dense + experts
    stepped = 2 * (recipe.master_bytes + 2 * recipe.moment_bytes) + 4.0
    hosted = held * (6.0 / system.host_bytes_s + stepped / system.host_memory_bytes_s) * (1.0 if states.host else 0.0)
    if recipe.offload == "parameters":
        hosted = hosted + held * 2 * 2.0 * m / system.host_bytes_s
    return {
        "gradients and weights": volume * sent,
        "optimizer": updated * per_parameter / system.memory_bytes_s * (0.0 if states.host else 1.0),
        "host transfers": hosted,
    }
