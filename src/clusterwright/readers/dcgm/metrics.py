"""Metrics of dcgm-exporter (and its predecessor gpu-monitoring-tools) in the Prometheus text format or OpenMetrics.

Names are the exported ones; the unit is that of the documented field, otherwise of the HELP line, never of the name.
Each scrape is a run. Common observations beside them: `gpu` per physical GPU (value: product), `memory_total` where
used, free and reserved are all there. Series are kept, not samples, so a log of scrapes needs constant memory: beyond
the first ones only the extremes of each series are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.dcgm.exposition import Broken, Comment, Exposition, Sample
from clusterwright.readers.dcgm.fields import DOCUMENTED, UNITS, ZERO_MEANS_NONE, Unit, read_value
from clusterwright.readers.dcgm.metric_notices import say_what_stands_out
from clusterwright.readers.dcgm.queries import samples_of
from clusterwright.readers.dcgm.scrapes import Gpu, Scrape, SeriesKey, gaps_of, gpus_of, moment_of, subject_of
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten

_MOST_VALUES: Final = 200_000
_MOST_JOINED: Final = 4
_ELISIONS: Final = frozenset({"...", "..", "…", "[...]", "[…]", "# ..."})
_IN_UNIT: Final = re.compile(r"\(in ([^()]{1,30})\)|\bin (bytes per second)\b")
_RECOGNISED: Final = re.compile(r"^(?:# (?:HELP|TYPE) )?(?:DCGM_(?:FI|EXP)_\w+|dcgm_\w+)(?:[{ ]|$)", re.MULTILINE)
_ANSWER: Final = re.compile(r'^\s*\{\s*"status"\s*:\s*"(?:success|error)"')
_EXPORTED: Final = re.compile(r'"(?:DCGM_(?:FI|EXP)_|dcgm_)\w+"')
_ENDS: Final = frozenset("}0123456789")
_SHELL: Final = re.compile(r"[$#>] |\S+@\S+[:~]")


def recognise(head: Head) -> int:
    """How sure this is an exporter's metrics."""
    if _ANSWER.search(head.text[:2000]) and _EXPORTED.search(head.text):
        return 90
    if not _RECOGNISED.search(head.text):
        return 0
    return 97 if re.search(r"^(?:DCGM_|dcgm_)\w+\{", head.text, re.MULTILINE) else 80


def read(source: Source) -> Sequence[Run]:
    """Each scrape as a run; Refused when there is no sample at all."""
    builders = _Scrapes()
    if _ANSWER.search(source.head[:2000]):
        for sample in samples_of(source.text()):
            builders.sample(sample, 0)
        return builders.finish()
    parser = Exposition()
    for line in _joined(source, parser, builders):
        parsed = parser.parse(line.text)
        match parsed:
            case Comment():
                builders.comment(parsed)
            case Sample():
                builders.sample(parsed, line.number)
            case Broken():
                builders.reject(line, parsed.why)
            case None:
                builders.other(line)
    return builders.finish()


class _Scrapes:
    """The scrapes of a file; finished ones as runs, later ones as extremes."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._held = 0
        self._later: dict[SeriesKey, tuple[float, float, float, str]] = {}
        self._later_scrapes = 0
        self._start()

    def _start(self) -> None:
        self._scrape = Scrape()
        self._run = RunBuilder("dcgm-exporter")
        self._other_lines = 0
        self._sample_of_other = ""

    def comment(self, comment: Comment) -> None:
        scrape = self._scrape
        if comment.kind == "EOF":
            self._close()
            return
        if scrape.series and comment.name == scrape.first_declared and comment.kind == "HELP":
            self._close()
            scrape = self._scrape
        if not scrape.first_declared:
            scrape.first_declared = comment.name
        kept = {"HELP": scrape.helps, "TYPE": scrape.types, "UNIT": scrape.units}[comment.kind]
        kept.setdefault(comment.name, comment.text)

    def sample(self, sample: Sample, line: int) -> None:
        if self._scrape.begins_again((sample.name, sample.labels)) and not sample.timestamp:
            self._close()
        if sample.elided:
            self._run.missing("labels that were left out as '...'")
        if not sample.value:
            self._run.reject(line, sample.name, "the line has no value")
        self._scrape.add(sample, line)

    def reject(self, line: Line, why: str) -> None:
        self._run.reject(line.number, line.text, why)

    def joined(self, line: Line) -> None:
        self._run.notice(
            "wrapped-line-joined",
            f"line {line.number} was broken inside a label, as a terminal does; it was joined with the next",
            line=line.number,
        )

    def other(self, line: Line) -> None:
        text = line.text.strip()
        if text in _ELISIONS:
            self._run.missing("lines that were left out as '...'")
        elif re.match(r"(?:DCGM_|dcgm_)\w", text) and not _SHELL.match(text):
            self._run.reject(line.number, line.text, "neither a sample nor a comment")
        elif text and not text.startswith("#"):
            self._other_lines += 1
            self._sample_of_other = self._sample_of_other or shorten(text, 60)

    def finish(self) -> list[Run]:
        self._close()
        if not self.runs:
            raise Refused("no sample in it: nothing was measured")
        if self._later_scrapes:
            self.runs.append(self._rest())
        return self.runs

    def _close(self) -> None:
        if not self._scrape.series:
            if self._run.rejected and not self.runs:
                raise Refused("no sample could be read", found=self._run.build().unread[0].text)
            return
        if self._held + len(self._scrape.series) > _MOST_VALUES and self.runs:
            self._fold()
        else:
            self._held += len(self._scrape.series)
            self.runs.append(self._build())
        done = self._scrape
        self._start()
        self._scrape.helps, self._scrape.types, self._scrape.units = done.helps, done.types, done.units

    def _build(self) -> Run:
        run, scrape = self._run, self._scrape
        if self._other_lines:
            run.notice(
                "not-exposition",
                f"{self._other_lines:,} lines are no metrics and were passed over, such as '{self._sample_of_other}'",
                Weight.INFO,
            )
        if scrape.left_out:
            run.missing(f"{scrape.left_out:,} samples of series beyond the first {len(scrape.series):,}")
        gpus = gpus_of(scrape)
        values = _observe_series(run, scrape)
        _observe_gpus(run, scrape, gpus)
        _observe_gaps(run, scrape, gpus)
        _observe_memory(run, values)
        say_what_stands_out(run, scrape, gpus, values)
        return run.build()

    def _fold(self) -> None:
        self._later_scrapes += 1
        for key, row in self._scrape.series.items():
            value = read_value(row.value, None)
            if not isinstance(value, float):
                continue
            before = self._later.get(key)
            if before is None:
                if len(self._later) < _MOST_VALUES:
                    self._later[key] = (value, value, value, row.value)
            else:
                self._later[key] = (min(before[0], value), max(before[1], value), value, row.value)

    def _rest(self) -> Run:
        run = RunBuilder("dcgm-exporter")
        run.condition("scrapes", float(self._later_scrapes))
        run.missing(f"{self._later_scrapes:,} scrapes one by one: only the extremes of each of their series are kept")
        for (name, labels), (low, high, last, _) in self._later.items():
            for statistic, value in (("lowest", low), ("highest", high), ("last", last)):
                read_as = read_value(repr(value), DOCUMENTED.get(name), zero_means_none=name in ZERO_MEANS_NONE)
                run.observe(name, read_as, (*subject_of(labels), ("statistic", statistic)))
        return run.build()


def _joined(source: Source, parser: Exposition, builders: _Scrapes) -> Iterator[Line]:
    """Lines, one that was broken inside its labels joined with what follows."""
    held: Line | None = None
    pieces = 0
    for line in source.lines():
        if held is None:
            if _is_open(parser, line.text):
                held, pieces = line, 1
            else:
                yield line
            continue
        whole = Line(held.number, held.text + line.text, held.prefix)
        starts_anew = line.text.startswith(("#", "DCGM_", "dcgm_")) or line.text.strip() in _ELISIONS
        if starts_anew or (pieces := pieces + 1) > _MOST_JOINED:
            yield held
            held = line if _is_open(parser, line.text) else None
            pieces = 1
            if held is None:
                yield line
        elif _is_open(parser, whole.text):
            held = whole
        else:
            builders.joined(held)
            yield whole
            held = None
    if held is not None:
        yield held


def _is_open(parser: Exposition, text: str) -> bool:
    """Whether the line's labels go on in the next one; the usual line is decided without parsing."""
    if "{" not in text or ("}" in text and text.rstrip()[-1:] in _ENDS):
        return False
    parsed = parser.parse(text)
    return isinstance(parsed, Broken) and parsed.open


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


def _observe_gpus(run: RunBuilder, scrape: Scrape, gpus: list[Gpu]) -> None:
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
        named = ", ".join(gpu.index or gpu.uuid for gpu in absent)
        run.missing(f"{name} of GPU {named}")
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


READER: Final = Reader("dcgm-metrics", "metrics of the DCGM exporter", recognise, read)
