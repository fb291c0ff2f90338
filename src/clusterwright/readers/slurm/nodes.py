"""What any listing says about nodes, counted once per node.

Observations (subject: node): `node_state` (IDLE, MIXED, DRAINED …), `node_flags`, `takes_jobs` (whether the
scheduler may start ordinary jobs there), `gpus_configured` and `gpus_allocated` (subject also type), `gpu_indices`,
`mig_slices_configured`, `mig_slices_allocated`, `gpus_reported` (what slurmd found, from the drain reason),
`gres_configured` (other resources, subject also gres), `cpus_configured`, `cpus_allocated`, `cpu_load`,
`memory_configured`, `memory_allocated`, `memory_free`, `reason`, `reason_user`, `reason_since`, `partitions`,
`features`, `reservation`, `slurm_version`, `boot_time`, `slurmd_started`.
Conditions: `nodes_listed`, `gpus_configured`, `gpus_allocated`, `gpus_on_nodes_taking_jobs`, `mig_slices_configured`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Observation, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.memos import remembered
from clusterwright.readers.refusing import shorten
from clusterwright.readers.slurm.amounts import read_count, read_memory, read_time
from clusterwright.readers.slurm.gres import gpus_in_tres, read_tres
from clusterwright.readers.slurm.job_notices import LimitedNotices
from clusterwright.readers.slurm.node_resources import NOTHING, Resources, read_resources
from clusterwright.readers.slurm.node_totals import Totals, listed_nodes
from clusterwright.readers.slurm.states import NodeState, read_node_state
from clusterwright.readers.values import lacking, unreadable

MOST_NODES: Final = 200_000
_FEWER_GPUS: Final = re.compile(r"gres/gpu count (?:reported lower than configured|too low) \((\d{1,6}) < (\d{1,6})\)")
#: Key of a node's facts → observation and how it is read. Sizes are in MiB where Slurm prints no unit.
_PLAIN: Final = {
    "cpus": ("cpus_configured", "count"), "cpus_allocated": ("cpus_allocated", "count"), "load": ("cpu_load", "count"),
    "memory": ("memory_configured", "memory"), "memory_allocated": ("memory_allocated", "memory"),
    "memory_free": ("memory_free", "memory"), "features": ("features", "text"),
    "reservation": ("reservation", "text"), "version": ("slurm_version", "text"), "boot": ("boot_time", "time"),
    "started": ("slurmd_started", "time"),
}  # fmt: skip


@remembered
def _read_text(text: str) -> Value:
    return lacking(text) or text


def _read_memory(text: str) -> Quantity | NoValue:
    return read_memory(text, plain="MiB")


_HOW: Final[dict[str, Callable[[str], Value]]] = {
    "count": read_count, "memory": _read_memory, "text": _read_text, "time": read_time,
}  # fmt: skip
#: Fact → observation and what reads its text.
_READERS: Final = {key: (name, _HOW[how]) for key, (name, how) in _PLAIN.items()}
_new: Final = tuple.__new__


@dataclass(slots=True)
class NodeFacts:
    """What was printed about one node.

    Args:
        facts: key → text: state, gres, gres_used, cpus, cpus_allocated, load, memory, memory_allocated,
            memory_free (MiB without a unit), reason, reason_user, reason_since, cfg_tres, alloc_tres, features,
            reservation, version, boot, started.
        lines: how many rows or records named the node.
    """

    name: str
    line: int
    facts: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, None] = field(default_factory=dict)
    lines: int = 0


class Nodes:
    """The nodes of one output, each kept once."""

    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._nodes: dict[str, NodeFacts] = {}
        self._left_out = 0
        self._differing: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, name: str, facts: dict[str, str], partitions: tuple[str, ...], line: int) -> None:
        """Keep what a row or record says; a second one about the same node must agree in state and resources."""
        node = self._nodes.get(name)
        if node is None:
            if len(self._nodes) >= MOST_NODES:
                self._left_out += 1
                return
            self._nodes[name] = NodeFacts(name, line, dict(facts), dict.fromkeys(partitions), 1)
            return
        node.lines += 1
        for partition in partitions:
            node.partitions[partition] = None
        for key, text in facts.items():
            before = node.facts.setdefault(key, text)
            if before != text and key in ("state", "gres", "gres_used"):
                self._differing[name] = None

    def finish(self) -> None:
        """Write observations, sums and notices into the run."""
        run = self._run
        if self._left_out:
            run.missing(f"{self._left_out:,} nodes beyond the first {MOST_NODES:,}")
        totals = Totals(LimitedNotices(run))
        for node in self._nodes.values():
            _observe(run, node, totals)
        totals.said.finish()
        several = [node for node in self._nodes.values() if node.lines > 1]
        if self._nodes:
            run.condition("nodes_listed", float(len(self._nodes)))
            totals.conclude(run)
        if several:
            rows = sum(node.lines for node in several)
            run.notice(
                "node-listed-several-times",
                f"{len(several)} of {len(self._nodes)} nodes stand in several partitions or rows ({rows} rows); "
                "each is counted once",
                Weight.INFO,
            )
        if self._differing:
            run.notice(
                "node-differs",
                f"rows about the same node differ in state or resources: {listed_nodes(self._differing)}; "
                "the first row is kept",
            )


def _observe(run: RunBuilder, node: NodeFacts, totals: Totals) -> None:
    facts, line = node.facts, node.line
    subject = (("node", node.name),)
    found: list[tuple[str, Value]] = []
    state = _observe_state(found, node, totals)
    if node.partitions:
        found.append(("partitions", ",".join(node.partitions)))
    found += [(_READERS[key][0], _READERS[key][1](text)) for key, text in facts.items() if key in _READERS]
    if "reason" in facts:
        _observe_reason(found, node, state, totals)
    run.extend([_new(Observation, (name, value, subject, line)) for name, value in found])
    _observe_gpus(run, node, state, totals)
    if "memory" not in facts or "memory_free" not in facts:
        return
    memory, free = _read_memory(facts["memory"]), _read_memory(facts["memory_free"])
    if isinstance(memory, Quantity) and isinstance(free, Quantity) and memory.value <= 2.0**20 < free.value:
        totals.said.notice(
            "memory-never-configured",
            f"node {node.name}: RealMemory={facts['memory']} is Slurm's default, never set, while "
            f"{facts['memory_free']} MiB are free",
            line=line,
        )


def _observe_state(found: list[tuple[str, Value]], node: NodeFacts, totals: Totals) -> NodeState | None:
    text = node.facts.get("state")
    if text is None:
        return None
    state = read_node_state(text)
    if state is None:
        found.append(("node_state", unreadable(text, "cut, or no state that Slurm documents")))
        totals.said.notice("node-state-unreadable", f"node {node.name}: state {text!r} is not read", line=node.line)
        totals.stateless += 1
        return None
    found.append(("node_state", str(state)))
    if state.flags:
        found.append(("node_flags", "+".join(state.flags)))
    takes_jobs = state.takes_jobs
    found.append(("takes_jobs", takes_jobs))
    if not takes_jobs:
        totals.kept_out.append(node.name)
    if "NOT_RESPONDING" in state.flags:
        totals.silent.append(node.name)
    return state


def _observe_reason(found: list[tuple[str, Value]], node: NodeFacts, state: NodeState | None, totals: Totals) -> None:
    reason = node.facts["reason"].strip()
    if reason.lower() in ("", "none", "(null)", "n/a"):
        return
    found.append(("reason", reason))
    for key in ("reason_user", "reason_since"):
        if lacking(text := node.facts.get(key, "")) is None:
            found.append((key, read_time(text) if key.endswith("since") else text))
    if (state is None and "state" not in node.facts) or (state is not None and not state.takes_jobs):
        totals.reasons.setdefault(shorten(reason, 120), []).append(node.name)
    if state is not None and state.takes_jobs:
        totals.said.notice(
            "reason-without-drain",
            f"node {node.name} is {state} with no flag that keeps jobs out; its reason {shorten(reason, 60)!r} is an "
            "old text left after it resumed and does not make it unhealthy",
            Weight.INFO,
            node.line,
        )
    if (fewer := _FEWER_GPUS.search(reason)) is not None:
        found.append(("gpus_reported", float(fewer[1])))
        totals.said.notice(
            "fewer-gpus-than-configured",
            f"node {node.name}: slurmd found {fewer[1]} GPUs where {fewer[2]} are configured; Gres and CfgTRES repeat "
            "the configuration, not what is present",
            Weight.ERROR,
            node.line,
        )


def _observe_gpus(run: RunBuilder, node: NodeFacts, state: NodeState | None, totals: Totals) -> None:
    facts = node.facts
    configured = _observe_resources(run, node, "gres", totals) if "gres" in facts else NOTHING
    used = _observe_resources(run, node, "gres_used", totals) if "gres_used" in facts else NOTHING
    installed = configured.gpus
    totals.slices += configured.slices
    if "gres" in facts and installed:
        totals.configured = (totals.configured or 0) + installed
        reported = _FEWER_GPUS.search(facts.get("reason", ""))
        usable = min(installed, int(reported[1])) if reported else installed
        if state is not None:
            totals.taking = (totals.taking or 0) + (usable if state.takes_jobs else 0)
    if used.amounts and (used.gpus <= installed or "gres" not in facts):
        totals.allocated = (totals.allocated or 0) + used.gpus
    elif used.amounts:
        totals.said.notice(
            "more-gpus-used-than-configured",
            f"node {node.name}: {used.gpus} GPUs in use of {installed} configured",
            Weight.ERROR,
            node.line,
        )
    if "cfg_tres" in facts or "alloc_tres" in facts:
        _observe_tres(run, node, installed, bool(used.amounts), totals)


def _observe_resources(run: RunBuilder, node: NodeFacts, key: str, totals: Totals) -> Resources:
    verb = "configured" if key == "gres" else "allocated"
    subject, line = ("node", node.name), node.line
    read = read_resources(node.facts[key])
    if isinstance(read, NoValue):
        if read.why:
            run.observe(f"gpus_{verb}", read, (subject,), line)
            totals.unread.append(node.name)
        return NOTHING
    found: list[Observation] = []
    for kind, labels, number, indices, conflict in read.amounts:
        found.append(_new(Observation, (f"{kind}_{verb}", number, (subject, *labels), line)))
        if indices:
            bare = labels[:-1] if kind == "gres" else labels
            found.append(_new(Observation, ("gpu_indices", indices, (subject, *bare), line)))
        if conflict:
            totals.said.notice("gpu-count-conflict", f"node {node.name}: {conflict}", Weight.ERROR, line)
    run.extend(found)
    return read


def _say_untyped(said: LimitedNotices, node: NodeFacts, total: int, tres: Mapping[str, str] | NoValue) -> None:
    """Say where the types that accounting tracks do not add up to all GPUs: the rest may be parts of GPUs."""
    typed = {key: value for key, value in ({} if isinstance(tres, NoValue) else tres).items() if "gres/gpu:" in key}
    known = sum(int(value) for value in typed.values() if value.isascii() and value.isdigit() and len(value) < 10)
    if typed and known < total:
        said.notice(
            "gpu-types-unknown",
            f"node {node.name}: gres/gpu={total}, of which {', '.join(f'{k}={v}' for k, v in typed.items())}; what the "
            f"other {total - known} are is not listed, they may be MIG slices and no whole GPUs: read Gres",
            line=node.line,
        )


def _observe_tres(run: RunBuilder, node: NodeFacts, installed: int, used: bool, totals: Totals) -> None:
    configured, allocated = (read_tres(node.facts.get(key, "")) for key in ("cfg_tres", "alloc_tres"))
    counts = [None if isinstance(tres, NoValue) else gpus_in_tres(tres) for tres in (configured, allocated)]
    subject = (("node", node.name),)
    if (installed or used) and isinstance(counts[0], NoValue):
        totals.untracked.append(node.name)
    elif not installed and isinstance(counts[0], int) and "gres" not in node.facts:
        run.observe("gpus_configured", float(counts[0]), subject, node.line)
        _say_untyped(totals.said, node, counts[0], configured)
        totals.configured = (totals.configured or 0) + counts[0]
    if not used and isinstance(counts[1], int):
        run.observe("gpus_allocated", float(counts[1]), subject, node.line)
        totals.allocated = (totals.allocated or 0) + counts[1]
    elif not used and installed and isinstance(counts[0], int) and "alloc_tres" in node.facts:
        # The cluster tracks GPUs and the node's list of allocated resources names none.
        run.observe("gpus_allocated", 0.0, subject, node.line)
        totals.allocated = totals.allocated or 0
