"""Thresholds as claims: source, scope, freshness, load, direction, and whether they ask what the brief asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.acceptance import Requirement
from clusterwright.model.findings import Severity
from clusterwright.review.rules import BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, counted, listed

_TABLE = RuleTable("acceptance")


def claims_of(subject: Subject) -> Iterator[tuple[str, str, Requirement]]:
    """(path, id, requirement) of every declared requirement."""
    acceptance = subject.architecture.acceptance
    for name, requirement in (acceptance.requirements if acceptance else {}).items():
        yield f"acceptance.requirements.{name}", name, requirement


def pool_of(subject: Subject, requirement: Requirement) -> str | None:
    """The pool a claim is about: as declared, else the only GPU pool."""
    if requirement.scope.pool:
        return requirement.scope.pool if requirement.scope.pool in subject.gpu_pools else None
    pools = list(subject.gpu_pools)
    return pools[0] if len(pools) == 1 else None


@_TABLE.rule(
    "threshold-without-source",
    Severity.ERROR,
    45,
    why="A number whose origin nobody remembers is given up in the first dispute.",
    satisfy="say where the number comes from: brief, contract, published result, policy",
    example="source: published 8xH100 in-node results, 450 to 480 GB/s",
    source="Clusterwright: a requirement has a threshold, conditions, scope, source and freshness",
    stages=BUILD,
)
def without_source(subject: Subject) -> Iterator[Hit]:
    """A threshold has no source."""
    for path, name, requirement in claims_of(subject):
        if requirement.source is None:
            yield Hit(f"{path}.source", f"{name} does not say where {requirement.threshold} comes from")


@_TABLE.rule(
    "threshold-without-scope",
    Severity.ERROR,
    65,
    why="A result on one node says nothing about two, and one pool nothing about the other.",
    satisfy="say what it is about: node, pair, pool or cluster, which pool, how many nodes, which workload",
    example="scope: {of: pool, pool: gpu, nodes: 2}",
    source="Clusterwright: evidence on a smaller scope never proves a larger one",
)
def without_scope(subject: Subject) -> Iterator[Hit]:
    """A threshold does not say on how many nodes, or for which workload, it holds."""
    for path, name, requirement in claims_of(subject):
        scope = requirement.scope
        if scope.nodes is None:
            yield Hit(f"{path}.scope.nodes", f"{name} does not say how many nodes take part")
        if scope.of in ("node", "pair", "rack", "pool") and scope.pool is None and len(subject.gpu_pools) > 1:
            yield Hit(f"{path}.scope.pool", f"{name} is about a {scope.of} and names no pool; there are several")
        about_workload = requirement.claim == "workload-and-recovery"
        if about_workload and scope.workload is None and len(subject.workloads) > 1:
            yield Hit(f"{path}.scope.workload", f"{name} is about a workload and names none; there are several")


@_TABLE.rule(
    "threshold-without-age",
    Severity.WARNING,
    30,
    why="Evidence from before the last driver upgrade is about another cluster.",
    satisfy="say after which time evidence is stale",
    example="max_age: 30 days",
    source="Clusterwright: stale evidence is not measured",
    stages=BUILD,
)
def without_age(subject: Subject) -> Iterator[Hit]:
    """A threshold accepts evidence of any age."""
    for path, name, requirement in claims_of(subject):
        if requirement.max_age is None:
            yield Hit(f"{path}.max_age", f"{name} accepts evidence of any age")


@_TABLE.rule(
    "threshold-without-load",
    Severity.ERROR,
    60,
    why="Latency on an idle service, or the rate of a single reader, is another quantity than the one that is needed.",
    satisfy="give the concurrency at which it is measured",
    example="conditions: {concurrency: 64, duration: 2 h}",
    source="MLPerf Inference rules: server scenarios state the load; fio and elbencho results depend on clients",
)
def without_load(subject: Subject) -> Iterator[Hit]:
    """A latency, request rate or storage rate is required at no stated concurrency."""
    for path, name, requirement in claims_of(subject):
        metric = requirement.metric
        loaded = metric.startswith(("ttft", "tpot")) or metric in ("request_rate", "storage_read", "storage_write")
        if loaded and requirement.conditions.concurrency is None:
            yield Hit(f"{path}.conditions.concurrency", f"{name} asks {metric} of {requirement.threshold} at no load")


@_TABLE.rule(
    "threshold-wrong-direction",
    Severity.ERROR,
    80,
    why="A bandwidth of at most, or a latency of at least, is met by everything that is bad.",
    satisfy="use at_least where more is better and at_most where less is",
    example="chat-ttft: {metric: ttft_p95, at_most: 1 s, ...}",
    source="Clusterwright: the table of metrics says which direction is better",
)
def wrong_direction(subject: Subject) -> Iterator[Hit]:
    """A threshold limits its metric from the wrong side."""
    for path, name, requirement in claims_of(subject):
        better, given = requirement.about.better, requirement.comparison
        if (better, given) in (("more", "at_most"), ("less", "at_least")):
            right = "at_least" if better == "more" else "at_most"
            message = (
                f"{name} says {given} {requirement.threshold} for {requirement.metric}, of which {better} is better"
            )
            yield Hit(f"{path}.{given}", message, f"write {right}")


@_TABLE.rule(
    "scope-above-pool",
    Severity.ERROR,
    70,
    why="A claim about more nodes than there are can never be measured.",
    satisfy="lower scope.nodes to the nodes that exist",
    example="scope: {of: pool, pool: gpu, nodes: 2}",
    source="Clusterwright: nodes of the pool",
)
def scope_above(subject: Subject) -> Iterator[Hit]:
    """A claim is about more nodes than its pool, or the cluster, has."""
    for path, name, requirement in claims_of(subject):
        scope = requirement.scope
        pool = subject.pools.get(scope.pool or "")
        have = pool.node_count if pool else sum(p.node_count for p in subject.gpu_pools.values())
        what = f"pool {scope.pool}" if pool else "the GPU pools"
        if scope.nodes is not None and have and scope.nodes > have:
            yield Hit(f"{path}.scope.nodes", f"{name} is about {counted(scope.nodes, 'node')}; {what} have {have}")


@_TABLE.rule(
    "nodes-left-out",
    Severity.WARNING,
    50,
    why="The node that is not tested is the one that fails; peers have dropped nodes from a test silently.",
    satisfy="test every node of the pool",
    example="scope: {of: node, pool: gpu, nodes: 2}",
    source="Clusterwright: hardware health is claimed for every node",
)
def nodes_left_out(subject: Subject) -> Iterator[Hit]:
    """A claim about hardware health leaves out nodes of its pool."""
    for path, name, requirement in claims_of(subject):
        scope, pool = requirement.scope, subject.pools.get(pool_of(subject, requirement) or "")
        if requirement.claim != "hardware-health" or pool is None or scope.nodes is None:
            continue
        if scope.nodes < pool.node_count:
            left = pool.node_count - scope.nodes
            yield Hit(
                f"{path}.scope.nodes",
                f"{name} looks at {scope.nodes} of {counted(pool.node_count, 'node')}; {left} are left out",
            )


@_TABLE.rule(
    "requirement-below-target",
    Severity.ERROR,
    70,
    why="A cluster that passes acceptance and misses the brief was accepted against the wrong number.",
    satisfy="let the requirement be at least as strict as the brief",
    example="target: {ttft_p95: 1 s}\nchat-ttft: {metric: ttft_p95, at_most: 1 s, ...}",
    source="Clusterwright: requirements against the workload's targets and the planned payload rate",
)
def below_target(subject: Subject) -> Iterator[Hit]:
    """A requirement is weaker than the target of its workload, or than the payload rate that is needed."""
    names = {"detection_time": "detection", "recovery_time": "recovery"}
    for path, name, requirement in claims_of(subject):
        workload = subject.workloads.get(requirement.scope.workload or "")
        field = names.get(requirement.metric, requirement.metric)
        goal = getattr(workload.target, field, None) if workload and workload.target else None
        asked = requirement.at_most
        if isinstance(goal, Quantity) and isinstance(asked, Quantity) and asked.value > goal.value:
            who = requirement.scope.workload
            yield Hit(f"{path}.at_most", f"{name} allows {asked}; the target {field} of {who} is {goal}")
        need, floor = subject.plan.payload_rate, requirement.at_least
        if requirement.metric != "storage_read" or need is None or workload is not None:
            continue
        if isinstance(floor, Quantity) and floor.to("GB/s") < need.value:
            yield Hit(f"{path}.at_least", f"{name} asks {floor}; all workloads loading at once need {need}")


@_TABLE.rule(
    "count-contradicts-pool",
    Severity.ERROR,
    70,
    why="A count that is not the node's fails every node, or passes nodes with a missing GPU.",
    satisfy="write the GPUs that a node of the pool has",
    example="all-gpus-present: {metric: gpus_present, equals: 8, scope: {of: node, pool: gpu, nodes: 2}}",
    source="the catalogue's node shapes",
)
def count_contradicts(subject: Subject) -> Iterator[Hit]:
    """The number of GPUs that must be present is not the number that a node has."""
    for path, name, requirement in claims_of(subject):
        pool = pool_of(subject, requirement)
        if requirement.metric != "gpus_present" or pool is None or requirement.scope.of != "node":
            continue
        each, asked = subject.gpus_per_node(pool), requirement.threshold
        if each is not None and isinstance(asked, float) and asked != each:
            field = f"{path}.{requirement.comparison}"
            yield Hit(field, f"{name} asks {counted(asked, 'GPU')} on a node; nodes of pool {pool} have {each}")


@_TABLE.rule(
    "image-claim-differs",
    Severity.ERROR,
    60,
    why="Acceptance with another image than production proves another image.",
    satisfy="use one digest in workload, software.images and acceptance",
    example="chat-image: {metric: image_digest, equals: sha256:3f1c..., scope: {workload: chat, ...}}",
    source="Clusterwright: scheduled execution is proven for the intended image by digest",
)
def image_differs(subject: Subject) -> Iterator[Hit]:
    """The image that is accepted is not the image of the workload."""
    for path, name, requirement in claims_of(subject):
        workload = subject.workloads.get(requirement.scope.workload or "")
        wanted = requirement.threshold
        if requirement.metric != "image_digest" or workload is None or not workload.image:
            continue
        if isinstance(wanted, str) and "@" in workload.image and workload.image.rpartition("@")[2] != wanted:
            message = f"{name} expects {_short(wanted)}; {requirement.scope.workload} runs {_short(workload.image)}"
            yield Hit(f"{path}.equals", message)
    acceptance = subject.architecture.acceptance
    images = {w.image for w in subject.workloads.values() if w.image}
    if acceptance and acceptance.image and images and acceptance.image not in images:
        message = (
            f"acceptance runs {_short(acceptance.image)}; workloads run {listed(sorted(_short(i) for i in images))}"
        )
        yield Hit("acceptance.image", message)


def _short(image: str) -> str:
    name, _, digest = image.rpartition("sha256:")
    return f"{name}sha256:{digest[:12]}…" if name or digest else image


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
