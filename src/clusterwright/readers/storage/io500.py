"""IO500 `result.txt` (sections with scores) and `result_summary.txt`.

Scores of ior phases are GiB/s, those of mdtest and find thousand operations per second (IO500 rules). `score` counts
the whole phase; the stonewall figure beside it leaves the stragglers out and is kept under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import read_number, read_quantity

_SECTION: Final = re.compile(r"\[([\w-]+)\]")
_PAIR: Final = re.compile(r"([\w.-]+)\s*=\s*(.*)")
_SUMMARY: Final = re.compile(
    r"\[RESULT\s*\]\s+(\S+)\s+(\S+) (GiB/s|kIOPS|kiops)\s*:\s*time\s+(\S+) seconds(.*)", re.IGNORECASE
)
_SCORE: Final = re.compile(r"\[SCORE\s*\]\s+Bandwidth (\S+) GiB/s : IOPS (\S+) kiops : TOTAL (\S+)(.*)")
_PHASES: Final = ("ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read")
#: Writing phases must last this long (IO500 rules), seconds.
_SHORTEST_S: Final = 300.0


def recognise(head: Head) -> int:
    """Sure by a phase's section with a score, or the lines of the summary."""
    if re.search(r"^\[(?:ior|mdtest)-(?:easy|hard)-\w+\]", head.text, re.MULTILINE) and "score" in head.text:
        return 99
    return 99 if _SUMMARY.search(head.text) else 0


def read(source: Source) -> Sequence[Run]:
    """The one run of the file."""
    builder = RunBuilder("io500")
    section = ""
    phases: set[str] = set()
    for line in source.lines():
        text = line.text.strip()
        if "INVALID" in text:
            builder.notice("invalid", f"IO500 calls the result invalid: {text[:120]}", Weight.ERROR, line.number)
        if found := _SUMMARY.match(text):
            phases.add(found[1])
            _observe(builder, found[1], "score", found[2], line.number)
            _observe(builder, found[1], "t_delta", found[4], line.number)
        elif found := _SCORE.match(text):
            phases.add("SCORE")
            for key, value in zip(("BW", "MD", "SCORE"), found.groups(), strict=False):
                _total(builder, key, value, line.number)
        elif found := _SECTION.fullmatch(text):
            section = found[1]
            phases.add(section)
        elif (found := _PAIR.match(text)) and section:
            _pair(builder, section, found[1], found[2].split(";")[0].strip(), line.number)
        elif text.startswith(("; START ", "; END ")):
            builder.condition("started" if "START" in text else "ended", text.split(" ", 2)[2])
    if not phases:
        raise Refused("no phase of IO500")
    for phase in (*_PHASES, "SCORE"):
        if phase not in phases:
            builder.missing(f"the phase {phase}" if phase != "SCORE" else "the total score")
    return [builder.build()]


def _pair(builder: RunBuilder, section: str, key: str, value: str, number: int) -> None:
    if section == "run":
        name = {"procs": "ranks", "version": "version", "mode": "mode"}.get(key)
        if key == "version":
            builder.version = value
        elif name:
            builder.condition(name, value)
    elif section == "SCORE":
        _total(builder, key, value, number)
    else:
        _observe(builder, section, key, value, number)


def _total(builder: RunBuilder, key: str, value: str, number: int) -> None:
    if key == "BW":
        builder.observe("bandwidth_score", read_quantity(value, "GiB/s"), (), number)
    elif key == "MD":
        builder.observe("metadata_score", read_quantity(value, "kIOPS"), (), number)
    elif key == "SCORE":
        builder.observe("io500_score", read_number(value), (), number)


def _observe(builder: RunBuilder, phase: str, key: str, value: str, number: int) -> None:
    subject = (("phase", phase),)
    bandwidth = phase.startswith("ior")
    direction = "write" if phase.endswith("write") else "read"
    name, unit = (f"{direction}_rate", "GiB/s") if bandwidth else ("metadata_rate", "kIOPS")
    if key == "score":
        builder.observe(name, read_quantity(value, unit), subject, number)
    elif key in ("throughput-stonewall", "rate-stonewall"):
        builder.observe(f"{name}_stonewall", read_quantity(value, unit), subject, number)
    elif key == "t_delta":
        seconds = read_number(value)
        builder.observe("phase_time", read_quantity(value, "s"), subject, number)
        if isinstance(seconds, float) and phase.endswith("-write") and seconds < _SHORTEST_S:
            message = f"{phase} took {seconds:g} s; writing must last {_SHORTEST_S:.0f} s"
            builder.notice("phase-too-short", message, Weight.ERROR, number)


IO500: Final = Reader("io500", "IO500: result.txt and result_summary.txt", recognise, read)
