"""The plan of a whole architecture: all its workloads, pools, network and money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clusterwright.lib.figures import Figure
from clusterwright.plan.fronts import Front, TrainingFront
from clusterwright.plan.results.clusters import NetworkPlan, PoolPlan
from clusterwright.plan.results.layouts import Assignment, Layout, PlacementChoice
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.money import CapacityPlan, EconomicsPlan
from clusterwright.plan.results.payloads import PayloadPlan
from clusterwright.plan.results.refusals import Misfit, Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import CheckpointPlan, TrainingPlan


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """Everything planned for one workload.

    Args:
        gpu: catalogue name of the GPU of the pool it is planned on, "" if none.
        replicas_wanted: declared, else what load and failures need; 1 for training.
        replicas_placed: of those, placed together with all other workloads.
        layouts: all that it could have, None where none could be searched.
    """

    name: str
    kind: Literal["inference", "training", "unknown"]
    model: str
    pool: str
    gpu: str
    layout: Layout | None
    replicas_wanted: int
    replicas_placed: int
    memory: MemoryPlan | Unplanned
    choices: tuple[PlacementChoice, ...]
    placement: tuple[Assignment, ...]
    service: ServicePlan | Unplanned | None = None
    training: TrainingPlan | Unplanned | None = None
    payload: PayloadPlan | Unplanned | None = None
    checkpoint: CheckpointPlan | Unplanned | None = None
    capacity: CapacityPlan | Unplanned | None = None
    layouts: Front | TrainingFront | None = None

    @property
    def chosen(self) -> PlacementChoice | None:
        """The placement choice that the plan uses."""
        return next((c for c in self.choices if c.chosen), None)

    @property
    def layout_words(self) -> str:
        """Layout of a replica, or of a prefill and of a decode worker; "" without one."""
        split = self.service.split if isinstance(self.service, ServicePlan) else None
        if split is not None:
            return f"prefill {split.prefill.layout}, decode {split.decode.layout}"
        return "" if self.layout is None else str(self.layout)

    @property
    def wanted_gpus(self) -> int:
        """GPUs of all replicas, or of all prefill and decode workers, that it should have; 0 without a layout."""
        if isinstance(self.service, ServicePlan) and self.service.split is not None:
            return self.service.split.gpus
        return self.replicas_wanted * self.layout.gpus if self.layout is not None else 0


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumed leaf and the figure it moves most.

    Args:
        effect: relative change of `on` for a 10 % change of the leaf.
        on: name of the figure.
    """

    leaf: Figure
    effect: float
    on: str


@dataclass(frozen=True)
class Plan:
    """The plan of a whole architecture.

    Args:
        payload_rate: GB/s when every workload loads at once, None without payloads.
        figures: every figure of the plan by dotted name; `explain` finds its trees here.
        assumptions: assumed leaves of the headline figures, largest effect first.
        misfits: what does not hold.
        unplanned: what could not be planned, from all parts.
        limits: what this form of the planner does not model, where it matters for this file.
        compute_month: money per month of the pools with GPUs; known from their prices even without economics.
    """

    cluster: str
    workloads: tuple[WorkloadPlan, ...]
    pools: tuple[PoolPlan, ...]
    network: NetworkPlan
    payload_rate: Figure | None
    economics: EconomicsPlan | Unplanned
    figures: Mapping[str, Figure] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    unplanned: tuple[Unplanned, ...] = ()
    limits: tuple[str, ...] = ()
    compute_month: Figure | None = None

    def workload(self, name: str) -> WorkloadPlan | None:
        """The plan of one workload by name."""
        return next((w for w in self.workloads if w.name == name), None)

    @property
    def fronts(self) -> tuple[Front | TrainingFront, ...]:
        """Layouts of every workload that could be searched."""
        return tuple(w.layouts for w in self.workloads if w.layouts is not None)

    @property
    def fits(self) -> bool:
        """Whether everything that was planned holds."""
        return not self.misfits
