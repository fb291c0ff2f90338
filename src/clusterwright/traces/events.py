"""The embedded engine's own history → jobs: one JSON object a line, the fields of `model.jobs.Event`.

A job begins with `submitted`; it starts when it is `admitted` (its GPUs are its own from there on), an attempt ends
with `fenced` (no process of it is left), the job with `ended`. Waiting between attempts is no run time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, isnan, nan
from typing import Any, Final

from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.checking import settle
from clusterwright.traces.counting import Tally
from clusterwright.traces.imports import Gap, Imported, Lines
from clusterwright.traces.rules import MOST_GPUS
from clusterwright.traces.tables import UNKNOWN

#: Our words for how a job ended → Slurm's.
_STATES: Final = {"SUCCEEDED": "COMPLETED"}
_GAPS: Final = (Gap("user and time limits", "the engine's events do not carry them"),)


@dataclass(slots=True)
class _Told:
    """A job as its events tell it."""

    line: int
    text: str
    submit_s: float
    data: Mapping[str, Any]
    runs: list[tuple[float, float]] = field(default_factory=list)
    since_s: float = nan
    end_s: float = nan
    state: str = ""
    cause: str = ""
    gpus: int = UNKNOWN
    nodes: int = UNKNOWN


def is_event(text: str) -> bool:
    """Whether a line is one event."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and {"seq", "at_s", "kind"} <= value.keys()


def read_events(lines: Lines) -> Imported:
    """The jobs of a history, in any order of the events' numbers; an event of a job that was not submitted is none."""
    tally, told = Tally(), dict[str, _Told]()
    last_s = 0.0
    for line, text in lines:
        if not text.strip():
            continue
        event = _event(tally, line, text)
        if event is not None:
            last_s = max(last_s, event["at_s"])
            _follow(tally, told, event, line, text)
    builder = TraceBuilder()
    for name, job in told.items():
        _conclude(builder, tally, name, job, last_s)
    return Imported("events", builder.build(), tally.build(), _GAPS)


def _event(tally: Tally, line: int, text: str) -> dict[str, Any] | None:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError) as error:
        tally.reject("unreadable-row", line, text, str(error))
        return None
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
        tally.reject("unreadable-row", line, text, "no event")
    elif not isinstance(event.get("at_s"), (int, float)) or not isfinite(event["at_s"]):
        tally.reject("bad-time", line, text, f"at_s {event.get('at_s')}")
    else:
        return event
    return None


def _follow(tally: Tally, told: dict[str, _Told], event: dict[str, Any], line: int, text: str) -> None:
    name, kind, at_s = event.get("job"), event["kind"], float(event["at_s"])
    if not isinstance(name, str):
        return tally.part("other-event", line, text)
    data = event["data"] if isinstance(event.get("data"), dict) else {}
    if kind == "submitted":
        if name in told:
            return tally.part("repeat", line, text)
        told[name] = _Told(line, text, at_s, data)
        return None  # counted when it is clear whether it is a job
    job = told.get(name)
    if job is None:
        return tally.reject("no-base", line, text, "an event of a job that was never submitted")
    tally.part("event", line, text)
    if kind == "admitted":
        job.since_s = at_s
        job.gpus, nodes = _count(data.get("gpus")), data.get("nodes")
        job.nodes = len(nodes) if isinstance(nodes, list) and nodes else UNKNOWN
    elif kind in ("fenced", "requeued", "ended") and not isnan(job.since_s):
        job.runs.append((job.since_s, at_s))
        job.since_s = nan
    if kind == "ended":
        job.end_s, state = at_s, str(data.get("state") or "")
        job.state, job.cause = _STATES.get(state, state), str(data.get("cause") or "")
    return None


def _conclude(builder: TraceBuilder, tally: Tally, name: str, job: _Told, last_s: float) -> None:
    running = not isnan(job.since_s)
    runs = [*job.runs, (job.since_s, last_s)] if running else job.runs
    times = settle(
        tally, job.line, job.text, submit_s=job.submit_s, start_s=runs[0][0] if runs else nan,
        end_s=nan if running else job.end_s,
    )  # fmt: skip
    if times is None:
        return
    tally.job()
    state = job.state or ("RUNNING" if running else "PENDING")
    if running:
        tally.remark("still-running", job.line, f"job {name}")
    elif not runs:
        tally.remark("never-ran" if job.state else "still-pending", job.line, f"job {name}")
    if len(runs) > 1:
        tally.remark("requeued", job.line, f"job {name}", f"{len(runs)} attempts")
    spent = [end - begin for begin, end in runs]
    gpus = job.gpus if job.gpus >= 0 else _count(job.data.get("gpus"))
    even = job.nodes > 0 and gpus >= 0 and gpus % job.nodes == 0
    builder.add(
        name, times.submit_s, start_s=times.start_s, end_s=nan if running else job.end_s,
        run_s=spent[-1] if spent else nan, lost_s=sum(spent[:-1]), gpus=gpus, tasks=job.nodes,
        gpus_per_task=gpus // job.nodes if even else UNKNOWN, attempts=max(1, len(runs)), censored=running,
        queue=str(job.data.get("queue") or ""), state=state, cause=job.cause, line=job.line,
    )  # fmt: skip


def _count(value: Any) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_GPUS
    return value if whole else UNKNOWN
