"""Rules over Kueue quotas that need all queues of an output: cohorts, borrowing, zero quotas, sums.

Observed: `cohort_quota` (subject cohort, flavor, resource) and `cohort_quota_total` (subject cohort, resource), the
cohort's own quota plus those of the queues directly in it; `flavor_quota` (subject flavor, resource) over all queues.
Numbers that stand for "no limit" are left out.

Source: Kueue, Concepts, Cluster Queue and Cohort (the quota of a Cohort is added to that of its members).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from clusterwright.model.observations import Labels, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import is_accelerator, spell, to_value
from clusterwright.readers.kubernetes.queues import Queue, Quota


def report_quotas(queues: Sequence[Queue], builder: RunBuilder) -> None:
    """Observe the sums and say what they and the limits mean."""
    queues = _once(queues, builder)
    cohorts: dict[str, list[Queue]] = {}
    for queue in queues:
        if queue.kind == "Cohort":
            cohorts.setdefault(queue.name, []).append(queue)
        if queue.cohort:
            cohorts.setdefault(queue.cohort, [])
        if queue.cohort and queue.kind == "ClusterQueue":
            cohorts[queue.cohort].append(queue)
    for cohort, members in cohorts.items():
        _tell_cohort(cohort, members, builder)
    for queue in queues:
        _tell_no_limits(queue, builder)
        if queue.kind == "ClusterQueue":
            _tell_zero(queue, builder)
            _tell_queue(queue, queues, builder)
    _tell_flavors(queues, builder)


def _once(queues: Sequence[Queue], builder: RunBuilder) -> list[Queue]:
    seen: dict[tuple[str, str], Queue] = {}
    for queue in queues:
        if queue.name and (queue.kind, queue.name) in seen:
            builder.notice("queue-twice", f"{queue.named} stands more than once; the first counts", line=queue.line)
        else:
            seen[queue.kind, queue.name or str(len(seen))] = queue
    return list(seen.values())


def _sums(quotas: Iterable[Quota]) -> dict[tuple[str, str], Fraction]:
    sums: dict[tuple[str, str], Fraction] = {}
    for quota in quotas:
        if quota.nominal is not None and not quota.no_limit:
            key = quota.flavor, quota.resource
            sums[key] = sums.get(key, Fraction(0)) + quota.nominal
    return sums


def _tell_cohort(cohort: str, members: Sequence[Queue], builder: RunBuilder) -> None:
    both = _sums(quota for queue in members for quota in queue.quotas)
    own = [queue for queue in members if queue.kind == "Cohort"]
    children = [queue for queue in members if queue.kind == "ClusterQueue"]
    totals: dict[str, Fraction] = {}
    for (flavor, resource), number in both.items() if children else ():
        totals[resource] = totals.get(resource, Fraction(0)) + number
        at: Labels = (("cohort", cohort), ("flavor", flavor), ("resource", resource))
        builder.observe("cohort_quota", to_value(resource, number), at)
    for resource, number in totals.items():
        builder.observe("cohort_quota_total", to_value(resource, number), (("cohort", cohort), ("resource", resource)))
    _tell_addition(cohort, own, children, builder)
    _tell_nothing_to_borrow(cohort, children, own, builder)
    if totals and len(children) > 1 and not any(is_accelerator(r) and number for r, number in totals.items()):
        listed = ", ".join(f"{resource} {spell(resource, number)}" for resource, number in totals.items())
        builder.notice("no-gpu-in-cohort", f"cohort {cohort} holds {listed} and no GPU quota")


def _tell_addition(cohort: str, own: Sequence[Queue], children: Sequence[Queue], builder: RunBuilder) -> None:
    """A quota on the Cohort is added to those of its queues; people write the sum there and get twice as much."""
    mine = _sums(quota for queue in own for quota in queue.quotas)
    theirs = _sums(quota for queue in children for quota in queue.quotas)
    for (flavor, resource), number in mine.items():
        if not number:
            continue
        held = theirs.get((flavor, resource), Fraction(0))
        said = spell(resource, number)
        if children:
            suspect = "; the Cohort repeats the sum of its queues" if held == number else ""
            text = (
                f"cohort {cohort}: its own {resource} quota {said} in flavor {flavor} is added to the "
                f"{spell(resource, held)} "
                f"of its {len(children)} queues: {spell(resource, number + held)} can be admitted{suspect}"
            )
        else:
            text = (
                f"cohort {cohort}: Kueue adds its own {resource} quota {said} in flavor {flavor} to the quotas of "
                "its queues "
                f"(not in this output); if {said} was meant as their sum, {spell(resource, 2 * number)} can be admitted"
            )
        builder.notice("cohort-quota-adds", text, line=own[0].line)


def _tell_nothing_to_borrow(cohort: str, children: Sequence[Queue], own: Sequence[Queue], builder: RunBuilder) -> None:
    """A borrowing limit is worth nothing when no other member of the cohort lends."""
    lendable: dict[tuple[str, str], dict[str, Fraction]] = {}
    for queue in (*children, *own):
        for quota in queue.quotas:
            given = quota.nominal or Fraction(0)
            if quota.lend is not None:
                given = min(given, quota.lend)
            lendable.setdefault((quota.flavor, quota.resource), {})[queue.named] = given
    for queue in children:
        for quota in queue.quotas:
            if not quota.borrow or not is_accelerator(quota.resource):
                continue
            others = lendable[quota.flavor, quota.resource]
            if sum((n for name, n in others.items() if name != queue.named), Fraction(0)) == 0:
                builder.notice(
                    "nothing-to-borrow",
                    f"{queue.named} may borrow {spell(quota.resource, quota.borrow)} {quota.resource} in flavor "
                    f"{quota.flavor}; no other member of cohort {cohort} here lends any",
                    line=queue.line,
                )


def _tell_no_limits(queue: Queue, builder: RunBuilder) -> None:
    for quota in queue.quotas:
        if quota.no_limit and quota.nominal is not None:
            builder.notice(
                "quota-no-limit",
                f"{queue.named}: {quota.resource} {spell(quota.resource, quota.nominal)} in flavor {quota.flavor} "
                "stands for "
                "no limit; it is no capacity and is left out of every sum",
                line=queue.line,
            )


def _tell_zero(queue: Queue, builder: RunBuilder) -> None:
    """A covered resource with quota 0 in every flavor blocks whatever asks for it, unless it can be borrowed."""
    for resource in queue.covered:
        found = [quota for quota in queue.quotas if quota.resource == resource]
        if not found or any(quota.nominal != 0 for quota in found):
            continue
        borrows = bool(queue.cohort) and any(quota.borrow is None or quota.borrow > 0 for quota in found)
        flavors = ", ".join(quota.flavor for quota in found[:5])
        if borrows:
            builder.notice(
                "zero-quota-borrows",
                f"{queue.named}: {resource} has quota 0 in {flavors}: only what cohort {queue.cohort} lends can be "
                "used",
                Weight.INFO,
                queue.line,
            )
        else:
            builder.notice(
                "zero-quota",
                f"{queue.named} covers {resource} with quota 0 in {flavors}: a pod that asks for {resource} can "
                "never be "
                "admitted, however many GPUs are free",
                line=queue.line,
            )


def _tell_queue(queue: Queue, queues: Sequence[Queue], builder: RunBuilder) -> None:
    if not queue.cohort and queue.borrows:
        builder.notice(
            "no-cohort",
            f"{queue.named} has no cohort: borrowing is impossible, though it sets {queue.borrows}",
            line=queue.line,
        )
    elif not queue.cohort and queue.quotas:
        builder.notice(
            "no-cohort", f"{queue.named} has no cohort: it neither borrows nor lends", Weight.INFO, queue.line
        )
    if queue.strategy == "StrictFIFO":
        builder.notice(
            "strict-fifo",
            f"{queue.named} is StrictFIFO: a job at its head that does not fit blocks every smaller one behind it",
            line=queue.line,
        )
    if queue.covered and not any(is_accelerator(resource) for resource in queue.covered):
        elsewhere = any(is_accelerator(r) for other in queues if other is not queue for r in other.covered)
        builder.notice(
            "no-gpu-quota",
            f"{queue.named} covers {', '.join(queue.covered)} and no GPU resource: a job that asks for GPUs can "
            "never be "
            "admitted in it",
            Weight.INFO if elsewhere else Weight.WARNING,
            queue.line,
        )


def _tell_flavors(queues: Sequence[Queue], builder: RunBuilder) -> None:
    """Sums of accelerators over every queue, to be compared with what is installed."""
    sums = _sums(quota for queue in queues for quota in queue.quotas)
    for (flavor, resource), number in sums.items():
        builder.observe("flavor_quota", to_value(resource, number), (("flavor", flavor), ("resource", resource)))
        holders = [
            q for q in queues if any(o.flavor == flavor and o.resource == resource and o.nominal for o in q.quotas)
        ]
        if is_accelerator(resource) and number and holders:
            builder.notice(
                "compare-with-installed",
                f"{resource} quotas in flavor {flavor} sum to {spell(resource, number)} over {len(holders)} of "
                f"{len(queues)} queues and cohorts; compare with what is installed",
                Weight.INFO,
            )
    shared = sorted({flavor for flavor, _ in sums if flavor.endswith("-shared")})
    plain = {flavor for flavor, _ in sums}
    for flavor in shared:
        if flavor.removesuffix("-shared") in plain:
            builder.notice(
                "flavors-same-hardware",
                f"flavors {flavor.removesuffix('-shared')} and {flavor} look like the same hardware, whole and "
                "shared: do "
                "not add their quotas",
            )
