"""Economics: what a unit of accepted work costs here and in the alternatives; the provider's promise."""

from typing import Literal

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import (
    AlternativePrice,
    Count,
    Day,
    Duration,
    Money,
    MoneyPerTime,
    PositiveShare,
    PowerPrice,
    Share,
    Text,
    TokenPrice,
    TokenRate,
)


class Costs(Section):
    """Running costs beside the pools' own price. Of the whole cluster, per time."""

    network: MoneyPerTime | None = Field(default=None, description="switches, cables, transit")
    storage: MoneyPerTime | None = Field(
        default=None, description="of stores that have no price of their own; price × capacity of the others is added"
    )
    support: MoneyPerTime | None = Field(default=None, description="vendor support")
    operations: MoneyPerTime | None = Field(default=None, description="staff and tooling")
    power: PowerPrice | None = Field(default=None, description="of energy, such as 8 ¢/kWh; never with colocation")
    colocation: PowerPrice | None = Field(default=None, description="such as $170/kW-month; includes power")
    capital: Money | None = Field(default=None, description="purchase price of owned hardware")
    depreciation: Duration | None = Field(default=None, description="over which owned hardware is written off")
    interest: Share | None = Field(default=None, description="per year")
    pue: float | None = Field(default=None, ge=1, le=3, description="power usage effectiveness, 1 to 3")


class Shares(Section):
    """How paid time is used. The rest is useful work."""

    idle: Share | None = Field(default=None, description="of paid time without a job")
    retries: Share | None = Field(default=None, description="of work that is done again")
    failed: Share | None = Field(default=None, description="of runs that yield nothing")
    accepted: PositiveShare | None = Field(default=None, description="of outputs that are accepted")


class Alternative(Section):
    """Another way to get the same accepted work."""

    kind: Literal["rental", "colocation", "on-premises", "model-api", "serverless"] = Field(description="kind of offer")
    price: AlternativePrice | None = Field(default=None, description="of time, or one price for all tokens")
    input_price: TokenPrice | None = Field(default=None, description="of prompt tokens")
    output_price: TokenPrice | None = Field(default=None, description="of generated tokens")
    denominator: Text | None = Field(default=None, description="unit it is compared by; the same as ours")
    utilisation: PositiveShare | None = Field(
        default=None, description="share of paid time in use, where it differs from ours"
    )
    throughput: TokenRate | None = Field(default=None, description="per GPU, where it differs from ours")
    source: Text | None = Field(default=None, description="who quotes the price")
    date: Day | None = Field(default=None, description="day of the price")


class Exit(Section):
    """What leaving costs."""

    termination: Money | None = Field(default=None, description="fee for ending early")
    migration: Money | None = Field(default=None, description="moving data and workloads")
    resale: Money | None = Field(default=None, description="what owned hardware still brings")
    cleanup: Text | None = Field(default=None, description="what remains to be done")


class Economics(Section):
    """Denominator, costs, use, alternatives."""

    denominator: Text | None = Field(default=None, description="such as accepted Mtok, GPU-h, run")
    utilisation: PositiveShare | None = Field(
        default=None, description="share of paid GPU time expected to do useful work"
    )
    utilisation_means: Literal["useful", "allocated"] | None = Field(
        default=None, description="what the utilisation counts"
    )
    costs: Costs | None = Field(default=None, description="running costs")
    shares: Shares | None = Field(default=None, description="how paid time is used")
    term: Duration | None = Field(default=None, description="for which capacity is committed")
    alternatives: dict[str, Alternative] = Field(
        default_factory=dict, description="other ways to the same work, by name"
    )
    exit: Exit | None = Field(default=None, description="what leaving costs")
    mapped_to_outputs: bool | None = Field(default=None, description="spend is mapped to accepted outputs")


class Contract(Section):
    """What a provider promised, to be compared with what is observed."""

    provider: Text = Field(description="name of the provider")
    nodes: Count | None = Field(default=None, description="GPU nodes promised")
    gpu: Text | None = Field(default=None, description="GPU model of the catalogue")
    topology: Text | None = Field(default=None, description="placement promised")
    nics: Text | None = Field(default=None, description="NICs per node promised")
    availability: Share | None = Field(default=None, description="share of time")
    replacement_within: Duration | None = Field(default=None, description="time until a failed node is replaced")
    term: Duration | None = Field(default=None, description="length")
    starts: Day | None = Field(default=None, description="first day")


class Waiver(Section):
    """A finding accepted knowingly, until a date."""

    rule: Text = Field(description="id of the rule")
    path: Text | None = Field(default=None, description="where; everywhere if absent")
    reason: Text = Field(description="why the risk is taken")
    owner: Text = Field(description="who takes it")
    expires: Day = Field(description="day after which the finding counts again")
