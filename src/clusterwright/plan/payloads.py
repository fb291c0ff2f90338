"""Payload: what all replicas load, how fast every link on its way must be, which binds, how long a cold start takes."""

from __future__ import annotations

import math

from clusterwright.lib.figures import Figure
from clusterwright.model.storages import Store
from clusterwright.model.workloads import Payload, Target
from clusterwright.physics.storage_chains import node_class
from clusterwright.physics.transfers import required_rate, transfer_s
from clusterwright.plan.choosing import Kind
from clusterwright.plan.cold_starts import FASTEST_GAIN, STARTUP_S, binding_link, plan_start, plan_transfer, rate_for
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.host_paths import HostLink, host_links, loader_rate
from clusterwright.plan.results.payloads import LINK_WORDS, LinkPlan, PayloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sites import Site, networks_with, node_network_rate


def plan_payload(
    sheet: Sheet,
    name: str,
    payload: Payload,
    target: Target | None,
    site: Site | None,
    weights: Figure | None,
    readers: Figure,
    nodes: Figure,
    gpus: Figure | None,
) -> PayloadPlan | Unplanned:
    """Plan the concurrent load of all readers.

    Args:
        weights: GB of one copy, None when the model cannot be planned.
        readers: concurrent readers when the file does not say.
        nodes, gpus: that read at once; GPUs None where nobody knows how many.
    """
    path, prefix = f"workloads.{name}.payload", f"workloads.{name}.payload_plan"
    size = sheet.maybe(f"{path}.size", payload.size, "GB") or weights
    if size is None:
        return sheet.miss(prefix, "neither the payload's size nor the model's weights are known", f"{path}.size")
    count = sheet.maybe(f"{path}.readers", payload.readers, "readers") or readers
    within = sheet.declared(f"{path}.within", payload.within, "s")
    required = sheet.derive(
        f"{prefix}.required_rate",
        "GB/s",
        "bytes of all concurrent readers ÷ allowed time",
        required_rate,
        size,
        count,
        within,
    )
    links, unknown = _links(sheet, prefix, name, payload, site, size, count, nodes, gpus, required)
    way = [link for link in links if link.kind != "cache"]
    near = _from_cache(links)
    complete = {"source", "network"} <= {link.kind for link in way}
    binding = binding_link(way)
    startup = _startup(sheet, path, name, payload, nodes)
    cold = plan_start(sheet, f"{prefix}.cold_start", way, size, count, startup) if complete else None
    cold = sheet.choose(Kind.TIME, f"{prefix}.cold_start", cold, nodes=int(nodes.value))
    goal = target.cold_start if target else None
    wanted = sheet.maybe(f"workloads.{name}.target.cold_start", goal, "s")
    plan = PayloadPlan(
        size=size,
        readers=count,
        required_rate=required,
        within=within,
        links=tuple(links),
        binding=binding,
        time=plan_transfer(sheet, f"{prefix}.time", way, size, count) if complete else None,
        time_cached=plan_transfer(sheet, f"{prefix}.time_cached", near, size, count) if near else None,
        startup=startup,
        cold_start=cold,
        cold_start_cached=plan_start(sheet, f"{prefix}.cold_start_cached", near, size, count, startup)
        if near
        else None,
        target=wanted,
        meets_rate=binding.enough if binding and (complete or not binding.enough) else None,
        meets_target=None if wanted is None or cold is None else cold.value <= wanted.value,
        node_class=_class_of(way, nodes) if complete else "",
        unknown=tuple(unknown),
        rate_for_target=rate_for(sheet, f"{prefix}.rate_for_target", wanted, size, count, startup),
    )
    _check(sheet, prefix, path, plan)
    return plan


def _startup(sheet: Sheet, path: str, name: str, payload: Payload, nodes: Figure) -> Figure:
    """Seconds of process and engine start: measured, declared or assumed."""
    stated = sheet.maybe(f"{path}.startup", payload.startup, "s") or sheet.assumed(
        f"{name}.startup", STARTUP_S, "s", "process and engine start are not stated"
    )
    return sheet.picked(Kind.TIME, f"{path}.startup", stated, nodes=int(nodes.value))


def _from_cache(links: list[LinkPlan]) -> list[LinkPlan]:
    """The way from the cache on: the cache itself and the links inside the nodes; empty without a cache."""
    inside = [link for link in links if link.kind in ("cache", "pcie", "memory", "loader")]
    return inside if any(link.kind == "cache" for link in inside) else []


def _class_of(way: list[LinkPlan], nodes: Figure) -> str:
    """Class of reference node that what storage and hardware let pass reaches; a loader is software on top."""
    slowest = binding_link([link for link in way if link.kind != "loader"])
    return node_class(slowest.rate.value * 1e9 / nodes.value, "read") if slowest else ""


def _check(sheet: Sheet, prefix: str, path: str, plan: PayloadPlan) -> None:
    binding = plan.binding
    if binding is not None and plan.meets_rate is False:
        sheet.misfit(
            prefix, binding.path, f"loading needs {plan.required_rate}, the {binding.words} gives {binding.rate}"
        )
    if plan.meets_target is False:
        needed = f"; the way would have to give {plan.rate_for_target}" if plan.rate_for_target else ""
        if plan.rate_for_target and not math.isfinite(plan.rate_for_target.value):
            needed = "; process and engine start alone take longer"
        sheet.misfit(
            prefix, f"{path}.within", f"a cold start takes {plan.cold_start}, the target is {plan.target}{needed}"
        )


def _links(
    sheet: Sheet,
    prefix: str,
    workload: str,
    payload: Payload,
    site: Site | None,
    size: Figure,
    readers: Figure,
    nodes: Figure,
    gpus: Figure | None,
    required: Figure,
) -> tuple[list[LinkPlan], list[Unplanned]]:
    stores = sheet.architecture.storage.stores if sheet.architecture.storage else {}
    each = loader_rate(sheet, workload, payload.loader)
    inside: list[HostLink] = host_links(sheet, prefix, site, nodes, gpus, local=False, loader=each)
    found: list[tuple[str, str, Figure | Unplanned]] = [
        ("source", f"storage.stores.{payload.source}.read", store_rate(sheet, payload.source, "read", nodes)),
        ("network", *network_to(sheet, stores.get(payload.source), site, nodes)),
        *inside,
    ]
    if payload.cache:
        found.append(
            ("cache", f"storage.stores.{payload.cache}.read", store_rate(sheet, payload.cache, "read", nodes, site))
        )
    links, unknown = list[LinkPlan](), list[Unplanned]()
    for kind, path, rate in found:
        if isinstance(rate, Unplanned):
            unknown.append(sheet.miss(f"{prefix}.{kind}", rate.reason, *rate.missing))
            continue
        time = sheet.derive(
            f"{prefix}.{kind}_time",
            "s",
            f"bytes of all readers ÷ rate of the {LINK_WORDS[kind]}",
            transfer_s,
            size,
            readers,
            rate,
        )
        # What engines load with by themselves is assumed: only a rate that no loader reaches is too slow for certain.
        most = FASTEST_GAIN if kind == "loader" and payload.loader is None else 1.0
        links.append(LinkPlan(kind, path, rate, time, rate.value * most >= required.value))  # type: ignore[arg-type]
    return links, unknown


def store_rate(sheet: Sheet, name: str, way: str, nodes: Figure, site: Site | None = None) -> Figure | Unplanned:
    """GB/s that a store reads or writes for `nodes` nodes together; a node's own disk counts once per node.

    Args:
        way: read or write.
        site: pool whose nodes hold a local store; its declared NVMe rate counts where the store states none.
    """
    stores = sheet.architecture.storage.stores if sheet.architecture.storage else {}
    store, path = stores.get(name), f"storage.stores.{name}.{way}"
    if store is None:
        return Unplanned(path, f"the file has no store '{name}'", (f"storage.stores.{name}",))
    value = getattr(store, way)
    rate = sheet.maybe(path, value, "GB/s")
    hardware = site.pool.hardware if site else None
    if rate is None and store.kind == "local-nvme" and site and hardware:
        rate = sheet.maybe(f"{site.path}.hardware.nvme_{way}", getattr(hardware, f"nvme_{way}"), "GB/s")
    own = store.kind in ("local-nvme", "memory")
    rate = sheet.choose(Kind.RATE, path, rate, nodes=1 if own else sheet.nodes)
    if rate is None:
        return Unplanned(path, f"the {way} rate of store {name} is not stated", (path,))
    if not own:
        return rate
    return sheet.derive(
        f"{path}_of_{int(nodes.value)}_nodes",
        "GB/s",
        "rate of a node's own store × nodes",
        lambda r, n: r * n,
        rate,
        nodes,
    )


def network_to(sheet: Sheet, store: Store | None, site: Site | None, nodes: Figure) -> tuple[str, Figure | Unplanned]:
    """(path, GB/s) of the network between a store and `nodes` nodes: the store's own, else the one for storage."""
    fabric = sheet.architecture.fabric
    networks = fabric.networks if fabric else {}
    name = store.network if store else None
    if name is None and site is not None:
        name = next(iter(networks_with(sheet, "storage", site.name)), None)
    network = networks.get(name) if name else None
    if name is None or network is None:
        return "fabric.networks", Unplanned(
            "network", "no network carries storage to these nodes", ("fabric.networks", "storage.stores.*.network")
        )
    path = f"fabric.networks.{name}"
    rate = sheet.derive(
        f"{path}.rate_of_{int(nodes.value)}_nodes",
        "GB/s",
        "rate of one node × nodes that read at once",
        lambda r, n: r * n,
        node_network_rate(sheet, name, network),
        nodes,
    )
    return path, rate
