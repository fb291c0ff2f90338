"""A terminal session pasted as text: prompts with Slurm commands, each followed by its output.

Every command's output is a run of its own. What a command asked for (`-o '%A|%T'`, `-h`, `-j 12`, `show node n1`)
names the columns, the job or the node where the output itself does not. Answers of `scontrol release` and the like give
`tasks_answered` (subject: job, answer).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from clusterwright.model.observations import Notice, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm import listings, sacct, scontrol, sinfo, squeue, statistics
from clusterwright.readers.slurm.commands import Asked, is_bare_command, read_prompt
from clusterwright.readers.slurm.jobs import count_tasks
from clusterwright.readers.slurm.records import BEGINNINGS
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.readers.slurm.states import OVER

_MOST_SEGMENTS: Final = 1000
_OTHER_PROMPT: Final = re.compile(r"(?:[\w.+-]{1,64}@[\w.-]{1,100}[:\w/~.-]{0,100}|\[[^\]]{1,100}\])?[$#] \S")
_ANSWER: Final = re.compile(r"(\d{1,12})_([\d,.\[\]:-]{1,4000}): (.{1,200})")
_READERS: Final[dict[str, Callable[[Iterable[Line], Asked | None], list[Run]]]] = {
    "sinfo": sinfo.read_lines, "squeue": squeue.read_lines, "sacct": sacct.read_lines, "scontrol": scontrol.read_lines,
    "sacctmgr": listings.read_lines, "sshare": listings.read_lines, "sprio": listings.read_lines,
    "sdiag": statistics.read_lines,
}  # fmt: skip


@dataclass
class _Segment:
    asked: Asked
    line: Line
    lines: list[Line] = field(default_factory=list)


def recognise(head: Head) -> int:
    """A prompt with a Slurm command at the start of a line, or a command alone on the first line."""
    first = next((text for text in head.text.split("\n")[:40] if text.strip()), "")
    if is_bare_command(first):
        return 97 if (asked := read_prompt(first)) is not None and asked.tool in _READERS else 0
    for text in head.text.split("\n")[:200]:
        if ("$" in text or "#" in text or "%" in text or ">" in text) and (asked := read_prompt(text)) is not None:
            return 97 if asked.tool in _READERS else 0
    return 0


def read(source: Source) -> Sequence[Run]:
    """A run for every command that this family reads."""
    runs: list[Run] = []
    for segment in _split(lines_of(source)):
        runs += _read_segment(segment)
    if not runs:
        raise Refused("a session in which no command printed anything")
    return _compare(runs)


def _split(lines: Iterable[Line]) -> Iterator[_Segment]:
    current = _Segment(Asked(), Line(0, ""))
    count = 0
    for line in lines:
        asked = read_prompt(line.text)
        other = asked is None and _OTHER_PROMPT.match(line.text.strip()) is not None
        if (asked is not None or other) and count < _MOST_SEGMENTS:
            if current.lines or current.asked.tool:
                yield current
            count += 1
            current = _Segment(asked or Asked("other"), line)
        elif line.text.strip() or current.asked.tool == "scontrol":
            current.lines.append(line)
    if current.lines or current.asked.tool:
        yield current


def _read_segment(segment: _Segment) -> list[Run]:
    asked = segment.asked
    if asked.tool not in _READERS:
        return _skip(segment)
    if not any(line.text.strip() for line in segment.lines):
        return []
    if asked.tool == "scontrol" and not asked.show:
        return _read_answers(segment)
    return _read_listing(segment.lines, asked)


def _read_listing(lines: list[Line], asked: Asked) -> list[Run]:
    try:
        return _READERS[asked.tool](lines, asked)
    except Refused as refused:
        run = RunBuilder(asked.tool)
        run.reject(refused.refusal.line or lines[0].number, lines[0].text, refused.refusal.reason)
        return [run.build()]


def _read_answers(segment: _Segment) -> list[Run]:
    """Answers of a command that changes something, and records that follow without a prompt of their own."""
    starts = [i for i, line in enumerate(segment.lines) if line.text.split("=")[0] in BEGINNINGS]
    answers = segment.lines[: starts[0]] if starts else segment.lines
    run = RunBuilder("scontrol")
    for line in answers:
        match = _ANSWER.fullmatch(line.text.strip())
        if match is not None:
            subject = (("job", match[1]), ("answer", match[3]))
            run.observe("tasks_answered", count_tasks(match[2].strip("[]")), subject, line.number)
        elif line.text.strip():
            run.reject(line.number, line.text, "no answer of scontrol that is known")
    rest = _read_listing(segment.lines[starts[0] :], replace(segment.asked, show="job")) if starts else []
    return [run.build(), *rest] if answers else rest


def _skip(segment: _Segment) -> list[Run]:
    run = RunBuilder(segment.asked.tool or "output before the first prompt")
    for line in segment.lines:
        run.reject(line.number, line.text, "output of a command that is not read here")
    return [run.build()] if run.rejected else []


def _compare(runs: list[Run]) -> list[Run]:
    """Say where the queue and the accounts give one id to two jobs."""
    live: dict[str, str] = {}
    past: dict[str, tuple[str, str]] = {}
    for run in runs:
        for observation in run.observations:
            job = dict(observation.subject).get("job", "")
            if observation.name == "job_state" and job and isinstance(observation.value, str):
                if run.tool == "squeue":
                    live[job] = observation.value
                elif run.tool == "sacct" and observation.value in OVER:
                    past[job] = (observation.value, past.get(job, ("", ""))[1])
            elif observation.name == "start" and run.tool == "sacct" and job in past:
                past[job] = (past[job][0], str(observation.value))
    found = [
        Notice(
            "job-id-recycled",
            f"job id {job} is {live[job]} in the queue and {state} in the "
            f"accounts{f' (start {start})' if start else ''}: "
            "the id was used again; the key is cluster, id and submit or start time",
            Weight.ERROR,
        )
        for job, (state, start) in past.items()
        if job in live and live[job] not in OVER
    ]
    return [*runs[:-1], replace(runs[-1], notices=(*runs[-1].notices, *found))] if found else runs


READER: Final = Reader("slurm-session", "a terminal session with Slurm commands", recognise, read)
