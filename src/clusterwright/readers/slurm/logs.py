"""Logs of slurmctld, slurmd and slurmdbd, read in constant memory: events with nodes, clock skew, lost state.

Observations: `log_event` (how often; subject: event, node or job where the message names one), `first_seen`,
`last_seen` (as printed), `clock_skew` (subject: between; seconds by which the sender's clock, or the file server's, is
behind the controller's; negative: ahead), `memory_reported` and `memory_declared`, `gpus_reported` and
`gpus_configured` (subject: node), `log_lines` (subject: level). Conditions: `daemon`, `slurm_version`, `started`,
`ended` (first and last time in the log, as printed).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from clusterwright.lib.hostlists import HostlistError, fold
from clusterwright.model.observations import Labels, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten
from clusterwright.readers.slurm.hosts import Hosts
from clusterwright.readers.slurm.log_events import EVENTS, Event
from clusterwright.readers.values import quantity

_MOST_KEYS: Final = 20_000
_SAMPLES: Final = 5
_LONGEST: Final = 4000
_LEVELS: Final = ("fatal", "error", "warning", "verbose", "debug", "debug2", "debug3", "debug4", "sched")
_DAEMON: Final = r"slurm(?:ctld|d|dbd|stepd|restd)"
_BRACKET: Final = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[+-]\d\d:?\d\d|Z)?)\] ?(?P<rest>.*)", re.DOTALL
)
#: syslog, in whatever language its months are; journalctl -o short-iso.
_SYSLOG: Final = re.compile(
    r"(?P<time>[^\s\d\[]{2,12}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,24}) (?P<host>[\w.-]{1,200}) "
    rf"(?P<daemon>{_DAEMON})(?:\[\d{{1,10}}\])?: ?(?P<rest>.*)", re.DOTALL
)  # fmt: skip
_FOREGROUND: Final = re.compile(rf"(?P<daemon>{_DAEMON}): (?P<rest>.*)", re.DOTALL)
_LEVEL: Final = re.compile(r"(?P<level>fatal|error|warning|verbose|debug[1-4]?|sched): {1,3}")
_CREDENTIAL: Final = re.compile(
    r"(?P<which>ENCODED|DECODED): \w{3} (?P<month>\w{3}) {1,2}(?P<rest>\d{1,2} \d\d:\d\d:\d\d \d{4})"
)
#: The command whose output the log was copied from.
_COMMAND: Final = re.compile(r"(?:sudo )?(?:cat|head|tail|less|more|zcat|journalctl|grep) \S")
_MONTHS: Final = {
    m: i for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}
#: Slurm and munge accept credentials of this age (munge's default time to live, munge.7), in seconds.
_TTL_S: Final = 300.0


@dataclass
class _Count:
    count: int = 0
    first: str = ""
    last: str = ""
    line: int = 0


@dataclass
class _Log:
    """What a log has said so far."""

    run: RunBuilder
    events: dict[tuple[str, str], _Count] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    samples: dict[str, None] = field(default_factory=dict)
    skews: dict[str, dict[float, int]] = field(default_factory=dict)
    memory: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    gpus: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    encoded: datetime | None = None
    first: str = ""
    last: str = ""
    lines: int = 0
    fresh: bool = False
    before_state: int = 0
    left_out: int = 0
    daemons: dict[str, None] = field(default_factory=dict)
    hosts: Hosts = field(default_factory=Hosts)


def recognise(head: Head) -> int:
    """Lines of a daemon of Slurm: by its name, or by messages in its own bracketed form."""
    lines = [line for line in head.text.split("\n")[:200] if line.strip()]
    named = sum(bool(_SYSLOG.match(line[:_LONGEST]) or _FOREGROUND.match(line)) for line in lines)
    if named * 10 >= len(lines) * 5 and named:
        return 92
    leveled = [line for line in lines if _LEVEL.match(line)]
    if len(leveled) * 10 >= len(lines) * 5 and any(_is_own(line) for line in leveled):
        return 55  # in the foreground: the name of the daemon was taken for a host's
    bracketed = [match["rest"] for line in lines if (match := _BRACKET.match(line[:_LONGEST]))]
    if len(bracketed) * 10 < len(lines) * 5 or not bracketed:
        return 0
    own = sum(_is_own(rest) for rest in bracketed)
    return 88 if own else 20 + 30 * ("slurm" in head.name)


def _is_own(rest: str) -> bool:
    words = (
        "slurm",
        "JobId=",
        "_slurm_rpc",
        "NodeList=",
        "backfill",
        "node state",
        "job state",
        "munge",
        "WEXITSTATUS",
    )
    return any(word in rest for word in words) or any(e.mark in rest and e.form.search(rest) for e in EVENTS)


def read(source: Source) -> Sequence[Run]:
    """The run that one log holds."""
    return read_lines(source.lines(prefixes=False))


def read_lines(lines: Iterable[Line]) -> list[Run]:
    """The run that the lines of one log hold."""
    log = _Log(RunBuilder("slurm log"))
    for line in lines:
        text = line.text[:_LONGEST]
        if text.strip():
            _take(log, text, line.number)
    if not log.lines:
        raise Refused("no line is one of a daemon of Slurm")
    _conclude(log)
    return [log.run.build()]


def _take(log: _Log, text: str, number: int) -> None:
    match = _BRACKET.match(text) or _SYSLOG.match(text) or _FOREGROUND.match(text)
    if match is None:
        if log.lines or _COMMAND.match(text.strip()) is None:
            log.run.reject(number, text, "no line of a log: no time and no daemon")
        return
    found = match.groupdict()
    time, rest = found.get("time") or "", found["rest"]
    log.lines += 1
    log.first = log.first or time
    log.last = time or log.last
    if found.get("daemon"):
        log.daemons[found["daemon"]] = None
    level = _LEVEL.match(rest)
    name = level["level"] if level else "info"
    log.levels[name] = log.levels.get(name, 0) + 1
    body = rest[level.end() :] if level and level["level"] != "fatal" else rest
    _take_credential(log, body)
    said = next(((e, hit) for e in EVENTS if e.mark in body and (hit := e.form.search(body))), None)
    if said is not None:
        _count(log, *said, time, number)
    elif name in ("error", "fatal") and len(log.samples) < _SAMPLES:
        log.samples[shorten(body, 80)] = None


def _count(log: _Log, event: Event, hit: re.Match[str], time: str, number: int) -> None:
    groups = hit.groupdict()
    listed = groups.get("nodes") or groups.get("node") or groups.get("other") or ""
    for subject in _names(log, listed) or (f"job {groups['job']}" if groups.get("job") else "",):
        key = (event.name, subject)
        if key not in log.events and len(log.events) >= _MOST_KEYS:
            log.left_out += 1
            continue
        count = log.events.setdefault(key, _Count(first=time, line=number))
        count.count += 1
        count.last = time
        if event.name in ("low-memory", "fewer-gpus") and len(subject) > 0:
            kept = log.memory if event.name == "low-memory" else log.gpus
            kept[subject] = (int(groups["a"]), int(groups["b"]), number)
    if event.name == "state-file-backwards":
        _skew(log, "file system and controller", float(groups["a"]))
    if event.name == "started":
        log.run.version = groups["a"] or ""
    if event.name == "job-state-missing":
        # A controller that began without state says it again when it saves for the first time.
        log.fresh = log.fresh or not _ran_before(log)
        log.before_state = log.before_state or (0 if log.fresh else _ran_before(log))


def _ran_before(log: _Log) -> int:
    """Whether the controller was at work earlier in this log: lines before that are no part of its start."""
    starting = {"job-state-missing", "node-state-missing", "state-file-missing", "started"}
    return sum(count.count for (name, _), count in log.events.items() if name not in starting)


def _names(log: _Log, text: str) -> tuple[str, ...]:
    if not text:
        return ()
    try:
        return log.hosts.expand(text.rstrip(",:"))
    except HostlistError:
        return (text[:200],)


def _take_credential(log: _Log, body: str) -> None:
    """A pair of lines: when munge's credential was made on the sender and when it was read here."""
    match = _CREDENTIAL.search(body) if "CODED: " in body else None
    if match is None:
        return
    day, clock, year = match["rest"].split()
    hour, minute, second = (int(part) for part in clock.split(":"))
    try:
        time = datetime(int(year), _MONTHS.get(match["month"], 0), int(day), hour, minute, second)
    except ValueError:
        return
    if match["which"] == "ENCODED":
        log.encoded = time
    elif log.encoded is not None:
        _skew(log, "sender and controller", (time - log.encoded).total_seconds())
        log.encoded = None


def _skew(log: _Log, between: str, seconds: float) -> None:
    counts = log.skews.setdefault(between, {})
    if seconds in counts or len(counts) < 1000:
        counts[seconds] = counts.get(seconds, 0) + 1


def _conclude(log: _Log) -> None:
    run = log.run
    for daemon in list(log.daemons)[:1]:
        run.condition("daemon", daemon)
    for name, time in (("started", log.first), ("ended", log.last)):
        if time:
            run.condition(name, time)
    for level in (*_LEVELS, "info", "debug1"):
        if log.levels.get(level):
            run.observe("log_lines", float(log.levels[level]), (("level", level),))
    _conclude_events(log)
    _conclude_skews(log)
    _conclude_shortfalls(log)
    if log.samples:
        run.notice("other-errors", f"errors of other kinds, for instance: {'; '.join(log.samples)}")
    if log.left_out:
        run.missing(f"{log.left_out:,} events about nodes and jobs beyond the first {_MOST_KEYS:,}")


def _conclude_events(log: _Log) -> None:
    run = log.run
    by_event: dict[str, dict[str, _Count]] = {}
    for (name, about), count in log.events.items():
        by_event.setdefault(name, {})[about] = count
        subject: Labels = (("event", name),)
        if about.startswith("job "):
            subject = (*subject, ("job", about[4:]))
        elif about:
            subject = (*subject, ("node", about))
        run.observe("log_event", float(count.count), subject, count.line)
        if count.first:
            run.observe("first_seen", count.first, subject, count.line)
            run.observe("last_seen", count.last, subject, count.line)
    for event in EVENTS:
        if event.name in by_event:
            _say(log, event, by_event[event.name])


def _say(log: _Log, event: Event, found: dict[str, _Count]) -> None:
    total = sum(count.count for count in found.values())
    nodes = [about for about in found if about and not about.startswith("job ")]
    where = f": {shorten(fold(nodes), 160)}" if nodes else ""
    if event.name in ("job-state-missing", "node-state-missing", "state-file-missing"):
        _say_state(log, event, total)
        return
    log.run.notice(event.name, f"{event.means} ({total} times){where}", event.weight)


def _say_state(log: _Log, event: Event, total: int) -> None:
    if event.name == "job-state-missing" and log.before_state:
        log.run.notice(
            "job-state-lost",
            f"the list of jobs could not be read ({total} messages) although the controller was at work before: "
            f"jobs that "
            "were open must be closed in accounting with an unknown end, unless this controller never had any",
            Weight.ERROR,
        )
        return
    log.run.notice(
        event.name,
        f"{event.means} ({total} messages): normal once, at the first start of a controller; at any other start "
        f"jobs or "
        "node states are lost",
        Weight.INFO,
    )


def _conclude_skews(log: _Log) -> None:
    for between, counts in log.skews.items():
        for seconds, times in sorted(counts.items(), key=lambda item: -abs(item[0]))[:20]:
            log.run.observe("clock_skew", quantity(seconds, "s"), (("between", between), ("times", str(times))))
        worst = max(counts, key=abs)
        if abs(worst) <= _TTL_S and between.startswith("sender"):
            continue
        side = "behind" if worst > 0 else "ahead of"
        clock = "a node's clock" if between.startswith("sender") else "the file server's clock"
        log.run.notice(
            "clock-skew",
            f"{clock} is {_spell(abs(worst))} ({abs(worst):.0f} s) {side} the controller's: times in accounting "
            f"that come "
            "from there cannot be trusted",
            Weight.ERROR,
        )


def _spell(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def _conclude_shortfalls(log: _Log) -> None:
    for node, (reported, declared, line) in log.memory.items():
        subject = (("node", node),)
        log.run.observe("memory_reported", quantity(reported, "MiB"), subject, line)
        log.run.observe("memory_declared", quantity(declared, "MiB"), subject, line)
        log.run.notice(
            "memory-configured-too-high",
            f"node {node} reports {reported} MiB where RealMemory is {declared}: set RealMemory to at most "
            f"{reported}, with "
            "a margin where machines are replaced by others (cloud, spot)",
            line=line,
        )
    for node, (found, configured, line) in log.gpus.items():
        subject = (("node", node),)
        log.run.observe("gpus_reported", float(found), subject, line)
        log.run.observe("gpus_configured", float(configured), subject, line)


READER: Final = Reader("slurm-log", "logs of slurmctld, slurmd, slurmdbd", recognise, read)
