"""Whether a reading was taken under the conditions that a requirement names."""

from __future__ import annotations

import math
from typing import Final

from clusterwright.judging.comparing import digest_part
from clusterwright.lib.quantities import UnitError, parse_kind
from clusterwright.model.acceptance import Requirement
from clusterwright.model.evidence import Reading

#: Names of one data type in different tools. Source: nccl-tests `-d`, PyTorch and NumPy dtype names.
_DATA_TYPES: Final = {
    "float32": "float", "fp32": "float", "single": "float",
    "float16": "half", "fp16": "half",
    "bf16": "bfloat16",
    "float64": "double", "fp64": "double",
}  # fmt: skip
_TRUE: Final = {"true": True, "yes": True, "1": True, "in": True, "false": False, "no": False, "0": False, "out": False}


def why_other_conditions(requirement: Requirement, reading: Reading, *, named: bool) -> str:
    """Why the reading is not about the conditions of the claim, or "".

    Args:
        named: the evidence says itself that it speaks about this requirement; only then may a reading leave the
            workload unsaid. Every other condition must be printed beside the value.
    """
    seen = dict(reading.conditions)
    workload = requirement.scope.workload
    if workload is not None and (not named or "workload" in seen) and seen.get("workload") != workload:
        found = seen.get("workload")
        return f"other conditions: of {found}, required {workload}" if found else f"workload unknown, want {workload}"
    wanted = requirement.conditions
    for name in type(wanted).model_fields:
        value = getattr(wanted, name)
        if value is None:
            continue
        label = name.replace("_", " ")
        if name not in seen:
            return f"{label} unknown: required {value}, the reading does not say"
        if not _equal(name, value, seen[name]):
            return f"other conditions: {label} {seen[name]}, required {value}"
    return ""


def _equal(name: str, wanted: object, text: str) -> bool:
    """Whether a printed condition is the wanted one; a longer duration than asked for counts."""
    text = text.strip()
    if name == "message_size":
        size = magnitude(text, "bytes")
        return size is not None and math.isclose(size, getattr(wanted, "value", math.nan), rel_tol=1e-9)
    if name == "duration":
        time = magnitude(text, "duration")
        return time is not None and time >= getattr(wanted, "value", math.inf)
    if name == "concurrency":
        return text.isdecimal() and int(text) == wanted
    if name == "in_place":
        return _TRUE.get(text.lower()) is wanted
    if name == "transport":  # `RC over RoCE` answers for the connection and for the network below it
        return _plain(str(wanted)) in _plain(text).split(" over ") or _plain(str(wanted)) == _plain(text)
    if name == "image":
        return digest_part(text) == digest_part(str(wanted))
    if name == "data_type":
        return data_type_name(text) == data_type_name(str(wanted))
    return _plain(text) == _plain(str(wanted))


def magnitude(text: str, kind: str) -> float | None:
    """A printed quantity in base units, None when it is none of that kind."""
    try:
        return parse_kind(text, kind).value
    except UnitError:
        return None


def data_type_name(text: str) -> str:
    """The name by which nccl-tests knows an element type."""
    name = text.strip().lower()
    return _DATA_TYPES.get(name, name)


def _plain(text: str) -> str:
    return text.strip().lower().replace("_", "-")
