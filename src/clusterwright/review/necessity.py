"""A cluster is the wrong answer: only outputs are needed, the mix moves, nobody can run it, an API costs less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.review.inputs.owners import owner_of_duty
from clusterwright.review.requiring import asked_as_a_whole
from clusterwright.review.rules import ALWAYS, Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, listed

_TABLE = RuleTable("economics")
_ADVICE: Final = "Clusterwright: when a cluster is the wrong answer"

#: A model mix that changes at least this often outruns acceptance of new images; our default.
MIX_DAYS: Final = 7.0


@_TABLE.rule(
    "only-outputs-needed",
    Severity.ERROR,
    90,
    why="Where any provider's output would do, drivers, fabric, storage and nights on call buy nothing.",
    satisfy="use a model API or serverless GPUs, or say what the cluster gives beyond outputs (control, own-weights, "
    "data-residency)",
    example="needs: own-weights",
    source=_ADVICE,
)
def only_outputs(subject: Subject) -> Iterator[Hit]:
    """Every workload needs outputs only."""
    names = list(subject.workloads)
    if names and all(w.needs == "outputs" for w in subject.workloads.values()):
        yield Hit(
            f"workloads.{names[0]}.needs", f"{listed(names)} {'need' if len(names) > 1 else 'needs'} outputs only"
        )


@_TABLE.rule(
    "api-cheaper",
    Severity.WARNING,
    80,
    why="The same accepted unit for less money, without capital, staff or idle time.",
    satisfy="take the API, or state what the cluster gives beyond it and what that is worth",
    example="needs: data-residency",
    source="Clusterwright's plan: unit costs with the same denominator",
)
def api_cheaper(subject: Subject) -> Iterator[Hit]:
    """A model API costs less per accepted unit; an error where the workload needs outputs only."""
    plan = subject.plan.economics
    if isinstance(plan, Unplanned):
        return  # break-even-above-plan says that unit costs are unknown
    for unit in plan.units:
        if isinstance(unit, Unplanned):
            continue
        for other in unit.alternatives:
            if other.kind not in ("model-api", "serverless") or isinstance(other.unit_cost, Unplanned):
                continue
            if other.unit_cost.value < unit.unit_cost.value:
                workload = subject.workloads.get(unit.workload)
                needs = workload.needs if workload else None
                less = 1 - other.unit_cost.value / unit.unit_cost.value
                share = (unit.share or plan.utilisation).value
                yield Hit(
                    f"economics.alternatives.{other.name}",
                    f"{unit.workload} costs {unit.unit_cost} at {share:.0%} useful time, from {other.name} "
                    f"{other.unit_cost} ({less:.0%} less)",
                    f"needs is {needs}: say what that is worth, or take the API" if needs else "",
                    severity=Severity.ERROR if needs == "outputs" else None,
                )


@_TABLE.rule(
    "model-mix-unstable",
    Severity.WARNING,
    65,
    why="Sizing, caches and acceptance are made for a model; a mix that changes weekly is never what was sized.",
    satisfy="serve the changing part elsewhere, or size for the largest member and say so",
    example="model_changes_every: 180 days",
    source=_ADVICE,
)
def mix_unstable(subject: Subject) -> Iterator[Hit]:
    """The model changes every week or more often."""
    for name, workload in subject.workloads.items():
        every = workload.model_changes_every
        if every is not None and every.to("days") <= MIX_DAYS:
            yield Hit(f"workloads.{name}.model_changes_every", f"{name} changes its model every {every}")


#: What somebody must be able to run: duty of owners.duties, or readiness area.
_ABILITIES: Final = {"drivers": "drivers", "scheduler_policy": "the scheduler"}


@_TABLE.rule(
    "nobody-operates",
    Severity.ERROR,
    85,
    why="Drivers, scheduler, storage, network: without somebody for each, the cluster is bought again, as a service.",
    satisfy="name who runs each, or buy it managed (cluster.delivery)",
    example="owners: {duties: {drivers: platform@example.com, scheduler_policy: platform@example.com}}",
    source=_ADVICE,
)
def nobody_operates(subject: Subject) -> Iterator[Hit]:
    """A self-managed cluster has nobody for two or more of drivers, scheduler, storage and network."""
    owners, cluster = subject.architecture.owners, subject.architecture.cluster
    if asked_as_a_whole(subject, "owners"):
        return  # owner-missing says so
    if cluster.delivery not in (None, "self-managed") or (cluster.delivery is None and subject.stage == "quote"):
        return
    open_points = [words for duty, words in _ABILITIES.items() if not owner_of_duty(subject, duty)]
    open_points += [area for area in ("storage", "network") if not owners.of(area)]
    if len(open_points) > 1:  # of a single one its own rule speaks
        kind = cluster.delivery or "delivery unsaid"
        yield Hit("owners.duties", f"{kind}, and nobody is named for {listed(open_points)}")


@_TABLE.rule(
    "bursty-and-idle",
    Severity.WARNING,
    75,
    why="Bursts need peak capacity, and low utilisation pays for it all the time: serverless and APIs sell just that.",
    satisfy="serve bursts elsewhere and keep the base load, or show that utilisation is above break-even",
    example="pattern: steady",
    source=_ADVICE + "; break-even from the plan",
    stages=ALWAYS,
)
def bursty_idle(subject: Subject) -> Iterator[Hit]:
    """The load is bursty and useful utilisation is below the break-even with an alternative."""
    bursty = [n for n, w in subject.workloads.items() if w.pattern == "bursty"]
    economics = subject.architecture.economics
    if not bursty:
        return
    path = f"workloads.{bursty[0]}.pattern"
    if economics is None or economics.utilisation is None:
        yield undecided(path, f"useful utilisation of the cluster, since {listed(bursty)} is bursty")
        return
    plan = subject.plan.economics
    if isinstance(plan, Unplanned):
        yield undecided(path, f"the break-even of {listed(bursty)} ({plan.reason})")
        return
    for unit in plan.units:
        if isinstance(unit, Unplanned) or unit.workload not in bursty:
            continue
        points = [(o.break_even.value, o.name) for o in unit.alternatives if o.break_even is not None]
        worst = max(points, default=None)
        if worst is None:
            yield undecided(path, f"an alternative that {unit.workload} is compared with")
        elif worst[0] > (share := (unit.share or plan.utilisation).value):
            used = f"{share:.0%} useful utilisation"
            message = f"{unit.workload} is bursty at {used}; {worst[1]} breaks even at {worst[0]:.0%}"
            yield Hit(f"workloads.{unit.workload}.pattern", message)


#: Share of the monthly total from which moving data is called dominant; our default.
DOMINANT: Final = 0.5


@_TABLE.rule(
    "data-movement-dominates",
    Severity.WARNING,
    55,
    why="When storage and network cost more than the GPUs, the work belongs where the data is.",
    satisfy="move the work to the data, or the data once",
    example="stores: {object: {region: ams1, egress_price: $0/GB, ...}}",
    source=_ADVICE,
)
def data_dominates(subject: Subject) -> Iterator[Hit]:
    """Network and storage cost more than half of the monthly total."""
    plan = subject.plan.economics
    if isinstance(plan, Unplanned) or plan.total.value <= 0:
        return
    moved = sum(figure.value for label, figure in plan.lines if label.startswith(("network", "storage")))
    if moved / plan.total.value > DOMINANT:
        share = moved / plan.total.value
        yield Hit("economics.costs", f"network and storage are {share:.0%} of {plan.total}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
