"""DRA claims, their templates and device classes: what is asked for, and what was given.

Observed (subject claim or claim_template, namespace, request): `devices_requested` (a count, absent for *all*),
`device_class`; (subject claim): `device_allocated` (text; subject driver, pool, device), `claim_allocated`; (subject
class): `extended_resource`, `class_selector`.

Source: k8s.io/api/resource, v1alpha1 and v1alpha2 (classes and parameters in other objects, removed in Kubernetes
1.31), v1alpha3, v1beta1, v1beta2, v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.model.observations import Labels, Lack, NoValue
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import is_accelerator, read_resource
from clusterwright.readers.kubernetes.manifests import Thing
from clusterwright.readers.kubernetes.shapes import Fields, dig, rows, table, word

_CLASSIC: Final = frozenset({"v1alpha1", "v1alpha2"})
_VERSIONS: Final = frozenset({"v1alpha3", "v1beta1", "v1beta2", "v1"})


def report_claims(things: Sequence[Thing], builder: RunBuilder) -> None:
    """Observe claims, templates and classes."""
    classic = [t for t in things if t.version in _CLASSIC and t.kind.startswith("ResourceClaim")]
    for thing in things:
        if thing.version not in _VERSIONS | _CLASSIC and thing.group == "resource.k8s.io":
            builder.reject(
                thing.line, f"{thing.group}/{thing.version} {thing.kind} {thing.name}", "an unknown API version"
            )
        elif thing.kind in ("ResourceClaim", "ResourceClaimTemplate"):
            _tell_claim(thing, builder)
        elif thing.kind == "DeviceClass":
            _tell_class(thing, builder)
        elif thing.kind == "ResourceClass":
            builder.observe("class_driver", word(thing.body.get("driverName")), (("class", thing.name),), thing.line)
    if classic:
        versions = ", ".join(sorted({thing.version for thing in classic}))
        builder.notice(
            "api-removed",
            f"{len(classic)} claims use resource.k8s.io/{versions}, which Kubernetes 1.31 removed; what they ask "
            "for stands "
            "in parameter objects that are not claims: the number of devices is not known from them",
        )


def _subject(thing: Thing) -> Labels:
    key = "claim" if thing.kind == "ResourceClaim" else "claim_template"
    space = (("namespace", thing.namespace),) if thing.namespace else ()
    return ((key, thing.name or "(unnamed)"), *space)


def _tell_claim(thing: Thing, builder: RunBuilder) -> None:
    subject = _subject(thing)
    spec = thing.spec if thing.kind == "ResourceClaim" else table(thing.spec.get("spec"))
    if thing.version in _CLASSIC:
        parameters = table(spec.get("parametersRef"))
        where = f"in {word(parameters.get('kind'))} {word(parameters.get('name'))}" if parameters else "not given"
        builder.observe("device_class", word(spec.get("resourceClassName")), subject, thing.line)
        builder.observe("devices_requested", NoValue(Lack.ABSENT, why=where), subject, thing.line)
    else:
        found = list(_requests(spec))
        if not found:
            builder.missing(f"the requests of {thing.kind} {thing.name}")
        for name, request in found:
            at = (*subject, ("request", name))
            builder.observe("device_class", word(request.get("deviceClassName")), at, thing.line)
            if request.get("allocationMode") == "All":
                builder.observe("devices_requested", NoValue(Lack.ABSENT, "All", "every device that matches"), at)
            else:
                count = read_resource("devices", request.get("count", 1))
                builder.observe("devices_requested", count, at, thing.line)
    if thing.kind == "ResourceClaim":
        _tell_allocation(thing, subject, builder)


def _requests(spec: Fields) -> Iterator[tuple[str, Fields]]:
    """(name, exact request) of every request; the alternatives of one are named request/alternative."""
    for request in rows(dig(spec, "devices", "requests")):
        name = word(request.get("name"))
        alternatives = rows(request.get("firstAvailable"))
        if alternatives:
            for alternative in alternatives:
                yield f"{name}/{word(alternative.get('name'))}", alternative
        else:
            yield name, table(request.get("exactly")) or request


def _tell_allocation(thing: Thing, subject: Labels, builder: RunBuilder) -> None:
    allocation = table(thing.status.get("allocation"))
    if not allocation:
        if thing.dumped:
            builder.observe("claim_allocated", False, subject, thing.line)
        return
    builder.observe("claim_allocated", True, subject, thing.line)
    for result in rows(dig(allocation, "devices", "results")):
        where = [(key, word(result.get(key))) for key in ("driver", "pool", "request")]
        at = (*subject, *((key, text) for key, text in where if text))
        builder.observe("device_allocated", word(result.get("device")), at, thing.line)


def _tell_class(thing: Thing, builder: RunBuilder) -> None:
    subject = (("class", thing.name),)
    for selector in rows(thing.spec.get("selectors")):
        builder.observe("class_selector", word(dig(selector, "cel", "expression")), subject, thing.line)
    resource = word(thing.spec.get("extendedResourceName"))
    if resource:
        builder.observe("extended_resource", resource, subject, thing.line)
        builder.notice(
            "served-by-dra",
            f"DeviceClass {thing.name} serves {resource} through DRA: do not add what a device plugin counts under "
            "the same "
            "name",
            line=thing.line,
        )


def tell_extended_pods(pods: Sequence[Thing], text: str, builder: RunBuilder) -> None:
    """Where pods ask for a plain device resource in a text about DRA: who serves it is not in the pod."""
    if "extendedResourceName" not in text and "DRAExtendedResource" not in text:
        return
    for pod in pods:
        for container in rows(pod.spec.get("containers")):
            for resource in table(dig(container, "resources", "limits")):
                if is_accelerator(resource):
                    builder.notice(
                        "served-by-dra",
                        f"pod {pod.name} asks for {resource} without a claim; with extended resources of DRA its "
                        "claim is made "
                        "by the scheduler: do not add what a device plugin counts under the same name",
                        line=pod.line,
                    )
