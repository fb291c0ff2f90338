"""`dcgmi nvlink -s` (state of each link, one letter) and `-e` (error counts of each link).

Source: dcgmi/Nvlink.cpp of DCGM 2 to 4; key: Up=U, Down=D, Disabled=X, Not Supported=_.
Observations: `nvlink_state` (up, down, inactive; absent where not supported; subject gpu or nvswitch, link),
`nvlink_errors` (count; subject gpu, link, error).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.dcgm.fields import read_value
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_OWNER: Final = re.compile(r"(?P<kind>gpuId|physicalId|entityId) (?P<id>\d{1,5}):$")
_STATES: Final = re.compile(r"[UDX_](?: [UDX_])*$")
_LETTERS: Final[dict[str, Value]] = {
    "U": "up", "D": "down", "X": "inactive", "_": NoValue(Lack.ABSENT, "_", "the GPU does not have this link"),
}  # fmt: skip
_HEADING: Final = re.compile(r"\|?\s*NvLink Link Status\s*\|?$", re.I)
_GPU: Final = re.compile(r"\|\s*GPU (?P<gpu>\d{1,5})\s*\|$")
_COUNT: Final = re.compile(r"\|\s*(?:-> )?(?P<label>[^|]{1,60}?)\s*\|\s*(?P<value>[^|]*?)\s*\|$")
_LINK: Final = re.compile(r"\|\s*Link (?P<link>\d{1,3})\s*\|")


def recognise(head: Head) -> int:
    """How sure this is about NVLinks as DCGM prints them."""
    if re.search(r"NvLink Link Status|NVLINK Error Counts", head.text):
        return 96
    if re.search(r"^[ \t]*gpuId \d{1,5}:[ \t]*\n[ \t]*[UDX_](?: [UDX_])+[ \t]*$", head.text, re.MULTILINE):
        return 88
    return 0


def read(source: Source) -> Sequence[Run]:
    """The links of each host."""
    reports: dict[str, _Links] = {}
    for line in source.lines():
        if len(reports) < 10_000 or line.prefix in reports:
            reports.setdefault(line.prefix, _Links(line.prefix)).line(line.number, line.text.strip())
    runs = [report.finish() for report in reports.values() if not report.run.bare]
    if not runs:
        raise Refused("holds no state of any link")
    return runs


def links_in(lines: Sequence[Line]) -> list[Run]:
    """The states of links that stand beside another output of dcgmi in one file."""
    if not any(_HEADING.match(line.text.strip()) for line in lines):
        return []
    report = _Links(lines[0].prefix)
    for line in lines:
        report.line(line.number, line.text.strip())
    return [] if report.run.bare else [report.finish()]


class _Links:
    def __init__(self, node: str) -> None:
        self.run = RunBuilder("dcgmi nvlink")
        if node:
            self.run.condition("node", node)
        self._owner = ("", "")
        self._waiting = 0
        self._link = ""
        self._heading = self._key = self._errors = False
        self._counts: dict[str, list[str]] = {"up": [], "down": [], "inactive": []}
        self._links: dict[tuple[str, str], int] = {}

    def line(self, number: int, text: str) -> None:
        if self._waiting and _STATES.match(text):
            self._states(number, text)
        elif owner := _OWNER.match(text):
            self._end_owner()
            self._owner = ("gpu" if owner["kind"] == "gpuId" else "nvswitch", owner["id"])
            self._waiting = number
        elif _HEADING.match(text):
            self._heading = True
        elif text.startswith("Key:"):
            self._key = True
        elif "NVLINK Error Counts" in text:
            self._errors = True
        elif gpu := _GPU.match(text):
            self._owner = ("gpu", gpu["gpu"])
        elif self._errors and (link := _LINK.match(text)):
            self._link = link["link"]
        elif self._errors and self._link and (count := _COUNT.match(text)):
            subject = (self._owner, ("link", self._link), ("error", count["label"].lower().removesuffix(" error")))
            self.run.observe("nvlink_errors", read_value(count["value"], None), subject, number)
        elif self._waiting and text:
            self.run.reject(number, text, "no states of links")
            self._waiting = 0

    def _states(self, number: int, text: str) -> None:
        letters = text.split(" ")
        for link, letter in enumerate(letters):
            value = _LETTERS[letter]
            self.run.observe("nvlink_state", value, (self._owner, ("link", str(link))), number)
            if isinstance(value, str):
                self._counts[value].append(f"{self._owner[0]} {self._owner[1]} link {link}")
        self._links[self._owner] = sum(letter != "_" for letter in letters)
        self._waiting = 0

    def _end_owner(self) -> None:
        if self._waiting:
            self.run.missing(f"the links of {self._owner[0]} {self._owner[1]}")
            self._waiting = 0

    def finish(self) -> Run:
        self._end_owner()
        run = self.run
        if self._links:
            if not self._heading:
                run.missing("the heading")
            if not self._key:
                run.missing("the key at the end")
            run.condition("links_up", float(len(self._counts["up"])))
            run.condition("links_down", float(len(self._counts["down"])))
            run.condition("links_inactive", float(len(self._counts["inactive"])))
        for state, weight in (("down", Weight.ERROR), ("inactive", Weight.WARNING)):
            named = self._counts[state]
            if named:
                more = f" and {len(named) - 12} more" if len(named) > 12 else ""
                hint = (
                    "; whether they should be up depends on the product's map of links" if state == "inactive" else ""
                )
                run.notice(
                    f"nvlink-{state}", f"{len(named)} links are {state}: {', '.join(named[:12])}{more}{hint}", weight
                )
        counts = {count for (kind, _), count in self._links.items() if kind == "gpu"}
        if len(counts) > 1:
            run.notice("links-differ", f"GPUs have different numbers of links: {', '.join(map(str, sorted(counts)))}")
        nonzero = [
            o for o in run.observations if o.name == "nvlink_errors" and isinstance(o.value, float) and o.value > 0
        ]
        for one in nonzero[:20]:
            found = dict(one.subject)
            run.notice(
                "nvlink-errors", f"GPU {found.get('gpu', '?')} link {found['link']}: {one.value:g} {found['error']}",
                line=one.line,
            )  # fmt: skip
        return run.build()


READER: Final = Reader("dcgm-nvlink", "dcgmi nvlink: link states and error counts", recognise, read)
