"""Memory of a training job on the GPUs of its fullest pipeline stage, by the rules of its framework."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.lib.scales import GIB
from clusterwright.model.workloads import Train
from clusterwright.physics.engines.results import Change
from clusterwright.physics.training.memory import BAND, StageMemory, churned, training_memory
from clusterwright.physics.training.recipes import MEMORY, Recipe
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.recipes import adapter_rank, read_recipe, training_layout, why_not_staged
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.searching.training_columns import HOST_SHARE
from clusterwright.plan.sites import Site, reported_memory
from clusterwright.plan.training_changes import training_changes
from clusterwright.plan.training_steps import pool_of

_VALIDATED: Final = "band: public training runs, docs/accuracy.md"
_SOURCE: Final = "reserved ÷ allocated of published runs, 2022 to 2025"
#: Terms that follow from parameters, with how.
_STATES: Final = {
    "weights": "B per parameter of weights on each rank",
    "gradients": "B per parameter of gradients",
    "optimizer": "B per parameter of master weights and moments",
    "gathered layers": "what is gathered whole while a layer works",
}
#: Terms that follow from the tokens of a micro-batch.
_TOKENS: Final = {
    "activations": "kept by the micro-batches in flight",
    "layer at work": "held by the layer at work in the backward pass, where that exceeds the logits",
    "logits": "B per logit, softmax and gradients included, where they exceed the layer at work",
}


def plan_training_memory(
    sheet: Sheet, prefix: str, path: str, train: Train, model: PlannedModel, site: Site, layout: Layout
) -> MemoryPlan | Unplanned:
    """Memory of the fullest GPU of the job; `path` is that of the `train` section."""
    recipe = read_recipe(sheet, prefix, path, train)
    if isinstance(recipe, Unplanned):
        return recipe
    reported = reported_memory(sheet, site)
    if reported is None:
        return Unplanned(prefix, f"memory of the GPUs of pool {site.name} is unknown", (f"{site.path}.shape",))
    against = why_not_staged(layout, len(model.decoder.layers))
    if against:
        return Unplanned(prefix, against, (f"{path}.parallel",))
    estimate = training_memory(model.decoder, training_layout(layout), recipe)
    peak = estimate.peak
    parts = _parts(sheet, prefix, path, train, model, layout, recipe, peak)
    total = sheet.derive(
        f"{prefix}.total",
        "GiB",
        f"sum of the parts; {_VALIDATED}",
        lambda *p: sum(p),
        *(f for _, f in parts),
        band=BAND,
    )
    fits = total.value <= reported.value
    if not fits and ".choices." not in prefix:
        sheet.misfit(
            prefix,
            f"{path}.gpus",
            f"training needs {total} per GPU, {reported} are usable on {site.gpus_per_node}-GPU nodes",
        )
    if ".choices." not in prefix:
        _hosted(sheet, prefix, path, site, estimate.host_gib)
    sought = not fits and site.gpu is not None and ".choices." not in prefix
    return MemoryPlan(
        f"{recipe.sharding} on {train.framework}",
        parts,
        total,
        reported,
        reported,
        fits,
        notes=_notes(sheet, prefix, layout, peak, estimate.host_gib),
        changes=_changes(site, model, layout, recipe, reported.value) if sought else (),
    )


def _hosted(sheet: Sheet, prefix: str, path: str, site: Site, host_gib: float) -> None:
    """Record a misfit where offloaded states exceed what a node's memory has for each of its GPUs."""
    shape = site.shape
    if not host_gib or shape is None or shape.ram is None:
        return
    share = float(shape.ram.value) / GIB / shape.gpus
    have = sheet.published(shape, "ram_per_gpu", share, "GiB", "memory of a node ÷ its GPUs")
    if host_gib > have.value * HOST_SHARE:
        room = f"{have.value * HOST_SHARE:,.0f} GiB ({HOST_SHARE:.0%}) of {have} are there for it"
        sheet.misfit(prefix, f"{path}.offload", f"the host would hold {host_gib:,.0f} GiB of states per GPU, {room}")


def _changes(site: Site, model: PlannedModel, layout: Layout, recipe: Recipe, gpu_gib: float) -> tuple[Change, ...]:
    assert site.gpu is not None
    return training_changes(model.decoder, training_layout(layout), recipe, pool_of(site, site.gpu, None), gpu_gib)


def _parts(
    sheet: Sheet,
    prefix: str,
    path: str,
    train: Train,
    model: PlannedModel,
    layout: Layout,
    recipe: Recipe,
    peak: StageMemory,
) -> tuple[tuple[str, Figure], ...]:
    terms = dict(peak.terms)
    where = f"stage {peak.stage + 1} of {layout.pp}, " if layout.pp > 1 else ""
    parts: list[tuple[str, Figure]] = []
    rank = _rank(sheet, path, train, recipe)
    for label, what in _STATES.items():
        if terms.get(label):
            each = terms[label] / model.total.value
            parts.append(
                (
                    label,
                    sheet.derive(
                        f"{prefix}.{_slug(label)}",
                        "GiB",
                        f"{what} ({recipe.sharding}{rank}), {where}{layout} (physics/training/states.py)",
                        lambda n, e=each: n * e,
                        model.total,
                    ),
                )
            )
    for label, what in _TOKENS.items():
        if terms.get(label):
            parts.append(
                (label, _of_tokens(sheet, prefix, path, train, model, layout, recipe, peak, label, what, where))
            )
    if terms.get("communication buckets"):
        parts.append(("communication buckets", _buckets(sheet, prefix, terms["communication buckets"])))
    parts.append(("allocator reserve", _reserve(sheet, prefix, recipe, parts)))
    context = sheet.assumed(
        f"training.context.{str(layout).replace(' ', '-')}",
        terms["CUDA context and NCCL"],
        "GiB",
        f"CUDA context {MEMORY.context_gib:g} GiB and {MEMORY.communicator_gib:g} GiB per communicator (NCCL buffers)",
    )
    return (*parts, ("CUDA context and NCCL", context))


def _buckets(sheet: Sheet, prefix: str, gib: float) -> Figure:
    elements = sheet.constant(
        "deepspeed.bucket_elements", MEMORY.bucket_elements, "elements", "DeepSpeed configuration documentation, 2025"
    )
    each = gib / MEMORY.bucket_elements
    words = "flat 16-bit buffers of reduce and gather (DeepSpeed)"
    return sheet.derive(f"{prefix}.communication_buckets", "GiB", words, lambda n: n * each, elements)


def _reserve(sheet: Sheet, prefix: str, recipe: Recipe, parts: list[tuple[str, Figure]]) -> Figure:
    """What the allocator holds beyond what comes and goes within a step."""
    reserve = sheet.constant(
        f"training.reserve.{recipe.framework}.{recipe.sharding}", MEMORY.reserved(recipe), "", _SOURCE
    )
    churning = churned((label for label, _ in parts), recipe)
    of = "the parts" if len(churning) == len(parts) else "what comes and goes within a step"
    return sheet.derive(
        f"{prefix}.reserve",
        "GiB",
        f"(reserved ÷ allocated − 1) × sum of {of}",
        lambda r, *p: (r - 1) * sum(p),
        reserve,
        *(f for label, f in parts if label in churning),
    )


def _of_tokens(
    sheet: Sheet,
    prefix: str,
    path: str,
    train: Train,
    model: PlannedModel,
    layout: Layout,
    recipe: Recipe,
    peak: StageMemory,
    label: str,
    what: str,
    where: str,
) -> Figure:
    sequence = sheet.declared(f"{path}.sequence", train.sequence, "tokens")
    batch = sheet.declared(f"{path}.micro_batch", train.micro_batch, "sequences")
    known = {recipe.sequence: dict(peak.terms)}

    def gib(s: float, b: float) -> float:
        tokens = max(1, round(s))
        if tokens not in known:
            changed = training_memory(model.decoder, training_layout(layout), replace(recipe, sequence=tokens))
            known[tokens] = dict(changed.stages[peak.stage].terms)
        return known[tokens][label] * b / train.micro_batch

    return sheet.derive(
        f"{prefix}.{_slug(label)}",
        "GiB",
        f"{what}, {where}{train.recompute} recompute (physics/training/activations.py)",
        gib,
        sequence,
        batch,
    )


def _rank(sheet: Sheet, path: str, train: Train, recipe: Recipe) -> str:
    """The rank of adapters in words, kept as a figure."""
    if recipe.adapter_rank is None:
        return ""
    adapter_rank(sheet, path, train)
    return f", adapters of rank {recipe.adapter_rank} on linear layers, base in {recipe.base}"


def _notes(sheet: Sheet, prefix: str, layout: Layout, peak: StageMemory, host_gib: float) -> tuple[str, ...]:
    notes = []
    if layout.pp > 1:
        notes.append(f"stage {peak.stage + 1} of {layout.pp} is the fullest, with {peak.layers} layers")
    if host_gib:
        host = sheet.planned(f"{prefix}.host", host_gib, "GiB", "states that the host holds per GPU (offload)")
        notes.append(f"the host holds {host} of states per GPU")
    return tuple(notes)


def _slug(label: str) -> str:
    return label.replace(" ", "_")
