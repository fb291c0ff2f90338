"""Logs of a node's health checks that call other tools, one sentence per check.

Form: `<time> - <level> - [<node> - ]<check> Test Succeeded|Failed|crashed[: <text>]`, as the active health check of
oci-hpc writes it. A check that crashed has no result, whatever the summary line calls it.
Observations: `check` (pass, fail; subject check, node; absent when it crashed), `average_busbw` in GB/s, as nccl-tests
prints the figure that the sentence repeats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Lack, NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten
from clusterwright.readers.values import quantity

_LINE: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[,.]\d{1,6})?)"
    r" - (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) - (?P<text>.*)$"
)
_CHECK: Final = re.compile(
    r"(?:(?P<node>[A-Za-z0-9][\w.-]{1,63}) - )?(?P<check>[A-Z][\w ()/-]{1,60}?) (?:Test|Check|test|check)"
    r" (?P<state>[Ss]ucceeded|[Pp]assed|[Ff]ailed|[Cc]rashed)\b:?(?P<rest>.*)$"
)
_CRASHED: Final = re.compile(
    r"\bcrashed\b|No module named|[Rr]equired dependencies not available|command not found|Traceback|timed out", re.I
)
_BUSBW: Final = re.compile(r"[Aa]vg bus bandwidth (?:is|:|=)\s*(?P<number>\d{1,9}(?:\.\d{1,9})?)")


def recognise(head: Head) -> int:
    """How sure this is a log of checks."""
    lines = re.findall(
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d+ - (?:INFO|WARNING|ERROR) - .*(?:[Tt]est|[Cc]heck)",
        head.text,
        re.MULTILINE,
    )
    if not lines:
        return 0
    return 85 if re.search(r"health ?check", head.text, re.I) else 55


def read(source: Source) -> Sequence[Run]:
    """The checks in the log; Refused when none has an outcome."""
    log = _Log()
    for line in source.lines():
        if match := _LINE.search(line.text):
            log.line(line.number, match["time"], match["text"])
    if log.run.bare:
        raise Refused("the log names no outcome of a check")
    return [log.finish()]


class _Log:
    def __init__(self) -> None:
        self.run = RunBuilder("health check")
        self._times: list[str] = []
        self._seen: dict[tuple[str, str], str] = {}
        self._begun = self._ended = False

    def line(self, number: int, time: str, text: str) -> None:
        self._times = [self._times[0] if self._times else time, time]
        self._begun |= text.startswith("Started ")
        self._ended |= text.startswith("Finished ")
        check = _CHECK.match(text)
        if check is None:
            return
        name = _name_of(check["check"])
        key = (check["node"] or "", name)
        state = check["state"].lower()
        outcome = "unknown" if _CRASHED.search(text) else ("pass" if state in ("succeeded", "passed") else "fail")
        if key[0]:
            self.run.condition("node", key[0])
        known = self._seen.get(key) or self._seen.get(("", name))
        if known is None or known != outcome:
            self._seen[key] = outcome
            self._observe(number, name, key[0], outcome, check["rest"])
        if match := _BUSBW.search(text):
            subject = (("check", name),)
            if not any(o.name == "average_busbw" and o.subject == subject for o in self.run.observations):
                self.run.observe("average_busbw", quantity(float(match["number"]), "GB/s"), subject, number)

    def _observe(self, number: int, name: str, node: str, outcome: str, text: str) -> None:
        subject = (("check", name), ("node", node)) if node else (("check", name),)
        said = shorten(text.strip(" :"), 160)
        if outcome == "unknown":
            self.run.observe("check", NoValue(Lack.ABSENT, "crashed", "the check itself failed"), subject, number)
            self.run.notice(
                "check-crashed", f"{name}: the check crashed ({said}); it says nothing about the hardware", line=number
            )
            return
        self.run.observe("check", outcome, subject, number)
        if outcome == "fail":
            self.run.notice("check-failed", f"{name} failed: {said}", Weight.ERROR, number)

    def finish(self) -> Run:
        self.run.condition("started", self._times[0])
        self.run.condition("ended", self._times[1])
        if self._begun and not self._ended:
            self.run.missing("the end of the check")
        return self.run.build()


def _name_of(text: str) -> str:
    """One name for a check that is written in full and abbreviated."""
    return text.replace("Silent Data Corruption", "SDC").strip()


READER: Final = Reader("health-check-log", "log of a node's health checks", recognise, read)
