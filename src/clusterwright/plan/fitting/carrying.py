"""What one layout carries when its parts are faster or slower: many such cases in one evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.sides import SideColumns
from clusterwright.plan.searching import memories
from clusterwright.plan.searching.columns import Floats
from clusterwright.plan.searching.open_loop import OpenLoop
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving_columns import arrives
from clusterwright.plan.searching.workers import Workers, served_traffic, side_columns

#: Idle replica, as sequences that run.
_IDLE: Final = 1e-6
#: What makes up a worker's times: part → columns of `physics.serving.sides.Side` that grow with it.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "products": ("dense_math", "expert_math", "piece_decode"),
    "weights": ("dense_read",),
    "experts": ("expert_read",),
    "cache": ("piece_read", "state_read"),
    "attention": ("piece_prefill",),
    "exchange": ("reduce_s", "exchange_s"),
    "latency": ("reduces", "exchanges"),
    "layers": ("layers", "expert_layers"),
}
#: Part → the constant that says how near its peak it already is.
_SHARES: Final[Mapping[str, str]] = {
    "products": "math_share",
    "weights": "weight_share",
    "experts": "expert_share",
    "cache": "cache_share",
    "attention": "attention_share",
    "exchange": "link_share",
}
#: One case: part → factor on its time; "places" → factor on what the caches hold.
Case = Mapping[str, float]


def all_parts(factor: float) -> dict[str, float]:
    """A case in which every part takes `factor` times as long; what a step costs whatever it holds stays."""
    return dict.fromkeys(PARTS, factor)


def all_parts_at_peak(factor: float, constants: Constants) -> dict[str, float]:
    """A case in which every part takes `factor` times as long, none less than at the peak of what it waits for."""
    return {part: max(factor, getattr(constants, _SHARES[part]) if part in _SHARES else 0.0) for part in PARTS}


def carried(
    question: ServingQuestion, constants: Constants, layout: Layout, cases: Sequence[Case]
) -> tuple[float, ...]:
    """Requests per second of one replica within the targets, per case; 0 where it misses them without other load."""
    held = _moved(_workers(question, constants, layout), cases)
    if not arrives(question):
        from clusterwright.plan.searching import closed_loop

        found, codes = closed_loop.operate(held)
        return tuple(float(r) for r in np.where(codes == Reason.NONE, found["requests_s"], 0.0))
    loop = OpenLoop(held)
    largest = loop.largest()
    rate = loop.at(np.maximum(largest, _IDLE)).rate
    return tuple(float(r) for r in np.where(largest > 0, rate, 0.0))


def _workers(question: ServingQuestion, constants: Constants, layout: Layout) -> Workers:
    decoder = memories.served(question)
    planned = memories.plan(question, decoder, layout, memories.longest_sequence(question), advise=False)
    room = memories.places(question, decoder, layout, planned)
    mean = question.lengths.mean_in + question.lengths.mean_out
    return Workers(
        replace(question, pool=replace(question.pool, nodes=None)),
        constants,
        side_columns(question, served_traffic(question, decoder), [layout], [room]),
        wide=np.array([layout.gpus]),
        places=np.array([memories.groups(layout) * room / mean]),
        running=np.array([memories.most_sequences(question, decoder, layout, planned)]),
    )


def _moved(held: Workers, cases: Sequence[Case]) -> Workers:
    """One row per case."""
    rows = np.zeros(len(cases), dtype=np.intp)
    values = dict(held.columns.take(rows).values)
    for part, names in PARTS.items():
        factor = np.array([case.get(part, 1.0) for case in cases])
        for name in names:
            values[name] = values[name] * (factor if values[name].ndim == 1 else factor[:, None])
    places: Floats = np.array([case.get("places", 1.0) for case in cases])
    values["cache_tokens"] = values["cache_tokens"] * places
    return replace(
        held,
        columns=SideColumns(values),
        wide=held.wide[rows],
        places=held.places[rows] * places,
        running=held.running[rows],
    )
