"""Root causes before their consequences, over the logs of several nodes, of the fabric, the scheduler and jobs.

Rules: a PCIe error comes before the loss of the same GPU (Xid 79); a lost GPU before errors of switches and of NVLink
on its node, and before the firmware and channel errors of that GPU; an uncorrected memory error before its
containment; a fault of a link, switch, adapter, GPU or kernel before the loss of its node for the scheduler, and before
collectives of a job on that node that time out. A cause lies before its consequence in time, and at most WINDOW_S away;
for ranks that waited, the cause lies in the time that they waited, or WINDOW_S before. Where two times cannot be
compared, the order is said not to be known, and only causes that lie deeper in the machine are named as possible ones.

Source: NVIDIA Xid catalogue (74, 79, 45, 154), NVSwitch SXid notes of the Fabric Manager user guide, Linux PCI error
recovery documentation, PyTorch ProcessGroupNCCL (the watchdog reports after its time-out), slurm.conf SlurmdTimeout
(300 s). The window is our default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.health.xids import Bucket, look_up_sxid
from clusterwright.judging.happenings import Happening
from clusterwright.judging.moments import seconds_between, seconds_if_one_zone, why_not_compared
from clusterwright.readers.kernel.causes import NVLINK_XIDS

#: Seconds within which one event is taken for the cause of another.
WINDOW_S: Final = 600.0
#: Events of one node in one log that are looked at; a fault of one machine has some dozens.
MOST: Final = 100
#: Depth in the machine: where the order is not known, only a deeper event may be the cause.
_DEPTH: Final = {"aer": 0, "lost": 1, "panic": 1, "adapter": 2, "xid": 2, "sxid": 3, "node": 4, "job": 5}
#: Xids by which a GPU, its memory or its links fail, and those by which the application of one rank ends.
_FATAL: Final = NVLINK_XIDS | {"48", "62", "64", "79", "95", "109", "119", "120", "140", "143", "151"}
_APPLICATION: Final = frozenset({"13", "31", "94"})
#: Code of the cause → consequences on the same GPU.
_SAME_GPU: Final[dict[str, frozenset[str]]] = {
    "79": frozenset({"13", "31", "32", "38", "43", "45", "61", "62", "94", "95", "109", "110", "119", "120", "154"}),
    "48": frozenset({"43", "45", "63", "64", "92", "94", "95", "140", "154", "160", "161", "171", "172"}),
    "95": frozenset({"43", "45", "154"}),
    "94": frozenset({"43", "45", "154"}),
    "13": frozenset({"43", "45", "109", "154"}),
    "31": frozenset({"43", "45", "109", "154"}),
    "62": frozenset({"43", "45", "109", "119", "120", "143", "154"}),
    "119": frozenset({"43", "45", "109", "120", "154"}),
    "120": frozenset({"43", "45", "109", "119", "154"}),
    "109": frozenset({"45", "154"}),
}
#: Consequences of a link error on any GPU of the node.
_OF_LINKS: Final = NVLINK_XIDS | {"43", "45", "94", "95", "154"}


@dataclass(frozen=True, slots=True)
class Consequence:
    """An event with its place behind the root cause.

    Args:
        after_s: seconds after the root, None when the times cannot be compared.
        doubt: why it is not certain, "" when the times and hosts say so.
    """

    event: Happening
    after_s: float | None
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    """A root cause with everything that follows from it, in order of time as far as known."""

    root: Happening
    consequences: tuple[Consequence, ...]


def find_causes(events: Sequence[Happening]) -> tuple[Chain, ...]:
    """Every root cause that has a consequence; events that nothing connects are in none."""
    chosen = _bounded(events)
    parent: dict[int, int] = {}
    for index, candidates in _candidates(chosen):
        later = chosen[index]
        related = [(i, why) for i in candidates if i != index and (why := _relation(chosen[i], later)) is not None]
        if related:
            parent[index] = min(related, key=lambda found: _preference(chosen[found[0]], later, found[1]))[0]
    members: dict[int, list[int]] = {}
    for index in parent:
        root = _root(index, parent)
        if root != index:
            members.setdefault(root, []).append(index)
    return tuple(_chain(chosen, root, found) for root, found in sorted(members.items()))


def _bounded(events: Sequence[Happening]) -> list[Happening]:
    """The first events of each node in each log."""
    counts: dict[tuple[str, tuple[str, ...]], int] = {}
    kept = []
    for event in events:
        key = (event.path, event.nodes)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= MOST:
            kept.append(event)
    return kept


def _candidates(events: Sequence[Happening]) -> Iterator[tuple[int, Sequence[int]]]:
    """Each event with those that may be its cause: of a job the faults of all nodes, else the events of its node."""
    places: dict[str, list[int]] = {}
    for index, event in enumerate(events):
        places.setdefault(_place(event), []).append(index)
    faults = [index for index, event in enumerate(events) if _ends_jobs(event)]
    for index, event in enumerate(events):
        yield index, faults if event.kind == "job" else places[_place(event)]


def _place(event: Happening) -> str:
    """The node, or the log where no node is known."""
    return f"node {event.nodes[0]}" if len(event.nodes) == 1 else f"log {event.path}"


def _root(index: int, parent: dict[int, int]) -> int:
    seen = {index}
    while index in parent and parent[index] not in seen:
        index = parent[index]
        seen.add(index)
    return index


def _preference(cause: Happening, later: Happening, doubt: str) -> tuple[bool, float, int, int]:
    """A cause that is certain comes first; then the earliest; then the deepest."""
    gap = seconds_between(cause.first, later.first)
    return doubt != "", -(gap or 0.0), _DEPTH[cause.kind], cause.line


def _chain(events: Sequence[Happening], root: int, found: Iterable[int]) -> Chain:
    first = events[root]
    told = []
    for index in found:
        event = events[index]
        after = seconds_between(first.first, event.first)
        same_log = (event.path, event.boot) == (first.path, first.boot)
        doubts = (
            [] if after is not None or same_log else [f"order not known: {why_not_compared(first.first, event.first)}"]
        )
        if event.kind == "job" and not event.nodes:
            doubts.append("its log names no hosts")
        told.append(Consequence(event, after, "; ".join(doubts)))
    ordered = sorted(told, key=lambda c: (c.after_s is None, c.after_s or 0.0, _DEPTH[c.event.kind], c.event.line))
    return Chain(first, tuple(ordered))


def _relation(earlier: Happening, later: Happening) -> str | None:
    """None when one is no cause of the other; else why their order is not known, "" when it is."""
    if not _may_cause(earlier, later):
        return None
    gap = seconds_between(earlier.first, later.first)
    if gap is not None:
        return "" if _in_time(earlier, later, gap) else None
    if (earlier.path, earlier.boot) == (later.path, later.boot):
        return "" if earlier.line < later.line else None
    assumed = seconds_if_one_zone(earlier.first, later.first)
    if _DEPTH[earlier.kind] >= _DEPTH[later.kind] or (assumed is not None and not _in_time(earlier, later, assumed)):
        return None
    return why_not_compared(earlier.first, later.first)


def _in_time(earlier: Happening, later: Happening, gap: float) -> bool:
    """Whether the first lies before the second and near it; of events at one time the deeper, then the earlier line."""
    window = WINDOW_S + later.waited_s
    since_last = seconds_between(earlier.last, later.first)
    if gap < 0 or (gap > window and (since_last is None or since_last > window)):
        return False
    if gap > 0 or _DEPTH[earlier.kind] < _DEPTH[later.kind]:
        return True
    return _DEPTH[earlier.kind] == _DEPTH[later.kind] and earlier.path == later.path and earlier.line < later.line


def _may_cause(earlier: Happening, later: Happening) -> bool:
    """Whether such an event on these devices can have such a consequence, whatever the times."""
    if later.kind == "job":
        return _may_end(earlier, later)
    if _place(earlier) != _place(later):
        return False
    if later.kind == "node":
        return earlier.kind in ("lost", "panic", "adapter") or (earlier.kind == "xid" and earlier.code in _FATAL)
    if later.kind == "lost" or (later.kind == "xid" and later.code == "79"):
        return earlier.kind == "aer" and _same_device(earlier, later)
    code = "79" if earlier.kind == "lost" else earlier.code
    if earlier.kind not in ("lost", "xid", "sxid") or later.kind not in ("xid", "sxid"):
        return False
    if later.kind == "sxid":
        return earlier.kind != "sxid" and (code == "79" or code in NVLINK_XIDS)
    if earlier.kind == "sxid":
        return later.code in NVLINK_XIDS | {"45", "94", "154"}
    of_links = {"79": NVLINK_XIDS, **dict.fromkeys(NVLINK_XIDS, _OF_LINKS)}.get(code, frozenset())
    if later.code in of_links and later.code != code:
        return True
    return later.code in _SAME_GPU.get(code, frozenset()) and _same_device(earlier, later)


def _may_end(cause: Happening, job: Happening) -> bool:
    """Whether a fault can be why ranks waited: one on its hosts, or of hardware where these are not known."""
    if job.nodes and cause.nodes:
        return bool(set(cause.nodes) & set(job.nodes))
    return cause.kind != "xid" or cause.code in _FATAL


def _ends_jobs(event: Happening) -> bool:
    """Whether an event can be why a job does not go on; errors of switches that correct themselves cannot."""
    if event.kind == "xid":
        return event.code in _FATAL | _APPLICATION
    if event.kind == "sxid":
        return event.code.isdecimal() and look_up_sxid(int(event.code)).bucket is not Bucket.IGNORE
    return event.kind in ("lost", "adapter", "panic", "node")


def _same_device(earlier: Happening, later: Happening) -> bool:
    """Whether both are of one device, or one of them does not say which."""
    return (
        not earlier.device or not later.device or earlier.device.rpartition(".")[0] == later.device.rpartition(".")[0]
    )
