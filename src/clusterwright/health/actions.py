"""What to do about counters and states of hardware, and who may go out of and back into service. Pure decisions.

A value that is not known gives no action and no all-clear: the answer says that it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final


class Do(StrEnum):
    """An action."""

    NOTHING = "nothing"
    WATCH = "watch"
    RESET_GPU = "reset the GPU"
    REPLACE_GPU = "replace the GPU"
    CHECK_CABLE = "check cable, transceiver and port"
    TAKE_OUT = "take the node out"
    CHECK_COOLING = "check the cooling"
    MEASURE = "measure it: it is not known"


@dataclass(frozen=True, slots=True)
class Measure:
    """An action with its reason and the source of the rule."""

    do: Do
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of one source, and whether a rate is above it.

    Args:
        per: unit of time of the limit, `s` or `h`.
        rate: in the same unit.
    """

    source: str
    limit: float
    per: str
    rate: float
    serious: bool

    @property
    def exceeded(self) -> bool:
        """Whether the rate is above the limit."""
        return self.rate > self.limit


MEMORY_GUIDE: Final = "NVIDIA GPU memory error management guide (row remapping, Ampere and newer)"
RETIREMENT_GUIDE: Final = "NVIDIA dynamic page retirement guide (Volta and older)"
LINK_CHECK: Final = "NVIDIA Health Validation, rdma_linkflap_fatal (GB200, GB300): outage of 30 s, once"
NVSENTINEL: Final = "NVSentinel NIC health monitor, link counters (not fatal)"
IBTA: Final = "InfiniBand bit error rate of 1e-12, as switch manuals state it: 120 symbol errors per hour"
THERMAL: Final = "NVSentinel GPU thermal margin (T.Limit offset of hardware slowdown per product)"
#: Retired pages from which the board is to be replaced.
MOST_RETIRED_PAGES: Final = 60
LINK_DOWN_FATAL_S: Final = 30.0
#: Margin in °C to T.Limit below which hardware slowdown acts.
_SLOWDOWN_MARGIN_C: Final = (("GB200", -2.0), ("B200", -3.0), ("H100", -2.0))
_KINDS: Final = ("node_problem", "user_problem", "maintenance")


def for_row_remapping(pending: bool | None, failure: bool | None) -> Measure:
    """What row remapping asks for; None is a flag that could not be read."""
    if failure:
        return Measure(Do.REPLACE_GPU, "a row could not be remapped", MEMORY_GUIDE)
    if pending:
        return Measure(Do.RESET_GPU, "a remapping waits for a reset", MEMORY_GUIDE)
    if pending is None or failure is None:
        return Measure(Do.MEASURE, "the state of row remapping is not known", MEMORY_GUIDE)
    return Measure(Do.NOTHING, "no remapping waits and none failed", MEMORY_GUIDE)


def for_retired_pages(retired: int | None, pending: bool | None) -> Measure:
    """What retired pages ask for.

    Args:
        retired: pages of both causes.
    """
    if retired is not None and retired >= MOST_RETIRED_PAGES:
        return Measure(
            Do.REPLACE_GPU, f"{retired} pages are retired, {MOST_RETIRED_PAGES} are the limit", RETIREMENT_GUIDE
        )
    if pending:
        return Measure(Do.RESET_GPU, "a retirement waits for a reset or a new start of the driver", RETIREMENT_GUIDE)
    if retired is None or pending is None:
        return Measure(Do.MEASURE, "the number of retired pages is not known", RETIREMENT_GUIDE)
    return Measure(Do.NOTHING, f"{retired} pages are retired, none waits", RETIREMENT_GUIDE)


def for_link_down(seconds: float | None, *, up_again: bool) -> Measure:
    """What a link that went down asks for.

    Args:
        seconds: how long it was down, or has been so far; None when not known.
    """
    if seconds is not None and seconds >= LINK_DOWN_FATAL_S:
        return Measure(
            Do.TAKE_OUT, f"the link was down for {seconds:g} s, {LINK_DOWN_FATAL_S:g} s end a job", LINK_CHECK
        )
    if seconds is None or not up_again:
        return Measure(Do.MEASURE, "how long the link was down is not known", LINK_CHECK)
    return Measure(Do.CHECK_CABLE, f"the link was down for {seconds:g} s and came up again", LINK_CHECK)


def judge_symbol_errors(errors: float, seconds: float) -> tuple[Limit, ...]:
    """Symbol errors against each source's limit, which differ in number, unit and consequence.

    Args:
        errors: how many came in the time.
        seconds: the time, above 0.

    Raises:
        ValueError: for a time of 0 or less: a counter alone is no rate.
    """
    if seconds <= 0:
        raise ValueError("a rate of symbol errors needs a time above 0 s")
    rate = errors / seconds
    return (
        Limit(NVSENTINEL, 10.0, "s", rate, serious=False),
        Limit(IBTA, 120.0, "h", rate * 3600, serious=True),
    )


def slowdown_margin_c(product: str) -> float | None:
    """Margin to T.Limit, in °C, below which a product slows down; None for one without a published figure."""
    return next((margin for name, margin in _SLOWDOWN_MARGIN_C if name in product.upper()), None)


def for_thermal_margin(product: str, margin_c: float | None) -> Measure:
    """What a GPU's margin to its thermal limit asks for."""
    limit = slowdown_margin_c(product)
    if limit is None:
        return Measure(Do.MEASURE, f"no margin is published for '{product}'", THERMAL)
    if margin_c is None:
        return Measure(Do.MEASURE, "the margin is not known", THERMAL)
    if margin_c < limit:
        return Measure(Do.CHECK_COOLING, f"margin {margin_c:g} °C is below {limit:g} °C: the GPU slows down", THERMAL)
    return Measure(Do.NOTHING, f"margin {margin_c:g} °C, slowdown below {limit:g} °C", THERMAL)


@dataclass(frozen=True, slots=True)
class Drain:
    """Why and by whom a node was taken out."""

    reason: str
    by_person: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """Yes or no, and why."""

    allowed: bool
    why: str


def drain_reason(kind: str, text: str) -> str:
    """`[node_problem] Xid 79 on 0000:1b:00.0`: the form that scripts tell apart, on one line.

    Args:
        kind: node_problem, user_problem or maintenance.

    Raises:
        ValueError: for another kind.
    """
    if kind not in _KINDS:
        raise ValueError(f"no kind of drain '{kind}'; known are {', '.join(_KINDS)}")
    return f"[{kind}] {' '.join(text.split())}"


def set_by_rule(reason: str) -> bool:
    """Whether a drain reason has the form that rules write; any other was written by a person."""
    return any(reason.startswith(f"[{kind}] ") for kind in _KINDS)


def may_return(
    drain: Drain, passed: bool | None, measured_at: datetime | None, now: datetime, max_age: timedelta
) -> Answer:
    """Whether a node may go back into service.

    A node that a person took out is never returned by a rule. Otherwise it needs evidence that passed, was measured
    after it was taken out and is not older than `max_age`.

    Args:
        passed: outcome of its tests; None when nothing was measured.
    """
    if drain.by_person or not set_by_rule(drain.reason):
        return Answer(False, "a person took it out; a person returns it")
    if passed is None or measured_at is None:
        return Answer(False, "nothing was measured since it was taken out")
    if not passed:
        return Answer(False, "its tests did not pass")
    if measured_at <= drain.at:
        return Answer(False, f"the evidence of {measured_at.isoformat()} is from before it was taken out")
    if measured_at > now:
        return Answer(False, f"the evidence of {measured_at.isoformat()} is from the future: check the clocks")
    if now - measured_at > max_age:
        return Answer(False, f"the evidence is {now - measured_at} old, {max_age} are allowed")
    return Answer(True, "its tests passed after it was taken out")


@dataclass(frozen=True, slots=True)
class Breaker:
    """How many nodes rules may take out; both limits hold.

    Args:
        most_nodes: at once.
        most_share: of all nodes, 0 to 1.
    """

    most_nodes: int
    most_share: float

    def may_take_out(self, more: int, out: int, total: int) -> Answer:
        """Whether `more` nodes may follow the `out` of `total` that are out already, for whatever reason."""
        if total <= 0:
            return Answer(False, "how many nodes there are is not known")
        after = out + more
        if after > self.most_nodes:
            return Answer(False, f"{after} nodes would be out, {self.most_nodes} are allowed: a person decides")
        if after > self.most_share * total:
            return Answer(
                False,
                f"{after} of {total} nodes would be out ({after / total:.0%}), {self.most_share:.0%} are allowed: "
                "a person decides",
            )
        return Answer(True, f"{after} of {total} nodes would be out")
