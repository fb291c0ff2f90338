"""What a scheduler must do with the declared workloads: jobs, their tasks, and where each is planned to land."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterwright.model.architecture import Architecture
from clusterwright.model.workloads import Workload
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan


@dataclass(frozen=True, slots=True)
class ExpectedTask:
    """A slice of one node: `gpus` distinct devices, one rank on each."""

    pool: str
    node: str
    gpus: int


@dataclass(frozen=True, slots=True)
class ExpectedJob:
    """One replica of a service, or one training gang.

    Args:
        name: `<workload>-<replica>`, or the workload itself when it trains.
        queue, priority: as declared; "" and 0 where the file says nothing.
        shared_stores: declared stores that every task sees as one.
        node_stores: declared stores that each node has for itself.
        apart: whether no two replicas of the workload may share a node (`serve.spread: required`).
    """

    name: str
    workload: str
    tasks: tuple[ExpectedTask, ...]
    queue: str = ""
    priority: int = 0
    shared_stores: tuple[str, ...] = ()
    node_stores: tuple[str, ...] = ()
    apart: bool = False

    @property
    def ranks(self) -> int:
        """Processes of the whole gang."""
        return sum(t.gpus for t in self.tasks)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes in task order, without repeats."""
        return tuple(dict.fromkeys(t.node for t in self.tasks))


@dataclass(frozen=True, slots=True)
class Unexpected:
    """Ranks that are declared and cannot be submitted, because the plan has no place for them.

    Args:
        ranks: how many; None when the plan could not even say that.
    """

    workload: str
    ranks: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """Everything that should run at once on the declared cluster."""

    jobs: tuple[ExpectedJob, ...]
    missing: tuple[Unexpected, ...] = ()

    @property
    def ranks(self) -> int:
        """Ranks of all jobs and of what could not be placed."""
        return sum(j.ranks for j in self.jobs) + sum(m.ranks or 0 for m in self.missing)


@dataclass(frozen=True, slots=True)
class Promise:
    """What the plan says about one workload once the node whose loss hurts it most is lost.

    Args:
        again: replicas that run when everything was placed again; of a training 1 or 0.
        needed: replicas that carry the declared load; of a training 1.
        wanted: replicas that are declared; of a training 1.
        text: in the plan's words.
    """

    workload: str
    node: str
    again: int
    needed: int
    wanted: int
    text: str


def promise_of(plan: Plan, workload: str) -> Promise | None:
    """What the plan says about the loss of one node; None where it does not say."""
    planned = plan.workload(workload)
    if planned is None:
        return None
    loss = next((x for x in _losses_of(planned) if x.nodes_lost == 1 and len(x.worst) == 1), None)
    if loss is None:
        return None
    return Promise(workload, loss.worst[0], loss.placeable, loss.needed, planned.replicas_wanted, loss.reason)


def _losses_of(planned: WorkloadPlan) -> tuple[LossPlan, ...]:
    found: list[LossPlan] = []
    for part in (planned.service, planned.training):
        if isinstance(part, ServicePlan | TrainingPlan):
            found += part.losses
    return tuple(found)


def expect_jobs(architecture: Architecture, plan: Plan) -> Expectation:
    """The jobs of all workloads as the plan places them together, and what it could not place."""
    jobs, missing = list[ExpectedJob](), list[Unexpected]()
    for name, workload in architecture.workloads.items():
        planned = plan.workload(name)
        if planned is None or planned.layout is None:
            missing.append(Unexpected(name, None, _why_no_layout(planned)))
            continue
        found = list(_jobs_of(architecture, workload, planned))
        jobs += found
        lacking = planned.replicas_wanted - len(found)
        if lacking > 0:
            why = f"{len(found)} of {planned.replicas_wanted} replicas have a place; {_why_unplaced(planned)}"
            placed = sum(len(a.gpus) for a in planned.placement)
            missing.append(Unexpected(name, planned.wanted_gpus - placed, why))
    return Expectation(tuple(jobs), tuple(missing))


def _why_no_layout(planned: WorkloadPlan | None) -> str:
    if planned is None:
        return "the plan says nothing about it"
    return _why_unplaced(planned) if planned.choices else "the plan has no layout for it"


def _why_unplaced(planned: WorkloadPlan) -> str:
    chosen = planned.chosen
    if chosen is not None and chosen.feasible:
        return "what is left of the pool is too small or too scattered"
    return chosen.reason if chosen is not None else "no placement is possible"


def _jobs_of(architecture: Architecture, workload: Workload, planned: WorkloadPlan) -> Iterator[ExpectedJob]:
    replicas: dict[int, list[ExpectedTask]] = {}
    for a in planned.placement:
        replicas.setdefault(a.replica, []).append(ExpectedTask(a.pool, a.node, len(a.gpus)))
    shared, local = _stores_of(architecture, workload)
    scheduling = architecture.scheduling
    priorities = scheduling.priorities if scheduling else {}
    for replica, tasks in sorted(replicas.items()):
        yield ExpectedJob(
            name=planned.name if workload.train is not None else f"{planned.name}-{replica}",
            workload=planned.name,
            tasks=tuple(tasks),
            queue=workload.queue or "",
            priority=priorities.get(workload.priority or "", 0),
            shared_stores=shared,
            node_stores=local,
            apart=workload.serve is not None and workload.serve.spread == "required",
        )


def _stores_of(architecture: Architecture, workload: Workload) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(stores shared by all nodes, stores of each node) that the workload names or that the file gives its data."""
    storage = architecture.storage
    if storage is None:
        return (), ()
    names: list[str | None] = []
    if workload.payload is not None:
        names += [workload.payload.source, workload.payload.cache]
    uses = storage.uses
    if uses is not None:
        names += [uses.outputs, uses.logs]
    if workload.serve is not None and uses is not None:
        names += [uses.weights, uses.cache]
    if workload.train is not None:
        names.append(workload.train.data)
        if workload.train.checkpoint is not None:
            names.append(workload.train.checkpoint.to)
        if uses is not None:
            names += [uses.datasets, uses.checkpoints]
    known = [n for n in dict.fromkeys(names) if n is not None and n in storage.stores]
    local = tuple(n for n in known if storage.stores[n].kind in ("local-nvme", "memory"))
    return tuple(n for n in known if n not in local), local
