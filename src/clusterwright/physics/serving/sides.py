"""One worker as numbers per GPU: a model's traffic on a layout and a device, in seconds at peak rates.

A worker is the GPUs that run one copy of the engine. Its attention groups (`attention_dp` × `dp`) hold different
sequences; its experts spread over all of them. Pipeline stages each work on their own part of the sequences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from clusterwright.lib.scales import GIB
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import Array, Rows
from clusterwright.physics.serving.traffic import Traffic, Weight

#: Weight format → formats in which its products run, the first that the device has.
COMPUTE: Final[Mapping[str, tuple[str, ...]]] = {
    "int64": ("fp32", "bf16"),
    "fp32": ("fp32", "bf16"),
    "bf16": ("bf16",),
    "fp16": ("fp16", "bf16"),
    "fp8": ("fp8", "bf16"),
    "int8": ("int8", "bf16"),
    "nvfp4": ("fp4", "bf16"),
    "mxfp4": ("fp4", "bf16"),
    "int4": ("bf16", "fp16"),
}
#: Share of a GPU's memory that engines use, and GiB of it that neither weights nor cache get (vLLM's default
#: gpu_memory_utilization; activations and graphs of start-up logs). Only where no cache size is given.
USED_SHARE: Final = 0.92
OTHER_GIB: Final = 2.0
#: Share of the memory that holds cache at least: where weights leave less, a run that exists raised its share.
CACHE_SHARE: Final = 0.03


@dataclass(frozen=True, slots=True)
class Device:
    """Peaks of one GPU.

    Args:
        flops_s: format → dense FLOP/s.
        link_bytes_s: to the GPUs of its scale-up domain, one direction; `domain` GPUs share it.
        node_bytes_s: over PCIe to the others of a node of `node` GPUs, where bridges join fewer, one direction.
        nic_bytes_s: of its NIC, one direction; beyond domain and node.
    """

    memory_gib: float
    bandwidth_bytes_s: float
    flops_s: Mapping[str, float]
    link_bytes_s: float
    domain: int
    nic_bytes_s: float = 50e9
    node: int = 1
    node_bytes_s: float = 0.0

    def between(self, ranks: int) -> float:
        """B/s and direction of one GPU where so many, next to each other, exchange."""
        if ranks <= self.domain:
            return self.link_bytes_s
        return self.node_bytes_s if ranks <= self.node else self.nic_bytes_s

    def rate(self, form: str) -> float:
        """FLOP/s at which products of weights in `form` run; KeyError where the device has none."""
        for name in COMPUTE[form]:
            if name in self.flops_s:
                return self.flops_s[name]
        raise KeyError(f"no rate for {form}")


@dataclass(frozen=True, slots=True)
class Side:
    """One worker; times are s at peak and per GPU, of a whole pass through the model.

    Args:
        dense_read, dense_math: to read the weights without experts; of their products per token of the group.
        expert_read, expert_math: to read every expert that the GPU holds; of their products per token of the worker.
        piece_read, piece_decode, piece_prefill, piece_limit: per cached token of a sequence, see `traffic.Piece`.
        state_read: recurrent states of one sequence.
        reduce_s, reduces: all-reduce per token of the group at the link's rate; collectives per pass.
        exchange_s, exchanges: expert exchange per token of the group; collectives per pass.
        cache_tokens: that one group's cache holds.
        groups: attention groups, `stages` pipeline stages.
        hand_bytes: cache of one token that a GPU hands over (disaggregated serving).
    """

    layers: float
    expert_layers: float
    experts: float
    chosen: float
    dense_read: float
    dense_math: float
    expert_read: float
    expert_math: float
    piece_read: tuple[float, ...]
    piece_decode: tuple[float, ...]
    piece_prefill: tuple[float, ...]
    piece_limit: tuple[float, ...]
    state_read: float
    reduce_s: float
    reduces: float
    exchange_s: float
    exchanges: float
    cache_tokens: float
    groups: float
    stages: float
    gpus: float
    hand_bytes: float


def side(traffic: Traffic, layout: Layout, device: Device, *, cache_tokens: float | None = None) -> Side:
    """The worker that serves `traffic` on `layout`.

    Args:
        cache_tokens: of one attention group; None: what USED_SHARE of the memory leaves beside the weights, for runs
            that are known to fit. A plan gives the size that its engine would have.
    """
    tp, groups, everyone = layout.attention_tp, layout.attention_dp * layout.dp, layout.tp * layout.dp
    dense_bytes = sum(w.bytes / _ways(w, tp) for w in traffic.weights)
    expert_bytes = sum(w.bytes for w in traffic.experts) / everyone
    held = [p.bytes / (min(tp, p.heads) if p.split == "kv" else 1) for p in traffic.pieces]
    bf16 = device.rate("bf16")
    token_bytes = sum(b for b, p in zip(held, traffic.pieces, strict=True) if p.limit == float("inf"))
    token_bytes = token_bytes or max(sum(held), 1.0)
    free = device.memory_gib * GIB * USED_SHARE - OTHER_GIB * GIB - (dense_bytes + expert_bytes) / layout.pp
    link, wide = device.between(tp), device.between(everyone)
    spread = groups > 1 and traffic.expert_layers > 0 and everyone > 1
    dense_layers = traffic.layers - (traffic.expert_layers if spread else 0)
    reduces = (traffic.layers + dense_layers) if tp > 1 else 0
    return Side(
        layers=float(traffic.layers),
        expert_layers=float(traffic.expert_layers),
        experts=float(traffic.expert_count or 1),
        chosen=float(traffic.expert_active or 1),
        dense_read=dense_bytes / device.bandwidth_bytes_s,
        dense_math=sum(2.0 * w.active / _ways(w, tp) / device.rate(w.format) for w in traffic.weights),
        expert_read=expert_bytes / device.bandwidth_bytes_s,
        expert_math=sum(2.0 * w.active / everyone / device.rate(w.format) for w in traffic.experts),
        piece_read=tuple(b / device.bandwidth_bytes_s for b in held),
        piece_decode=tuple(p.decode_flop / tp / bf16 for p in traffic.pieces),
        piece_prefill=tuple(p.prefill_flop / tp / bf16 for p in traffic.pieces),
        piece_limit=tuple(p.limit for p in traffic.pieces),
        state_read=2.0 * traffic.state_bytes / min(tp, traffic.state_heads) / device.bandwidth_bytes_s,
        reduce_s=2.0 * (tp - 1) / tp * 2.0 * traffic.hidden * reduces / link,
        reduces=float(reduces),
        exchange_s=3.0
        * traffic.hidden
        * traffic.expert_active
        * (everyone - 1)
        / everyone
        * traffic.expert_layers
        / (wide * tp)
        if spread
        else 0.0,
        exchanges=2.0 * traffic.expert_layers if spread else 0.0,
        cache_tokens=max(free, CACHE_SHARE * device.memory_gib * GIB) * layout.pp / token_bytes
        if cache_tokens is None
        else cache_tokens,
        groups=float(groups),
        stages=float(layout.pp),
        gpus=float(layout.gpus),
        hand_bytes=sum(held),
    )


def _ways(weight: Weight, tp: int) -> int:
    """GPUs that a weight divides over."""
    if weight.split == "none":
        return 1
    return min(tp, weight.copies) if weight.split == "kv" else tp


class SideColumns:
    """Sides as columns: `columns.layers` has shape (rows,), the pieces (rows, pieces), padded with zeros."""

    def __init__(self, values: Mapping[str, Array]) -> None:
        self.values = dict(values)

    def __getattr__(self, name: str) -> Array:
        try:
            return self.__dict__["values"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(name) from None

    def take(self, rows: Rows) -> SideColumns:
        """The chosen rows, by index or mask."""
        return SideColumns({name: value[rows] for name, value in self.values.items()})


def stack(sides: Sequence[Side]) -> SideColumns:
    """Sides as columns; float64."""
    widest = max(len(s.piece_read) for s in sides)
    values: dict[str, Array] = {}
    for f in fields(Side):
        column = [getattr(s, f.name) for s in sides]
        if f.name.startswith("piece_"):
            values[f.name] = np.array([tuple(c) + (0.0,) * (widest - len(c)) for c in column])
        else:
            values[f.name] = np.array(column, dtype=np.float64)
    return SideColumns(values)
