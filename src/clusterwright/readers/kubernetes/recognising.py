"""Which kind of Kubernetes output a text is, by what stands in it and never by its name alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from clusterwright.readers.kubernetes.events import is_header
from clusterwright.readers.kubernetes.listing import table_of
from clusterwright.readers.kubernetes.operators import GPU_KEYS, NETWORK_KEYS, TELLING
from clusterwright.readers.readers import Head

NODE: Final = "k8s-node"
DESCRIBE: Final = "k8s-describe"
PENDING: Final = "k8s-pending"
KUEUE: Final = "k8s-kueue"
DRA: Final = "k8s-dra"
OPERATOR: Final = "k8s-gpu-operator"
PLUGIN: Final = "k8s-device-plugin"

#: Kind of object → kind of output.
FAMILIES: Final[dict[str, str]] = {
    "Node": NODE,
    **dict.fromkeys(("ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "Topology"), KUEUE),
    **dict.fromkeys(("Workload", "PodGroup", "ProvisioningRequest"), PENDING),
    **dict.fromkeys(("ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceClass"), DRA),
    **dict.fromkeys(("ClusterPolicy", "NVIDIADriver", "NicClusterPolicy"), OPERATOR),
}
_APIS: Final = {
    NODE: re.compile(r"(?:^|[\s\"'])v1(?:[\"']|\s|$)"),
    KUEUE: re.compile(r"kueue\.x-k8s\.io/"),
    PENDING: re.compile(
        r"kueue\.x-k8s\.io/|scheduling\.(?:volcano\.sh|x-k8s\.io|incubator\.k8s\.io)/|autoscaling\.x-k8s\.io/"
    ),
    DRA: re.compile(r"resource\.k8s\.io/"),
    OPERATOR: re.compile(r"nvidia\.com/v1|mellanox\.com/v1"),
}
_YAML_KIND: Final = re.compile(r"^(?: {0,4}(?:- )?)kind:\s*[\"']?(?P<kind>[A-Z]\w{2,60})", re.MULTILINE)
_JSON_KIND: Final = re.compile(r'"kind"\s*:\s*"(?P<kind>[A-Z]\w{2,60})"')
_TOP_KEY: Final = re.compile(r"^(?P<key>[A-Za-z][\w-]{1,60}):", re.MULTILINE)
_WAITING: Final = re.compile(
    r"\bFailedScheduling\b|\bUnexpectedAdmissionError\b|nodes are (?:un)?available:|couldn't assign flavors to pod set"
    r"|pod group is not ready|predicate checking error|Final scale-up plan|NotTriggerScaleUp|TriggeredScaleUp"
    r"|Quota reserved in ClusterQueue|QuotaReserved|insufficient (?:unused )?quota (?:in cohort )?for"
)
#: One of these stands in every text that _WAITING finds; looking for them is far quicker.
_HINTS: Final = (
    "FailedScheduling", "UnexpectedAdmissionError", "nodes are ", "couldn't assign", "pod group is",
    "predicate checking", "scale-up plan", "TriggeredScaleUp", "TriggerScaleUp", "Quota", "quota",
)  # fmt: skip
_DESCRIBED: Final = re.compile(
    r"^(?:Allocated resources|Non-terminated Pods|Allocatable|Capacity|System Info|Roles|Non-terminated pods):",
    re.MULTILINE,
)
_TEMPLATE: Final = re.compile(r"\{\{-? ?(?:\.|range|if|include|toYaml|with|define|\$)")


def recogniser(kind: str) -> Callable[[Head], int]:
    """How sure a text is of the kind, as a reader's `recognise`."""
    return lambda head: scores(head.text).get(kind, 0)


@lru_cache(maxsize=4)
def scores(text: str) -> dict[str, int]:
    """How sure a text is of each Kubernetes kind; at most one has the highest score."""
    body = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
    found: dict[str, int] = {}
    objects = _objects(body)
    if objects:
        found.update(dict.fromkeys(objects, 60))
        found[objects.most_common(1)[0][0]] = 88
    for kind, score in (*_texts(body), *_fragments(body, text)):
        found[kind] = max(found.get(kind, 0), score)
    return found


def _objects(body: str) -> Counter[str]:
    """How many objects of each kind of output the text begins with; those inside other objects are left out."""
    stripped = body.lstrip()
    if stripped.startswith("{") and not stripped.startswith("{{"):
        kinds = [match["kind"] for match in _JSON_KIND.finditer(body)] if '"kind"' in body else []
        outer = next((kind for kind in kinds if kind != "List"), "")
        names = [outer.removesuffix("List")]
    else:
        found = _YAML_KIND.finditer(body) if "kind:" in body else ()
        names = [match["kind"].removesuffix("List") for match in found]
    counts = Counter(family for name in names if (family := FAMILIES.get(name)) is not None)
    for family in list(counts):
        if not _APIS[family].search(body):
            del counts[family]
    if "Pod" in names and not counts and ("FailedScheduling" in body or "Unschedulable" in body or '"PodList"' in body):
        counts[PENDING] += 1
    return counts


def _texts(body: str) -> list[tuple[str, int]]:
    """Scores of what is no object: describe, tables, events, logs."""
    found = []
    lines = body.split("\n")
    sections = len(set(_DESCRIBED.findall(body)))
    if sections:
        telling = "\nAllocated resources:" in body or "\nNon-terminated Pods:" in body
        found.append(
            (DESCRIBE, 92 if sections > 1 or telling else 80 if "Allocat" in body or "nvidia.com" in body else 55)
        )
    elif re.search(r"^Containers:[ \t]*$", body, re.MULTILINE) and re.search(r"^Name:[ \t]+\S", body, re.MULTILINE):
        found.append((DESCRIBE, 90))
    waiting = any(hint in body for hint in _HINTS) and _WAITING.search(body) is not None
    header = any(is_header(line) for line in lines if "REASON" in line or "Reason" in line or "reason" in line)
    if not sections and waiting:
        found.append((PENDING, 85 if header else 78))
    elif (
        not sections and header and re.search(r"^[ \t]*+(?:[^\s]++[ \t]++){0,2}(?:Normal|Warning) ", body, re.MULTILINE)
    ):
        found.append((PENDING, 76))
    tables = [table for table in dict.fromkeys(table_of(line) for line in lines) if table]
    for place, table in enumerate(tables):
        kind = {"node": NODE, "gpus": NODE, "queue": KUEUE, "local_queue": KUEUE, "slice": DRA, "claim": DRA}.get(
            table, PENDING
        )
        found.append((kind, max(82 - place, 77)))
    return found


def _fragments(body: str, text: str) -> list[tuple[str, int]]:
    """Scores of excerpts without apiVersion and kind, of configurations and of chart values."""
    found = []
    if "nominalQuota" in body and re.search(r"\bnominalQuota\"?:", body):
        found.append((KUEUE, 86))
    if "kueue.x-k8s.io/" in body and _TEMPLATE.search(body):
        found.append((KUEUE, 90))
    if (
        "allocatable" in body
        and re.search(r"^ *\"?allocatable\"?:|[{,]\s*\"allocatable\"\s*:", body, re.MULTILINE)
        and re.search(r"\"?capacity\"?:|nvidia\.com/", body)
    ):
        found.append((NODE, 72))
    if (
        "nvidia.com/gpu." in body
        and re.search(r"nvidia\.com/gpu\.(?:product|family|memory|count|present)", body)
        and re.search(r"^ *\"?nvidia\.com/(?:gpu|mig)[\w.-]*\"?: ", body, re.MULTILINE)
    ):
        found.append((NODE, 70))
    if "QuotaReserved" in body and re.search(r"^ *(?:- )?conditions:|lastTransitionTime:", body, re.MULTILINE):
        found.append((PENDING, 80))
    if "resource.k8s.io/" in text:
        found.append((DRA, 50))
    found += _configurations(body)
    return found


def _configurations(body: str) -> list[tuple[str, int]]:
    keys = set(_TOP_KEY.findall(body))
    wrapped = ("kind: " in body or "-operator:" in body) and re.search(
        r"^[ \t]*kind: (?:HelmRelease|HelmChart|Application)\b|^(?:gpu|network)-operator:", body, re.MULTILINE
    )
    inner = set(re.findall(r"^ {2,12}([A-Za-z][\w-]{1,60}):", body, re.MULTILINE)) if wrapped else set()
    if keys & TELLING or inner & TELLING:
        return [(OPERATOR, 86 if len((keys | inner) & GPU_KEYS) > 1 else 74)]
    if len((keys | inner) & NETWORK_KEYS) > 1:
        return [(OPERATOR, 80)]
    if "mig-configs:" in body:
        return [(PLUGIN, 84)]
    if "replicas:" in body and re.search(r"\b(?:timeSlicing|mps):", body):
        return [(PLUGIN, 84)]
    if (
        "migStrategy:" in body
        and re.search(r"^[ \t]*migStrategy:", body, re.MULTILINE)
        and re.search(r"^[ \t]*version: [\"']?v1\b", body, re.MULTILINE)
    ):
        return [(PLUGIN, 70)]
    return []
