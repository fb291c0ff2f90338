"""Series of many scrapes in constant memory: how often each was sampled, its lowest, highest and last value.

Observations: the metric under its own name with the last value (of a counter of faults the highest, for a reset sets it
to 0; of the Xid gauge each code that it held); `lowest` and `highest` where values differ, `samples` and
`samples_without_value`, all four with the metric in their subject.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue, Run, Value
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.dcgm.exposition import Sample
from clusterwright.readers.dcgm.fields import ZERO_MEANS_NONE, Unit, in_unit, read_value
from clusterwright.readers.dcgm.metric_notices import FAULTS, XID, say_faults, say_what_xid_holds
from clusterwright.readers.dcgm.scrape_runs import observe_gpus, unit_of
from clusterwright.readers.dcgm.scrapes import Interned, Row, Scrape, SeriesKey, gpus_of, moment_of, subject_of

#: Most series that are followed; a cluster of 1,000 GPUs exports about 40,000.
MOST_SERIES: Final = 50_000
#: Most codes of Xids that are kept of one GPU.
_MOST_CODES: Final = 32


@dataclass(slots=True)
class _Trail:
    """What one series went through; `low` above `high` means that no sample had a number."""

    scrape: int
    line: int = 0
    text: str = ""
    blank: bool = False
    samples: int = 1
    without: int = 0
    low: float = math.inf
    high: float = -math.inf
    codes: dict[str, int] = field(default_factory=dict)


class Extremes:
    """Everything after the scrapes that are kept one by one.

    Args:
        before: the last of those; metrics keep the units that it declares.
    """

    def __init__(self, before: Scrape) -> None:
        self.scrape = Scrape(helps=before.helps, types=before.types, units=before.units)
        self.run = RunBuilder("dcgm-exporter")
        self._trails: dict[SeriesKey, _Trail] = {}
        self._interned = Interned()
        self._scrapes = 0
        self._in_scrape = 0
        self._first: SeriesKey | None = None
        self._left_out = 0
        self._repeats = 0
        self._stamps = ("", "")

    @property
    def empty(self) -> bool:
        """Whether no sample came."""
        return not self._scrapes

    @property
    def begun(self) -> bool:
        """Whether the current scrape has samples."""
        return self._in_scrape > 0

    def begins_again(self, key: SeriesKey) -> bool:
        """Whether this series says that a new scrape begins: it is the first one, and others came between."""
        return key == self._first and self._in_scrape > 1

    def close(self) -> None:
        """End the current scrape."""
        self._first, self._in_scrape = None, 0

    def add(self, sample: Sample, line: int) -> None:
        """Fold one sample; of a series that stands twice in a scrape the first value counts."""
        key = (sample.name, sample.labels)
        if not self._in_scrape:
            self._scrapes += 1
            self._first = key
        self._in_scrape += 1
        if sample.timestamp:
            self._stamps = (self._stamps[0] or sample.timestamp, sample.timestamp)
        trail = self._trails.get(key)
        if trail is None:
            labels = self._interned.keep(*key) if len(self._trails) < MOST_SERIES else None
            if labels is None:
                self._left_out += 1
                return
            trail = self._trails[(sample.name, labels)] = _Trail(self._scrapes)
        elif trail.scrape == self._scrapes and not sample.timestamp:
            self._repeats += 1
            return
        else:
            trail.samples += 1
            trail.scrape = self._scrapes
            if trail.text == sample.value:
                trail.without += trail.blank
                return
        _follow(trail, sample, line)

    def build(self) -> Run:
        """The run that stands for all these scrapes."""
        run = self.run
        run.condition("scrapes", float(self._scrapes))
        for name, stamp in zip(("started", "ended"), self._stamps, strict=True):
            if moment := moment_of(stamp):
                run.condition(name, moment)
        run.missing(f"{self._scrapes:,} scrapes one by one: of each of their series its extremes and its last value")
        if self._left_out:
            run.missing(f"{self._left_out:,} samples of series beyond the first {len(self._trails):,}")
        if self._repeats:
            run.notice("duplicate-series", f"{self._repeats:,} samples stand twice in their scrape; the first counts")
        units = {name: unit_of(name, self.scrape)[0] for name, _ in self._trails}
        highest: dict[SeriesKey, Value] = {}
        subjects: dict[Labels, Labels] = {}
        for (name, labels), trail in self._trails.items():
            subject = subjects.get(labels) or subjects.setdefault(labels, subject_of(labels))
            if trail.low <= trail.high:
                highest[(name, labels)] = trail.high
            if name == XID:
                self._observe_xids(trail, labels, subject)
            _observe(run, name, subject, trail, units[name])
        last = Scrape(
            series={key: Row(trail.text, "", trail.line) for key, trail in self._trails.items()},
            interned=self._interned,
        )
        observe_gpus(run, last, gpus_of(last))
        say_faults(run, highest, self._interned)
        return run.build()

    def _observe_xids(self, trail: _Trail, labels: Labels, subject: Labels) -> None:
        say_what_xid_holds(self.run)
        gpu = self._interned.gpu(labels)
        where = f"GPU {gpu.index or gpu.uuid}" if gpu else "a GPU that is not named"
        for code, line in trail.codes.items():
            self.run.notice("xid-reported", f"an Xid of {where} was {code}", line=line)
            if code != trail.text:
                self.run.observe(XID, read_value(code, None), subject, line)


def _follow(trail: _Trail, sample: Sample, line: int) -> None:
    """Take a value that differs from the one before."""
    trail.text, trail.line = sample.value, line
    number = _number(sample)
    trail.blank = number is None
    if number is None:
        trail.without += 1
        return
    trail.low = min(trail.low, number)
    trail.high = max(trail.high, number)
    if sample.name == XID and number and len(trail.codes) < _MOST_CODES:
        trail.codes.setdefault(sample.value, line)


def _number(sample: Sample) -> float | None:
    """The number as written, None for a mark of no value and for what is none."""
    text = sample.value
    if len(text) <= 9 and text.isascii() and text.isdigit():
        number = float(text)
    else:
        value = read_value(text, None)
        if not isinstance(value, float):
            return None
        number = value
    return None if number == 0 and sample.name in ZERO_MEANS_NONE else number


def _observe(run: RunBuilder, name: str, subject: Labels, trail: _Trail, unit: Unit | None) -> None:
    zero = name in ZERO_MEANS_NONE
    last = read_value(trail.text, unit, zero_means_none=zero) if trail.text else NoValue(Lack.ABSENT, "", "no value")
    fault = name in FAULTS and trail.low <= trail.high
    run.observe(name, in_unit(trail.high, unit) if fault else last, subject, trail.line)
    about = (("metric", name), *subject)
    run.observe("samples", float(trail.samples), about)
    if trail.without:
        run.observe("samples_without_value", float(trail.without), about)
    if trail.low < trail.high:
        run.observe("lowest", in_unit(trail.low, unit), about)
        run.observe("highest", in_unit(trail.high, unit), about)
