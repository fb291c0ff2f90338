"""What a claim is about in terms of hosts and engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterwright.model.acceptance import Requirement
from clusterwright.model.architecture import Architecture


@dataclass(frozen=True, slots=True)
class Site:
    """Pools, hosts and engines as the file declares them.

    Args:
        hosts: host names by worker pool.
        engines: engine by worker pool, "" where none is declared.
        workloads: kind (inference, training, unknown) by workload.
        network_kinds: kinds of the declared networks.
    """

    hosts: Mapping[str, tuple[str, ...]]
    engines: Mapping[str, str]
    workloads: Mapping[str, str]
    network_kinds: frozenset[str] = frozenset()

    def pool_hosts(self, requirement: Requirement) -> tuple[str, ...]:
        """Hosts among which the claim is made: of its pool, or of every worker pool."""
        pool = requirement.scope.pool
        if pool is not None:
            return self.hosts.get(pool, ())
        return tuple(h for hosts in self.hosts.values() for h in hosts)

    def engines_of(self, requirement: Requirement) -> frozenset[str]:
        """Engines on which evidence for the claim counts."""
        pool = requirement.scope.pool
        names = self.engines.values() if pool is None else (self.engines.get(pool, ""),)
        return frozenset(n for n in names if n)


def site_of(architecture: Architecture) -> Site:
    """The worker pools of an architecture with their hosts and engines."""
    scheduling = architecture.scheduling
    common = scheduling.engine if scheduling else ""
    workers = {n: p for n, p in architecture.pools.items() if p.role == "worker"}
    fabric = architecture.fabric
    return Site(
        hosts={n: p.nodes for n, p in workers.items()},
        engines={n: p.engine or common for n, p in workers.items()},
        workloads={n: w.kind for n, w in architecture.workloads.items()},
        network_kinds=frozenset(n.kind for n in fabric.networks.values()) if fabric else frozenset(),
    )


#: Metrics that only make sense for one kind of workload.
_KIND_OF = {
    **dict.fromkeys(
        ("ttft", "ttft_p50", "ttft_p95", "ttft_p99", "tpot", "tpot_p50", "tpot_p95", "tpot_p99"), "inference"
    ),
    **dict.fromkeys(("itl_p95", "itl_p99", "latency_p95", "latency_p99", "request_success", "goodput"), "inference"),
    **dict.fromkeys(("request_rate", "load_after_loss", "output_token_rate", "kv_cache_tokens"), "inference"),
    **dict.fromkeys(("lost_work", "step_time", "training_rate", "tflops_per_gpu", "data_loading_stall"), "training"),
    **dict.fromkeys(("skipped_steps", "checkpoints_failed"), "training"),
    **dict.fromkeys(("checkpoint_write", "checkpoint_restore", "checkpoint_stall"), "training"),
}


def why_not_applicable(requirement: Requirement, site: Site) -> str:
    """Why the claim makes no sense for this cluster, or "". A name that the file lacks is not such a reason."""
    workload = requirement.scope.workload
    kind = site.workloads.get(workload, "unknown") if workload else "unknown"
    wanted = _KIND_OF.get(requirement.metric)
    if wanted and kind not in ("unknown", wanted):
        return f"{requirement.metric} describes {wanted}, and {workload} is {kind}"
    if requirement.metric == "ib_links_up" and site.network_kinds and "infiniband" not in site.network_kinds:
        return f"no network is InfiniBand; declared are {', '.join(sorted(site.network_kinds))}"
    return ""


def why_undecidable(requirement: Requirement, site: Site) -> str:
    """Why no evidence could prove the claim as it is written, or ""."""
    scope, about = requirement.scope, requirement.about
    hosts = site.pool_hosts(requirement)
    if scope.pool is not None and scope.pool not in site.hosts:
        return f"scope unknown: no worker pool '{scope.pool}'; declared are {', '.join(site.hosts) or 'none'}"
    if scope.workload is not None and scope.workload not in site.workloads:
        return f"scope unknown: no workload '{scope.workload}'; declared are {', '.join(site.workloads) or 'none'}"
    if scope.of == "rack" and scope.nodes is None:
        return "scope unknown: how many nodes a rack has is not declared; give scope.nodes"
    if not hosts:
        return "scope unknown: the file declares no worker node"
    if scope.nodes is not None and scope.nodes > len(hosts):
        return f"scope too large: {scope.nodes} nodes are required and {len(hosts)} are declared"
    if not site.engines_of(requirement):
        return "engine unknown: the file declares no engine, so no evidence can come from it"
    if about.needs_size and requirement.conditions.message_size is None:
        return f"message size unknown: a {requirement.metric} threshold without a message size says nothing"
    if requirement.metric in ("ttft", "tpot"):
        return f"percentile unknown: {requirement.metric} without a percentile cannot be compared with a measurement"
    return ""
