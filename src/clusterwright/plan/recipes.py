"""How a file trains a model, in the terms of the training estimators (physics/training)."""

from __future__ import annotations

from typing import Final, cast, get_args

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Train
from clusterwright.physics.layouts import Layout as EngineLayout
from clusterwright.physics.training.recipes import SHARDS_WEIGHTS, Framework, Precision, Recipe, Sharding
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.refusals import Unplanned

#: Words in a framework's name → framework whose memory and speed are modelled; the first that occurs counts.
_FRAMEWORKS: Final[tuple[tuple[str, Framework], ...]] = (
    ("megatron-deepspeed", "megatron-deepspeed"),
    ("megatron", "megatron"),
    ("nemo", "megatron"),
    ("deepspeed", "deepspeed"),
    ("torchtitan", "torchtitan"),
)
#: Layers that embedding and head count for when layers are dealt to virtual stages (Megatron-LM `arguments.py`,
#: `--account-for-embedding-in-pipeline-split` and `--account-for-loss-in-pipeline-split`).
TABLE_LAYERS: Final = 2
#: Rank of adapters where the file states none.
ADAPTER_RANK: Final = 16


def framework_of(train: Train) -> Framework | None:
    """The modelled framework that the file names, None for others."""
    name = train.framework.lower()
    return next((family for word, family in _FRAMEWORKS if word in name), None)


def read_recipe(sheet: Sheet, subject: str, path: str, train: Train) -> Recipe | Unplanned:
    """The recipe of a `train` section; a framework that is not modelled is planned as one that shards alike."""
    if train.precision not in get_args(Precision):
        return sheet.miss(subject, f"training in {train.precision} is not modelled", f"{path}.precision")
    framework = framework_of(train)
    if framework is None:
        framework = "torchtitan" if train.sharding in ("fsdp", "ddp") else "deepspeed"
        sheet.limit(f"{train.framework} is planned as {framework}, which shards in the same way ({train.sharding})")
    if train.offload == "parameters" and train.sharding not in SHARDS_WEIGHTS:
        return sheet.miss(
            subject,
            f"parameters are offloaded only where they are sharded (zero3, fsdp), not under {train.sharding}",
            f"{path}.offload",
        )
    distributed = framework == "megatron" and train.sharding == "zero1"
    return Recipe(
        framework=framework,
        sharding="distributed" if distributed else cast("Sharding", train.sharding),
        precision=cast("Precision", train.precision),
        sequence=int(train.sequence.value),
        micro_batch=train.micro_batch,
        global_batch=train.global_batch,
        recompute=train.recompute,
        modules=train.recompute_modules or ("core_attn",),
        logits=train.logits,
        expandable=train.expandable_segments,
        offload=train.offload,
        adapter_rank=None if train.method == "full" else train.adapter_rank or ADAPTER_RANK,
        base="nf4" if train.method == "qlora" else "bf16",
    )


def adapter_rank(sheet: Sheet, path: str, train: Train) -> Figure:
    """Rank of adapters, declared or assumed; `path` is that of the `train` section."""
    if train.adapter_rank is not None:
        return sheet.declared(f"{path}.adapter_rank", train.adapter_rank, "")
    return sheet.assumed("training.adapter_rank", ADAPTER_RANK, "", "the file states no adapter_rank")


def training_layout(layout: Layout) -> EngineLayout:
    """The layout in the estimators' terms."""
    return EngineLayout(tp=layout.tp, pp=layout.pp, dp=layout.dp, ep=layout.ep, cp=layout.cp, vp=layout.vp)


def why_not_staged(layout: Layout, layers: int) -> str:
    """Why the layers do not divide into the stages, or ""; the outer virtual ones may hold a table alone."""
    chunks, most = layout.pp * layout.vp, layers + (TABLE_LAYERS if layout.vp > 1 else 0)
    return f"{layers} layers do not fill {chunks} stages" if layout.pp > layers or chunks > most else ""
