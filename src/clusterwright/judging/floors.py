"""Thresholds of collectives against their system: impossible, toothless, without size, in doubtful units."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from clusterwright.judging.systems import Ceiling, System, as_busbw, ceiling_of
from clusterwright.lib.quantities import Quantity
from clusterwright.model.findings import Severity
from clusterwright.physics.ceilings import COLLECTIVES, Collective

#: Share of what healthy hardware reaches below which a threshold proves nothing; our default. Every published healthy
#: result is at 0.45 of its reference or above, and 100 GB/s inside an H100 node is at 0.21 of 480.
VACUOUS: Final = 1 / 3

_BITS: Final = re.compile(r"gbps|gbits?|gb_per_s", re.IGNORECASE)
_BYTES: Final = re.compile(r"GBps|GBs\b|gbytes?|gib|GB_per_s")


@dataclass(frozen=True, slots=True)
class Floor:
    """A threshold of a collective.

    Args:
        name: what it is called, for messages.
        field: the name of the field that holds the number, such as `min_busbw_gbps`.
        value: with its unit, or a plain number when the file gives none.
        operation, metric: as written; metric is `busbw` or `algbw`.
        message_size: None when not given.
        system: what it is about, or why that is not known.
        is_limit: whether it is an upper limit, which no bandwidth needs.
    """

    name: str
    field: str
    value: Quantity | float
    operation: str
    metric: str
    message_size: Quantity | None
    system: System | str
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """What is wrong with a threshold."""

    rule: str
    severity: Severity
    message: str
    action: str
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class Linted:
    """A threshold with what was found.

    Args:
        busbw: the threshold as bus bandwidth in GB/s, None when it cannot be read so.
        ceiling: None when not known.
    """

    floor: Floor
    busbw: float | None
    ceiling: Ceiling | None
    remarks: tuple[Remark, ...]


def lint_floor(floor: Floor) -> Linted:
    """Everything that is wrong with a threshold.

    Rules: `floor-size-missing`, `floor-unit-suspect`, `floor-unattainable`, `floor-vacuous`, and
    `threshold-wrong-direction`.
    """
    remarks = list(_form(floor))
    found = floor.system if isinstance(floor.system, str) else ceiling_of(floor.system, floor.operation)
    ceiling = None if isinstance(found, str) else found
    if isinstance(found, str):
        remarks.append(
            Remark(
                "floor-unattainable", Severity.ERROR, f"whether {floor.name} can be reached is not known: {found}",
                "name the GPU or the node shape, the nodes, and the NIC rate per GPU", undecided=True,
            )
        )  # fmt: skip
    value, doubts = _in_gbytes(floor, ceiling)
    remarks += doubts
    busbw = None
    if value is not None and not isinstance(floor.system, str) and floor.operation in COLLECTIVES:
        operation: Collective = next(c for c in COLLECTIVES if c == floor.operation)
        busbw = as_busbw(value, operation, floor.system.ranks) if floor.metric == "algbw" else value
    if busbw is not None and ceiling is not None and not floor.is_limit:
        remarks += _against(floor, busbw, ceiling)
    return Linted(floor, busbw, ceiling, tuple(sorted(remarks, key=lambda r: (r.undecided, -r.severity))))


def _form(floor: Floor) -> Iterator[Remark]:
    if floor.is_limit:
        yield Remark(
            "threshold-wrong-direction", Severity.ERROR,
            f"{floor.name} limits {floor.metric} from above, which everything broken meets", "write at_least",
        )  # fmt: skip
    if floor.message_size is None:
        yield Remark(
            "floor-size-missing", Severity.ERROR,
            f"{floor.name} asks {floor.metric} at no message size: one healthy fabric read 64 GB/s at 16 MiB and 382 "
            "at 16 GiB",
            "give message_size, 8 GiB or more for a bandwidth",
        )  # fmt: skip
    elif floor.message_size.value < 2**20 and not floor.is_limit:
        yield Remark(
            "floor-size-small", Severity.WARNING,
            f"{floor.name} is at {floor.message_size}, where latency decides and not bandwidth",
            "give message_size, 8 GiB or more for a bandwidth",
        )  # fmt: skip
    if not floor.operation:
        yield Remark(
            "floor-size-missing", Severity.ERROR, f"{floor.name} asks {floor.metric} of no named collective",
            f"give operation: {', '.join(COLLECTIVES)}",
        )  # fmt: skip


def _in_gbytes(floor: Floor, ceiling: Ceiling | None) -> tuple[float | None, list[Remark]]:
    """(the threshold in GB/s as it is most likely meant, doubts about its unit)."""
    action = "nccl-tests prints GB/s (bytes): write the unit into the value, such as 380 GB/s"
    name = floor.field
    if isinstance(floor.value, Quantity):
        bits = dict(floor.value.powers).get("b") == 1
        value = floor.value.to("Gb/s") / 8 if bits else floor.value.to("GB/s")
        if bits:
            said = f"{floor.name} is written in bits ({floor.value} is {value:g} GB/s)"
            return value, [Remark("floor-unit-suspect", Severity.WARNING, said, action)]
        if _BITS.search(name) and not _BYTES.search(name):
            said = f"{floor.name}: the field {name} speaks of bits and holds {floor.value}"
            return value, [Remark("floor-unit-suspect", Severity.WARNING, said, action)]
        return value, []
    if _BYTES.search(name) and not name.endswith("gbps"):
        return floor.value, []
    if not _BITS.search(name):
        said = f"{floor.name}: {name} is {floor.value:g} without a unit; read as GB/s"
        return floor.value, [Remark("floor-unit-suspect", Severity.WARNING, said, action)]
    as_bits = floor.value / 8
    if ceiling is None:
        said = f"{floor.name}: {name} is {floor.value:g}: {as_bits:g} GB/s if bits are meant, eight times that if bytes"
        return None, [Remark("floor-unit-suspect", Severity.ERROR, said, action)]
    bytes_fit = VACUOUS * ceiling.expected <= floor.value <= ceiling.bound
    bits_fit = VACUOUS * ceiling.expected <= as_bits <= ceiling.bound
    if bytes_fit or not bits_fit:
        said = (
            f"{floor.name}: the field {name} speaks of bits, and {floor.value:g} looks like GB/s: as bits it would be "
            f"{as_bits:g} GB/s where healthy hardware reaches {ceiling.expected:.4g}"
        )
        return floor.value, [Remark("floor-unit-suspect", Severity.ERROR, said, action)]
    said = f"{floor.name}: {name} {floor.value:g} is read as bits, {as_bits:g} GB/s"
    return as_bits, [Remark("floor-unit-suspect", Severity.WARNING, said, action)]


def _against(floor: Floor, busbw: float, ceiling: Ceiling) -> Iterator[Remark]:
    what = f"{floor.operation} on {floor.system}"
    best = f"; published: {ceiling.published.busbw:g} ({ceiling.published.source})" if ceiling.published else ""
    if busbw > ceiling.bound:
        yield Remark(
            "floor-unattainable", Severity.ERROR,
            f"{floor.name} asks {busbw:.4g} GB/s busbw; {what} is bound by {ceiling.bound:.4g}{best}",
            "lower it below the bound; the best published result of the same hardware is a good guide",
        )  # fmt: skip
    elif busbw <= 0:
        yield Remark(
            "floor-vacuous", Severity.ERROR, f"{floor.name} asks {busbw:.4g} GB/s busbw, which everything meets",
            "ask what healthy hardware reaches",
        )  # fmt: skip
    elif busbw < VACUOUS * ceiling.expected:
        yield Remark(
            "floor-vacuous", Severity.ERROR,
            f"{floor.name} asks {busbw:.4g} GB/s busbw; {what} reaches {ceiling.expected:.4g} when healthy{best}",
            "raise it towards the reference or the best published result",
        )  # fmt: skip
    elif ceiling.published is not None and busbw > 1.05 * max(ceiling.published.busbw, ceiling.reference):
        yield Remark(
            "floor-above-published", Severity.WARNING,
            f"{floor.name} asks {busbw:.4g} GB/s busbw; nothing published on {what} is above "
            f"{ceiling.published.busbw:g} ({ceiling.published.source})",
            "say in its source where it was reached",
        )  # fmt: skip
    elif math.isfinite(ceiling.bound) and busbw > 0.98 * ceiling.bound:
        yield Remark(
            "floor-above-published", Severity.WARNING,
            f"{floor.name} asks {busbw:.4g} GB/s busbw, which leaves no loss below the bound {ceiling.bound:.4g}",
            "leave a few percent for protocol and synchronisation",
        )  # fmt: skip
