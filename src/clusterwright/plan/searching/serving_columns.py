"""Every layout of inference judged; those that are possible with the batch, replicas and GPUs that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.sides import SideColumns
from clusterwright.plan.searching import memories, objectives
from clusterwright.plan.searching.columns import Bools, Floats, Ints, gpus, layout_at, of_layouts
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving_layouts import serving_layouts, structural
from clusterwright.plan.searching.shapes import Shape, shape_of
from clusterwright.plan.searching.speeds import (
    Speeds,
    largest_within,
    served_traffic,
    speeds,
    speeds_on_ladder,
    worker_columns,
)


@dataclass(frozen=True)
class Judged:
    """Layouts as columns, (n,) each; figures are nan or 0 where a layout is not possible.

    Args:
        sizes: by name of a field of `Layout`. reason: see `Reason`.
        memories: plans by row, of every layout that got so far.
        concurrency: requests in flight of one replica; ttft_s, tpot_s, requests_s at it, requests_s of one replica.
        first_ttft_s, first_tpot_s: with one request.
        replicas: that carry the load with `survive_nodes` nodes lost; needed: without loss.
        gpus: of all replicas; charged_gpus with what they leave unused on their nodes; nodes.
        gpu_h_per_mtok: charged GPU-hours per million output tokens of the load (of a full service where there is none).
        domain_gpus, domain_nodes: that one failing node takes out of service.
    """

    sizes: Mapping[str, Ints]
    reason: Ints
    memories: Mapping[int, EngineMemory]
    figures: Mapping[str, Floats] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Floats:
        try:
            return self.__dict__["figures"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def possible(self) -> Bools:
        """Rows that nothing speaks against."""
        return np.asarray(self.reason == Reason.NONE)


#: Columns of `Judged.figures`.
FIGURES = (
    "concurrency", "ttft_s", "tpot_s", "requests_s", "first_ttft_s", "first_tpot_s", "needed", "replicas", "gpus",
    "charged_gpus", "nodes", "gpu_h_per_mtok", "domain_gpus", "domain_nodes", "kv_tokens", "max_context",
)  # fmt: skip


@dataclass(frozen=True)
class _Search:
    question: ServingQuestion
    decoder: Decoder
    shape: Shape
    constants: Constants


def judge(question: ServingQuestion, constants: Constants, layouts: tuple[Layout, ...] | None = None) -> Judged:
    """Every layout of the space, or these, with reason and figures."""
    decoder, shape = memories.served(question), shape_of(question.decoder)
    sizes = serving_layouts(question, shape) if layouts is None else of_layouts(layouts)
    reason = structural(question, shape, sizes)
    search = _Search(question, decoder, shape, constants)
    length = memories.longest_sequence(question)
    if length > decoder.max_context:
        reason = np.where(reason == Reason.NONE, int(Reason.CONTEXT), reason)
    try:
        moved = served_traffic(question, decoder)
    except KeyError:
        reason = np.where(reason == Reason.NONE, int(Reason.FORMAT), reason)
        return Judged(sizes, reason, {}, _empty(len(reason)))
    planned: dict[int, EngineMemory] = {}
    for row in np.flatnonzero(reason == Reason.NONE):
        planned[int(row)] = memories.plan(question, decoder, layout_at(sizes, int(row)), length, advise=False)
        if not planned[int(row)].fits:
            reason[row] = int(Reason.MEMORY)
    rows = np.flatnonzero(reason == Reason.NONE)
    figures = _empty(len(reason))
    if len(rows):
        held = [layout_at(sizes, int(row)) for row in rows]
        room = [memories.places(question, decoder, layout) for layout in held]
        workers = worker_columns(question, moved, held, room)
        mean = question.lengths.mean_in + question.lengths.mean_out
        places = np.array([memories.groups(x) for x in held]) * np.array(room) / mean
        running = np.array([memories.most_sequences(question, decoder, layout) for layout in held])
        most = np.maximum(np.minimum(np.floor(places), running), 1).astype(np.int64)
        found, codes = _operate(search, workers, most, gpus(sizes)[rows])
        found["kv_tokens"] = np.array([float(planned[int(r)].kv_tokens) for r in rows])
        found["max_context"] = np.array([float(planned[int(r)].max_context) for r in rows])
        reason[rows] = codes
        for name in FIGURES:
            figures[name][rows] = found[name]
    return Judged(sizes, reason, planned, figures)


def _empty(n: int) -> dict[str, Floats]:
    return {name: np.full(n, np.nan) for name in FIGURES}


def _operate(search: _Search, workers: SideColumns, most: Ints, wide: Ints) -> tuple[dict[str, Floats], Ints]:
    """Batch, replicas, GPUs of rows that fit, and the reason of those that miss a target or outgrow the pool."""
    question = search.question
    steps = objectives.ladder(int(most.max()))
    ladder = speeds_on_ladder(question, workers, search.constants, steps, most)
    met = ladder.meet(question) & (steps[None, :] <= most[:, None])
    met |= ladder.meet(question) & (np.arange(len(steps))[None, :] == np.searchsorted(steps, most)[:, None])
    concurrency = _chosen(search, workers, ladder, met, steps, most, wide)
    at = speeds(question, workers, search.constants, concurrency.astype(np.float64))
    found = {
        "concurrency": concurrency.astype(np.float64),
        "ttft_s": at.ttft_s,
        "tpot_s": at.tpot_s,
        "requests_s": at.requests_s,
        "first_ttft_s": ladder.ttft_s[:, 0],
        "first_tpot_s": ladder.tpot_s[:, 0],
    } | _sized(question, at, concurrency, wide)
    first = np.inf if question.ttft_s is None else question.ttft_s
    missed = np.where(ladder.ttft_s[:, 0] > first, int(Reason.TTFT), int(Reason.TPOT))
    codes = np.where(met.any(axis=1), int(Reason.NONE), missed)
    available = question.pool.nodes
    if available is not None:
        codes = np.where((codes == Reason.NONE) & (found["nodes"] > available), int(Reason.LOAD), codes)
    return found, codes


def _chosen(
    search: _Search, workers: SideColumns, ladder: Speeds, met: Bools, steps: Ints, most: Ints, wide: Ints
) -> Ints:
    """Requests in flight of one replica: the most within the targets; for latency, the fewest that the pool allows."""
    question, last = search.question, met.shape[1] - 1
    best = last - np.argmax(met[:, ::-1], axis=1)
    if question.goal == "latency":
        grid = np.minimum(np.broadcast_to(steps, met.shape), most[:, None])
        sized = _sized(question, ladder, grid, wide[:, None])
        nodes = np.inf if question.pool.nodes is None else question.pool.nodes
        allowed = met & (sized["nodes"] <= nodes)
        fewest = np.where(allowed.any(axis=1), np.argmax(allowed, axis=1), best)
        return np.asarray(np.minimum(steps[fewest], most))
    low = np.minimum(steps[best], most)
    after = np.minimum(steps[np.minimum(best + 1, last)], most)
    high = np.where(met.any(axis=1), np.maximum(after, low + 1), low + 1)
    return largest_within(question, workers, search.constants, low, high)


def _sized(question: ServingQuestion, at: Speeds, concurrency: Ints, wide: Ints) -> dict[str, Floats]:
    """Replicas, GPUs, nodes and what a failure takes, for the load or for one full replica."""
    node, output = question.pool.gpus_per_node, question.lengths.mean_out
    each = at.ttft_s + output * at.tpot_s
    if question.rate is not None:
        carried: Floats = np.full_like(each, question.rate)
        needed = objectives.in_flight(question.rate * each, question.quantile) / concurrency
    elif question.concurrency is not None:
        needed = question.concurrency / concurrency * np.ones_like(each)
        carried = question.concurrency / each
    else:
        needed, carried = np.ones_like(each), at.requests_s
    needed = np.maximum(np.ceil(needed - 1e-9), 1.0)
    replicas = needed + objectives.spare_replicas(wide, node, question.survive_nodes)
    charged = replicas * objectives.charged_gpus(wide, node)
    wider = np.broadcast_to(np.maximum(np.ceil(wide / node), 1.0), each.shape)
    return {
        "needed": needed,
        "replicas": replicas,
        "gpus": replicas * wide,
        "charged_gpus": charged,
        "nodes": objectives.nodes_for(replicas, wide, node),
        "gpu_h_per_mtok": objectives.per_million(charged, carried * max(output, 1.0)),
        "domain_gpus": np.broadcast_to(objectives.lost_gpus(wide, node), each.shape).astype(np.float64),
        "domain_nodes": wider.astype(np.float64),
    }
