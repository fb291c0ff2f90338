"""What to change when a training job does not fit, found by estimating every change again.

Changes that fit come first, the fastest of them before the others; changes that do not fit follow by what they save.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from clusterwright.model.decoders import Decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.calibration import SpeedConstants
from clusterwright.physics.training.memory import training_memory
from clusterwright.physics.training.recipes import MEMORY, SHARDS_WEIGHTS, MemoryConstants, Recipe
from clusterwright.physics.training.speed import step_time
from clusterwright.physics.training.systems import System


@dataclass(frozen=True, slots=True)
class Change:
    """One change with what it leads to on the same GPUs.

    Args:
        total_gib: of the fullest GPU; slowdown: step time ÷ that of the job as it is.
    """

    text: str
    layout: Layout
    recipe: Recipe
    total_gib: float
    slowdown: float
    fits: bool


def changes(
    decoder: Decoder,
    layout: Layout,
    recipe: Recipe,
    gpu_gib: float,
    system: System,
    constants: MemoryConstants = MEMORY,
    speed: SpeedConstants | None = None,
) -> tuple[Change, ...]:
    """Single changes that need less memory, best first.

    Args:
        gpu_gib: that CUDA reports of a GPU.
    """
    before = training_memory(decoder, layout, recipe, constants).peak.total_gib
    slow = step_time(decoder, layout, recipe, system, speed).step_s
    found = []
    for text, changed, how in _candidates(decoder, layout, recipe, system):
        total = training_memory(decoder, changed, how, constants).peak.total_gib
        if total >= before:
            continue
        time = step_time(decoder, changed, how, system, speed).step_s
        found.append(Change(text, changed, how, total, time / slow, total <= gpu_gib))
    return tuple(sorted(found, key=lambda c: (not c.fits, c.slowdown if c.fits else c.total_gib, c.text)))


def _candidates(
    decoder: Decoder, layout: Layout, recipe: Recipe, system: System
) -> Iterator[tuple[str, Layout, Recipe]]:
    yield from ((text, layout, how) for text, how in _recipes(recipe))
    yield from ((text, changed, recipe) for text, changed in _layouts(decoder, layout, recipe, system))


def _recipes(recipe: Recipe) -> Iterator[tuple[str, Recipe]]:
    if recipe.recompute == "none":
        modules = ("core_attn", "layernorm", "moe_act", "mla_up_proj")
        yield (
            "recompute norms, activations and latent projections",
            replace(recipe, recompute="selective", modules=modules),
        )
    if recipe.recompute != "full":
        yield "recompute whole layers", replace(recipe, recompute="full", recompute_layers=None)
    if recipe.micro_batch > 1:
        yield f"micro-batch {recipe.micro_batch // 2}", replace(recipe, micro_batch=recipe.micro_batch // 2)
    if recipe.logits == "unfused":
        yield "fuse the loss with its logits", replace(recipe, logits="fused")
    if recipe.logits != "chunked":
        yield "chunk the logits", replace(recipe, logits="chunked")
    if not recipe.expandable:
        yield "PyTorch's expandable segments", replace(recipe, expandable=True)
    yield from _states(recipe)


def _states(recipe: Recipe) -> Iterator[tuple[str, Recipe]]:
    if recipe.sharding == "ddp":
        yield "divide the optimizer among data-parallel ranks", replace(recipe, sharding="distributed")
    if recipe.sharding in ("ddp", "zero1", "zero2", "distributed"):
        to = "zero3" if recipe.framework == "deepspeed" else "fsdp"
        yield "divide weights and gradients too", replace(recipe, sharding=to)  # type: ignore[arg-type]  # one of the two
    if recipe.moment_bytes > 2:
        yield "16-bit moments", replace(recipe, moment_bytes=2.0)
    if recipe.sharding == "distributed" and recipe.gradient_accumulation_bytes is None:
        yield "16-bit accumulated gradients", replace(recipe, gradient_accumulation_bytes=2.0)
    if recipe.offload == "none":
        yield "optimizer on the host", replace(recipe, offload="optimizer")
    if recipe.offload != "parameters" and recipe.sharding in SHARDS_WEIGHTS:
        yield "optimizer and parameters on the host", replace(recipe, offload="parameters")


def _layouts(decoder: Decoder, layout: Layout, recipe: Recipe, system: System) -> Iterator[tuple[str, Layout]]:
    """Twice the ranks of one kind, half of the data-parallel ones."""
    if layout.dp % 2:
        return
    half = replace(layout, dp=layout.dp // 2)
    heads = min((_heads(layer.mixer) for layer, _ in decoder.groups if _heads(layer.mixer)), default=1)
    tp, cp = layout.tp * 2, layout.cp * 2
    if tp <= system.domain and heads % tp == 0:
        yield f"tensor parallel {tp}", replace(half, tp=tp)
    if layout.pp * 2 * layout.vp <= len(decoder.layers):
        yield f"pipeline parallel {layout.pp * 2}", replace(half, pp=layout.pp * 2)
    if recipe.sequence % (2 * cp) == 0:
        yield f"context parallel {cp}", replace(half, cp=cp)
    if decoder.is_moe and layout.ep * 2 <= layout.tp * layout.cp * layout.dp:
        yield f"expert parallel {layout.ep * 2}", replace(layout, ep=layout.ep * 2)


def _heads(mixer: object) -> int:
    return int(getattr(mixer, "heads", 0))
