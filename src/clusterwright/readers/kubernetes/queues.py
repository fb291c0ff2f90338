"""Kueue's quotas: ClusterQueue and Cohort of every version, LocalQueue, and what is in use.

Observed (subject queue or cohort, flavor, resource): `quota`, `borrowing_limit`, `lending_limit` (absent means without
limit), `usage`, `borrowed`, `reserved`; (subject queue): `cohort`, `queueing_strategy`, `stop_policy`, `preemption`
(subject policy), `admission_check`, `pending_workloads`, `admitted_workloads`, `reserving_workloads`, `queue_active`;
(subject local_queue, namespace): `cluster_queue`.

Source: kueue apis/kueue/v1beta1 and v1beta2 (cohort became cohortName), v1alpha1 Cohort (parent became parentName).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import is_no_limit, read_exact, read_resource
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.shapes import Fields, dig, rows, word, words

_VERSIONS: Final = {
    "ClusterQueue": frozenset({"v1beta1", "v1beta2", ""}),
    "Cohort": frozenset({"v1alpha1", "v1beta1", "v1beta2"}),
    "LocalQueue": frozenset({"v1beta1", "v1beta2"}),
}
_COUNTS: Final = {
    "pendingWorkloads": "pending_workloads",
    "admittedWorkloads": "admitted_workloads",
    "reservingWorkloads": "reserving_workloads",
}


@dataclass(frozen=True, slots=True)
class Quota:
    """One nominal quota.

    Args:
        nominal: None when it is unreadable.
        no_limit: whether the number only stands for "no limit".
        borrow: borrowing limit, None without one.
        lend: lending limit, None without one.
    """

    flavor: str
    resource: str
    nominal: Fraction | None
    no_limit: bool = False
    borrow: Fraction | None = None
    lend: Fraction | None = None


@dataclass(slots=True)
class Queue:
    """A ClusterQueue or a Cohort.

    Args:
        covered: resources that it covers, in order.
        borrows: whether flavorFungibility or a limit shows that its author expects borrowing.
    """

    kind: str
    name: str
    cohort: str = ""
    strategy: str = ""
    covered: list[str] = field(default_factory=list)
    quotas: list[Quota] = field(default_factory=list)
    borrows: str = ""
    line: int = 0

    @property
    def named(self) -> str:
        """Its kind and name for people."""
        return f"{self.kind} {self.name}" if self.name else f"the {self.kind}"


def read_queues(things: Sequence[Thing], builder: RunBuilder) -> list[Queue]:
    """Observe every queue, cohort and local queue; the quotas for the rules over all of them."""
    queues: list[Queue] = []
    for thing in things:
        known = _VERSIONS.get(thing.kind)
        if known is None:
            continue
        if thing.version not in known or _is_first_layout(thing):
            text = f"{thing.group}/{thing.version} {thing.kind} {thing.name}"
            builder.reject(thing.line, text, f"an API version whose layout is not known; known are {_spell(known)}")
        elif thing.kind == "LocalQueue":
            _observe_local(thing, builder)
        else:
            queues.append(_read_queue(thing, builder))
    return queues


def _spell(versions: Iterable[str]) -> str:
    return ", ".join(sorted(version for version in versions if version))


def _is_first_layout(thing: Thing) -> bool:
    """Whether it is the layout before resource groups (Kueue 0.1 and 0.2)."""
    return "resources" in thing.spec and "resourceGroups" not in thing.spec


def _read_queue(thing: Thing, builder: RunBuilder) -> Queue:
    spec = thing.spec
    queue = Queue(thing.kind, thing.name, line=thing.line)
    keys = ("cohort", "cohortName") if thing.kind == "ClusterQueue" else ("parent", "parentName")
    queue.cohort = next((word(spec.get(key)) for key in keys if word(spec.get(key))), "")
    queue.strategy = word(spec.get("queueingStrategy"))
    if thing.excerpt:
        builder.missing(f"apiVersion, kind and name of the {thing.kind}: this is an excerpt")
    elif not spec:
        builder.missing(f"the spec of {queue.named}")
    elif "resourceGroups" not in spec and thing.kind == "ClusterQueue":
        builder.notice("no-quota", f"{queue.named} has no resourceGroups: it admits nothing", line=thing.line)
    subject = _subject(queue)
    seen: dict[str, int] = {}
    for position, group in enumerate(rows(spec.get("resourceGroups")), 1):
        covered = words(group.get("coveredResources"))
        for resource in covered:
            if seen.setdefault(resource, position) != position:
                builder.notice(
                    "resource-in-two-groups",
                    f"{queue.named} covers {resource} in groups {seen[resource]} and {position}; Kueue allows one",
                    Weight.ERROR,
                    thing.line,
                )
        queue.covered += [resource for resource in covered if resource not in queue.covered]
        for flavor in rows(group.get("flavors")):
            queue.quotas.extend(_read_flavor(queue, flavor, covered, subject, builder))
    queue.borrows = _expects_borrowing(spec, queue)
    _observe_policies(thing, queue, subject, builder)
    _observe_status(thing, subject, builder)
    return queue


def _subject(queue: Queue) -> Labels:
    key = "queue" if queue.kind == "ClusterQueue" else "cohort"
    return ((key, queue.name),) if queue.name else ()


def _read_flavor(
    queue: Queue, flavor: Fields, covered: list[str], subject: Labels, builder: RunBuilder
) -> Iterator[Quota]:
    name = word(flavor.get("name")) or "(unnamed)"
    found = rows(flavor.get("resources"))
    listed = [word(row.get("name")) for row in found]
    if sorted(listed) != sorted(covered):
        builder.notice(
            "resources-differ",
            f"{queue.named}: flavor {name} has quotas for {', '.join(listed) or 'nothing'}, its group covers "
            f"{', '.join(covered) or 'nothing'}; Kueue wants the same resources in the same order",
            Weight.ERROR,
            queue.line,
        )
    for row in found:
        resource = word(row.get("name"))
        at = (*subject, ("flavor", name), ("resource", resource))
        raw = row.get("nominalQuota")
        builder.observe("quota", read_resource(resource, raw), at, queue.line)
        for key, name_of_limit in (("borrowingLimit", "borrowing_limit"), ("lendingLimit", "lending_limit")):
            limit = row.get(key)
            value = NoValue(Lack.ABSENT, why="no limit is set") if limit is None else read_resource(resource, limit)
            builder.observe(name_of_limit, value, at, queue.line)
        yield Quota(
            name,
            resource,
            read_exact(raw),
            is_no_limit(resource, raw),
            read_exact(row.get("borrowingLimit")),
            read_exact(row.get("lendingLimit")),
        )


def _expects_borrowing(spec: Fields, queue: Queue) -> str:
    """What shows that the author expects borrowing, "" if nothing does."""
    if any(quota.borrow for quota in queue.quotas):
        return "a borrowingLimit"
    policy = word(dig(spec, "preemption", "borrowWithinCohort", "policy"))
    if policy not in ("", "Never"):
        return f"borrowWithinCohort {policy}"
    reclaim = word(dig(spec, "preemption", "reclaimWithinCohort"))
    if reclaim not in ("", "Never"):
        return f"reclaimWithinCohort {reclaim}"
    fungible = word(dig(spec, "flavorFungibility", "whenCanBorrow"))
    # Borrow, MayStopSearch since 0.15, is what the API server fills in.
    return f"flavorFungibility.whenCanBorrow {fungible}" if fungible not in ("", "Borrow", "MayStopSearch") else ""


def _observe_policies(thing: Thing, queue: Queue, subject: Labels, builder: RunBuilder) -> None:
    spec, line = thing.spec, thing.line
    if queue.cohort:
        builder.observe("cohort" if thing.kind == "ClusterQueue" else "parent_cohort", queue.cohort, subject, line)
    if queue.strategy:
        builder.observe("queueing_strategy", queue.strategy, subject, line)
    for path, value in (
        ("withinClusterQueue", dig(spec, "preemption", "withinClusterQueue")),
        ("reclaimWithinCohort", dig(spec, "preemption", "reclaimWithinCohort")),
        ("borrowWithinCohort", dig(spec, "preemption", "borrowWithinCohort", "policy")),
    ):
        if word(value):
            builder.observe("preemption", word(value), (*subject, ("policy", path)), line)
    weight = dig(spec, "fairSharing", "weight")
    if weight is not None:
        builder.observe("fair_share_weight", read_resource("weight", weight), subject, line)
    checks = words(spec.get("admissionChecks"))
    checks += [word(row.get("name")) for row in rows(dig(spec, "admissionChecksStrategy", "admissionChecks"))]
    for check in checks:
        builder.observe("admission_check", check, subject, line)
    stop = word(spec.get("stopPolicy"))
    if stop:
        builder.observe("stop_policy", stop, subject, line)
    if stop in ("Hold", "HoldAndDrain"):
        builder.notice("queue-held", f"{queue.named} is stopped ({stop}): it admits nothing", Weight.WARNING, line)


def _observe_status(thing: Thing, subject: Labels, builder: RunBuilder) -> None:
    status, line = thing.status, thing.line
    for key, name in _COUNTS.items():
        if key in status:
            builder.observe(name, read_resource("workloads", status[key]), subject, line)
    for key, name in (("flavorsUsage", "usage"), ("flavorsReservation", "reserved")):
        for flavor in rows(status.get(key)):
            for row in rows(flavor.get("resources")):
                resource = word(row.get("name"))
                at = (*subject, ("flavor", word(flavor.get("name"))), ("resource", resource))
                builder.observe(name, read_resource(resource, row.get("total", 0)), at, line)
                if name == "usage" and row.get("borrowed") not in (None, "0", 0):
                    builder.observe("borrowed", read_resource(resource, row.get("borrowed")), at, line)
    for condition in rows(status.get("conditions")):
        if condition.get("type") == "Active":
            active = condition.get("status") == "True"
            builder.observe("queue_active", active, subject, line)
            if not active:
                builder.notice(
                    "queue-inactive",
                    f"{thing.kind} {thing.name} is not active ({word(condition.get('reason'))}): "
                    f"{word(condition.get('message'))}",
                    Weight.ERROR,
                    line,
                )


def _observe_local(thing: Thing, builder: RunBuilder) -> None:
    space = (("namespace", thing.namespace),) if thing.namespace else ()
    subject = (("local_queue", thing.name), *space)
    target = word(thing.spec.get("clusterQueue"))
    builder.observe("cluster_queue", target or NoValue(Lack.ABSENT), subject, thing.line)
    stop = word(thing.spec.get("stopPolicy"))
    if stop in ("Hold", "HoldAndDrain"):
        builder.notice("queue-held", f"LocalQueue {thing.name} is stopped ({stop}): it admits nothing", line=thing.line)
    _observe_status(thing, subject, builder)


def tell_references(things: Sequence[Thing], builder: RunBuilder) -> None:
    """Name queues and flavors that are referred to and do not stand beside their kind in the output."""
    names: dict[str, set[str]] = {}
    for thing in things:
        names.setdefault(thing.kind, set()).add(thing.name)
    for thing in things:
        target = word(thing.spec.get("clusterQueue"))
        if thing.kind == "LocalQueue" and names.get("ClusterQueue") and target not in names["ClusterQueue"]:
            builder.notice(
                "queue-not-here",
                f"LocalQueue {thing.name} refers to ClusterQueue {target}, which is not here",
                Weight.INFO,
            )
        if thing.kind not in ("ClusterQueue", "Cohort") or "ResourceFlavor" not in names:
            continue
        for group in rows(thing.spec.get("resourceGroups")):
            lost = [word(f.get("name")) for f in rows(group.get("flavors"))]
            for flavor in [name for name in lost if name not in names["ResourceFlavor"]]:
                builder.notice(
                    "flavor-not-here", f"{thing.kind} {thing.name} uses flavor {flavor}, which is not here", Weight.INFO
                )


def tell_comments(comments: Iterable[tuple[int, str]], builder: RunBuilder) -> None:
    """Repeat what the author wrote beside a quota: it often says that the number is a guess."""
    for line, text in comments:
        key, _, comment = text.partition("#")
        if "uota:" in key and comment.strip():
            builder.notice("quota-comment", f"beside {key.strip()} stands: {comment.strip()[:160]}", Weight.INFO, line)
