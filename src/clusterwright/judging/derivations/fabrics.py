"""InfiniBand and RDMA: ports that are up, their rate, and what perftest moved between two hosts.

A port that is down has no rate, whatever number stands there. Sums of two directions, loopback on one host and
times in cycles are not comparable with a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain, why_lost
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Observation

TRAFFIC_METRICS: Final = ("rdma_write", "gpudirect_rdma_write", "rdma_read", "rdma_latency")
#: metric → names of its counters: of perfquery, sysfs and ethtool -S (mlx5).
_GROWING: Final = {
    "ib_symbol_errors": ("SymbolErrorCounter", "symbol_error", "rx_symbol_err_phy"),
    "ib_link_downs": ("LinkDownedCounter", "link_downed", "link_down_events_phy"),
}
_UP: Final = frozenset({"active", "port_active"})
_LINKED: Final = frozenset({"linkup", "link_up", ""})


def derive_ports(facts: Facts) -> Iterator[Reading]:
    """InfiniBand ports that are up on each host, and the rate of the slowest of them."""
    for node, observations in facts.per_node("port_state", "port_physical_state", "port_layer", "port_rate"):
        ports: dict[tuple[str, str], dict[str, Observation]] = {}
        for o in observations:
            subject = dict(o.subject)
            ports.setdefault((subject.get("device", ""), subject.get("port", "")), {}).setdefault(o.name, o)
        fabric = [port for port in ports.values() if "ethernet" not in _word(port, "port_layer")]
        if not fabric or not any("port_state" in port for port in fabric):
            continue
        unknown = [port["port_state"] for port in fabric if "port_state" in port and not _word(port, "port_state")]
        up = [port for port in fabric if _is_up(port)]
        yield facts.reading("ib_links_up", float(len(up)), nodes=(node,))
        if unknown:
            yield facts.reading("ib_links_up", None, nodes=(node,), why=why_lost(unknown))
        yield from _rates(facts, node, up)


def _rates(facts: Facts, node: str, up: Sequence[dict[str, Observation]]) -> Iterator[Reading]:
    rates = [port["port_rate"] for port in up if "port_rate" in port]
    known = [o.value for o in rates if isinstance(o.value, Quantity)]
    lost = [o for o in rates if not isinstance(o.value, Quantity)]
    if known:
        yield facts.reading("ib_port_rate", min(known, key=lambda q: q.value), nodes=(node,))
    if lost:
        yield facts.reading("ib_port_rate", None, nodes=(node,), why=why_lost(lost))


def _word(port: dict[str, Observation], name: str) -> str:
    return plain(port[name].value).strip().lower().replace(" ", "") if name in port else ""


def _is_up(port: dict[str, Observation]) -> bool:
    return _word(port, "port_state") in _UP and _word(port, "port_physical_state") in _LINKED


def derive_counters(facts: Facts) -> Iterator[Reading]:
    """Symbol errors and lost links of each port as counts since nobody knows when: no value, until two are compared."""
    for metric, names in _GROWING.items():
        for node, observations in facts.per_node(*names):
            for o in observations if node else ():
                said = {key: value for key, value in o.subject if key != "node"} | {"counter": o.name}
                if isinstance(o.value, float | int):
                    said["count"] = plain(o.value)
                    why = "partial view: a counter since it was cleared; a second reading shows whether it grows"
                else:
                    why = why_lost([o])
                yield facts.reading(metric, None, said, nodes=(node,), why=why)


def derive_traffic(facts: Facts) -> Iterator[Reading]:
    """Bandwidth and latency of perftest at each message size."""
    shared = _shared(facts)
    fault = _why_not_comparable(facts)
    metric = _bandwidth_metric(facts)
    if metric:
        for o in facts.of("bandwidth_average"):
            yield facts.reading(metric, o.value, shared | _size(o), why=fault)
    for o in _latencies(facts):
        yield facts.reading("rdma_latency", o.value, shared | _size(o), why=fault)


def _latencies(facts: Facts) -> Sequence[Observation]:
    for name in ("latency_typical", "latency_mean"):
        if found := facts.of(name):
            return found
    return ()


def _bandwidth_metric(facts: Facts) -> str:
    operation = facts.text("operation").lower() or facts.text("test").lower()
    if "read" in operation:
        return "rdma_read"
    if "write" not in operation:
        return ""
    return "gpudirect_rdma_write" if facts.run.condition("gpu_memory") is True else "rdma_write"


def _shared(facts: Facts) -> dict[str, str]:
    names = ("device", "mtu", "qps", "gpu_memory", "bidirectional")
    found = {name: text for name in names if (text := facts.text(name))}
    carried = [text for text in (facts.text("connection"), facts.text("transport")) if text]
    return found | ({"transport": " over ".join(carried)} if carried else {})


def _size(row: Observation) -> dict[str, str]:
    size = dict(row.subject).get("size", "")
    return {"message_size": f"{size} B"} if size.isascii() and size.isdecimal() else {}


def _why_not_comparable(facts: Facts) -> str:
    if facts.run.condition("bidirectional") is True:
        return "not comparable: the sum of both directions (-b); measure one direction"
    if facts.run.condition("loopback") is True or any(n.code == "loopback" for n in facts.run.notices):
        return "not comparable: loopback inside one host, not the fabric"
    return ""
