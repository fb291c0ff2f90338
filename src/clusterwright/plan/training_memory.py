"""Memory of a training job per GPU: states by sharding, gathered layers, activations, logits, reserve."""

from __future__ import annotations

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Train
from clusterwright.physics.serving_memory import NON_TORCH_GIB
from clusterwright.physics.training_memory import (
    RESERVE,
    RESERVE_ELSEWHERE,
    SELECTIVE,
    SELECTIVE_ELSEWHERE,
    activation_bytes_per_layer,
    gathered_bytes,
    gathered_stage_bytes,
    logits_bytes,
    micro_batches_in_flight,
    state_bytes_per_parameter,
)
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.results import Layout, MemoryPlan, Unplanned
from clusterwright.plan.sites import Site, reported_memory

_GIB = 2**30
#: Factors on the estimate between which 14 of 16 published torchtitan runs lie (Llama 3.1 8B, 70B, 405B; two constants
#: were set with them in view).
_BAND = (0.86, 1.16)
_VALIDATED = "14 of 16 published torchtitan runs, in view of which two constants were set"
#: B per parameter in words; Megatron's ZeRO-1 is its distributed optimizer with fp32 gradients.
_SHARDING = {
    "ddp": "16 B/parameter",
    "zero1": "4 + 12/N B/parameter",
    "zero2": "2 + 14/N B/parameter",
    "zero3": "16/N B/parameter",
    "fsdp": "16/N B/parameter",
    "distributed": "6 + 12/N B/parameter (distributed optimizer)",
}
#: Sharding that splits weights themselves.
_WHOLE = ("zero3", "fsdp")


def plan_training_memory(
    sheet: Sheet, prefix: str, path: str, train: Train, model: PlannedModel, site: Site, layout: Layout
) -> MemoryPlan | Unplanned:
    """Memory of the fullest GPU of the job; `path` is that of the `train` section."""
    if train.method != "full":
        return sheet.miss(
            prefix, f"memory of {train.method} depends on adapters that the file does not describe", f"{path}.method"
        )
    reported = reported_memory(sheet, site)
    if reported is None:
        return Unplanned(prefix, f"memory of the GPUs of pool {site.name} is unknown", (f"{site.path}.shape",))
    runtime = sheet.assumed(
        "training.non_torch",
        NON_TORCH_GIB[4][1],
        "GiB",
        "context and NCCL buffers as in inference logs at TP4; no training logs evaluated",
    )
    usable = sheet.derive(
        f"{prefix}.usable", "GiB", "reported memory − context and NCCL buffers", lambda r, n: r - n, reported, runtime
    )
    parts = [
        ("weights, gradients, optimizer", _states(sheet, prefix, path, train, model, layout)),
        ("gathered layers", _gathered(sheet, prefix, train, model, layout)),
        ("activations", _activations(sheet, prefix, path, train, model, layout)),
        ("logits", _logits(sheet, prefix, path, train, model, layout)),
    ]
    parts = [(label, figure) for label, figure in parts if figure.value]
    reserve = _reserve(sheet, train)
    parts.append(
        (
            "allocator reserve",
            sheet.derive(
                f"{prefix}.reserve",
                "GiB",
                "(reserved ÷ allocated − 1) × sum of the parts",
                lambda r, *p: (r - 1) * sum(p),
                reserve,
                *(f for _, f in parts),
            ),
        )
    )
    total = sheet.derive(
        f"{prefix}.total",
        "GiB",
        "sum of the parts; " + ("band: " + _VALIDATED if _family(train) == "torchtitan" else "not validated"),
        lambda *p: sum(p),
        *(f for _, f in parts),
        band=_BAND if _family(train) == "torchtitan" else None,
    )
    if layout.pp > 1 and ".choices." not in prefix:
        sheet.limit(f"{prefix}: published 405B runs with a pipeline took 0.95 to 1.4 times such an estimate")
    fits = total.value <= usable.value
    if not fits and ".choices." not in prefix:
        sheet.misfit(
            prefix,
            f"{path}.gpus",
            f"training needs {total} per GPU, {usable} are usable on {site.gpus_per_node}-GPU nodes",
        )
    return MemoryPlan(f"{train.sharding} on {train.framework}", tuple(parts), total, usable, reported, fits)


def _family(train: Train) -> str:
    """Framework as the tables of physics/training_memory.py name it, "" for others."""
    name = train.framework.lower()
    return next((k for k in RESERVE if k in name or (k == "megatron" and "nemo" in name)), "")


def _reserve(sheet: Sheet, train: Train) -> Figure:
    family = _family(train)
    if family:
        source = {
            "megatron": "reserved ÷ peak allocated in published Megatron runs, 2024",
            "torchtitan": "twelve published torchtitan runs with full recompute, 2024-12",
        }[family]
        return sheet.constant(f"training.reserve.{family}", RESERVE[family], "", source)
    return sheet.assumed(
        "training.reserve",
        RESERVE_ELSEWHERE,
        "",
        f"reserved ÷ allocated of Megatron; none at hand of {train.framework}",
    )


def _ranks(layout: Layout) -> int:
    """Ranks among which states are divided: context-parallel ranks hold the same weights."""
    return layout.dp * layout.cp


def _states(sheet: Sheet, prefix: str, path: str, train: Train, model: PlannedModel, layout: Layout) -> Figure:
    kept = "distributed" if (_family(train), train.sharding) == ("megatron", "zero1") else train.sharding
    per_parameter = sheet.declared(f"{path}.sharding", state_bytes_per_parameter(kept, _ranks(layout)), "B/parameter")
    split = layout.tp * layout.pp
    experts = split if train.sharding in _WHOLE else layout.pp * max(layout.tp, layout.ep)
    return sheet.derive(
        f"{prefix}.states",
        "GiB",
        f"mixed-precision Adam, {_SHARDING[kept]} over {_ranks(layout)} ranks, ÷ TP{layout.tp}·PP{layout.pp}",
        lambda d, e, r, v, b: (
            (d / split + e / experts + r / layout.pp + v / (layout.tp * min(2, layout.pp))) * b / _GIB
        ),
        model.dense,
        model.experts,
        model.replicated,
        model.vocabulary,
        per_parameter,
    )


def _gathered(sheet: Sheet, prefix: str, train: Train, model: PlannedModel, layout: Layout) -> Figure:
    if train.sharding not in _WHOLE or _ranks(layout) == 1:
        return sheet.planned(f"{prefix}.gathered", 0, "GiB", f"{train.sharding} gathers nothing")
    if layout.pp > 1:
        return sheet.derive(
            f"{prefix}.gathered",
            "GiB",
            f"16-bit weights and fp32 gradients of a stage ÷ TP{layout.tp}, held whole by FSDP2 in a pipeline",
            lambda d, e: gathered_stage_bytes((d + e) / layout.pp / layout.tp) / _GIB,
            model.dense,
            model.experts,
        )
    layers = sheet.published(model.entry, "layers", model.entry.layers, "layers")
    return sheet.derive(
        f"{prefix}.gathered",
        "GiB",
        "the larger of a layer and half the vocabulary tables, two held whole with one gradient, 16 bit",
        lambda d, e, v, n: gathered_bytes(max((d + e) / n, v / 2) / layout.tp) / _GIB,
        model.dense,
        model.experts,
        model.vocabulary,
        layers,
    )


def _tokens(sheet: Sheet, path: str, train: Train) -> tuple[Figure, Figure]:
    return (
        sheet.declared(f"{path}.sequence", train.sequence, "tokens"),
        sheet.declared(f"{path}.micro_batch", train.micro_batch, "sequences"),
    )


def _activations(sheet: Sheet, prefix: str, path: str, train: Train, model: PlannedModel, layout: Layout) -> Figure:
    sequence, batch = _tokens(sheet, path, train)
    layers = sheet.published(model.entry, "layers", model.entry.layers, "layers")
    hidden = sheet.published(model.entry, "hidden", model.entry.hidden, "")
    micro_batches = max(1.0, train.global_batch / (train.micro_batch * layout.dp))
    held = micro_batches_in_flight(layout.pp, micro_batches)
    selective = SELECTIVE.get(_family(train), SELECTIVE_ELSEWHERE)

    def kept(s: float, b: float, h: float, n: float) -> float:
        part = s / layout.cp
        each = activation_bytes_per_layer(part, b, h, model.entry.heads, train.recompute, layout.tp, kept=selective)
        working = activation_bytes_per_layer(part, b, h, model.entry.heads, "none", layout.tp)
        return (each * n / layout.pp * held + (working if train.recompute == "full" else 0)) / _GIB

    return sheet.derive(
        f"{prefix}.activations",
        "GiB",
        f"kept per layer under {train.recompute} recompute × layers × {held:g} micro-batches in flight, and one layer "
        "at work under full recompute (arXiv:2205.05198, flash attention)",
        kept,
        sequence,
        batch,
        hidden,
        layers,
    )


def _logits(sheet: Sheet, prefix: str, path: str, train: Train, model: PlannedModel, layout: Layout) -> Figure:
    sequence, batch = _tokens(sheet, path, train)
    vocabulary = sheet.published(model.entry, "vocab", model.entry.vocab, "tokens")
    return sheet.derive(
        f"{prefix}.logits",
        "GiB",
        "14 B × tokens of a micro-batch × vocabulary ÷ TP; a fused or chunked loss needs less",
        lambda s, b, v: logits_bytes(s / layout.cp * b, v, layout.tp) / _GIB,
        sequence,
        batch,
        vocabulary,
    )
