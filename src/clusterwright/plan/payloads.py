"""Payload: what all replicas load, how fast every link on its way must be, which binds, how long a cold start takes."""

from __future__ import annotations

from clusterwright.lib.figures import Figure
from clusterwright.model.storages import Store
from clusterwright.model.workloads import Payload, Target
from clusterwright.physics.storage_chains import node_class
from clusterwright.physics.transfers import required_rate, transfer_s
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.host_paths import HostLink, host_links
from clusterwright.plan.results import LINK_WORDS, LinkPlan, PayloadPlan, Unplanned
from clusterwright.plan.sites import Site, networks_with, node_network_rate

#: s of deserialisation and engine start where the file does not say.
_STARTUP_S = 60.0


def plan_payload(
    sheet: Sheet,
    name: str,
    payload: Payload,
    target: Target | None,
    site: Site | None,
    weights: Figure | None,
    readers: Figure,
    nodes: Figure,
    gpus: Figure,
) -> PayloadPlan | Unplanned:
    """Plan the concurrent load of all readers.

    Args:
        weights: GB of one copy, None when the model cannot be planned.
        readers: concurrent readers when the file does not say.
        nodes, gpus: that read at once.
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
    links, unknown = _links(sheet, prefix, payload, site, size, count, nodes, gpus, required)
    outward = [link for link in links if link.kind != "cache"]
    complete = {"source", "network"} <= {link.kind for link in outward}
    binding = min(outward, key=lambda link: link.rate.value, default=None)
    cached = _cached(links)
    startup = sheet.maybe(f"{path}.startup", payload.startup, "s") or sheet.assumed(
        f"{name}.startup", _STARTUP_S, "s", "deserialisation and engine start are not stated"
    )
    startup = sheet.picked(Kind.TIME, f"{path}.startup", startup, nodes=int(nodes.value))
    time = binding.time if binding and complete else None
    cold = _start(sheet, f"{prefix}.cold_start", time, startup)
    cold = sheet.choose(Kind.TIME, f"{prefix}.cold_start", cold, nodes=int(nodes.value))
    warm = _start(sheet, f"{prefix}.cold_start_cached", cached.time if cached else None, startup)
    goal = target.cold_start if target else None
    wanted = sheet.maybe(f"workloads.{name}.target.cold_start", goal, "s")
    meets_rate = binding.enough if binding and (complete or not binding.enough) else None
    meets_target = None if wanted is None or cold is None else cold.value <= wanted.value
    _check(sheet, prefix, path, required, binding, meets_rate, cold, wanted, meets_target)
    return PayloadPlan(
        size=size,
        readers=count,
        required_rate=required,
        within=within,
        links=tuple(links),
        binding=binding,
        time=time,
        time_cached=cached.time if cached else None,
        startup=startup,
        cold_start=cold,
        cold_start_cached=warm,
        target=wanted,
        meets_rate=meets_rate,
        meets_target=meets_target,
        node_class=node_class(binding.rate.value * 1e9 / nodes.value, "read") if binding and complete else "",
        unknown=tuple(unknown),
    )


def _cached(links: list[LinkPlan]) -> LinkPlan | None:
    """What binds from the cache on: the cache itself or a link inside the nodes; None without a cache."""
    inside = [link for link in links if link.kind in ("cache", "pcie", "memory", "loader")]
    if not any(link.kind == "cache" for link in inside):
        return None
    return min(inside, key=lambda link: link.rate.value)


def _check(
    sheet: Sheet,
    prefix: str,
    path: str,
    required: Figure,
    binding: LinkPlan | None,
    meets_rate: bool | None,
    cold: Figure | None,
    wanted: Figure | None,
    meets_target: bool | None,
) -> None:
    if binding is not None and meets_rate is False:
        sheet.misfit(prefix, binding.path, f"loading needs {required}, the {binding.words} gives {binding.rate}")
    if meets_target is False:
        sheet.misfit(prefix, f"{path}.within", f"a cold start takes {cold}, the target is {wanted}")


def _start(sheet: Sheet, name: str, time: Figure | None, startup: Figure) -> Figure | None:
    if time is None:
        return None
    return sheet.derive(name, "s", "transfer + deserialisation and engine start", lambda t, s: t + s, time, startup)


def _links(
    sheet: Sheet,
    prefix: str,
    payload: Payload,
    site: Site | None,
    size: Figure,
    readers: Figure,
    nodes: Figure,
    gpus: Figure,
    required: Figure,
) -> tuple[list[LinkPlan], list[Unplanned]]:
    stores = sheet.architecture.storage.stores if sheet.architecture.storage else {}
    inside: list[HostLink] = host_links(sheet, prefix, site, nodes, gpus, local=False)
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
        links.append(LinkPlan(kind, path, rate, time, rate.value >= required.value))  # type: ignore[arg-type]
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
