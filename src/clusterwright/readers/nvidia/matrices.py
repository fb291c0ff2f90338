"""A square table of devices with one link in each cell, as `topo -m`, `npu-smi` and rocm-smi print it.

Cells of a link never hold white space, so a row is its name and then one word for each device of the header, whether
tabs or spaces part them. What follows (CPU and NUMA affinity) is read by the headings after the devices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from clusterwright.readers.cleaning import Line
from clusterwright.readers.refusing import Refused

DEVICE: Final = re.compile(
    r"(?:GPU|NIC|NPU|PPU)\d{1,4}|(?:mlx5|mlx4|bnxt_re|rdmap?|irdma|hfi1|efa|ib|roce)[\w-]{0,40}"
    r"|[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
)
#: Most devices of a matrix; a rack has 72 GPUs.
MOST: Final = 1024
_TAIL: Final = re.compile(r"(?P<name>CPU Affinity|NUMA Affinity|GPU NUMA ID|NUMA NODE|NUMA Node)")


@dataclass
class Matrix:
    """Links of a table.

    Args:
        devices: of the header, in order.
        tail: headings behind the devices.
        cells: (from, to) → (link, line).
        affinity: (device, heading) → (text, line).
        short: lines of a device with too few links.
    """

    line: int
    devices: list[str]
    tail: list[str]
    cells: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    affinity: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    rows: dict[str, None] = field(default_factory=dict)
    short: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = frozenset(self.devices)


def header_of(line: Line) -> Matrix | None:
    """The matrix that the line begins, None when it is no header of devices."""
    text = line.text.replace("\t", "  ")
    start = min(
        (text.find(word) for word in ("CPU Affinity", "NUMA Affinity", "NUMA NODE") if word in text), default=-1
    )
    devices = (text if start < 0 else text[:start]).split()
    if len(devices) > MOST:
        raise Refused(f"a matrix of more than {MOST} devices", line.number)
    if not devices or not all(DEVICE.fullmatch(word) for word in devices):
        return None
    if start < 0 and (len(devices) < 2 or len(set(devices)) < len(devices)):
        return None
    tail = [match["name"] for match in _TAIL.finditer(text[start:])] if start >= 0 else []
    return Matrix(line.number, devices, tail)


def add_row(matrix: Matrix, line: Line) -> bool:
    """Take a row of the matrix; False when the line is none."""
    words = line.text.split()
    if not words or words[0] not in matrix.known:
        return False
    links = words[1 : len(matrix.devices) + 1]
    if len(links) < len(matrix.devices) or words[0] in matrix.rows:
        matrix.short.append(line)
        return True
    matrix.rows[words[0]] = None
    for device, link in zip(matrix.devices, links, strict=True):
        matrix.cells[words[0], device] = (link, line.number)
    rest = words[len(matrix.devices) + 1 :]
    if len(rest) == len(matrix.tail):
        for heading, text in zip(matrix.tail, rest, strict=True):
            matrix.affinity[words[0], heading] = (text, line.number)
    return True


def absent_rows(matrix: Matrix) -> list[str]:
    """Devices of the header without a row."""
    return [device for device in matrix.devices if device not in matrix.rows]


def asymmetric(matrix: Matrix) -> list[tuple[str, str, str, str]]:
    """(a, b, link a→b, link b→a) of pairs whose two cells differ."""
    return [
        (a, b, link, back[0]) for (a, b), (link, _) in matrix.cells.items()
        if a < b and (back := matrix.cells.get((b, a))) is not None and back[0] != link
    ]  # fmt: skip
