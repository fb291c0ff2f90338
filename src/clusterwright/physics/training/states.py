"""Bytes per parameter of weights, gradients and optimizer: what every rank holds, and what ranks divide.

Mixed-precision Adam holds 16 B per parameter: 16-bit weights 2, gradients 2, fp32 master weights 4, two moments 8;
18 with fp32 gradients.

Sources: ZeRO, arXiv:1910.02054, section 3; Megatron-Core "Distributed Optimizer" (6 + 12/dp); DeepSpeed documentation
"Memory Requirements" (`estimate_zero2_model_states_mem_needs`: 4 + 16/N; `estimate_zero3_...`: 18/N): its ZeRO makes an
fp32 copy of the reduced gradients; `BF16_Optimizer` accumulates in fp32 (8 + 12/N); Transformer Engine, "FP8 primary
weights": a cast per orientation of the product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.physics.training.recipes import SHARDS_WEIGHTS, Recipe

#: B per parameter of a full checkpoint: bf16 weights 2, master weights 4, two moments 8.
CHECKPOINT_BYTES: Final = 14.0

#: B per parameter of a cast in one orientation, scales of its blocks included (Transformer Engine: fp8 one scale per
#: tensor, mxfp8 one per 32 elements, nvfp4 one per 16).
CAST_BYTES: Final = {"fp8": 1.0, "mxfp8": 1 + 1 / 32, "nvfp4": 0.5 + 1 / 16}


@dataclass(frozen=True, slots=True)
class Held:
    """B per parameter: `whole` on every data-parallel rank, `divided` among them."""

    whole: float
    divided: float

    def at(self, ranks: float) -> float:
        """B per parameter on one of `ranks` data-parallel ranks (a number or an array)."""
        return self.whole + self.divided / ranks


@dataclass(frozen=True, slots=True)
class States:
    """Model states of one trained parameter on the GPU, and what the host holds of it (all of it divided)."""

    weights: Held
    gradients: Held
    optimizer: Held
    host: float = 0.0

    def at(self, ranks: float) -> float:
        """B per parameter on one of `ranks` data-parallel ranks."""
        return self.weights.at(ranks) + self.gradients.at(ranks) + self.optimizer.at(ranks)


def states_of(recipe: Recipe) -> States:
    """States of a recipe before and after offload."""
    weights, gradients = _weights(recipe), _gradients(recipe)
    step = recipe.master_bytes + 2 * recipe.moment_bytes
    optimizer = Held(step, 0.0) if recipe.sharding == "ddp" else Held(0.0, step)
    if recipe.offload == "none":
        return States(weights, gradients, optimizer)
    if recipe.framework == "megatron":
        return States(weights, gradients, Held(0.0, 0.0), step)
    kept = gradients if recipe.sharding == "zero1" else Held(0.0, 0.0)
    host = step + 4.0
    if recipe.offload == "parameters":
        return States(Held(0.0, 0.0), kept, Held(0.0, 0.0), host + weights.divided)
    return States(weights, kept, Held(0.0, 0.0), host)


def state_bytes(recipe: Recipe, ranks: float) -> float:
    """B per parameter on a GPU of weights, gradients and optimizer."""
    return states_of(recipe).at(ranks)


def checkpoint_bytes(parameters: float) -> float:
    """B of one checkpoint with optimizer states."""
    return CHECKPOINT_BYTES * parameters


def _weights(recipe: Recipe) -> Held:
    casts = 2 * CAST_BYTES.get(recipe.precision, 0.0)
    if recipe.sharding in SHARDS_WEIGHTS:
        return Held(0.0, 2.0)
    return Held(casts, 0.0) if recipe.fp8_weights else Held(2.0 + casts, 0.0)


def _gradients(recipe: Recipe) -> Held:
    """Gradients, and the fp32 copy that DeepSpeed makes of what a rank reduces."""
    stated = recipe.gradient_accumulation_bytes
    deepspeed = recipe.framework in ("deepspeed", "megatron-deepspeed")
    if recipe.sharding == "distributed":
        return Held(4.0 if stated is None else stated, 0.0)
    if recipe.sharding == "ddp":
        return Held((2.0 if stated is None else stated) + (4.0 if deepspeed else 0.0), 0.0)
    if recipe.sharding == "zero1":
        if stated is not None and deepspeed:
            return Held(2.0 + stated, 0.0)
        return Held(2.0 if stated is None else stated, 4.0 if deepspeed else 0.0)
    return Held(0.0, (2.0 if stated is None else stated) + (4.0 if deepspeed else 0.0))
