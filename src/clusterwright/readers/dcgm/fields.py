"""What DCGM means by a value: its marks for "no value", and the units of the fields that it documents.

Source: dcgm_structs.h of DCGM 2 to 4 (DCGM_INT32_BLANK, DCGM_INT64_BLANK, DCGM_FP64_BLANK and the three values after
each: not found, not supported, not permitted); dcgm_fields.h for the units. A field that is not here has the unit that
its HELP line or column names, and none otherwise.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Value
from clusterwright.readers.values import lacking, quantity, unreadable

INT32_BLANK: Final = 0x7FFFFFF0
INT64_BLANK: Final = 0x7FFFFFFFFFFFFFF0
FP64_BLANK: Final = 140737488355328
_MARKS: Final = 16
_SHORTEST_MARK: Final = len(str(INT32_BLANK))
_MEANINGS: Final = {0: "DCGM has no value", 1: "DCGM found no such thing", 2: "not supported", 3: "no permission"}
_TEXT_BLANKS: Final = {
    "<<<NULL>>>": "DCGM has no value",
    "<<<NOT_FOUND>>>": "DCGM found no such thing",
    "<<<NOT_SUPPORTED>>>": "not supported",
    "<<<NOT_PERM>>>": "no permission",
}
#: No field comes near it; beyond it a conversion of units could overflow.
_LARGEST: Final = 1e30
_WHOLE: Final = re.compile(r"[+-]?\d{1,20}")
_DECIMAL: Final = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,4})?")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as DCGM or its exporter spells it.

    Args:
        name: our unit; "" for a share between 0 and 1.
        factor: what one of the spelled units is in ours.
    """

    name: str
    factor: float = 1.0


#: Spellings in HELP lines ("(in MHz)") and in the second line of a dmon table.
UNITS: Final[dict[str, Unit]] = {
    "MHz": Unit("MHz"), "C": Unit("°C"), "°C": Unit("°C"), "W": Unit("W"), "mW": Unit("W", 1e-3),
    "mJ": Unit("J", 1e-3), "J": Unit("J"), "%": Unit("%"), "MiB": Unit("MiB"), "GiB": Unit("GiB"),
    "bytes": Unit("B"), "B": Unit("B"), "bytes per second": Unit("B/s"), "B/s": Unit("B/s"), "MB/s": Unit("MB/s"),
    "us": Unit("µs"), "µs": Unit("µs"), "usec": Unit("µs"), "microseconds": Unit("µs"), "ns": Unit("ns"),
    "ms": Unit("ms"), "s": Unit("s"), "seconds": Unit("s"),
}  # fmt: skip
_SHARE: Final = Unit("")
_SHARES: Final = (
    "GR_ENGINE_ACTIVE", "SM_ACTIVE", "SM_OCCUPANCY", "PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE", "PIPE_FP64_ACTIVE",
    "PIPE_FP32_ACTIVE", "PIPE_FP16_ACTIVE", "PIPE_INT_ACTIVE", "PIPE_TENSOR_IMMA_ACTIVE", "PIPE_TENSOR_HMMA_ACTIVE",
    "PIPE_TENSOR_DFMA_ACTIVE",
)  # fmt: skip
_NAMED: Final = {
    "MHz": ("SM_CLOCK", "MEM_CLOCK", "VIDEO_CLOCK", "APP_SM_CLOCK", "APP_MEM_CLOCK", "MAX_SM_CLOCK", "MAX_MEM_CLOCK"),
    "C": ("GPU_TEMP", "MEMORY_TEMP", "SLOWDOWN_TEMP", "SHUTDOWN_TEMP", "GPU_MAX_OP_TEMP", "MEM_MAX_OP_TEMP"),
    "W": ("POWER_USAGE", "POWER_USAGE_INSTANT", "POWER_MGMT_LIMIT", "ENFORCED_POWER_LIMIT", "POWER_MGMT_LIMIT_DEF"),
    "mJ": ("TOTAL_ENERGY_CONSUMPTION",),
    "%": ("GPU_UTIL", "MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL"),
    "MiB": ("FB_TOTAL", "FB_FREE", "FB_USED", "FB_RESERVED"),
}
_COUNTS: Final = (
    "XID_ERRORS", "PCIE_REPLAY_COUNTER", "ECC_SBE_VOL_TOTAL", "ECC_DBE_VOL_TOTAL", "ECC_SBE_AGG_TOTAL",
    "ECC_DBE_AGG_TOTAL", "RETIRED_SBE", "RETIRED_DBE", "RETIRED_PENDING", "UNCORRECTABLE_REMAPPED_ROWS",
    "CORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_FAILURE", "ROW_REMAP_PENDING", "VGPU_LICENSE_STATUS",
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
)  # fmt: skip
#: Unit of a documented field; None for a plain number.
DOCUMENTED: Final[dict[str, Unit | None]] = {
    **{f"DCGM_FI_PROF_{name}": _SHARE for name in _SHARES},
    **{f"DCGM_FI_DEV_{name}": UNITS[unit] for unit, names in _NAMED.items() for name in names},
    **{f"DCGM_FI_DEV_{name}": None for name in _COUNTS},
    **{f"DCGM_FI_PROF_{bus}_{way}_BYTES": UNITS["B/s"] for bus in ("PCIE", "NVLINK") for way in ("TX", "RX")},
    "DCGM_FI_DEV_FB_USED_PERCENT": _SHARE,
}
#: Sensors that read exactly 0 where the product has none.
ZERO_MEANS_NONE: Final = frozenset({"DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_GPU_TEMP", "dcgm_memory_temp"})


def blank_meaning(text: str) -> str | None:
    """What a value means that stands for "no value", None for any other.

    A whole number in the 16 values from a blank upwards is one; so is a number with a fraction from the blank of
    floating point fields; one that was rounded to a float near 2**63 as well (9223372036854776000).
    """
    word = text.strip()
    if len(word) < _SHORTEST_MARK:
        return None
    if word in _TEXT_BLANKS:
        return _TEXT_BLANKS[word]
    if _WHOLE.fullmatch(word):
        number = int(word)
        for blank in (INT32_BLANK, INT64_BLANK):
            if blank <= number < blank + _MARKS:
                return _MEANINGS.get(number - blank, "DCGM has no value")
        return "DCGM has no value" if number >= INT64_BLANK else None
    if not _DECIMAL.fullmatch(word):
        return None
    near = float(word)
    if near >= 9.223372036854775e18 and math.isfinite(near):
        return "DCGM has no value"
    if FP64_BLANK <= near < FP64_BLANK + _MARKS:
        return _MEANINGS.get(int(near) - FP64_BLANK, "DCGM has no value")
    return None


def read_value(text: str, unit: Unit | None, *, zero_means_none: bool = False) -> Value:
    """A value of a DCGM field.

    Args:
        unit: of the field; None for a plain number.
        zero_means_none: whether 0 is what an unsupported sensor reads.
    """
    if (meaning := blank_meaning(text)) is not None:
        return NoValue(Lack.ABSENT, text.strip()[:40], meaning)
    if (lack := lacking(text)) is not None:
        return lack
    word = text.strip()
    if word.lower() in ("nan", "+nan", "-nan"):
        return NoValue(Lack.ABSENT, word, "not a number is how a missing sample is written")
    if not _DECIMAL.fullmatch(word):
        return unreadable(text, "not a number")
    number = float(word)
    if not abs(number) < _LARGEST:
        return unreadable(text, "larger than anything that is measured")
    if zero_means_none and number == 0:
        return NoValue(Lack.ABSENT, word, "0 is what a sensor reads that the product does not have")
    return in_unit(number, unit, word)


def in_unit(number: float, unit: Unit | None, written: str = "") -> Quantity | float:
    """A number of a field in its unit.

    Args:
        written: how a share stands there, if that is known.
    """
    if unit is None:
        return number
    if unit is _SHARE or unit.name == "":
        return Quantity(number, (), written or f"{number:.12g}")
    return quantity(number * unit.factor, unit.name)
