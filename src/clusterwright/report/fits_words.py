"""Numbers of a fit in words: figures with bands, money, times, sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from clusterwright.lib.quantities import CURRENCIES
from clusterwright.lib.scales import DAY_S
from clusterwright.plan.fitting.bands import Band
from clusterwright.plan.fitting.prices import HourPrice

#: Letters of money and tokens from a million on.
_LARGE: Final = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


def number(value: float) -> str:
    """Three significant digits, thousands apart; whole from 100 on."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "none"
    if abs(value) >= 100:
        digits = max(3 - math.floor(math.log10(abs(value))) - 1, -6)
        return f"{round(value, digits):,.0f}" if abs(value) >= 10000 else f"{value:,.0f}"
    return f"{value:.3g}"


def whole(value: float) -> str:
    """Counted things."""
    return f"{math.ceil(value - 1e-9):,}"


def banded(band: Band | None, shown: Callable[[float], str] = number, unit: str = "") -> str:
    """A figure with its range; `none` for an end that does not exist."""
    if band is None:
        return "-"
    text = shown(band.value) + unit
    low, high = (None if end is None else shown(end) for end in (band.low, band.high))
    if low == high == shown(band.value):
        return text
    return f"{text} ({low or 'none'}–{high or 'none'})"


def one_time(value: float) -> str:
    """A time without a band."""
    return f"{number(value * 1e3)} ms" if value < 1 else f"{number(value)} s"


def span(value_s: float) -> str:
    """A time in the unit that people would take."""
    for unit, seconds, most in (("ms", 1e-3, 1.0), ("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 172800.0)):
        if value_s < most:
            return f"{number(value_s / seconds)} {unit}"
    return f"{number(value_s / DAY_S)} days"


def lasting(days: Band | None) -> str:
    """A time with its range: days, hours below two of them, minutes below two hours."""
    if days is None:
        return "-"
    if days.value >= 2:
        return banded(days) + " days"
    return banded(days.times(24)) + " h" if days.value >= 2 / 24 else banded(days.times(1440)) + " min"


def share_words(band: Band) -> str:
    """A share in per cent with its range."""
    return banded(band.times(100), lambda v: f"{v:.1f}%")


def money(value: float, currency: str = "USD") -> str:
    """An amount with its sign."""
    sign = CURRENCIES.get(currency, currency + " ")
    for scale, prefix in _LARGE:
        if abs(value) >= scale * 0.9995:
            return f"{sign}{number(value / scale)}{prefix}"
    if abs(value) >= 10000:
        return f"{sign}{value / 1e3:.3g}k"
    if abs(value) >= 1000:
        return f"{sign}{value:,.0f}"
    return f"{sign}{value:.2f}" if abs(value) < 100 else f"{sign}{value:.0f}"


def amount(band: Band | None, currency: str = "USD") -> str:
    """Money with its range; the sign only once."""
    if band is None:
        return "-"
    bare = len(CURRENCIES.get(currency, currency + " "))
    return (
        banded(band, lambda v: money(v, currency))
        .replace("(" + money(band.low or 0, currency)[:bare], "(")
        .replace("–" + money(0, currency)[:bare], "–")
    )


def price_words(price: HourPrice) -> str:
    """Where a price per GPU-hour comes from."""
    text = f"{money(price.value, price.currency)} per GPU-hour: {price.basis}"
    if price.low != price.high:
        text += f", {money(price.low, price.currency)} to {money(price.high, price.currency)}"
    if price.sold is not None:
        margin = 1 - price.value / price.sold
        text += f"; sold at {money(price.sold, price.currency)}, a margin of {margin:.0%}"
    if price.stale:
        text += f"; {price.age_days} days old, past its shelf life"
    return text


def sellers_words(prices: Iterable[HourPrice | None]) -> str:
    """Whether published prices of machines that are compared are of one seller, "" of less than two."""
    sellers = [price.seller for price in prices if price is not None and price.origin == "catalogue"]
    if len(sellers) < 2:
        return ""
    if len(set(sellers)) == 1:
        return f"prices with * are all of one seller ({sellers[0]}), so that machines compare"
    return "prices with * are of different sellers, since none lists all machines: part of the order may be theirs"


def tokens_short(value: int) -> str:
    """A context length as people say it: 8k, 128k, else the number."""
    return f"{value // 1024}k" if value >= 1024 and value % 1024 == 0 else f"{value:,}"


def counted_tokens(value: float) -> str:
    """Tokens with the letter that people use: 1.5 T, 300 B, 4 M."""
    for scale, prefix in _LARGE:
        if value >= scale:
            return f"{number(value / scale)} {prefix}"
    return number(value)
