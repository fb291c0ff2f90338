"""The cluster as a drawing: a row per pool and store, a line per network at the right, GPUs in the colour of their job.

Up to four nodes of a pool are drawn device by device. More are drawn as tiles, one per node, beside one node in detail;
beyond `TILES` nodes, those that carry the same are drawn as one tile with their number. No node is left out silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from clusterwright.lib.hostlists import fold as fold_hosts
from clusterwright.report.html.drawing import box, fitted, legend, line, picture, words
from clusterwright.report.html.elements import Child, Html, fold, h, markup, table
from clusterwright.report.html.sites import DrawnPool, DrawnStore, Site, placed_words, site_of
from clusterwright.report.proofs import Proof

#: Nodes of one pool up to which every device is drawn.
DETAILED: Final = 4
#: Nodes of one pool up to which every node has a tile.
TILES: Final = 160
COLOURS: Final = 8


@dataclass(frozen=True, slots=True)
class _Paper:
    """Sizes of one of the two drawings, in pixels."""

    width: float
    bus: float
    ports: float
    gpu: float
    per_row: int
    narrow: bool

    def inner(self, site: Site) -> float:
        """Width of a row, left of the networks."""
        return self.width - self.bus * len(site.networks) - 10


_DESK: Final = _Paper(width=1040, bus=24, ports=112, gpu=40, per_row=8, narrow=False)
_PHONE: Final = _Paper(width=344, bus=12, ports=0, gpu=56, per_row=4, narrow=True)
_PAD: Final = 12.0


def render_topology(proof: Proof) -> Html:
    """The drawing for a desk and for a phone, its legend, and the same as text; "" without pools."""
    site = site_of(proof)
    if site is None:
        return Html("")
    return markup(
        h(
            "figure",
            _drawing(site, _DESK, "wide"),
            _drawing(site, _PHONE, "narrow"),
            h("figcaption", _caption(proof)),
        ),
        _legend(site),
        fold("The drawing as text", _as_text(site), cls="fold"),
    )


def _caption(proof: Proof) -> str:
    planned = "Placement as planned; nothing was observed on these nodes."
    return planned if proof.plan else "Nothing could be planned, so no placement is shown."


def colour_of(site: Site, workload: str) -> str:
    """Class that colours a workload."""
    return f"k{list(site.codes).index(workload) % COLOURS + 1}"


def _legend(site: Site) -> Html:
    entries: list[tuple[str, Child]] = []
    for name, code in site.codes.items():
        replicas = len({r for r, _, _ in site.placed(name)})
        placed = f"{replicas} placed" if replicas else "not placed"
        entries.append((colour_of(site, name), (h("b", code), f" {name}, {placed}")))
    if any(p.gpus for p in site.pools):
        entries.append(("free", "free GPU"))
    return legend(entries)


def _drawing(site: Site, paper: _Paper, cls: str) -> Html:
    shapes: list[Child] = []
    inner = paper.inner(site)
    top = _heads_height(site, paper)
    y = top
    last: dict[str, float] = {}
    rows: list[Child] = []
    things: tuple[DrawnPool | DrawnStore, ...] = (*site.pools, *site.stores)
    for row in things:
        if isinstance(row, DrawnPool):
            drawn, height = _pool(site, row, paper, y, inner)
        else:
            drawn, height = _store(row, paper, y, inner)
        rows.append(drawn)
        for index, attachment in enumerate(row.attachments):
            at = _stub_y(paper, y, height, index, len(row.attachments))
            rows.append(_stub(site, attachment.network, attachment.words, paper, at, inner))
            last[attachment.network] = at
        y += height + 14
    shapes += _buses(site, paper, inner, last)
    shapes += rows
    return picture(
        paper.width,
        y,
        *shapes,
        title="Topology",
        description=_description(site),
        cls=cls,
        id_=f"topology-{cls}",
    )


def _description(site: Site) -> str:
    pools = "; ".join(f"pool {p.name}: {len(p.nodes)} nodes, {', '.join(p.about)}" for p in site.pools)
    networks = "; ".join(f"network {n.name}: {n.words}" for n in site.networks)
    stores = "; ".join(f"store {s.name}: {', '.join(s.words)}" for s in site.stores)
    return ". ".join(s for s in (pools, networks, stores) if s) + ". The table below says the same in full."


# Networks: a label at the top for each, from which its line runs down on the right.


def _bus_x(site: Site, paper: _Paper, network: str) -> float:
    index = [n.name for n in site.networks].index(network)
    return paper.inner(site) + paper.bus * (index + 0.5) + 8


def _heads_height(site: Site, paper: _Paper) -> float:
    return (34 if paper.narrow else 20) * len(site.networks) + 12


def _buses(site: Site, paper: _Paper, inner: float, last: dict[str, float]) -> list[Child]:
    shapes: list[Child] = []
    step = 34 if paper.narrow else 20
    for index, network in enumerate(reversed(site.networks)):
        y, x = 14 + step * index, _bus_x(site, paper, network.name)
        wire = f"w-{network.role}"
        room = x - 8 if paper.narrow else inner - 8
        if paper.narrow:
            shapes.append(words(0, y - 3, network.name, "s12 t-bold", room=room - 30))
            shapes.append(words(0, y + 10, network.brief, "s10 t-soft", room=room - 10))
            start = x - 14
        else:
            label = f"{network.name}: {network.words}"
            shapes.append(words(inner - 8, y + 4, label, "s12 end", room=room))
            start = inner
        end = last.get(network.name)
        shapes.append(line(start, y, x, y, f"wire {wire}", width=3))
        shapes.append(line(x, y - 1.5, x, end if end is not None else y + 6, f"wire {wire}", width=3))
    return shapes


def _stub_y(paper: _Paper, y: float, height: float, index: int, count: int) -> float:
    if count == 1:
        return y + height / 2
    first, gap = y + 30, min(26.0, (height - 44) / max(1, count - 1))
    return first + gap * index


def _stub(site: Site, network: str, label: str, paper: _Paper, y: float, inner: float) -> Child:
    x = _bus_x(site, paper, network)
    role = next(n.role for n in site.networks if n.name == network)
    said = None
    if label and not paper.narrow:
        said = words(inner - 8, y + 4, label, "s11 end t-soft", room=paper.ports)
    return (
        line(inner, y, x, y, f"wire w-{role}", width=1.5),
        h("circle", cx=x, cy=y, r=4, cls=f"f-{role}"),
        said,
    )


# Rows.


def _panel(paper: _Paper, y: float, height: float, inner: float, name: str, about: Sequence[str]) -> list[Child]:
    shapes: list[Child] = [box(0.5, y, inner - 0.5, height, "sunk", radius=5)]
    if paper.narrow:
        shapes.append(words(_PAD, y + 19, name, "s13 t-bold", room=inner - 2 * _PAD))
        for index, said in enumerate(about):
            shapes.append(words(_PAD, y + 34 + 14 * index, said, "s11 t-soft", room=inner - 2 * _PAD))
    else:
        room = inner - 2 * _PAD - 8.5 * len(name)
        label = h("tspan", fitted(", ".join(about), room, 12), cls="t-soft s12", font_weight="400", dx=8)
        shapes.append(h("text", h("tspan", name, cls="t-bold"), label, x=_PAD, y=y + 20, cls="s13"))
    return shapes


def _head(paper: _Paper, about: Sequence[str]) -> float:
    return 30.0 + 14 * len(about) if paper.narrow else 30.0


def _store(store: DrawnStore, paper: _Paper, y: float, inner: float) -> tuple[Child, float]:
    about = store.words if paper.narrow else (", ".join(store.words),)
    height = _head(paper, about) + 4
    return _panel(paper, y, height, inner, f"store {store.name}", about), height


def _pool(site: Site, pool: DrawnPool, paper: _Paper, y: float, inner: float) -> tuple[Child, float]:
    room = inner - paper.ports - 2 * _PAD
    about = (f"{len(pool.nodes)} node{'s' if len(pool.nodes) != 1 else ''}, {pool.about[0]}", *pool.about[1:])
    head = _head(paper, about)
    start = y + head
    if not pool.gpus:
        body, used = _plain_nodes(pool, start, room)
    elif len(pool.nodes) <= DETAILED:
        body, used = _detailed(site, pool, pool.nodes, paper, start, room)
    else:
        body, used = _tiled(site, pool, paper, start, room)
    least = 0.0 if paper.narrow else 20.0 * len(pool.attachments) + 24
    height = max(used + head + _PAD, least)
    return (_panel(paper, y, height, inner, f"pool {pool.name}", about), body), height


def _plain_nodes(pool: DrawnPool, y: float, room: float) -> tuple[Child, float]:
    each, shown = 96.0, pool.nodes
    columns = max(1, int((room + 8) / (each + 8)))
    if len(shown) > 2 * columns:
        return words(_PAD, y + 16, fold_hosts(shown), "s12", room=room), 24
    shapes: list[Child] = []
    for index, node in enumerate(shown):
        x, at = _PAD + index % columns * (each + 8), y + index // columns * 34
        shapes += [box(x, at, each, 27, "box", radius=4), words(x + each / 2, at + 18, node, "s12 mid", room=each - 8)]
    return shapes, -(-len(shown) // columns) * 34.0 - 7


def _detailed(
    site: Site, pool: DrawnPool, nodes: Sequence[str], paper: _Paper, y: float, room: float
) -> tuple[Child, float]:
    per_row = min(paper.per_row, pool.gpus)
    width = min(room, per_row * (paper.gpu + 4) + 28)
    columns = max(1, int((room + 12) / (width + 12)))
    shapes: list[Child] = []
    height = 0.0
    for index, node in enumerate(nodes):
        x = _PAD + index % columns * (width + 12)
        at = y + index // columns * (height + 12)
        drawn, height = _node(site, pool, node, paper, x, at, width)
        shapes.append(drawn)
    lines = -(-len(nodes) // columns)
    return shapes, lines * height + (lines - 1) * 12


def _node(
    site: Site, pool: DrawnPool, node: str, paper: _Paper, x: float, y: float, width: float
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


def _tiled(site: Site, pool: DrawnPool, paper: _Paper, y: float, room: float) -> tuple[Child, float]:
    """One node in detail, then a tile per node or per group of nodes that carry the same."""
    sample, used = _detailed(_empty(site), pool, ("every node",), paper, y, room)
    top = y + used + 14
    if len(pool.nodes) > TILES:
        tiles, more = _grouped(site, pool, paper, top, room)
    else:
        tiles, more = _grid(site, pool, top, room)
    return (sample, tiles), used + 14 + more


def _empty(site: Site) -> Site:
    return Site(site.pools, site.networks, site.stores, {}, site.codes)


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
            x, ty = _PAD + index % columns * (width + 6), at + index // columns * (height + 5)
            shapes.append(_tile(site, pool, node, node[len(prefix) :] or node, x, ty))
        lines = -(-len(block) // columns)
        if group > 1:
            shapes.append(
                box(
                    _PAD - 4,
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


def _grouped(site: Site, pool: DrawnPool, paper: _Paper, y: float, room: float) -> tuple[Child, float]:
    width, height = _tile_size(pool)
    shapes: list[Child] = []
    at = y
    for holds, nodes in _alike(site, pool)[:24]:
        shapes.append(_tile(site, pool, nodes[0], f"× {len(nodes)}", _PAD, at))
        said = f"{fold_hosts(nodes)}: {holds}"
        shapes.append(words(_PAD + width + 10, at + height / 2 + 4, said, "s12", room=room - width - 20))
        at += height + 6
    left = len(_alike(site, pool)) - 24
    if left > 0:
        shapes.append(
            words(_PAD, at + 12, f"and {left} more groups of nodes, in the table below", "s12 t-soft", room=room)
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


# The same as text.


def _as_text(site: Site) -> Html:
    pools = (
        (
            h("span", p.name),
            h("span", fold_hosts(p.nodes), cls="mono"),
            ", ".join(p.about),
            ", ".join(s for s in (p.domain_words, *p.devices) if s),
            "; ".join(f"{a.network} {a.words}".strip() for a in p.attachments),
        )
        for p in site.pools
    )
    placed = [(f"{code} {name}", placed_words(site, name) or "not placed") for name, code in site.codes.items()]
    return markup(
        table(("Pool", "Nodes", "What", "In each node", "Networks"), pools, caption="Pools", cls="stack"),
        table(("Network", "What"), ((n.name, n.words) for n in site.networks), caption="Networks", cls="stack")
        if site.networks
        else None,
        table(
            ("Store", "What", "Network"),
            (
                (s.name, ", ".join(s.words), ", ".join(a.network for a in s.attachments) or "in the node")
                for s in site.stores
            ),
            caption="Stores",
            cls="stack",
        )
        if site.stores
        else None,
        table(("Workload", "Where it is placed"), placed, caption="Placement", cls="stack") if placed else None,
    )
