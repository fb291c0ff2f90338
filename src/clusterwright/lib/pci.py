"""The address of a PCI device in one form: domain of at least four hex digits, bus, device and function, lower case.

nvidia-smi prints an eight digit domain (`00000000:1B:00.0`), the kernel four (`0000:1b:00`), NCCL bus and device
alone (`1b:00`) or its busId as one number; all of them name the same device.
"""

from __future__ import annotations

import re
from typing import Final

_ADDRESS: Final = re.compile(
    r"(?:(?P<domain>[0-9a-fA-F]{4,8}):)?(?P<bus>[0-9a-fA-F]{2}):(?P<device>[0-9a-fA-F]{2})(?:\.(?P<function>[0-7]))?"
)


def pci_address(text: str) -> str:
    """`0000:1b:00.0` for any spelling of the address; ValueError when the text is none.

    A missing domain is 0 and a missing function is 0, as the kernel and NCCL leave them out.
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text[:40]}' is not a PCI address such as 0000:1b:00.0")
    domain = int(match["domain"] or "0", 16)
    return f"{domain:04x}:{match['bus'].lower()}:{match['device'].lower()}.{match['function'] or '0'}"
