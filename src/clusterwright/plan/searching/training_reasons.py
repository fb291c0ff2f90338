"""Why a layout of training is impossible or not the best, in numbers; and the layouts that people try first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.lib.scales import DAY_S
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.calibration import SpeedConstants
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.speed import step_time
from clusterwright.plan.searching.columns import layout_at
from clusterwright.plan.searching.machines import joined, reported_gib, system
from clusterwright.plan.searching.questions import TrainingQuestion
from clusterwright.plan.searching.reasons import WORDS, Reason
from clusterwright.plan.searching.shapes import shape_of
from clusterwright.plan.searching.training_columns import Judged, days_of, host_gib, host_room_gib

if TYPE_CHECKING:
    from clusterwright.plan.searching.training import TrainingRow


def popular(question: TrainingQuestion, job_gpus: int) -> list[tuple[str, Layout]]:
    """Layouts that people try first on so many GPUs, each once."""
    found: dict[Layout, str] = {}
    for name, layout in _popular(question, job_gpus):
        if layout.gpus == job_gpus:
            found.setdefault(layout, name)
    return [(name, layout) for layout, name in found.items()]


def _popular(question: TrainingQuestion, wide: int) -> Iterator[tuple[str, Layout]]:
    node, shape = min(question.pool.gpus_per_node, wide), shape_of(question.decoder)
    yield "data parallel only", Layout(dp=wide)
    yield "tensor ranks over the node", Layout(tp=node, dp=wide // node)
    for stages in (4, 8, 16):
        words = f"tensor ranks over the node, {stages} stages"
        yield words, Layout(tp=node, pp=stages, dp=max(wide // (node * stages), 1))
    yield "stages over the node", Layout(pp=node, dp=wide // node)
    for ranks in (node, 64) if shape.experts else ():
        if ranks <= shape.experts and wide % ranks == 0:
            yield f"experts over {ranks} ranks", Layout(dp=wide, ep=ranks)
            copies = max(wide // 8, 1)
            if copies % ranks == 0:
                yield f"experts over {ranks} ranks, 8 stages", Layout(pp=8, dp=copies, ep=ranks)


def explain(
    question: TrainingQuestion, judged: Judged, position: int, row: TrainingRow | None, best: TrainingRow | None
) -> str:
    """One sentence with the numbers that decide."""
    if row is not None:
        return _compared(row, best)
    reason, layout = Reason(int(judged.reason[position])), layout_at(judged.sizes, position)
    micro = int(judged.sizes["micro_batch"][position])
    if reason == Reason.MEMORY:
        need, have = float(np.nanmin(judged.memory_gib)), reported_gib(question.pool.gpu) * question.memory_share
        how = judged.recipe_at(int(np.nanargmin(judged.memory_gib))).recompute
        return f"needs {need - have:.1f} GiB more per GPU ({need:.1f} of {have:.1f} GiB with recomputation {how})"
    if reason == Reason.HOST:
        return host_words(question, layout.gpus)
    if reason == Reason.DEADLINE:
        days = float(np.nanmin(days_of(question, judged.step_s, np.full(len(judged.step_s), layout.gpus))))
        return f"ends after {days:.3g} days, wanted {(question.deadline_s or 0) / DAY_S:.3g}"
    return _structure(question, layout, micro, reason) or WORDS[reason]


def host_words(question: TrainingQuestion, job_gpus: int) -> str:
    """What the host of a GPU would hold, and what it has for it."""
    need, have = host_gib(question, job_gpus), host_room_gib(question)
    return f"the host would hold {need:,.0f} GiB a GPU, and has {have:,.0f} GiB for it"


def crossing(question: TrainingQuestion, speed: SpeedConstants, layout: Layout, best: TrainingRow | None) -> str:
    """How long a step would take whose tensor ranks exchange over NICs, "" without a network."""
    if question.pool.nic_gbytes_s is None:
        return ""
    step_s = step_time(question.decoder, layout, question.recipe, system(question.pool), speed).step_s
    ratio = "" if best is None else f", {step_s / best.step_s:.3g} × that of {best.layout}"
    return f"; over NICs a step takes {step_s:.3g} s{ratio}"


def _structure(question: TrainingQuestion, layout: Layout, micro: int, reason: Reason) -> str | None:
    pool, shape, recipe = question.pool, shape_of(question.decoder), question.recipe
    heads = " and ".join(str(h) for h in shape.kv_heads)
    return {
        Reason.ENGINE: "groups of attention belong to inference"
        if layout.attention_dp > 1 or layout.dcp > 1
        else "a 4-bit base is sharded over data-parallel ranks only"
        if recipe.base == "nf4"
        else f"{recipe.framework} has no {layout.pp} stages of {layout.vp} under {recipe.sharding}",
        Reason.POOL: f"takes {layout.gpus:,} GPUs, the pool has {pool.gpus or 0:,}",
        Reason.NODES: f"{layout.gpus} GPUs do not fill nodes of {pool.gpus_per_node}",
        Reason.DOMAIN: f"{max(layout.tp, layout.etp)} tensor ranks, {joined(pool)}",
        Reason.NETWORK: f"{layout.gpus} GPUs leave the node of {pool.gpus_per_node}, and no network is known",
        Reason.HEADS: f"{shape.heads} query heads over {layout.tp} ranks",
        Reason.KV_HEADS: f"{heads} KV heads over {layout.tp} ranks",
        Reason.STATES: f"{shape.state_heads} state heads over {layout.tp} ranks",
        Reason.WIDTHS: f"widths of {shape.widths or shape.expert_width} over {layout.tp} ranks",
        Reason.EXPERTS: f"{shape.experts} experts over {layout.ep} of {layout.tp * layout.cp * layout.dp} ranks",
        Reason.LAYERS: f"{shape.layers} layers into {layout.pp} stages of {layout.vp}"
        + (f", declared as {len(recipe.stage_layers)} stages" if recipe.stage_layers else ""),
        Reason.BATCH: _batch(recipe, layout, micro),
    }.get(reason)


def _batch(recipe: Recipe, layout: Layout, micro: int) -> str:
    each = layout.dp * micro
    if recipe.global_batch % each:
        return f"{recipe.global_batch} sequences over {layout.dp} ranks in micro-batches of {micro}"
    if layout.cp > 1 and recipe.sequence % (2 * layout.cp):
        return f"{recipe.sequence:,} tokens in two chunks on each of {layout.cp} context ranks"
    return f"{recipe.global_batch // each} micro-batches do not fill {layout.pp} stages of {layout.vp} evenly"


def _compared(row: TrainingRow, best: TrainingRow | None) -> str:
    if best is None or row.layout == best.layout:
        return "nothing is better"
    ratio = row.tokens_s_per_gpu / best.tokens_s_per_gpu
    return (
        f"fits with {row.memory_gib:.1f} GiB; {ratio:.3g} of the tokens per second of {best.layout} "
        f"({row.mfu:.1%} of peak, not {best.mfu:.1%})"
    )
