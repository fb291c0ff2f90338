"""What nvidia-smi prints in place of its output when the driver or a device is broken.

Source: texts of nvmlErrorString and of nvidia-smi, drivers 400 to 610.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.nvidia.devices import is_command, labels
from clusterwright.readers.refusing import Refused

_DEAD: Final = re.compile(
    r"\s*(?:NVIDIA-SMI has failed because .*|Failed to initialize NVML: .*|No devices were found\.?"
    r"|NVML library version: .*|(?:bash: |sh: )?.{0,40}nvidia-smi: command not found.*"
    r"|Failed to properly shut down NVML: .*)"
)
_LOST: Final = re.compile(
    r"\s*Unable to determine the device handle for (?:gpu|GPU) ?(?:(?P<index>\d{1,3}): ?)?"
    r"(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d)?:? ?(?P<why>.*)"
)
_WARN: Final = re.compile(r"\s*WARNING: (?P<what>infoROM is corrupted at gpu .*)", re.IGNORECASE)


def failure_score(text: str) -> int:
    """How sure it is that this is a failure of nvidia-smi: the first thing printed, or one line among others."""
    lines = [line[:400] for line in text.split("\n", 200)[:200] if line.strip() and not is_command(line)]
    failed = [n for n, line in enumerate(lines) if _DEAD.fullmatch(line) or _LOST.fullmatch(line)]
    return (88 if failed[0] == 0 else 45) if failed else 0


def note_failure(builder: RunBuilder, line: Line, node: str = "") -> bool:
    """Keep what the line says is broken; False when it says nothing of that kind."""
    text = line.text[:400]
    if (lost := _LOST.fullmatch(text)) is not None:
        subject = labels(gpu=lost["index"] or "", pci=lost["pci"] or "", node=node)
        builder.observe("lost_device", lost["why"].strip() or "no reason printed", subject, line.number)
        builder.notice("gpu-lost", text.strip(), Weight.ERROR, line.number)
        return True
    if (warned := _WARN.fullmatch(text)) is not None:
        builder.notice("inforom-corrupted", warned["what"].strip(), Weight.ERROR, line.number)
        return True
    if _DEAD.fullmatch(text):
        builder.notice("nvidia-smi-failed", text.strip(), Weight.ERROR, line.number)
        return True
    return False


def refuse_failure(lines: list[Line]) -> None:
    """Refuse an output in which nvidia-smi says that it could measure nothing."""
    for line in lines:
        if _DEAD.fullmatch(line.text[:400]):
            raise Refused("nvidia-smi measured nothing", line.number, line.text)
