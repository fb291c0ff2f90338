"""What must be proven: the requirements of the file, and those that follow from targets which acceptance leaves out.

A target that no requirement is at least as strict about becomes a requirement of its own, so that nothing that was
promised stays silently unproven.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterwright.lib.quantities import Quantity
from clusterwright.model.acceptance import Conditions, Requirement, Scope
from clusterwright.model.architecture import Architecture
from clusterwright.model.metrics import METRICS
from clusterwright.model.workloads import Target, Workload


@dataclass(frozen=True, slots=True)
class Claim:
    """A requirement with its id and the place in the file that asks for it.

    Args:
        id: key in `acceptance.requirements`, or `<workload>-<target>` when derived.
        path: dotted path in the file.
    """

    id: str
    requirement: Requirement
    path: str

    @property
    def derived(self) -> bool:
        """True when acceptance does not name it and a target does."""
        return not self.path.startswith("acceptance.")


#: (field of `target`, metric, comparison) in the order of the file.
_TARGETS: tuple[tuple[str, str, str], ...] = (
    ("ttft", "ttft", "at_most"),
    ("ttft_p50", "ttft_p50", "at_most"),
    ("ttft_p95", "ttft_p95", "at_most"),
    ("ttft_p99", "ttft_p99", "at_most"),
    ("tpot", "tpot", "at_most"),
    ("tpot_p50", "tpot_p50", "at_most"),
    ("tpot_p95", "tpot_p95", "at_most"),
    ("tpot_p99", "tpot_p99", "at_most"),
    ("availability", "availability", "at_least"),
    ("detection", "detection_time", "at_most"),
    ("recovery", "recovery_time", "at_most"),
    ("lost_work", "lost_work", "at_most"),
    ("cold_start", "cold_start", "at_most"),
)
#: How a derived claim is called where the name of its field alone would not say it.
_NAMES = {
    "payload.within": "payload",
    "train.checkpoint.stall_within": "checkpoint-stall",
    "train.checkpoint.restore_within": "checkpoint-restore",
}
#: Metrics of a service under its load: the declared concurrency is a condition of the claim.
_UNDER_LOAD = frozenset(m for m in METRICS if m.startswith(("ttft", "tpot"))) | {"request_rate"}


def collect_claims(architecture: Architecture) -> tuple[Claim, ...]:
    """Every claim that a verdict is owed for: those of `acceptance` in their order, then derived ones."""
    acceptance = architecture.acceptance
    declared = acceptance.requirements if acceptance else {}
    claims = [Claim(id_, r, f"acceptance.requirements.{id_}") for id_, r in declared.items()]
    taken = {c.id for c in claims}
    for derived in _derive_claims(architecture):
        if any(_covers(c.requirement, derived.requirement, architecture) for c in claims):
            continue
        name = derived.id
        while name in taken:
            name += "-target"
        taken.add(name)
        claims.append(Claim(name, derived.requirement, derived.path))
    return tuple(claims)


def _derive_claims(architecture: Architecture) -> Iterator[Claim]:
    for name, workload in architecture.workloads.items():
        for field, metric, comparison, threshold in _promises(workload):
            path = f"workloads.{name}.{field}"
            requirement = Requirement.model_validate(
                {
                    "metric": metric,
                    comparison: threshold,
                    "scope": Scope(of="cluster", nodes=_node_count(architecture, workload), workload=name),
                    "conditions": _conditions(workload, metric),
                    "source": path,
                    "max_age": _max_age(architecture, metric),
                }
            )
            yield Claim(f"{name}-{_NAMES.get(field, field.rpartition('.')[2].replace('_', '-'))}", requirement, path)


def _promises(workload: Workload) -> Iterator[tuple[str, str, str, Quantity]]:
    """(path below the workload, metric, comparison, threshold) of everything the brief promises."""
    target = workload.target or Target()
    for field, metric, comparison in _TARGETS:
        threshold = getattr(target, field)
        if threshold is not None:
            yield f"target.{field}", metric, comparison, threshold
    serve, train = workload.serve, workload.train
    if target.survive is not None and target.survive.value > 0:
        if serve is not None:
            yield "target.survive", "load_after_loss", "at_least", serve.rate
        else:
            yield "target.survive", "nodes_survived", "at_least", target.survive
    if serve is not None:
        yield "serve.rate", "request_rate", "at_least", serve.rate
    if train is not None:
        if train.tokens is not None and train.deadline is not None and train.deadline.value > 0:
            rate = Quantity(train.tokens.value / train.deadline.value, (("s", -1), ("token", 1)))
            yield "train.deadline", "training_rate", "at_least", rate
        checkpoint = train.checkpoint
        if checkpoint is not None and checkpoint.stall_within is not None:
            metric = "checkpoint_write" if checkpoint.mode == "sync" else "checkpoint_stall"
            yield "train.checkpoint.stall_within", metric, "at_most", checkpoint.stall_within
        if checkpoint is not None and checkpoint.restore_within is not None:
            yield "train.checkpoint.restore_within", "checkpoint_restore", "at_most", checkpoint.restore_within
    if workload.payload is not None:
        yield "payload.within", "payload_time", "at_most", workload.payload.within


def _conditions(workload: Workload, metric: str) -> Conditions:
    if workload.serve is None or metric not in _UNDER_LOAD:
        return Conditions()
    return Conditions(concurrency=workload.serve.concurrency)


def _node_count(architecture: Architecture, workload: Workload) -> int | None:
    """Nodes that the workload may run on, None when no pool is declared for it."""
    pools = workload.pools or tuple(n for n, p in architecture.pools.items() if p.role == "worker")
    count = sum(architecture.pools[p].node_count for p in pools if p in architecture.pools)
    return count or None


def _max_age(architecture: Architecture, metric: str) -> Quantity | None:
    """The shortest age that acceptance allows for this class of claim."""
    acceptance = architecture.acceptance
    ages = [
        r.max_age
        for r in (acceptance.requirements.values() if acceptance else ())
        if r.max_age is not None and r.claim == METRICS[metric].claim
    ]
    return min(ages, key=lambda a: a.value, default=None)


#: A claim on the left also proves one on the right: a checkpoint that is written in t cannot stall for longer than t,
#: and a service that carries the load after a loss carries it before.
_IMPLIES = {("checkpoint_write", "checkpoint_stall"), ("load_after_loss", "request_rate")}


def _covers(declared: Requirement, derived: Requirement, architecture: Architecture) -> bool:
    """Whether proving the declared requirement proves the derived one too."""
    same = declared.metric == derived.metric or (declared.metric, derived.metric) in _IMPLIES
    if not same or not declared.required or declared.comparison != derived.comparison:
        return False
    if declared.scope.workload != derived.scope.workload and not (
        declared.scope.workload is None and len(architecture.workloads) == 1
    ):
        return False
    left, right = declared.threshold, derived.threshold
    if not isinstance(left, Quantity) or not isinstance(right, Quantity):
        return left == right
    return left.value >= right.value if declared.comparison == "at_least" else left.value <= right.value
