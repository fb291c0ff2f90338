"""Scalars: what a plain word in the file means, without losing how it was written.

Source: YAML 1.2.2, section 10.3.2 (core schema). `yes`, `off` and dates are text there, unlike in YAML 1.1.
"""

from __future__ import annotations

import re
from typing import Final

#: Python reads at most 4,300 digits at once; no number of an architecture needs more than these.
_MAX_DIGITS: Final = 300

_WORDS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class RawInt(int):
    """A whole number that keeps its text in `raw`: `007` is 7 and still `007`."""

    raw: str


class RawFloat(float):
    """A number that keeps its text in `raw`: `1.30` is 1.3 and still `1.30`."""

    raw: str


Value = str | RawInt | RawFloat | bool | None


def resolve_scalar(text: str) -> Value:
    """The value of a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > _MAX_DIGITS:
        return text
    for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            whole = RawInt(text.replace("0o", "") if base == 8 else text, base)
            whole.raw = text
            return whole
    if _FLOAT.fullmatch(text) or _SPECIAL.fullmatch(text):
        number = RawFloat(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        number.raw = text
        return number
    return text
