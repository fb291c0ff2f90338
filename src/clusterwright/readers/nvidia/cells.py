"""Cells of nvidia-smi, rocm-smi and amd-smi → values, in the words these tools use for *nothing there*."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.pci import pci_address
from clusterwright.model.observations import Labels, Lack, NoValue, Value
from clusterwright.readers.values import lacking, read_amount, read_flag, read_number, unreadable

#: Spelling of a unit by these tools → ours. NVML counts PCIe traffic in KB of 1,000 bytes.
UNITS: Final = {
    "C": "°C", "c": "°C", "MB": "MB", "KB/s": "kB/s", "Mhz": "MHz", "us": "µs", "sec": "s", "KBytes": "kB",
    "GB/s": "GB/s", "Gb/s": "Gb/s", "seconds": "s", "mhz": "MHz", "w": "W",
}  # fmt: skip

#: Texts of nvmlErrorString and of nvidia-smi that mean: this device or driver has no such value.
_NOTHING: Final = frozenset(
    {
        "requested functionality has been deprecated", "not available in wddm driver model", "function not found",
        "not found", "no permission", "insufficient permissions", "driver not loaded", "unknown", "not supported",
        "n/a", "not available", "argument version mismatch", "operation not supported in mig mode", "unsupported",
    }
)  # fmt: skip
_BROKEN: Final = frozenset(
    {"unknown error", "gpu is lost", "gpu requires reset", "gpu is recovering from error", "uninitialized", "timeout",
     "err!", "reset required", "internal driver error", "in use by another client"}
)  # fmt: skip
_REMARK: Final = re.compile(r"(?<=\S) +\[(?:Deprecated|deprecated)[^\[\]]*\]$")

Read = Callable[[str], Value]


@dataclass(frozen=True, slots=True)
class Field:
    """What a tool's cell means.

    Args:
        name: of the observation.
        read: cell → value.
        labels: of the subject, beside the device.
    """

    name: str
    read: Read
    labels: Labels = ()


def bare(text: str) -> str:
    """The cell without white space, a remark on deprecation, and brackets around all of it."""
    word = _REMARK.sub("", text.strip())
    if word.startswith("[") and word.endswith("]"):
        word = word[1:-1].strip()
    return word


def nothing(text: str) -> NoValue | None:
    """What a cell without a value says, None when it may hold one."""
    word = bare(text)
    lower = word.lower()
    if lower in _NOTHING:
        return NoValue(Lack.ABSENT, word[:40])
    if lower in _BROKEN:
        return NoValue(Lack.UNREADABLE, word[:40], "the tool reports an error here")
    return lacking(word)


def as_text(text: str) -> Value:
    """A word or name as printed."""
    return nothing(text) or bare(text)[:200]


def as_word(text: str) -> Value:
    """A word among which `None` is an answer, such as a recovery action."""
    return "None" if bare(text).lower() == "none" else as_text(text)


def as_count(text: str) -> Value:
    """A plain number; the words `bank(s)` and `%` behind it are not part of it."""
    return nothing(text) or read_number(bare(text).removesuffix("bank(s)"))


def as_amount(text: str) -> Value:
    """A number with the unit that stands behind it."""
    word = bare(text)
    if re.fullmatch(r"[\d.]+Mhz|[\d.]+MHz", word):
        word = f"{word[:-3]} MHz"
    return nothing(text) or read_amount(word, UNITS)


def as_flag(text: str) -> Value:
    """Yes or no in the tool's words; `Not Active` is a plain no."""
    return nothing_but_inactive(text) or read_flag(
        bare(text), no=frozenset({"no", "false", "disabled", "0", "off", "not active", "inactive"})
    )


def nothing_but_inactive(text: str) -> NoValue | None:
    """Like `nothing`, for cells where `Not Active` is an answer."""
    return None if bare(text).lower() == "not active" else nothing(text)


def in_unit(unit: str) -> Read:
    """Reader of cells whose unit stands in the label: `1366`, also `1366 MiB`."""

    def read(text: str) -> Value:
        word = bare(text)
        if (lack := nothing(text)) is not None:
            return lack
        return read_amount(word if re.search(r"[^\d.eE+\-\s]", word) else f"{word} {unit}", UNITS)

    return read


def as_width(text: str) -> Value:
    """PCIe lanes: `16x`, `16`."""
    return nothing(text) or read_number(bare(text).removesuffix("x").removeprefix("x"))


def as_pci(text: str) -> Value:
    """A PCI address in one form."""
    if (lack := nothing(text)) is not None:
        return lack
    try:
        return pci_address(bare(text))
    except ValueError:
        return unreadable(text, "not a PCI address")


def as_absent(why: str) -> NoValue:
    """A value that the output does not print."""
    return NoValue(Lack.ABSENT, "", why)
