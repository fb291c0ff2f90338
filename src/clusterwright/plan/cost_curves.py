"""Cost of one accepted unit against the useful share of paid GPU time: here, and wherever else it is priced.

Paid hours cost the same whether they work or not, so the unit gets dearer as 1 ÷ useful share; what is paid per unit or
per worked hour does not. Every line is therefore flat + falling ÷ share; two of them cross where they cost the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.plan.results.money import AlternativeCost, EconomicsPlan, UnitCost

#: Least useful share that is drawn.
_LEAST: Final = 0.005


@dataclass(frozen=True, slots=True)
class CostLine:
    """One way to get the unit.

    Args:
        name: in words, "here" for the cluster of the file.
        flat, falling: money per unit that does not depend on the useful share, and that is divided by it.
        published: whether it follows from the catalogue's prices and not from the file's.
        dated: day of its price, "" where it has none.
    """

    name: str
    flat: float
    falling: float
    published: bool = False
    dated: str = ""

    def at(self, share: float) -> float:
        """Money per unit at a useful share above 0."""
        return self.flat + self.falling / share

    def crossing(self, other: CostLine) -> float | None:
        """Useful share, up to 1, at which both cost the same; None where there is none, or they never differ."""
        flat, falling = self.flat - other.flat, other.falling - self.falling
        if flat == 0 or not 0 < falling / flat <= 1:
            return None
        return falling / flat


@dataclass(frozen=True, slots=True)
class CostCurve:
    """A unit's cost here and elsewhere.

    Args:
        unit: money and denominator, `$/accepted Mtok`.
        lines: the first is "here".
        share: useful share that the plan compares at. loads: that the declared loads alone use, None if unknown.
    """

    workload: str
    denominator: str
    unit: str
    lines: tuple[CostLine, ...]
    share: float
    loads: float | None

    @property
    def crossings(self) -> tuple[tuple[CostLine, float], ...]:
        """Lines that cost as much as ours at some useful share, with it."""
        here, *others = self.lines
        found = ((line, here.crossing(line)) for line in others)
        return tuple((line, share) for line, share in found if share is not None)

    @property
    def least(self) -> float:
        """Lowest useful share worth drawing: half of the lowest that means something."""
        marked = [self.share, *(share for _, share in self.crossings)]
        if self.loads:
            marked.append(self.loads)
        return max(min(marked) / 2, _LEAST)


def cost_curve(unit: UnitCost, money: EconomicsPlan) -> CostCurve | None:
    """The lines of a unit's cost; None without a known share, a finite cost, or anything to compare with."""
    if unit.share is None or unit.share.value <= 0 or not _is_priced(unit.unit_cost):
        return None
    share = min(unit.share.value, 1.0)
    here = CostLine("here", 0.0, unit.unit_cost.value * share)
    others = (*_declared(unit, money, share), *_published(unit, share))
    if not others:
        return None
    loads = money.implied_utilisation
    return CostCurve(
        unit.workload, unit.denominator, unit.unit_cost.unit, (here, *others), share, loads.value if loads else None
    )


def _is_priced(cost: object) -> bool:
    return isinstance(cost, Figure) and math.isfinite(cost.value) and cost.value > 0


def _declared(unit: UnitCost, money: EconomicsPlan, share: float) -> Iterator[CostLine]:
    """Alternatives of the file; of hours bought elsewhere our other costs fall with the share, the hours do not."""
    total = money.total.value
    beside = (
        sum(figure.value for label, figure in money.lines if not label.startswith("compute")) / total if total else 0
    )
    for other in unit.alternatives:
        cost = other.unit_cost
        if not isinstance(cost, Figure) or not _is_priced(cost):
            continue
        falling = 0.0 if other.kind == "model-api" else unit.unit_cost.value * beside * share
        yield CostLine(_named(other), max(cost.value - falling / share, 0.0), falling, dated=other.dated)


def _named(other: AlternativeCost) -> str:
    return other.name if other.kind in other.name else f"{other.name} ({other.kind})"


def _published(unit: UnitCost, share: float) -> Iterator[CostLine]:
    """The catalogue's prices: hours are paid whether they work or not, tokens of an API are not."""
    for market in unit.market:
        if not _is_priced(market.unit_cost):
            continue
        value = market.unit_cost.value
        if market.kind.startswith("API"):
            yield CostLine(market.kind, value, 0.0, True, market.dated)
        else:
            yield CostLine(f"{market.kind} (compute alone)", 0.0, value * share, True, market.dated)
