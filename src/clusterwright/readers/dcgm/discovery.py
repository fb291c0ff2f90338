"""`dcgmi discovery -l`: the GPUs, NVSwitches, CPUs and adapters that DCGM sees.

Source: dcgmi/Query.cpp of DCGM 2 to 4. Observations: `gpu` (value: product; subject gpu, uuid, pci), `entities_found`
(count; subject kind). Conditions: `attached_gpus`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.lib.pci import pci_address
from clusterwright.model.observations import Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.dcgm.fields import blank_meaning
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import names_a_device

_FOUND: Final = re.compile(
    r"(?P<count>\d{1,5}) (?P<kind>GPU|NvSwitch|CPU|ConnectX|Switch)(?:es|s)? found(?: \(\w{2,12}\))?\.?$", re.I
)
_HEADER: Final = re.compile(
    r"\|\s*(?P<kind>GPU|Switch|CPU|ConnectX)(?: ID)?\s*(?:\|\s*(?P<info>Device Information)?\s*)?\|$"
)
_ROW: Final = re.compile(r"\|(?P<id>[^|]*)\|(?P<info>[^|]*)\|$")
_UUID: Final = re.compile(r"GPU-[\w-]{1,80}")
_ONE: Final = re.compile(r"\|\s*(?P<id>\d{1,6})\s*\|$")


def recognise(head: Head) -> int:
    """How sure this lists the devices that DCGM sees."""
    if re.search(r"^[ \t]*\|[ \t]*GPU ID[ \t]*\|[ \t]*Device Information[ \t]*+\|?[ \t]*+$", head.text, re.MULTILINE):
        return 96
    return 70 if re.search(r"^[ \t]*\d+ GPUs? found(?: \(\w{2,12}\))?\.$", head.text, re.MULTILINE) else 0


def read(source: Source) -> Sequence[Run]:
    """The list of each host."""
    lists: dict[str, _List] = {}
    for line in source.lines():
        if len(lists) < 10_000 or line.prefix in lists:
            lists.setdefault(line.prefix, _List(line.prefix)).line(line.number, line.text.strip())
    runs = [found.finish() for found in lists.values() if found.any]
    if not runs:
        raise Refused("holds no list of devices")
    return runs


class _List:
    def __init__(self, node: str) -> None:
        self.run = RunBuilder("dcgmi discovery")
        self._node = node
        if node:
            self.run.condition("node", node)
        self._found: dict[str, int] = {}
        self._kind = ""
        self._rows: dict[str, dict[str, dict[str, str]]] = {}
        self._lines: dict[tuple[str, str], int] = {}
        self._id = ""
        self._ruled = False

    @property
    def any(self) -> bool:
        return bool(self._found) or bool(self._rows)

    def line(self, number: int, text: str) -> None:
        if match := _FOUND.match(text):
            kind = match["kind"].lower()
            self._found[kind] = int(match["count"])
            self.run.observe("entities_found", float(match["count"]), (("kind", kind),), number)
        elif match := _HEADER.match(text):
            self._kind, self._id = match["kind"].lower(), ""
            self._rows.setdefault(self._kind, {})
            self._ruled = False
        elif text[:1] == "+":
            self._ruled = text[-1] == "+" and len(text) > 3
        elif text in ("...", "…", "[...]") and self._kind:
            self.run.missing(f"lines left out at an ellipsis (line {number})")
        elif text[:1] == "|" and self._kind:
            self._ruled = False
            self._row(number, text)

    def _row(self, number: int, text: str) -> None:
        row, one = _ROW.match(text), _ONE.match(text)
        if row is None:
            if one is not None:
                self._rows[self._kind].setdefault(one["id"], {})
                self._lines.setdefault((self._kind, one["id"]), number)
            else:
                self.run.reject(number, text, "the row is cut")
            return
        if row["id"].strip():
            self._id = row["id"].strip()
            self._rows[self._kind].setdefault(self._id, {})
            self._lines[self._kind, self._id] = number
        key, colon, value = row["info"].partition(":")
        if colon and self._id:
            self._rows[self._kind][self._id].setdefault(key.strip().lower(), value.strip())
            if key.strip().lower() in ("error", "return"):
                self.run.notice("device-error", f"{self._kind.upper()} {self._id}: {row['info'].strip()}", Weight.ERROR)

    def finish(self) -> Run:
        gpus = self._rows.get("gpu", {})
        for index, found in gpus.items():
            self._gpu(index, found)
        wanted = self._found.get("gpu")
        if wanted is None:
            self.run.missing("the number of GPUs found")
        elif len(gpus) < wanted:
            self.run.missing(f"{wanted - len(gpus)} of {wanted} GPUs")
        elif len(gpus) > wanted:
            self.run.notice("counts-disagree", f"{wanted} GPUs are said to be found, {len(gpus)} are listed")
        if not self._ruled:
            self.run.missing("the end of the table")
        self.run.condition("attached_gpus", float(wanted if wanted is not None else len(gpus)))
        if wanted == 0:
            self.run.notice("no-gpu", "DCGM sees no GPU", Weight.ERROR)
        return self.run.build()

    def _gpu(self, index: str, found: dict[str, str]) -> None:
        subject = [("gpu", index)]
        if _UUID.fullmatch(uuid := found.get("device uuid", "")) and names_a_device(uuid):
            subject.append(("uuid", uuid))
        if address := found.get("pci bus id", ""):
            try:
                subject.append(("pci", pci_address(address)))
            except ValueError:
                self.run.reject(self._lines["gpu", index], address, "no PCI address")
        if self._node:
            subject.append(("node", self._node))
        name = found.get("name", "")
        blank = blank_meaning(name) or ("" if name else "the row names no product")
        product: Value = NoValue(Lack.ABSENT, name, blank) if blank else name
        if not name:
            self.run.missing(f"the name of GPU {index}")
        elif isinstance(product, NoValue):
            self.run.notice(
                "no-name", f"DCGM names no product for GPU {index} ({name})", line=self._lines["gpu", index]
            )
        self.run.observe("gpu", product, tuple(subject), self._lines["gpu", index])


READER: Final = Reader("dcgm-discovery", "dcgmi discovery -l", recognise, read)
