"""Which input moves a result how far: each alone between the ends of its band, the others as they are (a tornado)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Swing:
    """One bar of a tornado.

    Args:
        name: of the input.
        low_input, high_input: ends of its band.
        low, high: results at those ends, not sorted by size.
    """

    name: str
    low_input: float
    high_input: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """How far the result moves between both ends; infinite when it ceases to be finite at one."""
        width = abs(self.high - self.low)
        return math.inf if math.isnan(width) else width


def tornado(
    function: Callable[[Mapping[str, float]], float], bands: Mapping[str, tuple[float, float]]
) -> tuple[Swing, ...]:
    """A swing per input, widest first, those that move nothing left out.

    Args:
        function: inputs that differ from what they are → result; called twice per input.
        bands: (low, high) value of each input.
    """
    swings = [
        Swing(name, low, high, function({name: low}), function({name: high})) for name, (low, high) in bands.items()
    ]
    return tuple(sorted((s for s in swings if s.width > 0), key=lambda s: (-s.width, s.name)))
