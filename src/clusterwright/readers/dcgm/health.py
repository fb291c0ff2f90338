"""`dcgmi health -c` and `-f` as tree or JSON, and the health lines in the log of nv-hostengine.

Source: dcgmi/Health.cpp and DcgmiOutput.cpp of DCGM 2 to 4; the tree of DCGM 1 has `GPU ID: n` rows.
Observations: `health` (healthy, warning, failure; subject scope=overall, or gpu or another entity, and system),
`health_message`, `health_watch` (flag; subject system), `health_events` (count in a log).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from clusterwright.model.observations import Labels, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.documents import find_json, load_json
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten
from clusterwright.readers.values import unreadable

_STATES: Final = {
    "healthy": "healthy",
    "pass": "healthy",
    "warning": "warning",
    "failure": "failure",
    "fail": "failure",
}
_ROW: Final = re.compile(r"\|(?P<left>[^|]*)\|(?P<right>[^|]*)\|$")
_OLD_OVERALL: Final = re.compile(r"\|\s*Overall Health:\s*(?P<state>\w+)")
_OLD_GPU: Final = re.compile(r"GPU ID:?\s*(?P<gpu>\d+)$")
_OLD_SYSTEM: Final = re.compile(r"(?P<system>[\w ]{2,30}): (?P<state>Warning|Failure|Healthy)(?: - (?P<text>.*))?$")
_LOG: Final = re.compile(
    r"(?:(?P<time>\d{4}-\d\d-\d\d[ T][\d:.,]{5,18}\S{0,6}).{0,60})?\[\[Health\]\] Detected an? (?P<state>\w+) "
    r"in health system (?P<system>[\w ]{2,30}): '?(?P<text>.*)"
)
_NOT_ENABLED: Final = re.compile(r"Error: Health watches not enabled")
_ERROR: Final = re.compile(r"^Error: Unable to (?:check|get) health watches[^\n]*", re.MULTILINE)


def recognise(head: Head) -> int:
    """How sure this is DCGM's view of health."""
    if re.search(r"Health Monitor Report|Health monitor systems report|\[\[Health\]\] Detected an?", head.text):
        return 95
    if _NOT_ENABLED.search(head.text) or _ERROR.search(head.text):
        return 90
    return 0


def read(source: Source) -> Sequence[Run]:
    """The reports in it; a host's prefix makes a run of its own."""
    groups: dict[str, list[Line]] = {}
    for count, line in enumerate(source.lines()):
        if count >= 1_000_000:
            raise Refused("more than a million lines; split it", line.number)
        groups.setdefault(line.prefix, []).append(line)
    runs: list[Run] = []
    for prefix, lines in groups.items():
        runs.extend(_read_group(prefix, lines))
    if not runs:
        text = "\n".join(line.text for lines in groups.values() for line in lines)
        if _NOT_ENABLED.search(text):
            raise Refused("the health watches are not enabled: nothing was checked", 1)
        failed = _ERROR.search(text)
        raise Refused("holds no health report", 1, failed.group() if failed else text[:200])
    return runs


def _read_group(node: str, lines: list[Line]) -> list[Run]:
    text = "\n".join(line.text for line in lines)
    if '"Overall Health"' in text and (place := find_json(text)) is not None:
        return [_read_json(text[place[0] :], node, lines[text.count("\n", 0, place[0])].number)]
    runs: list[Run] = []
    tree: _Tree | None = None
    for line in lines:
        if re.search(r"Health Monitor Report|Health monitor systems report", line.text):
            if tree is not None:
                runs.append(tree.finish())
            tree = _Tree(node, watches="systems" in line.text)
        elif tree is not None:
            tree.row(line.number, line.text.strip())
    if tree is not None:
        runs.append(tree.finish())
    log = _read_log(node, lines)
    return [*runs, log] if log is not None else runs


class _Tree:
    """One report as a tree."""

    def __init__(self, node: str, watches: bool) -> None:
        self.run = RunBuilder("dcgmi health")
        if node:
            self.run.condition("node", node)
        self._watches = watches
        self._group = ""
        self._entity: Labels = ()
        self._system = ""
        self._pieces: list[str] = []
        self._at = 0
        self._overall = False
        self._ended = False

    def row(self, number: int, text: str) -> None:
        if self._ended and text[:1] == "|" and (row := _ROW.match(text)) and _OLD_GPU.match(row["left"].strip()):
            self._ended = False  # DCGM 1 draws a border below every GPU
        if not text or self._ended:
            return
        if text[0] == "+":
            self._ended = text[-1] == "+" and "=" not in text and (self._overall or not self.run.bare)
            return
        if old := _OLD_OVERALL.search(text):
            self._observe_overall(old["state"], number)
            return
        row = _ROW.match(text)
        if row is None:
            if text[0] == "|":
                self.run.reject(number, text, "the row is cut")
            return
        self._cells(number, row["left"], row["right"].strip())

    def _cells(self, number: int, left: str, right: str) -> None:
        label = left.strip()
        depth = label.count("-> ") and (len(left) - len(left.lstrip())) // 3 + 1
        name = label.removeprefix("-> ").strip()
        if self._watches:
            self._watch(name, right, number)
        elif label.lower().rstrip(":") == "overall health":
            self._observe_overall(right, number)
        elif old := _OLD_GPU.match(label):
            self._end_message()
            self._group, self._entity = "GPU", (("gpu", old["gpu"]),)
            self._observe(right, self._entity, number)
        elif not label:
            self._text(number, right)
        elif depth == 0:
            self._end_message()
            self._group, self._entity = name, ()
        elif depth == 1:
            self._end_message()
            self._entity = ((self._group.lower().replace(" ", "_"), name),)
            self._observe(right, self._entity, number)
        elif name.lower() != "errors":
            self._end_message()
            self._system = name.lower().removesuffix(" system")
            self._observe(right, (*self._entity, ("system", self._system)), number)

    def _text(self, number: int, right: str) -> None:
        if match := _OLD_SYSTEM.match(right):
            self._end_message()
            self._system = match["system"].lower().removesuffix(" system")
            self._observe(match["state"], (*self._entity, ("system", self._system)), number)
            right = match["text"] or ""
        if right and self._system:
            self._pieces.append(right)
            self._at = self._at or number

    def _watch(self, name: str, right: str, number: int) -> None:
        if right.lower() in ("on", "off"):
            self.run.observe("health_watch", right.lower() == "on", (("system", name.lower()),), number)

    def _observe_overall(self, state: str, number: int) -> None:
        self._overall = True
        self._observe(state, (("scope", "overall"),), number)

    def _observe(self, state: str, subject: Labels, number: int) -> None:
        self.run.observe("health", _state(state), subject, number)

    def _end_message(self) -> None:
        if self._pieces and self._system:
            _say(self.run, self._entity, self._system, " ".join(self._pieces), self._at)
        self._pieces, self._system, self._at = [], "", 0

    def finish(self) -> Run:
        self._end_message()
        if not self._ended:
            self.run.missing("the end of the report")
        if not self._watches and not self._overall:
            self.run.missing("the overall health")
        off = [dict(o.subject)["system"] for o in self.run.observations if o.value is False]
        if off:
            self.run.notice("watches-off", f"health is not watched for {', '.join(off)}: it says nothing about them")
        return self.run.build()


def _read_json(text: str, node: str, first_line: int) -> Run:
    value = load_json(text, first_line=first_line).value
    body = value.get("body") if isinstance(value, dict) else None
    if not isinstance(body, dict):
        raise Refused("the health report has no body", first_line)
    run = RunBuilder("dcgmi health")
    if node:
        run.condition("node", node)
    for name, item in body.items():
        if name.lower() == "overall health":
            run.observe("health", _state(_value(item)), (("scope", "overall"),), first_line)
            continue
        for one, entity in _children(item):
            subject = ((name.lower().replace(" ", "_"), one),)
            run.observe("health", _state(_value(entity)), subject, first_line)
            for _, errors in _children(entity):
                for system, found in _children(errors):
                    named = system.lower().removesuffix(" system")
                    run.observe("health", _state(_value(found)), (*subject, ("system", named)), first_line)
                    _say(run, subject, named, _overflow(found), first_line)
    if not any(o.name == "health" for o in run.observations):
        raise Refused("the health report holds no state: nothing was checked", first_line)
    return run.build()


def _read_log(node: str, lines: list[Line]) -> Run | None:
    counts: dict[tuple[str, str, Labels], list[int]] = {}
    run = RunBuilder("nv-hostengine")
    if node:
        run.condition("node", node)
    for line in lines:
        match = _LOG.search(line.text)
        if match is None:
            continue
        if match["time"] and "started" not in run.conditions():
            run.condition("started", match["time"].strip())
        gpu = re.search(r"\b(?:in|on|for) GPU (\d{1,4})\b", match["text"])
        subject: Labels = (("gpu", gpu[1]),) if gpu else ()
        system = match["system"].strip().lower()
        key = (match["state"].lower(), system, subject)
        if key not in counts:
            counts[key] = [line.number, 0]
            _say(run, subject, system, match["text"].rstrip("'"), line.number)
            if not match["text"].rstrip().endswith("'"):
                run.missing(f"the end of the message at line {line.number}")
        counts[key][1] += 1
    for (state, system, subject), (number, count) in counts.items():
        full = (*subject, ("system", system))
        run.observe("health", _state(state), full, number)
        run.observe("health_events", float(count), full, number)
        run.notice(
            "health-event",
            f"{count:,} × {state} of the system {system}{_of(subject)}; the word before it is the log's own level",
            Weight.ERROR if state.startswith("fail") else Weight.WARNING,
            number,
        )
    return run.build() if counts else None


def _say(run: RunBuilder, subject: Labels, system: str, text: str, line: int) -> None:
    flat = " ".join(text.split())
    if flat:
        run.observe("health_message", flat, (*subject, ("system", system)), line)
        run.notice("health-message", f"{system}{_of(subject)}: {shorten(flat, 200)}", line=line)


def _of(subject: Labels) -> str:
    return " of " + " ".join(f"{key.upper()} {value}" for key, value in subject) if subject else ""


def _state(text: str) -> Value:
    return _STATES.get(text.strip().lower()) or unreadable(text, "no state of health that is known")


def _children(item: Any) -> list[tuple[str, Any]]:
    children = item.get("children") if isinstance(item, dict) else None
    return list(children.items()) if isinstance(children, dict) else []


def _value(item: Any) -> str:
    value = item.get("value", "") if isinstance(item, dict) else item
    return value if isinstance(value, str) else ""


def _overflow(item: Any) -> str:
    listed = item.get("overflow") if isinstance(item, dict) else None
    return " ".join(_value(one) for one in listed) if isinstance(listed, list) else ""


READER: Final = Reader("dcgm-health", "dcgmi health and the health lines of nv-hostengine", recognise, read)
