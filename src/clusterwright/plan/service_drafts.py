"""A service before anything is placed: its pool, layout, memory, what one replica carries, and how many are needed."""

from __future__ import annotations

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Goal, Serve, Workload
from clusterwright.physics.caches_by_layer import KV_BITS
from clusterwright.plan.drafts import Draft, count_replicas, request_of
from clusterwright.plan.engines import engine_unknown, read_engine
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.layouts import declared_layout, why_impossible
from clusterwright.plan.models import PlannedModel, served_in
from clusterwright.plan.results.layouts import Layout, PlacementChoice
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.service_layouts import Found, better, choice_of, find_layouts, front_of, other_levels
from clusterwright.plan.services import Load, read_load, replica_rate
from clusterwright.plan.serving_memory import lengths, plan_serving_memory
from clusterwright.plan.serving_questions import read_question
from clusterwright.plan.sites import Site
from clusterwright.plan.speculation import read_drafting


def draft_service(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    sites: tuple[Site, ...],
    model: PlannedModel | Unplanned,
    goal: Goal,
) -> Draft:
    """The service on the pool and in the layout that it declares, else on the best by its goal."""
    path, prefix, site = f"workloads.{name}.serve", f"workloads.{name}", sites[0]
    declared = declared_layout(serve.parallel) if serve.parallel else None
    if isinstance(model, Unplanned):
        memory = Unplanned(f"{prefix}.memory", model.reason, model.missing)
        return _unmodelled(sheet, name, workload, serve, site, model, declared, memory)
    unknown = engine_unknown(sheet, f"{prefix}.memory", path, serve)
    if unknown is not None:
        return _unmodelled(sheet, name, workload, serve, site, model, declared, unknown)
    site, found = _search(sheet, name, workload, serve, sites if declared is None else sites[:1], model, goal)
    if len(sites) > 1:
        why = "which of its pools comes first" if declared or found is None else "the best of its pools"
        sheet.limit(f"a workload is planned on one pool: {name} on {site.name}, {why}")
    layout = declared or (found.best if found else None)
    if serve.speculation and not declared:
        sheet.limit(f"the layout of {name} was searched without its speculation")
    if layout is None:
        return _nowhere(sheet, name, workload, serve, site, model, found)
    against = why_impossible(layout, site, model.decoder) if declared else ""
    if against:
        sheet.misfit(f"{prefix}.placement", f"{path}.parallel", against)
    planned = plan_serving_memory(sheet, f"{prefix}.memory", path, serve, model, site, layout)
    load, rate = _load(sheet, name, workload, serve, model, site, layout, planned, against)
    for_load, needed, for_failures = count_replicas(sheet, name, workload, serve, site, layout, rate, load)
    wanted = serve.replicas or for_failures or needed
    fits = not against and isinstance(planned, MemoryPlan) and planned.fits
    carries = not isinstance(rate, Figure) or rate.value > 0
    reasons = ("declared" if declared else found.why if found else "", against or _misses(planned, carries))
    total = planned.total if isinstance(planned, MemoryPlan) else None
    chosen = choice_of(site, layout, fits and carries, "; ".join(r for r in reasons if r), total, chosen=True)
    choices = _choices(sheet, name, serve, model, site, found, chosen)
    runs = not against and (isinstance(planned, Unplanned) or planned.fits)
    return Draft(
        name, workload, site, model, layout, planned, choices, load, rate, needed, for_load, for_failures,
        request_of(sheet, name, workload, site, layout, wanted) if runs else None,
        lengths(sheet, path, serve), wanted, front_of(name, found, layout) if found and not serve.speculation else None,
    )  # fmt: skip


def _search(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    sites: tuple[Site, ...],
    model: PlannedModel,
    goal: Goal,
) -> tuple[Site, Found | None]:
    """The best pool with all layouts on it; the first one where none can be searched."""
    best: tuple[Site, Found] | None = None
    if serve.kv_precision is not None and serve.kv_precision not in KV_BITS:
        return sites[0], None
    served, engine = (
        served_in(sheet, f"workloads.{name}.serve.precision", model, serve.precision),
        read_engine(serve.engine),
    )

    def runs(layout: Layout) -> bool:
        drafts = serve.speculation and read_drafting(sheet.catalogue, serve, served.decoder, engine, layout)
        return not isinstance(drafts, str)

    for site in sites:
        if site.gpu is None or not site.working:
            continue
        question = read_question(sheet, name, workload, serve, served, site, site.gpu, goal)
        found = find_layouts(sheet, question, runs)
        if best is None or better(found, best[1]):
            best = site, found
    return best or (sites[0], None)


def _unmodelled(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    site: Site,
    model: PlannedModel | Unplanned,
    declared: Layout | None,
    memory: Unplanned,
) -> Draft:
    """A service whose memory nobody can plan: placed by its declared layout, carrying its declared rate."""
    both = lengths(sheet, f"workloads.{name}.serve", serve)
    stated = sheet.maybe(f"workloads.{name}.serve.replica_rate", serve.replica_rate, "req/s")
    unknown = Unplanned(f"workloads.{name}.service.replica_rate", memory.reason, memory.missing)
    rate = None if declared is None or isinstance(model, Unplanned) else stated or unknown
    for_load, needed, for_failures = None, serve.replicas or 1, None
    if declared is not None and isinstance(rate, Figure):
        for_load, needed, for_failures = count_replicas(sheet, name, workload, serve, site, declared, rate, unknown)
    wanted = serve.replicas or for_failures or needed
    request = request_of(sheet, name, workload, site, declared, wanted) if declared else None
    return Draft(
        name, workload, site, model, declared, memory, (), unknown, rate, needed, for_load, for_failures, request,
        both, wanted,
    )  # fmt: skip


def _nowhere(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, site: Site, model: PlannedModel, found: Found | None
) -> Draft:
    """A service without a layout that fits, with the layouts that came furthest."""
    prefix, path = f"workloads.{name}", f"workloads.{name}.serve"
    both = lengths(sheet, path, serve)
    if found is None:
        memory = plan_serving_memory(sheet, f"{prefix}.choices.TP1.memory", path, serve, model, site, Layout())
        if isinstance(memory, Unplanned):
            return Draft(name, workload, site, model, None, memory, lengths=both)
    reason = f"no layout in a GPU, a node or several nodes of pool {site.name} holds the model"
    if found is not None and Reason.MEMORY not in found.search.reasons():
        reason = f"no layout of the model is possible on pool {site.name}"
    choices = _choices(sheet, name, serve, model, site, found, None)
    if choices:
        reason += f"; {choices[-1].layout}: {choices[-1].reason}"
    sheet.misfit(f"{prefix}.memory", f"{prefix}.pools", reason)
    front = None if found is None else front_of(name, found, None)
    return Draft(
        name, workload, site, model, None, Unplanned(f"{prefix}.memory", reason), choices, lengths=both, front=front
    )


def _choices(
    sheet: Sheet,
    name: str,
    serve: Serve,
    model: PlannedModel,
    site: Site,
    found: Found | None,
    chosen: PlacementChoice | None,
) -> tuple[PlacementChoice, ...]:
    """One choice for a GPU, a node, several nodes: what is taken where it lies, else the best there."""
    choices = [] if chosen is None else [chosen]
    for layout, possible, reason in [] if found is None else other_levels(found, chosen, site):
        prefix = f"workloads.{name}.choices.{str(layout).replace(' ', '-')}.memory"
        memory = plan_serving_memory(sheet, prefix, f"workloads.{name}.serve", serve, model, site, layout)
        total = memory.total if isinstance(memory, MemoryPlan) else None
        choices.append(choice_of(site, layout, possible, reason, total))
    return tuple(sorted(choices, key=lambda choice: ("gpu", "node", "nodes").index(choice.level)))


def _misses(memory: MemoryPlan | Unplanned, carries: bool) -> str:
    if isinstance(memory, Unplanned):
        return memory.reason
    if not memory.fits and memory.total.value > memory.usable.value:
        return f"needs {memory.total} per GPU, {memory.usable} are usable"
    if not memory.fits:
        return "; ".join(memory.why)
    return "" if carries else "fits, but no rate meets the latency targets"


def _load(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    model: PlannedModel,
    site: Site,
    layout: Layout,
    memory: MemoryPlan | Unplanned,
    against: str,
) -> tuple[Load | Unplanned, Figure | Unplanned]:
    path, prefix = f"workloads.{name}.serve", f"workloads.{name}.service"
    if against:
        impossible = Unplanned(f"{prefix}.replica_rate", against)
        return impossible, impossible
    if isinstance(memory, Unplanned):
        load: Load | Unplanned = Unplanned(f"{prefix}.replica_rate", memory.reason, memory.missing)
    else:
        load = read_load(sheet, name, workload, serve, model, site, layout, memory, prefix)
    if isinstance(load, Load):
        return load, replica_rate(sheet, prefix, path, serve, load, len(site.nodes))
    stated = sheet.maybe(f"{path}.replica_rate", serve.replica_rate, "req/s")
    return load, stated or load
