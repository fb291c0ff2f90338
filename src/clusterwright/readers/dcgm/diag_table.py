"""`dcgmi diag` as a table, DCGM 1 to 4.

Source: dcgmi/Diag.cpp. Up to version 3 a row says `Pass - All` or lists its GPUs (`Fail - GPU: 3`), further states in
rows without a name; version 4 has a row per entity (`GPU0: Pass`) below the test. Messages stand in rows called
Warning, Error or Info, cut every 45 characters. The sentence "Successfully ran diagnostic" says only that it ran.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Labels, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.dcgm.results import Results

_SECTION: Final = re.compile(r"[|+]-{3,}\s+(?P<name>[A-Z][A-Za-z ]{2,30}?)\s+-{3,}\+-*[|+]?$")
#: A section of a table, whether or not the table's head is there.
HEADLESS: Final = re.compile(r"^[ \t]*[|+]-{3,}\s+(?:Deployment|Integration|Hardware|Stress)\s+-{3,}\+", re.MULTILINE)
_RULE: Final = re.compile(r"[+|][-=+|]{20,}$")
_STATE: Final = re.compile(
    r"(?P<state>Pass|Fail|Skip|Warn|Not Run)(?:\s+-\s+(?:(?P<all>All)|GPUs?:\s*(?P<gpus>[\d, ]+)(?P<more>\.\.\.)?))?$",
    re.I,
)
_ENTITY: Final = re.compile(
    r"(?P<group>[A-Za-z_]{2,12}?)\s?(?P<id>\d{1,5}):\s*(?P<state>Pass|Fail|Skip|Warn|Not Run)$", re.I
)
_MESSAGE: Final = re.compile(r"(?P<said>Warning|Error|Info)(?::\s*(?P<group>[A-Za-z_]{2,12}?)\s?(?P<id>\d{1,5}))?$")
_ITERATION: Final = re.compile(r"Running iteration (\d{1,6}) of (\d{1,6})")
_PROMPT: Final = re.compile(
    r"(?:\[?\b\w[\w.-]{0,63}@(?P<host>[\w.-]{1,255})[^$#]{0,80})?[$#]\s*(?:sudo )?dcgmi diag (?P<arguments>.*)"
)
_POD: Final = re.compile(r"Executing in Pod (?P<pod>\S+) on Host (?P<host>\S+)")
_METADATA: Final = {
    "dcgm version": "dcgm", "driver version detected": "driver", "gpu device ids detected": "device_ids",
    "eud test version": "eud_test_version", "cpu eud test version": "cpu_eud_test_version",
    "number of cpus detected": "cpus", "cpu device ids detected": "cpu_device_ids",
    "eud package version": "eud_package_version", "cpu eud package version": "cpu_eud_package_version",
}  # fmt: skip
#: Characters of a message that one row holds.
_MESSAGE_WIDTH: Final = 45


def read_table(lines: list[Line]) -> list[Run]:
    """Every table in the lines as a run, without a check whether there is any result."""
    runs: list[Run] = []
    table: _Table | None = None
    said: dict[str, str] = {}
    for line in lines:
        text = line.text.strip()
        if re.match(r"\|\s*Diagnostic\s*\|\s*Result\s*\|?$", text):
            if table is not None:
                runs.append(table.finish())
            table = _Table(line, said)
            said = {}
        elif (table is None or table.closed) and HEADLESS.match(text):
            if table is not None:
                runs.append(table.finish())
            table = _Table(line, said)
            table.run.missing("the head of the table")
            table.row(line.number, text)
        elif table is not None and not table.closed and text[:1] in ("|", "+"):
            table.row(line.number, text)
        else:
            _note(text, said)
            if table is not None and not table.closed:
                table.interrupted(line.number, text)
    if table is not None:
        runs.append(table.finish())
    return runs


def _note(text: str, said: dict[str, str]) -> None:
    """What stands before a table about the run below it."""
    if match := _ITERATION.search(text):
        said["iteration"], said["iterations_asked"] = match[1], match[2]
    elif match := _POD.search(text):
        said["node"], said["pod"] = match["host"], match["pod"]
    elif "dcgmi diag" in text and (match := _PROMPT.search(text)):
        if match["host"]:
            said["node"] = match["host"]
        said["arguments"] = match["arguments"].strip()
        if level := re.search(r"(?:-r|--run)[ =]?(\w+)", match["arguments"]):
            said["asked_level"] = level[1]
    elif text.startswith("Successfully ran diagnostic"):
        said["sentence"] = text


class _Table:
    def __init__(self, line: Line, said: dict[str, str]) -> None:
        self.run = RunBuilder("dcgmi diag")
        self.results = Results(self.run)
        self.closed = False
        self._section = ""
        self._test = ""
        self._message: tuple[str, Labels, int] | None = None
        self._pieces: list[str] = []
        self._detected = 0
        self._sentence = said.pop("sentence", "")
        if line.prefix:
            said.setdefault("node", line.prefix)
        for key, value in said.items():
            number = key in ("iteration", "iterations_asked")
            self.run.condition(key, float(value) if number else value)

    def row(self, number: int, text: str) -> None:
        if section := _SECTION.match(text):
            self._end_section()
            self._section = section["name"]
            self._test = ""
        elif _RULE.match(text):
            self._end_section()
            self.closed = bool(self._section or self._test) and text[0] == "+" and "=" not in text
        elif text[0] != "|" or text[-1] != "|" or text.count("|") < 3:
            self.run.reject(number, text, "the row is cut")
        else:
            name, _, info = text[1:-1].partition("|")
            self._cells(number, name.strip(), info[1:].rstrip() if info[:1] == " " else info.rstrip())

    def interrupted(self, number: int, text: str) -> None:
        if text:
            self.run.reject(number, text, "stands inside the table and is no row")

    def _cells(self, number: int, name: str, info: str) -> None:
        if self._section.lower() == "metadata" or (not self._section and name.lower() in _METADATA):
            self._metadata(name, info.strip())
            return
        state, entity, message = _STATE.match(info.strip()), _ENTITY.match(info.strip()), _MESSAGE.match(name)
        if message is not None:
            self._end_message()
            self._message = (message["said"], _entity(message["group"], message["id"]), number)
            self._pieces = [info]
        elif state is not None and (name or self._test):
            self._end_message()
            self._test = name or self._test
            self._state(number, state)
        elif not name and entity is not None and self._test:
            self._end_message()
            subject = _entity(entity["group"], entity["id"])
            self._add(entity["state"], subject, number, f"{entity['group']} {entity['id']}")
        elif not name and self._message is not None:
            self._pieces.append(info)
        elif not name and info.strip().startswith("Code:"):
            self.run.observe("diagnostic_code", info.strip(), (("test", self._test),), number)
        else:
            self.run.reject(number, f"{name} | {info.strip()}", "no result that is known")

    def _state(self, number: int, state: re.Match[str]) -> None:
        if state["gpus"] is None:
            subject = (("gpu", "all"),) if state["all"] else ()
            self._add(state["state"], subject, number, "all GPUs" if state["all"] else "")
            return
        if state["more"]:
            self.run.missing(f"GPUs of {self._test} that were cut off with '...'")
        for gpu in (one.strip() for one in state["gpus"].split(",")):
            if gpu:
                self._add(state["state"], (("gpu", gpu),), number, f"GPU {gpu}")

    def _add(self, state: str, subject: Labels, number: int, where: str) -> None:
        group = (("category", self._section),) if self._section else ()
        self.results.add(self._test, state, (*subject, *group), number, where)

    def _metadata(self, name: str, info: str) -> None:
        key = _METADATA.get(name.lower())
        if key == "dcgm":
            self.run.version = info
        elif key == "device_ids":
            devices = [one.strip() for one in info.split(",") if one.strip()]
            self._detected = 0 if info.endswith("...") else len(devices)
            self.run.condition(key, ",".join(devices))
            self.run.condition("attached_gpus", float(len(devices)))
        elif key is not None:
            self.run.condition(key, info)

    def _end_message(self) -> None:
        if self._message is None:
            return
        said, subject, number = self._message
        whole = "".join(piece if len(piece) >= _MESSAGE_WIDTH else piece + " " for piece in self._pieces)
        self.results.say(self._test, whole, "info" if said == "Info" else "warning", subject, number)
        self._message, self._pieces = None, []

    def _end_section(self) -> None:
        self._end_message()
        if self._section and not self._test and self._section.lower() != "metadata":
            self.run.notice(
                "section-empty", f"the section {self._section} holds no test: no evidence of its kind", Weight.INFO
            )

    def finish(self) -> Run:
        self._end_message()
        if not self.closed:
            self.run.missing("the end of the table")
        if self._sentence and self.results.counts["fail"]:
            self.run.notice(
                "sentence-is-no-verdict",
                "'Successfully ran diagnostic' says that it ran, not that it passed",
                Weight.INFO,
            )
        return self.results.finish(self._detected)


def _entity(group: str | None, one: str | None) -> Labels:
    return ((group.lower(), one),) if group and one else ()
