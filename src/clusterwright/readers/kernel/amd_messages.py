"""Messages of the amdgpu driver about rings that hang, resets and errors of the hardware (RAS).

Source: drivers/gpu/drm/amd/amdgpu (amdgpu_job.c, amdgpu_device.c, amdgpu_ras.c) of Linux 5.4 to 6.15, which write with
and without a second `amdgpu:` and, for rings, with and without the device.
"""

from __future__ import annotations

import re
from typing import Final

_DEVICE: Final = re.compile(r"\bamdgpu (?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]): ")
_FORMS: Final = tuple(
    (re.compile(form), code)
    for form, code in (
        (r"\bring \S{1,24} timeout\b", "ring timeout"),
        (r"GPU reset begin", "GPU reset begun"),
        (r"GPU reset(?:\(\d{1,6}\))? succeeded", "GPU reset succeeded"),
        (r"GPU reset(?:\(\d{1,6}\))? (?:end with ret = -|failed)|GPU Recovery Failed", "GPU reset failed"),
        (r"VRAM is lost", "memory lost in a reset"),
        (r"Fatal error during GPU init", "initialisation failed"),
        (
            r"[1-9]\d{0,8} (?:new )?uncorrectable hardware errors? detected|ERREVENT_\w{1,40} detected",
            "uncorrected error",
        ),
        (r"[1-9]\d{0,8} (?:new )?correctable hardware errors? detected", "corrected error"),
        (r"[Bb]ad page[s ].{0,40}(?:exceed|threshold)|GPU .{0,24}\bRMA\b", "bad pages at their limit"),
    )
)


def amd_event(message: str) -> tuple[str, str] | None:
    """(what happened, PCI address as printed or "") of a message of amdgpu, None when it says nothing of the kind."""
    if "amdgpu" not in message:
        return None
    for form, code in _FORMS:
        if form.search(message):
            device = _DEVICE.search(message)
            return code, device["pci"] if device else ""
    return None
