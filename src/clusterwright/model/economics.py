"""Economics: what a unit of accepted work costs here and in the alternatives; the provider's promise."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import (
    AlternativePrice,
    Day,
    Duration,
    Money,
    MoneyPerTime,
    PowerPrice,
    Share,
    Text,
    TokenPrice,
    TokenRate,
)


class Costs(Section):
    """Running costs beside the pools' own price. Of the whole cluster, per time."""

    network: MoneyPerTime | None = None
    storage: MoneyPerTime | None = None
    support: MoneyPerTime | None = None
    operations: MoneyPerTime | None = Field(default=None, description="staff and tooling")
    power: PowerPrice | None = Field(default=None, description="of energy, such as 8 ¢/kWh; never with colocation")
    colocation: PowerPrice | None = Field(default=None, description="such as $170/kW-month; includes power")
    capital: Money | None = Field(default=None, description="purchase price of owned hardware")
    depreciation: Duration | None = None
    interest: Share | None = Field(default=None, description="per year")
    pue: float | None = Field(default=None, ge=1, le=3)


class Shares(Section):
    """How paid time is used. The rest is useful work."""

    idle: Share | None = None
    retries: Share | None = Field(default=None, description="of work that is done again")
    failed: Share | None = Field(default=None, description="of runs that yield nothing")
    accepted: Share | None = Field(default=None, description="of outputs that are accepted")


class Alternative(Section):
    """Another way to get the same accepted work."""

    kind: Literal["rental", "colocation", "on-premises", "model-api", "serverless"]
    price: AlternativePrice | None = None
    input_price: TokenPrice | None = None
    output_price: TokenPrice | None = None
    denominator: Text | None = None
    utilisation: Share | None = None
    throughput: TokenRate | None = Field(default=None, description="per GPU, where it differs from ours")
    source: Text | None = None
    date: Day | None = None


class Exit(Section):
    """What leaving costs."""

    termination: Money | None = None
    migration: Money | None = None
    resale: Money | None = None
    cleanup: Text | None = None


class Economics(Section):
    """Denominator, costs, use, alternatives."""

    denominator: Text | None = Field(default=None, description="such as accepted Mtok, GPU-h, run")
    utilisation: Share | None = Field(default=None, description="share of paid GPU time expected to do useful work")
    utilisation_means: Literal["useful", "allocated"] | None = None
    costs: Costs | None = None
    shares: Shares | None = None
    term: Duration | None = None
    alternatives: dict[str, Alternative] = Field(default_factory=dict)
    exit: Exit | None = None
    mapped_to_outputs: bool | None = Field(default=None, description="spend is mapped to accepted outputs")


class Contract(Section):
    """What a provider promised, to be compared with what is observed."""

    provider: Text
    nodes: int | None = Field(default=None, ge=1)
    gpu: Text | None = None
    topology: Text | None = None
    nics: Text | None = None
    availability: Share | None = None
    replacement_within: Duration | None = None
    term: Duration | None = None
    starts: Day | None = None


class Waiver(Section):
    """A finding accepted knowingly, until a date."""

    rule: Text
    path: Text | None = Field(default=None, description="where; everywhere if absent")
    reason: Text
    owner: Text
    expires: Day
