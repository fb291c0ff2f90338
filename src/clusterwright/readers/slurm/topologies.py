"""A network topology of Slurm as declared (switch trees or blocks) and what is wrong with it.

Source: man topology.conf, man topology.yaml, Slurm 25.05; topology/tree and topology/block plugins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from clusterwright.lib.hostlists import HostlistError, fold
from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten
from clusterwright.readers.slurm.hosts import Hosts

_SHOWN: Final = 160
_MOST: Final = 100_000


@dataclass
class Unit:
    """A switch or a block.

    Args:
        nodes: that hang directly on it.
        children: switches below it.
    """

    name: str
    line: int
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    speed: str = ""


@dataclass
class Topology:
    """One topology.

    Args:
        kind: tree, block, flat …
    """

    run: RunBuilder
    kind: str = ""
    units: dict[str, Unit] = field(default_factory=dict)
    hosts: Hosts = field(default_factory=Hosts)
    comment_counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, name: str, nodes: str, children: str, line: int, speed: str = "") -> None:
        """Keep a switch or block; a list that cannot be read is rejected."""
        run = self.run
        if name in self.units:
            run.notice("switch-twice", f"{name} is declared twice; the first one is kept", Weight.ERROR, line)
            return
        if len(self.units) >= _MOST:
            run.missing(f"switches beyond the first {_MOST:,}")
            return
        try:
            own = self.hosts.expand(nodes) if nodes else ()
            below = self.hosts.expand(children) if children else ()
        except HostlistError as error:
            run.reject(line, nodes or children, f"list: {error}")
            return
        self.units[name] = Unit(name, line, own, below, speed)

    def finish(self) -> None:
        """Write observations and notices into the run."""
        run = self.run
        place: dict[str, list[str]] = {}
        key = "block" if self.kind == "block" else "switch"
        for unit in self.units.values():
            self._observe(unit, key)
            for node in unit.nodes:
                place.setdefault(node, []).append(unit.name)
        for node, units in place.items():
            run.observe("leaf", ",".join(units), (("node", node),), self.units[units[0]].line)
        run.condition("topology", self.kind or "tree")
        run.condition(f"{key}es" if key == "switch" else "blocks", float(len(self.units)))
        run.condition("leaves", float(sum(bool(unit.nodes) for unit in self.units.values())))
        run.condition("nodes", float(len(place)))
        _check_twice(run, place)
        _check_prefixes(run, place)
        _check_counts(run, self)
        if self.kind != "block":
            _check_tree(run, self.units)

    def _observe(self, unit: Unit, key: str) -> None:
        subject = ((key, unit.name),)
        if unit.nodes:
            self.run.observe(f"{key}_nodes", float(len(unit.nodes)), subject, unit.line)
            self.run.observe("node_list", fold(unit.nodes), subject, unit.line)
        if unit.children:
            self.run.observe("child_switches", ",".join(unit.children), subject, unit.line)
        if unit.speed:
            self.run.observe("link_speed_declared", unit.speed, subject, unit.line)


def _check_twice(run: RunBuilder, place: dict[str, list[str]]) -> None:
    for node, units in place.items():
        if len(units) > 1:
            run.notice(
                "node-in-two-leaves",
                f"node {node} hangs on {' and '.join(units[:8])}: the topology is invalid",
                Weight.ERROR,
            )


def _check_prefixes(run: RunBuilder, place: dict[str, list[str]]) -> None:
    """Say which names look like the rest of a longer name: `n019` beside `rack-n018`."""
    stems: dict[str, list[str]] = {}
    for node in place:
        stems.setdefault(re.sub(r"\d{1,20}$", "", node), []).append(node)
    common = max(stems, key=lambda stem: len(stems[stem]), default="")
    for stem, names in stems.items():
        if stem and stem != common and common.endswith(stem) and len(names) < len(stems[common]):
            run.notice(
                "prefix-lost",
                f"{shorten(fold(names), _SHOWN)} are other nodes than {common}…; in a list such as "
                f"{common}[1-2],{stem}[3] "
                "the second group does not inherit the first one's prefix",
                Weight.ERROR,
            )


def _check_counts(run: RunBuilder, topology: Topology) -> None:
    for name, (count, line) in topology.comment_counts.items():
        unit = topology.units.get(name)
        if unit is None:
            continue
        if len(unit.nodes) != count:
            run.notice(
                "count-differs", f"a comment gives {name} {count} nodes, its list names {len(unit.nodes)}", line=line
            )
    checked = [name for name in topology.comment_counts if name in topology.units]
    if checked and all(len(topology.units[n].nodes) == topology.comment_counts[n][0] for n in checked):
        run.notice(
            "counts-agree", f"the counts in comments agree with the lists of {len(checked)} switches", Weight.INFO
        )


def _check_tree(run: RunBuilder, units: dict[str, Unit]) -> None:
    parents: dict[str, list[str]] = {}
    for unit in units.values():
        for child in unit.children:
            parents.setdefault(child, []).append(unit.name)
    unknown = [child for child in parents if child not in units]
    if unknown:
        run.notice(
            "unknown-switch", f"switches that no line declares: {shorten(', '.join(unknown), _SHOWN)}", Weight.ERROR
        )
    for child, owners in parents.items():
        if len(owners) > 1:
            run.notice("switch-with-two-parents", f"{child} hangs below {' and '.join(owners[:8])}", Weight.ERROR)
    roots = [name for name in units if name not in parents]
    if len(roots) > 1:
        run.notice(
            "tree-not-connected",
            f"{len(roots)} switches have nothing above them ({shorten(', '.join(roots), _SHOWN)}): no switch joins "
            f"them, so "
            "a job cannot span them",
            Weight.ERROR,
        )
    if units and not roots:
        run.notice("switch-cycle", "every switch hangs below another one: the tree is a cycle", Weight.ERROR)
