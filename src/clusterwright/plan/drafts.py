"""A workload before anything is placed: model, layout, memory, and how many replicas it asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Serve, Train, Workload
from clusterwright.plan.engines import engine_unknown
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.layouts import (
    Candidate,
    choose_layout,
    declared_layout,
    serving_layouts,
    why_impossible,
)
from clusterwright.plan.models import PlannedModel, find_model
from clusterwright.plan.placing import Request, nodes_per_replica
from clusterwright.plan.results import Layout, MemoryPlan, PlacementChoice, Unplanned
from clusterwright.plan.services import Load, read_load, replica_rate, replicas_for_failures, why_unreachable
from clusterwright.plan.serving_memory import lengths, plan_serving_memory
from clusterwright.plan.sites import Site
from clusterwright.plan.training_memory import plan_training_memory


@dataclass(frozen=True)
class Draft:
    """A workload before anything is placed.

    Args:
        site: pool it is planned on, None with the reason in `memory`.
        needed: replicas that carry the load; 1 for training or when no rate is known.
        for_failures: replicas that still carry it after the declared losses, None when the pool does not hold them.
        request: what it asks of the pool; None when it cannot run there.
        wanted: replicas it should have, 0 where nobody knows.
    """

    name: str
    workload: Workload
    site: Site | None
    model: PlannedModel | Unplanned
    layout: Layout | None
    memory: MemoryPlan | Unplanned
    choices: tuple[PlacementChoice, ...] = ()
    load: Load | Unplanned | None = None
    rate: Figure | Unplanned | None = None
    needed: int = 1
    for_load: int | None = None
    for_failures: int | None = None
    request: Request | None = None
    lengths: tuple[Figure, Figure] | None = None
    wanted: int = 0

    @property
    def serve(self) -> Serve | None:
        """Its `serve` section."""
        return self.workload.serve

    @property
    def train(self) -> Train | None:
        """Its `train` section."""
        return self.workload.train

    @property
    def survive(self) -> int:
        """Nodes that may be lost with the load still carried."""
        target = self.workload.target
        return int(target.survive.value) if target and target.survive else 0


def draft_workload(sheet: Sheet, name: str, workload: Workload, sites: tuple[Site, ...]) -> Draft:
    """Model, layout, memory, replicas of one workload on the first pool that it may run on."""
    model = find_model(sheet, name, workload)
    site = _find_site(sheet, name, workload, sites)
    if isinstance(site, Unplanned):
        return Draft(name, workload, None, model, None, site)
    if workload.serve is not None:
        return _draft_service(sheet, name, workload, workload.serve, site, model)
    if workload.train is not None:
        return _draft_training(sheet, name, workload, workload.train, site, model)
    reason = sheet.miss(
        f"workloads.{name}", "states neither serve nor train", f"workloads.{name}.serve", f"workloads.{name}.train"
    )
    return Draft(name, workload, site, model, None, reason)


def _find_site(sheet: Sheet, name: str, workload: Workload, sites: tuple[Site, ...]) -> Site | Unplanned:
    subject = f"workloads.{name}.placement"
    allowed = [s for s in sites if not workload.pools or s.name in workload.pools]
    if not allowed:
        wanted = f"pools {', '.join(workload.pools)}" if workload.pools else "any pool"
        return sheet.miss(subject, f"{wanted}: none with known GPUs", f"workloads.{name}.pools", "pools.*.shape")
    accepted = set[str]()
    for wanted_gpu in workload.gpus:
        known = sheet.catalogue.find_gpu(wanted_gpu)
        if known is None:
            sheet.miss(subject, f"the catalogue has no GPU '{wanted_gpu}'", f"workloads.{name}.gpus")
        else:
            accepted.add(known.name)
    fitting = [s for s in allowed if not accepted or (s.gpu is not None and s.gpu.name in accepted)]
    if not fitting:
        have = ", ".join(s.gpu.name if s.gpu else "unknown" for s in allowed)
        sheet.misfit(subject, f"workloads.{name}.gpus", f"accepts {', '.join(workload.gpus)}, its pools have {have}")
        fitting = allowed
    if len(fitting) > 1:
        sheet.limit(f"a workload is planned on one pool: {name} on {fitting[0].name}, which of its pools comes first")
    return fitting[0]


def _draft_service(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, site: Site, model: PlannedModel | Unplanned
) -> Draft:
    path, prefix = f"workloads.{name}.serve", f"workloads.{name}"
    declared = declared_layout(serve.parallel) if serve.parallel else None
    both = lengths(sheet, path, serve)
    if isinstance(model, Unplanned):
        memory = Unplanned(f"{prefix}.memory", model.reason, model.missing)
        return _unmodelled(sheet, name, workload, serve, site, model, declared, memory)
    unknown = engine_unknown(sheet, f"{prefix}.memory", path, serve)
    if unknown is not None:
        return _unmodelled(sheet, name, workload, serve, site, model, declared, unknown)
    tried = dict.fromkeys(serving_layouts(site))
    if declared is not None:
        tried = {k: None for k in tried if _spread(k) != _spread(declared)} | {declared: None}
    candidates = [_serving_candidate(sheet, name, workload, serve, model, site, layout) for layout in tried]
    choices, layout = choose_layout(candidates, declared, site, "replica")
    if layout is None:
        memory = _nothing_fits(sheet, name, candidates, site)
        return Draft(name, workload, site, model, None, memory, choices, lengths=both)
    against = why_impossible(layout, site, model.decoder)
    if against:
        sheet.misfit(f"{prefix}.placement", f"{path}.parallel", against)
    planned = plan_serving_memory(sheet, f"{prefix}.memory", path, serve, model, site, layout)
    load, rate = _load(sheet, name, workload, serve, model, site, layout, planned, f"{prefix}.service", against)
    for_load, needed, for_failures = _replicas(sheet, name, workload, serve, site, layout, rate, load)
    wanted = serve.replicas or for_failures or needed
    runs = not against and (isinstance(planned, Unplanned) or planned.fits)
    request = _request(sheet, name, workload, site, layout, wanted) if runs else None
    return Draft(
        name, workload, site, model, layout, planned, choices, load, rate, needed, for_load, for_failures, request,
        both, wanted,
    )  # fmt: skip


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
        for_load, needed, for_failures = _replicas(sheet, name, workload, serve, site, declared, rate, unknown)
    wanted = serve.replicas or for_failures or needed
    request = _request(sheet, name, workload, site, declared, wanted) if declared else None
    return Draft(
        name, workload, site, model, declared, memory, (), unknown, rate, needed, for_load, for_failures, request,
        both, wanted,
    )  # fmt: skip


def _spread(layout: Layout) -> tuple[int, ...]:
    return layout.tp, layout.pp, layout.dp, layout.cp


def _serving_candidate(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, model: PlannedModel, site: Site, layout: Layout
) -> Candidate:
    prefix = f"workloads.{name}.choices.{str(layout).replace(' ', '-')}"
    against = why_impossible(layout, site, model.decoder)
    if against:
        return Candidate(layout, Unplanned(prefix, against), None, against)
    memory = plan_serving_memory(sheet, f"{prefix}.memory", f"workloads.{name}.serve", serve, model, site, layout)
    if isinstance(memory, Unplanned) or not memory.fits:
        return Candidate(layout, memory, None)
    unplanned = len(sheet.unplanned)
    _, rate = _load(sheet, name, workload, serve, model, site, layout, memory, f"{prefix}.service")
    del sheet.unplanned[unplanned:]  # what is unknown of a choice not taken is no gap of the plan
    return Candidate(layout, memory, None if not isinstance(rate, Figure) else rate.value > 0)


def _load(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    model: PlannedModel,
    site: Site,
    layout: Layout,
    memory: MemoryPlan | Unplanned,
    prefix: str,
    against: str = "",
) -> tuple[Load | Unplanned, Figure | Unplanned]:
    path = f"workloads.{name}.serve"
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


def _nothing_fits(sheet: Sheet, name: str, candidates: list[Candidate], site: Site) -> Unplanned:
    unknown = next((c.memory for c in candidates if isinstance(c.memory, Unplanned) and not c.why_not), None)
    if unknown is not None:
        return unknown
    reason = f"no layout in a GPU, a node or several nodes of pool {site.name} holds the model"
    sheet.misfit(f"workloads.{name}.memory", f"workloads.{name}.pools", reason)
    return Unplanned(f"workloads.{name}.memory", reason)


def _replicas(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    site: Site,
    layout: Layout,
    rate: Figure | Unplanned,
    load: Load | Unplanned,
) -> tuple[int | None, int, int | None]:
    """(for the load or None, needed, for failures or None)."""
    if isinstance(rate, Unplanned):
        return None, serve.replicas or 1, None
    prefix = f"workloads.{name}.service"
    asked = sheet.declared(f"workloads.{name}.serve.rate", serve.rate, "req/s")
    if not rate.value:
        missed = why_unreachable(load) if isinstance(load, Load) else ""
        sheet.misfit(
            f"{prefix}.replica_rate",
            f"workloads.{name}.target",
            f"at no rate does one replica meet its latency targets{': ' + missed if missed else ''}; more replicas do "
            "not help, a wider layout or shorter prompts may",
        )
        return None, serve.replicas or 1, None
    figure = sheet.derive(
        f"{prefix}.replicas_for_load",
        "replicas",
        "rate ÷ rate of a replica, rounded up, at least 1",
        lambda r, c: max(1, math.ceil(r / c - 1e-9)),
        asked,
        rate,
    )
    needed = int(figure.value)
    survive = int(workload.target.survive.value) if workload.target and workload.target.survive else 0
    spans = nodes_per_replica(layout.gpus, site.gpus_per_node)
    per_node = site.gpus_per_node // layout.gpus if spans == 1 else 0
    if per_node and workload.serve and workload.serve.spread == "required":
        per_node = 1
    return needed, needed, replicas_for_failures(needed, len(site.working), per_node, spans, survive)


def _request(sheet: Sheet, name: str, workload: Workload, site: Site, layout: Layout, replicas: int) -> Request:
    scheduling = sheet.architecture.scheduling
    priorities = scheduling.priorities if scheduling else {}
    priority = int(priorities.get(workload.priority or "", 0) or 0)
    train = workload.train
    return Request(
        name,
        site.name,
        layout.gpus,
        replicas,
        priority,
        apart=workload.serve is not None and workload.serve.spread == "required",
        queue=workload.queue or "",
        least=train.min_gpus or 0 if train else 0,
    )


def _draft_training(
    sheet: Sheet, name: str, workload: Workload, train: Train, site: Site, model: PlannedModel | Unplanned
) -> Draft:
    path, prefix = f"workloads.{name}.train", f"workloads.{name}"
    declared = declared_layout(train.parallel) if train.parallel else None
    layout = declared or Layout(dp=train.gpus)
    if layout.gpus != train.gpus:
        sheet.misfit(
            f"{prefix}.placement",
            f"{path}.parallel",
            f"the layout {layout} has {layout.gpus} GPUs, gpus says {train.gpus}",
        )
    request = _request(sheet, name, workload, site, Layout(dp=train.gpus), 1)
    if isinstance(model, Unplanned):
        memory = Unplanned(f"{prefix}.memory", model.reason, model.missing)
        return Draft(name, workload, site, model, layout, memory, request=request, wanted=1)
    against = why_impossible(layout, site, model.decoder, crossing=layout.declared)
    if against:
        sheet.misfit(f"{prefix}.placement", f"{path}.parallel", against)
    tried = dict.fromkeys(_training_layouts(train, site, layout)) | {layout: None}
    candidates = [_training_candidate(sheet, name, train, model, site, k) for k in tried]
    choices, _ = choose_layout(candidates, layout, site, "job")
    planned = plan_training_memory(sheet, f"{prefix}.memory", path, train, model, site, layout)
    runs = not against and (isinstance(planned, Unplanned) or planned.fits)
    return Draft(name, workload, site, model, layout, planned, choices, request=request if runs else None, wanted=1)


def _training_layouts(train: Train, site: Site, taken: Layout) -> list[Layout]:
    """A GPU, a node, all nodes, data parallel: what the job could do instead."""
    widths = (1, site.gpus_per_node, site.gpus)
    return [Layout(dp=w) for w in dict.fromkeys(widths) if w != taken.gpus and train.global_batch % w == 0]


def _training_candidate(
    sheet: Sheet, name: str, train: Train, model: PlannedModel, site: Site, layout: Layout
) -> Candidate:
    prefix = f"workloads.{name}.choices.{str(layout).replace(' ', '-')}.memory"
    against = why_impossible(layout, site, model.decoder, crossing=layout.declared)
    memory = plan_training_memory(sheet, prefix, f"workloads.{name}.train", train, model, site, layout)
    return Candidate(layout, memory, None, against)
