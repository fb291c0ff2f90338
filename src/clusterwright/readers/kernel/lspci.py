"""`lspci`: devices on PCIe; a device with revision ff answers nothing but ones, it is off the bus.

Source: pciutils; a read from a device that is gone returns all ones. Functions of one slot are one device.
Observations: `gpu` (name; subject pci), `nvswitch`, `adapter`, `lost_device` (subject pci), `pcie_link_width`,
`pcie_link_speed` where -vv prints them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.lib.pci import pci_address
from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import read_amount

_DEVICE: Final = re.compile(
    r"(?P<pci>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[A-Z0-9][^:\n]{2,60}?)"
    r"(?: \[[0-9a-f]{4}\])?: (?P<name>.*)$"
)
_REVISION: Final = re.compile(r"\(rev (?P<revision>[0-9a-f]{2})\)(?: \(prog-if [^)]{1,60}\))?$")
_STATUS: Final = re.compile(r"\s+LnkSta:\s+Speed (?P<speed>[\d.]+GT/s|unknown)[^,]{0,20}, Width x(?P<width>\d{1,2})")
_GPU_KINDS: Final = ("VGA compatible controller", "3D controller", "Display controller", "Processing accelerators")


def recognise(head: Head) -> int:
    """How sure this is a list by lspci."""
    found = re.findall(
        r"^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:VGA|3D|Audio|Infiniband|Ethernet|PCI|Bridge|Host|"
        r"Non-V|USB|Serial|Network|Processing|System|Display|SATA|ISA|SMBus)[^:\n]{0,50}: ",
        head.text,
        re.MULTILINE,
    )
    return min(90, 70 + 5 * len(found)) if found else 0


def read(source: Source) -> Sequence[Run]:
    """The devices of the list; one GPU per slot, whatever functions it has."""
    run = RunBuilder("lspci")
    listed = _List(run)
    for line in source.lines():
        listed.line(line.number, line.text, line.prefix)
    if not listed.devices:
        raise Refused("holds no device")
    listed.finish()
    return [run.build()]


class _List:
    def __init__(self, run: RunBuilder) -> None:
        self.run = run
        self.devices = 0
        self._gpus: dict[str, str] = {}
        self._gone: dict[str, int] = {}
        self._at = ""

    def line(self, number: int, text: str, prefix: str) -> None:
        match = _DEVICE.match(text)
        if match is None:
            if self._at and (status := _STATUS.match(text)):
                subject = (("pci", self._at),)
                self.run.observe("pcie_link_width", float(status["width"]), subject, number)
                self.run.observe("pcie_link_speed", read_amount(status["speed"]), subject, number)
            elif re.match(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", text):
                self.run.reject(number, text, "the line is cut")
            return
        self.devices += 1
        self._at = pci_address(match["pci"])
        slot = self._at[:-1] + "0"
        name, kind = match["name"], match["kind"]
        node = (("node", prefix),) if prefix else ()
        revision = _REVISION.search(name.rstrip())
        if revision is None and name.count("[") > name.count("]"):
            self.run.reject(number, text, "the line is cut")
            return
        if revision is not None and revision["revision"] == "ff" and len(self._gone) < 4096:
            self._gone.setdefault(slot, number)
        product = re.sub(r" \(rev [0-9a-f]{2}\).*$", "", name)
        if kind.startswith(_GPU_KINDS) and re.match(
            r"NVIDIA|Advanced Micro Devices|Intel Corporation Data Center", name
        ):
            if slot not in self._gpus and len(self._gpus) < 4096:
                self._gpus[slot] = product
                self.run.observe("gpu", product, (("pci", slot), *node), number)
        elif "NVSwitch" in name:
            self.run.observe("nvswitch", product, (("pci", self._at), *node), number)
        elif kind.startswith(("Infiniband", "Ethernet", "Network")):
            self.run.observe("adapter", product, (("pci", self._at), *node), number)

    def finish(self) -> None:
        run = self.run
        run.condition("attached_gpus", float(len(self._gpus)))
        for slot, number in self._gone.items():
            what = "GPU" if slot in self._gpus else "device"
            run.observe("lost_device", "revision ff", (("pci", slot),), number)
            run.notice(
                "gpu-lost" if what == "GPU" else "device-lost",
                f"the {what} {slot} is listed but answers only ones (revision ff): it is off the bus",
                Weight.ERROR,
                number,
            )


READER: Final = Reader("lspci", "lspci: devices on PCIe", recognise, read)
