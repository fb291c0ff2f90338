"""Acceptance: requirements, who accepts, and under which conditions a measurement counts."""

import math
from typing import Any, Final, Literal, Self

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from clusterwright.lib.quantities import KINDS, Quantity
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.magnitudes import raw_text, read_quantity
from clusterwright.model.metrics import METRICS, ClaimClass, Metric
from clusterwright.model.section import Section
from clusterwright.model.units import Bytes, Count, Duration, Text

Threshold = Quantity | float | bool | str

_THRESHOLD: Final[dict[str, JsonValue]] = {"type": ["string", "number", "boolean", "null"]}


class Scope(Section):
    """What a claim is about. Evidence on a smaller scope never proves it."""

    of: Literal["node", "pair", "rack", "pool", "cluster"] = Field(
        default="cluster", description="what one measurement covers"
    )
    pool: Text | None = Field(default=None, description="pool it is about")
    nodes: Count | None = Field(default=None, description="nodes taking part at once")
    workload: Text | None = Field(default=None, description="workload it is about")


class Conditions(Section):
    """What must hold while it is measured."""

    operation: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast"] | None = Field(
        default=None, description="collective operation"
    )
    message_size: Bytes | None = Field(default=None, description="bytes per rank as the benchmark prints them")
    data_type: Text | None = Field(default=None, description="element type of the collective")
    in_place: bool | None = Field(default=None, description="whether input and output share a buffer")
    transport: Text | None = Field(default=None, description="RDMA transport or engine transport")
    concurrency: Count | None = Field(default=None, description="requests, readers or writers at once")
    duration: Duration | None = Field(default=None, description="how long it is measured")
    image: Text | None = Field(default=None, description="container image it runs in")


class Requirement(Section):
    """A claim with a threshold, conditions, scope, source, and who must provide the evidence."""

    metric: Text = Field(
        description="what is measured, a name of the metric table", json_schema_extra={"enum": list(METRICS)}
    )
    at_least: Any = Field(
        default=None, description="threshold with its unit, where more is better", json_schema_extra=_THRESHOLD
    )
    at_most: Any = Field(
        default=None, description="threshold with its unit, where less is better", json_schema_extra=_THRESHOLD
    )
    equals: Any = Field(
        default=None, description="exact value: a number, true or false, or text", json_schema_extra=_THRESHOLD
    )
    scope: Scope = Field(default_factory=Scope, description="what the claim is about")
    conditions: Conditions = Field(default_factory=Conditions, description="what must hold while it is measured")
    source: Text | None = Field(default=None, description="where the threshold comes from")
    max_age: Duration | None = Field(default=None, description="after which evidence is stale")
    required: bool = Field(default=True, description="false for a claim that is reported but does not decide")
    provider: Literal["renter", "provider", "both"] = Field(default="renter", description="who provides the evidence")
    rights: Literal["user", "admin", "root"] = Field(
        default="user", description="rights that the measurement needs on the nodes"
    )

    @field_validator("metric")
    @classmethod
    def _known_metric(cls, value: str) -> str:
        if value not in METRICS:
            hint = did_you_mean(value, METRICS) or f"known are {', '.join(METRICS)}"
            raise ValueError(f"unknown metric '{value}'; {hint}")
        return value

    @field_validator("at_least", "at_most", "equals", mode="before")
    @classmethod
    def _in_the_unit_of_the_metric(cls, value: Any, info: ValidationInfo) -> Any:
        metric = METRICS.get(info.data.get("metric", ""))
        return value if metric is None or value is None else _read_threshold(value, metric.kind)

    @model_validator(mode="after")
    def _one_comparison(self) -> Self:
        given = [k for k in ("at_least", "at_most", "equals") if getattr(self, k) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(f"a requirement needs exactly one of at_least, at_most, equals; found {found}")
        return self

    @property
    def comparison(self) -> Literal["at_least", "at_most", "equals"]:
        """Which of the three thresholds is given."""
        if self.at_least is not None:
            return "at_least"
        return "at_most" if self.at_most is not None else "equals"

    @property
    def threshold(self) -> Threshold:
        """The threshold: a Quantity where the metric has a unit, else a number, flag or text."""
        value: Threshold = getattr(self, self.comparison)
        return value

    @property
    def about(self) -> Metric:
        """The metric's entry in the table."""
        return METRICS[self.metric]

    @property
    def claim(self) -> ClaimClass:
        """Claim class, which follows from the metric."""
        return self.about.claim


def _read_threshold(value: Any, kind: str) -> Threshold:
    if kind in KINDS:
        return read_quantity(value, kind)
    if kind == "flag":
        if not isinstance(value, bool):
            raise ValueError(f"this wants true or false, found '{raw_text(value)}'")
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"this wants {'a plain number' if kind == 'count' else 'text'}")
    if kind == "count":
        if isinstance(value, str) or not math.isfinite(value):
            raise ValueError(f"this wants a plain number, found '{raw_text(value)}'")
        return float(value)
    return str(raw_text(value))


class Acceptance(Section):
    """Who accepts what, against which fixed workload and image."""

    accepted_by: Text | None = Field(default=None, description="person who accepts")
    image: Text | None = Field(default=None, description="production image with digest")
    workload: Text | None = Field(default=None, description="fixed workload definition used for the tests")
    log_export: Text | None = Field(default=None, description="where raw logs go and how long they stay")
    window: Duration | None = Field(default=None, description="time in which acceptance must be finished")
    requirements: dict[str, Requirement] = Field(default_factory=dict, description="claims by name")
