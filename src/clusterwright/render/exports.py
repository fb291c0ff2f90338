"""What an export is made from: the plan, scripts that are copied, and what its author says about the site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterwright.judging.acceptance_plans import AcceptancePlan, PlannedTest

#: Path in the export → its text.
Files = dict[str, str]


@dataclass(frozen=True, slots=True)
class Options:
    """What the architecture does not say and a script needs.

    Args:
        stores: store → path on the nodes (Slurm, shell) or name of a PersistentVolumeClaim (Kubernetes).
        endpoints: workload → address of its service.
        queue: partition (Slurm) or LocalQueue of Kueue (Kubernetes), "" for the default.
        namespace: of Kubernetes.
        image: production image instead of the declared one, "" to keep that.
        tools_image: image with DCGM, perftest, fio; the production image where "".
        rdma_resource: extended resource by which pods get RDMA devices, "" when the site has none.
        gpu_resource: extended resource of the GPUs.
    """

    stores: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""
    namespace: str = "default"
    image: str = ""
    tools_image: str = ""
    rdma_resource: str = ""
    gpu_resource: str = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Rails:
    """The ports of a node in its compute network, as the file declares them.

    Args:
        layer: link layer as Linux writes it, "" where any will do.
        rate: of one port in Gb/s, 0 when unknown.
        ports: per node, 0 when unknown.
    """

    layer: str = ""
    rate: float = 0.0
    ports: int = 0


@dataclass(frozen=True, slots=True)
class Export:
    """A plan to be written for one engine.

    Args:
        engine: kubernetes, slurm or shell.
        scripts: file name → text of the scripts that every export copies (`run.sh`, `collect.sh`, `checkpoint.py` ...).
        rails: pool → its ports.
        foreign: engines of the file that the export is not for, so that its results will not count; "" when it is.
        derived_with: what else the plan was derived from, so that it can be derived again.
    """

    plan: AcceptancePlan
    engine: str
    scripts: Mapping[str, str]
    options: Options
    rails: Mapping[str, Rails] = field(default_factory=dict)
    foreign: str = ""
    derived_with: Mapping[str, object] = field(default_factory=dict)

    @property
    def left_out(self) -> dict[str, str]:
        """Test → why it cannot be run on this engine."""
        if self.engine != "kubernetes":
            return {}
        why = "not on Kubernetes: it needs the log of the node, and no pod sees the host"
        return {t.id: why for t in self.plan.tests if t.kind.log_export}

    @property
    def tests(self) -> tuple[PlannedTest, ...]:
        """The tests that the engine can run."""
        left_out = self.left_out
        return tuple(t for t in self.plan.tests if t.id not in left_out)
