"""What sharing really isolates, and what it is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.rules import Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("security")

#: Ways of sharing a GPU → what they isolate. Sources: NVIDIA MIG user guide; GPU Operator, time-slicing; CUDA MPS.
ISOLATES: Final[dict[str, str]] = {
    "time-slicing": "no memory and no fault isolation: one process can take all memory, one fault ends all",
    "mps": "no fault isolation between clients of one server",
    "mig": "memory and faults, with driver, PCIe and power still shared; no process may use peers over NVLink",
    "vgpu": "memory by virtual machine; schedule and driver of the host are shared",
}
_BOUNDARY: Final = re.compile(
    r"virtual machine|\bvms?\b|hypervisor|kata|bare.metal|(dedicated|own) (node|server|cluster)|"
    r"(node|server|cluster)s? per (tenant|customer|team)",
    re.IGNORECASE,
)
_CLAIM: Final = re.compile(r"namespace|\bquota|project|\baccounts?\b|gpu allocation|device plugin|cgroup", re.I)
_DISCLAIMED: Final = re.compile(r"\bnot? (a )?(boundary|isolation|tenant)|\bno boundary", re.I)


@_TABLE.rule(
    "namespace-called-isolation",
    Severity.ERROR,
    80,
    why="Namespaces, quotas and GPU allocation separate names and numbers. A container escape, a driver fault or a "
    "privileged pod crosses all of them; between strangers only another machine, virtual or real, is a boundary.",
    satisfy="give each tenant virtual machines or nodes of its own, or say multi-team and that it is no boundary",
    example="access: {tenancy: multi-tenant, isolation: virtual machines per tenant, nodes never shared}",
    source="Kubernetes documentation, 'Multi-tenancy'; NIST SP 800-190, container isolation",
)
def namespace_isolation(subject: Subject) -> Iterator[Hit]:
    """Tenants who do not trust each other are kept apart by namespaces, quotas or GPU allocation only."""
    access = subject.architecture.access
    if access is None or access.tenancy != "multi-tenant" or not access.isolation:
        return
    if _CLAIM.search(access.isolation) and not _BOUNDARY.search(access.isolation):
        said = "even says so" if _DISCLAIMED.search(access.isolation) else "names no boundary beyond it"
        yield Hit("access.isolation", f"tenancy is multi-tenant; isolation is '{access.isolation}' and {said}")


@_TABLE.rule(
    "sharing-called-isolation",
    Severity.ERROR,
    80,
    why="Time-slicing and MPS share one context: memory contents, faults and performance cross between users.",
    satisfy="share GPUs between tenants by virtual machines with whole GPUs or MIG, or do not share them",
    example="access: {tenancy: multi-tenant}\npools: {gpu: {sharing: none}}",
    source="NVIDIA GPU Operator documentation, time-slicing ('no memory or fault-isolation'); NVIDIA MPS documentation",
)
def sharing_isolation(subject: Subject) -> Iterator[Hit]:
    """GPUs are time-sliced or shared by MPS between tenants; by MIG or vGPU it is a warning."""
    access = subject.architecture.access
    if access is None or access.tenancy != "multi-tenant":
        return
    for name, pool in subject.gpu_pools.items():
        if pool.sharing is None or pool.sharing == "none":
            continue
        severity = None if pool.sharing in ("time-slicing", "mps") else Severity.WARNING
        message = f"pool {name} is shared by {pool.sharing} between tenants: {ISOLATES[pool.sharing]}"
        yield Hit(f"pools.{name}.sharing", message, severity=severity)


@_TABLE.rule(
    "sharing-with-collectives",
    Severity.ERROR,
    75,
    why="A MIG instance or a slice of a GPU has no peers: NVLink and GPUDirect between instances do not exist.",
    satisfy="run workloads of several GPUs on a pool that is not shared",
    example="pools: {train: {sharing: none}, notebooks: {sharing: mig}}",
    source="NVIDIA MIG user guide, 'Limitations': no GPU-to-GPU P2P; NCCL needs whole GPUs",
    area="compute",
)
def sharing_collectives(subject: Subject) -> Iterator[Hit]:
    """A workload of several GPUs per replica may land on shared GPUs."""
    for planned in subject.plan.workloads:
        layout = planned.layout
        for name, pool in subject.pools_of(planned.name).items():
            if layout is not None and layout.gpus > 1 and pool.sharing not in (None, "none"):
                message = f"{planned.name} takes {layout.gpus} GPUs together; pool {name} is shared by {pool.sharing}"
                yield Hit(f"pools.{name}.sharing", message)


@_TABLE.rule(
    "sharing-hides-telemetry",
    Severity.WARNING,
    45,
    why="With time-slicing and MPS, DCGM reports the GPU, not the user: cost by team is a guess.",
    satisfy="meter by job from the scheduler's allocation, or share by MIG, which DCGM reports by instance",
    example="pools: {notebooks: {sharing: mig}}",
    source="NVIDIA GPU Operator documentation, time-slicing: DCGM-Exporter does not associate metrics to containers",
    area="observability",
)
def sharing_telemetry(subject: Subject) -> Iterator[Hit]:
    """GPUs are time-sliced or shared by MPS and cost is to be seen per team."""
    seen = subject.architecture.observability
    for name, pool in subject.gpu_pools.items():
        if pool.sharing in ("time-slicing", "mps") and seen is not None and seen.cost is not None:
            message = f"pool {name} is shared by {pool.sharing}; its metrics are of the GPU, not of a user"
            yield Hit(f"pools.{name}.sharing", message)


@_TABLE.rule(
    "teams-without-quota",
    Severity.WARNING,
    40,
    why="Several teams in one queue are in one line: the largest submitter has the cluster.",
    satisfy="give each team a queue with a guarantee",
    example="queues: {team-a: {guarantee: {gpu: 8}}, team-b: {guarantee: {gpu: 8}}}",
    source="Clusterwright: tenancy against queues",
    area="scheduler",
)
def teams_without_quota(subject: Subject) -> Iterator[Hit]:
    """Several teams or tenants share the cluster and there is one queue only."""
    access = subject.architecture.access
    queues = [n for n, q in subject.queues.items() if not q.slack]
    if access is not None and access.tenancy in ("multi-team", "multi-tenant") and len(queues) == 1:
        yield Hit("scheduling.queues", f"tenancy is {access.tenancy} and {queues[0]} is the only queue")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
