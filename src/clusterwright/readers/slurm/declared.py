"""Nodes and partitions as configuration files declare them, with the defaults that apply to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterwright.lib.hostlists import HostlistError, fold
from clusterwright.model.observations import Lack, NoValue, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten
from clusterwright.readers.slurm.amounts import read_count, read_memory, seconds_of
from clusterwright.readers.slurm.conf_lines import ConfLine
from clusterwright.readers.slurm.gres import Gres, read_gres
from clusterwright.readers.slurm.hosts import Hosts
from clusterwright.readers.values import quantity, unreadable

_MOST_NODES: Final = 200_000
_POTENTIAL: Final = frozenset({"CLOUD", "FUTURE"})
_TIME_KEYS: Final = {"maxtime": "time_limit", "defaulttime": "default_time"}


@dataclass
class DeclaredNode:
    """One node.

    Args:
        keys: lower-case key → value, defaults included.
        resources: its generic resources; None when their text cannot be read.
    """

    name: str
    line: int
    keys: dict[str, str]
    resources: tuple[Gres, ...] | None

    @property
    def potential(self) -> bool:
        """Whether the node does not exist until it is started (CLOUD) or added (FUTURE)."""
        return self.keys.get("state", "").upper() in _POTENTIAL

    @property
    def gpus(self) -> int:
        """Whole GPUs."""
        return sum(gres.count or 0 for gres in self.resources or () if gres.is_gpu)


@dataclass
class DeclaredPartition:
    """One partition; `nodes` are None where its list names sets or cannot be read."""

    name: str
    line: int
    keys: dict[str, str]
    nodes: tuple[str, ...] | None = None


@dataclass
class Declared:
    """Everything that the lines of one file declare about nodes and partitions.

    Args:
        unknown: why the file does not tell how many GPUs there are, "" if it does.
    """

    run: RunBuilder
    nodes: dict[str, DeclaredNode] = field(default_factory=dict)
    partitions: dict[str, DeclaredPartition] = field(default_factory=dict)
    sets: dict[str, str] = field(default_factory=dict)
    old_keys: dict[str, int] = field(default_factory=dict)
    unknown: str = ""
    _node_defaults: dict[str, str] = field(default_factory=dict)
    _partition_defaults: dict[str, str] = field(default_factory=dict)
    _twice: dict[str, None] = field(default_factory=dict)
    _hosts: Hosts = field(default_factory=Hosts)

    def add_nodes(self, line: ConfLine) -> None:
        """A NodeName line."""
        text = line.get("nodename") or ""
        keys = self._lower(line)
        if text.upper() == "DEFAULT":
            self._node_defaults.update(keys)
            return
        try:
            names = self._hosts.expand(text)
        except HostlistError as error:
            self.unknown = "a node list that cannot be read"
            self.run.reject(line.line, text, f"node list: {error}")
            return
        merged = self._node_defaults | keys
        gres = read_gres(_with_counts(merged.get("gres", "")))
        resources = gres if not isinstance(gres, NoValue) else None if gres.why else ()
        for name in names:
            if name in self.nodes:
                self._twice[name] = None
            elif len(self.nodes) >= _MOST_NODES:
                self.run.missing(f"nodes beyond the first {_MOST_NODES:,}")
                return
            else:
                self.nodes[name] = DeclaredNode(name, line.line, merged, resources)

    def add_partition(self, line: ConfLine) -> None:
        """A PartitionName line."""
        name = line.get("partitionname") or ""
        keys = self._lower(line)
        if name.upper() == "DEFAULT":
            self._partition_defaults.update(keys)
            return
        if name in self.partitions:
            self.run.notice("partition-twice", f"partition {name} is declared twice; the first one is kept")
            return
        self.partitions[name] = DeclaredPartition(name, line.line, self._partition_defaults | keys)

    def add_other(self, line: ConfLine) -> None:
        """A NodeSet, DownNodes or FrontendName line."""
        if line.first == "nodeset":
            self.sets[line.pairs[0][1]] = line.get("nodes") or ""
        for key, value in line.pairs[1:]:
            self.run.observe("setting", value, (("key", key), (line.first, line.pairs[0][1])), line.line)

    def finish(self) -> None:
        """Write observations and sums into the run."""
        run = self.run
        for node in self.nodes.values():
            _observe_node(run, node)
        for partition in self.partitions.values():
            partition.nodes = self._expand(partition)
            _observe_partition(run, partition, self.nodes)
        if self._twice:
            names = shorten(fold(self._twice), 200)
            run.notice("node-twice", f"nodes are declared twice: {names}; the first line is kept", Weight.ERROR)
        self._sum()

    def _sum(self) -> None:
        run = self.run
        run.condition("nodes_configured", float(len(self.nodes)))
        unread = [node.name for node in self.nodes.values() if node.resources is None]
        if unread:
            run.notice("gres-unreadable", f"Gres of {shorten(fold(unread), 200)} cannot be read: no sum is given")
            return
        standing = sum(node.gpus for node in self.nodes.values() if not node.potential)
        potential = sum(node.gpus for node in self.nodes.values() if node.potential)
        slices = sum(g.count or 0 for node in self.nodes.values() for g in node.resources or () if g.is_slice)
        run.condition("gpus_configured", NoValue(Lack.ABSENT, "", self.unknown) if self.unknown else float(standing))
        if potential:
            run.condition("gpus_potential", float(potential))
            run.notice(
                "potential-capacity",
                f"{potential} GPUs stand on nodes in state CLOUD or FUTURE: what could be started, not what is there",
            )
        if slices:
            run.condition("mig_slices_configured", float(slices))

    def _lower(self, line: ConfLine) -> dict[str, str]:
        keys: dict[str, str] = {}
        for key, value in line.pairs[1:]:
            lower = key.lower()
            if lower in keys and keys[lower] != value:
                self.run.notice(
                    "key-twice", f"{key} stands twice in one line: {keys[lower]} and {value}", line=line.line
                )
            keys[lower] = value
            if lower in ("shared", "procs"):
                self.old_keys.setdefault(lower, line.line)
        return keys

    def _expand(self, partition: DeclaredPartition) -> tuple[str, ...] | None:
        text = partition.keys.get("nodes", "")
        if text.upper() == "ALL":
            return tuple(self.nodes)
        if not text or text in ("(null)", '""'):
            return ()
        names: dict[str, None] = {}
        try:
            for name in self._hosts.expand(text):
                for inner in self._hosts.expand(self.sets[name]) if self.sets.get(name) else (name,):
                    names[inner] = None
        except HostlistError as error:
            self.run.reject(partition.line, text, f"node list: {error}")
            return None
        if any(name in self.sets and not self.sets[name] for name in names):
            self.run.missing(f"nodes of partition {partition.name}: a node set by feature")
            return None
        return tuple(names)


def _with_counts(text: str) -> str:
    """In slurm.conf a resource without a count means one: `gpu` is `gpu:1`, `gpu:a100` is `gpu:a100:1`."""
    parts = [part.strip() for part in text.split(",")] if "(" not in text else [text]
    return ",".join(f"{part}:1" if part and not part.rpartition(":")[2][:1].isdigit() else part for part in parts)


def _observe_node(run: RunBuilder, node: DeclaredNode) -> None:
    subject = (("node", node.name),)
    keys = node.keys
    if node.resources is None:
        run.observe("gpus_configured", unreadable(keys["gres"], "not a list of resources"), subject, node.line)
    for gres in node.resources or ():
        typed = (*subject, ("type", gres.type)) if gres.type else subject
        name = "gpus_configured" if gres.is_gpu else "mig_slices_configured" if gres.is_slice else "gres_configured"
        where = typed if gres.name == "gpu" else (*typed, ("gres", gres.name))
        run.observe(name, float(gres.count or 0), where, node.line)
    cpus = keys.get("cpus") or keys.get("procs")
    if cpus:
        run.observe("cpus_configured", read_count(cpus), subject, node.line)
    if "realmemory" in keys:
        run.observe("memory_configured", read_memory(keys["realmemory"], plain="MiB"), subject, node.line)
    features = keys.get("features") or keys.get("feature")
    if features:
        run.observe("features", features, subject, node.line)
    if keys.get("state", "UNKNOWN").upper() != "UNKNOWN":
        run.observe("node_declared_state", keys["state"].upper(), subject, node.line)


def _observe_partition(run: RunBuilder, partition: DeclaredPartition, nodes: dict[str, DeclaredNode]) -> None:
    subject = (("partition", partition.name),)
    for key, value in partition.keys.items():
        if key in _TIME_KEYS:
            _observe_time(run, partition, key, value)
        elif key == "nodes":
            run.observe("node_list", value, subject, partition.line)
        else:
            run.observe("partition_setting", value, (*subject, ("key", key)), partition.line)
    if partition.nodes is not None:
        run.observe("partition_nodes", float(len(partition.nodes)), subject, partition.line)
        known = [nodes[name] for name in partition.nodes if name in nodes]
        if len(known) == len(partition.nodes) and all(node.resources is not None for node in known):
            run.observe("gpus_configured", float(sum(node.gpus for node in known)), subject, partition.line)


def _observe_time(run: RunBuilder, partition: DeclaredPartition, key: str, value: str) -> None:
    subject = (("partition", partition.name),)
    name = _TIME_KEYS[key]
    if value.upper() in ("INFINITE", "UNLIMITED", "NONE", "-1"):
        run.observe(name, "unlimited", subject, partition.line)
        return
    # A single number is minutes (man slurm.conf, MaxTime).
    found = float(value) * 60 if value.isascii() and value.isdigit() and len(value) < 10 else seconds_of(value)
    if found is None:
        run.observe(name, unreadable(value, "not a time limit"), subject, partition.line)
        return
    run.observe(name, quantity(found, "s"), subject, partition.line)
    tail = value.rpartition(":")[2]
    if ":" in value and tail.isdigit() and int(tail) > 59:
        run.notice(
            "odd-duration",
            f"partition {partition.name}: {value} has {tail} seconds; Slurm accepts it as {found:.0f} s",
            line=partition.line,
        )
