"""Collective results beside what their system can reach, where the catalogue knows the GPU.

Inside one domain the bound is certain: a reading above it is none. Over several nodes it depends on the NICs, which
the output does not print: then the rate is that of the catalogue's nodes with this GPU, and said to be assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.judging.conditions import magnitude
from clusterwright.judging.deriving import Derivation
from clusterwright.judging.systems import Ceiling, System, ceiling_of
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading
from clusterwright.model.hardware import Gpu
from clusterwright.model.observations import Transcript


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The largest message of one operation beside its ceiling.

    Args:
        system: in words.
        busbw: GB/s, the worse of in and out of place.
        ceiling: bound, reference and published result; None when `lacks` says why it is not known.
        assumed: what the ceiling rests on that the output does not print, or "".
    """

    operation: str
    size: float
    busbw: float
    system: str
    ceiling: Ceiling | None
    assumed: str = ""
    lacks: str = ""

    @property
    def impossible(self) -> bool:
        """Whether the value exceeds a bound that rests on nothing assumed."""
        return self.ceiling is not None and not self.assumed and self.busbw > self.ceiling.bound


def measure(transcript: Transcript, derivation: Derivation, catalogue: Catalogue) -> tuple[Yardstick, ...]:
    """One yardstick per operation that the output measured."""
    found = []
    for operation, readings in _by_operation(derivation.readings).items():
        size = max(readings)
        values = readings[size]
        worst = min(values)
        found.append(_yardstick(operation, size, worst, values[worst], transcript, catalogue))
    return tuple(found)


def _by_operation(readings: Iterable[Reading]) -> dict[str, dict[float, dict[float, Reading]]]:
    """operation → message size → GB/s → its reading."""
    found: dict[str, dict[float, dict[float, Reading]]] = {}
    for reading in readings:
        seen = dict(reading.conditions)
        size = magnitude(seen.get("message_size", ""), "bytes")
        if reading.metric == "busbw" and isinstance(reading.value, Quantity) and size and seen.get("operation"):
            by_size = found.setdefault(seen["operation"], {}).setdefault(size, {})
            by_size.setdefault(reading.value.to("GB/s"), reading)
    return found


def _yardstick(
    operation: str, size: float, busbw: float, reading: Reading, transcript: Transcript, catalogue: Catalogue
) -> Yardstick:
    seen = dict(reading.conditions)
    system, assumed = _system(seen, transcript, catalogue)
    if isinstance(system, str):
        return Yardstick(operation, size, busbw, "", None, lacks=system)
    ceiling = ceiling_of(system, operation)
    if isinstance(ceiling, str):
        return Yardstick(operation, size, busbw, str(system), None, assumed, ceiling)
    return Yardstick(operation, size, busbw, str(system), ceiling, assumed)


def _system(seen: dict[str, str], transcript: Transcript, catalogue: Catalogue) -> tuple[System | str, str]:
    """(the system or what is missing to know it, what is assumed of it)."""
    product = seen.get("gpu", "")
    gpu = catalogue.find_gpu(product) if product else None
    if gpu is None:
        return (f"the catalogue does not know '{product}'" if product else "the output names no GPU"), ""
    ranks = seen.get("ranks", "")
    if not ranks.isdecimal():
        return "the number of ranks is not known", ""
    nodes = _node_count(seen, transcript)
    if nodes is None:
        return "how many hosts took part is not printed", ""
    return _build(gpu, int(ranks), nodes, catalogue)


def _node_count(seen: dict[str, str], transcript: Transcript) -> int | None:
    for run in transcript.runs:
        value = run.condition("node_count")
        if isinstance(value, float | int) and value >= 1 and run.condition("operation") == seen.get("operation"):
            return int(value)
    return None


def _build(gpu: Gpu, ranks: int, nodes: int, catalogue: Catalogue) -> tuple[System, str]:
    each = max(1, ranks // nodes)
    shapes = [s for s in catalogue.shapes if s.gpus and catalogue.find_gpu(s.gpu or "") is gpu]
    reach = max((s.domain_gpus for s in shapes if s.domain_nodes > 1), default=each)
    domain = min(ranks, max(reach, each))
    if domain >= ranks:
        return System(gpu, ranks, ranks), ""
    rates = [s.compute_rate.to("Gb/s") / 8 / s.gpus for s in shapes if s.compute_rate is not None]
    if not rates:
        return System(gpu, ranks, domain), ""
    rate = max(rates)
    return System(gpu, ranks, domain, rate), f"{rate:g} GB/s of NIC per GPU, as of the catalogue's nodes with this GPU"


def refuse_impossible(derivation: Derivation, yardsticks: Iterable[Yardstick]) -> Derivation:
    """The derivation in which readings above a certain bound have no value."""
    bounds = {y.operation: y.ceiling.bound for y in yardsticks if y.ceiling is not None and not y.assumed}
    return replace(derivation, readings=tuple(_refuse(derivation.readings, bounds)))


def _refuse(readings: Iterable[Reading], bounds: dict[str, float]) -> Iterator[Reading]:
    for reading in readings:
        bound = bounds.get(dict(reading.conditions).get("operation", ""))
        value = reading.value
        if bound is None or reading.metric != "busbw" or not isinstance(value, Quantity) or value.to("GB/s") <= bound:
            yield reading
        else:
            why = f"impossible value: {value} is above {bound:.4g} GB/s, the most that this GPU's link can do"
            yield replace(reading, value=None, unreadable=why)
