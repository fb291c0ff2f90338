"""Tables of `kubectl get`: nodes, pods, Kueue's workloads and queues; cells by the header's names.

Observed: `node_ready`, `unschedulable`, `kubelet` (subject node); `pod_phase`, `pod_restarts` (subject pod);
`workload_state`, `queue` (subject workload); `cohort`, `pending_workloads`, `admitted_workloads` (subject queue or
local_queue); `claim_state`, `device_class` (subject claim); `dra_driver`, `pool` (subject slice);
`gpus_listed` (subject node); other columns as `column` (subject column too).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from clusterwright.model.observations import Labels, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.kubernetes.amounts import read_resource
from clusterwright.readers.kubernetes.events import columns_of, cut_row
from clusterwright.readers.values import lacking

_KNOWN: Final = {
    "claim": re.compile(r"(?:NAMESPACE +)?NAME +(?:RESOURCECLASSNAME +ALLOCATIONMODE +)?STATE +AGE\b"),
    "slice": re.compile(r"NAME +NODE +DRIVER +POOL +AGE\b"),
    "gpus": re.compile(r"(?:NAME|NODE) +(?:[A-Z][A-Z_/.:-]{1,30} +){0,3}GPUS?$"),
    "node": re.compile(r"NAME +STATUS +ROLES +AGE +VERSION\b"),
    "pod": re.compile(r"(?:NAMESPACE +)?NAME +READY +STATUS +RESTARTS +AGE\b"),
    "workload": re.compile(r"(?:NAMESPACE +)?NAME +QUEUE +(?:ADMITTED BY|RESERVED IN)\b"),
    "queue": re.compile(r"NAME +COHORT(?: +STRATEGY)? +PENDING WORKLOADS\b"),
    "local_queue": re.compile(r"(?:NAMESPACE +)?NAME +CLUSTERQUEUE +PENDING WORKLOADS\b"),
}
#: A prompt, a comment of the person who pasted it, or the beginning of another output.
_ENDS: Final = re.compile(r"[^\s#$]{0,120}[#$%>] |[A-Z][A-Za-z ]{1,40}:(?:\s|$)|(?:kubectl|oc) \w")
_NODE_STATES: Final = frozenset({"Ready", "NotReady", "Unknown", "SchedulingDisabled"})
_WAITING: Final = frozenset({"Pending", "ContainerCreating", "SchedulingGated"})
_FAILED: Final = re.compile(
    r"UnexpectedAdmissionError|OutOf\S+|Evicted|TopologyAffinity\S*|CrashLoopBackOff|\S*ImagePull\S*|Error|NodeAffinity"
)


def table_of(text: str) -> str:
    """Of which table a line is the header: node, pod, workload, queue, local_queue or ""."""
    stripped = text.strip()
    if not stripped.startswith(("NAME", "NODE")):
        return ""
    return next((kind for kind, form in _KNOWN.items() if form.match(stripped)), "")


def report_tables(lines: Sequence[Line], builder: RunBuilder) -> set[str]:
    """Observe the rows of every table among some lines; which tables there were."""
    found: set[str] = set()
    for kind, line, cells in _rows(lines, builder):
        found.add(kind)
        _TELL[kind](cells, line, builder)
    return found


def _rows(lines: Sequence[Line], builder: RunBuilder) -> Iterator[tuple[str, int, dict[str, str]]]:
    kind, columns = "", []  # type: str, list[tuple[str, int]]
    for line in lines:
        header = table_of(line.text)
        if header:
            kind, columns = header, columns_of(line.text)
        elif not line.text.strip() or _ENDS.match(line.text):
            kind = ""
        elif kind:
            cells = cut_row(columns, line.text)
            if cells is None and kind == "pod":
                cells = _with_restarts(columns, line.text)
            if cells is None or not (cells.get("NAME") or cells.get("NODE")) or not _fits(kind, cells):
                builder.reject(line.number, line.text, f"not a row of the {kind} table above it")
            else:
                yield kind, line.number, cells


def _fits(kind: str, cells: dict[str, str]) -> bool:
    """Whether a row of nodes has a state that nodes have: other outputs may follow a table without a gap."""
    return kind != "node" or set(cells.get("STATUS", "").split(",")) <= _NODE_STATES


def _with_restarts(columns: Sequence[tuple[str, int]], text: str) -> dict[str, str] | None:
    """A pod row whose restarts say when, such as `3 (2m ago)`, which moves the columns."""
    return cut_row(columns, re.sub(r" \(\S{1,12} ago\)", "", text))


def _tell_node(cells: dict[str, str], line: int, builder: RunBuilder) -> None:
    name = cells["NAME"]
    subject = (("node", name),)
    states = cells.get("STATUS", "").split(",")
    builder.observe("node_ready", states[0] == "Ready", subject, line)
    if states[0] != "Ready":
        builder.notice("node-not-ready", f"node {name} is {states[0]}", Weight.ERROR, line)
    if "SchedulingDisabled" in states:
        builder.observe("unschedulable", True, subject, line)
        builder.notice("node-cordoned", f"node {name} is cordoned: nothing new is scheduled there", line=line)
    for column, label in (("VERSION", "kubelet"), ("KERNEL-VERSION", "kernel"), ("OS-IMAGE", "os_image")):
        if cells.get(column) and cells[column] != "<none>":
            builder.observe(label, cells[column], subject, line)
    for column, text in cells.items():
        if column.startswith(("GPU", "MIG")) and text:
            builder.observe("column", lacking(text.strip("<>")) or text, (*subject, ("column", column)), line)
    builder.notice(
        "no-devices-in-table", "this table says nothing about GPUs: kubectl get nodes -o json does", Weight.INFO
    )


def _space(cells: dict[str, str]) -> Labels:
    return (("namespace", cells["NAMESPACE"]),) if cells.get("NAMESPACE") else ()


def _tell_pod(cells: dict[str, str], line: int, builder: RunBuilder) -> None:
    subject = (("pod", cells["NAME"]), *_space(cells))
    status = cells.get("STATUS", "")
    builder.observe("pod_phase", status, subject, line)
    restarts = cells.get("RESTARTS", "").split(" ")[0]
    builder.observe("pod_restarts", read_resource("restarts", restarts or None), subject, line)
    if status in _WAITING:
        builder.notice(
            "pod-waits", f"pod {cells['NAME']} is {status}; its events say why (kubectl describe pod)", line=line
        )
    elif _FAILED.fullmatch(status):
        builder.notice("pod-failed", f"pod {cells['NAME']} is {status}", Weight.ERROR, line)


def _tell_workload(cells: dict[str, str], line: int, builder: RunBuilder) -> None:
    subject = (("workload", cells["NAME"]), *_space(cells))
    builder.observe("queue", cells.get("QUEUE", ""), subject, line)
    reserved = cells.get("RESERVED IN") or cells.get("ADMITTED BY")
    state = "waiting for quota"
    if cells.get("FINISHED") == "True":
        state = "finished"
    elif cells.get("ADMITTED") == "True" or ("ADMITTED BY" in cells and reserved):
        state = "admitted"
    elif reserved:
        state = "quota reserved"
        builder.notice(
            "reserved-not-admitted",
            f"workload {cells['NAME']} has quota reserved in {reserved} and is not admitted: it does not run",
            line=line,
        )
    builder.observe("workload_state", state, subject, line)
    if state == "waiting for quota":
        builder.notice(
            "workload-waits", f"workload {cells['NAME']} waits; kubectl describe workload says for what", line=line
        )


def _tell_queue(cells: dict[str, str], line: int, builder: RunBuilder) -> None:
    key = "local_queue" if "CLUSTERQUEUE" in cells else "queue"
    subject = ((key, cells["NAME"]), *_space(cells))
    for column, label in (("COHORT", "cohort"), ("STRATEGY", "queueing_strategy"), ("CLUSTERQUEUE", "cluster_queue")):
        if cells.get(column):
            builder.observe(label, cells[column], subject, line)
    for column, label in (("PENDING WORKLOADS", "pending_workloads"), ("ADMITTED WORKLOADS", "admitted_workloads")):
        if column in cells:
            builder.observe(label, read_resource("workloads", cells[column] or None), subject, line)


def _tell_gpus(cells: dict[str, str], line: int, builder: RunBuilder) -> None:
    """A row of `-o custom-columns=NAME:…,GPU:…`, which does not say whether it is capacity or what is allocatable."""
    subject = (("node", cells.get("NAME") or cells["NODE"]),)
    text = next((text for column, text in cells.items() if column.startswith("GPU")), "")
    builder.observe("gpus_listed", read_resource("gpus", text.strip("<>").replace("none", "") or None), subject, line)
    builder.notice(
        "column-not-named",
        "the column GPU is what was asked for, capacity or allocatable; <none> is no such resource, not 0 free",
        Weight.INFO,
    )


def _tell_claim(cells: dict[str, str], line: int, builder: RunBuilder) -> None:
    subject = (("claim", cells["NAME"]), *_space(cells))
    state = cells.get("STATE", "")
    builder.observe("claim_state", state, subject, line)
    if cells.get("RESOURCECLASSNAME"):
        builder.observe("device_class", cells["RESOURCECLASSNAME"], subject, line)
    if state == "pending":
        builder.notice(
            "claim-pending",
            f"claim {cells['NAME']} is pending: no device is allocated to it, and no pod that needs it runs",
            line=line,
        )


def _tell_slice(cells: dict[str, str], line: int, builder: RunBuilder) -> None:
    subject = (("slice", cells["NAME"]),)
    for column, label in (("NODE", "node"), ("DRIVER", "dra_driver"), ("POOL", "pool")):
        if cells.get(column):
            builder.observe(label, lacking(cells[column].strip("<>")) or cells[column], subject, line)
    builder.notice(
        "no-devices-in-table",
        "this table names slices, not the devices in them: kubectl get resourceslices -o json does",
        Weight.INFO,
    )


_TELL: Final[dict[str, Callable[[dict[str, str], int, RunBuilder], None]]] = {
    "node": _tell_node,
    "pod": _tell_pod,
    "gpus": _tell_gpus,
    "claim": _tell_claim,
    "slice": _tell_slice,
    "workload": _tell_workload,
    "queue": _tell_queue,
    "local_queue": _tell_queue,
}
