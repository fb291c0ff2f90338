"""Ideal seconds of what GPUs send each other in a training step, by kind of parallelism.

Sources: arXiv:2205.05198, section 4.2.2 (a gather and a scatter per block under sequence parallelism, forward and
back, and one more gather of what the block read); DeepSeek-V3, arXiv:2412.19437, section 3.2 (a token crosses to a node
once, however many of its experts are there); ZeRO, arXiv:1910.02054, section 7 (volume of exchanged states).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from clusterwright.model.decoders import (
    Attention,
    CompressedAttention,
    Decoder,
    Experts,
    LatentAttention,
    Layer,
    Mixer,
)
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.systems import System

Sizes = Mapping[str, Any]


def tensor_exchange(
    layers: list[tuple[Layer, int]], decoder: Decoder, tokens: Any, sizes: Sizes, system: System
) -> Any:
    """s of gathers and scatters of the residual stream among tensor ranks: five planes per block, two of them forward.

    Ranks of several domains first exchange inside each, then every one of them its share over its own NIC.
    """
    blocks = sum(n * ((layer.mixer is not None) + (layer.feed is not None)) for layer, n in layers)
    here = np.minimum(sizes["tp"], system.domain)
    domains = sizes["tp"] / here
    per_byte = (1 - 1 / here) / system.scale_up_bytes_s + (1 - 1 / domains) / (here * system.out_bytes_s(sizes["tp"]))
    return 5.0 * blocks * tokens * decoder.hidden * 2.0 * per_byte


def context_exchange(layers: list[tuple[Layer, int]], tokens: Any, sizes: Sizes, system: System) -> Any:
    """s of passing keys and values around, and backward again with their gradients (Transformer Engine
    `context_parallel.py`, ring exchange).
    """
    cp, tp = sizes["cp"], sizes["tp"]
    width = sum(n * _cached(layer.mixer, tp) for layer, n in layers)
    return 3 * width * tokens * (cp - 1) / _rate(cp * tp, system)


def expert_exchange(layers: list[tuple[Layer, int]], tokens: Any, sizes: Sizes, system: System, recipe: Recipe) -> Any:
    """s of sending tokens to their experts and back, forward and backward: inside the domain once per expert, out of it
    once per domain of GPUs.
    """
    ep, tp = sizes["ep"], sizes["tp"]
    ranks = ep * sizes["etp"]
    inside = np.minimum(ranks, system.domain)
    domains = np.ceil(ranks / system.domain)
    total: Any = 0.0
    for layer, n in layers:
        feed = layer.feed
        if not isinstance(feed, Experts):
            continue
        plane = 4 * 2.0 * feed.hidden * n * tokens / tp * recipe.expert_imbalance
        near = plane * feed.active * (1 - 1 / np.maximum(inside, 1)) / system.scale_up_bytes_s
        far = plane * np.minimum(feed.active, domains) * (1 - 1 / domains) / system.out_bytes_s(ranks)
        total = total + np.maximum(near, far)
    return total * (ranks > 1)


def stage_exchange(layers: list[tuple[Layer, int]], hidden: int, tokens: Any, sizes: Sizes, system: System) -> Any:
    """s of handing activations to the next stage and their gradients to the one before, by every virtual stage; over
    NICs where the job leaves a domain, for stages are the outermost ranks (Megatron-Core `parallel_state.py`).
    """
    job = sizes["tp"] * sizes["cp"] * sizes["dp"] * sizes["pp"]
    plane = 2.0 * tokens * hidden * max(layer.streams for layer, _ in layers) / sizes["tp"]
    return 2 * sizes["vp"] * plane / _rate(job, system) * (sizes["pp"] > 1)


def copies_exchange(parameters: Any, copies: Any, ranks: Any, system: System) -> Any:
    """s per byte of a parameter that is reduced or gathered among its copies: the copies in one domain share its NICs.

    Args:
        ranks: GPUs that hold one copy together, next to each other.
    """
    here = np.maximum(np.minimum(copies, system.domain / ranks), 1.0)
    out = system.out_bytes_s(copies * ranks) * here
    rate = np.where(copies <= here, system.scale_up_bytes_s, np.minimum(out, system.scale_up_bytes_s))
    return parameters * (1 - 1 / copies) / rate


def _cached(mixer: Mixer | None, tp: Any) -> Any:
    """B of keys and values that a query of another context rank needs of one token, on one tensor rank; heads are never
    cut. A recurrent state is passed once.
    """
    if isinstance(mixer, Attention):
        return 2.0 * -(-mixer.kv_heads // tp) * (mixer.key_dim + mixer.value_dim)
    if isinstance(mixer, LatentAttention):
        return 2.0 * mixer.heads * (mixer.nope_dim + mixer.rope_dim + mixer.value_dim) / tp
    if isinstance(mixer, CompressedAttention):
        return 2.0 * mixer.head_dim
    return 0.0


def _rate(ranks: Any, system: System) -> Any:
    return np.where(ranks <= system.domain, system.scale_up_bytes_s, system.out_bytes_s(ranks))
