"""A declared architecture as a scenario: its pools, queues, policy, spares, retries and prices around given jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.quantities import CURRENCIES
from clusterwright.model.documents import Document
from clusterwright.model.pools import Pool
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.sites import Site, find_sites
from clusterwright.queueing.declared import declared_policy, declared_tree
from clusterwright.queueing.nodes import NodeInfo
from clusterwright.simulate.jobs import Jobs
from clusterwright.simulate.scenarios import Faults, NodeLoss, Scenario

_HOURS_PER_MONTH: Final = 730.0


@dataclass(frozen=True)
class Declared:
    """What a file says about the cluster, before jobs and failures.

    Args:
        scenario: without jobs; the flavors are the pools.
        gpus_per_node: by pool.
        unsaid: what the file leaves open and how it was taken.
    """

    scenario: Scenario
    gpus_per_node: Mapping[str, int]
    unsaid: tuple[str, ...]


def scenario_of(
    document: Document,
    catalogue: Catalogue,
    jobs: Jobs,
    *,
    faults: Faults | None = None,
    levels: Sequence[str] = (),
    paths: Mapping[str, tuple[str, ...]] | None = None,
    until_s: float | None = None,
) -> Declared:
    """The scenario of a file.

    Args:
        faults: nothing fails without.
        levels, paths: domains above each node by its name, widest first; a file declares none.

    Raises:
        InvalidInput: when no pool has GPUs, or the queues of the file contradict each other.
    """
    sheet = Sheet(document, catalogue, {})
    sites = find_sites(sheet)
    if not sites:
        raise InvalidInput("no worker pool has GPUs that are known; state pools.*.shape or pools.*.hardware.gpus")
    scheduling = sheet.architecture.scheduling
    nodes, spares, unsaid = list[NodeInfo](), list[int](), list[str]()
    for site in sites:
        spares += range(len(nodes) + len(site.working), len(nodes) + len(site.nodes))
        nodes += [NodeInfo(n, site.name, site.gpus_per_node, (paths or {}).get(n, ())) for n in site.nodes]
    prices, currency = _prices(sheet, sites)
    loss = None if scheduling is None else scheduling.node_loss
    if loss is None:
        unsaid.append("scheduling.node_loss is not declared: a gang that loses a node is requeued")
    if not prices:
        unsaid.append("no single currency prices every pool by GPU, node or time: nothing is said about cost")
    if scheduling is None:
        unsaid.append("scheduling is not declared: one queue without quotas, first come first served, best effort")
    elif scheduling.retries is not None:
        backoff = scheduling.retries.backoff
        jobs = _with_retries(jobs, scheduling.retries.limit, 0.0 if backoff is None else backoff.value)
    return Declared(
        Scenario(
            nodes=tuple(nodes),
            jobs=jobs,
            levels=tuple(levels),
            tree=declared_tree(scheduling),
            policy=declared_policy(scheduling),
            faults=faults or Faults(),
            spares=tuple(spares),
            spare_level=levels[-1] if levels else "",
            node_loss=NodeLoss.REQUEUE if loss is None else NodeLoss(loss),
            until_s=until_s,
            prices=prices,
            currency=currency,
        ),
        {site.name: site.gpus_per_node for site in sites},
        tuple(unsaid),
    )


def _with_retries(jobs: Jobs, limit: int, backoff_s: float) -> Jobs:
    kinds = tuple(replace(k, retries=limit, backoff_ms=round(backoff_s * 1000)) for k in jobs.kinds)
    return replace(jobs, kinds=kinds)


def _prices(sheet: Sheet, sites: Sequence[Site]) -> tuple[dict[str, float], str]:
    """Price of a GPU-hour by pool, and the currency; nothing unless all are priced in one."""
    found, signs = dict[str, float](), set[str]()
    for site in sites:
        priced = _gpu_hour(sheet, site, site.pool)
        if priced is None:
            return {}, ""
        found[site.name], sign = priced
        signs.add(sign)
    if len(signs) != 1:
        return {}, ""
    sign = signs.pop()
    return found, next((code for code, shown in CURRENCIES.items() if shown == sign), sign)


def _gpu_hour(sheet: Sheet, site: Site, pool: Pool) -> tuple[float, str] | None:
    if pool.price is None:
        return None
    powers = {symbol for symbol, _ in pool.price.powers}
    path = f"pools.{site.name}.price"
    if "GPU" in powers:
        figure, gpus = sheet.declared(path, pool.price, "money/GPU-h"), 1.0
    elif "node" in powers:
        figure, gpus = sheet.declared(path, pool.price, "money/node-h"), float(site.gpus_per_node)
    else:
        figure, gpus = sheet.declared(path, pool.price, "money/month"), site.gpus * _HOURS_PER_MONTH
    return figure.value / gpus, figure.unit.partition("/")[0]
