"""What happened, from the transcripts of logs: faults of devices, nodes that were lost, jobs whose ranks waited.

Of each kind of event on each device one happening, with its first and last time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.judging.derivations.facts import Facts, plain, short_name
from clusterwright.judging.moments import When, read_when, seconds_between
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Observation, Run, Transcript

#: Events of a Slurm log that say that a node was lost, and those that say that it took a job along.
_NODE_LOST: Final = frozenset({"node-not-responding", "node-down", "node-rebooted"})
_JOB_LOST: Final = frozenset({"node-failed-job", "batch-job-missing"})
#: What an adapter says when it no longer carries traffic.
_ADAPTER_FAULTS: Final = frozenset({"link down", "health compromised", "cable unplugged", "firmware error"})
#: Codes of a training log's notices that are consequences of something else: another rank or the network failed.
_JOB_FAILURES: Final = {
    "fabric-retries": "InfiniBand retries exceeded", "gpu-lost": "GPU lost", "ecc": "uncorrectable ECC error",
    "nccl-remote-error": "NCCL remote error", "nccl-system-error": "NCCL system error",
    "nccl-cuda-error": "NCCL CUDA error", "desynchronised": "ranks out of step",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Log:
    """An output to look for events in.

    Args:
        nodes: hosts it was taken on, as far as known.
    """

    path: str
    transcript: Transcript
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Happening:
    """One kind of event.

    Args:
        kind: aer, lost, xid, sxid, adapter, panic, node, job.
        code: of an Xid or SXid, else what it was.
        name: in words.
        nodes: on which it happened; of a job all its hosts; () when nothing says.
        device: PCI address, "" when it is not printed.
        waited_s: how long ranks had waited when they gave up; 0 for other events.
        boot: number of the boot in its log, "" for the first.
    """

    kind: str
    code: str
    name: str
    nodes: tuple[str, ...]
    device: str
    path: str
    line: int
    first: When | None = None
    last: When | None = None
    waited_s: float = 0.0
    boot: str = ""

    @property
    def where(self) -> str:
        """Node and device, as far as known."""
        node = self.nodes[0] if len(self.nodes) == 1 else ""
        return " ".join(part for part in (node, self.device) if part)


def happenings_of(logs: Iterable[Log]) -> tuple[Happening, ...]:
    """Every event that can be a cause or a consequence; one that two logs of a node hold counts once."""
    found: dict[tuple[str, ...], Happening] = {}
    for log in logs:
        for number, run in enumerate(log.transcript.runs):
            for one in _of_run(log, run, number):
                host = one.nodes[0] if len(one.nodes) == 1 else one.path
                key = (one.kind, one.code, host, one.device, one.boot)
                found[key] = _earlier(found[key], one) if key in found else one
    return tuple(found.values())


def _earlier(one: Happening, other: Happening) -> Happening:
    gap = seconds_between(one.first, other.first)
    if gap is None:
        return one if one.first is not None or other.first is None else other
    early, late = (one, other) if gap >= 0 else (other, one)
    longer = seconds_between(early.last, late.last)
    return replace(early, last=late.last if longer is not None and longer > 0 else early.last)


def _of_run(log: Log, run: Run, number: int) -> Iterator[Happening]:
    kind = log.transcript.kind
    reader = _Events(log, run, number)
    if kind in ("kernel-log", "fabric-manager-log"):
        yield from reader.codes("xid", "Xid")
        yield from reader.codes("sxid", "SXid")
        yield from reader.others()
    elif kind == "slurm-log":
        yield from reader.scheduler()
    elif kind == "training-log":
        yield from reader.job()


class _Events:
    """The events of one run."""

    def __init__(self, log: Log, run: Run, number: int) -> None:
        self._log = log
        self._run = run
        self._frame = f"{log.path}#{number}"
        self._facts = Facts(log.transcript.kind, run, log.nodes)
        self._alone = log.nodes if len(log.nodes) == 1 else self._facts.node_names()
        self._printed: dict[str, dict[tuple[str, ...], str]] = {}

    def codes(self, name: str, title: str) -> Iterator[Happening]:
        """Xids or SXids with their times."""
        for o in self._facts.of(name):
            code = plain(o.value)
            yield self._made(o, name, code, f"{title} {code}", name)

    def others(self) -> Iterator[Happening]:
        """Lost devices without an Xid, PCIe errors, adapters, panics."""
        lost_by_xid = {(self._node(o), dict(o.subject).get("pci")) for o in self._facts.of("xid") if o.value == 79}
        for o in self._facts.of("lost_device"):
            if (self._node(o), dict(o.subject).get("pci")) not in lost_by_xid:
                yield self._made(o, "lost", "lost", f"GPU lost ({plain(o.value)})")
        for o in self._facts.of("aer"):
            yield self._made(o, "aer", plain(o.value), f"PCIe error ({plain(o.value)})", "severity")
        for o in self._facts.of("nic_event"):
            if plain(o.value) in _ADAPTER_FAULTS:
                yield self._made(o, "adapter", plain(o.value), f"adapter: {plain(o.value)}", "event")
        for o in self._facts.of("panic"):
            yield self._made(o, "panic", "panic", plain(o.value))

    def scheduler(self) -> Iterator[Happening]:
        """Nodes that the controller lost."""
        firsts = {o.subject: plain(o.value) for o in self._facts.of("first_seen")}
        lasts = {o.subject: plain(o.value) for o in self._facts.of("last_seen")}
        for o in self._facts.of("log_event"):
            subject = dict(o.subject)
            event, node = subject.get("event", ""), subject.get("node", "")
            if event in _NODE_LOST | _JOB_LOST and node:
                host = short_name(node)
                name = f"Slurm: {event.replace('-', ' ')}"
                first, last = (self._timed(found.get(o.subject, ""), "") for found in (firsts, lasts))
                yield Happening("node", event, name, (host,), "", self._log.path, o.line, first, last)

    def job(self) -> Iterator[Happening]:
        """Ranks that waited in vain, and what else ended the job."""
        timeouts = self._facts.of("collective_timeout")
        hosts = tuple(short_name(n) for n in self._facts.node_names() or self._log.nodes)
        if timeouts:
            ranks = {dict(o.subject).get("rank", "") for o in timeouts}
            host = hosts[0] if len(hosts) == 1 else ""
            printed = [plain(o.value) for o in self._facts.of("collective_timeout_at")]
            times = [w for text in printed if (w := self._timed(text, host)) is not None]
            first = min(times, key=lambda w: w.at, default=None)
            last = max(times, key=lambda w: w.at, default=None)
            waited = max((o.value.value for o in timeouts if isinstance(o.value, Quantity)), default=0.0)
            name = f"NCCL time-outs of {len(ranks)} rank{'s' * (len(ranks) != 1)}"
            yield Happening("job", "time-out", name, hosts, "", self._log.path, timeouts[0].line, first, last, waited)
            return
        for notice in self._run.notices:
            if notice.code in _JOB_FAILURES:
                name = f"job: {_JOB_FAILURES[notice.code]}"
                yield Happening("job", notice.code, name, hosts, "", self._log.path, notice.line)
                return

    def _made(self, o: Observation, kind: str, code: str, name: str, named: str = "") -> Happening:
        subject = dict(o.subject)
        node, boot = self._node(o), subject.get("boot", "")
        first, last = (
            self._timed(
                self._times(f"{o.name}_{which}", named).get(_identity(subject, code if named else ""), ""), node, boot
            )
            for which in ("first", "last")
        )
        nodes = (node,) if node else ()
        return Happening(
            kind, code, name, nodes, subject.get("pci", ""), self._log.path, o.line, first, last or first, boot=boot
        )

    def _times(self, name: str, named: str) -> dict[tuple[str, ...], str]:
        """Node, device, boot and code → the printed time of that name."""
        if name not in self._printed:
            self._printed[name] = {
                _identity(subject, subject.get(named, "")): o.value
                for o in self._facts.of(name)
                if isinstance(o.value, str) and (subject := dict(o.subject)) is not None
            }
        return self._printed[name]

    def _timed(self, text: str, host: str, boot: str = "") -> When | None:
        return read_when(text, host=host, log=f"{self._frame}#{boot}") if text else None

    def _node(self, o: Observation) -> str:
        printed = dict(o.subject).get("node", "")
        if printed:
            return short_name(printed)
        return short_name(self._alone[0]) if len(self._alone) == 1 else ""


def _identity(subject: Mapping[str, str], code: str) -> tuple[str, ...]:
    return (*(subject.get(key, "") for key in ("node", "pci", "boot", "instance", "port")), code)
