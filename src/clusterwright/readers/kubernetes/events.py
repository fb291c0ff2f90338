"""Event tables: of `kubectl get events`, of `kubectl describe`, or rows alone; columns by the header's names.

Observed (subject object, reason, source): `event_count`; `wait_time` (subject workload; what Kueue says it waited);
`event_span` (over which equal events were folded). What an object went through decides whether it still waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.explaining import tell_message
from clusterwright.readers.values import quantity

_GAP: Final = re.compile(r" {2,}|\t+")
_AGE: Final = re.compile(
    r"(?P<last>(?:\d{1,6}[smhdy]){1,4}|<unknown>|<invalid>|<none>)(?: \(x(?P<times>\d{1,9}) over "
    r"(?P<span>(?:\d{1,6}[smhdy]){1,4})\))?"
)
_LISTED: Final = re.compile(
    r"(?:[a-z0-9-]{1,63} {2,})?(?P<age>(?:\d{1,6}[smhdy]){1,4}|<unknown>|<invalid>) {2,}(?P<type>Normal|Warning) {2,}"
    r"(?P<reason>[A-Z][\w./-]{1,80}) {2,}(?P<about>[a-z]{1,60}/\S{1,253}) {2,}(?P<message>\S.*)"
)
_PARTS: Final = re.compile(r"(\d{1,6})([smhdy])")
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "y": 31_536_000.0}
_TYPES: Final = ("Normal", "Warning")
_WAITED: Final = re.compile(r"wait time since (?P<since>queued|reservation) was (?P<text>[\w.]{1,24})")
#: Kueue printed this for "the time is not known" (a zero time subtracted) up to 0.14.
_NO_TIME_S: Final = 9e9
_MOST: Final = 100_000

_RAN: Final = frozenset(
    {"Admitted", "Started", "Scheduled", "Completed", "FinishedWorkload", "Resumed", "JobResumed", "Pulled", "Created"}
)
_WAITS: Final = frozenset(
    {"Pending", "FailedScheduling", "Unschedulable", "NotTriggerScaleUp", "QuotaReservationFailed", "FailedCreate"}
)
_REJECTED: Final = frozenset(
    {"UnexpectedAdmissionError", "TopologyAffinityError", "OutOfcpu", "OutOfmemory", "Evicted", "Preempted",
     "FailedMount", "OutOfnvidia.com/gpu", "FailedScaleUp", "ScaleUpTimedOut", "EvictedDueToPodsReadyTimeout", "Failed"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One event row.

    Args:
        last_s: seconds since it last happened, None when unknown.
        times: how often; folded events say so.
        span: over which it was folded, as printed.
    """

    type: str
    reason: str
    about: str
    source: str
    message: str
    line: int
    last_s: float | None = None
    times: int = 1
    span: str = ""


def is_header(text: str) -> bool:
    """Whether a line is the header of an event table."""
    words = set(text.upper().split())
    return {"TYPE", "REASON", "MESSAGE"} <= words


def columns_of(header: str) -> list[tuple[str, int]]:
    """(name in upper case, offset) of every column; `LAST SEEN` is one name."""
    found, start = [], 0
    for cell in re.finditer(r"\S+(?: \S+)*", header):
        start = cell.start()
        found.append((cell.group().upper(), start))
    return found


def cut_row(columns: Sequence[tuple[str, int]], text: str) -> dict[str, str] | None:
    """The cells of an aligned row by column name; None when it is not aligned with the header or too short."""
    if len(columns) < 2:
        return None
    cells, edges = {}, [start for _, start in columns]
    aligned = all(
        start < len(text) + 1 and (start == 0 or text[start - 1 : start] in (" ", "")) for start in edges[:-1]
    )
    if aligned and len(text) > edges[-1]:
        for (name, start), end in zip(columns, [*edges[1:], None], strict=True):
            cells[name] = text[start:end].strip()
        return cells
    parts = _GAP.split(text.strip(), maxsplit=len(columns) - 1)
    if len(parts) != len(columns):
        return None
    return {name: part.strip() for (name, _), part in zip(columns, parts, strict=True)}


def read_event(text: str, line: int, about: str = "", columns: Sequence[tuple[str, int]] = ()) -> Event | None:
    """One row, by its header or, without one, by its type and its age; None when it is no event.

    Args:
        about: the object that the table belongs to, in the output of describe.
    """
    stripped = text.strip()
    if columns:
        cells = cut_row(columns, text)
        if cells is None or cells.get("TYPE") not in _TYPES:
            return None
        age = cells.get("AGE") or cells.get("LAST SEEN") or ""
        source = cells.get("FROM") or cells.get("SOURCE") or ""
        target = cells.get("OBJECT") or cells.get("NAME") or about
        event = _event(cells["TYPE"], cells.get("REASON", ""), target, source, cells.get("MESSAGE", ""), line, age)
        return event if event.reason and event.message else None
    listed = _LISTED.match(stripped)
    if listed is not None:  # kubectl get events without its header
        return _event(listed["type"], listed["reason"], listed["about"], "", listed["message"], line, listed["age"])
    if not stripped.startswith(_TYPES):
        return None
    parts = _GAP.split(stripped, maxsplit=4)
    if len(parts) < 4:
        return None
    if _AGE.fullmatch(parts[2]) and len(parts) == 5:
        return _event(parts[0], parts[1], about, parts[3], parts[4], line, parts[2])
    parts = _GAP.split(stripped, maxsplit=3)
    return _event(parts[0], parts[1], parts[2], "", parts[3], line, "")


def _event(kind: str, reason: str, about: str, source: str, message: str, line: int, age: str) -> Event:
    match = _AGE.fullmatch(age)
    times = int(match["times"]) if match and match["times"] else 1
    span = match["span"] or "" if match else ""
    return Event(kind, reason, about, source, message, line, _seconds(match["last"]) if match else None, times, span)


def _seconds(text: str) -> float | None:
    parts = _PARTS.findall(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None


def report_events(events: Iterable[Event], builder: RunBuilder) -> None:
    """Observe the events by object, and say what still waits and what only waited."""
    by_object: dict[str, list[Event]] = {}
    total = 0
    for event in events:
        if (total := total + 1) <= _MOST:
            by_object.setdefault(event.about, []).append(event)
    if total > _MOST:
        builder.missing(f"{total - _MOST:,} events beyond the first {_MOST:,}")
    for about, found in by_object.items():
        _tell_object(about, found, builder)


def _tell_object(about: str, events: Sequence[Event], builder: RunBuilder) -> None:
    history = _history(events)
    for event in events:
        subject = tuple(
            (key, text) for key, text in (("object", about), ("reason", event.reason), ("source", event.source)) if text
        )
        builder.observe("event_count", float(event.times), subject, event.line)
        if event.span and (seconds := _seconds(event.span)) is not None:
            builder.observe("event_span", Quantity(seconds, (("s", 1),), event.span), subject, event.line)
        _observe_wait(event, about, builder)
        if event.reason in _WAITS | _REJECTED and not history.ran_after(event):
            _tell_waiting(event, about, builder)
    waited = [event for event in events if event.reason in _WAITS]
    if waited and all(history.ran_after(event) for event in waited):
        builder.observe("workload_state", "finished" if history.ended else "admitted", (("object", about),))
        builder.notice(
            "waited-then-ran",
            f"{about or 'the object'} waited ({waited[-1].reason}) and then ran: it is not stuck",
            Weight.INFO,
            waited[-1].line,
        )


@dataclass(frozen=True, slots=True)
class _History:
    """When an object last ran.

    Args:
        ended: whether it ran to its end.
        age_s: of the youngest event by which it ran, None when none has an age.
        line: of the last event by which it ran, 0 when there is none.
        ageless_line: the same, of those without an age.
    """

    ended: bool
    age_s: float | None
    line: int
    ageless_line: int

    def ran_after(self, event: Event) -> bool:
        """Whether it ran after the event: by age where both have one, by order otherwise, or because it ended."""
        if self.ended:
            return True
        if event.last_s is None:
            return self.line > event.line
        return self.ageless_line > event.line or (self.age_s is not None and self.age_s < event.last_s)


def _history(events: Sequence[Event]) -> _History:
    ran = [event for event in events if event.reason in _RAN]
    return _History(
        any(event.reason in ("Completed", "FinishedWorkload") for event in events),
        min((event.last_s for event in ran if event.last_s is not None), default=None),
        max((event.line for event in ran), default=0),
        max((event.line for event in ran if event.last_s is None), default=0),
    )


def _observe_wait(event: Event, about: str, builder: RunBuilder) -> None:
    waited = _WAITED.search(event.message)
    if waited is None:
        return
    seconds = _seconds(waited["text"]) if re.fullmatch(r"(?:\d{1,6}[smhd])+", waited["text"]) else None
    name = "wait_time" if waited["since"] == "queued" else "reservation_wait_time"
    long = re.fullmatch(r"(\d{7,20})s", waited["text"])
    if long is not None and float(long[1]) >= _NO_TIME_S:
        value: Quantity | NoValue = NoValue(Lack.ABSENT, waited["text"], "Kueue's mark for an unknown time")
    elif seconds is None:
        value = NoValue(Lack.UNREADABLE, waited["text"], "not a duration")
    else:
        value = quantity(seconds, "s")
    builder.observe(name, value, (("workload", about.rpartition("/")[2]),), event.line)


def _tell_waiting(event: Event, about: str, builder: RunBuilder) -> None:
    named = about or "the pod"
    subject = (("object", about),) if about else ()
    tell_message(event.message, subject, event.line, builder, waiting=named)
    if event.reason in _REJECTED:
        builder.observe("rejected", event.reason, subject, event.line)
    if event.times > 1 and event.span:
        builder.notice(
            "still-pending",
            f"{named}: {event.reason} {event.times} times over {event.span}: it has waited at least that long",
            line=event.line,
        )
