"""A job before anything is placed: its layout, memory, and what it could do on other numbers of GPUs."""

from __future__ import annotations

from clusterwright.model.workloads import Goal, Train, Workload
from clusterwright.plan.drafts import Draft, request_of
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.layouts import declared_layout, failure_domain, level_of, why_impossible
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.recipes import read_recipe
from clusterwright.plan.results.layouts import Layout, PlacementChoice
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sites import Site
from clusterwright.plan.training_layouts import Found, find_layouts, front_of
from clusterwright.plan.training_memory import plan_training_memory


def draft_training(
    sheet: Sheet,
    name: str,
    workload: Workload,
    train: Train,
    sites: tuple[Site, ...],
    model: PlannedModel | Unplanned,
    goal: Goal,
) -> Draft:
    """The job on the first pool that it may run on, in the layout that it declares or the search finds."""
    path, prefix, site = f"workloads.{name}.train", f"workloads.{name}", sites[0]
    if len(sites) > 1:
        sheet.limit(f"a workload is planned on one pool: {name} on {site.name}, which of its pools comes first")
    declared = declared_layout(train.parallel) if train.parallel else None
    request = request_of(sheet, name, workload, site, Layout(dp=train.gpus), 1)
    if isinstance(model, Unplanned):
        memory = Unplanned(f"{prefix}.memory", model.reason, model.missing)
        layout = declared or Layout(dp=train.gpus)
        _check_gpus(sheet, name, layout, train)
        return Draft(name, workload, site, model, layout, memory, request=request, wanted=1)
    found = _search(sheet, name, train, model, site, goal)
    layout = declared or (found.best if found else Layout(dp=train.gpus))
    _check_gpus(sheet, name, layout, train)
    against = why_impossible(layout, site, model.decoder, crossing=layout.declared)
    if against:
        sheet.misfit(f"{prefix}.placement", f"{path}.parallel", against)
    planned = plan_training_memory(sheet, f"{prefix}.memory", path, train, model, site, layout)
    runs = not against and (isinstance(planned, Unplanned) or planned.fits)
    why = "declared" if declared else found.why if found else "data parallel; no layout could be searched"
    chosen = _choice(site, layout, planned, against, why, chosen=True)
    return Draft(
        name, workload, site, model, layout, planned, _choices(sheet, name, train, model, site, chosen),
        request=request if runs else None, wanted=1, front=front_of(name, found, layout) if found else None,
    )  # fmt: skip


def _check_gpus(sheet: Sheet, name: str, layout: Layout, train: Train) -> None:
    if layout.gpus != train.gpus:
        sheet.misfit(
            f"workloads.{name}.placement",
            f"workloads.{name}.train.parallel",
            f"the layout {layout} has {layout.gpus} GPUs, gpus says {train.gpus}",
        )


def _search(sheet: Sheet, name: str, train: Train, model: PlannedModel, site: Site, goal: Goal) -> Found | None:
    """All layouts of the job; None where recipe or GPU are not modelled, which the memory plan says."""
    if site.gpu is None:
        return None
    recipe = read_recipe(sheet, f"workloads.{name}.memory", f"workloads.{name}.train", train)
    return None if isinstance(recipe, Unplanned) else find_layouts(sheet, train, recipe, model, site, site.gpu, goal)


def _choices(
    sheet: Sheet, name: str, train: Train, model: PlannedModel, site: Site, chosen: PlacementChoice
) -> tuple[PlacementChoice, ...]:
    """What is taken, and what the job could do data parallel on a GPU, a node, all nodes: one choice of each level."""
    by_level = {chosen.level: chosen}
    for wide in dict.fromkeys((1, site.gpus_per_node, site.gpus)):
        layout = Layout(dp=wide)
        if wide == chosen.layout.gpus or train.global_batch % wide or level_of(layout, site) in by_level:
            continue
        prefix = f"workloads.{name}.choices.{str(layout).replace(' ', '-')}.memory"
        memory = plan_training_memory(sheet, prefix, f"workloads.{name}.train", train, model, site, layout)
        by_level[level_of(layout, site)] = _choice(
            site, layout, memory, why_impossible(layout, site, model.decoder), ""
        )
    return tuple(sorted(by_level.values(), key=lambda choice: ("gpu", "node", "nodes").index(choice.level)))


def _choice(
    site: Site, layout: Layout, memory: MemoryPlan | Unplanned, against: str, why: str, *, chosen: bool = False
) -> PlacementChoice:
    total = memory.total if isinstance(memory, MemoryPlan) else None
    if not against and isinstance(memory, Unplanned):
        against = memory.reason
    if not against and isinstance(memory, MemoryPlan) and not memory.fits:
        against = f"needs {memory.total} per GPU, {memory.usable} are usable"
    reason = "; ".join(words for words in (why, against) if words) or "is possible, the file says other GPUs"
    domain = failure_domain(layout, site, "job")
    return PlacementChoice(level_of(layout, site), layout, not against, chosen, reason, domain, total)
