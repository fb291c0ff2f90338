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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from clusterwright.lib.hostlists import fold
from clusterwright.model.observations import NoValue, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten
from clusterwright.readers.slurm.amounts import read_count, read_memory, read_time
from clusterwright.readers.slurm.gres import Gres, count_gpus, count_indices, gpus_in_tres, read_gres, read_tres
from clusterwright.readers.slurm.states import NodeState, read_node_state
from clusterwright.readers.values import lacking, unreadable

MOST_NODES: Final = 200_000
_FEWER_GPUS: Final = re.compile(r"gres/gpu count (?:reported lower than configured|too low) \((\d{1,6}) < (\d{1,6})\)")
_SHOWN: Final = 200
_MOST_REASONS: Final = 50
#: Key of a node's facts → observation and how it is read. Sizes are in MiB where Slurm prints no unit.
_PLAIN: Final = {
    "cpus": ("cpus_configured", "count"), "cpus_allocated": ("cpus_allocated", "count"), "load": ("cpu_load", "count"),
    "memory": ("memory_configured", "memory"), "memory_allocated": ("memory_allocated", "memory"),
    "memory_free": ("memory_free", "memory"), "features": ("features", "text"),
    "reservation": ("reservation", "text"), "version": ("slurm_version", "text"), "boot": ("boot_time", "time"),
    "started": ("slurmd_started", "time"),
}  # fmt: skip


@dataclass
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
            node = self._nodes[name] = NodeFacts(name, line)
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
        totals = _Totals()
        for node in self._nodes.values():
            _observe(run, node, totals)
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
                f"rows about the same node differ in state or resources: {_names(self._differing)}; "
                "the first row is kept",
            )


@dataclass
class _Totals:
    """Sums over the nodes; a sum stays None until a node has the amount."""

    configured: int | None = None
    allocated: int | None = None
    taking: int | None = None
    slices: int = 0
    unread: list[str] = field(default_factory=list)
    kept_out: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    stateless: int = 0
    reasons: dict[str, list[str]] = field(default_factory=dict)
    untracked: list[str] = field(default_factory=list)

    def conclude(self, run: RunBuilder) -> None:
        for name, total in (
            ("gpus_configured", self.configured),
            ("gpus_allocated", self.allocated),
            ("gpus_on_nodes_taking_jobs", self.taking),
        ):
            if total is not None and not self.unread:
                run.condition(name, float(total))
        if self.unread:
            run.notice(
                "gres-unreadable",
                f"resources of {len(self.unread)} nodes cannot be read ({_names(self.unread)}): no sum is given",
                Weight.ERROR,
            )
        if self.slices:
            run.condition("mig_slices_configured", float(self.slices))
            run.notice(
                "mig-slices",
                f"{self.slices} MIG slices are listed as gpu; they are parts of GPUs and are not added to whole GPUs",
            )
        if self.kept_out:
            run.notice(
                "nodes-take-no-jobs",
                f"{len(self.kept_out)} nodes take no ordinary jobs (drained, down, reserved, in maintenance, "
                f"not responding …): {_names(self.kept_out)}",
            )
        for reason, names in list(self.reasons.items())[:_MOST_REASONS]:
            run.notice("nodes-out", f"{_names(names)} ({len(names)} nodes): {reason}")
        if self.silent:
            run.notice("not-responding", f"{len(self.silent)} nodes do not respond: {_names(self.silent)}")
        if self.untracked:
            run.notice(
                "tres-without-gpu",
                f"nodes with GPUs have no gres/gpu among their trackable resources ({_names(self.untracked)}): "
                "AccountingStorageTRES lacks gres/gpu, accounting of this cluster carries no GPU hours, and AllocTRES "
                "must not be read as 0 GPUs",
            )


def _names(names: object) -> str:
    listed = [str(name) for name in names] if hasattr(names, "__iter__") else []
    return shorten(fold(listed), _SHOWN)


def _observe(run: RunBuilder, node: NodeFacts, totals: _Totals) -> None:
    subject = (("node", node.name),)
    facts = node.facts
    state = _observe_state(run, node, totals)
    if node.partitions:
        run.observe("partitions", ",".join(node.partitions), subject, node.line)
    for key, (name, how) in _PLAIN.items():
        if key in facts:
            run.observe(name, _read(facts[key], how), subject, node.line)
    _observe_reason(run, node, state, totals)
    _observe_gpus(run, node, state, totals)
    memory, free = (read_memory(facts.get(key, ""), plain="MiB") for key in ("memory", "memory_free"))
    if not isinstance(memory, NoValue) and not isinstance(free, NoValue) and memory.value <= 2.0**20 < free.value:
        run.notice(
            "memory-never-configured",
            f"node {node.name}: RealMemory={facts['memory']} is Slurm's default, never set, while "
            f"{facts['memory_free']} MiB are free",
            line=node.line,
        )


def _read(text: str, how: str) -> Value:
    if how == "count":
        return read_count(text)
    if how == "memory":
        return read_memory(text, plain="MiB")
    if how == "time":
        return read_time(text)
    return lacking(text) or text


def _observe_state(run: RunBuilder, node: NodeFacts, totals: _Totals) -> NodeState | None:
    text = node.facts.get("state")
    if text is None:
        return None
    subject = (("node", node.name),)
    state = read_node_state(text)
    if state is None:
        run.observe("node_state", unreadable(text, "cut, or no state that Slurm documents"), subject, node.line)
        run.notice("node-state-unreadable", f"node {node.name}: state {text!r} is not read", line=node.line)
        totals.stateless += 1
        return None
    run.observe("node_state", str(state), subject, node.line)
    if state.flags:
        run.observe("node_flags", "+".join(state.flags), subject, node.line)
    run.observe("takes_jobs", state.takes_jobs, subject, node.line)
    if not state.takes_jobs:
        totals.kept_out.append(node.name)
    if "NOT_RESPONDING" in state.flags:
        totals.silent.append(node.name)
    return state


def _observe_reason(run: RunBuilder, node: NodeFacts, state: NodeState | None, totals: _Totals) -> None:
    subject = (("node", node.name),)
    reason = node.facts.get("reason", "").strip()
    if reason.lower() in ("", "none", "(null)", "n/a"):
        return
    run.observe("reason", reason, subject, node.line)
    for key in ("reason_user", "reason_since"):
        if lacking(text := node.facts.get(key, "")) is None:
            run.observe(key, read_time(text) if key.endswith("since") else text, subject, node.line)
    if (state is None and "state" not in node.facts) or (state is not None and not state.takes_jobs):
        totals.reasons.setdefault(shorten(reason, 120), []).append(node.name)
    if state is not None and state.takes_jobs:
        run.notice(
            "reason-without-drain",
            f"node {node.name} is {state} with no flag that keeps jobs out; its reason {shorten(reason, 60)!r} is an "
            "old text left after it resumed and does not make it unhealthy",
            Weight.INFO,
            node.line,
        )
    if (fewer := _FEWER_GPUS.search(reason)) is not None:
        run.observe("gpus_reported", float(fewer[1]), subject, node.line)
        run.notice(
            "fewer-gpus-than-configured",
            f"node {node.name}: slurmd found {fewer[1]} GPUs where {fewer[2]} are configured; Gres and CfgTRES repeat "
            "the configuration, not what is present",
            Weight.ERROR,
            node.line,
        )


def _observe_gpus(run: RunBuilder, node: NodeFacts, state: NodeState | None, totals: _Totals) -> None:
    configured = _read_resources(run, node, "gres", totals)
    used = _read_resources(run, node, "gres_used", totals)
    for verb, resources in (("configured", configured), ("allocated", used)):
        for gres in resources:
            _observe_resource(run, node, verb, gres)
    installed = count_gpus(configured)
    totals.slices += sum(gres.count or 0 for gres in configured if gres.is_slice)
    if "gres" in node.facts and installed:
        totals.configured = (totals.configured or 0) + installed
        reported = _FEWER_GPUS.search(node.facts.get("reason", ""))
        usable = min(installed, int(reported[1])) if reported else installed
        if state is not None:
            totals.taking = (totals.taking or 0) + (usable if state.takes_jobs else 0)
    if (used and count_gpus(used) <= installed) or (used and "gres" not in node.facts):
        totals.allocated = (totals.allocated or 0) + count_gpus(used)
    elif used:
        run.notice(
            "more-gpus-used-than-configured",
            f"node {node.name}: {count_gpus(used)} GPUs in use of {installed} configured",
            Weight.ERROR,
            node.line,
        )
    _observe_tres(run, node, installed, used, totals)


def _read_resources(run: RunBuilder, node: NodeFacts, key: str, totals: _Totals) -> tuple[Gres, ...]:
    if key not in node.facts:
        return ()
    read = read_gres(node.facts[key])
    if not isinstance(read, NoValue):
        return read
    name = "gpus_configured" if key == "gres" else "gpus_allocated"
    if read.why:
        run.observe(name, read, (("node", node.name),), node.line)
        totals.unread.append(node.name)
    return ()


def _observe_resource(run: RunBuilder, node: NodeFacts, verb: str, gres: Gres) -> None:
    subject: tuple[tuple[str, str], ...] = (("node", node.name),)
    if gres.type:
        subject = (*subject, ("type", gres.type))
    count = float(gres.count or 0)
    if gres.is_gpu:
        run.observe(f"gpus_{verb}", count, subject, node.line)
    elif gres.is_slice:
        run.observe(f"mig_slices_{verb}", count, subject, node.line)
    else:
        run.observe(f"gres_{verb}", count, (*subject, ("gres", gres.name)), node.line)
    if gres.indices:
        run.observe("gpu_indices", gres.indices, subject, node.line)
        listed = count_indices(gres.indices)
        if listed is not None and listed != gres.count:
            run.notice(
                "gpu-count-conflict",
                f"node {node.name}: {gres.count} {gres.name} {gres.type} in use, but indices {gres.indices} name "
                f"{listed}",
                Weight.ERROR,
                node.line,
            )


def _say_untyped(run: RunBuilder, node: NodeFacts, total: int, tres: Mapping[str, str] | NoValue) -> None:
    """Say where the types that accounting tracks do not add up to all GPUs: the rest may be parts of GPUs."""
    typed = {key: value for key, value in ({} if isinstance(tres, NoValue) else tres).items() if "gres/gpu:" in key}
    known = sum(int(value) for value in typed.values() if value.isdigit() and len(value) < 10)
    if typed and known < total:
        run.notice(
            "gpu-types-unknown",
            f"node {node.name}: gres/gpu={total}, of which {', '.join(f'{k}={v}' for k, v in typed.items())}; what the "
            f"other {total - known} are is not listed, they may be MIG slices and no whole GPUs: read Gres",
            line=node.line,
        )


def _observe_tres(run: RunBuilder, node: NodeFacts, installed: int, used: tuple[Gres, ...], totals: _Totals) -> None:
    configured, allocated = (read_tres(node.facts.get(key, "")) for key in ("cfg_tres", "alloc_tres"))
    counts = [None if isinstance(tres, NoValue) else gpus_in_tres(tres) for tres in (configured, allocated)]
    subject = (("node", node.name),)
    if (installed or used) and isinstance(counts[0], NoValue):
        totals.untracked.append(node.name)
    elif not installed and isinstance(counts[0], int) and "gres" not in node.facts:
        run.observe("gpus_configured", float(counts[0]), subject, node.line)
        _say_untyped(run, node, counts[0], configured)
        totals.configured = (totals.configured or 0) + counts[0]
    if not used and isinstance(counts[1], int):
        run.observe("gpus_allocated", float(counts[1]), subject, node.line)
        totals.allocated = (totals.allocated or 0) + counts[1]
    elif not used and installed and isinstance(counts[0], int) and "alloc_tres" in node.facts:
        # The cluster tracks GPUs and the node's list of allocated resources names none.
        run.observe("gpus_allocated", 0.0, subject, node.line)
        totals.allocated = totals.allocated or 0
