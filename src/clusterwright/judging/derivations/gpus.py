"""nvidia-smi and rocm-smi: devices, memory faults, links, heat; every GPU of a host, and the worst decides.

A counter that a GPU lacks (N/A) is no zero: the host then has no count that it could pass with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain, why_lost
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Lack, NoValue, Observation
from clusterwright.readers.nvidia.nvlink_findings import full_links

METRICS_OF: Final = ("gpus_present",)
#: What the driver says of a fabric that is up. Source: nvmlGpuFabricState_t; `nvidia-smi -q`, section Fabric.
_READY: Final = frozenset({"completed", "success"})
#: Reasons by which the hardware holds the clocks down; the others follow from load or from settings.
#: Source: nvml.h, nvmlClocksEventReasons.
_HARDWARE_REASONS: Final = ("hw slowdown", "hw thermal slowdown", "hw power brake slowdown", "sw thermal slowdown")
#: Codes of notices by which readers say that GPUs have fewer links than they should.
_FEWER_LINKS: Final = ("nvlink-links-down", "nvlink-unequal", "links-differ", "xgmi-unequal")
_SLOWDOWN: Final = "temperature_slowdown"
_LINKS: Final = re.compile(r"NV(\d{1,3})")
#: Codes of notices by which readers say that they saw a part of the host.
_PARTIAL: Final = ("container-view", "gpus-selected", "gpus-not-printed")


def derive_gpus(facts: Facts) -> Iterator[Reading]:
    """Everything that a report of the GPUs of a host proves about its health."""
    yield from _present(facts)
    yield from _uncorrected(facts)
    yield from _flags(facts, "remaps_pending", ("remap_pending", "retired_pages_pending"))
    yield from _flags(facts, "remap_failures", ("remap_failure",))
    if facts.has("retired_pages"):
        yield from facts.count("retired_pages", ("retired_pages",))
    yield from _links(facts)
    yield from _topology(facts)
    yield from _fabric(facts)
    yield from _throttled(facts)
    yield from _margin(facts)
    yield from _driver(facts)


def _identity(observation: Observation) -> str:
    subject = dict(observation.subject)
    return subject.get("uuid") or subject.get("pci") or subject.get("gpu") or ""


def _present(facts: Facts) -> Iterator[Reading]:
    """Physical GPUs that the host shows; a view of a part of them is no count of the host."""
    names = ("gpu",) if facts.has("gpu") else ("gpus_visible", "attached_gpus")
    partial = next((n.message for n in facts.run.notices if n.code in _PARTIAL), "")
    if "-apps" in facts.run.tool:
        partial = "GPUs without a process are not listed"
    for node, observations in facts.per_node(*names):
        seen = _seen(observations)
        attached = facts.number("attached_gpus")
        why = f"partial view: {partial}" if partial else ""
        if not why and seen is not None and attached is not None and seen < attached:
            why = f"partial view: {seen:g} of {attached:g} attached GPUs are printed"
        yield facts.reading("gpus_present", seen, nodes=(node,), why=why)


def _seen(observations: Sequence[Observation]) -> float | None:
    """Distinct devices, or the number that is printed of them."""
    if observations[0].name == "gpu":
        return float(len({_identity(o) for o in observations}))
    return next((float(o.value) for o in observations if isinstance(o.value, float | int)), None)


def _uncorrected(facts: Facts) -> Iterator[Reading]:
    """Uncorrected ECC errors since the driver was loaded, and over the life of each GPU."""
    for metric, scope in (("ecc_uncorrected", "volatile"), ("ecc_uncorrected_lifetime", "aggregate")):
        for node, observations in facts.per_node("ecc_uncorrected"):
            mine = [o for o in observations if dict(o.subject).get("scope", "volatile") == scope]
            by_gpu: dict[str, list[Observation]] = {}
            for o in mine:
                by_gpu.setdefault(_identity(o), []).append(o)
            if by_gpu:
                yield from _sum(facts, metric, node, by_gpu)


def _sum(facts: Facts, metric: str, node: str, by_gpu: dict[str, list[Observation]]) -> Iterator[Reading]:
    counts = [_total(found) for found in by_gpu.values()]
    lost = [found[0] for found, count in zip(by_gpu.values(), counts, strict=True) if count is None]
    total = sum(c for c in counts if c is not None)
    if total or not lost:
        yield facts.reading(metric, float(total), nodes=(node,))
    if lost:
        yield facts.reading(metric, None, nodes=(node,), why=why_lost(lost))


def _total(observations: Sequence[Observation]) -> float | None:
    """The printed total of a GPU, else the sum over its memories; None when no counter has a value."""
    total = [o for o in observations if not dict(o.subject).get("location")]
    numbers = [float(o.value) for o in total or observations if isinstance(o.value, float | int)]
    broken = any(isinstance(o.value, NoValue) and o.value.lack is Lack.UNREADABLE for o in observations)
    return None if not numbers or broken else sum(numbers)


def _flags(facts: Facts, metric: str, names: Sequence[str]) -> Iterator[Reading]:
    """How many GPUs of each host raise one of the flags."""
    if not facts.has(*names):
        return
    for node, observations in facts.per_node(*names):
        by_gpu: dict[str, list[Observation]] = {}
        for o in observations:
            by_gpu.setdefault(_identity(o), []).append(o)
        raised = sum(any(o.value is True for o in found) for found in by_gpu.values())
        lost = [found[0] for found in by_gpu.values() if not any(isinstance(o.value, bool) for o in found)]
        if raised or not lost:
            yield facts.reading(metric, float(raised), nodes=(node,))
        if lost:
            yield facts.reading(metric, None, nodes=(node,), why=why_lost(lost))


def _links(facts: Facts) -> Iterator[Reading]:
    """Links that are down: by their state, or because the product has more than are active.

    Where nothing says how many a GPU should have, an inactive link is a fault or an unused lane, and not told apart.
    """
    products = {_identity(o): plain(o.value) for o in facts.of("gpu")}
    for node, observations in facts.per_node("nvlink_state"):
        by_gpu: dict[str, list[tuple[Observation, str]]] = {}
        for o in observations:
            by_gpu.setdefault(_identity(o), []).append((o, plain(o.value).lower()))
        down, idle, cut, unsure = 0, list[Observation](), list[str](), False
        for gpu, links in by_gpu.items():
            full = full_links(products.get(gpu, ""))
            states = [state for _, state in links]
            if full is None:
                down += states.count("down")
                idle += [o for o, state in links if state == "inactive"]
                unsure = True
            elif len(states) < full:
                down += states.count("down")
                cut.append(f"{len(states)} of {full} links of GPU {dict(links[0][0].subject).get('gpu', '')}")
            else:
                down += max(states.count("down"), full - states.count("up") - states.count(""))
        lost = [o for links in by_gpu.values() for o, state in links if not state]
        fewer = [n.message for n in facts.run.notices if n.code in _FEWER_LINKS] if unsure else []
        if down or not (idle or lost or fewer or cut):
            yield facts.reading("nvlink_down", float(down), nodes=(node,))
        if cut:
            yield facts.reading("nvlink_down", None, nodes=(node,), why=f"partial view: {cut[0]} are printed")
        if fewer:
            yield facts.reading("nvlink_down", None, nodes=(node,), why=f"invalid: {fewer[0]}")
        if idle:
            gpu = dict(idle[0].subject).get("gpu", "")
            why = f"not told apart: {len(idle)} links are inactive, the first on GPU {gpu}; unused or failed"
            yield facts.reading("nvlink_down", None, nodes=(node,), why=why)
        if lost:
            yield facts.reading("nvlink_down", None, nodes=(node,), why=why_lost(lost))


def _topology(facts: Facts) -> Iterator[Reading]:
    """Links that a pair lacks beside its siblings. Equal counts prove nothing: all could lack the same."""
    for node, observations in facts.per_node("link"):
        widths: dict[frozenset[str], int] = {}
        for o in observations:
            match = _LINKS.fullmatch(plain(o.value))
            subject = dict(o.subject)
            if match:
                widths[frozenset((subject.get("from", ""), subject.get("to", "")))] = int(match[1])
        most = max(widths.values(), default=0)
        lacking = sum(most - width for width in widths.values())
        if lacking:
            yield facts.reading("nvlink_down", float(lacking), {"most_links": str(most)}, nodes=(node,))


def _fabric(facts: Facts) -> Iterator[Reading]:
    for node, observations in facts.per_node("fabric_state"):
        states = {plain(o.value).lower() for o in observations}
        lost = [o for o in observations if not plain(o.value)]
        if states - _READY - {""}:
            yield facts.reading("fabric_ready", False, nodes=(node,))
        elif lost:
            yield facts.reading("fabric_ready", None, nodes=(node,), why=why_lost(lost))
        else:
            yield facts.reading("fabric_ready", True, nodes=(node,))


def _throttled(facts: Facts) -> Iterator[Reading]:
    for node, observations in facts.per_node("throttle"):
        held = {_identity(o) for o in observations if plain(o.value).lower() in _HARDWARE_REASONS}
        lost = [o for o in observations if not plain(o.value)]
        if held or not lost:
            yield facts.reading("gpus_throttled", float(len(held)), nodes=(node,))
        if lost:
            yield facts.reading("gpus_throttled", None, nodes=(node,), why=why_lost(lost))


def _margin(facts: Facts) -> Iterator[Reading]:
    """The least margin to slowdown of all GPUs, in degrees; of old drivers the limit less the temperature."""
    for node, observations in facts.per_node("temperature_margin", "temperature", "temperature_slowdown"):
        by_gpu: dict[str, dict[str, Observation]] = {}
        for o in observations:
            by_gpu.setdefault(_identity(o), {}).setdefault(o.name, o)
        asked = {gpu: found for gpu, found in by_gpu.items() if found.keys() & {"temperature_margin", _SLOWDOWN}}
        margins = {gpu: _margin_of(found) for gpu, found in asked.items()}
        known = [m for m in margins.values() if m is not None]
        lost = [next(iter(asked[gpu].values())) for gpu, margin in margins.items() if margin is None]
        if known:
            yield facts.reading("gpu_temperature_margin", min(known), nodes=(node,))
        if lost:
            yield facts.reading("gpu_temperature_margin", None, nodes=(node,), why=why_lost(lost))


def _margin_of(found: dict[str, Observation]) -> float | None:
    margin = _celsius(found.get("temperature_margin"))
    if margin is not None:
        return margin
    now, limit = _celsius(found.get("temperature")), _celsius(found.get(_SLOWDOWN))
    return limit - now if now is not None and limit is not None else None


def _celsius(observation: Observation | None) -> float | None:
    value = observation.value if observation is not None else None
    return value.value if isinstance(value, Quantity) and value.powers == (("°C", 1),) else None


def _driver(facts: Facts) -> Iterator[Reading]:
    driver = facts.run.condition("driver")
    if not isinstance(driver, str) or not driver:
        return
    for node, _ in facts.per_node("gpu"):
        yield facts.reading("driver_version", driver, nodes=(node,))
