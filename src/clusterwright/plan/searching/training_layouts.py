"""Layouts of training: those that are tried, and which of them model, batch and pool allow.

Placement: tensor ranks stay in the domain without NICs; what is left of the GPUs over tensor, pipeline and context
ranks are data-parallel ranks, and experts spread over ranks of all kinds but stages.

Sources: Megatron-LM `training/arguments.py` (an interleaved schedule needs micro-batches that stages divide; experts ×
expert ranks), Megatron-Core "Context parallelism" (two chunks of a sequence per rank), DeepSpeed documentation
"Pipeline Parallelism" (not with ZeRO-2 and ZeRO-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from clusterwright.physics.training.recipes import SHARDS_WEIGHTS, Recipe
from clusterwright.plan.searching.columns import SIZES, Bools, Ints, gpus, widths
from clusterwright.plan.searching.machines import inner_domain
from clusterwright.plan.searching.questions import TrainingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving_layouts import kv_uneven, uneven
from clusterwright.plan.searching.shapes import Shape

#: Largest sizes that are tried; larger ones are judged when asked for.
_MOST_TENSOR: Final = 16
_MOST_STAGES: Final = 64
_MOST_CONTEXT: Final = 16
_MOST_VIRTUAL: Final = 20
_MOST_MICRO: Final = 8
#: Layers that embedding and head count for when layers are dealt to virtual stages.
_TABLE_LAYERS: Final = 2


def training_layouts(question: TrainingQuestion, shape: Shape, job_gpus: int) -> dict[str, Ints]:
    """Columns of all sizes that are tried on so many GPUs, with `micro_batch`."""
    recipe, node = question.recipe, question.pool.gpus_per_node
    tensor = widths(min(_MOST_TENSOR, inner_domain(question.pool), job_gpus), node)
    stages = widths(min(_MOST_STAGES, shape.layers, job_gpus), 3, 6, 12)
    context = [c for c in widths(_MOST_CONTEXT) if recipe.sequence % (2 * c) == 0 or c == 1]
    experts = [e for e in widths(max(shape.experts, 1)) if shape.experts == 0 or shape.experts % e == 0]
    micro = widths(_MOST_MICRO) if "micro_batch" in question.free else [recipe.micro_batch]
    axes = [tensor, stages, context, range(1, _MOST_VIRTUAL + 1), experts, micro]
    tp, pp, cp, vp, ep, batch = (a.ravel() for a in np.meshgrid(*(np.array(list(a)) for a in axes), indexing="ij"))
    copies = job_gpus // (tp * pp * cp)
    whole = (copies * tp * pp * cp == job_gpus) & ~((vp > 1) & (pp == 1)) & (pp * vp <= shape.layers + _TABLE_LAYERS)
    whole &= (ep == 1) | (tp * cp * copies % np.maximum(ep, 1) == 0)
    found = dict.fromkeys(SIZES, np.ones(int(whole.sum()), dtype=np.int64))
    found |= {"tp": tp[whole], "pp": pp[whole], "cp": cp[whole], "vp": vp[whole], "ep": ep[whole], "dp": copies[whole]}
    return found | {"micro_batch": batch[whole]}


def structural(question: TrainingQuestion, shape: Shape, columns: Mapping[str, Ints]) -> Ints:
    """(n,) reasons that model, batch and pool give before any memory or time is counted."""
    reason = np.full(len(columns["tp"]), int(Reason.NONE), dtype=np.int64)
    for code, broken in _rules(question, shape, columns):
        reason = np.where((reason == Reason.NONE) & broken, int(code), reason)
    return reason


def _rules(question: TrainingQuestion, shape: Shape, c: Mapping[str, Ints]) -> list[tuple[Reason, Bools]]:
    pool, recipe, total = question.pool, question.recipe, gpus(c)
    domain, node = inner_domain(pool), pool.gpus_per_node
    spread = c["ep"] * c["etp"]
    inside = np.where(spread > 1, c["etp"], c["tp"])
    batch = c["dp"] * c["micro_batch"]
    micro_batches = recipe.global_batch // np.maximum(batch, 1)
    return [
        (Reason.ENGINE, (c["attention_dp"] > 1) | (c["dcp"] > 1) | _not_offered(recipe, c)),
        (Reason.POOL, total > (pool.gpus or total.max(initial=1))),
        (Reason.NODES, (total > node) & (total % node != 0)),
        (Reason.DOMAIN, (c["tp"] > domain) | (c["etp"] > domain)),
        (Reason.NETWORK, (total > max(domain, node)) & (pool.nic_gbytes_s is None)),
        (Reason.HEADS, uneven(shape.heads, c["tp"])),
        (Reason.KV_HEADS, kv_uneven(shape, c["tp"])),
        (Reason.STATES, uneven(shape.state_heads, c["tp"])),
        (Reason.WIDTHS, uneven(shape.widths, c["tp"]) | uneven(shape.expert_width, inside)),
        (
            Reason.EXPERTS,
            (uneven(shape.experts, c["ep"]) if shape.experts else spread > 1)
            | (c["tp"] * c["cp"] * c["dp"] % spread != 0),
        ),
        (Reason.LAYERS, _layers_do_not_divide(recipe, shape, c)),
        (
            Reason.BATCH,
            (recipe.global_batch % batch != 0)
            | ((c["vp"] > 1) & (micro_batches % c["pp"] != 0))
            | ((c["cp"] > 1) & (recipe.sequence % (2 * c["cp"]) != 0)),
        ),
    ]


def _not_offered(recipe: Recipe, c: Mapping[str, Ints]) -> Bools:
    """DeepSpeed pipelines neither with divided gradients or weights nor with virtual stages; a 4-bit base is sharded
    (bitsandbytes "FSDP-QLoRA"), and no tensor, pipeline, context or expert rank has a part of it.
    """
    if recipe.base == "nf4":
        return np.asarray((c["tp"] > 1) | (c["pp"] > 1) | (c["cp"] > 1) | (c["ep"] > 1))
    if recipe.framework not in ("deepspeed", "megatron-deepspeed"):
        return np.zeros(len(c["tp"]), dtype=np.bool_)
    divided = recipe.sharding in ("zero2", *SHARDS_WEIGHTS)
    return np.asarray((c["vp"] > 1) | ((c["pp"] > 1) & divided))


def _layers_do_not_divide(recipe: Recipe, shape: Shape, c: Mapping[str, Ints]) -> Bools:
    """More stages than layers, virtual stages without a pipeline, or other stages than the recipe's uneven ones."""
    wrong = (c["pp"] * c["vp"] > shape.layers + _TABLE_LAYERS) | ((c["vp"] > 1) & (c["pp"] == 1))
    if recipe.stage_layers:
        wrong |= (c["pp"] != len(recipe.stage_layers)) | (c["vp"] > 1)
        wrong |= sum(recipe.stage_layers) != shape.layers
    return np.asarray(wrong)
