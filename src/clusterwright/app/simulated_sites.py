"""Architecture → what a simulation needs of it beside jobs: nodes, quotas, policy, failures, repairs, prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.app.simulated_capacity import Resources, resources_of, slices_of
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.errors import InvalidInput, Problem
from clusterwright.lib.figures import Figure, Origin, leaf
from clusterwright.lib.scales import DAY_S
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.documents import Document
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.clusters import PoolPlan
from clusterwright.plan.results.plans import Plan
from clusterwright.queueing.budgets import Budget
from clusterwright.queueing.declared import declared_budgets, declared_policy, declared_tree
from clusterwright.queueing.nodes import NodeInfo
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import Balance, QueueTree
from clusterwright.simulate.durations import Duration, exponential
from clusterwright.simulate.rates import causes_of
from clusterwright.simulate.repairs import Care
from clusterwright.simulate.scenarios import Faults, NodeLoss

#: Rates by cause that a simulation takes unless told otherwise: the only published ones that name causes.
DEFAULT_FAILURES: Final = "llama3-405b"
#: The word that turns failures off.
NO_FAILURES: Final = "none"
#: Health checks run every 5 minutes on Meta's RSC clusters (Kokolis et al., arXiv:2410.21680, section 2); a failure
#: falls between two of them, so half of it on average and all of it at most is waited. The whole is taken.
_DETECTION_S: Final = 300.0
#: Until a failed node is back where no replacement is declared: a choice, one day.
_REPAIR_S: Final = DAY_S
_HOUR_S: Final = 3600.0
_NVLINK: Final = "NVLink domain"


@dataclass(frozen=True)
class Site:
    """What an architecture says about a simulation, jobs apart.

    Args:
        domains: name of the domain above each node, by place; the pool where no topology is declared.
        prices: of an installed GPU-hour by pool; of a pool shared by MIG of a slice-hour.
        budgets: GPU-hours by queue; their times are POSIX seconds.
        resources: CPU cores and GiB of memory of a node by pool, where they are known.
        slices: of each GPU by pool, for pools that are shared by MIG; every count of their GPUs here is of slices.
        figures: what the result rests on, with its origin; the assumed ones first.
    """

    name: str
    document: Document
    plan: Plan
    nodes: tuple[NodeInfo, ...]
    levels: tuple[str, ...]
    domains: tuple[str, ...]
    spares: tuple[int, ...]
    tree: QueueTree
    policy: Policy
    faults: Faults
    node_loss: NodeLoss
    retries: int
    backoff_s: float
    prices: dict[str, float]
    currency: str
    budgets: dict[str, Budget]
    resources: dict[str, Resources]
    slices: dict[str, int]
    figures: tuple[Figure, ...]
    limits: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """All that are installed."""
        return sum(node.gpus for node in self.nodes)

    @property
    def pools(self) -> tuple[PoolPlan, ...]:
        """The pools with GPUs, in the file's order."""
        return tuple(p for p in self.plan.pools if p.gpus_per_node)

    def units(self, pool: PoolPlan) -> int:
        """What a job can get of one node of a pool: GPUs, or slices of them."""
        return pool.gpus_per_node * self.slices.get(pool.name, 1)


def site_of(document: Document, catalogue: Catalogue, failures: str = DEFAULT_FAILURES) -> Site:
    """The site that a document describes.

    Args:
        failures: an entry of the catalogue's failure rates, or `none`.

    Raises:
        InvalidInput: without a pool that has GPUs, for quotas of pools that there are not, for unknown rates.
    """
    plan = plan_architecture(document, catalogue)
    pools = [p for p in plan.pools if p.gpus_per_node]
    if not pools:
        told = "; ".join(u.reason for u in plan.unplanned if u.subject.startswith("pools."))
        raise InvalidInput(f"no worker pool has GPUs{f': {told}' if told else ''}; nothing can be simulated")
    _check_quotas(document, [p.name for p in pools])
    scheduling = document.architecture.scheduling
    retries = scheduling.retries if scheduling else None
    faults, figures = _faults(document, catalogue, pools, failures)
    slices = slices_of(document, catalogue, pools)
    prices, currency, priced = _prices(plan, pools, slices)
    loss = NodeLoss(scheduling.node_loss) if scheduling and scheduling.node_loss else NodeLoss.REQUEUE
    nodes, levels, domains = _nodes(pools, slices)
    tree = declared_tree(scheduling)
    figures = [*figures, *priced]
    return Site(
        name=document.architecture.cluster.name, document=document, plan=plan, nodes=nodes, levels=levels,
        domains=domains, spares=_spares(document, pools), tree=tree,
        policy=declared_policy(scheduling), faults=faults, node_loss=loss, retries=retries.limit if retries else 0,
        backoff_s=retries.backoff.value if retries and retries.backoff else 0.0, prices=prices, currency=currency,
        budgets=declared_budgets(scheduling), resources=resources_of(document, catalogue, pools), slices=slices,
        figures=tuple(sorted(figures, key=lambda f: (f.origin, f.name))), limits=_limits(document, loss, slices),
        notes=(*_sliced(pools, slices), *_unused(document, tree, pools, slices)),
    )  # fmt: skip


def _check_quotas(document: Document, pools: Iterable[str]) -> None:
    """A quota of a pool that there is not is a mistake that a queue would answer with waiting for ever."""
    known = list(pools)
    problems = []
    scheduling = document.architecture.scheduling
    for name, queue in (scheduling.queues if scheduling else {}).items():
        for field, quotas in (("guarantee", queue.guarantee), ("borrow", queue.borrow), ("lend", queue.lend)):
            for pool in quotas or {}:
                if pool not in known:
                    path = f"scheduling.queues.{name}.{field}.{pool}"
                    near = did_you_mean(pool, known) or f"pools with GPUs: {', '.join(known)}"
                    problems.append(
                        Problem(document.places.of(path), path, f"no pool with GPUs is called {pool}", near)
                    )
    if problems:
        raise InvalidInput(*problems)


def _nodes(
    pools: Iterable[PoolPlan], slices: Mapping[str, int]
) -> tuple[tuple[NodeInfo, ...], tuple[str, ...], tuple[str, ...]]:
    """Nodes, levels above them, and the name of each node's domain."""
    pools = list(pools)
    spans = {p.name: max(1, p.domain_gpus // p.gpus_per_node) for p in pools}
    deep = any(n > 1 for n in spans.values())
    nodes, domains = [], []
    for pool in pools:
        for place, name in enumerate(pool.nodes):
            domain = f"{pool.name}/{place // spans[pool.name] + 1}" if spans[pool.name] > 1 else name
            units = pool.gpus_per_node * slices.get(pool.name, 1)
            nodes.append(NodeInfo(name, pool.name, units, (domain,) if deep else ()))
            domains.append(domain if spans[pool.name] > 1 else pool.name)
    return tuple(nodes), (_NVLINK,) if deep else (), tuple(domains)


def _spares(document: Document, pools: Iterable[PoolPlan]) -> tuple[int, ...]:
    """The last `spares` nodes of every pool, as the plan keeps them free."""
    found, base = list[int](), 0
    for pool in pools:
        count = min(document.architecture.pools[pool.name].spares, len(pool.nodes))
        found += range(base + len(pool.nodes) - count, base + len(pool.nodes))
        base += len(pool.nodes)
    return tuple(found)


def _faults(
    document: Document, catalogue: Catalogue, pools: list[PoolPlan], failures: str
) -> tuple[Faults, list[Figure]]:
    if failures == NO_FAILURES:
        zero = leaf("failures.rate", 0.0, "/1,000 node-days", Origin.DECLARED, "--failures none: nothing fails")
        return Faults(), [zero]
    rates = catalogue.failures(failures)
    gpus = sum(p.gpus for p in pools) / sum(len(p.nodes) for p in pools)
    scale = gpus / rates.gpus_per_node
    rate = leaf(
        "failures.rate", rates.per_1000_node_days * scale, "/1,000 node-days", Origin.CATALOGUE,
        f"catalogue failures.{failures}: {rates.source}"
        + (f"; × {gpus:g} GPUs of a node ÷ {rates.gpus_per_node}" if scale != 1 else "")
        + "; of other systems, not of this one",
    )  # fmt: skip
    detection = leaf(
        "failures.detection", _DETECTION_S, "s", Origin.ASSUMED,
        "one round of health checks, every 5 min as on RSC-1 and RSC-2 (arXiv:2410.21680); the file declares targets, "
        "not times",
    )  # fmt: skip
    repair = _repair(document, pools)
    care = Care(detection=Duration(detection.value), repair=exponential(repair.value * _HOUR_S))
    return Faults(causes_of(rates, scale), care=care), [rate, detection, repair]


def _repair(document: Document, pools: Iterable[PoolPlan]) -> Figure:
    declared = [
        (p.name, replacement.within.value)
        for p in pools
        if (replacement := document.architecture.pools[p.name].replacement) is not None
    ]
    if declared:
        name, longest = max(declared, key=lambda d: d[1])
        place = document.places.of(f"pools.{name}.replacement.within")
        basis = f"{place}; taken as the mean of an exponential time, promises are not kept better than that"
        return leaf("failures.repair", longest / _HOUR_S, "h", Origin.DECLARED, basis)
    basis = "mean of an exponential time; no pool declares replacement.within"
    return leaf("failures.repair", _REPAIR_S / _HOUR_S, "h", Origin.ASSUMED, basis)


def _prices(
    plan: Plan, pools: Iterable[PoolPlan], slices: Mapping[str, int]
) -> tuple[dict[str, float], str, list[Figure]]:
    """Price of an installed GPU-hour by pool; empty where a pool has none or currencies differ."""
    prices, figures, signs = dict[str, float](), list[Figure](), set[str]()
    for pool in pools:
        month = plan.figures.get(f"pools.{pool.name}.month")
        if month is None:
            return {}, "", []
        signs.add(month.unit.partition("/")[0])
        parts = slices.get(pool.name, 1)
        prices[pool.name] = month.value / HOURS_PER_MONTH / (pool.gpus * parts)
        unit = f"{month.unit.partition('/')[0]}/GPU-h"
        basis = f"pools.{pool.name}.month ÷ ({'GPUs' if parts == 1 else f'GPUs × {parts} slices'} × 730 h)"
        figures.append(leaf(f"pools.{pool.name}.gpu_hour", prices[pool.name], unit, month.origin, basis))
    return (prices, signs.pop(), figures) if len(signs) == 1 else ({}, "", [])


def _sliced(pools: Iterable[PoolPlan], slices: Mapping[str, int]) -> list[str]:
    """What a GPU means in a pool that is shared by MIG."""
    return [
        f"pool {p.name} is shared by MIG: a GPU of it is one of {slices[p.name]} slices of a GPU wherever GPUs, "
        "GPU-hours, quotas and prices of it are counted; every job gets whole slices, whatever profiles are set up"
        for p in pools
        if p.name in slices
    ]


def _unused(
    document: Document, tree: QueueTree, pools: Iterable[PoolPlan], slices: Mapping[str, int]
) -> tuple[str, ...]:
    """GPUs that no queue may ever use: more nodes without more quota change nothing."""
    said = []
    for pool in pools if tree.queues else ():
        balance = Balance(tree, pool.name, {})
        most = sum(balance.subtree(q.name) for q in tree.queues if q.parent is None)
        usable = pool.gpus - document.architecture.pools[pool.name].spares * pool.gpus_per_node
        usable *= slices.get(pool.name, 1)
        if most < usable:
            said.append(
                f"the queues may use {most:g} of the {usable} GPUs of pool {pool.name} at most, so {usable - most:g} "
                "stay free whoever waits; raise a guarantee (scheduling.queues.*.guarantee) to use them"
            )
    return tuple(said)


def _limits(document: Document, loss: NodeLoss, slices: Mapping[str, int]) -> tuple[str, ...]:
    said = []
    for name, pool in document.architecture.pools.items():
        if pool.sharing not in (None, "none") and name not in slices:
            said.append(f"pool {name} is shared by {pool.sharing}, simulated as whole GPUs: the file says no parts")
    scheduling = document.architecture.scheduling
    if scheduling is None or scheduling.node_loss is None:
        said.append(f"a gang that loses a node: {loss.value} (scheduling.node_loss is not declared)")
    return tuple(said)


def budgets_from(site: Site, origin_s: float | None) -> tuple[dict[str, Budget], tuple[str, ...]]:
    """The budgets in seconds from instant 0 of a simulation, and what is said about them.

    Args:
        origin_s: POSIX time of instant 0; None where jobs have no date.
    """
    if not site.budgets:
        return {}, ()
    if origin_s is None:
        told = "the jobs have no date: periods of budgets begin with the simulation, and their last days do not come"
        return {name: replace(b, from_s=0.0, until_s=None) for name, b in site.budgets.items()}, (told,)
    moved = {
        name: replace(b, from_s=b.from_s - origin_s, until_s=None if b.until_s is None else b.until_s - origin_s)
        for name, b in site.budgets.items()
    }
    return moved, ("budgets begin full: what was used of them before the simulation is not known",)
