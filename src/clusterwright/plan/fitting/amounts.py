"""Amounts as people write them → numbers, within the range that makes sense; beyond it a unit was mistaken.

Ranges are ours: wider than any cluster, request or budget that was ever published, and narrow enough that nothing which
is computed from their ends loses its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clusterwright.catalogue.catalogues import fold
from clusterwright.lib.quantities import CURRENCIES, HOUR_S, YEAR_S, Quantity, UnitError, parse_kind, parse_unit
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.plan.fitting.prices import Hours
from clusterwright.plan.fitting.wants import Money

_SCALES: Final = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_SIGNS: Final = "".join(CURRENCIES.values())
_CODES: Final = {sign: code for code, sign in CURRENCIES.items()}
_NUMBER: Final = r"[0-9]{1,3}(?:[,_][0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+"
_AMOUNT: Final = re.compile(rf"([-+]?)([{_SIGNS}]?)\s*((?:{_NUMBER})(?:[eE][-+]?[0-9]+)?)\s*([kKMBGT]?)(.*)", re.DOTALL)
#: Periods of a budget → how many of them a month has; None for money that is spent once.
_PERIODS: Final = {
    "": None, "month": 1.0, "mo": 1.0, "year": 1 / 12, "yr": 1 / 12, "day": HOURS_PER_MONTH / 24, "h": HOURS_PER_MONTH,
}  # fmt: skip


class Wrong(ValueError):
    """What is wrong with one option."""


@dataclass(frozen=True)
class Range:
    """Values that make sense, both ends included; `words` says so to people."""

    low: float
    high: float
    words: str

    def checked(self, value: float, text: str) -> float:
        """The value.

        Raises:
            Wrong: it lies outside, with what was written and what may be.
        """
        if self.low <= value <= self.high:
            return value
        raise Wrong(f"'{shown(text)}' is out of range: {self.words}")


RATES: Final = Range(1e-6, 1e7, "from 0.000001 to 10,000,000 req/s")
IN_FLIGHT: Final = Range(1, 1e9, "from 1 to 1,000,000,000 requests")
LENGTHS: Final = Range(1, 1e8, "from 1 to 100,000,000 tokens")
TRAINED: Final = Range(1, 1e16, "from 1 to 10,000T tokens")
TARGETS: Final = Range(1e-6, 24 * HOUR_S, "from 1 us to 1 day")
DEADLINES: Final = Range(60.0, 100 * YEAR_S, "from 1 min to 100 years")
LOSSES: Final = Range(0, 10_000, "from 0 to 10,000 nodes")
GPUS: Final = Range(1, 1e7, "from 1 to 10,000,000")
BATCHES: Final = Range(1, 1e7, "from 1 to 10,000,000 sequences")
RANKS: Final = Range(1, 1024, "from 1 to 1,024")
FAILURES: Final = Range(0, 1000, "from 0 to 1,000 per 1,000 node-days")
RESTARTS: Final = Range(1.0, 24 * HOUR_S, "from 1 s to 1 day")
REPAIRS: Final = Range(60.0, YEAR_S, "from 1 min to 1 year")
STORES: Final = Range(1e6, 1e15, "from 1 MB/s to 1,000 TB/s")
POWERS: Final = Range(1.0, 1e11, "from 1 W to 100 GW")
PUES: Final = Range(1.0, 5.0, "from 1 to 5, for example 1.25")
BUDGETS: Final = Range(0.01, 1e12, "from 0.01 to 1,000,000M, a month or once")
PRICES: Final = Range(1e-3, 1e4, "from 0.001 to 10,000 per GPU-hour")
LINKS: Final = Range(1e8, 1e14, "from 0.1 Gb/s to 100 Tb/s")
SHARES: Final = Range(1e-3, 1.0, "no share from 0.1% to 100%")
REUSES: Final = Range(0.0, 1.0, "no share from 0% to 100%")


def shown(text: str) -> str:
    """What was written, cut where it is long, as one line."""
    line = "".join(c if c.isprintable() else "�" for c in text)
    return line if len(line) <= 60 else f"{line[:57]}…"


def _parts(text: str) -> tuple[str, str, float, str, str] | None:
    """(minus or nothing, currency sign, digits as a number, prefix, what follows), None where no number begins."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    value = float(match[3].replace(",", "").replace("_", ""))
    return match[1].replace("+", ""), match[2], value, match[4], match[5].strip()


def number(text: str, words: tuple[str, ...] = (), thousand: float = 1e3) -> float:
    """A bare number with a prefix; one of `words` may follow.

    Raises:
        Wrong: it is none.
    """
    found = _parts(text)
    if found is None or found[1] or found[4] not in ("", *words):
        unit = f" or {words[0]}" if words else ""
        comma = "; a comma parts thousands" if re.search(r"[0-9],[0-9]", text) else ""
        raise Wrong(f"'{shown(text)}' is not a number{unit}; write for example 2000 or 2k{comma}")
    minus, _, value, prefix, _ = found
    scale = thousand if prefix in ("k", "K") else _SCALES[prefix]
    return -value * scale if minus else value * scale


def tokens(text: str) -> float:
    """Tokens of a request: `2000`, `2k` (2,000)."""
    return LENGTHS.checked(number(text, ("tokens", "token", "tok")), text)


def trained(text: str) -> float:
    """Tokens of a training run: `1T`."""
    return TRAINED.checked(number(text, ("tokens", "token", "tok")), text)


def context(text: str) -> int:
    """Tokens of a context, whose k is 1,024 as on model cards: `32k` is 32,768."""
    return round(LENGTHS.checked(number(text, ("tokens", "token", "tok"), 1024.0), text))


def rate(text: str) -> float:
    """Requests per second; a bare number counts per second, `3000/min` and `20 req/s` are read too."""
    match = re.fullmatch(r"(.*[0-9kKMBGT])\s*(?:req(?:uests?)?)?\s*/\s*(s|sec|min|h|hour|d|day)\s*", text, re.DOTALL)
    if match is None:
        return RATES.checked(number(text, ("req/s", "rps", "qps")), text)
    return RATES.checked(number(match[1]) / parse_unit(match[2])[0], text)


def duration(limits: Range) -> Callable[[str], float]:
    """A reader of seconds: `1s`, `50ms`, `30d`."""
    return lambda text: limits.checked(quantity(text, "duration"), text)


def whole(limits: Range, words: tuple[str, ...] = ()) -> Callable[[str], int]:
    """A reader of a whole number; a word behind it (`1 node`) is read over."""

    def read(text: str) -> int:
        value = limits.checked(number(text, words), text)
        if value != int(value):
            raise Wrong(f"'{shown(text)}' is not a whole number: {limits.words}")
        return int(value)

    return read


def share(text: str, limits: Range = SHARES) -> float:
    """A share of `85%` or `0.85`."""
    value = quantity(text, "share") if text.strip().endswith("%") else number(text)
    if not limits.low <= value <= limits.high:
        raise Wrong(f"'{shown(text)}' is {limits.words}")
    return value


def reuse(text: str) -> float:
    """A share that may be zero."""
    return share(text, REUSES)


def money(text: str) -> Money:
    """`$50k/month`, `€600000/year`, `$2M`."""
    found = _parts(text)
    if found is None or not found[1]:
        raise Wrong(f"'{shown(text)}' is no amount of money; write for example $50k/month or $2M")
    minus, sign, value, prefix, rest = found
    per = rest.lower().lstrip("/ ")
    if per not in _PERIODS:
        raise Wrong(f"'{shown(text)}': '{shown(per)}' is no period; write per month, year, day or h")
    months = _PERIODS[per]
    amount = value * _SCALES["k" if prefix == "K" else prefix] * (months or 1.0)
    return Money(BUDGETS.checked(-amount if minus else amount, text), _CODES[sign], months is not None)


def hour_price(text: str) -> tuple[float, str]:
    """Money per GPU-hour of `2.4`, `$2.40` or `$2.40/GPU-h`."""
    raw = text.strip()
    if "/" in raw:
        try:
            priced = parse_kind(raw if raw[0] in _SIGNS else f"${raw}", "money per GPU time")
        except UnitError as error:
            raise Wrong(str(error)) from None
        return PRICES.checked(priced.value * 3600, text), priced.currency
    found = _parts(raw)
    if found is None or found[3] or found[4]:
        raise Wrong(f"'{shown(text)}' is no price per GPU-hour; write for example $2.40")
    minus, sign, value, _, _ = found
    return PRICES.checked(-value if minus else value, text), _CODES.get(sign, "USD")


def prices(text: str) -> Hours:
    """`$2.40`, or `h100=2.4,h200=3.1`, per GPU-hour."""
    found = dict[str, tuple[float, str]]()
    for part in text.split(","):
        name, equals, price = part.rpartition("=")
        if equals and not name.strip():
            raise Wrong(f"'{shown(part)}' names no GPU before =")
        if fold(name) in found:
            twice = f"two prices of {shown(name.strip())}" if name.strip() else "two prices of every GPU"
            raise Wrong(f"'{shown(text)}' gives {twice}; write for example h100=2.4,h200=3.1")
        found[fold(name)] = hour_price(price)
    return Hours(found)


def power(text: str) -> float:
    """Watts of `100kW`."""
    return POWERS.checked(quantity(text, "power"), text)


def pue(text: str) -> float:
    """Power of the building over power of its computers."""
    return PUES.checked(number(text), text)


def link(text: str) -> Quantity:
    """Rate of a NIC, `400Gb/s`."""
    found = _read(text, "bit rate")
    LINKS.checked(found.value, text)
    return found


def failures(text: str) -> float:
    """Failures of nodes per 1,000 node-days."""
    return FAILURES.checked(number(text), text)


def store(text: str) -> float:
    """B/s that storage takes, `40 GB/s`."""
    return STORES.checked(quantity(text, "byte rate"), text)


def quantity(text: str, kind: str) -> float:
    """The value of a quantity of that kind in base units.

    Raises:
        Wrong: it is none, with the likely intention.
    """
    return _read(text, kind).value


def _read(text: str, kind: str) -> Quantity:
    try:
        return parse_kind(text, kind)
    except UnitError as error:
        raise Wrong(str(error)) from None
