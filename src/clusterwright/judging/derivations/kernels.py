"""Kernel and fabric manager logs: Xid and SXid, lost devices, PCIe and host memory errors, per host.

A log without such an event is zero events only for the host it names and the time it covers: one that does not say
the time, or covers a few minutes, proves no absence. The codes are kept beside the count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Observation

METRICS_OF: Final = ("xid_errors", "sxid_errors", "gpus_lost", "pcie_errors", "memory_errors")
#: metric → names of its events.
_EVENTS: Final[dict[str, tuple[str, ...]]] = {
    "xid_errors": ("xid",),
    "sxid_errors": ("sxid",),
    "gpus_lost": ("lost_device",),
    "pcie_errors": ("aer",),
    "memory_errors": ("edac", "mce"),
}
#: Severities of errors that the hardware corrected.
_HARMLESS: Final = frozenset({"corrected", "correctable", "ce", "info"})
#: Seconds that a log must cover before the absence of events in it says anything; our default.
LEAST_S: Final = 600.0
_SHOWN: Final = 8


def derive_kernels(facts: Facts) -> Iterator[Reading]:
    """Events of every kind per host."""
    quiet = _why_silence_proves_nothing(facts)
    for metric, names in _EVENTS.items():
        sorted_out = {node: _serious(events) for node, events in facts.per_node(*names)}
        found = {node: events for node, events in sorted_out.items() if events}
        for node, events in found.items():
            yield facts.reading(metric, _count(events), _codes(events), nodes=(node,))
        for node in _hosts(facts):
            if node not in found:
                yield facts.reading(metric, 0.0, nodes=(node,) if node else (), why=quiet)


def derive_switches(facts: Facts) -> Iterator[Reading]:
    """Errors of NVSwitch that the fabric manager logged; its silence is no proof, the kernel log has them all."""
    for node, observations in facts.per_node("sxid"):
        events = _serious(observations)
        yield facts.reading("sxid_errors", _count(events), _codes(events), nodes=(node,))


def derive_bus(facts: Facts) -> Iterator[Reading]:
    """GPUs that are listed on the bus and do not answer, and those that do."""
    for node, observations in facts.per_node("gpu", "lost_device"):
        lost = [o for o in observations if o.name == "lost_device"]
        yield facts.reading("gpus_lost", float(len(lost)), nodes=(node,))
        seen = {dict(o.subject).get("pci", "") for o in observations if o.name == "gpu"}
        yield facts.reading(
            "gpus_present", float(len(seen - {dict(o.subject).get("pci") for o in lost})), nodes=(node,)
        )


def _hosts(facts: Facts) -> tuple[str, ...]:
    """Hosts of which the log is; "" alone when neither output nor caller says."""
    if facts.given:
        return facts.given if len(facts.given) == 1 else facts.node_names()
    return facts.node_names() or ("",)


def _serious(events: Sequence[Observation]) -> list[Observation]:
    return [e for e in events if plain(e.value).lower() not in _HARMLESS]


def _count(events: Sequence[Observation]) -> float:
    """Events: those that were folded into one line by the reader count as often as it says."""
    return float(sum(_times(e) for e in events))


def _times(event: Observation) -> int:
    text = dict(event.subject).get("count", "1")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 1


def _codes(events: Sequence[Observation]) -> dict[str, str]:
    seen = list(dict.fromkeys(plain(e.value) for e in events))
    more = f" and {len(seen) - _SHOWN} more" if len(seen) > _SHOWN else ""
    return {"events": ", ".join(seen[:_SHOWN]) + more}


def _why_silence_proves_nothing(facts: Facts) -> str:
    """Why the absence of an event is no evidence, or ""."""
    covered = facts.value("duration")
    if not isinstance(covered, Quantity):
        return "no value: nothing says which time the log covers, so silence proves nothing"
    if covered.value < LEAST_S:
        return f"no value: the log covers {covered}; silence of less than {LEAST_S / 60:.0f} min proves nothing"
    return ""
