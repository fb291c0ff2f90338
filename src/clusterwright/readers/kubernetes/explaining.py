"""Why something waits: messages of kube-scheduler, Kueue, Volcano, kubelet, autoscalers → reasons with numbers.

Observed (subject of the caller, resource, flavor, pod_set): `pending_reason` (one of the codes below) with
`nodes_affected`, `needed`, `requested`, `limit`, `nodes_total`, `nodes_feasible` where the message has the number.

Source: kubernetes pkg/scheduler/framework/types.go (FitError) and plugins; kueue pkg/scheduler/flavorassigner and
pkg/workload; volcano pkg/scheduler/api/unschedule_info.go; kubelet pkg/kubelet/cm/devicemanager; NVIDIA
k8s-device-plugin internal/plugin/server.go; kubernetes/autoscaler clusterstate and eventing_scale_up_processor.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from clusterwright.model.observations import Labels, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.kubernetes.amounts import is_accelerator, read_resource
from clusterwright.readers.refusing import shorten

_LONGEST: Final = 8192
_AVAILABLE: Final = re.compile(r"(?P<fit>\d{1,7})/(?P<all>\d{1,7}) nodes are (?:un)?available:?")
_OLD: Final = re.compile(r"No nodes are available that match all of the (?:following )?predicates:+\s*")
_COUNTED: Final = re.compile(r"\s*(?P<count>\d{1,7}) (?P<what>.+)")
_OLD_COUNTED: Final = re.compile(r"\s*+(?P<what>\S.*?) \((?P<count>\d{1,7})\)")

#: Taints that the control plane sets on nodes that are out.
_LOST: Final = re.compile(
    r"node\.kubernetes\.io/(unreachable|not-ready|out-of-service)|node\.cloudprovider\.\S{1,40}/(shutdown)"
)
#: (code, what the scheduler says); the first that matches counts.
_SCHEDULER: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("insufficient-resource", re.compile(r"Insufficient (?P<resource>[\w./-]+)")),
    ("untolerated-taint", re.compile(r"(?:node\(s\) )?had (?:untolerated )?taints? ?\{|PodToleratesNodeTaints|taint")),
    (
        "node-selector",
        re.compile(r"didn't match (?:Pod's )?node (?:affinity|selector)|MatchNodeSelector|match node selector"),
    ),
    ("pod-affinity", re.compile(r"pod (?:anti-)?affinity|affinity/anti-affinity|MatchInterPodAffinity")),
    ("topology-spread", re.compile(r"topology spread")),
    ("node-unschedulable", re.compile(r"(?:were|was) unschedulable|NodeUnschedulable")),
    ("node-not-ready", re.compile(r"not ready|NodeNotReady")),
    ("too-many-pods", re.compile(r"Too many pods")),
    ("no-port", re.compile(r"free ports|PodFitsHostPorts")),
    ("volume", re.compile(r"[Vv]olume|PersistentVolume|persistentvolume")),
    ("device-claim", re.compile(r"resourceclaim|cannot allocate all claims|DynamicResources|claim")),
    ("no-victims", re.compile(r"No preemption victims|Preemption is not helpful")),
)
_QUOTA: Final = re.compile(
    r"insufficient (?P<unused>unused )?quota (?:in cohort )?for (?P<resource>[\w./-]+) in flavor (?P<flavor>[\w.-]+)"
    r"(?:, (?P<needed>[\w.]+) more needed"
    r"|, request > maximum capacity \((?P<asked>[\w.]+) > (?P<most>[\w.]+)\)"
    r"|, previously considered podsets requests \((?P<before>[\w.]+)\) \+ current podset request "
    r"\((?P<current>[\w.]+)\)"
    r" > maximum capacity \((?P<ceiling>[\w.]+)\))?"
)
_POD_SET: Final = re.compile(r"couldn't assign flavors to pod set (?P<set>[\w.-]+):")
_TOPOLOGY: Final = re.compile(
    r'topology "(?P<name>[^"]{1,120})" (?:doesn\'t allow to fit any of (?P<all>\d{1,7})'
    r"|allows to fit only (?P<fit>\d{1,7}) out of (?P<of>\d{1,7})) pod"
)
_GANG: Final = re.compile(
    r"(?:(?P<tasks>\d{1,7})/(?P<of>\d{1,7}) tasks in gang unschedulable: )?pod group is not "
    r"ready,(?P<rest>[^.;]{0,200}?)"
    r"(?P<least>\d{1,7}) minAvailable"
)
_SHARED: Final = re.compile(
    r"request for '(?P<resource>[\w./-]+): (?P<asked>\d{1,7})' too large: maximum request size for shared resources is "
    r"(?P<most>\d{1,7})"
)
_UNAVAILABLE: Final = re.compile(
    r"requested number of devices unavailable for (?P<resource>[\w./-]+)\. Requested: (?P<asked>\d{1,7}), "
    r"Available: (?P<left>\d{1,7})"
)
_NAMESPACE: Final = re.compile(
    r"exceeded quota: (?P<name>[\w.-]+), requested: (?P<asked>[^\n]{1,300}?), used: (?P<used>[^\n]{1,300}?), "
    r"limited: (?P<most>[^\n]{1,300})"
)
#: Other sentences: code, pattern, weight, what it means.
_SENTENCES: Final[tuple[tuple[str, re.Pattern[str], str], ...]] = (
    (
        "resource-not-covered",
        re.compile(r"resource (?P<resource>[\w./-]+) unavailable in ClusterQueue"),
        "the queue covers no such resource: it can never be admitted there",
    ),
    (
        "borrowing-limit",
        re.compile(r"borrowing limit for (?P<resource>[\w./-]+) in flavor (?P<flavor>[\w.-]+) exceeded"),
        "the borrowing limit holds it back",
    ),
    ("queue-inactive", re.compile(r"(?:ClusterQueue|LocalQueue) [\w.-]+ is inactive"), "its queue admits nothing"),
    ("queue-missing", re.compile(r"(?:ClusterQueue|LocalQueue) [\w.-]+ doesn't exist"), "its queue does not exist"),
    ("flavor-mismatch", re.compile(r"flavor [\w.\"-]+ doesn't match node affinity"), "its selector fits no flavor"),
    ("untolerated-taint", re.compile(r"untolerated taint [^ ]{1,200} in flavor"), "it lacks a toleration"),
    ("preempting", re.compile(r"Pending the preemption of \d+ workload"), "it waits until others are preempted"),
    ("pods-not-ready", re.compile(r"Exceeded the PodsReady timeout"), "its pods did not start in time"),
    ("deactivated", re.compile(r"[Ww]orkload is deactivated"), "it is deactivated: nothing will admit it"),
    ("queue-full", re.compile(r"queue resource quota insufficient"), "its Volcano queue is full"),
    ("gang-timeout", re.compile(r"rejected due to timeout after waiting"), "its gang was not complete in time"),
    (
        "group-at-maximum",
        re.compile(r"max node group size reached|max cluster (?:cpu|memory|gpu)s? limit|max node count reached"),
        "the autoscaler's group is at its maximum",
    ),
    ("no-scale-up", re.compile(r"didn't trigger scale-up"), "no node group of the autoscaler would help"),
    (
        "no-node-pool",
        re.compile(r"incompatible with nodepool|no instance type (?:satisfied|which)"),
        "Karpenter has no instance type for it",
    ),
    ("numa-affinity", re.compile(r"Resources cannot be allocated with Topology locality|TopologyAffinityError"),
     "kubelet's topology manager finds no NUMA alignment on the node"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason in a message.

    Args:
        numbers: observations that belong to it, as (name, text of the amount).
        meaning: a sentence for people, "" where the code says it all.
    """

    code: str
    resource: str = ""
    flavor: str = ""
    pod_set: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    meaning: str = ""
    weight: Weight = Weight.WARNING


@lru_cache(maxsize=256)
def explain(message: str) -> tuple[Reason, ...]:
    """The reasons in a message, in order; none when nothing in it is known."""
    text = " ".join(message[:_LONGEST].split())
    return (*_scheduler(text), *_kueue(text), *_others(text))


def tell_message(message: str, subject: Labels, line: int, builder: RunBuilder, *, waiting: str) -> tuple[Reason, ...]:
    """Observe the reasons in a message and say what they mean.

    Args:
        waiting: who waits, for the notices.
    """
    reasons = explain(message)
    for reason in reasons:
        labels = [*subject]
        for key, word in (("resource", reason.resource), ("flavor", reason.flavor), ("pod_set", reason.pod_set)):
            if word:
                labels.append((key, word))
        builder.observe("pending_reason", reason.code, tuple(labels), line)
        for name, amount in reason.numbers:
            counted = "nodes" if name.startswith("nodes_") else reason.resource
            builder.observe(name, read_resource(counted, amount), tuple(labels), line)
        if reason.meaning:
            builder.notice(reason.code, f"{waiting}: {reason.meaning}", reason.weight, line)
    if message.strip() and not reasons:
        builder.observe("pending_message", shorten(message, 300), subject, line)
    return reasons


def _scheduler(text: str) -> list[Reason]:
    found = _AVAILABLE.search(text) or _OLD.search(text)
    if found is None:
        return []
    body = text[found.end() :].split(" preemption: ")[0].strip(" .")
    totals: tuple[tuple[str, str], ...] = ()
    feasible = total = None
    if found.re is _AVAILABLE:
        feasible, total = int(found["fit"]), int(found["all"])
        totals = (("nodes_feasible", found["fit"]), ("nodes_total", found["all"]))
    reasons = []
    for count, what in _counted(body):
        code, resource = _classify(what)
        meaning = _scheduler_meaning(code, resource, what, count, total)
        numbers = (("nodes_affected", str(count)), *totals)
        reasons.append(Reason(code, resource, numbers=numbers, meaning=meaning))
    if feasible is not None and not reasons:
        reasons.append(
            Reason("no-node", numbers=totals, meaning=f"{feasible} of {total} nodes fit, no reason is given")
        )
    return reasons


def _counted(body: str) -> list[tuple[int, str]]:
    """(nodes, reason) of every part; commas inside a reason or its braces do not divide."""
    parts: list[str] = []
    for piece in re.split(r"[,.] ", body):
        if parts and not re.match(r"\s*\d+ \S", piece) and not _OLD_COUNTED.fullmatch(piece):
            parts[-1] += ", " + piece
        else:
            parts.append(piece)
    counted = []
    for part in parts:
        match = _COUNTED.fullmatch(part) or _OLD_COUNTED.fullmatch(part)
        if match is not None:
            counted.append((int(match["count"]), match["what"].strip()))
    return counted


def _classify(what: str) -> tuple[str, str]:
    for code, pattern in _SCHEDULER:
        if (match := pattern.search(what)) is not None:
            return code, match.groupdict().get("resource") or ""
    return "scheduler-other", ""


def _scheduler_meaning(code: str, resource: str, what: str, count: int, total: int | None) -> str:
    of = f"{count} of {total} nodes" if total is not None else f"{count} nodes"
    if code == "insufficient-resource":
        every = total is not None and count == total
        hint = ""
        if every and is_accelerator(resource):
            hint = (
                "; if the nodes have GPUs, either pods hold them all or nothing advertises them (driver or device "
                "plugin): "
                "compare allocatable with the requests"
            )
        return f"{of} have too little free {resource}{hint}"
    if code == "untolerated-taint":
        if (lost := _LOST.search(what)) is not None:
            return f"{of} are {lost[1] or lost[2]}: the nodes themselves are out, no toleration helps ({shorten(what)})"
        return f"{of} carry a taint that it does not tolerate: {shorten(what)}"
    if code == "no-victims":
        return ""
    return f"{of}: {shorten(what)}"


def _kueue(text: str) -> list[Reason]:
    sets = [(match.start(), match["set"]) for match in _POD_SET.finditer(text)]
    reasons = []
    for match in _QUOTA.finditer(text):
        pod_set = next((name for start, name in reversed(sets) if start < match.start()), "")
        reasons.append(_quota(match, pod_set))
    for match in _TOPOLOGY.finditer(text):
        fit, wanted = match["fit"] or "0", match["all"] or match["of"]
        meaning = f"topology {match['name']} fits {fit} of {wanted} pods together; quota alone does not help"
        numbers = (("pods_fitting", fit), ("pods_wanted", wanted))
        reasons.append(Reason("topology-does-not-fit", numbers=numbers, meaning=meaning))
    return reasons


def _quota(match: re.Match[str], pod_set: str) -> Reason:
    resource, flavor = match["resource"], match["flavor"]
    asked, most = match["asked"], match["most"] or match["ceiling"]
    if match["unused"]:
        needed = match["needed"]
        more = f", {needed} more needed" if needed else ""
        numbers = (("needed", needed),) if needed else ()
        meaning = f"waits for {resource} in flavor {flavor} that others use now{more}; it fits once they are done"
        return Reason("quota-in-use", resource, flavor, pod_set, numbers, meaning)
    said = f" ({asked} > {most})" if asked else ""
    if match["before"]:
        said = f" ({match['before']} + {match['current']} > {most})"
    pairs = (("requested", asked or match["current"]), ("limit", most))
    limits = tuple((name, number) for name, number in pairs if number)
    meaning = (
        f"asks for more {resource} than the whole quota of flavor {flavor} can ever give{said}: it is never admitted "
        "as it is"
    )
    return Reason("quota-too-small", resource, flavor, pod_set, limits, meaning, Weight.ERROR)


def _others(text: str) -> list[Reason]:
    reasons = []
    if (gang := _GANG.search(text)) is not None:
        meaning = f"its gang needs {gang['least']} pods at once and is not complete ({shorten(gang.group(), 160)})"
        reasons.append(Reason("gang-incomplete", numbers=(("gang_minimum", gang["least"]),), meaning=meaning))
    if (shared := _SHARED.search(text)) is not None:
        meaning = (
            f"asks for {shared['asked']} {shared['resource']}, which is shared by time-slicing or MPS: at most "
            f"{shared['most']} a pod; more shares would give no more GPU"
        )
        numbers = (("requested", shared["asked"]), ("limit", shared["most"]))
        reasons.append(
            Reason(
                "shared-request-too-large", shared["resource"], numbers=numbers, meaning=meaning, weight=Weight.ERROR
            )
        )
    if (gone := _UNAVAILABLE.search(text)) is not None:
        meaning = (
            f"kubelet found {gone['left']} of {gone['asked']} {gone['resource']} healthy and free, though the "
            "scheduler had "
            "placed it there: a device failed or is held twice"
        )
        numbers = (("requested", gone["asked"]), ("available", gone["left"]))
        reasons.append(
            Reason("devices-unavailable", gone["resource"], numbers=numbers, meaning=meaning, weight=Weight.ERROR)
        )
    if (space := _NAMESPACE.search(text)) is not None:
        meaning = (
            f"ResourceQuota {space['name']} is full: requested {shorten(space['asked'])}, used "
            f"{shorten(space['used'])}, "
            f"limited {shorten(space['most'])}"
        )
        reasons.append(Reason("namespace-quota", meaning=meaning))
    for code, pattern, meaning in _SENTENCES:
        if (match := pattern.search(text)) is not None:
            found = match.groupdict()
            said = f"{meaning} ({shorten(match.group())})"
            reasons.append(Reason(code, found.get("resource") or "", found.get("flavor") or "", meaning=said))
    return reasons
