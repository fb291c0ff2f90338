"""Bill of materials: from GPUs or nodes and a node shape to switches, cables, optics, racks, power and spares."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.model.hardware import NodeShape
from clusterwright.physics.failures import RSC1_PER_1000_NODE_DAYS, spares
from clusterwright.physics.fat_trees import FatTree, fat_tree


@dataclass(frozen=True, slots=True)
class SwitchKind:
    """A switch as it is built into a fabric.

    Args:
        radix: ports at the rate of the nodes' ports.
        port_gbps: that rate, Gb/s.
        cage_ports: ports per cage, that share one transceiver.
        source: where these come from.
    """

    name: str
    radix: int
    port_gbps: float
    cage_ports: int
    source: str


#: Switches by name; the default of a bill is the first whose ports have the rate of the nodes' ports.
SWITCHES: Final[tuple[SwitchKind, ...]] = (
    SwitchKind("QM8700", 40, 200, 1, "NVIDIA Quantum QM8700: 40 ports of HDR 200 Gb/s"),
    SwitchKind("QM9700", 64, 400, 2, "NVIDIA Quantum-2 QM9700: 64 ports of NDR 400 Gb/s in 32 OSFP cages"),
    SwitchKind("Q3400", 144, 800, 2, "NVIDIA Quantum-X800 Q3400: 144 ports of XDR 800 Gb/s in 72 OSFP cages"),
)


@dataclass(frozen=True, slots=True)
class Options:
    """What a bill assumes where nobody says otherwise.

    Args:
        oversubscription: of the leaves.
        rails: GPU i of every node of a group on leaf i.
        optical_nodes: cables between nodes and leaves are optical; False for copper within a rack.
        node_cage_ports: ports of a node that share one transceiver (DGX H100: 2).
        rack_kw: power that one rack may draw.
        rack_nodes: nodes that fit a rack by height.
        rack_switches: switches that fit a rack of their own.
        switch_kw: of a switch with its optics; our default, its datasheet counts.
        pue: power usage effectiveness.
        spares_target: probability that all working nodes are whole.
        per_1000_node_days: failures of nodes (RSC-1).
        repair_days: until a failed node is back.
        spares: spare nodes that there shall be, None for as many as the target asks for.
    """

    oversubscription: float = 1.0
    rails: bool = True
    optical_nodes: bool = True
    node_cage_ports: int = 1
    rack_kw: float = 44.0
    rack_nodes: int = 4
    rack_switches: int = 16
    switch_kw: float = 1.7
    pue: float = 1.25
    spares_target: float = 0.99
    per_1000_node_days: float = RSC1_PER_1000_NODE_DAYS
    repair_days: float = 1.0
    spares: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the bill with how it was counted."""

    what: str
    count: float
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class Materials:
    """The bill of one pool and its compute fabric.

    Args:
        nodes: that work; spares stand beside them and are cabled, racked and powered alike.
        transceivers: at both ends of optical cables.
        it_kw: of nodes and switches; facility_kw with the PUE.
    """

    nodes: int
    spares: int
    gpus: int
    fabric: FatTree | None
    switch: SwitchKind | None
    transceivers: int
    node_racks: int
    switch_racks: int
    it_kw: float | None
    facility_kw: float | None
    lines: tuple[Line, ...] = ()
    unknown: tuple[str, ...] = ()


def count_materials(
    shape: NodeShape,
    *,
    nodes: int | None = None,
    gpus: int | None = None,
    ports: int | None = None,
    switch: SwitchKind | None = None,
    node_kw: float | None = None,
    options: Options = Options(),
) -> Materials:
    """The bill for a number of nodes or GPUs of one shape.

    Args:
        nodes, gpus: exactly one of them; GPUs are rounded up to whole nodes.
        ports: compute ports per node, those of the shape if absent.
        switch: the kind that fits the rate of the shape's compute ports if absent.
        node_kw: power of a node, that of the shape if absent.

    Returns:
        A bill; what cannot be counted is named in `unknown`.

    Raises:
        ValueError: when both or neither of nodes and gpus are given, or the shape has no GPU.
    """
    if (nodes is None) == (gpus is None):
        raise ValueError("give nodes or gpus, one of them")
    if gpus is not None:
        if not shape.gpus:
            raise ValueError(f"{shape.name} has no GPU")
        nodes = math.ceil(gpus / shape.gpus)
    assert nodes is not None
    spare = _spares(nodes, options)
    built, unknown = nodes + spare, list[str]()
    chosen, each = _network(shape, ports, switch, unknown)
    tree = None
    if chosen is not None and each and built > 1:
        tree = fat_tree(built, each, chosen.radix, options.oversubscription, options.rails)
    power = node_kw if node_kw is not None else (shape.power.to("kW") if shape.power else None)
    if power is None:
        unknown.append(f"power of a node: {shape.name} is a board without one in the catalogue")
    it_kw = None
    if power is not None:
        it_kw = built * power + (tree.switches * options.switch_kw if tree else 0.0)
    per_rack = options.rack_nodes if power is None else min(options.rack_nodes, math.floor(options.rack_kw / power))
    if per_rack < 1:
        unknown.append(f"racks: a node of {power:g} kW exceeds the {options.rack_kw:g} kW of a rack")
    node_racks = math.ceil(built / per_rack) if per_rack >= 1 else 0
    switch_racks = math.ceil(tree.switches / options.rack_switches) if tree else 0
    optics = _transceivers(tree, chosen, built, each, options) if tree and chosen else 0
    facility = None if it_kw is None else it_kw * options.pue
    made = Materials(
        nodes=nodes,
        spares=spare,
        gpus=nodes * shape.gpus,
        fabric=tree,
        switch=chosen,
        transceivers=optics,
        node_racks=node_racks,
        switch_racks=switch_racks,
        it_kw=it_kw,
        facility_kw=facility,
        unknown=tuple(unknown),
    )
    return _with_lines(made, shape, power, per_rack, options)


def _spares(nodes: int, options: Options) -> int:
    if options.spares is not None:
        return options.spares
    if not options.per_1000_node_days:
        return 0
    return spares(nodes, 1000 / options.per_1000_node_days, options.repair_days, options.spares_target)


def _network(
    shape: NodeShape, ports: int | None, switch: SwitchKind | None, unknown: list[str]
) -> tuple[SwitchKind | None, int]:
    slots = [s for s in shape.nics if s.role == "compute"]
    each = ports if ports is not None else sum(s.count for s in slots)
    if not each:
        unknown.append(f"compute fabric: {shape.name} names no compute adapters; give ports per node")
        return None, 0
    rate = next((s.rate.to("Gb/s") for s in slots if s.rate is not None), None)
    found = switch or next((s for s in SWITCHES if rate is not None and s.port_gbps == round(rate)), None)
    if found is None:
        unknown.append("compute fabric: no switch for the rate of the nodes' ports; give one")
    return found, each


def _transceivers(tree: FatTree, switch: SwitchKind, nodes: int, ports: int, options: Options) -> int:
    """Both ends of every optical cable; ports of one cage share a transceiver, counted per switch and per node."""
    between = [(tree.leaf_cables, tree.leaves, tree.spines), (tree.core_cables, tree.spines, tree.cores)]
    found = 0
    for cables, below, above in between:
        found += sum(end * math.ceil(cables / end / switch.cage_ports) for end in (below, above) if end)
    if options.optical_nodes:
        found += nodes * math.ceil(ports / options.node_cage_ports)
        found += tree.leaves * math.ceil(tree.node_cables / tree.leaves / switch.cage_ports)
    return found


def _with_lines(made: Materials, shape: NodeShape, power: float | None, per_rack: int, options: Options) -> Materials:
    """The same bill with its lines in words."""
    target = f"{options.spares_target:.1%}"
    back = _counted(options.repair_days, "day")
    repair = f"{options.per_1000_node_days:g} failures per 1,000 node-days, back after {back}"
    lines = [
        Line("nodes", made.nodes, shape.name, f"{made.gpus} GPUs, {shape.gpus} each"),
        Line(
            "spare nodes",
            made.spares,
            shape.name,
            f"so that all work with probability {target}; {repair}" if options.spares is None else "as asked for",
        ),
    ]
    if made.fabric is not None and made.switch is not None:
        lines += _fabric_lines(made.fabric, made.switch, options)
        lines.append(Line("transceivers", made.transceivers, "", "both ends of optical cables, per cage"))
    if made.node_racks:
        lines.append(Line("racks of nodes", made.node_racks, "", f"{per_rack} nodes within {options.rack_kw:g} kW"))
    if made.switch_racks:
        lines.append(Line("racks of switches", made.switch_racks, "", f"{options.rack_switches} switches each"))
    if made.it_kw is not None and made.facility_kw is not None:
        said = f"{made.nodes + made.spares} × {power:g} kW and {options.switch_kw:g} kW per switch"
        lines.append(Line("power of IT", made.it_kw, "kW", said))
        lines.append(Line("power with cooling", made.facility_kw, "kW", f"PUE {options.pue:g}"))
    return replace(made, lines=tuple(lines))


def _fabric_lines(tree: FatTree, switch: SwitchKind, options: Options) -> list[Line]:
    rails = "rail-optimised" if options.rails else "not by rails"
    counted = [
        Line(
            "leaf switches",
            tree.leaves,
            switch.name,
            f"{_counted(tree.groups, 'group')} of {tree.group_nodes} nodes, {rails}",
        ),
        Line("spine switches", tree.spines, switch.name, f"oversubscription {options.oversubscription:g}"),
        Line("core switches", tree.cores, switch.name, "third tier"),
        Line("cables, node to leaf", tree.node_cables, "", "optical" if options.optical_nodes else "copper"),
        Line("cables, leaf to spine", tree.leaf_cables, "", "optical"),
        Line("cables, spine to core", tree.core_cables, "", "optical"),
    ]
    return [line for line in counted if line.count]


def _counted(count: float, word: str) -> str:
    return f"{count:g} {word}{'s' * (count != 1)}"
