"""How one replica or job is split: in a GPU, a node, over nodes; what makes it impossible, what its failure takes."""

from __future__ import annotations

from clusterwright.model.decoders import Attention, CompressedAttention, Decoder, Experts, LatentAttention
from clusterwright.model.workloads import Parallel
from clusterwright.plan.results.layouts import Layout, Level
from clusterwright.plan.searching.shapes import shape_of
from clusterwright.plan.sites import Site


def declared_layout(parallel: Parallel) -> Layout:
    """The layout that the file states."""
    sizes = {name: getattr(parallel, name) for name in ("tp", "pp", "dp", "cp", "ep", "vp", "dcp")}
    return Layout(**sizes, declared=True)


def level_of(layout: Layout, site: Site) -> Level:
    """Where a layout lives."""
    if layout.gpus == 1:
        return "gpu"
    return "node" if layout.gpus <= site.gpus_per_node else "nodes"


def why_impossible(layout: Layout, site: Site, model: Decoder, *, crossing: bool = False) -> str:
    """Reason that holds whatever the memory, or "".

    Args:
        crossing: tensor ranks may leave the domain, at the network's price.
    """
    domain = site.domain_gpus if site.domain_gpus > 1 else site.gpus_per_node  # over PCIe, inside a node
    if layout.tp > domain and not crossing:
        joined = "joined by NVLink or xGMI" if site.domain_gpus > 1 else "of one node, which nothing but PCIe joins"
        return f"tensor parallelism over {layout.tp} GPUs leaves the domain of {domain} {joined}"
    heads = next((h for h in _heads(model) if h % layout.tp), None)
    if heads is not None:
        return f"{heads} attention heads do not divide among {layout.tp} tensor ranks"
    if layout.pp > len(model.layers):
        return f"{len(model.layers)} layers do not fill {layout.pp} pipeline stages"
    against = _experts_against(layout, model) or _sharing_against(layout, model)
    if against:
        return against
    if layout.gpus > site.gpus:
        return f"needs {layout.gpus} GPUs, pool {site.name} has {site.gpus}"
    if layout.gpus > site.gpus_per_node and layout.gpus % site.gpus_per_node:
        return f"{layout.gpus} GPUs are no whole number of nodes of {site.gpus_per_node}"
    return ""


def _heads(model: Decoder) -> list[int]:
    """Query heads of every kind of attention layer."""
    kinds = (Attention, LatentAttention, CompressedAttention)
    return [layer.mixer.heads for layer, _ in model.groups if isinstance(layer.mixer, kinds)]


def _sharing_against(layout: Layout, model: Decoder) -> str:
    """Why ranks cannot share a cache by position, or ""."""
    if layout.dcp == 1:
        return ""
    shape = shape_of(model)
    if shape.state_heads:
        return f"{model.name} keeps recurrent states, which ranks do not share by position"
    repeats = layout.tp if shape.latent else max(layout.tp // max(shape.kv_heads, default=1), 1)
    if layout.dcp <= repeats:
        return ""
    heads = max(shape.kv_heads, default=1)
    return f"{layout.dcp} ranks cannot share a cache: {heads} KV heads over {layout.tp} ranks lie on {repeats} each"


def _experts_against(layout: Layout, model: Decoder) -> str:
    """Why the expert ranks are impossible, or ""."""
    ranks = layout.tp * layout.dp * layout.cp
    if layout.ep == 1:
        return ""
    feeds = [layer.feed for layer, _ in model.groups if isinstance(layer.feed, Experts)]
    if not feeds:
        return f"the layout has {layout.ep} expert ranks, {model.name} has no experts"
    uneven = next((f.experts for f in feeds if f.experts % layout.ep), None)
    if uneven is not None:
        return f"{uneven} experts do not divide among {layout.ep} expert ranks"
    if ranks % layout.ep:
        return f"{layout.ep} expert ranks do not divide the {ranks} ranks of a stage"
    return ""


def failure_domain(layout: Layout, site: Site, what: str) -> str:
    """What one failure takes down with this layout."""
    level = level_of(layout, site)
    held = site.gpus_per_node // layout.gpus
    if level == "gpu":
        return f"a GPU takes one {what}; a node takes up to {held}"
    if level == "node":
        node = f"a node takes up to {held}" if held > 1 else "and so does its node"
        return f"any of its {layout.gpus} GPUs takes the {what}; {node}"
    nodes = -(-layout.gpus // site.gpus_per_node)
    return f"any of its {layout.gpus} GPUs, {nodes} nodes, or the network between them takes the {what}"
