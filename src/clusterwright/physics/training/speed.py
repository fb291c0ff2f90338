"""Time of a training step: products, attention, elementwise passes, launches, exchanges, bubble, optimizer.

Every term is a physical amount (FLOP, bytes, kernels) divided by a datasheet rate and by one calibrated constant
(`SpeedConstants`). The terms of a micro-batch add up over the layers of a pipeline stage; the bubble stretches them by
(p − 1)/(v·m); what is left of gradient and weight exchange, the optimizer and the host's share come once per step.

Source of the bubble: arXiv:2104.04473, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from clusterwright.model.decoders import (
    Decoder,
    Experts,
    LatentAttention,
    Layer,
    StateMixer,
)
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.activations import kept
from clusterwright.physics.training.calibration import CALIBRATED, SpeedConstants
from clusterwright.physics.training.exchanges import context_exchange, copies_exchange, expert_exchange, tensor_exchange
from clusterwright.physics.training.recipes import MEMORY, SHARDS_WEIGHTS, Recipe
from clusterwright.physics.training.shares import expert_ranks, portion
from clusterwright.physics.training.stages import stretches
from clusterwright.physics.training.states import states_of
from clusterwright.physics.training.systems import System
from clusterwright.physics.training.work import FROZEN, Work, training_work

#: Factors on tokens per second between which nine of ten published runs of a model left out lie
#: (`tools/validation/training_throughput.py`).
BAND: Final = (0.70, 1.35)
#: Names of the terms, in the order in which they are added.
TERMS: Final = (
    "dense products", "expert products", "head", "attention", "state scan", "elementwise passes", "launches",
    "dequantisation", "recomputation",
    "tensor exchange", "context exchange", "expert exchange", "pipeline bubble", "gradients and weights", "optimizer",
    "host transfers",
)  # fmt: skip
Sizes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step; `terms` in seconds add up to `step_s` exactly (math.fsum).

    Args:
        tokens: of a step; flop_per_token: model FLOP; peak: of all GPUs in the recipe's precision, FLOP/s.
    """

    terms: tuple[tuple[str, float], ...]
    tokens: float
    flop_per_token: float
    peak: float
    gpus: int
    band: tuple[float, float] = BAND

    @property
    def step_s(self) -> float:
        """Seconds of a step without checkpoints and failures."""
        return math.fsum(value for _, value in self.terms)

    @property
    def tokens_per_s(self) -> float:
        """Of the whole job."""
        return self.tokens / self.step_s

    @property
    def mfu(self) -> float:
        """Model FLOP utilisation, of the dense peak in the recipe's precision."""
        return self.tokens_per_s * self.flop_per_token / self.peak


def step_time(
    decoder: Decoder, layout: Layout, recipe: Recipe, system: System, constants: SpeedConstants | None = None
) -> StepTime:
    """Time of one step of one layout.

    Args:
        constants: as calibrated for the system where None.
    """
    chosen = constants or _calibrated(decoder, recipe, system)
    sizes = {n: float(getattr(layout, n)) for n in ("tp", "pp", "cp", "dp", "vp", "ep", "etp")}
    terms = step_terms(decoder, sizes, recipe, system, chosen)
    tokens = float(recipe.global_batch * recipe.sequence)
    flop = work_of(decoder, recipe).total
    shown = tuple((name, float(terms[name])) for name in TERMS)
    return StepTime(shown, tokens, flop, layout.gpus * system.peak(recipe.precision), layout.gpus)


def step_time_arrays(
    decoder: Decoder,
    layouts: Mapping[str, np.ndarray[Any, Any]],
    recipe: Recipe,
    system: System,
    constants: SpeedConstants | None = None,
    micro_batch: np.ndarray[Any, Any] | None = None,
) -> np.ndarray[Any, Any]:
    """Seconds per step of every layout, the figure of `step_time` for many at once.

    Args:
        layouts: (n,) integer arrays tp, pp, dp and, where not 1, cp, vp, ep, etp.
        micro_batch: (n,) sequences per micro-batch, the recipe's where None.

    Returns:
        (n,) float64 s.
    """
    n = len(layouts["tp"])
    chosen = constants or _calibrated(decoder, recipe, system)
    sizes = {k: np.asarray(layouts.get(k, 1)) * np.ones(n) for k in ("tp", "pp", "cp", "dp", "vp", "ep", "etp")}
    terms = step_terms(decoder, sizes, recipe, system, chosen, micro_batch)
    total = np.zeros(n)
    for name in TERMS:
        total = total + terms[name]
    return total


def _calibrated(decoder: Decoder, recipe: Recipe, system: System) -> SpeedConstants:
    return CALIBRATED.constants(system.name, recipe.precision, moe=decoder.is_moe, framework=recipe.framework)


def step_terms(
    decoder: Decoder, sizes: Sizes, recipe: Recipe, system: System, constants: SpeedConstants, micro: Any = None
) -> dict[str, Any]:
    """Seconds of every term of TERMS; sizes are numbers or arrays of equal length."""
    per_micro, step = amounts(decoder, sizes, recipe, system, micro)
    weights = constants.of_micro_batch(sizes["vp"])
    m = step["micro-batches"]
    terms: dict[str, Any] = {name: m * weights[name] * value for name, value in per_micro.items()}
    again = repeated(recipe, len(decoder.layers), sizes["pp"])
    terms["recomputation"] = m * 0.0 + sum((share * terms[name] for name, share in again.items()), 0.0)
    busy = sum(terms.values())
    terms["pipeline bubble"] = busy * (sizes["pp"] - 1) / (sizes["vp"] * m)
    for name, factor in constants.of_step().items():
        terms[name] = factor * step[name]
    return terms


def amounts(
    decoder: Decoder, sizes: Sizes, recipe: Recipe, system: System, micro: Any = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ideal seconds (amount ÷ datasheet rate; launches: number of layer passes) per micro-batch, and per step."""
    tp, pp, cp, dp = (sizes[k] for k in ("tp", "pp", "cp", "dp"))
    batch = float(recipe.micro_batch) if micro is None else np.asarray(micro, float)
    m = np.maximum(recipe.global_batch / (dp * batch), 1.0)
    tokens = batch * recipe.sequence / cp
    mine = tokens / (tp * pp)
    layers = list(decoder.groups) + ([(layer, 1) for layer in decoder.drafts] if recipe.drafts else [])
    work, peak = work_of(decoder, recipe), system.peak(recipe.precision)
    dense, experts = work.dense * mine / peak, work.experts * mine / peak
    head = work.head * mine / system.bf16
    attention = _attention(work, system) * mine
    passes = _passes(layers, decoder, recipe, tokens, sizes) / pp / system.memory_bytes_s
    per_micro = {
        "dense products": dense,
        "expert products": experts,
        "head": head,
        "attention": attention,
        "state scan": work.scan * mine / system.fp32,
        "elementwise passes": passes,
        "launches": _launches(layers) / pp,
        "dequantisation": dequantisation(layers, sizes, recipe, system) / pp,
        "tensor exchange": tensor_exchange(layers, decoder, tokens, sizes, system) / pp,
        "context exchange": context_exchange(layers, tokens, sizes, system) / pp,
        "expert exchange": expert_exchange(layers, tokens, sizes, system, recipe) / pp,
    }
    slowest = stretches(len(decoder.layers), pp, sizes["vp"])
    per_micro = {name: value * (1.0 if name == "head" else slowest) for name, value in per_micro.items()}
    step = _per_step(decoder, sizes, recipe, system, m)
    step["micro-batches"] = m
    return per_micro, step


def work_of(decoder: Decoder, recipe: Recipe) -> Work:
    """FLOP per token of a recipe."""
    return training_work(decoder, recipe.sequence, drafts=recipe.drafts, frozen=recipe.adapter_rank is not None)


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


def _launches(layers: list[tuple[Layer, int]]) -> float:
    """Layer passes, an expert layer counted as EXPERT_KERNELS dense ones: it routes, permutes and exchanges as well."""
    return sum(
        count
        * (
            (1.0 if layer.mixer is not None else 0.0)
            * (1.5 if isinstance(layer.mixer, LatentAttention | StateMixer) else 1.0)
            + (EXPERT_KERNELS if isinstance(layer.feed, Experts) else 1.0 if layer.feed is not None else 0.0)
        )
        / 2
        for layer, count in layers
    )


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


#: Kernels of an expert block ÷ those of a dense one.
EXPERT_KERNELS: Final = 4.0


def repeated(recipe: Recipe, layers: int, pp: Any) -> dict[str, Any]:
    """Forward passes that run again in the backward pass, by term, in shares of the term: forward is a third of it,
    half of an exchange among expert ranks and of products with frozen weights.
    """
    product = 1 / 3 if recipe.adapter_rank is None else 1 / 3 / FROZEN
    if recipe.recompute == "full":
        wanted = recipe.recompute_layers
        share = 1.0 if wanted is None else np.minimum(1.0, wanted * pp / layers)
        products = dict.fromkeys(("dense products", "expert products"), share * product)
        whole = ("attention", "state scan", "elementwise passes", "launches", "tensor exchange")
        return products | dict.fromkeys(whole, share / 3) | {"expert exchange": share / 2}
    if recipe.recompute == "none":
        return {}
    found: dict[str, Any] = {}
    if {"layernorm", "moe_act"} & set(recipe.modules) or recipe.framework == "torchtitan":
        found["elementwise passes"] = 1 / 9
    if "mlp" in recipe.modules or recipe.framework == "torchtitan":
        found["dense products"] = product / 2
    if "mla_up_proj" in recipe.modules:
        found["dense products"] = max(found.get("dense products", 0.0), product / 6)
    if "moe" in recipe.modules:
        found |= {"expert products": product, "expert exchange": 1 / 2}
    return found


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
    low = recipe.low_precision and recipe.fp8_weights
    volume = (2 * m * 2.0 + 4.0) if shards else 4.0 + (1.0 if low else 2.0)
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
