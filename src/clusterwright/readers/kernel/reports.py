"""Reports in prose that name Xids without the kernel's lines: what they mention, never counted as measured.

Observations: `xid_mentioned` (code; subject pci where one alone is named), `gpu_mentioned` (uuid; subject pci),
`remapped_rows_mentioned`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.kernel.causes import NVLINK_XIDS
from clusterwright.readers.kernel.messages import address
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_XIDS: Final = re.compile(r"\bXIDs?[\s:#]{1,3}(?P<codes>\d{1,3}(?:\s?[/,]\s?\d{1,3}){0,8})\b", re.I)
_LINE: Final = re.compile(r"Xid \((?:PCI:)?[0-9a-fA-F]{2,8}:")
_PCI: Final = re.compile(
    r"\b(?P<pci>(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F](?:\.[0-7]))\b|`(?P<quoted>[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})`"
)
_UUID: Final = re.compile(
    r"(?P<uuid>GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?: \(PCI (?P<pci>[0-9a-fA-F:.]{5,16})\))?"
)
_SHARE: Final = re.compile(r"\b(?P<some>\d{1,4}) of (?P<all>\d{1,4}) GPUs\b|\b(?P<both>both GPUs)\b", re.I)
_ROWS: Final = re.compile(r"from \**(?P<before>\d{1,5}) to (?P<after>\d{1,5})\** remapped rows", re.I)
_CLOCK: Final = re.compile(r"\b[0-2]\d:[0-5]\d\b")
_DRIVER: Final = re.compile(r"\bDriver(?: version)?: *(?P<version>\d{3}\.\d{1,4}(?:\.\d{1,3})?)", re.I)
_LINKS: Final = re.compile(r"NVLink error|NVLINK error|NVLink (?:\w+ ){0,3}Error", re.I)
_MEMORY: Final = frozenset({"48", "63", "64", "94", "95", "171"})


def recognise(head: Head) -> int:
    """How sure this is such a report; any reader of a tool is surer."""
    if _LINE.search(head.text):
        return 0
    if _XIDS.search(head.text):
        return 24
    return 20 if _UUID.search(head.text) and _LINKS.search(head.text) else 0


def read(source: Source) -> Sequence[Run]:
    """What the report mentions, as one incomplete run."""
    run = RunBuilder("report")
    report = _Report(run)
    for line in source.lines(prefixes=False):
        report.line(line.number, line.text)
    report.finish()
    if run.bare:
        raise Refused("names no Xid and no GPU")
    return [run.build()]


class _Report:
    def __init__(self, run: RunBuilder) -> None:
        self.run = run
        self._codes: dict[str, int] = {}
        self._gpus: dict[str, None] = {}
        self._clocks: set[str] = set()
        self._several = ""
        self._links = 0

    def line(self, number: int, text: str) -> None:
        for match in _UUID.finditer(text):
            pci = address(match["pci"] or "")
            self.run.observe("gpu_mentioned", match["uuid"], (("pci", pci),) if pci else (), number)
            if pci and len(self._gpus) < 1024:
                self._gpus[pci] = None
        for match in _PCI.finditer(text):
            pci = address(match["pci"] or match["quoted"])
            if pci and len(self._gpus) < 1024:
                self._gpus[pci] = None
        for match in _XIDS.finditer(text):
            for code in re.findall(r"\d+", match["codes"]):
                if len(self._codes) < 1000:
                    self._codes.setdefault(code, number)
        if len(self._clocks) < 1000:
            self._clocks.update(_CLOCK.findall(text))
        if share := _SHARE.search(text):
            self._several = self._several or share.group()
        if rows := _ROWS.search(text):
            self.run.observe("remapped_rows_mentioned", float(rows["after"]), (("before", rows["before"]),), number)
        if driver := _DRIVER.search(text):
            self.run.condition("driver", driver["version"])
        if _LINKS.search(text):
            self._links = self._links or number

    def finish(self) -> None:
        run, gpus = self.run, list(self._gpus)
        subject = (("pci", gpus[0]),) if len(gpus) == 1 else ()
        for code, number in self._codes.items():
            run.observe("xid_mentioned", float(code), subject, number)
        run.missing("the lines of the kernel: a report mentions them only")
        linked = bool(NVLINK_XIDS & self._codes.keys()) or bool(self._links)
        if linked and (self._several or len(gpus) > 1):
            run.notice(
                "xid-on-several-gpus",
                f"an error of NVLink on several GPUs ({self._several or ', '.join(gpus[:8])}): a cause in the fabric, "
                "not in each GPU",
                line=self._links,
            )
            if "94" in self._codes:
                run.notice(
                    "contained-errors-with-link-errors",
                    "Xid 94 together with link errors on several GPUs: one fault of NVLink, not so many bad memories",
                    line=self._codes["94"],
                )
        memory = [code for code in self._codes if code in _MEMORY]
        where = gpus[0] if gpus else "one GPU"
        if len(memory) > 1 and len(self._clocks) > 1 and not linked:
            run.notice(
                "memory-errors-repeat",
                f"memory errors (Xid {', '.join(memory)}) at {len(self._clocks)} times on {where}: "
                "each alone could be recovered from, together they say that the memory degrades",
                Weight.ERROR,
                self._codes[memory[0]],
            )


READER: Final = Reader("fault-report", "reports in prose that mention Xids", recognise, read)
