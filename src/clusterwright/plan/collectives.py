"""Bounds and references of collectives over the nodes of each pool."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.model.hardware import Gpu
from clusterwright.physics.ceilings import COLLECTIVES, Collective, busbw_bound, busbw_bound_inside, busbw_reference
from clusterwright.physics.collective_fits import FIT_SOURCE, find_spread, find_terms, most_ranks
from clusterwright.physics.collectives import CollectiveTerms, bus_bandwidth_gbytes_s, collective_us
from clusterwright.physics.hierarchies import ALL_TO_ALL_SHARE, RING_SHARE, Fabric, band_between, over_nodes_us
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.clusters import CollectivePlan, NetworkPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sites import Site, networks_with

#: Message whose bus bandwidth is expected: long enough for the links, short enough to be sent.
_MESSAGE: Final = 2.0**30
_SHARES: Final = "published nccl-tests results over 2 to 8 nodes (physics/published.py), chosen 2026-11-30"
#: NVLink generation from which NVSwitch adds up in the network (NVLS): NVSwitch 3, Hopper.
_NVLS_GENERATION = 4


def plan_network(sheet: Sheet, sites: tuple[Site, ...]) -> NetworkPlan:
    """Bus-bandwidth bound and reference of every collective inside a domain and over all nodes of each pool."""
    found, unknown = list[CollectivePlan](), list[Unplanned]()
    for site in sites:
        if site.gpu is None or site.gpus < 2:
            continue
        inside, link = _inside(sheet, site, site.gpu)
        found += inside
        if len(site.nodes) > 1:
            across = _across(sheet, site, link)
            if isinstance(across, Unplanned):
                unknown.append(across)
            else:
                found += across
    return NetworkPlan(tuple(found), tuple(unknown))


def _inside(sheet: Sheet, site: Site, gpu: Gpu) -> tuple[list[CollectivePlan], Figure | None]:
    if gpu.scale_up is None or site.domain_gpus < 2:
        return [], None
    link = sheet.published(gpu, "scale_up_rate", gpu.scale_up.per_direction, "GB/s", "one direction, to all others")
    ranks = min(site.domain_gpus, site.gpus)
    nodes = max(1, ranks // site.gpus_per_node)
    reduces = (
        gpu.scale_up.kind == "nvlink" and gpu.scale_up.switched and (gpu.scale_up.generation or 0) >= _NVLS_GENERATION
    )
    plans = []
    for operation in COLLECTIVES:
        prefix = f"network.{site.name}.{nodes}_nodes.{operation}"
        bound = sheet.derive(
            f"{prefix}.bound",
            "GB/s",
            "link·n/(n+1)·2(n−1)/n, switches add up"
            if reduces and operation == "all-reduce"
            else "rate of a GPU into its domain",
            _bound_inside(operation, ranks, reduces),
            link,
        )
        reference = _reference_inside(sheet, f"{prefix}.reference", operation, gpu, ranks, link)
        expected = _expected_inside(sheet, f"{prefix}.expected", operation, gpu, ranks)
        plans.append(CollectivePlan(site.name, operation, nodes, bound, reference, expected))
    return plans, link


def _reference_inside(sheet: Sheet, name: str, operation: Collective, gpu: Gpu, ranks: int, link: Figure) -> Figure:
    """All-reduce: what long messages were measured to reach; else the link."""
    if operation != "all-reduce" or ranks > most_ranks(gpu.name):
        return sheet.derive(name, "GB/s", "flat ring inside the domain: the link", lambda r: r, link)
    measured = _terms(sheet, operation, gpu, ranks)[1]
    return sheet.derive(name, "GB/s", "bus bandwidth that measured all-reduces tend to", lambda r: r, measured)


def _terms(sheet: Sheet, operation: Collective, gpu: Gpu, ranks: int) -> tuple[Figure, Figure, Figure]:
    """Latency, bandwidth and root of a GPU that was measured."""
    found = find_terms(gpu.name, operation, ranks)
    assert found is not None
    name, source = f"{operation.replace('-', '_')}.{gpu.name}.{ranks}_gpus", f"{FIT_SOURCE}, {ranks} GPUs"
    return (
        sheet.constant(f"{name}.latency", found.latency_us, "µs", source),
        sheet.constant(f"{name}.bandwidth", found.bandwidth_gbytes_s, "GB/s", source),
        sheet.constant(f"{name}.root", found.root_us, "µs/√B", source),
    )


def _expected_inside(sheet: Sheet, name: str, operation: Collective, gpu: Gpu, ranks: int) -> Figure | None:
    """Bus bandwidth of 1 GiB over the GPUs of a domain, None where nobody measured as many."""
    if ranks > most_ranks(gpu.name):
        return None

    def busbw(latency: float, bandwidth: float, root: float) -> float:
        time = collective_us(operation, _MESSAGE, ranks, CollectiveTerms(latency, bandwidth, root))
        return bus_bandwidth_gbytes_s(_MESSAGE, time, ranks, operation)

    formula = "1 GiB ÷ (latency + bytes ÷ bandwidth + root·√bytes), as bus bandwidth"
    return sheet.derive(name, "GB/s", formula, busbw, *_terms(sheet, operation, gpu, ranks), band=_band_inside(gpu))


def _band_inside(gpu: Gpu) -> tuple[float, float]:
    """Factors within which nine of ten latencies lie that were left out of the fit."""
    spread = find_spread(gpu.name)
    assert spread is not None
    return 1 - spread, 1 + spread


def _band_across(gpu: Gpu, domains: int) -> tuple[float, float]:
    """The wider of the factors inside a domain and between domains."""
    inside, between = _band_inside(gpu), band_between(domains)
    return min(inside[0], between[0]), max(inside[1], between[1])


def _bound_inside(operation: Collective, ranks: int, reduces: bool) -> Callable[[float], float]:
    return lambda rate: busbw_bound_inside(operation, ranks, rate, reduces)


def nic_rate(sheet: Sheet, site: Site) -> Figure | Unplanned:
    """GB/s of compute network per GPU: ports of a node shared by its GPUs, not above the adapter's host link."""
    name = f"{site.path}.nic_rate"
    found = networks_with(sheet, "compute", site.name)
    if not found:
        return sheet.miss(name, f"no network with role compute reaches pool {site.name}", "fabric.networks")
    network_name, network = next(iter(found.items()))
    path = f"fabric.networks.{network_name}"
    rate = sheet.declared(f"{path}.rate", network.rate, "Gb/s")
    ports = sheet.declared(f"{path}.ports", network.ports, "ports")
    gpus = sheet.declared(f"{site.path}.gpus_per_node", site.gpus_per_node, "GPUs")
    inputs = [rate, ports, gpus]
    host = _host_rate(sheet, site)
    if host is not None:
        inputs.append(host)
    computed = sheet.derive(
        name,
        "GB/s",
        "rate of a port × ports ÷ GPUs ÷ 8 bit" + (", at most the adapter's PCIe link per port" if host else ""),
        lambda r, p, g, h=math.inf: min(r / 8, h) * p / g,
        *inputs,
    )
    return sheet.picked(Kind.RATE, name, computed, nodes=1)


def _host_rate(sheet: Sheet, site: Site) -> Figure | None:
    """GB/s that the host link of one adapter carries, None if the adapter is unknown."""
    hardware = site.pool.hardware
    name = hardware.nic if hardware else None
    if name is None and site.shape is not None:
        name = next((s.nic for s in site.shape.nics if s.role == "compute" and s.nic), None)
    nic = sheet.catalogue.find_nic(name) if name else None
    if nic is None or nic.host_rate is None:
        return None
    return sheet.published(nic, "host_rate", nic.host_rate.value / 8e9 / nic.ports, "GB/s", "PCIe link per port")


def fabric_rate(sheet: Sheet, site: Site, rate: Figure) -> tuple[Figure, bool]:
    """(GB/s per GPU between nodes when all talk at once, whether the fabric gives less than the NICs).

    The file does not say how many nodes share a leaf switch; every node counts as on a leaf of its own.
    """
    found = networks_with(sheet, "compute", site.name)
    network_name, network = next(iter(found.items()))
    if (network.oversubscription or 1) <= 1:
        return rate, False
    path = f"fabric.networks.{network_name}.oversubscription"
    squeeze = sheet.declared(path, network.oversubscription or 1, "")
    sheet.limit(
        f"network {network_name} is oversubscribed {network.oversubscription:g}:1 and the file does not say how many "
        "nodes share a leaf: references and training count every node on a leaf of its own; bounds are the NICs'"
    )
    computed = sheet.derive(
        f"{site.path}.fabric_rate",
        "GB/s",
        "rate of a NIC ÷ oversubscription, every node on a leaf of its own",
        lambda r, o: r / o,
        rate,
        squeeze,
    )
    return sheet.picked(Kind.RATE, f"{site.path}.fabric_rate", computed, nodes=len(site.nodes)), True


def _across(sheet: Sheet, site: Site, link: Figure | None) -> list[CollectivePlan] | Unplanned:
    rate = nic_rate(sheet, site)
    if isinstance(rate, Unplanned):
        return rate
    domain = min(max(1, site.domain_gpus), site.gpus)
    domains = math.ceil(site.gpus / domain)
    if domains < 2:
        return []
    nodes, plans = len(site.nodes), list[CollectivePlan]()
    through, squeezed = fabric_rate(sheet, site, rate)
    lifted = any(n.in_network_reduction for n in networks_with(sheet, "compute", site.name).values())
    for operation in COLLECTIVES:
        prefix = f"network.{site.name}.{nodes}_nodes.{operation}"
        bound = sheet.derive(
            f"{prefix}.bound",
            "GB/s",
            "none: the network adds up in its switches"
            if lifted and operation == "all-reduce"
            else ("r·(n−1)/(n−g)" if operation == "all-to-all" else "r·(n−1)/(k−1)"),
            _bound_across(operation, domain, domains, lifted),
            rate,
        )
        inputs = (through,) if link is None else (through, link)
        if operation == "all-to-all":
            reference = sheet.derive(
                f"{prefix}.reference",
                "GB/s",
                "no ring does an all-to-all: its bound" + (" at the rate between leaves" if squeezed else ""),
                _bound_across(operation, domain, domains, lifted),
                through,
            )
        else:
            reference = sheet.derive(
                f"{prefix}.reference",
                "GB/s",
                "flat ring over all GPUs: g·r, at most the link" + ("; r between leaves" if squeezed else ""),
                lambda r, inside=math.inf: busbw_reference(domain, domains, r, inside),
                *inputs,
            )
        expected = _expected_across(sheet, site, f"{prefix}.expected", operation, domain, domains, through)
        plans.append(CollectivePlan(site.name, operation, nodes, bound, reference, expected))
    _limit(sheet, site)
    return plans


def _expected_across(
    sheet: Sheet, site: Site, name: str, operation: Collective, domain: int, domains: int, through: Figure
) -> Figure | None:
    """Bus bandwidth of 1 GiB over all GPUs of a pool, None where nobody measured the inside of its domains."""
    gpu = site.gpu
    if gpu is None or not 1 < domain <= most_ranks(gpu.name):
        return None
    lifted = any(n.in_network_reduction for n in networks_with(sheet, "compute", site.name).values())
    inside, measured = _terms(sheet, operation, gpu, domain), find_terms(gpu.name, operation, domain)
    assert measured is not None
    shares = (
        sheet.constant("ring_share", RING_SHARE, "share", f"of the NICs' rate in rings, {_SHARES}"),
        sheet.constant("all_to_all_share", ALL_TO_ALL_SHARE, "share", f"of the NICs' rate, {_SHARES}"),
    )

    def busbw(rate: float, ring: float, pairs: float, latency: float, bandwidth: float, root: float) -> float:
        fabric = Fabric(domain, domains, rate, in_network=lifted, ring_share=ring, all_to_all_share=pairs)
        terms = replace(measured, latency_us=latency, bandwidth_gbytes_s=bandwidth, root_us=root)
        time = over_nodes_us(operation, _MESSAGE, fabric, terms).time_us
        return bus_bandwidth_gbytes_s(_MESSAGE, time, domain * domains, operation)

    formula = "1 GiB: slower of what domains and network move, + latency (physics/hierarchies.py), as bus bandwidth"
    return sheet.derive(name, "GB/s", formula, busbw, through, *shares, *inside, band=_band_across(gpu, domains))


def _bound_across(operation: Collective, domain: int, domains: int, lifted: bool) -> Callable[[float], float]:
    if lifted and operation == "all-reduce":
        return lambda _: math.inf
    return lambda rate: busbw_bound(operation, domain, domains, rate)


def _limit(sheet: Sheet, site: Site) -> None:
    for name, network in networks_with(sheet, "compute", site.name).items():
        if network.in_network_reduction:
            sheet.limit(f"network {name} adds up in its switches: all-reduce over nodes has no bound, only a reference")
