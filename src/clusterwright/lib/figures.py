"""Numbers that know where they came from.

A leaf has one of five origins. A computed figure keeps its inputs and the function that made it, so that it can be
computed again with other leaves: from that follow which leaves carry it (`effects`) and its origin, the weakest among
the leaves that carry it. A leaf that changes nothing (the losing arm of a max) does not weaken the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Final

from clusterwright.lib.quantities import CURRENCIES


class Origin(IntEnum):
    """Where a leaf came from, weakest first."""

    ASSUMED = 0
    REHEARSED = 1
    CATALOGUE = 2
    DECLARED = 3
    MEASURED = 4

    @property
    def word(self) -> str:
        """The origin as it is printed."""
        return self.name.lower()


#: Relative change of a leaf by which its effect on a figure is found; large enough to cross most roundings.
SWING: Final = 0.10
#: Relative change of the figure from which a leaf counts as carrying it.
CARRIES: Final = 1e-3


@dataclass(frozen=True)
class Figure:
    """A value with unit, origin and derivation.

    Args:
        name: dotted name, unique for a leaf within one plan (`pools.gpu.price`).
        value: magnitude in `unit`; may be infinite, never NaN.
        unit: printed unit, plain text ("GiB", "GB/s", "$/Mtok", "" for a count).
        own_origin: of a leaf; None when computed.
        basis: of a leaf its source (place in the file, catalogue entry with date, evidence id); of a computed
            figure its formula.
        inputs: figures it was computed from, in the order of `function`'s arguments.
        band: (low, high) factors on the value that the estimate was validated to, or None.
    """

    name: str
    value: float
    unit: str
    own_origin: Origin | None
    basis: str
    inputs: tuple[Figure, ...] = ()
    function: Callable[..., float] | None = field(default=None, compare=False, repr=False)
    band: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if math.isnan(self.value):
            raise ValueError(f"figure {self.name} is not a number")

    @property
    def is_leaf(self) -> bool:
        """True when the figure was not computed from others."""
        return self.function is None

    @cached_property
    def leaves(self) -> dict[str, Figure]:
        """Every leaf below this figure by name."""
        if self.is_leaf:
            return {self.name: self}
        found: dict[str, Figure] = {}
        for figure in self.inputs:
            found.update(figure.leaves)
        return found

    @cached_property
    def effects(self) -> tuple[tuple[Figure, float], ...]:
        """(leaf, relative change of this figure for a 10 % change of the leaf), largest first."""
        return tuple(
            sorted(((leaf, self._effect(leaf)) for leaf in self.leaves.values()), key=lambda e: (-e[1], e[0].name))
        )

    def _effect(self, leaf: Figure) -> float:
        if self.is_leaf:
            return SWING
        changes = []
        for factor in (1 + SWING, 1 - SWING):
            try:
                moved = evaluate(self, {leaf.name: leaf.value * factor})
            except (ArithmeticError, ValueError):
                return math.inf
            same = moved == self.value or (math.isinf(moved) and math.isinf(self.value))
            changes.append(0.0 if same else abs(moved - self.value) / abs(self.value) if self.value else math.inf)
        return max(changes)

    @cached_property
    def origin(self) -> Origin:
        """Own origin of a leaf; else the weakest origin among the leaves that carry the figure."""
        if self.own_origin is not None:
            return self.own_origin
        # Weakest first: the first leaf that carries the figure decides, the others need no evaluation.
        weakest_first = sorted(self.leaves.values(), key=lambda found: found.origin)
        carrying = (found.origin for found in weakest_first if self._effect(found) >= CARRIES)
        return next(carrying, weakest_first[0].origin)

    def __str__(self) -> str:
        return format_amount(self.value, self.unit)


def leaf(name: str, value: float, unit: str, origin: Origin, basis: str) -> Figure:
    """A figure that was not computed: assumed, catalogue, declared, rehearsed or measured."""
    return Figure(name, float(value), unit, origin, basis)


def derive(
    name: str,
    unit: str,
    formula: str,
    function: Callable[..., float],
    *inputs: Figure,
    band: tuple[float, float] | None = None,
) -> Figure:
    """A figure computed from others.

    Args:
        formula: for people, with its source, as `explain` prints it.
        function: pure; takes the inputs' values as positional floats and returns the value in `unit`.
        band: validated (low, high) factors, if any.
    """
    if not inputs:
        raise ValueError(f"figure {name} has no inputs: make it a leaf")
    return Figure(name, float(function(*(f.value for f in inputs))), unit, None, formula, inputs, function, band)


def evaluate(figure: Figure, overrides: Mapping[str, float]) -> float:
    """Value of the figure with the named leaves replaced; only what depends on them is computed, and once."""
    known: dict[int, float] = {}

    def value_of(node: Figure) -> float:
        if id(node) not in known:
            if node.function is None:
                known[id(node)] = overrides.get(node.name, node.value)
            elif node.leaves.keys().isdisjoint(overrides):
                known[id(node)] = node.value
            else:
                known[id(node)] = float(node.function(*(value_of(i) for i in node.inputs)))
        return known[id(node)]

    return value_of(figure)


def format_amount(value: float, unit: str) -> str:
    """A magnitude with its unit as people write it: `18.2 ms`, `$0.73/Mtok`, `45 %` for a share of 0.45."""
    if unit == "share":
        return f"{format_value(value * 100)} %"
    if unit[:1] in CURRENCIES.values():
        return f"{'−' if value < 0 else ''}{unit[0]}{format_value(abs(value))}{unit[1:]}"
    return f"{format_value(value)} {unit}".rstrip()


def format_band(band: tuple[float, float]) -> str:
    """`×0.54 to ×0.95`: three significant digits, so that no factor is rounded to a better one."""
    return f"×{band[0]:.3g} to ×{band[1]:.3g}"


def format_value(value: float) -> str:
    """Four significant digits, thousands separated, no exponent between 1e-4 and 1e15."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3e}"
    text = f"{value:.4g}"
    return text if "e" not in text or abs(value) < 1e-4 else f"{value:.6f}"


def explain_lines(figure: Figure, depth: int = 12) -> list[str]:
    """The derivation tree as indented lines, each with value, unit, origin and basis.

    A computed figure that occurs more than once is expanded the first time only.
    """
    lines: list[str] = []
    seen: set[str] = set()

    def walk(node: Figure, level: int) -> None:
        indent = "  " * level
        mark = f"[{node.origin.word}]"
        band = f"  band {format_band(node.band)}" if node.band else ""
        if node.is_leaf:
            lines.append(f"{indent}{node.name} = {node} {mark} {node.basis}{band}")
            return
        again = node.name in seen
        seen.add(node.name)
        tail = "  (see above)" if again else ""
        lines.append(f"{indent}{node.name} = {node} {mark} = {node.basis}{band}{tail}")
        if not again and level < depth:
            for item in node.inputs:
                walk(item, level + 1)

    walk(figure, 0)
    return lines
