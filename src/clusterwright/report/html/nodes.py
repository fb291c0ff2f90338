"""Nodes as drawn: device by device where there are few, else a tile for each, else a tile for those that are alike.

Up to `DETAILED` nodes of a pool are drawn device by device. More get a tile each beside one node in detail; beyond
`TILES` nodes, those that carry the same share a tile that says how many they are. No node is left out silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from clusterwright.lib.hostlists import fold as fold_hosts
from clusterwright.report.html.drawing import box, words
from clusterwright.report.html.elements import Child, h
from clusterwright.report.html.sites import DrawnPool, Site

#: Nodes of one pool up to which every device is drawn.
DETAILED: Final = 4
#: Nodes of one pool up to which every node has a tile.
TILES: Final = 160
#: Groups of nodes that carry the same, up to which each is drawn.
GROUPS: Final = 24
COLOURS: Final = 10
PAD: Final = 12.0


@dataclass(frozen=True, slots=True)
class Paper:
    """Sizes of one of the two drawings, in pixels.

    Args:
        bus: between the lines of two networks.
        ports: kept free in a row for the rates of its ports.
        gpu: height of one GPU.
        per_row: GPUs side by side.
    """

    width: float
    bus: float
    ports: float
    gpu: float
    per_row: int
    narrow: bool

    def inner(self, site: Site) -> float:
        """Width of a row, left of the networks."""
        return self.width - self.bus * len(site.networks) - 10


def colour_of(site: Site, workload: str) -> str:
    """Class that colours a workload."""
    return f"k{list(site.codes).index(workload) % COLOURS + 1}"


def draw_nodes(site: Site, pool: DrawnPool, paper: Paper, y: float, room: float) -> tuple[Child, float]:
    """(shapes, height) of a pool's nodes within `room` pixels."""
    if not pool.gpus:
        return _plain_nodes(pool, y, room)
    if len(pool.nodes) <= DETAILED:
        return _detailed(site, pool, pool.nodes, paper, y, room)
    return _tiled(site, pool, paper, y, room)


def _plain_nodes(pool: DrawnPool, y: float, room: float) -> tuple[Child, float]:
    each, shown = 96.0, pool.nodes
    columns = max(1, int((room + 8) / (each + 8)))
    if len(shown) > 2 * columns:
        return words(PAD, y + 16, fold_hosts(shown), "s12", room=room), 24
    shapes: list[Child] = []
    for index, node in enumerate(shown):
        x, at = PAD + index % columns * (each + 8), y + index // columns * 34
        shapes += [box(x, at, each, 27, "box", radius=4), words(x + each / 2, at + 18, node, "s12 mid", room=each - 8)]
    return shapes, -(-len(shown) // columns) * 34.0 - 7


def _detailed(
    site: Site, pool: DrawnPool, nodes: Sequence[str], paper: Paper, y: float, room: float
) -> tuple[Child, float]:
    per_row = min(paper.per_row, pool.gpus)
    width = min(room, per_row * (paper.gpu + 4) + 28)
    columns = max(1, int((room + 12) / (width + 12)))
    shapes: list[Child] = []
    height = 0.0
    for index, node in enumerate(nodes):
        x = PAD + index % columns * (width + 12)
        at = y + index // columns * (height + 12)
        drawn, height = _node(site, pool, node, paper, x, at, width)
        shapes.append(drawn)
    lines = -(-len(nodes) // columns)
    return shapes, lines * height + (lines - 1) * 12


def _node(
    site: Site, pool: DrawnPool, node: str, paper: Paper, x: float, y: float, width: float
) -> tuple[Child, float]:
    """One node device by device: GPUs in their domain, compute NICs, the rest as words."""
    per_row = min(paper.per_row, pool.gpus)
    pitch = (width - 24) / per_row
    side = pitch - 4
    shapes: list[Child] = [words(x + 10, y + 18, node, "s12 t-bold", room=width - 20)]
    lines = -(-pool.gpus // per_row)
    top = y + 28
    tall = lines * (paper.gpu + 4) + (18 if pool.domain else 2)
    if pool.domain:
        shapes.append(box(x + 7, top, width - 14, tall, "domain", radius=5))
        shapes.append(words(x + 13, top + tall - 5, pool.domain_words, "s11 t-soft", room=width - 26))
    for gpu in range(pool.gpus):
        gx, gy = x + 12 + gpu % per_row * pitch + 2, top + 4 + gpu // per_row * (paper.gpu + 4)
        shapes.append(_gpu(site, node, gpu, gx, gy, side, paper.gpu))
    y_next = top + tall + 8
    if pool.nics:
        role = next((n.role for n in site.networks if n.role == "compute"), "mixed")
        reach = (width - 24) / pool.nics
        shapes += [box(x + 14 + i * reach, y_next, reach - 4, 9, f"f-{role}", radius=2) for i in range(pool.nics)]
        y_next += 11
    abreast = 1 if width < 320 else 2
    for said in (pool.devices[i : i + abreast] for i in range(0, len(pool.devices), abreast)):
        shapes.append(words(x + 12, y_next + 13, ", ".join(said), "s11 t-soft", room=width - 22))
        y_next += 15
    height = y_next + 8 - y
    return (box(x, y, width, height, "box", radius=5), shapes), height


def _gpu(site: Site, node: str, gpu: int, x: float, y: float, width: float, height: float) -> Child:
    holder = site.taken.get((node, gpu))
    if holder is None:
        return (
            box(x, y, width, height, "free", radius=3, tip=f"{node} GPU {gpu}: free"),
            words(x + width / 2, y + height / 2 + 4, str(gpu), "s11 mid t-soft"),
        )
    workload, replica = holder
    return (
        box(
            x,
            y,
            width,
            height,
            colour_of(site, workload),
            radius=3,
            tip=f"{node} GPU {gpu}: {workload}, replica {replica}",
        ),
        words(x + width / 2, y + height / 2 + 1, f"{site.codes[workload]}{replica}", "s13 mid t-on t-bold"),
        words(x + width / 2, y + height - 6, str(gpu), "s10 mid t-on"),
    )


def _tiled(site: Site, pool: DrawnPool, paper: Paper, y: float, room: float) -> tuple[Child, float]:
    """One node in detail, then a tile per node or per group of nodes that carry the same."""
    sample, used = _detailed(replace(site, taken={}), pool, ("every node",), paper, y, room)
    top = y + used + 14
    if len(pool.nodes) > TILES:
        tiles, more = _grouped(site, pool, paper, top, room)
    else:
        tiles, more = _grid(site, pool, top, room)
    return (sample, tiles), used + 14 + more


def _grid(site: Site, pool: DrawnPool, y: float, room: float) -> tuple[Child, float]:
    width, height = _tile_size(pool)
    columns = max(1, int((room + 6) / (width + 6)))
    group = pool.domain_nodes
    if group > 1:
        columns = max(c for c in range(1, columns + 1) if group % c == 0 or c == 1)
    shapes: list[Child] = []
    at = y
    step = group if group > 1 else len(pool.nodes)
    prefix = _common_prefix(pool.nodes)
    for first in range(0, len(pool.nodes), step):
        block = pool.nodes[first : first + step]
        for index, node in enumerate(block):
            x, ty = PAD + index % columns * (width + 6), at + index // columns * (height + 5)
            shapes.append(_tile(site, pool, node, node[len(prefix) :] or node, x, ty))
        lines = -(-len(block) // columns)
        if group > 1:
            shapes.append(
                box(
                    PAD - 4,
                    at - 4,
                    columns * (width + 6) + 2,
                    lines * (height + 5) + 3,
                    "domain",
                    radius=4,
                    tip=pool.domain_words,
                )
            )
        at += lines * (height + 5) + (8 if group > 1 else 0)
    return shapes, at - y


def _grouped(site: Site, pool: DrawnPool, paper: Paper, y: float, room: float) -> tuple[Child, float]:
    width, height = _tile_size(pool)
    shapes: list[Child] = []
    at = y
    for holds, nodes in _alike(site, pool)[:GROUPS]:
        shapes.append(_tile(site, pool, nodes[0], f"× {len(nodes)}", PAD, at))
        said = f"{fold_hosts(nodes)}: {holds}"
        shapes.append(words(PAD + width + 10, at + height / 2 + 4, said, "s12", room=room - width - 20))
        at += height + 6
    left = len(_alike(site, pool)) - GROUPS
    if left > 0:
        shapes.append(
            words(PAD, at + 12, f"and {left} more groups of nodes, in the table below", "s12 t-soft", room=room)
        )
        at += 20
    return shapes, at - y


def _alike(site: Site, pool: DrawnPool) -> list[tuple[str, list[str]]]:
    """(what they carry, nodes) for nodes whose GPUs carry the same workloads, replicas aside."""
    found: dict[str, list[str]] = {}
    for node in pool.nodes:
        holders = [site.taken.get((node, g)) for g in range(pool.gpus)]
        names = [holder[0] if holder else "free" for holder in holders]
        said = ", ".join(f"{len(list(same))} × {name}" for name, same in groupby(names))
        found.setdefault(said, []).append(node)
    return list(found.items())


def _tile_size(pool: DrawnPool) -> tuple[float, float]:
    across = min(4, pool.gpus)
    return max(46.0, across * 11 + 3), 14 + -(-pool.gpus // across) * 11 + 2.0


def _tile(site: Site, pool: DrawnPool, node: str, label: str, x: float, y: float) -> Child:
    """A node as a label over a square per GPU; squares of one colour are one path, so that hundreds stay small."""
    across = min(4, pool.gpus)
    paths: dict[str, list[str]] = {}
    for gpu in range(pool.gpus):
        holder = site.taken.get((node, gpu))
        gx, gy = x + gpu % across * 11, y + 14 + gpu // across * 11
        paths.setdefault(colour_of(site, holder[0]) if holder else "free", []).append(f"M{gx:g} {gy:g}h9v9h-9z")
    held = sorted(
        {site.codes[w] for w in (site.taken[node, g][0] for g in range(pool.gpus) if (node, g) in site.taken)}
    )
    said = f"{label} {'+'.join(held)}".strip()
    return (
        words(x, y + 10, said, "s10", room=_tile_size(pool)[0] + 8),
        (h("path", d="".join(d), cls=c) for c, d in paths.items()),
    )


def _common_prefix(nodes: Sequence[str]) -> str:
    first, final = min(nodes), max(nodes)
    same = 0
    while same < min(len(first), len(final)) and first[same] == final[same]:
        same += 1
    return first[:same].rstrip("0123456789")
