"""A finished scrape as a run: values with their units, the GPUs, what is not there for some of them."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.dcgm.fields import DOCUMENTED, UNITS, ZERO_MEANS_NONE, Unit, read_value
from clusterwright.readers.dcgm.metric_notices import say_what_stands_out
from clusterwright.readers.dcgm.scrapes import Gpu, Scrape, SeriesKey, gaps_of, gpus_of, moment_of, subject_of

_IN_UNIT: Final = re.compile(r"\(in ([^()]{1,30})\)|\bin (bytes per second)\b")
#: Most GPUs that one sentence names.
_MOST_NAMED: Final = 16


def run_of(run: RunBuilder, scrape: Scrape) -> Run:
    """The run with everything that the scrape holds."""
    if scrape.left_out:
        run.missing(f"{scrape.left_out:,} samples of series beyond the first {len(scrape.series):,}")
    gpus = gpus_of(scrape)
    values = _observe_series(run, scrape)
    observe_gpus(run, scrape, gpus)
    _observe_gaps(run, scrape, gpus)
    _observe_memory(run, values)
    say_what_stands_out(run, scrape, gpus, values)
    return run.build()


def unit_of(name: str, scrape: Scrape) -> tuple[Unit | None, str]:
    """(unit of a metric, what is doubtful about it)."""
    family = name if name in scrape.helps or name in DOCUMENTED else name.removesuffix("_total")
    label = _IN_UNIT.search(scrape.helps.get(family, ""))
    spelled = (label[1] or label[2]).strip() if label else scrape.units.get(family, "")
    named = UNITS.get(spelled)
    if family in DOCUMENTED:
        unit = DOCUMENTED[family]
        if named is not None and unit is not None and named != unit:
            return unit, f"its HELP line says {spelled}, DCGM documents {unit.name or 'a share between 0 and 1'}"
        return unit, ""
    if spelled and named is None:
        return None, f"its HELP line says {spelled}, which is no unit that is known"
    return named, ""


def _observe_series(run: RunBuilder, scrape: Scrape) -> dict[SeriesKey, Value]:
    values: dict[SeriesKey, Value] = {}
    subjects: dict[Labels, Labels] = {}
    units = {name: unit_of(name, scrape) for name in scrape.names()}
    for name, (_, doubt) in units.items():
        if doubt:
            run.notice("unit-doubtful", f"{name}: {doubt}", Weight.INFO)
    for key, row in scrape.series.items():
        name, labels = key
        if labels not in subjects:
            subjects[labels] = subject_of(labels)
        if row.value:
            value = read_value(row.value, units[name][0], zero_means_none=name in ZERO_MEANS_NONE)
        else:
            value = NoValue(Lack.ABSENT, "", "the line has no value")
        values[key] = value
        run.observe(name, value, subjects[labels], row.line)
    return values


def observe_gpus(run: RunBuilder, scrape: Scrape, gpus: list[Gpu]) -> None:
    """Name the GPUs, and the driver, node and time where all labels agree."""
    drivers = {
        value for _, labels in scrape.series for key, value in labels if key == "DCGM_FI_DRIVER_VERSION" and value
    }
    if len(drivers) == 1:
        run.condition("driver", drivers.pop())
    nodes = {gpu.node for gpu in gpus if gpu.node}
    if len(nodes) == 1:
        run.condition("node", nodes.pop())
    stamps = [row.timestamp for row in scrape.series.values() if row.timestamp]
    if stamps and len(stamps) == len(scrape.series) and (started := moment_of(stamps[0])):
        run.condition("started", started)
    if gpus:
        run.condition("attached_gpus", float(len(gpus)))
    for gpu in gpus:
        pairs = (("gpu", gpu.index), ("uuid", gpu.uuid), ("pci", gpu.pci), ("node", gpu.node))
        subject = tuple((key, value) for key, value in pairs if value)
        product: Value = gpu.product or NoValue(Lack.ABSENT, "", "the labels name no product")
        run.observe("gpu", product, subject, scrape.first_line)


def _observe_gaps(run: RunBuilder, scrape: Scrape, gpus: list[Gpu]) -> None:
    for name, absent in gaps_of(scrape, gpus).items():
        named = ", ".join(gpu.index or gpu.uuid for gpu in absent[:_MOST_NAMED])
        others = f" and {len(absent) - _MOST_NAMED:,} more" if len(absent) > _MOST_NAMED else ""
        run.missing(f"{name} of GPU {named}{others}")
        for gpu in absent:
            pairs = (("gpu", gpu.index), ("uuid", gpu.uuid), ("pci", gpu.pci), ("node", gpu.node))
            subject = tuple((key, value) for key, value in pairs if value)
            run.observe(name, NoValue(Lack.ABSENT, "", "no series for this GPU"), subject)


def _observe_memory(run: RunBuilder, values: dict[SeriesKey, Value]) -> None:
    """Total memory as the sum of used, free and reserved, where all three are known."""
    parts: dict[Labels, dict[str, Quantity]] = {}
    for (name, labels), value in values.items():
        if name in ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED") and isinstance(
            value, Quantity
        ):
            parts.setdefault(labels, {})[name] = value
    for labels, found in parts.items():
        if len(found) == 3:
            total = sum(part.value for part in found.values())
            powers = next(iter(found.values())).powers
            run.observe("memory_total", Quantity(total, powers, f"{total / 2**20:.12g} MiB"), subject_of(labels))
