"""Time of a training step: products, attention, elementwise passes, launches, exchanges, bubble, optimizer.

Every term is a physical amount (FLOP, bytes, kernels) divided by a datasheet rate and by one calibrated constant
(`SpeedConstants`). The terms of a micro-batch add up over the slowest stage of a pipeline: the fullest one, and `head`
is what the last one takes longer with its head and draft layers, 0 where it has so many layers less. The bubble
stretches them by (p − 1)/(v·m); what is left of gradient and weight exchange, the optimizer and the host's share come
once per step.

Source of the bubble: arXiv:2104.04473, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.amounts import Sizes, amounts
from clusterwright.physics.training.calibration import CALIBRATED, SpeedConstants
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.systems import System
from clusterwright.physics.training.work import FROZEN, work_of

#: Factors on tokens per second between which nine of ten published runs of a model left out lie
#: (`tools/validation/training_throughput.py`).
BAND: Final = (0.70, 1.35)
#: Names of the terms, in the order in which they are added.
TERMS: Final = (
    "dense products", "expert products", "head", "attention", "state scan", "elementwise passes", "launches",
    "dequantisation", "recomputation",
    "tensor exchange", "context exchange", "expert exchange", "stage exchange", "pipeline bubble",
    "gradients and weights", "optimizer", "host transfers",
)  # fmt: skip


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
    return CALIBRATED.constants(
        system.name, recipe.precision, moe=decoder.is_moe, framework=recipe.framework, graphs=recipe.graphs
    )


def step_terms(
    decoder: Decoder, sizes: Sizes, recipe: Recipe, system: System, constants: SpeedConstants, micro: Any = None
) -> dict[str, Any]:
    """Seconds of every term of TERMS; sizes are numbers or arrays of equal length."""
    per_micro, step = amounts(decoder, sizes, recipe, system, micro)
    weights, m = constants.of_micro_batch(sizes["vp"]), step["micro-batches"]
    each: dict[str, Any] = {name: m * weights[name] * value for name, value in per_micro.items()}
    head, between = each.pop("head"), each.pop("stage exchange")
    again = repeated(recipe, len(decoder.layers), sizes["pp"])
    each["recomputation"] = m * 0.0 + sum((share * each[name] for name, share in again.items()), 0.0)
    terms: dict[str, Any] = {name: step["fullest stage"] * value for name, value in each.items()}
    terms["head"] = beyond(head, sum(each.values()), step)
    terms["stage exchange"] = between
    busy = sum(terms.values())
    terms["pipeline bubble"] = busy * (sizes["pp"] - 1) / (sizes["vp"] * m)
    for name, factor in constants.of_step().items():
        terms[name] = factor * step[name]
    return terms


def beyond(head: Any, layers: Any, step: Mapping[str, Any]) -> Any:
    """s that the last stage takes longer than the fullest one before it.

    Args:
        head: s of the output table; layers: s of the layers of an average stage.
    """
    return np.maximum(head + (step["last stage"] - step["fullest stage"]) * layers, 0.0)


def repeated(recipe: Recipe, layers: int, pp: Any) -> dict[str, Any]:
    """Forward passes that run again in the backward pass, by term, in shares of the term: forward is a third of it, two
    fifths of an exchange among tensor ranks, half of one among expert ranks and of products with frozen weights.
    """
    product = 1 / 3 if recipe.adapter_rank is None else 1 / 3 / FROZEN
    if recipe.recompute == "full":
        wanted = recipe.recompute_layers
        share = 1.0 if wanted is None else np.minimum(1.0, wanted * pp / layers)
        products = dict.fromkeys(("dense products", "expert products"), share * product)
        whole = ("attention", "state scan", "elementwise passes", "launches")
        exchanges = {"tensor exchange": share * 2 / 5, "context exchange": share / 3, "expert exchange": share / 2}
        return products | dict.fromkeys(whole, share / 3) | exchanges
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
