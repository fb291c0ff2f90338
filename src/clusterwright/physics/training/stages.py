"""Which layers a pipeline stage has, and how many micro-batches it holds.

Sources: "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", arXiv:2104.04473, section
2.2; Megatron-Core `pipeline_parallel/schedules.py`: an interleaved stage i runs 2·(p − i − 1) + (v − 1)·p chunks ahead.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from clusterwright.model.decoders import Decoder


def chunk_sizes(layers: int, chunks: int) -> list[int]:
    """Layers of every chunk: even, else what is missing is taken from the first and the last (embedding and head there
    count as a layer each, Megatron `--account-for-embedding-in-pipeline-split`), else from the end.
    """
    size = -(-layers // chunks)
    missing = size * chunks - layers
    sizes = [size] * chunks
    order = [chunks - 1, 0, *range(chunks - 2, 0, -1)]
    while missing:
        for chunk in order:
            if missing and sizes[chunk]:
                sizes[chunk] -= 1
                missing -= 1
    return sizes


def stage_counts(decoder: Decoder, pp: int, vp: int, uneven: tuple[int, ...] = ()) -> np.ndarray[Any, Any]:
    """(pp, different layers) float64: how many of each of `decoder.groups` every stage has.

    Args:
        uneven: layers per stage, which then has no virtual stages.

    Raises:
        ValueError: if `uneven` does not add up to the model.
    """
    sizes = list(uneven) if uneven else chunk_sizes(len(decoder.layers), pp * vp)
    if sum(sizes) != len(decoder.layers) or (uneven and len(sizes) != pp):
        raise ValueError(f"stage layers {sizes} do not divide {len(decoder.layers)} layers into {pp} stages")
    index = {layer: i for i, (layer, _) in enumerate(decoder.groups)}
    counts = np.zeros((pp, len(index)))
    at = 0
    for chunk, size in enumerate(sizes):
        for layer in decoder.layers[at : at + size]:
            counts[chunk % pp, index[layer]] += 1
        at += size
    return counts


@cache
def stretch(layers: int, pp: int, vp: int) -> float:
    """Layers of the fullest stage ÷ mean: a pipeline runs at the pace of its slowest stage."""
    sizes = chunk_sizes(layers, pp * vp)
    return max(sum(sizes[stage::pp]) for stage in range(pp)) * pp / layers


def stretches(layers: int, pp: Any, vp: Any) -> Any:
    """`stretch` of numbers or of arrays of equal length."""
    if np.ndim(pp) == 0:
        return stretch(layers, int(pp), int(vp))
    found = np.empty(len(pp))
    for p, v, rows in pipelines(pp, vp):
        found[rows] = stretch(layers, p, v)
    return found


def pipelines(pp: Any, vp: Any) -> list[tuple[int, int, np.ndarray[Any, Any]]]:
    """(stages, virtual stages, rows that have them) of arrays of equal length."""
    key = np.asarray(pp, dtype=np.int64) * _MOST + np.asarray(vp, dtype=np.int64)
    return [(int(k) // _MOST, int(k) % _MOST, np.flatnonzero(key == k)) for k in np.unique(key)]


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
