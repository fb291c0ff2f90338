"""The log of NVSentinel's preflight check, which runs the DCGM diagnosis: JSON objects, one per line or spread.

Source: NVSentinel preflight-checks, module preflight-dcgm-diag: events "Diagnostic summary" and "Test <state>".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.model.observations import Labels, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.dcgm.results import Results
from clusterwright.readers.documents import load_json
from clusterwright.readers.refusing import Refused

MARK: Final = "preflight-dcgm-diag"
_MOST_LINES: Final = 200
_COUNTS: Final = {"passed": "pass", "failed": "fail", "warned": "warn", "skipped": "skip"}


def read_preflight(lines: list[Line]) -> list[Run]:
    """Each diagnosis in the log; a line that is no JSON is counted as rejected."""
    logs: list[_Log] = []
    for number, text in _objects(lines):
        try:
            record = load_json(text, first_line=number).value
        except Refused:
            record = None
        if not logs or (isinstance(record, dict) and record.get("event") == "Starting preflight dcgm-diag check"):
            logs.append(_Log())
        if isinstance(record, dict):
            logs[-1].record(record, number)
        elif text.startswith("{"):
            logs[-1].run.reject(number, text, "no whole JSON object")
    runs = [log.finish() for log in logs if log.any]
    if not runs:
        raise Refused("the log holds no result of a test: nothing was measured")
    return runs


def _objects(lines: list[Line]) -> Iterator[tuple[int, str]]:
    """Objects with the number of their first line; `jq` spreads each over several lines."""
    held: list[str] = []
    begin = 0
    for line in lines:
        text = line.text.rstrip()
        if held:
            held.append(text)
            if text == "}" or len(held) > _MOST_LINES:
                yield begin, "\n".join(held)
                held = []
        elif text == "{":
            held, begin = [text], line.number
        elif text.strip():
            yield line.number, text.strip()
    if held:
        yield begin, "\n".join(held)


class _Log:
    def __init__(self) -> None:
        self.run = RunBuilder("preflight dcgm-diag")
        self.results = Results(self.run)
        self._summary: dict[str, float] = {}

    @property
    def any(self) -> bool:
        return bool(self._summary) or self.results.any

    def record(self, record: dict[str, Any], line: int) -> None:
        event = str(record.get("event", ""))
        stamp = record.get("timestamp")
        if isinstance(stamp, str) and "started" not in self.run.conditions():
            self.run.condition("started", stamp)
        if isinstance(record.get("version"), str):
            self.run.version = record["version"]
        if isinstance(record.get("diag_level"), int):
            self.run.condition("asked_level", str(record["diag_level"]))
        if event == "Diagnostic summary":
            self._summarise(record, line)
        elif event.startswith("Test "):
            self._test(event.removeprefix("Test "), record, line)

    def _summarise(self, record: dict[str, Any], line: int) -> None:
        for key in (*_COUNTS, "total"):
            count = record.get(key)
            if isinstance(count, int) and not isinstance(count, bool):
                self._summary[key] = float(count)
                self.run.observe(f"tests_{key}", float(count), (), line)
        stamp = record.get("timestamp")
        if isinstance(stamp, str):
            self.run.condition("ended", stamp)

    def _test(self, state: str, record: dict[str, Any], line: int) -> None:
        test = str(record.get("test", "")) or "a test without a name"
        gpu = str(record.get("gpu", ""))
        subject: Labels = ((("uuid", gpu),) if gpu.startswith("GPU-") else (("gpu", gpu),)) if gpu else ()
        self.results.add(test, state, subject, line, gpu)
        code = record.get("error_code")
        full = (*subject, ("error_id", str(code))) if isinstance(code, int) else subject
        self.results.say(test, str(record.get("detail", "")), "warning", full, line)

    def finish(self) -> Run:
        listed = sum(self.results.counts.values())
        total = int(self._summary.get("total", 0))
        if not self._summary:
            self.run.missing("the summary")
        elif listed < total - int(self._summary.get("passed", 0)):
            self.run.missing(f"results of {total - int(self._summary.get('passed', 0)) - listed} of {total} tests")
        stated = sum(int(self._summary.get(key, 0)) for key in _COUNTS)
        if self._summary and stated != total:
            self.run.notice("counts-disagree", f"the summary counts {stated} results of {total} tests")
        for key, state in _COUNTS.items():
            count = int(self._summary.get(key, 0))
            self.results.counts[state] = max(self.results.counts[state], count)
        if failed := int(self._summary.get("failed", 0)):
            self.run.notice(
                "test-failed",
                f"{failed} of {total} tests failed, {int(self._summary.get('passed', 0))} passed",
                Weight.ERROR,
            )
        return self.results.finish()
