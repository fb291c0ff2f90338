"""Facts of a config.json as catalogue files keep them, all text, → values.

Source: the core schema of YAML 1.2 (section 10.3.2): null, booleans, whole numbers and decimals; all else is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_WORDS: Final[Mapping[str, bool | None]] = {"null": None, "~": None, "": None, "true": True, "false": False}
_WHOLE: Final = re.compile(r"[-+]?[0-9]+")
_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def typed(value: Any) -> Any:
    """Text, lists and mappings of text with every scalar as the value that it writes."""
    if isinstance(value, Mapping):
        return {str(key): typed(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [typed(inner) for inner in value]
    if not isinstance(value, str):
        return value
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if _WHOLE.fullmatch(value):
        return int(value)
    return float(value) if _DECIMAL.fullmatch(value) else value
