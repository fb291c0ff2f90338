"""What a month costs and what a useful GPU-hour makes: the two sides of a unit cost."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.plan.economics import Costs, Use
from clusterwright.plan.sites import Site


@dataclass(frozen=True, slots=True)
class Yield:
    """What one useful GPU-hour of a workload makes.

    Args:
        denominator: as declared (`accepted Mtok`).
        per_hour: units of the denominator per useful GPU-hour, before acceptance.
        unit: singular, for `$/unit`.
        tokens: (input, output) mean tokens of a request, of a service.
        site: pool that it was planned on.
    """

    workload: str
    denominator: str
    per_hour: Figure
    unit: str
    tokens: tuple[Figure, Figure] | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """A month's bill and how its time is used.

    Args:
        implied: useful share that the declared loads alone use, None if unknown.
        hour: money per useful GPU-hour at the declared useful share.
        sign: of the currency.
    """

    costs: Costs
    use: Use
    implied: Figure | None
    total: Figure
    hour: Figure
    sign: str
    sites: tuple[Site, ...]
