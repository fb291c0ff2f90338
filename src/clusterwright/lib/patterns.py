"""Regular expressions for quantities, for editors: what `parse_kind` reads, in the spellings that people use.

They are as strict as the parser about unit and kind, and looser about size: a negative or an absurd number is the
parser's business. Only what ECMA-262 and Python understand alike is used.
Source: JSON Schema draft 2020-12, Validation, 6.3.3 (pattern is an ECMA-262 expression).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Final

from clusterwright.lib.quantities import CURRENCIES, KINDS, Powers, units_measuring

_NUMBER: Final = r"[+]?(?:(?:[0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PLAIN: Final = r"[0-9]+(?:\.[0-9]+)?"
_TIMES: Final = r"\s*[-·*]\s*"
_BELOW: Final = r"\s*[-·*/]\s*"
_TIME: Final[Powers] = (("s", 1),)


def pattern_of(*kinds: str) -> str:
    """One expression for quantities of any of `kinds` (keys of quantities.KINDS): a number and a unit of the kind."""
    forms = dict.fromkeys(form for kind in kinds for form in _forms(KINDS[kind][0]))
    return rf"^\s*(?:{'|'.join(forms)})\s*$"


def _forms(powers: Powers) -> Iterable[str]:
    """Whole quantities of these powers, `money` standing for any currency."""
    above = [symbol for symbol, power in powers if power > 0]
    below = tuple((symbol, 1) for symbol, power in powers if power < 0)
    under = rf"\s*/\s*{_any(_products(below, _BELOW))}" if below else ""
    if above == ["money"]:
        signs = "".join(CURRENCIES.values())
        yield rf"[{signs}]\s*{_NUMBER}{under}"
        yield rf"{_NUMBER}\s*{_any(_names(above[0]))}{under}"
        return
    units = [re.escape(unit) for unit in units_measuring(powers)]
    if len(above) > 1:  # GPU-h
        units += _products(tuple((symbol, 1) for symbol in above), _TIMES)
    units += [rf"{_any(_names(symbol))}{under}" for symbol in above if below]
    yield rf"{_NUMBER}\s*{_any(units)}"
    if powers == _TIME:  # 1 h 30 min
        yield rf"(?:{_PLAIN}\s*{_any(_names('s'))}\s*)" + "{2,}"


def _products(factors: tuple[tuple[str, int], ...], join: str) -> list[str]:
    """The factors in any order, and as one unit where there is one (kWh)."""
    found = [join.join(_any(_names(symbol)) for symbol, _ in order) for order in permutations(factors)]
    whole = [re.escape(unit) for unit in units_measuring(factors)] if len(factors) > 1 else []
    return found + whole


def _names(symbol: str) -> list[str]:
    codes = tuple(CURRENCIES) if symbol == "money" else (symbol,)
    return [re.escape(unit) for code in codes for unit in units_measuring(((code, 1),))]


def _any(choices: Sequence[str]) -> str:
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"
