"""The cluster as a drawing: a row per pool and store, a line per network, GPUs in the colour of their workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.lib.hostlists import fold as fold_hosts
from clusterwright.report.html.drawing import box, fitted, legend, line, picture, words
from clusterwright.report.html.elements import Child, Html, fold, h, markup, table
from clusterwright.report.html.nodes import PAD, Paper, colour_of, draw_nodes
from clusterwright.report.html.sites import DrawnPool, DrawnStore, Site, placed_words, site_of
from clusterwright.report.proofs import Proof

_DESK: Final = Paper(width=1040, bus=24, ports=112, gpu=40, per_row=8, narrow=False)
_PHONE: Final = Paper(width=344, bus=12, ports=0, gpu=56, per_row=4, narrow=True)


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


def _legend(site: Site) -> Html:
    entries: list[tuple[str, Child]] = []
    for name, code in site.codes.items():
        replicas = len({r for r, _, _ in site.placed(name)})
        placed = f"{replicas} placed" if replicas else "not placed"
        entries.append((colour_of(site, name), (h("b", code), f" {name}, {placed}")))
    if any(p.gpus for p in site.pools):
        entries.append(("free", "free GPU"))
    return legend(entries)


def _drawing(site: Site, paper: Paper, cls: str) -> Html:
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


def _bus_x(site: Site, paper: Paper, network: str) -> float:
    index = [n.name for n in site.networks].index(network)
    return paper.inner(site) + paper.bus * (index + 0.5) + 8


def _heads_height(site: Site, paper: Paper) -> float:
    return (34 if paper.narrow else 20) * len(site.networks) + 12


def _buses(site: Site, paper: Paper, inner: float, last: dict[str, float]) -> list[Child]:
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


def _stub_y(paper: Paper, y: float, height: float, index: int, count: int) -> float:
    if count == 1:
        return y + height / 2
    first, gap = y + 30, min(26.0, (height - 44) / max(1, count - 1))
    return first + gap * index


def _stub(site: Site, network: str, label: str, paper: Paper, y: float, inner: float) -> Child:
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


def _panel(paper: Paper, y: float, height: float, inner: float, name: str, about: Sequence[str]) -> list[Child]:
    shapes: list[Child] = [box(0.5, y, inner - 0.5, height, "sunk", radius=5)]
    if paper.narrow:
        shapes.append(words(PAD, y + 19, name, "s13 t-bold", room=inner - 2 * PAD))
        for index, said in enumerate(about):
            shapes.append(words(PAD, y + 34 + 14 * index, said, "s11 t-soft", room=inner - 2 * PAD))
    else:
        room = inner - 2 * PAD - 8.5 * len(name)
        label = h("tspan", fitted(", ".join(about), room, 12), cls="t-soft s12", font_weight="400", dx=8)
        shapes.append(h("text", h("tspan", name, cls="t-bold"), label, x=PAD, y=y + 20, cls="s13"))
    return shapes


def _head(paper: Paper, about: Sequence[str]) -> float:
    return 30.0 + 14 * len(about) if paper.narrow else 30.0


def _store(store: DrawnStore, paper: Paper, y: float, inner: float) -> tuple[Child, float]:
    about = store.words if paper.narrow else (", ".join(store.words),)
    height = _head(paper, about) + 4
    return _panel(paper, y, height, inner, f"store {store.name}", about), height


def _pool(site: Site, pool: DrawnPool, paper: Paper, y: float, inner: float) -> tuple[Child, float]:
    room = inner - paper.ports - 2 * PAD
    about = (f"{len(pool.nodes)} node{'s' if len(pool.nodes) != 1 else ''}, {pool.about[0]}", *pool.about[1:])
    head = _head(paper, about)
    start = y + head
    body, used = draw_nodes(site, pool, paper, start, room)
    least = 0.0 if paper.narrow else 20.0 * len(pool.attachments) + 24
    height = max(used + head + PAD, least)
    return (_panel(paper, y, height, inner, f"pool {pool.name}", about), body), height


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
