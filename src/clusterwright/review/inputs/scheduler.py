"""Readiness of scheduling: one clear owner of queues, quotas, retries and access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import PRACTICE, asked_as_a_whole, each_queue, each_workload, require, the_file
from clusterwright.review.rules import ALWAYS, BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("scheduler")

require(
    _TABLE,
    "engine-missing",
    the_file,
    {"scheduling": "which engine schedules, and by which policy"},
    catches="No engine is named.",
    why="Queues, retries, images and recovery all differ between Kubernetes and Slurm.",
    satisfy="declare scheduling.engine: kubernetes, slurm or local",
    example="scheduling: {engine: kubernetes}",
    weight=85,
    stages=ALWAYS,
)


@_TABLE.rule(
    "queues-missing",
    Severity.ERROR,
    55,
    why="Without queues the first to come keeps everything, and nobody can say why somebody waits.",
    satisfy="declare at least one queue with its guarantee",
    example="queues: {online: {guarantee: {gpu: 8}, owner: team@example.com}}",
    source=PRACTICE,
    stages=BUILD,
)
def no_queue(subject: Subject) -> Iterator[Hit]:
    """No queue is declared."""
    if subject.architecture.scheduling is not None and not subject.queues:
        yield Hit("scheduling.queues", "the file declares no queue")


require(
    _TABLE,
    "queue-owner-missing",
    each_queue,
    {"owner": "who owns it"},
    catches="A queue has no owner.",
    why="Somebody has to decide who may use it, and to be asked when it is full.",
    satisfy="name a person or team",
    example="queues: {online: {owner: applied-ml@example.com, ...}}",
    weight=40,
)


@_TABLE.rule(
    "workload-queue-missing",
    Severity.ERROR,
    55,
    why="A workload in no queue has no guarantee; where it lands is the scheduler's default.",
    satisfy="name one of the declared queues",
    example="queue: online",
    source=PRACTICE,
    stages=BUILD,
)
def workload_queue_missing(subject: Subject) -> Iterator[Hit]:
    """A workload names no queue."""
    for path, label, workload in each_workload(subject):
        if subject.queues and not workload.queue:
            yield Hit(f"{path}.queue", f"{label} names no queue; declared are {', '.join(subject.queues)}")


@_TABLE.rule(
    "workload-priority-missing",
    Severity.ERROR,
    40,
    why="When not everything fits, priority decides who runs; unsaid, it is the order of arrival.",
    satisfy="declare scheduling.priorities and name one of them in the workload",
    example="scheduling: {priorities: {production: 1000, batch: 100}}\nworkloads: {chat: {priority: production}}",
    source=PRACTICE,
    stages=BUILD,
)
def workload_priority_missing(subject: Subject) -> Iterator[Hit]:
    """Several workloads share the cluster and one has no priority."""
    if len(subject.workloads) < 2:
        return
    for path, label, workload in each_workload(subject):
        if not workload.priority:
            yield Hit(
                f"{path}.priority", f"{label} names no priority, and {len(subject.workloads)} workloads share GPUs"
            )


require(
    _TABLE,
    "retries-missing",
    the_file,
    {"scheduling.retries": "how often a failed attempt is tried again"},
    catches="Retries are not stated.",
    why="No retry turns a flaky node into a failed run; endless retries burn GPU-hours on a bug.",
    satisfy="give a limit and a back-off",
    example="scheduling: {retries: {limit: 5, backoff: 30 s}}",
    weight=40,
)
require(
    _TABLE,
    "node-loss-policy-missing",
    the_file,
    {"scheduling.node_loss": "what happens to a gang that loses a node (replace, shrink, requeue)"},
    catches="What happens to a gang that loses a node is not stated.",
    why="Replacing needs spares, shrinking needs an elastic job, requeueing needs room: each must be planned.",
    satisfy="say replace, shrink or requeue",
    example="scheduling: {node_loss: requeue}",
    weight=50,
)
require(
    _TABLE,
    "preemption-missing",
    the_file,
    {"scheduling.preemption": "who may take capacity from whom"},
    catches="Preemption is not stated.",
    why="A guarantee that cannot be taken back from borrowers is a wish.",
    satisfy="declare it, even if it is never",
    example="scheduling: {preemption: {within_queue: lower-priority, reclaim: any, grace: 120 s}}",
    weight=45,
)


@_TABLE.rule(
    "mixed-engines-undesigned",
    Severity.ERROR,
    75,
    why="Two schedulers on one site mean two identities, two ways to data, two dashboards and two bills unless someone "
    "designs one.",
    satisfy="describe identity, data, observability and cost across both under scheduling.mixed_site",
    example="scheduling: {mixed_site: {identity: ..., data: ..., observability: ..., cost: ...}}",
    source=PRACTICE,
    stages=BUILD,
)
def mixed_engines(subject: Subject) -> Iterator[Hit]:
    """Pools run under different engines and nothing is designed across them."""
    scheduling = subject.architecture.scheduling
    if len(subject.engines) < 2 or scheduling is None:
        return
    for field in ("identity", "data", "observability", "cost"):
        if scheduling.mixed_site is None or getattr(scheduling.mixed_site, field) is None:
            engines = " and ".join(subject.engines)
            yield Hit(
                f"scheduling.mixed_site.{field}", f"pools run under {engines} and {field} across both is not designed"
            )


@_TABLE.rule(
    "engine-version-missing",
    Severity.ERROR,
    60,
    why="What an engine can hold of the declared policy, and what it runs on, depends on its version.",
    satisfy="declare the version under software",
    example="software: {kubernetes: 1.36.2, gpu_operator: 26.7.2, kueue: 0.19.1}",
    source=PRACTICE,
    stages=BUILD,
)
def engine_version_missing(subject: Subject) -> Iterator[Hit]:
    """The version of the engine, or (a warning) of what offers it GPUs and holds its queues, is not declared."""
    software = subject.architecture.software
    if asked_as_a_whole(subject, "software"):
        return  # software-missing says so
    wanted: dict[str, str] = {}
    if "kubernetes" in subject.engines:
        wanted = {
            "kubernetes": "the version of the control plane",
            "gpu_operator": "the version of the GPU Operator",
            "network_operator": "the version of the Network Operator",
            "kueue": "the version of Kueue, which holds the queues",
        }
        if not subject.queues:
            del wanted["kueue"]
        if not any(w.kind in ("infiniband", "roce") for w in subject.networks_with("compute").values()):
            del wanted["network_operator"]
        if all((g := subject.gpu(p)) is not None and g.vendor == "amd" for p in subject.gpu_pools):
            wanted.pop("gpu_operator", None)
    if "slurm" in subject.engines:
        wanted["slurm"] = "the version of Slurm"
    for field, words in wanted.items():
        if software is None or getattr(software, field) is None:
            replaceable = field in ("gpu_operator", "network_operator", "kueue")
            yield Hit(
                f"software.{field}",
                f"the file does not say {words}",
                "declare its version, or waive this and say what does its work" if replaceable else "",
                severity=Severity.WARNING if replaceable else None,
            )


@_TABLE.rule(
    "node-runtime-missing",
    Severity.ERROR,
    50,
    why="The kubelet's and the container runtime's versions have support ranges of their own.",
    satisfy="declare kubelet and containerd; on GPU nodes container_toolkit, on others os and kernel",
    example="profiles: {gpu-node: {containerd: 2.3.6, container_toolkit: 1.19.0, kubelet: 1.36.2, ...}}",
    source=PRACTICE,
    stages=BUILD,
)
def node_runtime_missing(subject: Subject) -> Iterator[Hit]:
    """The profile of a Kubernetes pool lacks kubelet, containerd, container toolkit or operating system."""
    seen = set[str]()
    for name, pool in subject.pools.items():
        profile = subject.profile(name)
        if profile is None or subject.engine_of(name) != "kubernetes":
            continue
        gpu = subject.gpu(name)
        fields = ["containerd", "kubelet"]
        if name not in subject.gpu_pools:
            fields += ["os", "kernel"]  # of GPU pools driver-stack-missing asks for them
        elif not (gpu is not None and gpu.vendor == "amd"):
            fields.append("container_toolkit")
        for field in fields:
            path = f"software.profiles.{pool.software}.{field}"
            if getattr(profile, field) is None and path not in seen:
                seen.add(path)
                yield Hit(path, f"profile {pool.software} of pool {name} declares no {field}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
