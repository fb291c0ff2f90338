"""How one replica or job is split: in a GPU, in a node, over nodes; which choice is taken, what its failure takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.model.decoders import Attention, CompressedAttention, Decoder, Experts, LatentAttention
from clusterwright.model.workloads import Parallel
from clusterwright.plan.results import Layout, Level, MemoryPlan, PlacementChoice, Unplanned
from clusterwright.plan.searching.shapes import shape_of
from clusterwright.plan.sites import Site


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout with what it would need and carry.

    Args:
        carries: whether one replica carries anything within its targets; None when its speed is not known.
        why_not: reason against it that precedes memory, or "".
    """

    layout: Layout
    memory: MemoryPlan | Unplanned
    carries: bool | None
    why_not: str = ""

    @property
    def total(self) -> Figure | None:
        """GiB on the fullest GPU."""
        return self.memory.total if isinstance(self.memory, MemoryPlan) else None


def declared_layout(parallel: Parallel) -> Layout:
    """The layout that the file states."""
    sizes = {name: getattr(parallel, name) for name in ("tp", "pp", "dp", "cp", "ep", "vp", "dcp")}
    return Layout(**sizes, declared=True)


def level_of(layout: Layout, site: Site) -> Level:
    """Where a layout lives."""
    if layout.gpus == 1:
        return "gpu"
    return "node" if layout.gpus <= site.gpus_per_node else "nodes"


def serving_layouts(site: Site) -> list[Layout]:
    """Layouts that the planner tries, fewest GPUs first: powers of two in a node, then pipelines of nodes."""
    inside = min(site.gpus_per_node, site.domain_gpus)
    widths = [w for w in (1, 2, 4, 8, 16) if w <= inside]
    layouts = [Layout(tp=w) for w in widths]
    if widths[-1] == site.gpus_per_node:
        layouts += [Layout(tp=site.gpus_per_node, pp=p) for p in (2, 4) if p <= len(site.working)]
    return layouts


def why_impossible(layout: Layout, site: Site, model: Decoder, *, crossing: bool = False) -> str:
    """Reason that holds whatever the memory, or "".

    Args:
        crossing: tensor ranks may leave the domain, at the network's price.
    """
    if layout.tp > site.domain_gpus and not crossing:
        return (
            f"tensor parallelism over {layout.tp} GPUs leaves the domain of {site.domain_gpus} joined by NVLink or xGMI"
        )
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


def choose_layout(
    candidates: list[Candidate], declared: Layout | None, site: Site, what: str
) -> tuple[tuple[PlacementChoice, ...], Layout | None]:
    """One choice per level with the reason for or against it, and the layout taken.

    A declared layout is taken. Else the one with the fewest GPUs that fits and carries load within the targets; else
    the fewest GPUs that fit.
    """
    taken = declared or _best(candidates)
    by_level: dict[Level, Candidate] = {}
    for candidate in candidates:
        level = level_of(candidate.layout, site)
        if candidate.layout == taken or (level not in by_level and _usable(candidate)):
            by_level[level] = candidate
    for candidate in candidates:  # a level of which nothing is usable is shown by its widest layout
        level = level_of(candidate.layout, site)
        known = by_level.get(level)
        if known is None or (not _usable(known) and known.layout != taken):
            by_level[level] = candidate
    choices = [_choice(c, taken, declared, site, what) for c in by_level.values()]
    order: list[Level] = ["gpu", "node", "nodes"]
    return tuple(sorted(choices, key=lambda c: order.index(c.level))), taken


def _usable(candidate: Candidate) -> bool:
    fits = isinstance(candidate.memory, MemoryPlan) and candidate.memory.fits
    return fits and not candidate.why_not and candidate.carries is not False


def _best(candidates: list[Candidate]) -> Layout | None:
    def first(holds: Callable[[Candidate], bool]) -> Layout | None:
        return next((c.layout for c in candidates if holds(c)), None)

    def fits(candidate: Candidate) -> bool:
        return not candidate.why_not and isinstance(candidate.memory, MemoryPlan) and candidate.memory.fits

    return first(lambda c: _usable(c) and bool(c.carries)) or first(_usable) or first(fits)


def _choice(
    candidate: Candidate, taken: Layout | None, declared: Layout | None, site: Site, what: str
) -> PlacementChoice:
    chosen = candidate.layout == taken
    return PlacementChoice(
        level_of(candidate.layout, site),
        candidate.layout,
        _usable(candidate),
        chosen,
        _reason(candidate, chosen, declared),
        failure_domain(candidate.layout, site, what),
        candidate.total,
    )


def _reason(candidate: Candidate, chosen: bool, declared: Layout | None) -> str:
    against = _against(candidate)
    if chosen:
        why = "declared" if declared else "fewest GPUs that fit and carry load within the targets"
        return f"{why}; {against}" if against else why
    if against:
        return against
    return "is possible, the file declares another" if declared else "is possible, fewer GPUs are enough"


def _against(candidate: Candidate) -> str:
    if candidate.why_not:
        return candidate.why_not
    if isinstance(candidate.memory, Unplanned):
        return candidate.memory.reason
    memory = candidate.memory
    if not memory.fits and memory.total.value > memory.usable.value:
        return f"needs {memory.total} per GPU, {memory.usable} are usable"
    if not memory.fits:
        return "; ".join(memory.why)
    if candidate.carries is False:
        return "fits, but no rate meets the latency targets"
    return ""
