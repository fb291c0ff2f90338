"""Floors that no hardware meets, and floors that broken hardware meets: ceilings, sizes, units.

Bounds and references of collectives: physics.ceilings. A floor above the bound is unattainable; one far below the
reference is met by a broken fabric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.lib.quantities import Quantity
from clusterwright.model.acceptance import Requirement
from clusterwright.model.findings import Severity
from clusterwright.physics.ceilings import COLLECTIVES, busbw_bound, busbw_reference
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.review.rules import Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject
from clusterwright.review.thresholds import claims_of, pool_of

_TABLE = RuleTable("acceptance")
_CEILINGS: Final = "Clusterwright's ceilings (counting argument in physics.ceilings; nccl-tests PERFORMANCE.md)"

#: Share of the reference below which a floor proves nothing; our default. Every published healthy result we know is at
#: 0.45 of its reference or above (GB200, 20 racks), most above 0.7; 100 GB/s inside an H100 node is at 0.22.
VACUOUS: Final = 1 / 3
#: nccl-tests: busbw = algbw × factor of n ranks.
_FACTOR: Final = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0, "all-to-all": 1.0}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a collective can reach; GB/s of bus bandwidth.

    Args:
        bound: nothing on this transport exceeds it; infinite where switches add up in the network, then twice
            the reference if it is oversubscribed: every byte leaves a node once instead of twice.
        reference: of a flat ring, at most the bound.
        ranks: GPUs taking part.
        squeeze: oversubscription of the network that they cross, which is in both already; 1 for none.
    """

    bound: float
    reference: float
    ranks: float
    squeeze: float = 1.0

    @property
    def condition(self) -> str:
        """The oversubscription in words, "" without any."""
        return f" at {self.squeeze:g}:1 oversubscription" if self.squeeze > 1 else ""


def ceiling(subject: Subject, requirement: Requirement) -> Ceiling | str:
    """Ceiling of a collective claim, or what is missing to know it."""
    operation = requirement.conditions.operation
    if operation is None:
        return "the operation (all-reduce, all-gather, reduce-scatter, all-to-all)"
    if operation not in COLLECTIVES:
        return f"a formula for {operation}, which this version lacks"
    pool = pool_of(subject, requirement)
    planned = next((p for p in subject.plan.pools if p.name == pool), None)
    if pool is None or planned is None:
        return "a GPU pool it is measured on"
    nodes = _nodes_of(subject, requirement, pool)
    ranks = float(nodes * planned.gpus_per_node)
    same = [c for c in subject.plan.network.collectives if c.pool == pool and c.operation == operation]
    found = next((c for c in same if c.nodes == nodes), None)
    path, squeeze = _squeeze(subject, pool) if ranks > planned.domain_gpus else ("", 1.0)
    if found is not None:
        bound, reference = (_squeezed(figure, path, squeeze) for figure in (found.bound, found.reference))
        return _ceiling(bound, reference, ranks, squeeze)
    rate = subject.plan.figures.get(f"pools.{pool}.nic_rate")
    if rate is None or ranks <= planned.domain_gpus:
        return f"the links of pool {pool} over {nodes} nodes (its NVLink domain, a compute network that reaches it)"
    # Between one domain and the whole pool, which are what the plan has.
    domains = ranks / planned.domain_gpus
    inside = min(same, key=lambda c: c.nodes, default=None)
    link = inside.reference.value if inside is not None and inside.nodes < nodes else rate.value * planned.domain_gpus
    each = _squeezed(rate, path, squeeze)
    bound = busbw_bound(operation, planned.domain_gpus, domains, each)
    if operation == "all-reduce" and any(n.in_network_reduction for n in subject.networks_with("compute").values()):
        bound = float("inf")
    reference = busbw_reference(planned.domain_gpus, domains, each, link)
    return _ceiling(bound, reference, ranks, squeeze)


def _ceiling(bound: float, reference: float, ranks: float, squeeze: float) -> Ceiling:
    if math.isinf(bound) and squeeze > 1:
        bound = 2 * reference
    return Ceiling(bound, min(bound, reference), ranks, squeeze)


def _squeeze(subject: Subject, pool: str) -> tuple[str, float]:
    """(path, oversubscription) of the compute network that reaches a pool: the first, as in the plan."""
    for name, network in subject.networks_with("compute").items():
        if subject.network_reaches(name, pool):
            return f"fabric.networks.{name}.oversubscription", max(1.0, network.oversubscription or 1.0)
    return "", 1.0


def _squeezed(figure: Figure, path: str, squeeze: float) -> float:
    """A rate between nodes with the oversubscription in it: divided here where the plan has not done it already."""
    return figure.value if path in figure.leaves else figure.value / squeeze


def _nodes_of(subject: Subject, requirement: Requirement, pool: str) -> int:
    """Nodes that take part at once: one for a node's claim, two for a pair's, else as declared or the whole pool."""
    scope = requirement.scope
    if scope.of in ("node", "pair"):
        return 1 if scope.of == "node" else 2
    return scope.nodes or subject.pools[pool].node_count


def _busbw(requirement: Requirement, ranks: float) -> float:
    """The threshold as bus bandwidth, GB/s."""
    value = requirement.threshold.to("GB/s") if isinstance(requirement.threshold, Quantity) else 0.0
    if requirement.metric == "algbw":
        return value * _FACTOR[requirement.conditions.operation or "all-reduce"] * (ranks - 1) / ranks
    return value


def _floors(subject: Subject) -> Iterator[tuple[str, str, Requirement, Ceiling]]:
    for path, name, requirement in claims_of(subject):
        if requirement.metric in ("busbw", "algbw") and requirement.at_least is not None:
            found = ceiling(subject, requirement)
            if isinstance(found, Ceiling):
                yield path, name, requirement, found


_SQUEEZED: Final = (
    "lower the floor or the oversubscription, or keep the nodes under one leaf switch and let the "
    "requirement's scope say how many those are"
)


@_TABLE.rule(
    "floor-unattainable",
    Severity.ERROR,
    80,
    why="A floor that physics does not allow fails a good cluster, or is met by a wrong measurement.",
    satisfy="lower the floor below the bound; published results of the same hardware are a good guide",
    example="all-reduce-in-node: {metric: busbw, at_least: 430 GB/s, ...}   # 8 × H100: published 450 to 480",
    source=_CEILINGS,
)
def floor_unattainable(subject: Subject) -> Iterator[Hit]:
    """A floor exceeds what link, port, slot or store can deliver."""
    for path, name, requirement in claims_of(subject):
        if requirement.metric in ("busbw", "algbw") and requirement.at_least is not None:
            found = ceiling(subject, requirement)
            if isinstance(found, str):
                yield undecided(path, f"the ceiling of {name} needs {found}")
            elif (asked := _busbw(requirement, found.ranks)) > found.bound:
                what = f"{requirement.conditions.operation} over {found.ranks:g} GPUs{found.condition}"
                message = f"{name} asks {asked:.0f} GB/s busbw; {what} is bound by {found.bound:.0f}"
                yield Hit(f"{path}.at_least", message, _SQUEEZED if found.squeeze > 1 else "")
            elif found.squeeze > 1 and asked > found.reference:
                what = f"a flat ring over {found.ranks:g} GPUs{found.condition}"
                yield Hit(
                    f"{path}.at_least",
                    f"{name} asks {asked:.0f} GB/s busbw; {what} gives {found.reference:.0f}",
                    _SQUEEZED,
                    severity=Severity.WARNING,
                )
    yield from _port_floors(subject)
    yield from _store_floors(subject)


def _port_floors(subject: Subject) -> Iterator[Hit]:
    for path, name, requirement in claims_of(subject):
        if requirement.metric not in ("rdma_write", "gpudirect_rdma_write") or requirement.at_least is None:
            continue
        fastest = max(subject.networks_with("compute").values(), key=lambda n: n.rate.value, default=None)
        if fastest is None:
            yield undecided(path, f"the port rate that {name} is measured on (no compute network)")
        elif requirement.at_least.value > fastest.rate.value:
            yield Hit(f"{path}.at_least", f"{name} asks {requirement.at_least}; a port has {fastest.rate}")


def _store_floors(subject: Subject) -> Iterator[Hit]:
    for path, name, requirement in claims_of(subject):
        field = {"storage_read": "read", "storage_write": "write"}.get(requirement.metric)
        if field is None or requirement.at_least is None:
            continue
        pool = pool_of(subject, requirement)
        nodes = requirement.scope.nodes or (subject.pools[pool].node_count if pool else 1)
        rates = {}
        for store_name, store in subject.stores.items():
            rate = getattr(store, field)
            if rate is not None:
                rates[store_name] = rate.value * (nodes if store.kind in ("local-nvme", "memory") else 1)
        if rates and requirement.at_least.value > max(rates.values()):
            best = max(rates, key=lambda n: rates[n])
            message = (
                f"{name} asks {requirement.at_least}; the fastest store, {best}, {field}s {rates[best] / 1e9:g} GB/s"
            )
            yield Hit(f"{path}.at_least", message)


@_TABLE.rule(
    "limit-unattainable",
    Severity.ERROR,
    75,
    why="A limit below what bytes and rates allow can only be met by measuring something else.",
    satisfy="raise the limit, or speed up what binds it",
    example="checkpoint-write: {metric: checkpoint_write, at_most: 60 s, ...}",
    source="Clusterwright's plan: checkpoint and payload bytes ÷ slowest link",
)
def limit_unattainable(subject: Subject) -> Iterator[Hit]:
    """A time limit is below what the planned bytes and rates allow."""
    for path, name, requirement in claims_of(subject):
        limit = requirement.at_most
        if not isinstance(limit, Quantity) or requirement.about.kind != "duration":
            continue
        if limit.value <= 0:
            yield Hit(f"{path}.at_most", f"{name} allows {limit}: nothing takes no time")
            continue
        planned = _planned_time(subject, requirement)
        if planned is not None and planned[0] > limit.value:
            yield Hit(f"{path}.at_most", f"{name} allows {limit}; {planned[1]}")


def _planned_time(subject: Subject, requirement: Requirement) -> tuple[float, str] | None:
    """(s, in words) that the plan computes for a claim about a workload, None where it does not."""
    planned = subject.plan.workload(requirement.scope.workload or "")
    if planned is None:
        return None
    if requirement.metric in ("checkpoint_write", "checkpoint_restore", "checkpoint_stall"):
        plan = planned.checkpoint
        if plan is None or isinstance(plan, Unplanned):
            return None
        fields = {
            "checkpoint_write": plan.write_time,
            "checkpoint_restore": plan.restore,
            "checkpoint_stall": plan.stall,
        }
        figure = fields[requirement.metric]
        return None if figure is None else (figure.value, f"{plan.size} take {figure} by the plan")
    if requirement.metric in ("cold_start", "payload_time"):
        payload = planned.payload
        if payload is None or isinstance(payload, Unplanned):
            return None
        figure = payload.cold_start if requirement.metric == "cold_start" else payload.time
        return None if figure is None else (figure.value * (figure.band or (1.0,))[0], f"the plan needs {figure}")
    return None


@_TABLE.rule(
    "floor-vacuous",
    Severity.ERROR,
    65,
    why="A floor that a half-broken fabric meets accepts a half-broken fabric.",
    satisfy="raise the floor towards the reference, or the best published result for the hardware",
    example="all-reduce-both-nodes: {metric: busbw, at_least: 350 GB/s, ...}   # ring reference 400",
    source=_CEILINGS + "; below a third of the reference: our default, every published healthy result is above it",
)
def floor_vacuous(subject: Subject) -> Iterator[Hit]:
    """A floor is far below what healthy hardware reaches, or nothing can fail it."""
    for path, name, requirement, found in _floors(subject):
        asked = _busbw(requirement, found.ranks)
        if asked < VACUOUS * found.reference:
            what = f"{requirement.conditions.operation} over {found.ranks:g} GPUs"
            yield Hit(f"{path}.at_least", f"{name} asks {asked:.0f} GB/s busbw; the reference of {what} is "
                      f"{found.reference:.0f}")  # fmt: skip
    for path, name, requirement in claims_of(subject):
        threshold = requirement.threshold
        if requirement.metric in ("rdma_write", "gpudirect_rdma_write") and requirement.at_least is not None:
            fastest = max((n.rate.value for n in subject.networks_with("compute").values()), default=0.0)
            if requirement.at_least.value < VACUOUS * fastest and not _looks_like_bytes(requirement, fastest):
                message = f"{name} asks {requirement.at_least} of a port with {fastest / 1e9:g} Gb/s"
                yield Hit(f"{path}.at_least", message)
        value = threshold.value if isinstance(threshold, Quantity) else threshold
        if requirement.comparison == "at_least" and isinstance(value, float) and value <= 0:
            yield Hit(f"{path}.at_least", f"{name} asks {requirement.metric} of at least {threshold}: nothing fails it")


@_TABLE.rule(
    "floor-size-missing",
    Severity.ERROR,
    75,
    why="One healthy fabric read 64 GB/s at 16 MiB and 382 at 16 GiB: without a size a bandwidth is no threshold.",
    satisfy="give the message size (and for collectives the operation)",
    example="conditions: {operation: all-reduce, message_size: 16 GiB, data_type: float}",
    source="published nccl-tests results of 8×B200 over 4 nodes; nccl-tests PERFORMANCE.md",
)
def size_missing(subject: Subject) -> Iterator[Hit]:
    """A bandwidth threshold has no message size, or a collective no operation."""
    for path, name, requirement in claims_of(subject):
        if not requirement.about.needs_size:
            continue
        if requirement.conditions.message_size is None:
            message = f"{name} asks {requirement.metric} of {requirement.threshold} at no message size"
            yield Hit(f"{path}.conditions.message_size", message)
        if requirement.metric in ("busbw", "algbw") and requirement.conditions.operation is None:
            yield Hit(f"{path}.conditions.operation", f"{name} asks {requirement.metric} of no named collective")


_SAYS_BITS: Final = re.compile(r"\bGb/s|[Gg]bps\b|[Gg]bit")
_SAYS_BYTES: Final = re.compile(r"\bGB/s|\bGBps\b|[Gg]bytes?")


def _looks_like_bytes(requirement: Requirement, port_bits_s: float) -> bool:
    """Whether a bit rate is what a bandwidth in GB/s looks like when it is written as Gb/s: line rate ÷ 8."""
    value = requirement.threshold
    return isinstance(value, Quantity) and 0.8 * port_bits_s / 8 <= value.value <= 1.02 * port_bits_s / 8


@_TABLE.rule(
    "floor-unit-suspect",
    Severity.WARNING,
    70,
    why="Bits for bytes is a factor of eight: a cluster accepted at an eighth of its fabric, or refused for nothing.",
    satisfy="check whether bits (Gb/s) or bytes (GB/s) are meant: nccl-tests reports GB/s, ib_write_bw Gb/s",
    example="rdma-every-rail: {metric: rdma_write, at_least: 370 Gb/s, ...}",
    source="nccl-tests reports GB/s; perftest reports Gb/s with --report_gbits, else MiB/s",
)
def unit_suspect(subject: Subject) -> Iterator[Hit]:
    """A threshold's name or source speaks of bits where it counts bytes, or its number is a line rate ÷ 8."""
    fastest = max((n.rate.value for n in subject.networks_with("compute").values()), default=0.0)
    for path, name, requirement in claims_of(subject):
        kind, field = requirement.about.kind, f"{path}.{requirement.comparison}"
        if not isinstance(requirement.threshold, Quantity) or kind not in ("byte rate", "bit rate"):
            continue
        text = f"{name} {requirement.source or ''}"
        if kind == "byte rate" and (_SAYS_BITS.search(text) or re.search(r"gbps|gbit", name, re.IGNORECASE)):
            yield Hit(field, f"{name} is in bytes ({requirement.threshold}) and its name or source speaks of bits")
        elif kind == "bit rate" and _SAYS_BYTES.search(text):
            yield Hit(field, f"{name} is in bits ({requirement.threshold}) and its name or source speaks of bytes")
        elif kind == "bit rate" and fastest and _looks_like_bytes(requirement, fastest):
            message = f"{name} asks {requirement.threshold}; a port has {fastest / 1e9:g} Gb/s = {fastest / 8e9:g} GB/s"
            yield Hit(field, message, weight=80, severity=Severity.ERROR)


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
