"""Bytes against rates: payloads, caches, checkpoints, and stores that keep nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.model.storages import Store
from clusterwright.plan.results.payloads import LinkPlan, PayloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.trainings import CheckpointPlan
from clusterwright.review.rules import Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, counted, listed

_TABLE = RuleTable("storage")
_RATE: Final = "Clusterwright's plan: payload rate = bytes of all concurrent readers ÷ allowed time"


def _keeps(subject: Subject, name: str | None) -> Store | None:
    """The store of that name if it is one that does not keep data for good."""
    store = subject.stores.get(name or "")
    return store if store is not None and not store.durable else None


@_TABLE.rule(
    "cache-only-copy",
    Severity.ERROR,
    95,
    why="A cache may be emptied at any time and dies with its node: what exists only there is lost with it, and every "
    "replica that starts after that fails.",
    satisfy="name a durable store as the source and let the cache be a cache of it",
    example="payload: {source: object, cache: nvme, within: 90 s}\nstores: {nvme: {kind: local-nvme, durable: false, "
    "cache_of: object}}",
    source="Clusterwright: a source is durable, a cache has one behind it",
)
def cache_only_copy(subject: Subject) -> Iterator[Hit]:
    """Something that cannot be made again is kept in a cache or on local disk only."""
    found: list[tuple[str, str | None, str]] = []
    for name, workload in subject.workloads.items():
        if workload.payload:
            found.append((f"workloads.{name}.payload.source", workload.payload.source, f"the payload of {name}"))
        if workload.train:
            found.append((f"workloads.{name}.train.data", workload.train.data, f"the dataset of {name}"))
            if workload.train.checkpoint:
                path = f"workloads.{name}.train.checkpoint.to"
                found.append((path, workload.train.checkpoint.to, f"checkpoints of {name}"))
    storage = subject.architecture.storage
    if storage is not None and storage.uses is not None:
        for use in ("weights", "datasets", "checkpoints", "outputs", "logs"):
            found.append((f"storage.uses.{use}", getattr(storage.uses, use), use))
    for path, store_name, what in found:
        if (store := _keeps(subject, store_name)) is not None:
            yield Hit(path, f"{what} would exist only in {store_name} ({store.kind}, not durable)")


@_TABLE.rule(
    "cache-of-nothing",
    Severity.ERROR,
    75,
    why="A cache without a durable store behind it cannot be filled again.",
    satisfy="say which durable store it caches (cache_of)",
    example="stores: {nvme: {kind: local-nvme, durable: false, cache_of: object, ...}}",
    source="Clusterwright: a cache has a durable store behind it",
)
def cache_of_nothing(subject: Subject) -> Iterator[Hit]:
    """A cache names no durable store behind it, or another one than its workload's source."""
    for name, store in subject.stores.items():
        behind = subject.stores.get(store.cache_of or "")
        if behind is not None and not behind.durable:
            message = f"store {name} caches {store.cache_of}, which keeps nothing for good either"
            yield Hit(f"storage.stores.{name}.cache_of", message)
    for name, workload in subject.workloads.items():
        payload = workload.payload
        cache = subject.stores.get(payload.cache or "") if payload else None
        if payload is None or cache is None:
            continue
        if cache.cache_of is None:
            message = f"{payload.cache} caches the payload of {name} and names no store behind it"
            yield Hit(f"storage.stores.{payload.cache}.cache_of", message)
        elif cache.cache_of != payload.source:
            message = f"{name} loads from {payload.source} through {payload.cache}, which caches {cache.cache_of}"
            yield Hit(f"workloads.{name}.payload.cache", message)


def _payloads(subject: Subject) -> Iterator[tuple[str, PayloadPlan | Unplanned]]:
    for planned in subject.plan.workloads:
        if subject.workloads[planned.name].payload is not None and planned.payload is not None:
            yield planned.name, planned.payload


def _too_slow(subject: Subject, kind: str, remedy: str) -> Iterator[Hit]:
    for name, payload in _payloads(subject):
        path = f"workloads.{name}.payload"
        if isinstance(payload, Unplanned):
            yield undecided(path, f"the payload rate of {name} ({payload.reason})", _supply(payload))
            continue
        link = next((x for x in payload.links if x.kind == kind), None)
        if link is None:
            missing = next((u for u in payload.unknown if u.subject.endswith(f".{kind}")), None)
            if missing is not None:
                at = missing.missing[0] if missing.missing else path
                yield undecided(at, f"whether the {kind} carries the payload of {name} ({missing.reason})")
        elif not link.enough:
            yield Hit(link.path, _slow_message(name, payload, link), remedy)


def _supply(unplanned: Unplanned) -> str:
    return f"supply {listed(unplanned.missing)}" if unplanned.missing else ""


def _slow_message(name: str, payload: PayloadPlan, link: LinkPlan) -> str:
    need = f"{counted(payload.readers.value, 'reader')} × {payload.size} in {payload.within}"
    return f"{name} needs {need} = {payload.required_rate}; the {link.kind} ({link.path}) gives {link.rate}"


#: Part of the computed weights by which a declared size may be rounded down; our default.
ROUNDED: Final = 0.02


@_TABLE.rule(
    "payload-below-weights",
    Severity.ERROR,
    80,
    why="Rates, cold start and caches are sized by the payload; without the weights all of them pass on paper.",
    satisfy="leave size out (the weights are computed), or write the bytes that a replica really loads",
    example="payload: {size: 80 GB, source: object, within: 90 s, artifacts: [weights, tokenizer]}",
    source="Clusterwright's plan: parameters × bytes of the declared precision; 2 % for rounding is our default",
)
def payload_below_weights(subject: Subject) -> Iterator[Hit]:
    """The declared size of a payload that includes the weights is smaller than the weights."""
    for name, workload in subject.workloads.items():
        payload, weights = workload.payload, subject.plan.figures.get(f"workloads.{name}.weights")
        if payload is None or payload.size is None or "weights" not in payload.artifacts or weights is None:
            continue
        if payload.size.to("GB") < weights.value * (1 - ROUNDED):
            precision = (
                workload.serve.precision if workload.serve else workload.train.precision if workload.train else ""
            )
            message = (
                f"payload of {name} is {payload.size}; the weights of {workload.model} in {precision} are {weights}"
            )
            yield Hit(f"workloads.{name}.payload.size", message)


@_TABLE.rule(
    "payload-above-source",
    Severity.ERROR,
    80,
    why="A fast local disk does not cure a slow source: the first start, and every start after a loss, reads from it.",
    satisfy="a faster store, fewer readers at once, or more time",
    example="stores: {object: {read: 20 GB/s}}   # 8 × 120 GB in 90 s want 10.7 GB/s",
    source=_RATE,
)
def payload_above_source(subject: Subject) -> Iterator[Hit]:
    """The durable source is slower than all concurrent readers need."""
    return _too_slow(subject, "source", "raise the store's read rate, allow more time, or start fewer replicas at once")


@_TABLE.rule(
    "payload-above-network",
    Severity.ERROR,
    80,
    why="What the store delivers has to cross the network in between, its oversubscription included.",
    satisfy="a faster path to the store, less oversubscription, or more time",
    example="networks: {storage: {rate: 200 Gb/s, ports: 2, oversubscription: 1}}",
    source=_RATE,
)
def payload_above_network(subject: Subject) -> Iterator[Hit]:
    """The network between source and nodes is slower than all concurrent readers need."""
    return _too_slow(subject, "network", "raise rate or ports, lower oversubscription, or allow more time")


@_TABLE.rule(
    "payload-above-cache",
    Severity.WARNING,
    50,
    why="A cache that is slower than what it stands for makes restarts slower than the first start.",
    satisfy="a faster local disk, or load without it",
    example="stores: {nvme: {read: 25 GB/s}}",
    source=_RATE,
)
def payload_above_cache(subject: Subject) -> Iterator[Hit]:
    """The cache is slower than its readers need."""
    return _too_slow(subject, "cache", "raise the cache's read rate, or load from the source")


@_TABLE.rule(
    "readers-above-design",
    Severity.WARNING,
    45,
    why="A store's rate holds for the clients it was designed for.",
    satisfy="have the store sized for the readers that start at once",
    example="stores: {object: {readers: 16}}",
    source="Clusterwright: declared readers of the store against the plan's",
)
def readers_above_design(subject: Subject) -> Iterator[Hit]:
    """More readers load at once than the store is designed for."""
    for name, payload in _payloads(subject):
        declared = subject.workloads[name].payload
        store = subject.stores.get(declared.source) if declared else None
        if isinstance(payload, Unplanned) or declared is None or store is None or store.readers is None:
            continue
        if payload.readers.value > store.readers:
            has = f"{name} has {counted(payload.readers.value, 'reader')}"
            message = f"{has}; {declared.source} is designed for {store.readers}"
            yield Hit(f"storage.stores.{declared.source}.readers", message)


@_TABLE.rule(
    "cold-start-over-target",
    Severity.ERROR,
    70,
    why="A replica that needs longer than its target to start is not there when the load needs it.",
    satisfy="a faster way from the source, a shorter engine start, or a longer target",
    example="payload: {within: 90 s, startup: 60 s}\ntarget: {cold_start: 5 min}",
    source="Clusterwright's plan: transfer over the slowest link + engine start",
)
def cold_start_over(subject: Subject) -> Iterator[Hit]:
    """A cold start from the source takes longer than its target."""
    for name, payload in _payloads(subject):
        if isinstance(payload, Unplanned) or payload.target is None:
            continue
        path = f"workloads.{name}.target.cold_start"
        if payload.meets_target is None or payload.cold_start is None:
            yield undecided(path, f"how long {name} loads (the rate of a link on its way is not stated)")
        elif not payload.meets_target:
            yield Hit(path, f"{name} needs {payload.cold_start} from the source; the target is {payload.target}")


def _checkpoints(subject: Subject) -> Iterator[tuple[str, str, CheckpointPlan | Unplanned]]:
    for planned in subject.plan.workloads:
        train = subject.workloads[planned.name].train
        if train is not None and train.checkpoint is not None and planned.checkpoint is not None:
            yield planned.name, f"workloads.{planned.name}.train.checkpoint", planned.checkpoint


_CHECKPOINT: Final = "Clusterwright's plan: checkpoint bytes ÷ slowest link; Daly 2006 for intervals"


def _missing_link(plan: CheckpointPlan | Unplanned) -> str:
    if isinstance(plan, Unplanned):
        return plan.reason
    return "; ".join(u.reason for u in plan.unknown) or "a rate is not stated"


@_TABLE.rule(
    "checkpoint-stall",
    Severity.ERROR,
    65,
    why="While a checkpoint stalls training every GPU of the job is paid for and waits.",
    satisfy="write faster, write asynchronously, shard the checkpoint, or allow a longer stall",
    example="checkpoint: {to: object, every: 30 min, mode: async, stall_within: 60 s}",
    source=_CHECKPOINT,
)
def checkpoint_stall(subject: Subject) -> Iterator[Hit]:
    """Writing a checkpoint stalls training longer than allowed."""
    for name, path, plan in _checkpoints(subject):
        checkpoint = subject.workloads[name].train.checkpoint  # type: ignore[union-attr]  # _checkpoints asked for it
        if checkpoint is None or checkpoint.stall_within is None:
            continue
        if isinstance(plan, Unplanned) or plan.meets_stall is None or plan.stall is None:
            yield undecided(f"{path}.stall_within", f"how long a checkpoint of {name} stalls ({_missing_link(plan)})")
        elif not plan.meets_stall:
            message = f"a checkpoint of {name} ({plan.size}, {plan.mode}) stalls training for {plan.stall}"
            yield Hit(f"{path}.stall_within", f"{message}; allowed are {checkpoint.stall_within}")


@_TABLE.rule(
    "checkpoint-restore-slow",
    Severity.ERROR,
    65,
    why="Recovery is at least the time to read the checkpoint back.",
    satisfy="read faster, shard the checkpoint, or allow more time",
    example="checkpoint: {restore_within: 120 s, ...}",
    source=_CHECKPOINT,
)
def checkpoint_restore(subject: Subject) -> Iterator[Hit]:
    """Restoring a checkpoint takes longer than allowed."""
    for name, path, plan in _checkpoints(subject):
        checkpoint = subject.workloads[name].train.checkpoint  # type: ignore[union-attr]  # _checkpoints asked for it
        if checkpoint is None or checkpoint.restore_within is None:
            continue
        if isinstance(plan, Unplanned) or plan.meets_restore is None or plan.restore is None:
            yield undecided(f"{path}.restore_within", f"how long restoring {name} takes ({_missing_link(plan)})")
        elif not plan.meets_restore:
            message = f"restoring {name} ({plan.size}) takes {plan.restore}; allowed are {checkpoint.restore_within}"
            yield Hit(f"{path}.restore_within", message)


@_TABLE.rule(
    "restore-above-recovery",
    Severity.ERROR,
    60,
    why="Detection, scheduling, start and restore add up to the recovery; the restore alone may not exceed it.",
    satisfy="shorten the restore or extend the recovery target",
    example="checkpoint: {restore_within: 120 s}\ntarget: {detection: 60 s, recovery: 15 min}",
    source="Clusterwright: recovery ≥ detection + restore",
)
def restore_above_recovery(subject: Subject) -> Iterator[Hit]:
    """Detection and restore together exceed the recovery target."""
    for name, workload in subject.workloads.items():
        checkpoint, target = workload.train.checkpoint if workload.train else None, workload.target
        if checkpoint is None or checkpoint.restore_within is None or target is None or target.recovery is None:
            continue
        noticed = target.detection.value if target.detection is not None else 0.0
        total = noticed + checkpoint.restore_within.value
        if total > target.recovery.value:
            parts = f"detection {target.detection or '0 s'} + restore {checkpoint.restore_within} = {total:g} s"
            yield Hit(f"workloads.{name}.target.recovery", f"{name}: {parts}; the recovery target is {target.recovery}")


@_TABLE.rule(
    "lost-work-above-target",
    Severity.ERROR,
    65,
    why="A failure just before the next checkpoint costs a whole interval.",
    satisfy="checkpoint at least as often as the lost-work target",
    example="checkpoint: {every: 30 min}\ntarget: {lost_work: 30 min}",
    source="Clusterwright: most work lost = interval (asynchronous: + time to write)",
)
def lost_work_above(subject: Subject) -> Iterator[Hit]:
    """The checkpoint interval loses more work than allowed."""
    for name, workload in subject.workloads.items():
        checkpoint, target = workload.train.checkpoint if workload.train else None, workload.target
        if checkpoint is None or target is None or target.lost_work is None:
            continue
        if checkpoint.every.value > target.lost_work.value:
            message = f"{name} checkpoints every {checkpoint.every}; at most {target.lost_work} may be lost"
            yield Hit(f"workloads.{name}.train.checkpoint.every", message)


@_TABLE.rule(
    "checkpoint-interval-too-short",
    Severity.ERROR,
    70,
    why="A checkpoint that is not written before the next one starts never ends: the writes pile up.",
    satisfy="checkpoint less often, or write faster",
    example="checkpoint: {every: 30 min, ...}",
    source=_CHECKPOINT,
)
def interval_short(subject: Subject) -> Iterator[Hit]:
    """A checkpoint takes longer to write than the interval between two."""
    for name, path, plan in _checkpoints(subject):
        if isinstance(plan, Unplanned) or plan.write_time is None:
            continue  # checkpoint-stall says what is missing
        if plan.write_time.value >= plan.every.value:
            message = (
                f"a checkpoint of {name} ({plan.size}) takes {plan.write_time} to write, one is due every {plan.every}"
            )
            yield Hit(f"{path}.every", message)


#: Wasted share of time above the best interval from which the declared one is worth a remark; our default.
_WASTE_GAP: Final = 0.02


@_TABLE.rule(
    "checkpoint-interval-off-optimum",
    Severity.NOTE,
    30,
    why="Too rare repeats work after failures, too frequent stalls: Daly's interval wastes least.",
    satisfy="move the interval towards Daly's",
    example="checkpoint: {every: 30 min, ...}",
    source="Daly 2006, 'A higher order estimate of the optimum checkpoint interval for restart dumps'",
)
def interval_off(subject: Subject) -> Iterator[Hit]:
    """The declared interval wastes clearly more than Daly's for the planned failure rate."""
    for name, path, plan in _checkpoints(subject):
        if isinstance(plan, Unplanned) or plan.waste is None or plan.best_waste is None or plan.daly is None:
            continue
        if plan.waste.value - plan.best_waste.value > _WASTE_GAP:
            lost = f"{plan.waste.value:.1%} of {name}'s time; {plan.daly} would waste {plan.best_waste.value:.1%}"
            yield Hit(f"{path}.every", f"an interval of {plan.every} wastes {lost}")


@_TABLE.rule(
    "checkpoints-fill-store",
    Severity.ERROR,
    60,
    why="A full store stops the job at the next checkpoint.",
    satisfy="keep fewer checkpoints, or give the store more capacity",
    example="checkpoint: {keep: 3, ...}\nstores: {object: {capacity: 200 TB}}",
    source="Clusterwright: kept checkpoints of all jobs against the store's capacity",
)
def checkpoints_fill(subject: Subject) -> Iterator[Hit]:
    """The checkpoints that are kept exceed the capacity of their store."""
    used: dict[str, list[tuple[str, float]]] = {}
    for name, _, plan in _checkpoints(subject):
        checkpoint = subject.workloads[name].train.checkpoint  # type: ignore[union-attr]  # _checkpoints asked for it
        if checkpoint is not None and checkpoint.keep is not None and not isinstance(plan, Unplanned):
            used.setdefault(checkpoint.to, []).append((name, checkpoint.keep * plan.size.value))
    for store_name, parts in used.items():
        store = subject.stores.get(store_name)
        total = sum(size for _, size in parts)
        if store is not None and store.capacity is not None and total > store.capacity.to("GB"):
            kept = f"checkpoints of {listed(n for n, _ in parts)} take {total:,.0f} GB"
            yield Hit(f"storage.stores.{store_name}.capacity", f"{kept}; {store_name} holds {store.capacity}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
