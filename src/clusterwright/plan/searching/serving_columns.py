"""Every layout of inference judged; those that are possible with the batch, replicas and GPUs that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.traffic import Traffic
from clusterwright.plan.searching import memories
from clusterwright.plan.searching.columns import SIZES, Bools, Floats, Ints, layout_at, of_layouts
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving_layouts import serving_layouts, structural
from clusterwright.plan.searching.shapes import shape_of
from clusterwright.plan.searching.workers import Workers, served_traffic, side_columns


@dataclass(frozen=True)
class Judged:
    """Layouts as columns, (n,) each; figures are nan or 0 where a layout is not possible.

    Args:
        sizes: by name of a field of `Layout`. reason: see `Reason`.
        memories: plans by row, of every layout that got so far.
        concurrency: requests in flight of one replica at the load; ttft_s, tpot_s: that they meet.
        requests_s: that one replica carries within the targets. first_ttft_s, first_tpot_s: with no load beside.
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

    def position(self, layout: Layout) -> int | None:
        """Row of a layout, None where it was not tried."""
        same = np.ones(len(self.reason), dtype=np.bool_)
        for name in SIZES:
            same &= self.sizes[name] == getattr(layout, name)
        found = np.flatnonzero(same)
        return int(found[0]) if len(found) else None

    def only(self, position: int) -> Judged:
        """One row as columns of one."""
        at = slice(position, position + 1)
        return Judged(
            {name: values[at] for name, values in self.sizes.items()},
            self.reason[at],
            {0: self.memories[position]} if position in self.memories else {},
            {name: values[at] for name, values in self.figures.items()},
        )


#: Columns of `Judged.figures`.
FIGURES = (
    "concurrency", "ttft_s", "tpot_s", "requests_s", "first_ttft_s", "first_tpot_s", "needed", "replicas", "gpus",
    "charged_gpus", "nodes", "gpu_h_per_mtok", "domain_gpus", "domain_nodes", "kv_tokens", "max_context",
)  # fmt: skip


def judge(question: ServingQuestion, constants: Constants, layouts: tuple[Layout, ...] | None = None) -> Judged:
    """Every layout of the space, or these, with reason and figures."""
    decoder = memories.served(question)
    shape = shape_of(decoder)
    sizes = serving_layouts(question, shape) if layouts is None else of_layouts(layouts)
    reason = structural(question, shape, sizes)
    length = memories.longest_sequence(question)
    figures = {name: np.full(len(reason), np.nan) for name in FIGURES}
    if length > decoder.max_context:
        reason = np.where(reason == Reason.NONE, int(Reason.CONTEXT), reason)
    try:
        moved = served_traffic(question, decoder)
    except KeyError:
        reason = np.where(reason == Reason.NONE, int(Reason.FORMAT), reason)
        return Judged(sizes, reason, {}, figures)
    tried = [int(row) for row in np.flatnonzero(reason == Reason.NONE)]
    plans = memories.plans(question, decoder, [layout_at(sizes, row) for row in tried], length)
    planned = dict(zip(tried, plans, strict=True))
    for row, plan in planned.items():
        if not plan.fits:
            reason[row] = int(Reason.MEMORY)
    rows = np.flatnonzero(reason == Reason.NONE)
    if len(rows):
        held = _workers(question, constants, decoder, moved, sizes, planned, rows)
        found, codes = _operate(held)
        for name in ("kv_tokens", "max_context"):
            found[name] = np.array([float(getattr(planned[int(row)], name)) for row in rows])
        if question.pool.nodes is not None:
            codes = np.where((codes == Reason.NONE) & (found["nodes"] > question.pool.nodes), int(Reason.LOAD), codes)
        reason[rows] = codes
        for name in FIGURES:
            figures[name][rows] = found[name]
    return Judged(sizes, reason, planned, figures)


def _operate(held: Workers) -> tuple[dict[str, Floats], Ints]:
    # A question needs one of both loops.
    if arrives(held.question):
        from clusterwright.plan.searching import open_loop

        return open_loop.operate(held)
    from clusterwright.plan.searching import closed_loop

    return closed_loop.operate(held)


def arrives(question: ServingQuestion) -> bool:
    """Whether requests arrive by themselves (a rate is stated, or a share of them that targets hold for)."""
    return question.concurrency is None and (question.rate is not None or question.quantile is not None)


def workers_of(question: ServingQuestion, constants: Constants, judged: Judged, rows: Ints) -> Workers:
    """Workers of rows that fit."""
    decoder = memories.served(question)
    moved = served_traffic(question, decoder)
    return _workers(question, constants, decoder, moved, judged.sizes, judged.memories, rows)


def _workers(
    question: ServingQuestion,
    constants: Constants,
    decoder: Decoder,
    moved: Traffic,
    sizes: Mapping[str, Ints],
    planned: Mapping[int, EngineMemory],
    rows: Ints,
) -> Workers:
    layouts = [layout_at(sizes, int(row)) for row in rows]
    pairs = list(zip(layouts, (planned[int(row)] for row in rows), strict=True))
    room = [memories.places(question, decoder, layout, plan) for layout, plan in pairs]
    mean = question.lengths.mean_in + question.lengths.mean_out
    groups = np.array([memories.groups(layout) for layout in layouts])
    return Workers(
        question,
        constants,
        side_columns(question, moved, layouts, room),
        wide=np.array([layout.gpus for layout in layouts]),
        places=groups * np.array(room) / mean,
        running=np.array([memories.most_sequences(question, decoder, layout, plan) for layout, plan in pairs]),
    )
