"""Which layers a pipeline stage has, how much more than the mean it has to do, how many micro-batches it holds.

Sources: "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", arXiv:2104.04473, section
2.2; Megatron-Core `pipeline_parallel/schedules.py`: an interleaved stage i runs 2·(p − i − 1) + (v − 1)·p chunks ahead.
"""

from __future__ import annotations

from functools import cache
from heapq import heapify, heapreplace
from typing import Any

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.physics.training.recipes import Recipe


@cache
def chunk_sizes(layers: int, chunks: int, head: float = 1.0) -> tuple[int, ...]:
    """Layers of every chunk: even, else what is missing is taken from where most work is, from the ends inwards.

    The embedding counts for one layer, as Megatron does (`--account-for-embedding-in-pipeline-split`,
    `--account-for-loss-in-pipeline-split`). Gives the layouts that NVIDIA's recipes state for DeepSeek-V3 (one layer
    beside head and draft layer on the last of 16 chunks) and for Kimi K2 (none beside the head on the last of 32).

    Args:
        head: layers that the work after the last layer counts for.
    """
    size = -(-layers // chunks)
    sizes, outside = [size] * chunks, {0: 1.0, chunks - 1: head}
    order = [chunks - 1, 0, *range(chunks - 2, 0, -1)][:chunks]
    fullest = [(-size - outside.get(chunk, 0.0), 0, place, chunk) for place, chunk in enumerate(order)]
    heapify(fullest)
    for _ in range(size * chunks - layers):
        load, taken, place, chunk = fullest[0]
        sizes[chunk] -= 1
        heapreplace(fullest, (load + 1 if sizes[chunk] else 1.0, taken + 1, place, chunk))
    return tuple(sizes)


def head_layers(decoder: Decoder, drafts: bool) -> float:
    """Layers that head and trained draft layers count for, by what one token is multiplied with."""
    layers = sum(count * part.active for layer, count in decoder.groups for part in layer.parts)
    extra = len(decoder.drafts) if drafts else 0
    return decoder.vocab * decoder.hidden * (1 + extra) * len(decoder.layers) / layers + extra


def stage_counts(
    decoder: Decoder, pp: int, vp: int, uneven: tuple[int, ...] = (), drafts: bool = False
) -> np.ndarray[Any, Any]:
    """(pp, different layers) float64: how many of each of `decoder.groups` every stage has.

    Args:
        uneven: layers per stage, which then has no virtual stages.
        drafts: draft layers are trained beside the head of the last stage.

    Raises:
        ValueError: if `uneven` does not add up to the model.
    """
    sizes = uneven or chunk_sizes(len(decoder.layers), pp * vp, head_layers(decoder, drafts))
    if sum(sizes) != len(decoder.layers) or (uneven and len(sizes) != pp):
        raise ValueError(f"stage layers {list(sizes)} do not divide {len(decoder.layers)} layers into {pp} stages")
    stages = np.repeat(np.arange(len(sizes)) % pp, sizes)
    counts = np.zeros((pp, len(decoder.groups)))
    np.add.at(counts, (stages, np.array(decoder.kinds)), 1)
    return counts


@cache
def paces(layers: int, pp: int, vp: int, head: float, extra: int, uneven: tuple[int, ...]) -> tuple[float, float]:
    """Layers of the fullest stage before the last, and of the last, each ÷ mean of the stages.

    Args:
        extra: draft layers on the last stage; uneven: layers per stage, where they are stated.
    """
    if pp == 1:
        return 1.0, 1.0
    sizes = uneven if len(uneven) == pp else chunk_sizes(layers, pp * vp, head)
    stages = [sum(sizes[stage::pp]) for stage in range(pp)]
    mean = (layers + extra) / pp
    return max(stages[:-1]) / mean, (stages[-1] + extra) / mean


def stage_paces(decoder: Decoder, recipe: Recipe, pp: Any, vp: Any) -> tuple[Any, Any]:
    """`paces` of a recipe, for numbers or for arrays of equal length."""
    layers, head = len(decoder.layers), head_layers(decoder, recipe.drafts)
    extra = len(decoder.drafts) if recipe.drafts else 0
    if np.ndim(pp) == 0:
        return paces(layers, int(pp), int(vp), head, extra, recipe.stage_layers)
    found = np.empty((2, len(pp)))
    for p, v, rows in pipelines(pp, vp):
        found[:, rows] = np.reshape(paces(layers, p, v, head, extra, recipe.stage_layers), (2, 1))
    return found[0], found[1]


def pipelines(pp: Any, vp: Any) -> list[tuple[int, int, np.ndarray[Any, Any]]]:
    """(stages, virtual stages, rows that have them) of arrays of equal length."""
    key = np.asarray(pp, dtype=np.int64) * _MOST + np.asarray(vp, dtype=np.int64)
    return [(k // _MOST, k % _MOST, np.flatnonzero(key == k)) for k in sorted(set(key.tolist()))]


#: More virtual stages than any model has layers.
_MOST = 1 << 20


def in_flight(stage: int, pp: int, vp: int, micro_batches: Any) -> Any:
    """Micro-batches whose activations a stage holds under 1F1B; fractions of its layers when interleaved.

    Stage 0 of an interleaved schedule holds (p·v + p − 1)/v, which is p·(1 + (p − 1)/(p·v)).
    """
    if vp == 1:
        return np.minimum(pp - stage, micro_batches)
    chunks = 2 * (pp - stage - 1) + (vp - 1) * pp + 1
    return np.minimum(chunks, vp * micro_batches) / vp


def bubble_share(stages: Any, micro_batches: Any, virtual: Any = 1) -> Any:
    """Idle share of a pipeline, (p − 1)/(v·m + p − 1)."""
    return (stages - 1) / (virtual * micro_batches + stages - 1)
