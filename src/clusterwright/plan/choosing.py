"""Which origin wins: a table per kind of figure.

A measurement replaces a plan input only where the table lets it and its scope is at least the one it stands for.
Rehearsed figures come from virtual nodes and never replace anything. A target is only ever declared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from clusterwright.lib.figures import Figure, Origin


class Kind(StrEnum):
    """Kinds of figures that differ in whose word counts."""

    PRICE = "price"
    RATE = "rate"
    SIZE = "size"
    TIME = "time"
    SHARE = "share"
    TARGET = "target"


#: Origins that may stand for a kind of figure, strongest first; what is not named never does.
PRECEDENCE: Final[dict[Kind, tuple[Origin, ...]]] = {
    # What is owed follows from the contract, not from what somebody observed.
    Kind.PRICE: (Origin.DECLARED, Origin.CATALOGUE, Origin.ASSUMED),
    Kind.RATE: (Origin.MEASURED, Origin.DECLARED, Origin.CATALOGUE, Origin.ASSUMED),
    Kind.SIZE: (Origin.MEASURED, Origin.DECLARED, Origin.CATALOGUE, Origin.ASSUMED),
    Kind.TIME: (Origin.MEASURED, Origin.DECLARED, Origin.CATALOGUE, Origin.ASSUMED),
    Kind.SHARE: (Origin.MEASURED, Origin.DECLARED, Origin.CATALOGUE, Origin.ASSUMED),
    Kind.TARGET: (Origin.DECLARED,),
}
#: Kinds whose value depends on how much of the cluster was looked at.
SCOPED: Final = frozenset({Kind.RATE, Kind.TIME, Kind.SHARE})


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured figure with its scope.

    Args:
        figure: a leaf of origin MEASURED in the unit of what it replaces.
        nodes: nodes that took part at once.
    """

    figure: Figure
    nodes: int


def choose(
    kind: Kind,
    candidates: Iterable[Figure | None],
    *,
    measured: Measured | Figure | None = None,
    name: str = "",
    nodes: int = 1,
) -> Figure | None:
    """The figure that counts, None when no candidate may.

    Args:
        candidates: declared, catalogue, assumed or computed figures; among equals the first wins.
        measured: replaces them where PRECEDENCE lets it. A bare figure has no scope: it never replaces a SCOPED kind.
        name: name under which a measurement enters the plan.
        nodes: scope that the figure stands for; a measurement on fewer nodes is left aside.

    Raises:
        ValueError: if the measurement is in another unit than the candidates.
    """
    table = PRECEDENCE[kind]
    present = [c for c in candidates if c is not None and _rank(c, table) is not None]
    found = _admissible(kind, measured, nodes)
    if found is not None:
        units = {c.unit for c in present}
        if units and found.unit not in units:
            raise ValueError(f"measured {found.name} is in {found.unit}, the plan needs {' or '.join(sorted(units))}")
        present.append(replace(found, name=name or found.name))
    return min(present, key=lambda c: _rank(c, table) or 0, default=None)


def _rank(figure: Figure, table: tuple[Origin, ...]) -> int | None:
    """Position in the table; a computed figure is an estimate of ours and stands last."""
    if figure.own_origin is None:
        return len(table) if Origin.ASSUMED in table else None
    return table.index(figure.own_origin) if figure.own_origin in table else None


def _admissible(kind: Kind, measured: Measured | Figure | None, nodes: int) -> Figure | None:
    figure = measured.figure if isinstance(measured, Measured) else measured
    if figure is None or figure.own_origin is not Origin.MEASURED or Origin.MEASURED not in PRECEDENCE[kind]:
        return None
    scope = measured.nodes if isinstance(measured, Measured) else 0
    return figure if kind not in SCOPED or scope >= nodes else None
