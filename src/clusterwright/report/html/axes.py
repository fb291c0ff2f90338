"""Axes of drawings: values → pixels, with round marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

#: Ratio of the ends from which an axis is logarithmic.
_LOGARITHMIC: Final = 8.0


@dataclass(frozen=True, slots=True)
class Axis:
    """Values → pixels between two ends, in logarithms where they are far apart."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def at(self, value: float) -> float:
        """Pixels of a value."""
        scale: Callable[[float], float] = math.log if self.logarithmic else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + share * (self.end - self.start)

    def marks(self) -> list[float]:
        """Round values on the axis."""
        if self.logarithmic:
            first = math.floor(math.log10(self.low))
            return [
                v for e in range(first, first + 12) for m in (1, 2, 5) if self.low <= (v := m * 10.0**e) <= self.high
            ]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
        return [i * step for i in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def axis_of(values: Sequence[float], start: float, end: float) -> Axis:
    """The axis that shows these values with a little room, logarithmic where they are far apart."""
    low, high = min(values), max(values)
    if low == high:
        low, high = low * 0.9, high * 1.1
    logarithmic = low > 0 and high / low >= _LOGARITHMIC
    room = (high / low) ** 0.08 if logarithmic else (high - low) * 0.08
    if logarithmic:
        return Axis(low / room, high * room, start, end, True)
    return Axis(max(low - room, 0.0), high + room, start, end, False)
