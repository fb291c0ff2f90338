"""Workers of many layouts as the serving formulas take them, with the lengths of a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines.settings import cache_format
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.lengths import LARGEST_RATIO, Lengths, fixed, lognormal, observed
from clusterwright.physics.serving.sides import SideColumns, side, stack
from clusterwright.physics.serving.steps import CHUNK_TOKENS
from clusterwright.physics.serving.traffic import BYTES, Traffic, traffic
from clusterwright.plan.searching.columns import Floats, Ints
from clusterwright.plan.searching.machines import device
from clusterwright.plan.searching.memories import settings
from clusterwright.plan.searching.questions import ServingQuestion


@dataclass(frozen=True)
class Workers:
    """n layouts that fit, with the load that one replica of each can take.

    Args:
        columns: of the serving formulas. places: sequences of mean length that all its caches hold. running: sequences
            that the engine runs at a time.
        width: tokens of a decode step per sequence, of which `kept` count; more than 1 with speculation.
    """

    question: ServingQuestion
    constants: Constants
    columns: SideColumns
    wide: Ints
    places: Floats
    running: Ints
    width: float = 1.0
    kept: float = 1.0


def served_traffic(question: ServingQuestion, decoder: Decoder) -> Traffic:
    """What serving the model moves; `decoder` as it is stored when served.

    Raises:
        KeyError: if the GPU has no unit for products of the weights' format.
    """
    how = settings(question, 1)
    form = cache_format(decoder, question.kv_format, question.engine, how.version)
    cache = "fp8" if form.startswith("fp8") else form
    moved = traffic(decoder, cache=cache if cache in BYTES else "bf16")
    gpu = device(question.pool)
    for weight in (*moved.weights, *moved.experts):
        gpu.rate(weight.format)
    return moved


def side_columns(
    question: ServingQuestion, moved: Traffic, layouts: Sequence[Layout], cache_tokens: Sequence[float]
) -> SideColumns:
    """Workers of these layouts with the tokens that one group's cache holds.

    A cache that ranks share by position (decode context parallel) is read as if each rank had all of it: what that
    saves is kept against the exchange of partial results, which has not been measured.
    """
    gpu = device(question.pool)
    return stack([side(moved, layout, gpu, cache_tokens=t) for layout, t in zip(layouts, cache_tokens, strict=True)])


def prompt_lengths(question: ServingQuestion) -> Lengths:
    """Distribution of prompts: a trace's own; log-normal where a 95th percentile is stated, as wide as one can be."""
    mean, p95 = question.lengths.mean_in, question.lengths.p95_in
    if question.lengths.prompts:
        return observed(question.lengths.prompts)
    if p95 is None or p95 <= mean:
        return fixed(mean)
    return lognormal(mean, min(p95, mean * LARGEST_RATIO * (1 - 1e-9)))


def chunk_tokens(question: ServingQuestion) -> float:
    """Most prompt tokens of one pass."""
    return CHUNK_TOKENS if question.max_num_batched_tokens is None else float(question.max_num_batched_tokens)


def output_tokens(question: ServingQuestion) -> float:
    """Mean tokens of an answer, at least one."""
    return max(question.lengths.mean_out, 1.0)


def spread(value: float, like: Floats) -> Floats:
    """A number as a column."""
    return np.full_like(like, value, dtype=np.float64)
