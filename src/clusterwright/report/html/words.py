"""How outcomes, origins, thresholds and times are written in the report, in words that can be pasted into a ticket."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from clusterwright.lib.figures import Origin
from clusterwright.lib.quantities import Quantity
from clusterwright.model.acceptance import Requirement, Scope
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Outcome, RehearsalOutcome
from clusterwright.report.html.elements import Html, h

#: Outcome → (class of its colour, icon).
OUTCOMES: Final[dict[Outcome, tuple[str, str]]] = {
    Outcome.MET: ("good", "✓"),
    Outcome.NOT_MET: ("bad", "✕"),
    Outcome.NOT_MEASURED: ("open", "○"),
    Outcome.NOT_APPLICABLE: ("none", "–"),
}
REHEARSALS: Final[dict[RehearsalOutcome, tuple[str, str]]] = {
    RehearsalOutcome.PASSED: ("virtual", "✓"),
    RehearsalOutcome.FAILED: ("bad", "✕"),
    RehearsalOutcome.NOT_RUN: ("none", "–"),
}
#: Claim class → (title, what it says).
CLAIMS: Final[dict[str, tuple[str, str]]] = {
    "hardware-health": ("Hardware health", "every expected device is present and has no unresolved fault"),
    "data-path": ("Data path", "GPU, NIC, switch and storage paths carry their load at once"),
    "scheduled-execution": (
        "Scheduled execution",
        "the production scheduler starts the right image on the right devices",
    ),
    "workload-and-recovery": ("Workload and recovery", "the application meets its targets, also after a failure"),
}
EXITS: Final[dict[int, str]] = {
    0: "every required claim is met and no rule fails",
    1: "a requirement is not met or a rule fails",
    2: "the input could not be read",
    3: "incomplete: something required was not measured, is stale or unknown",
    4: "drift: what was observed differs from what is declared",
    130: "stopped before the end",
}
_SIGNS: Final = {"at_least": "≥", "at_most": "≤", "equals": "="}
_METRICS: Final = {
    "gpus_present": "GPUs present",
    "dcgm_failures": "DCGM failures",
    "xid_errors": "Xid errors",
    "ecc_uncorrected": "uncorrected ECC errors",
    "nvlink_down": "NVLinks down",
    "ib_links_up": "InfiniBand links up",
    "rdma_write": "RDMA write rate",
    "gpudirect_rdma_write": "GPUDirect RDMA write rate",
    "mfu": "MFU",
}


def outcome_word(outcome: Outcome) -> Html:
    """The outcome with icon and colour."""
    colour, icon = OUTCOMES[outcome]
    return h("span", h("span", icon, aria_hidden="true"), outcome.value, cls=f"outcome {colour}")


def rehearsal_word(outcome: RehearsalOutcome) -> Html:
    """The outcome of a rehearsal with icon and colour; never the green of a met claim."""
    colour, icon = REHEARSALS[outcome]
    return h("span", h("span", icon, aria_hidden="true"), outcome.value, cls=f"outcome {colour}")


def origin_badge(origin: Origin) -> Html:
    """The origin as a word in a line that is the more solid the stronger it is."""
    return h("span", origin.word, cls=f"origin {origin.word}")


def metric_words(metric: str) -> str:
    """A metric's key as people say it: `ttft_p95` is TTFT p95."""
    if metric in _METRICS:
        return _METRICS[metric]
    words = metric.split("_")
    return " ".join(w.upper() if w in ("ttft", "tpot", "gpu") else w for w in words)


def threshold_words(requirement: Requirement) -> str:
    """Comparison and threshold with its unit: `≥ 430 GB/s`."""
    return f"{_SIGNS[requirement.comparison]} {value_words(requirement.threshold)}"


def value_words(value: Quantity | float | bool | str | None) -> str:
    """A reading or threshold as text; None is said, never shown as zero."""
    if value is None:
        return "unreadable"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float | int) else str(value)


def scope_words(scope: Scope) -> str:
    """What the claim is about: `each of 2 nodes of pool gpu`."""
    pool = f" of pool {scope.pool}" if scope.pool else ""
    count = scope.nodes
    nodes = f"{count} node{'s' if count != 1 else ''}" if count else ""
    said = {
        "node": (f"one node{pool}" if count == 1 else f"each of {nodes}{pool}") if count else f"every node{pool}",
        "pair": f"every pair among {nodes}{pool}" if count else f"every pair{pool}",
        "rack": f"each rack{pool}" + (f", {nodes} at once" if count else ""),
        "pool": f"{nodes}{pool} together" if count else f"the whole of {pool[4:] or 'the pool'}",
        "cluster": f"the cluster, {nodes} at once" if count else "the whole cluster",
    }[scope.of]
    return said + (f", workload {scope.workload}" if scope.workload else "")


def condition_words(requirement: Requirement) -> str:
    """The conditions under which a measurement counts, in the order of the file's fields."""
    conditions = requirement.conditions
    spelled = {"concurrency": "concurrency {}", "duration": "for {}", "image": "image {}"}
    said: list[str] = []
    for name in type(conditions).model_fields:
        value = getattr(conditions, name)
        if value is None:
            continue
        if name == "in_place":
            said.append("in place" if value else "out of place")
        else:
            said.append(spelled.get(name, "{}").format(value))
    return ", ".join(said)


def duration_words(seconds: float) -> str:
    """Seconds for people: `0.4 s`, `48 s`, `2 min 5 s`, `3 h 10 min`, `12 days`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} days"


def time_words(moment: datetime) -> str:
    """A moment with its zone: `2026-11-30 12:04:11 UTC`."""
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z").strip()


def place_words(document: Document | None, path: str) -> str:
    """File and line of a path, or "" where the file does not say it."""
    if document is None or not document.places.has(path):
        return ""
    place = document.places.of(path)
    return f"{place.file}:{place.line}" if place.line else place.file


def count_words(count: int, one: str, many: str = "") -> str:
    """`1 finding`, `2 findings`, `no findings`."""
    return f"{count or 'no'} {one if count == 1 else many or one + 's'}"
