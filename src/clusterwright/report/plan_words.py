"""Numbers and lines of a plan as people read them: origin marks, units, bands, labels."""

from __future__ import annotations

import math
from typing import Final

from clusterwright.lib.figures import Figure, Origin, format_amount, format_band

#: Origin → the mark behind a number.
MARKS: Final[dict[Origin, str]] = {
    Origin.ASSUMED: "ᵃ",
    Origin.REHEARSED: "ʳ",
    Origin.CATALOGUE: "ᶜ",
    Origin.DECLARED: "ᵈ",
    Origin.MEASURED: "ᵐ",
}
_TIMES: Final = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("days", 86400.0))
#: Columns of a line's label.
LABEL: Final = 12


def show(figure: Figure) -> str:
    """A number with unit and origin mark, three significant digits, seconds in the unit people say."""
    value, unit = figure.value, figure.unit
    if unit == "s" and math.isfinite(value) and value >= 120:
        unit, scale = next((u, s) for u, s in reversed(_TIMES) if value >= 2 * s)
        value /= scale
    elif unit == "s" and 0 < value < 0.1:
        value, unit = value * 1000, "ms"
    if unit == "share" and 0.99 < value < 1:
        return f"{value * 100:.2f} %" + MARKS[figure.origin]  # 99.96 % is not all of it
    return format_amount(rounded(value), unit) + MARKS[figure.origin]


def rounded(value: float) -> float:
    """Three significant digits, whole numbers from 100 on."""
    if not math.isfinite(value) or value == 0:
        return value
    return float(round(value)) if abs(value) >= 100 else float(f"{value:.3g}")


def percent(share: float) -> str:
    """A share with three digits."""
    return "∞" if math.isinf(share) else f"{share * 100:.3g} %"


def line(label: str, text: str) -> str:
    """A line under its label."""
    return f"  {label:{LABEL}}{text}"


def band_words(figure: Figure) -> str:
    """The band of a figure in brackets, "" without one."""
    return f" ({format_band(figure.band)})" if figure.band else ""
