"""Kueue Workloads, Volcano PodGroups and provisioning requests: how far each has come, and what it waits for.

Observed (subject workload, namespace): `workload_state` (text: pending, waiting for quota, waiting for checks, quota
reserved, admitted, finished, evicted), `queue`, `admission_check` (subject check; text of its state), `pods_asked`
(subject pod_set), `resource_request` (subject pod_set, resource). Reserved quota is not yet admission.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Labels, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import read_exact, read_resource, to_value
from clusterwright.readers.kubernetes.explaining import tell_message
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.pods import requests_of
from clusterwright.readers.kubernetes.shapes import Fields, dig, rows, table, word

VERSIONS: Final = frozenset({"v1beta1", "v1beta2", ""})


def report_workloads(things: Sequence[Thing], builder: RunBuilder) -> None:
    """Observe every object that waits for something."""
    for thing in things:
        if thing.kind == "Workload" and thing.version in VERSIONS:
            _tell_workload(thing, builder)
        elif thing.kind == "Workload":
            builder.reject(thing.line, f"{thing.group}/{thing.version} Workload {thing.name}", "an unknown API version")
        elif thing.kind == "PodGroup":
            _tell_group(thing, builder)
        elif thing.kind == "ProvisioningRequest":
            _tell_conditions(thing, _subject(thing, "provisioning_request"), builder)


def _subject(thing: Thing, key: str = "workload") -> Labels:
    name = ((key, thing.name),) if thing.name else ()
    return (*name, ("namespace", thing.namespace)) if thing.namespace else name


def _conditions(thing: Thing) -> dict[str, Fields]:
    return {word(row.get("type")): row for row in rows(thing.status.get("conditions"))}


def _tell_workload(thing: Thing, builder: RunBuilder) -> None:
    subject, conditions = _subject(thing), _conditions(thing)
    named = f"workload {thing.name}" if thing.name else "the workload"
    if thing.excerpt:
        builder.missing(f"apiVersion, kind and the other fields of {named}: this is an excerpt")
    queue = word(thing.spec.get("queueName")) or word(dig(thing.status, "admission", "clusterQueue"))
    if queue:
        builder.observe("queue", queue, subject, thing.line)
    _observe_requests(thing, subject, builder)
    checks = {word(row.get("name")): word(row.get("state")) for row in rows(thing.status.get("admissionChecks"))}
    for check, state in checks.items():
        builder.observe("admission_check", state, (*subject, ("check", check)), thing.line)
    state = _state(conditions, checks)
    if state:
        builder.observe("workload_state", state, subject, thing.line)
    else:
        builder.missing(f"the conditions of {named}")
    reserved = conditions.get("QuotaReserved", {})
    if state in ("pending", "waiting for quota", "evicted") and reserved.get("status") == "False":
        tell_message(word(reserved.get("message")), subject, thing.line, builder, waiting=named)
    if state == "waiting for checks":
        waiting = ", ".join(f"{check} ({found})" for check, found in checks.items() if found != "Ready")
        builder.notice(
            "waits-for-admission-check",
            f"{named} has its quota reserved and does not run: it waits for {waiting}; reserved is not admitted",
            line=thing.line,
        )
    elif state == "quota reserved":
        builder.notice(
            "reserved-not-admitted",
            f"{named} has its quota reserved; nothing here says that it is admitted",
            line=thing.line,
        )
    evicted = conditions.get("Evicted", {})
    if evicted.get("status") == "True" and state != "finished":
        said = f"{word(evicted.get('reason'))}: {word(evicted.get('message'))}"
        builder.notice("evicted", f"{named} was evicted ({said})"[:400], line=thing.line)
        if state == "evicted":
            tell_message(word(evicted.get("message")), subject, thing.line, builder, waiting=named)
    if thing.spec.get("active") is False:
        builder.notice("deactivated", f"{named} is deactivated: nothing will admit it", line=thing.line)


def _state(conditions: dict[str, Fields], checks: dict[str, str]) -> str:
    """How far it has come; "" when no condition is there."""
    true = {kind for kind, row in conditions.items() if row.get("status") == "True"}
    if "Finished" in true:
        return "finished"
    if "Admitted" in true:
        return "admitted"
    if "QuotaReserved" in true:
        return "waiting for checks" if any(state != "Ready" for state in checks.values()) else "quota reserved"
    if "Evicted" in true:
        return "evicted"
    if "QuotaReserved" in conditions:
        return "waiting for quota"
    return "pending" if conditions else ""


def _observe_requests(thing: Thing, subject: Labels, builder: RunBuilder) -> None:
    for pods in rows(thing.spec.get("podSets")):
        at = (*subject, ("pod_set", word(pods.get("name")) or "main"))
        count = read_resource("pods", pods.get("count", 1))
        builder.observe("pods_asked", count, at, thing.line)
        for resource, number in requests_of(table(dig(pods, "template", "spec"))).items():
            if isinstance(count, float):
                total = to_value(resource, number * (read_exact(pods.get("count", 1)) or 0))
                builder.observe("resource_request", total, (*at, ("resource", resource)), thing.line)
    asked = thing.status.get("resourceRequests")
    for row in rows(asked) or ([table(asked)] if asked else []):
        at = (*subject, ("pod_set", word(row.get("name")) or "main"))
        for resource, raw in table(row.get("resources")).items():
            name = resource.lower() if resource in ("Memory", "Cpu", "CPU") else resource
            builder.observe("resource_request", read_resource(name, raw), (*at, ("resource", name)), thing.line)


def _tell_group(thing: Thing, builder: RunBuilder) -> None:
    """A PodGroup of Volcano or the coscheduling plugin."""
    subject = _subject(thing, "pod_group")
    least = read_resource("pods", thing.spec.get("minMember"))
    builder.observe("gang_minimum", least, subject, thing.line)
    phase = word(thing.status.get("phase"))
    if phase:
        builder.observe("workload_state", phase.lower(), subject, thing.line)
    conditions = rows(thing.status.get("conditions"))
    latest = max(conditions, key=lambda row: word(row.get("lastTransitionTime")), default={})
    if (
        latest.get("type") == "Unschedulable"
        and latest.get("status") == "True"
        and phase not in ("Running", "Completed")
    ):
        tell_message(word(latest.get("message")), subject, thing.line, builder, waiting=f"pod group {thing.name}")


def _tell_conditions(thing: Thing, subject: Labels, builder: RunBuilder) -> None:
    for kind, row in _conditions(thing).items():
        builder.observe("condition", word(row.get("status")), (*subject, ("type", kind)), thing.line)
        if kind == "Failed" and row.get("status") == "True":
            builder.notice(
                "provisioning-failed",
                f"provisioning request {thing.name} failed: {word(row.get('message'))}"[:400],
                Weight.ERROR,
                thing.line,
            )
