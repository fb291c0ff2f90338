"""What a month costs, and what one accepted unit costs here and elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.physics.sensitivities import Swing
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sensitivities import swings_of


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """GPUs that the target work needs.

    Args:
        target_work: work per month (inference) or of the whole run (training), in `unit`.
        useful_per_gpu_month: work of one paid GPU-month, of which only the declared useful share works.
        gpu_months: paid GPU-months, target_work ÷ useful_per_gpu_month.
    """

    unit: str
    target_work: Figure
    useful_per_gpu_month: Figure
    gpu_months: Figure


@dataclass(frozen=True, slots=True)
class AlternativeCost:
    """The same accepted unit bought another way.

    Args:
        unit_cost: in the workload's denominator.
        break_even: useful share of our paid GPU time at which ours costs the same; above 1 it never does.
        even_price: its price (of a GPU-hour, or blended per unit) at which both cost the same.
        even_volume: accepted units a month from which our bill is the smaller one; more than our GPUs make is never.
        dated: day of its price as declared, "undated" without.
    """

    name: str
    kind: str
    unit_cost: Figure | Unplanned
    break_even: Figure | None
    note: str = ""
    even_price: Figure | None = None
    even_volume: Figure | None = None
    dated: str = ""


@dataclass(frozen=True, slots=True)
class MarketCost:
    """One accepted unit at published prices; of GPU-hours the compute alone, its band the range of the prices.

    Args:
        kind: rental, colocation, on-premises, or an API with its provider.
        dated: day of the oldest price in it.
    """

    kind: str
    unit_cost: Figure
    dated: str


@dataclass(frozen=True, slots=True)
class UnitCost:
    """Cost of one accepted unit of a workload here and in the alternatives.

    Args:
        unit_cost: what the alternatives are compared with: the higher of `declared` and `at_load`.
        declared: at the declared useful share; None where `unit_cost` is all that is known.
        at_load: of a service, at the useful share that the declared loads imply; None where that is unknown.
        share: useful share of `unit_cost` and of the alternatives.
        market: the same unit at published prices.
    """

    workload: str
    denominator: str
    unit_cost: Figure
    alternatives: tuple[AlternativeCost, ...] = ()
    declared: Figure | None = None
    at_load: Figure | None = None
    share: Figure | None = None
    market: tuple[MarketCost, ...] = ()

    @property
    def swings(self) -> tuple[Swing, ...]:
        """Inputs of the unit cost between the ends of their bands, widest first."""
        return swings_of(self.unit_cost)

    @property
    def at_declared(self) -> Figure:
        """The cost at the declared useful share."""
        return self.declared or self.unit_cost


@dataclass(frozen=True, slots=True)
class EconomicsPlan:
    """What a month costs and what it yields.

    Args:
        lines: (label, money per month); compute is split into useful, idle, retries and failed, so the lines add up.
        total: money per month.
        paid_gpu_hours: per month.
        utilisation: useful share of paid GPU time that unit costs are computed with.
        implied_utilisation: share that the declared loads alone would use, None if unknown.
        useful_gpu_hour: money per useful GPU-hour.
    """

    currency: str
    lines: tuple[tuple[str, Figure], ...]
    total: Figure
    paid_gpu_hours: Figure
    utilisation: Figure
    implied_utilisation: Figure | None
    useful_gpu_hour: Figure
    units: tuple[UnitCost | Unplanned, ...]
    notes: tuple[str, ...] = ()
