"""sdiag: counters of the scheduler since their last reset; no state of nodes or jobs.

Observations: `statistic` (subject: name, section), as printed. Conditions: `printed`, `since`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.amounts import read_count
from clusterwright.readers.slurm.commands import Asked
from clusterwright.readers.slurm.sources import lines_of

_PAIR: Final = re.compile(r"([A-Za-z][^:]{0,120}):\s*(.{0,400})")
_AFTER: Final = re.compile(r"(?P<what>sdiag output at|Data since) +(?P<time>.{1,80})")


def recognise(head: Head) -> int:
    """The banner of sdiag."""
    return 98 if "sdiag output at" in head.text[:2000] else 0


def read(source: Source) -> Sequence[Run]:
    """The run that one output of sdiag holds."""
    return read_lines(lines_of(source))


def read_lines(lines: Iterable[Line], _asked: Asked | None = None) -> list[Run]:
    """The run that the lines of one output of sdiag hold."""
    run = RunBuilder("sdiag")
    section = ""
    for line in lines:
        text = line.text.strip()
        banner = _AFTER.match(text)
        pair = _PAIR.fullmatch(text)
        if not text or not text.strip("*"):
            continue
        if banner is not None:
            run.condition("printed" if banner["what"].startswith("sdiag") else "since", banner["time"])
        elif pair is not None and pair[2]:
            number = read_count(pair[2])
            subject = (("name", pair[1].strip()), *((("section", section),) if section else ()))
            run.observe("statistic", pair[2] if isinstance(number, NoValue) else number, subject, line.number)
        elif pair is not None or not line.text.startswith(("\t", " ")):
            section = text.rstrip(":")
        else:
            run.observe("statistic_line", text[:200], (("section", section),), line.number)
    if run.bare:
        raise Refused("sdiag printed no counter")
    run.notice(
        "statistics-only", "counters of the scheduler since their last reset; no source for capacity", Weight.INFO
    )
    return [run.build()]


READER: Final = Reader("slurm-sdiag", "sdiag: counters of the scheduler", recognise, read)
