"""What the events and counters of an output ask for, per device, with every source that says something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from clusterwright.health.actions import (
    Do,
    Measure,
    for_link_down,
    for_retired_pages,
    for_row_remapping,
    for_thermal_margin,
)
from clusterwright.health.xids import HARMLESS, Advice, Bucket, Opinion, advise_xid, look_up_sxid
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Observation, Run, Transcript

#: Answers that ask nothing of anybody.
_QUIET: Final = frozenset({Do.NOTHING, Do.MEASURE, Do.WATCH})


@dataclass(frozen=True, slots=True)
class Advised:
    """One event or state of one device.

    Args:
        where: node and device as far as they are printed.
        what: the event, such as `Xid 79`.
        do: what the source asks for.
        others: other sources that say something else, as (source, what they say).
        harmless: it concerns the job and not the hardware, or nothing is asked for.
    """

    where: str
    what: str
    do: str
    why: str
    source: str
    line: int = 0
    others: tuple[tuple[str, str], ...] = ()
    harmless: bool = False


def advise(transcript: Transcript) -> tuple[Advised, ...]:
    """Everything that something should be done about, in the order of the lines; what is harmless last."""
    found = [advised for run in transcript.runs for advised in _advise_run(run)]
    return tuple(sorted(dict.fromkeys(found), key=lambda a: (a.harmless, a.line)))


def _advise_run(run: Run) -> Iterator[Advised]:
    by_name: dict[str, list[Observation]] = {}
    for o in run.observations:
        by_name.setdefault(o.name, []).append(o)
    yield from _xids(by_name)
    for o in by_name.get("sxid", ()):
        code = _code(o)
        if code is not None:
            yield _sxid(o, code, by_name)
    yield from _repairs(by_name)
    for o in by_name.get("link_down_longest", ()):
        if isinstance(o.value, Quantity):
            yield from _measure(o, f"link down for {o.value}", for_link_down(o.value.value, up_again=True))
    yield from _heat(by_name)


def _device(o: Observation) -> tuple[str, str]:
    """(node, device) of an observation."""
    subject = dict(o.subject)
    return subject.get("node", ""), subject.get("pci") or subject.get("gpu") or subject.get("device") or ""


def _where(o: Observation) -> str:
    return " ".join(part for part in _device(o) if part)


def _code(o: Observation) -> int | None:
    value = o.value
    return int(value) if isinstance(value, float | int) and value == value // 1 and 0 <= value < 1e6 else None


def _xids(by_name: dict[str, list[Observation]]) -> Iterator[Advised]:
    """Each code of each device once, then the causes that its lines name and do not hold themselves."""
    codes, causes = _by_device(by_name.get("xid", ())), _by_device(by_name.get("xid_cause", ()))
    asked = {_device(o): o.value for o in by_name.get("recovery_action", ()) if isinstance(o.value, str)}
    for device in dict.fromkeys((*codes, *causes)):
        found, named = codes.get(device, {}), causes.get(device, {})
        together = {*found, *named}
        for code, o in found.items():
            yield _advised(o, f"Xid {code}", advise_xid(code, together, asked.get(device, "")))
        for code, o in named.items():
            if code not in found:
                advice = advise_xid(code, together, asked.get(device, ""))
                yield _advised(o, f"Xid {code}, named as the cause,", advice)
    for o in by_name.get("lost_device", ()):
        if 79 not in codes.get(_device(o), {}):
            yield _advised(o, f"GPU lost ({o.value}), as Xid 79,", advise_xid(79))


def _by_device(observations: Iterable[Observation]) -> dict[tuple[str, str], dict[int, Observation]]:
    """device → code → its first observation."""
    found: dict[tuple[str, str], dict[int, Observation]] = {}
    for o in observations:
        code = _code(o)
        if code is not None:
            found.setdefault(_device(o), {}).setdefault(code, o)
    return found


def _advised(o: Observation, what: str, advice: Advice) -> Advised:
    first, *others = advice.opinions or (Opinion("the driver", advice.bucket),)
    return Advised(
        _where(o),
        what,
        advice.bucket.value,
        advice.why,
        first.source,
        o.line,
        tuple((p.source, p.bucket.value) for p in others if p.bucket is not advice.bucket),
        advice.bucket in HARMLESS and all(p.bucket in HARMLESS for p in advice.opinions),
    )


def _sxid(o: Observation, code: int, by_name: dict[str, list[Observation]]) -> Advised:
    printed = next(
        (
            str(s.value).split(" ")[0]
            for s in by_name.get("sxid_severity", ())
            if dict(s.subject).get("sxid") == str(code) and _device(s) == _device(o)
        ),
        "",
    )
    entry = look_up_sxid(code, printed if printed in ("fatal", "non-fatal") else "")
    harmless = entry.bucket is Bucket.IGNORE
    return Advised(
        _where(o), f"SXid {code}", entry.bucket.value, entry.severity.value, entry.source, o.line, (), harmless
    )


def _repairs(by_name: dict[str, list[Observation]]) -> Iterator[Advised]:
    """Row remapping and page retirement of each GPU."""
    pending, failure = _flags(by_name, "remap_pending"), _flags(by_name, "remap_failure")
    for device, o in {_device(o): o for o in by_name.get("remap_pending", ())}.items():
        yield from _measure(o, "row remapping", for_row_remapping(pending.get(device), failure.get(device)))
    waits = _flags(by_name, "retired_pages_pending")
    retired: dict[tuple[str, str], int] = {}
    for o in by_name.get("retired_pages", ()):
        if isinstance(o.value, float | int):
            retired[_device(o)] = retired.get(_device(o), 0) + int(o.value)
    for device, o in {_device(o): o for o in by_name.get("retired_pages_pending", ())}.items():
        yield from _measure(o, "page retirement", for_retired_pages(retired.get(device), waits.get(device)))


def _flags(by_name: dict[str, list[Observation]], name: str) -> dict[tuple[str, str], bool]:
    return {_device(o): o.value for o in by_name.get(name, ()) if isinstance(o.value, bool)}


def _heat(by_name: dict[str, list[Observation]]) -> Iterator[Advised]:
    products = {_device(o): str(o.value) for o in by_name.get("gpu", ()) if isinstance(o.value, str)}
    for o in by_name.get("temperature_margin", ()):
        if isinstance(o.value, Quantity):
            product = products.get(_device(o), "")
            yield from _measure(o, "thermal margin", for_thermal_margin(product, o.value.value))


def _measure(o: Observation, what: str, measure: Measure) -> Iterator[Advised]:
    if measure.do not in _QUIET:
        yield Advised(_where(o), what, measure.do.value, measure.why, measure.source, o.line)


def is_serious(advice: Iterable[Advised]) -> bool:
    """Whether anything is asked of the hardware."""
    return any(not a.harmless for a in advice)
