"""What happened in a simulation, one value per event, and its one line of text."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Happening(StrEnum):
    """The kinds of events; the values are the words of the log."""

    SUBMITTED = "submitted"
    STARTED = "started"
    LOADED = "loaded"
    INTERRUPTED = "interrupted"
    TOLD_TO_LEAVE = "told to leave"
    ENDED = "ended"
    FAILED = "failure"
    OUT = "out"
    BACK = "back"
    SPARE_IN = "spare in"
    INSTALLED = "installed"
    STOPPED = "stopped before the end"


class Event(NamedTuple):
    """One event.

    Args:
        at_ms: since instant 0.
        job: its number, −1 where it is about nodes alone.
        nodes: names, of the attempt or of what it is about; empty where the job is enough.
        gpus: that the attempt holds.
        detail: how it ended, why it is out, which decision started it.
    """

    at_ms: int
    what: Happening
    job: int = -1
    nodes: tuple[str, ...] = ()
    gpus: int = 0
    detail: str = ""


def render_event(event: Event) -> str:
    """One line without its end: the same event is the same text."""
    seconds, ms = divmod(event.at_ms, 1000)
    said = [f"{seconds}.{ms:03}", event.what.value]
    said += [f"job {event.job}"] * (event.job >= 0)
    said += [f"{event.gpus} GPUs"] * (event.gpus > 0)
    said += [",".join(event.nodes)] * bool(event.nodes)
    said += [event.detail] * bool(event.detail)
    return "\t".join(said)
