"""Quotas that cannot hold: promises beyond capacity, borrowing into nothing, gangs and preemption that never succeed.

Pools are taken one by one: a queue's numbers are GPUs of a pool. Potential is the most a queue can ever use, by the
quota tree (guarantee plus what it may borrow, given what others may lend).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from clusterwright.lib.errors import InvalidInput
from clusterwright.model.findings import Severity
from clusterwright.model.scheduling import Queue
from clusterwright.queueing.declared import declared_tree
from clusterwright.queueing.quotas import Balance
from clusterwright.review.rules import Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, counted, listed

_TABLE = RuleTable("scheduler")
_ALGEBRA: Final = "quota algebra of Kueue cohorts (pkg/cache/scheduler/resource_node.go), as in queueing.quotas"


def _cycle_from(queues: Mapping[str, Queue], name: str) -> tuple[str, ...]:
    """The queues of the cycle that a queue's parents lead into, () if they lead to a root."""
    seen = list[str]()
    at: str | None = name
    while at is not None and at in queues:
        if at in seen:
            return tuple(seen[seen.index(at) :])
        seen.append(at)
        at = queues[at].parent
    return ()


def _balances(subject: Subject) -> dict[str, Balance]:
    """The quota tree's figures without use, by pool; none when queue-cycle or queue-unknown speak about the tree."""
    try:
        tree = declared_tree(subject.architecture.scheduling)
    except InvalidInput:
        return {}
    return {pool: Balance(tree, pool, {}) for pool in subject.pools} if tree.queues else {}


def _reach(balance: Balance, queue: str) -> float:
    """GPUs that a queue could borrow if all others were idle and its own limit were absent."""
    return balance.reach(queue) - balance.subtree(queue)


def _is_group(subject: Subject, name: str) -> bool:
    return any(queue.parent == name for queue in subject.queues.values())


def _pools_named(queue: Queue) -> set[str]:
    return set(queue.guarantee) | set(queue.borrow or {})


@_TABLE.rule(
    "queue-cycle",
    Severity.ERROR,
    85,
    why="A queue that is its own ancestor has no quota that could be computed.",
    satisfy="let every chain of parents end at a queue without parent",
    example="queues: {all: {}, online: {parent: all, ...}, training: {parent: all, ...}}",
    source=_ALGEBRA,
)
def queue_cycle(subject: Subject) -> Iterator[Hit]:
    """A queue is its own ancestor."""
    told = set[frozenset[str]]()
    for name in subject.queues:
        cycle = _cycle_from(subject.queues, name)
        if cycle and frozenset(cycle) not in told:
            told.add(frozenset(cycle))
            chain = " → ".join((*cycle, cycle[0]))
            yield Hit(f"scheduling.queues.{cycle[0]}.parent", f"parents run in a circle: {chain}")


@_TABLE.rule(
    "guarantees-exceed-capacity",
    Severity.ERROR,
    85,
    why="A guarantee that cannot be met by the healthy nodes less the spares is broken on the first busy day.",
    satisfy="lower guarantees, or add nodes; what spares need is not to be guaranteed",
    example="queues: {online: {guarantee: {gpu: 8}}, training: {guarantee: {gpu: 4}}}   # of 16",
    source="Clusterwright: Σ guarantees ≤ healthy capacity − spares",
)
def guarantees_exceed(subject: Subject) -> Iterator[Hit]:
    """All guarantees on a pool exceed its GPUs less the spares."""
    pools = {p for q in subject.queues.values() for p in q.guarantee if p in subject.pools}
    for pool in sorted(pools):
        promised = {n: q.guarantee[pool] for n, q in subject.queues.items() if q.guarantee.get(pool)}
        capacity = subject.gpus_in(pool)
        first = next(iter(promised), None)
        if first is None:
            continue
        if capacity is None:
            yield undecided(f"scheduling.queues.{first}.guarantee.{pool}", f"how many GPUs a node of pool {pool} has")
            continue
        declared = subject.pools[pool]
        spare = min(declared.spares, declared.node_count) * (subject.gpus_per_node(pool) or 0)
        total = sum(promised.values())
        if total > capacity - spare:
            last = list(promised)[-1]
            parts = " + ".join(f"{g} ({n})" for n, g in promised.items())
            kept = f" − {counted(spare, 'GPU')} kept spare" if spare else ""
            role = declared.role
            adds = f" (a {role} pool adds no GPU capacity)" if role != "worker" else ""
            yield Hit(
                f"scheduling.queues.{last}.guarantee.{pool}",
                f"guarantees on pool {pool} are {parts} = {counted(total, 'GPU')}; it has {capacity}{kept}{adds}",
            )


@_TABLE.rule(
    "capacity-in-no-queue",
    Severity.WARNING,
    55,
    why="GPUs that no guarantee covers belong to no queue: by the quota algebra nobody may ever use them.",
    satisfy="guarantee them to a queue, or to a group whose members may borrow them",
    example="queues: {all: {guarantee: {gpu: 4}}, training: {parent: all, borrow: {gpu: 4}, ...}}",
    source=_ALGEBRA,
)
def capacity_in_no_queue(subject: Subject) -> Iterator[Hit]:
    """A pool has more GPUs than all guarantees on it, less the spares."""
    if not subject.queues:
        return  # queues-missing says so
    for name, pool in subject.gpu_pools.items():
        total, each = subject.gpus_in(name), subject.gpus_per_node(name)
        if total is None or each is None:
            continue  # guarantees-exceed-capacity says so
        promised = sum(queue.guarantee.get(name, 0) for queue in subject.queues.values())
        left = total - pool.spares * each - promised
        if left > 0:
            yield Hit(
                "scheduling.queues",
                f"pool {name} has {counted(total, 'GPU')}, guarantees cover {promised}: {left} are in no queue",
            )


@_TABLE.rule(
    "borrow-from-nothing",
    Severity.ERROR,
    60,
    why="A queue that may borrow where nobody lends waits for capacity that never comes.",
    satisfy="put the queue in a group with a queue that lends, or a guarantee of its own; or say borrow 0",
    example="queues: {all: {guarantee: {gpu: 4}}, training: {parent: all, guarantee: {gpu: 4}, borrow: {gpu: 4}}}",
    source=_ALGEBRA,
)
def borrow_from_nothing(subject: Subject) -> Iterator[Hit]:
    """A queue may borrow on a pool on which nothing can be lent to it."""
    for pool, balance in _balances(subject).items():
        for name, queue in subject.queues.items():
            most = (queue.borrow or {}).get(pool, 0)
            if most > 0 and _reach(balance, name) <= 0:
                why = "it has no parent, and only queues of one group lend to each other"
                if queue.parent:
                    kept = (
                        f"{n} lends {_lent(q, pool):g} of {q.guarantee.get(pool, 0)}" for n, q in subject.queues.items()
                    )
                    why = listed(text for text in kept if not text.startswith(f"{name} "))
                yield Hit(
                    f"scheduling.queues.{name}.borrow.{pool}",
                    f"queue {name} may borrow {counted(most, 'GPU')} of pool {pool} and can get 0: {why}",
                )


def _lent(queue: Queue, pool: str) -> int:
    guarantee = queue.guarantee.get(pool, 0)
    return guarantee if queue.lend is None or pool not in queue.lend else min(guarantee, queue.lend[pool])


@_TABLE.rule(
    "borrow-above-reach",
    Severity.NOTE,
    25,
    why="A limit above what others lend looks like capacity in a plan.",
    satisfy="set the limit to what can be lent",
    example="queues: {training: {borrow: {gpu: 4}}}",
    source=_ALGEBRA,
)
def borrow_above_reach(subject: Subject) -> Iterator[Hit]:
    """A queue may borrow more than all others together lend."""
    for pool, balance in _balances(subject).items():
        for name, queue in subject.queues.items():
            most, reach = (queue.borrow or {}).get(pool, 0), _reach(balance, name)
            if 0 < reach < most:
                path = f"scheduling.queues.{name}.borrow.{pool}"
                yield Hit(
                    path,
                    f"queue {name} may borrow {counted(most, 'GPU')} of pool {pool}; "
                    f"at most {reach:g} can be lent to it",
                )


@_TABLE.rule(
    "queue-unreachable",
    Severity.ERROR,
    65,
    why="Jobs of a queue that can never hold a GPU wait forever.",
    satisfy="give the queue a guarantee, or let it borrow in a group that has something to lend",
    example="queues: {training: {guarantee: {gpu: 4}}}",
    source=_ALGEBRA,
)
def queue_unreachable(subject: Subject) -> Iterator[Hit]:
    """A queue has no guarantee and can borrow nothing."""
    balances = _balances(subject)
    for name, queue in subject.queues.items():
        if queue.slack or _is_group(subject, name) or not balances:
            continue
        pools = _pools_named(queue)
        if not any(balances[pool].potential(name) > 0 for pool in pools if pool in balances):
            what = f"of {listed(sorted(pools), 'or')}" if pools else "since it names no pool"
            yield Hit(f"scheduling.queues.{name}", f"queue {name} can never hold a GPU {what}")


@_TABLE.rule(
    "queue-is-group",
    Severity.ERROR,
    60,
    why="A group shares among its members; jobs run in its members only.",
    satisfy="give the workload a queue that is nobody's parent",
    example="queues: {all: {}, online: {parent: all, guarantee: {gpu: 8}}}\nworkloads: {chat: {queue: online}}",
    source=_ALGEBRA,
)
def queue_is_group(subject: Subject) -> Iterator[Hit]:
    """A workload uses a queue that is the parent of others."""
    for name, workload in subject.workloads.items():
        if workload.queue in subject.queues and _is_group(subject, workload.queue or ""):
            members = listed(n for n, q in subject.queues.items() if q.parent == workload.queue)
            yield Hit(f"workloads.{name}.queue", f"workload {name} uses {workload.queue}, a group of {members}")


def _gangs(subject: Subject) -> Iterator[tuple[str, str, int]]:
    """(workload, path of its size, GPUs that must start together)."""
    for name, workload in subject.workloads.items():
        planned = subject.plan.workload(name)
        if workload.train is not None:
            smallest = workload.train.min_gpus or workload.train.gpus
            yield name, f"workloads.{name}.train.{'min_gpus' if workload.train.min_gpus else 'gpus'}", smallest
        elif workload.serve is not None and workload.serve.parallel is not None:
            yield name, f"workloads.{name}.serve.parallel", workload.serve.parallel.gpus
        elif planned is not None and planned.layout is not None:
            yield name, f"workloads.{name}.serve", planned.layout.gpus


@_TABLE.rule(
    "gang-exceeds-potential",
    Severity.ERROR,
    80,
    why="A gang starts all at once or not at all; above its queue's potential it waits forever.",
    satisfy="raise the queue's guarantee or borrowing, let others lend, or shrink the gang",
    example="queues: {training: {guarantee: {gpu: 4}, borrow: {gpu: 4}}}   # gangs up to 8",
    source=_ALGEBRA,
)
def gang_exceeds_potential(subject: Subject) -> Iterator[Hit]:
    """A workload needs more GPUs at once than its queue can ever hold."""
    balances = _balances(subject)
    for name, path, gpus in _gangs(subject):
        queue, pools = subject.workloads[name].queue, [p for p in subject.pools_of(name) if p in balances]
        if queue not in subject.queues or not pools or queue is None:
            continue
        most = max(balances[pool].potential(queue) for pool in pools)
        if gpus > most:
            on = listed(pools, "or")
            yield Hit(
                path,
                f"workload {name} needs {counted(gpus, 'GPU')} at once; "
                f"queue {queue} can hold at most {most:g} of {on}",
            )


@_TABLE.rule(
    "replicas-exceed-potential",
    Severity.ERROR,
    75,
    why="Replicas beyond the queue's potential stay pending, and the load is carried by fewer than planned.",
    satisfy="raise the queue's guarantee, or lower the replicas",
    example="queues: {online: {guarantee: {gpu: 8}}}   # two replicas of four GPUs",
    source=_ALGEBRA,
)
def replicas_exceed_potential(subject: Subject) -> Iterator[Hit]:
    """All replicas of a service together need more GPUs than its queue can ever hold."""
    balances = _balances(subject)
    for name, _, gpus in _gangs(subject):
        workload, planned = subject.workloads[name], subject.plan.workload(name)
        queue, pools = workload.queue, [p for p in subject.pools_of(name) if p in balances]
        if workload.serve is None or planned is None or queue not in subject.queues or queue is None:
            continue
        most = sum(balances[pool].potential(queue) for pool in pools)
        apart = workload.serve.disaggregated is not None
        wanted = planned.wanted_gpus if apart else planned.replicas_wanted * gpus
        if gpus <= most < wanted:
            ask = f"{counted(planned.replicas_wanted, 'replica')} of {name} × {counted(gpus, 'GPU')} = {wanted}"
            if apart:
                ask = f"prefill and decode workers of {name} need {counted(wanted, 'GPU')}"
            field = "disaggregated" if apart else "replicas"
            yield Hit(f"workloads.{name}.serve.{field}", f"{ask}; queue {queue} holds {most:g}")


@_TABLE.rule(
    "gang-exceeds-pool",
    Severity.ERROR,
    85,
    why="No amount of waiting makes a pool larger.",
    satisfy="shrink the gang, or add nodes",
    example='pools: {gpu: {nodes: "gpu-[001-128]"}}',
    source="Clusterwright: GPUs of a pool less its spares",
)
def gang_exceeds_pool(subject: Subject) -> Iterator[Hit]:
    """A workload needs more GPUs at once than any pool that it may run on has."""
    for name, path, gpus in _gangs(subject):
        sizes = {}
        for pool, declared in subject.pools_of(name).items():
            if subject.all_spare(pool):
                continue  # spares-cover-pool says so
            total, each = subject.gpus_in(pool), subject.gpus_per_node(pool)
            if total is None or each is None:
                yield undecided(path, f"how many GPUs a node of pool {pool} has")
                return
            sizes[pool] = total - declared.spares * each
        if sizes and gpus > max(sizes.values()):
            have = listed((f"{p} has {n}" for p, n in sizes.items()), "and")
            yield Hit(path, f"workload {name} needs {counted(gpus, 'GPU')} at once; {have} without spares")


@_TABLE.rule(
    "preemption-cannot-free",
    Severity.ERROR,
    60,
    why="Priority over jobs that may not be preempted, or that do not exist, frees nothing when it matters.",
    satisfy="allow reclaim from borrowers, or guarantee what must start at once",
    example="preemption: {within_queue: lower-priority, reclaim: any, grace: 120 s}",
    source="Kueue 0.19 preemption: withinClusterQueue, reclaimWithinCohort, borrowWithinCohort",
)
def preemption_cannot_free(subject: Subject) -> Iterator[Hit]:
    """A guaranteed gang may find its guarantee lent out and may not take it back."""
    scheduling = subject.architecture.scheduling
    preemption = scheduling.preemption if scheduling else None
    queues = subject.queues
    if preemption is None:
        return
    for name, _, gpus in _gangs(subject):
        queue = queues.get(subject.workloads[name].queue or "")
        if queue is None:
            continue
        for pool in subject.pools_of(name):
            guaranteed = queue.guarantee.get(pool, 0)
            lent = _lent(queue, pool)
            borrowers = [n for n, q in queues.items() if q is not queue and _may_borrow(q, pool, queue.parent)]
            if preemption.reclaim == "never" and borrowers and gpus <= guaranteed < gpus + lent:
                yield Hit(
                    "scheduling.preemption.reclaim",
                    f"queue {subject.workloads[name].queue} lends {lent} of its {counted(guaranteed, 'GPU')} on pool "
                    f"{pool} to {listed(borrowers)} and may never reclaim them; {name} needs {gpus}",
                )


def _may_borrow(queue: Queue, pool: str, group: str | None) -> bool:
    limit = None if queue.borrow is None else queue.borrow.get(pool, 0)
    return group is not None and queue.parent == group and pool in _pools_named(queue) and limit != 0


@_TABLE.rule(
    "preemption-without-grace",
    Severity.WARNING,
    50,
    why="Without grace a preempted training run loses everything since its last checkpoint.",
    satisfy="give the time that writing a checkpoint takes",
    example="preemption: {reclaim: any, grace: 120 s}",
    source="Kubernetes terminationGracePeriodSeconds (default 30 s); Slurm GraceTime",
)
def preemption_without_grace(subject: Subject) -> Iterator[Hit]:
    """Training may be preempted with no, or too little, time to write a checkpoint."""
    scheduling = subject.architecture.scheduling
    preemption = scheduling.preemption if scheduling else None
    if preemption is None or {preemption.within_queue, preemption.reclaim, preemption.borrow_and_preempt} == {"never"}:
        return
    for name, workload in subject.workloads.items():
        if workload.train is None or workload.train.checkpoint is None:
            continue
        if preemption.grace is None:
            yield Hit("scheduling.preemption.grace", f"training {name} may be preempted, and no grace is given")
            continue
        planned = subject.plan.workload(name)
        write = getattr(planned.checkpoint, "write_time", None) if planned else None
        if write is not None and write.value > preemption.grace.to("s"):
            message = f"{name} needs {write.value:.0f} s to write a checkpoint; the grace is {preemption.grace}"
            yield Hit("scheduling.preemption.grace", message)


@_TABLE.rule(
    "priorities-inert",
    Severity.NOTE,
    25,
    why="Priorities without preemption only order the queue: a production job still waits for a batch job to end.",
    satisfy="allow preemption of lower priority, or drop the priorities",
    example="preemption: {within_queue: lower-priority, reclaim: any}",
    source="Kueue 0.19 preemption; Slurm PreemptType",
)
def priorities_inert(subject: Subject) -> Iterator[Hit]:
    """Priorities are declared and nothing may be preempted."""
    scheduling = subject.architecture.scheduling
    if scheduling is None or len(set(scheduling.priorities.values())) < 2 or scheduling.preemption is None:
        return
    rules = (
        scheduling.preemption.within_queue,
        scheduling.preemption.reclaim,
        scheduling.preemption.borrow_and_preempt,
    )
    if set(rules) == {"never"}:
        yield Hit("scheduling.preemption", f"{len(scheduling.priorities)} priorities and preemption is never allowed")


@_TABLE.rule(
    "queue-spans-engines",
    Severity.ERROR,
    65,
    why="Two engines do not know each other's use; a quota over both is kept by neither.",
    satisfy="give each engine's pools queues of their own",
    example="queues: {k8s-online: {guarantee: {gpu-k8s: 8}}, slurm-train: {guarantee: {gpu-slurm: 8}}}",
    source="Clusterwright: a queue spans only pools of one engine",
)
def queue_spans_engines(subject: Subject) -> Iterator[Hit]:
    """A queue has quota on pools of different engines."""
    for name, queue in subject.queues.items():
        engines = {pool: subject.engine_of(pool) for pool in sorted(_pools_named(queue)) if pool in subject.pools}
        if len({e for e in engines.values() if e}) > 1:
            where = listed(f"{pool} ({engine})" for pool, engine in engines.items())
            yield Hit(f"scheduling.queues.{name}", f"queue {name} has quota on {where}")


@_TABLE.rule(
    "slack-queue-used",
    Severity.ERROR,
    50,
    why="A slack queue holds spare capacity so that guarantees stay true; a workload in it takes the spares.",
    satisfy="give the workload a queue of its own",
    example="queues: {spare: {guarantee: {gpu: 8}, slack: true}}",
    source="Clusterwright: a slack queue has no users",
)
def slack_queue_used(subject: Subject) -> Iterator[Hit]:
    """A workload uses a queue that is declared as slack."""
    for name, workload in subject.workloads.items():
        queue = subject.queues.get(workload.queue or "")
        if queue is not None and queue.slack:
            yield Hit(f"workloads.{name}.queue", f"workload {name} uses queue {workload.queue}, which holds the spares")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
