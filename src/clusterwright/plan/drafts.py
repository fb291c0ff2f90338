"""A workload before anything is placed: model, layout, memory, and how many replicas it asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Serve, Train, Workload
from clusterwright.plan.fronts import Front, TrainingFront
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.placing import Request, nodes_per_replica
from clusterwright.plan.results.layouts import Layout, PlacementChoice
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.services import Load, replicas_for_failures, why_unreachable
from clusterwright.plan.sites import Site


@dataclass(frozen=True)
class Draft:
    """A workload before anything is placed.

    Args:
        site: pool it is planned on, None with the reason in `memory`.
        needed: replicas that carry the load; 1 for training or when no rate is known.
        for_failures: replicas that still carry it after the declared losses, None when the pool does not hold them.
        request: what it asks of the pool; None when it cannot run there.
        wanted: replicas it should have, 0 where nobody knows.
        front: of all its layouts, None where none could be searched.
        first: its prefill workers where it is disaggregated; it is then the decode workers. handover: s between both.
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
    front: Front | TrainingFront | None = None
    first: Draft | None = None
    handover: Figure | None = None

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


def allowed_sites(sheet: Sheet, name: str, workload: Workload, sites: tuple[Site, ...]) -> tuple[Site, ...] | Unplanned:
    """Pools that a workload may run on, at least one, in the order of the file."""
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
    return tuple(fitting)


def find_site(sheet: Sheet, name: str, workload: Workload, sites: tuple[Site, ...]) -> Site | Unplanned:
    """The first pool that a workload may run on, or why there is none."""
    allowed = allowed_sites(sheet, name, workload, sites)
    if isinstance(allowed, Unplanned):
        return allowed
    if len(allowed) > 1:
        sheet.limit(f"a workload is planned on one pool: {name} on {allowed[0].name}, which of its pools comes first")
    return allowed[0]


def count_replicas(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    site: Site,
    layout: Layout,
    rate: Figure | Unplanned,
    load: Load | Unplanned,
) -> tuple[int | None, int, int | None]:
    """Replicas (for the load or None, needed, for failures or None)."""
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


def request_of(sheet: Sheet, name: str, workload: Workload, site: Site, layout: Layout, replicas: int) -> Request:
    """What a workload asks of its pool."""
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
