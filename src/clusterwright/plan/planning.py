"""`plan_architecture`: from a document and a catalogue to a plan."""

from __future__ import annotations

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.figures import CARRIES, Figure, Origin
from clusterwright.model.documents import Document
from clusterwright.model.workloads import Goal, Workload
from clusterwright.plan.collectives import plan_network
from clusterwright.plan.drafts import Draft, allowed_sites
from clusterwright.plan.economics import Use, plan_compute, plan_costs, read_use
from clusterwright.plan.gathering import Overlay, Sheet
from clusterwright.plan.models import find_model
from clusterwright.plan.placing import Nodes, Placement
from clusterwright.plan.results.clusters import PoolPlan
from clusterwright.plan.results.money import CapacityPlan, EconomicsPlan, UnitCost
from clusterwright.plan.results.payloads import PayloadPlan
from clusterwright.plan.results.plans import Assumption, Plan, WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan
from clusterwright.plan.service_drafts import draft_service
from clusterwright.plan.sites import Site, find_sites
from clusterwright.plan.spares import plan_spares
from clusterwright.plan.splits import draft_split
from clusterwright.plan.spreading import groups_of, place_to_survive
from clusterwright.plan.training_drafts import draft_training
from clusterwright.plan.unit_costs import plan_economics
from clusterwright.plan.workloads import finish_workload
from clusterwright.plan.yields import implied_utilisation, read_yields


def plan_architecture(
    document: Document, catalogue: Catalogue, *, measured: Overlay | None = None, goal: Goal | None = None
) -> Plan:
    """Plan everything that the file describes.

    Args:
        measured: name of a figure → measurement; replaces declared, published, assumed or estimated values where
            `choosing.PRECEDENCE` and its scope let it.
        goal: what layouts that no workload declares are best in, over what the file says.

    Returns:
        A plan; what cannot be planned is in `unplanned`, what does not hold in `misfits`. Never raises for content.
    """
    sheet = Sheet(document, catalogue, measured or {})
    sites = find_sites(sheet)
    sheet.nodes = max(1, sum(len(s.working) for s in sites))
    drafts = [
        _draft(sheet, name, w, sites, goal or w.goal or "cost") for name, w in sheet.architecture.workloads.items()
    ]
    pools = [Nodes(s.name, s.working, s.gpus_per_node) for s in sites]
    drafts, placement = place_to_survive(drafts, pools)
    groups = groups_of(drafts)
    _check_placement(sheet, groups, placement, sites)
    use = read_use(sheet)
    workloads = tuple(finish_workload(sheet, d, groups, placement, pools, use) for d in drafts)
    _check_capacity(sheet, workloads, sites)
    payload_rate = _payload_rate(sheet, workloads)
    network = plan_network(sheet, sites)
    economics = _economics(sheet, sites, workloads, drafts, use)
    return Plan(
        cluster=sheet.architecture.cluster.name,
        workloads=workloads,
        pools=tuple(_pool(sheet, s, placement) for s in sites),
        network=network,
        payload_rate=payload_rate,
        economics=economics,
        figures=dict(sheet.figures),
        assumptions=rank(headlines(workloads, economics)),
        misfits=tuple(sheet.misfits),
        unplanned=tuple(sheet.unplanned),
        limits=tuple(sheet.limits),
        compute_month=sheet.figures.get("economics.compute"),
    )


def _draft(sheet: Sheet, name: str, workload: Workload, sites: tuple[Site, ...], goal: Goal) -> Draft:
    """Model, pool, layout, memory, replicas of one workload."""
    serve = workload.serve
    if serve is not None and serve.disaggregated is not None:
        return draft_split(sheet, name, workload, serve, sites)
    model = find_model(sheet, name, workload)
    allowed = allowed_sites(sheet, name, workload, sites)
    if isinstance(allowed, Unplanned):
        return Draft(name, workload, None, model, None, allowed)
    if serve is not None:
        return draft_service(sheet, name, workload, serve, allowed, model, goal)
    if workload.train is not None:
        return draft_training(sheet, name, workload, workload.train, allowed, model, goal)
    reason = sheet.miss(
        f"workloads.{name}", "states neither serve nor train", f"workloads.{name}.serve", f"workloads.{name}.train"
    )
    return Draft(name, workload, allowed[0], model, None, reason)


def _check_placement(sheet: Sheet, drafts: list[Draft], placement: Placement, sites: tuple[Site, ...]) -> None:
    """Everything together must fit the pools."""
    for draft in drafts:
        request = draft.request
        if request is None:
            continue
        placed = placement.placed.get(request.workload, 0)
        if placed >= request.replicas:
            continue
        site = next(s for s in sites if s.name == request.pool)
        others = sum(len(a.gpus) for a in placement.assignments if a.pool == site.name and a.workload != draft.name)
        what = f"{request.replicas - placed} of {request.replicas} replicas" if draft.serve else "the job"
        sheet.misfit(
            f"workloads.{draft.name}.placement",
            _count_path(draft),
            f"{what} of {_count(request.gpus, 'GPU')} find no place: pool {site.name} has {_working(site)} of "
            f"{_count(site.gpus_per_node, 'GPU')}" + (f", other workloads take {others} of them" if others else ""),
        )


def _count_path(draft: Draft) -> str:
    """Field of the file that says how many there are."""
    if draft.serve is None:
        return f"workloads.{draft.name}.train.gpus"
    if draft.serve.disaggregated is None:
        return f"workloads.{draft.name}.serve.replicas"
    name, half = (draft.name, "decode") if draft.first else (draft.name.removesuffix(".prefill"), "prefill")
    return f"workloads.{name}.serve.disaggregated.{half}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _working(site: Site) -> str:
    spares = len(site.nodes) - len(site.working)
    if not spares:
        return _count(len(site.nodes), "node")
    return f"{_count(len(site.working), 'node')} beside {_count(spares, 'spare')}"


def _check_capacity(sheet: Sheet, workloads: tuple[WorkloadPlan, ...], sites: tuple[Site, ...]) -> None:
    """The declared rates of a pool's services must fit its GPU-months at the declared useful share."""
    for site in sites:
        served = [w for w in workloads if w.pool == site.name and w.service and isinstance(w.capacity, CapacityPlan)]
        months = sum(w.capacity.gpu_months.value for w in served if isinstance(w.capacity, CapacityPlan))
        if months > site.gpus:
            sheet.misfit(
                f"workloads.{served[0].name}.capacity",
                "economics.utilisation",
                f"the declared rates need {months:.4g} GPU-months a month at the declared useful share, "
                f"pool {site.name} has {site.gpus} GPUs",
            )


def _pool(sheet: Sheet, site: Site, placement: Placement) -> PoolPlan:
    used = sum(len(a.gpus) for a in placement.assignments if a.pool == site.name)
    return PoolPlan(
        site.name,
        site.nodes,
        site.gpu.name if site.gpu else "",
        site.gpus_per_node,
        site.domain_gpus,
        used,
        plan_spares(sheet, site),
    )


def _payload_rate(sheet: Sheet, workloads: tuple[WorkloadPlan, ...]) -> Figure | None:
    """GB/s when every workload loads at once, as after a power loss."""
    rates = [w.payload.required_rate for w in workloads if isinstance(w.payload, PayloadPlan)]
    if not rates:
        return None
    return sheet.derive("payload_rate", "GB/s", "sum over workloads, all loading at once", lambda *r: sum(r), *rates)


def _economics(
    sheet: Sheet,
    sites: tuple[Site, ...],
    workloads: tuple[WorkloadPlan, ...],
    drafts: list[Draft],
    use: Use | Unplanned,
) -> EconomicsPlan | Unplanned:
    if sheet.architecture.economics is None:
        plan_compute(sheet, sites)
        return sheet.miss("economics", "the file has no economics", "economics")
    costs = plan_costs(sheet, sites)
    if isinstance(costs, Unplanned):
        return costs
    if isinstance(use, Unplanned):
        return sheet.miss("economics", use.reason, *use.missing)
    yields = read_yields(sheet, workloads, drafts)
    implied = implied_utilisation(sheet, workloads, costs)
    return plan_economics(sheet, costs, use, yields, implied, sites)


def headlines(workloads: tuple[WorkloadPlan, ...], economics: EconomicsPlan | Unplanned) -> list[Figure]:
    """The figures that decisions rest on, in the order in which they are shown."""
    found: list[Figure | Unplanned | None] = []
    for workload in workloads:
        if not isinstance(workload.memory, Unplanned):
            found.append(workload.memory.total)
        if isinstance(workload.service, ServicePlan):
            found += [workload.service.replica_rate, workload.service.ttft, workload.service.tpot]
        if isinstance(workload.training, TrainingPlan):
            found.append(workload.training.time_to_target)
        if isinstance(workload.payload, PayloadPlan):
            found.append(workload.payload.cold_start)
    if isinstance(economics, EconomicsPlan):
        units = [u for u in economics.units if isinstance(u, UnitCost)]
        found += [u.unit_cost for u in units] or [economics.total]
        found += [a.unit_cost for u in units for a in u.alternatives]
    return [f for f in found if isinstance(f, Figure)]


def rank(figures: list[Figure]) -> tuple[Assumption, ...]:
    """Assumed leaves that carry a figure, each beside the one it moves most, largest effect first."""
    strongest: dict[str, Assumption] = {}
    for figure in figures:
        for leaf, effect in figure.effects:
            if leaf.own_origin is not Origin.ASSUMED or effect < CARRIES:
                continue
            known = strongest.get(leaf.name)
            if known is None or effect > known.effect:
                strongest[leaf.name] = Assumption(leaf, effect, figure.name)
    return tuple(sorted(strongest.values(), key=lambda a: (-a.effect, a.leaf.name)))
