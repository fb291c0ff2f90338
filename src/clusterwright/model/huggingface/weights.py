"""Tensors of a checkpoint, and how they become parts of a layer: counted by kind, split and stored format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from clusterwright.model.decoders import Experts, Mixer, Mlp, Part, Role, Split
from clusterwright.model.huggingface.formats import Scheme


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor, or `copies` equal ones (experts).

    Args:
        path: its module in the layer as the checkpoint names it (`self_attn.q_proj`); one expert is `*`.
        rows: outputs of a matrix, elements of a vector.
        columns: inputs of a matrix; 1 for a vector.
        copies: equal tensors, `used` of them by one token (None: all).
        blocks: KV heads of a `kv` part, experts of an `experts` part, else 1.
        linear: whether quantisation can change it; biases, norms, routers and tables are not.
        fixed: format that it has whatever the rest has.
    """

    path: str
    rows: int
    columns: int
    role: Role
    split: Split
    copies: int = 1
    used: int | None = None
    blocks: int = 1
    linear: bool = True
    fixed: str | None = None

    @property
    def parameters(self) -> int:
        """Elements of all copies."""
        return self.rows * self.columns * self.copies

    @property
    def active(self) -> int:
        """Elements that one token is multiplied with."""
        return self.rows * self.columns * (self.copies if self.used is None else self.used)


Weights = tuple[Weight, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A layer before anything is known about how it is stored."""

    mixer: Mixer | None
    feed: Mlp | Experts | None
    weights: Weights
    streams: int = 1


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A model before anything is known about how it is stored.

    Args:
        max_context: tokens that the config allows.
        tied: whether the head shares the embedding's weights.
        draft_path: where the checkpoint keeps draft layers, with `number` from 0 and `layer` counted on.
        scale_bytes: B of one scale where blocks of 8-bit floats have one (publishers differ).
        experts: how this publisher stores experts when the rest is in 8 bits, where that is another format.
    """

    hidden: int
    vocab: int
    max_context: int
    tied: bool
    blocks: tuple[Block, ...]
    tables: Weights
    drafts: tuple[Block, ...] = ()
    towers: Weights = ()
    notes: tuple[str, ...] = ()
    draft_path: str = "layers.{layer}."
    scale_bytes: int = 4
    experts: Scheme | None = None


def matrix(path: str, rows: int, columns: int, role: Role, split: Split = "tp", *, bias: bool = False) -> Weights:
    """The weight of a linear layer, with its bias if it has one."""
    weight = Weight(path, rows, columns, role, split)
    return (weight, vector(f"{path}.bias", rows, role, split)) if bias else (weight,)


def kv_matrix(path: str, rows: int, columns: int, kv_heads: int, *, bias: bool = False) -> Weights:
    """A projection to keys or values: it divides over ranks up to the number of KV heads."""
    weight = Weight(path, rows, columns, "attention", "kv", blocks=kv_heads)
    extra = Weight(f"{path}.bias", rows, 1, "attention", "kv", blocks=kv_heads, linear=False)
    return (weight, extra) if bias else (weight,)


def vector(path: str, size: int, role: Role = "norm", split: Split = "none", *, fixed: str | None = None) -> Weight:
    """A vector: a norm, a bias, a gate of single numbers."""
    return Weight(path, size, 1, role, split, linear=False, fixed=fixed)


def norm(path: str, size: int, *, bias: bool = False) -> Weights:
    """A norm's weight, with its bias if it has one."""
    return (vector(path, size), vector(f"{path}.bias", size)) if bias else (vector(path, size),)


def gathered(weights: Iterable[Weight], scheme_of: Callable[[Weight], Scheme | None], base: str) -> tuple[Part, ...]:
    """Parts of weights: one for each kind, split and stored format, in order of first occurrence.

    Args:
        scheme_of: how a weight is quantised, None where it is not.
        base: format of weights that are not quantised.
    """
    totals: dict[tuple[Role, Split, str, int], list[int]] = {}
    for weight in weights:
        scheme = scheme_of(weight) if weight.linear else None
        stored = scheme.format if scheme else weight.fixed or base
        total = totals.setdefault((weight.role, weight.split, stored, weight.blocks), [0, 0, 0])
        total[0] += weight.parameters
        total[1] += weight.active
        total[2] += scheme.scale_bytes(weight.rows, weight.columns) * weight.copies if scheme else 0
    return tuple(
        Part(role, count, active, split, stored, scales, blocks)
        for (role, split, stored, blocks), (count, active, scales) in totals.items()
        if count
    )


#: Formats that config.json's `torch_dtype` names.
DTYPES: Final = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float": "fp32", "half": "fp16"}
