"""Kubernetes quantities, exactly: `263412492Ki`, `95690m`, `1e3`, `0.5`, `1E` (exa) → values with a unit.

Source: k8s.io/apimachinery/pkg/api/resource, quantity.go (grammar of suffixes); resources that are bytes by
k8s.io/api/core/v1 ResourceName.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Value
from clusterwright.readers.values import lacking, unreadable

_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<power>[+-]?\d{1,2}))?"
)
_SCALES: Final[dict[str, Fraction]] = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15),
    "E": Fraction(10**18), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
_LARGEST_POWER: Final = 30
_BYTES: Final = re.compile(r"(?:requests\.|limits\.)?(?:memory|storage|ephemeral-storage|hugepages-\w+)")
#: Resources that count accelerators; those that count their memory, cores or a bookkeeping number are left out.
_DEVICE_CLASS: Final = re.compile(r"(?:gpu|mig|vgpu|tpu|npu)\.[\w.-]{1,200}$")
_ACCELERATOR: Final = re.compile(
    r"(?:^|[/.\-_])(?:[a-z]{0,8}gpus?|mig-[\w.]+|gaudi\d?|tpu|neuron\w*|ascend\w*|npu|dcu\w*|mlu\w*|i915|xe|gcu|rngd)"
    r"(?:$|[.\-_](?!.*(?:mem|core|count|cores|memory)))"
)
_NIC: Final = re.compile(r"rdma|/efa|mlnx|sriov|hostdev|roce|/hca|/ib\b|infiniband|nics?$")
#: From this many devices on a quota stands for "no limit"; no cluster has as many.
_NO_LIMIT: Final = 100_000
_NINES: Final = re.compile(r"9{3,}(?:[KMGTPE]i?)?")


def read_exact(raw: object) -> Fraction | None:
    """The exact number of a quantity as JSON or YAML holds it, None when it is none."""
    if isinstance(raw, bool) or raw is None:
        return None
    match = _QUANTITY.fullmatch(str(raw).strip()) if isinstance(raw, str | int | float) else None
    if match is None:
        return None
    number = Fraction(match["number"])
    if match["power"] is None:
        return number * _SCALES[match["suffix"] or ""]
    power = int(match["power"])
    return number * Fraction(10) ** power if abs(power) <= _LARGEST_POWER else None


def read_resource(resource: str, raw: object) -> Value:
    """The amount of a resource: bytes for memory and storage, a plain count (cores, devices) otherwise."""
    if raw is None:
        return NoValue(Lack.ABSENT)
    number = read_exact(raw)
    if number is None:
        return lacking(str(raw)) or unreadable(str(raw), "not a Kubernetes quantity")
    if number < 0:
        return unreadable(str(raw), "a negative amount")
    if is_bytes(resource):
        match = _QUANTITY.fullmatch(str(raw).strip())
        suffix = (match["suffix"] or "") if match is not None else ""
        if match is not None and suffix not in ("n", "u", "m"):
            power = f"e{match['power']}" if match["power"] else ""
            return Quantity(float(number), (("B", 1),), f"{match['number']}{power} {suffix}B")
    return to_value(resource, number)


def to_value(resource: str, number: Fraction) -> Value:
    """An exact amount as a value, bytes for memory and storage."""
    if is_bytes(resource):
        return Quantity(float(number), (("B", 1),), spell(resource, number))
    return float(number)


def is_bytes(resource: str) -> bool:
    """Whether the resource is counted in bytes."""
    return _BYTES.fullmatch(resource) is not None


def is_accelerator(resource: str) -> bool:
    """Whether the resource counts GPUs or other accelerators, whole or shared."""
    name = resource.removeprefix("requests.").lower()
    if "/" not in name:  # the device class of a DRA driver, as Kueue counts them: gpu.example.com
        return _DEVICE_CLASS.match(name) is not None
    return _ACCELERATOR.search(name) is not None


def is_nic(resource: str) -> bool:
    """Whether the resource counts network devices."""
    return "/" in resource and not is_accelerator(resource) and _NIC.search(resource.lower()) is not None


def is_no_limit(resource: str, raw: object) -> bool:
    """Whether an amount stands for "no limit" (9999, 99999, a million GPUs) and is no capacity."""
    text = str(raw).strip()
    if _NINES.fullmatch(text):
        return True
    number = read_exact(raw)
    return number is not None and not is_bytes(resource) and number >= _NO_LIMIT


def spell(resource: str, number: Fraction) -> str:
    """An exact amount for people: `350 GiB`, `0.5`, `8`."""
    if not is_bytes(resource):
        return f"{float(number):.10g}"
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        scaled = number / _SCALES[suffix]
        if scaled >= 1 and scaled.denominator == 1:
            return f"{scaled.numerator} {suffix}B"
    return f"{float(number):.17g} B"
