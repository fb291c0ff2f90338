"""Cells → values: a number with its unit, absent, or unreadable. Nothing that is no number becomes one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from clusterwright.lib.quantities import Quantity, UnitError, parse_unit
from clusterwright.model.observations import Lack, NoValue

#: How tools say that they have no value.
ABSENT_WORDS: Final = frozenset(
    {
        "", "n/a", "na", "[n/a]", "(n/a)", "n.a.", "not available", "[not available]", "not supported",
        "[not supported]", "not applicable", "unsupported", "(null)", "null", "none", "nil", "-", "--", "---", "—",
        "unknown", "not specified", "not set", "not active", "insufficient permissions", "[insufficient permissions]",
    }
)  # fmt: skip
_BROKEN_WORDS: Final = frozenset(
    {"[unknown error]", "unknown error", "err!", "err", "error", "[gpu is lost]", "[gpu requires reset]"}
)
#: What people write over a UUID, and the UUID of devices that have none.
_NO_UUID: Final = re.compile(
    r"(?:GPU-|MIG-)?(?:[xX*.#?_<>-]{1,80}|[0-]{4,80}|<?(?:redacted|removed|hidden|uuid)>?)?", re.IGNORECASE
)
_PLACEHOLDER: Final = re.compile(r"[xX]+(?:[.,][xX]+)?%?|<[^>]*>|\$?\{\{?.*\}?\}|\.{2,}|…|TBD|\?+")
#: How placeholders begin; no word without a value begins with a digit.
_PLACEHOLDING: Final = frozenset("xX<${.…T?")
_DIGITS: Final = frozenset("0123456789")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_GROUPED: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def lacking(text: str) -> NoValue | None:
    """What a cell without a value says, None when it may hold one."""
    word = text.strip()
    if word[:1] in _DIGITS:
        return None
    lower = word.lower()
    if lower in ABSENT_WORDS:
        return NoValue(Lack.ABSENT, word)
    if lower in _BROKEN_WORDS:
        return NoValue(Lack.UNREADABLE, word, "the tool reports an error here")
    if word[0] in _PLACEHOLDING and _PLACEHOLDER.fullmatch(word):
        return NoValue(Lack.UNREADABLE, word[:40], "a placeholder, not a value")
    return None


def unreadable(text: str, why: str) -> NoValue:
    """An unreadable value with the text that stands there."""
    return NoValue(Lack.UNREADABLE, text.strip()[:40], why)


def names_a_device(uuid: str) -> bool:
    """Whether a UUID tells its device from others; one that was blotted out (`GPU-XXXX`) does not."""
    return _NO_UUID.fullmatch(uuid) is None


def read_number(text: str, *, sentinels: frozenset[float] = frozenset(), grouped: bool = False) -> float | NoValue:
    """A plain finite number.

    Args:
        sentinels: numbers by which the tool means that it has none (such as 2**63 - 16 of DCGM).
        grouped: whether the tool writes thousands separators (`10,944.03`).
    """
    word = text.strip()
    found = _NUMBER.fullmatch(word)
    if found is None:
        if (lack := lacking(word)) is not None:
            return lack
        if grouped and _GROUPED.fullmatch(word):
            word = word.replace(",", "")
            found = _NUMBER.fullmatch(word)
    if found is None or len(word) > 64:
        return unreadable(text, "not a number")
    number = float(word)
    if not math.isfinite(number):
        return unreadable(text, "not a finite number")
    if number in sentinels:
        return NoValue(Lack.ABSENT, word, "the tool's mark for no value")
    return number


def read_quantity(
    text: str, unit: str, *, sentinels: frozenset[float] = frozenset(), grouped: bool = False
) -> Quantity | NoValue:
    """A number whose unit is known from its label or the tool's version."""
    number = read_number(text, sentinels=sentinels, grouped=grouped)
    return number if isinstance(number, NoValue) else quantity(number, unit)


def read_amount(text: str, units: Mapping[str, str] | None = None) -> Quantity | NoValue:
    """A number with its unit in the cell, such as `2566 MiB` or `432.21 W`.

    Args:
        units: the tool's spelling of a unit → ours, such as {"C": "°C"}; others are read as written.
    """
    if (lack := lacking(text)) is not None:
        return lack
    word = text.strip()
    match = _NUMBER.match(word)
    if match is None or len(word) > 80:
        return unreadable(text, "not a number with a unit")
    spelled = word[match.end() :].strip()
    unit = (units or {}).get(spelled, spelled)
    if not unit:
        return unreadable(text, "a number without a unit")
    try:
        parse_unit(unit)
    except UnitError as error:
        return unreadable(text, str(error))
    number = float(match.group())
    return quantity(number, unit) if math.isfinite(number) else unreadable(text, "not a finite number")


def quantity(number: float, unit: str) -> Quantity:
    """A quantity of `unit`, written with the number as given."""
    scale, powers = parse_unit(unit)
    return Quantity(number * scale, powers, spell(number, unit))


def spell(number: float, unit: str) -> str:
    """A number with its unit as text, 12 digits at most."""
    return f"{number:.12g}%" if unit == "%" else f"{number:.12g} {unit}"


def read_flag(
    text: str,
    *,
    yes: frozenset[str] = frozenset({"yes", "true", "enabled", "1", "on", "active"}),
    no: frozenset[str] = frozenset({"no", "false", "disabled", "0", "off"}),
) -> bool | NoValue:
    """A flag in the tool's words; anything else is absent or unreadable."""
    word = text.strip().lower()
    if word in yes:
        return True
    if word in no:
        return False
    return lacking(text) or unreadable(text, "neither yes nor no")
