"""What a run of an exported test wrote about itself, and what came back of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from clusterwright.judging.acceptance_plans import Group
from clusterwright.lib.hostlists import fold

FORMAT: Final = "clusterwright-run/1"
_LARGEST: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class RunRecord:
    """`run.json`: where and when a test ran and how it ended.

    Args:
        exit_code: None when the command was not started.
        lacking: why it could not run there (`no such hardware: ...`), "" when it ran.
        files: its outputs, beside the record.
    """

    test: str
    reader: str
    unit: str
    attempt: int
    role: str
    node: str
    nodes: Group
    engine: str
    started: datetime
    ended: datetime
    exit_code: int | None
    timed_out: bool
    lacking: str
    image: str
    driver: str
    kernel: str
    files: tuple[str, ...]

    @property
    def failed(self) -> str:
        """How the command failed, "" when it did not."""
        if self.timed_out:
            return "it was ended after its time limit"
        return f"it ended with exit code {self.exit_code}" if self.exit_code else ""


def parse_run(text: str) -> RunRecord | str:
    """A record, or what is wrong with it."""
    if len(text) > _LARGEST:
        return "larger than any record"
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return "not JSON; the run may have been cut off" if text.strip() else "empty"
    if not isinstance(values, dict):
        return "not a record of a run"
    if values.get("format") != FORMAT:
        return f"another format: {str(values.get('format'))[:60]!r}, this reads {FORMAT}"
    started, ended = _moment(values.get("started")), _moment(values.get("ended"))
    if started is None or ended is None:
        return "without the times of the run"
    code = values.get("exit_code")
    if code is not None and (isinstance(code, bool) or not isinstance(code, int)):
        return f"with the exit code {str(code)[:20]!r}"
    attempt = values.get("attempt")
    return RunRecord(
        test=_text(values, "test"),
        reader=_text(values, "reader"),
        unit=_text(values, "unit"),
        attempt=attempt if isinstance(attempt, int) else 1,
        role=_text(values, "role"),
        node=_text(values, "node"),
        nodes=tuple(n for n in _text(values, "nodes").split(",") if n),
        engine=_text(values, "engine"),
        started=started,
        ended=ended,
        exit_code=code,
        timed_out=values.get("timed_out") is True,
        lacking=_text(values, "lacking"),
        image=_text(values, "image"),
        driver=_text(values, "driver"),
        kernel=_text(values, "kernel"),
        files=tuple(f for f in _text(values, "files").split() if _is_plain(f)),
    )


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value[:4096] if isinstance(value, str) else ""


def _is_plain(name: str) -> bool:
    """Whether it names a file beside the record and nothing elsewhere."""
    return "/" not in name and "\\" not in name and name not in ("", ".", "..")


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo is not None else None


class State(StrEnum):
    """What came back of one run of a test."""

    READ = "read"
    FAILED = "failed"
    LACKING = "lacking"
    UNREAD = "unread"
    ABSENT = "did not report"


@dataclass(frozen=True, slots=True)
class UnitResult:
    """One run that the plan expects, and what came back of it.

    Args:
        reason: why it is not READ.
    """

    test: str
    unit: str
    nodes: Group
    state: State
    reason: str = ""
    attempts: int = 1


def describe_results(results: list[UnitResult]) -> str:
    """Why runs gave nothing, grouped by reason, with their nodes; "" when all were read."""
    by_reason: dict[str, list[UnitResult]] = {}
    for result in results:
        if result.state is not State.READ:
            by_reason.setdefault(result.reason or result.state.value, []).append(result)
    return "; ".join(f"{reason} ({result_nodes(found)})" for reason, found in by_reason.items())


def result_nodes(results: list[UnitResult]) -> str:
    """The nodes of some runs as a host list, or their names."""
    nodes = tuple(dict.fromkeys(n for r in results for n in r.nodes))
    return fold(nodes) if nodes else ", ".join(dict.fromkeys(r.unit for r in results))
