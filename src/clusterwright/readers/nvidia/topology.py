"""`nvidia-smi topo -m` (and -p2p): which devices are joined by what, and which NICs are near a GPU.

The same matrix of `npu-smi info -t topo` is read under its own name: its devices are NPUs, never GPUs.
Only devices that the process may see are printed; EFA and other NICs without verbs are never printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.nvidia.cells import as_absent, as_text
from clusterwright.readers.nvidia.devices import is_command, is_elision, labels, runs_of_hosts
from clusterwright.readers.nvidia.failures import note_failure, refuse_failure
from clusterwright.readers.nvidia.matrices import Matrix, absent_rows, add_row, asymmetric, header_of
from clusterwright.readers.nvidia.nvlink_findings import say_links
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import unreadable

_LINK: Final = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|PSB|SOC|NV\d{1,3}|C2C|HCCS|HCCS_SW|SIO|NA|N/A")
_P2P: Final = re.compile(r"X|OK|CNS|GNS|TNS|NS|DR|U")
_NIC: Final = re.compile(r"\s*(?P<nic>NIC\d+)\s*:\s*(?P<device>\S+)\s*")
#: From as many rows on, their absence is said once.
_SOME: Final = 5
_PATHS_ONLY: Final = re.compile(r"\btopo\b.{0,40}\s-m?p\b")
_NEAR: Final = ("PIX", "PXB", "PHB")
_HEAD: Final = re.compile(r"^[ \t]*+(?:GPU|NPU)\d++[ \t].*(?:CPU Affinity|NUMA Affinity)", re.MULTILINE)
_ROW: Final = re.compile(
    r"^[ \t]*(?:GPU|NPU)\d+[ \t]+(?:X|NV\d+|SYS|NODE|PHB|PXB|PIX|HCCS|OK|CNS|GNS|TNS|NS)\b", re.MULTILINE
)


def recognise(head: Head) -> int:
    """By a header of devices with the affinity columns, or by rows of links under GPU names."""
    if "ROCm System Management" in head.text:
        return 0
    if any(len(line) < 20_000 and _HEAD.match(line) for line in head.text.split("\n")[:400]):
        return 97
    return 80 if len(_ROW.findall(head.text)) > 1 or ("Legend:" in head.text and _ROW.search(head.text)) else 0


def read(source: Source) -> Sequence[Run]:
    """One run for each matrix of each host."""
    return runs_of_hosts(source, _read_host)


def _read_host(lines: list[Line], node: str) -> list[Run]:
    found: list[_Topology] = []
    paths = False
    for line in lines:
        if is_command(line.text):
            paths = _PATHS_ONLY.search(line.text[:400]) is not None
        matrix = header_of(line)
        if matrix is not None and not (found and _goes_on(found[-1].matrix, line)):
            found.append(_Topology(matrix, node, paths_only=paths))
        elif found:
            found[-1].take(line)
    if not found:
        refuse_failure(lines)
        raise Refused("no header with the devices of the matrix", lines[0].number if lines else 0)
    return [topology.build() for topology in found]


def _goes_on(matrix: Matrix, line: Line) -> bool:
    """Whether a line of device names is a row of a matrix that is not complete yet, rather than the next header."""
    return line.text.split()[0] in matrix.rows and bool(absent_rows(matrix))


class _Topology:
    """One matrix with its legend."""

    def __init__(self, matrix: Matrix, node: str, *, paths_only: bool) -> None:
        self.matrix = matrix
        self._paths_only = paths_only
        self._node = node
        self._kind = "NPU" if matrix.devices[0].startswith("NPU") else "GPU"
        self._builder = RunBuilder("npu-smi info -t topo" if self._kind == "NPU" else "nvidia-smi topo -m")
        self._nics: dict[str, str] = {}
        if node:
            self._builder.condition("node", node)

    def take(self, line: Line) -> None:
        """A row, a line of the legend, or something else."""
        if add_row(self.matrix, line) or not line.text.strip() or is_command(line.text):
            return
        if (nic := _NIC.fullmatch(line.text)) is not None:
            self._nics[nic["nic"]] = nic["device"]
            self._builder.observe("nic", nic["device"], labels(node=self._node, nic=nic["nic"]), line.number)
        elif is_elision(line.text):
            self._builder.missing("rows left out at an ellipsis")
        elif not note_failure(self._builder, line, self._node) and " = " not in line.text and "Legend" not in line.text:
            words = line.text.split()
            if len(words) > 2 and _LINK.fullmatch(words[1]):
                self._builder.reject(line.number, line.text, "a row of a device that the header does not name")

    def build(self) -> Run:
        """The run, with what the matrix as a whole says."""
        builder, matrix = self._builder, self.matrix
        why = f"not one link for each of {len(matrix.devices)} devices, or a second row"
        for line in matrix.short:
            builder.reject(line.number, line.text, why)
        absent = absent_rows(matrix)
        for device in absent if len(absent) < _SOME else ():
            builder.missing(f"row of {device}")
        if len(absent) >= _SOME:
            builder.missing(f"rows of {len(absent)} devices, {absent[0]} to {absent[-1]}")
        own = [device for device in matrix.devices if device.startswith(self._kind)]
        nics = [device for device in matrix.devices if device not in own]
        builder.observe(f"{self._kind.lower()}s_visible", float(len(own)), labels(node=self._node), matrix.line)
        for device in own if self._kind == "GPU" else ():
            nameless = as_absent("the matrix prints no product names")
            builder.observe("gpu", nameless, labels(node=self._node, gpu=device[3:]), matrix.line)
        peer = all(_P2P.fullmatch(link) for link, _ in matrix.cells.values()) and len(matrix.cells) > 1
        self._observe_links("p2p" if peer else "link", _P2P if peer else _LINK)
        for (device, heading), (text, number) in matrix.affinity.items():
            name = {"CPU Affinity": "cpu_affinity", "GPU NUMA ID": "gpu_numa_id"}.get(heading, "numa_affinity")
            builder.observe(name, as_text(text), labels(node=self._node, **{self._kind.lower(): device[3:]}), number)
        for a, b, there, back in asymmetric(matrix):
            said = f"{a} to {b} is {there}, but {b} to {a} is {back}"
            builder.notice("topology-asymmetric", said, Weight.ERROR, matrix.line)
        if self._kind == "NPU":
            builder.notice(
                "other-vendor", f"{len(own)} NPUs of npu-smi; there is no NVIDIA GPU in this output", Weight.INFO
            )
        elif peer:
            self._say_peers()
        else:
            links = {pair: link for pair, (link, _) in matrix.cells.items()}
            mirrored = {(b, a): link for (a, b), link in links.items() if b in absent}
            say_links(builder, {**mirrored, **links}, own, paths_only=self._paths_only)
            self._say_nics(own, nics, whole=not any(gpu in absent for gpu in own))
        return builder.build()

    def _say_peers(self) -> None:
        pairs = {tuple(sorted(pair)): link for pair, (link, _) in self.matrix.cells.items() if pair[0] != pair[1]}
        without = [link for link in pairs.values() if link not in ("OK", "X")]
        if without:
            said = (
                f"{len(without)} of {len(pairs)} pairs of GPUs have no peer access ({', '.join(sorted(set(without)))})"
            )
            self._builder.notice("no-peer-access", said, Weight.WARNING, self.matrix.line)

    def _observe_links(self, name: str, form: re.Pattern[str]) -> None:
        for (a, b), (link, line) in self.matrix.cells.items():
            if a == b:
                continue
            value = link if form.fullmatch(link) else unreadable(link, "no link type that is known")
            self._builder.observe(name, value, labels(node=self._node, **{"from": a, "to": b}), line)

    def _say_nics(self, gpus: list[str], nics: list[str], *, whole: bool) -> None:
        """How many NICs could carry GPU traffic: those behind the same PCIe host bridge as a GPU."""
        builder, cells = self._builder, self.matrix.cells
        if not nics:
            builder.notice("nics-not-shown", "no NIC is printed; EFA and other NICs without verbs never are, "
                           "so this says nothing about the fabric", Weight.INFO)  # fmt: skip
            return
        where = labels(node=self._node)
        near = [nic for nic in nics if any(cells.get((gpu, nic), ("", 0))[0] in _NEAR for gpu in gpus)]
        builder.observe("nics_visible", float(len(nics)), where, self.matrix.line)
        builder.observe("nics_near_gpus", float(len(near)), where, self.matrix.line)
        for gpu in gpus:
            links = [(nic, cells.get((gpu, nic), ("", 0))[0]) for nic in nics]
            best = next((kind for kind in (*_NEAR, "NODE") if any(link == kind for _, link in links)), "")
            nearest = " ".join(nic for nic, link in links if link == best and best)
            if nearest:
                subject = labels(node=self._node, gpu=gpu[3:], link=best)
                builder.observe("nearest_nics", nearest, subject, self.matrix.line)
        far = [nic for nic in nics if nic not in near]
        if near and far and whole:
            said = f"{len(near)} of {len(nics)} NICs share a PCIe host bridge with a GPU; the others are no GPU fabric"
            builder.notice("nics-far-from-gpus", said, Weight.INFO)
        together = [nic for nic in far if all(cells.get((nic, other), ("", 0))[0] in ("PIX", "X") for other in far)]
        if len(together) >= 4:
            said = (
                f"{together[0]} to {together[-1]}: {len(together)} NICs behind one bridge, probably functions of a card"
            )
            builder.notice("nics-of-one-card", said, Weight.INFO)
        if any(re.fullmatch(r"NIC\d+", nic) and nic not in self._nics for nic in nics):
            builder.missing("NIC legend: names of the devices")


READER: Final = Reader("nvidia-smi-topo", "nvidia-smi topo -m, -p2p; npu-smi info -t topo", recognise, read)
