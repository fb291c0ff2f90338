"""Metrics of dcgm-exporter (and its predecessor gpu-monitoring-tools) in the Prometheus text format or OpenMetrics.

Names are the exported ones; the unit is that of the documented field, otherwise of the HELP line, never of the name.
Each of the first 100 scrapes is a run; those after them are folded into one more, series by series, so a log of
scrapes needs constant memory. Common observations beside the metrics: `gpu` per physical GPU (value: product),
`memory_total` where used, free and reserved are all there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.dcgm.exposition import Broken, Comment, Exposition, Sample
from clusterwright.readers.dcgm.extremes import Extremes
from clusterwright.readers.dcgm.queries import samples_of
from clusterwright.readers.dcgm.scrape_runs import run_of
from clusterwright.readers.dcgm.scrapes import Scrape
from clusterwright.readers.dcgm.wrapped_samples import ELISIONS, join_samples
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten

#: Most scrapes that are runs of their own, and most values in them.
_MOST_SCRAPES: Final = 100
_MOST_VALUES: Final = 100_000
_RECOGNISED: Final = re.compile(r"^(?:# (?:HELP|TYPE) )?(?:DCGM_(?:FI|EXP)_\w+|dcgm_\w+)(?:[{ ]|$)", re.MULTILINE)
_ANSWER: Final = re.compile(r'^\s*\{\s*"status"\s*:\s*"(?:success|error)"')
_EXPORTED: Final = re.compile(r'"(?:DCGM_(?:FI|EXP)_|dcgm_)\w+"')
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
    for line in join_samples(source, parser, builders.joined):
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
    """The scrapes of a file: the first ones as runs, what comes after them folded into one more."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._held = 0
        self._extremes: Extremes | None = None
        self._other_lines = 0
        self._sample_of_other = ""
        self._scrape = Scrape()
        self._run = RunBuilder("dcgm-exporter")

    def comment(self, comment: Comment) -> None:
        if comment.kind == "EOF":
            self._close()
            return
        begun = self._extremes.begun if self._extremes else bool(self._scrape.series)
        if begun and comment.name == self._scrape.first_declared and comment.kind == "HELP":
            self._close()
        self._scrape.declare(comment)

    def sample(self, sample: Sample, line: int) -> None:
        current = self._extremes or self._scrape
        if current.begins_again((sample.name, sample.labels)) and not sample.timestamp:
            self._close()
            current = self._extremes or self._scrape
        if sample.elided:
            self._run.missing("labels that were left out as '...'")
        if not sample.value:
            self._run.reject(line, sample.name, "the line has no value")
        current.add(sample, line)

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
        if text in ELISIONS:
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
        if self._extremes and not self._extremes.empty:
            self._say_other_lines()
            self.runs.append(self._extremes.build())
        return self.runs

    def _close(self) -> None:
        if self._extremes is not None:
            self._extremes.close()
            return
        done = self._scrape
        if not done.series:
            if self._run.rejected and not self.runs:
                raise Refused("no sample could be read", found=self._run.build().unread[0].text)
            return
        self._held += len(done.series)
        self._say_other_lines()
        self.runs.append(run_of(self._run, done))
        self._scrape = Scrape(helps=done.helps, types=done.types, units=done.units)
        self._run = RunBuilder("dcgm-exporter")
        if len(self.runs) >= _MOST_SCRAPES or self._held + len(done.series) > _MOST_VALUES:
            self._extremes = Extremes(self._scrape)
            self._run = self._extremes.run

    def _say_other_lines(self) -> None:
        if self._other_lines:
            self._run.notice(
                "not-exposition",
                f"{self._other_lines:,} lines are no metrics and were passed over, such as '{self._sample_of_other}'",
                Weight.INFO,
            )
        self._other_lines, self._sample_of_other = 0, ""


READER: Final = Reader("dcgm-metrics", "metrics of the DCGM exporter", recognise, read)
