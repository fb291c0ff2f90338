"""Logs of the kernel and of the NVSwitch fabric, lists of devices on PCIe, reports of such faults."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.kernel import fabric_manager, kernel_logs, lspci, reports
from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = (kernel_logs.READER, fabric_manager.READER, lspci.READER, reports.READER)
