"""What an engine's memory plan says, the same for every engine."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

#: Terms are whole multiples of 1/GRAIN GiB (1 KiB), so that sums of them are exact in double precision.
_GRAIN: Final = 2**20


#: GiB by number of tensor ranks: (ranks, GiB), ascending.
ByRanks = tuple[tuple[int, float], ...]


def by_ranks(table: ByRanks, ranks: int) -> float:
    """The figure of the widest entry that is not wider than `ranks`."""
    return max((row for row in table if row[0] <= ranks), key=lambda row: row[0])[1]


def whole(gib: float) -> float:
    """GiB rounded to whole KiB."""
    return round(gib * _GRAIN) / _GRAIN


@dataclass(frozen=True, slots=True)
class Gpu:
    """What a memory plan needs to know of a GPU.

    Args:
        reported_gib: total as CUDA or HIP reports it; below the label on the box.
        free_gib: free when the engine starts; None: all but the driver's context.
    """

    name: str
    reported_gib: float
    vendor: str = "nvidia"
    free_gib: float | None = None

    @property
    def is_a100(self) -> bool:
        """Whether vLLM treats it as an A100 when it picks defaults."""
        return "a100" in self.name.lower()


@dataclass(frozen=True, slots=True)
class Measured:
    """GiB per GPU read from an engine's log, in place of what would be estimated; None where the log does not say."""

    weights_gib: float | None = None
    activation_gib: float | None = None
    non_torch_gib: float | None = None
    graphs_gib: float | None = None


def known(measured: float | None, estimated: float) -> float:
    """The measured figure where there is one."""
    return estimated if measured is None else measured


@dataclass(frozen=True, slots=True)
class Band:
    """How far the KV pool may be off.

    Args:
        share: of the pool.
        validated_on: what it was measured on, or that it was not.
    """

    share: float
    validated_on: str


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to change, with what it brings: evaluated, not estimated.

    Args:
        what: in words, with the engine's flag.
        extra_gpus: more GPUs than now; 0 where the same GPUs do.
    """

    what: str
    fits: bool
    kv_tokens: int
    max_concurrency: float
    max_context: int
    extra_gpus: int = 0


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Memory of the GPU that binds, in GiB, and what the pool holds.

    Args:
        terms: GPU memory bar; sums exactly to `reported_gib`. "not used" is negative by what is missing.
        memory_share: the engine's own, as used.
        kv_pool_gib: pool on the binding GPU; not positive where the engine cannot start.
        kv_bytes_per_token: B on that GPU of one more token of a long sequence.
        kv_tokens: of the replica as the engine counts them.
        max_concurrency: sequences of the wanted length that the pool holds.
        max_context: longest sequence that one request can have, up to the model's own limit.
        why: why it does not start; empty where it does.
        flags: command line that realises the plan; `extra_config` the file beside it, where the engine has one.
    """

    engine: str
    terms: tuple[tuple[str, float], ...]
    reported_gib: float
    memory_share: float
    kv_pool_gib: float
    kv_bytes_per_token: float
    kv_tokens: int
    max_concurrency: float
    max_context: int
    why: tuple[str, ...]
    band: Band
    flags: tuple[str, ...]
    extra_config: str = ""
    advice: tuple[Change, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def fits(self) -> bool:
        """Whether the engine starts and serves one sequence of the wanted length."""
        return not self.why

    def term(self, name: str) -> float:
        """GiB of a term, 0 where there is none of that name."""
        return math.fsum(gib for label, gib in self.terms if label == name)


def bar(terms: Iterable[tuple[str, float]], reported_gib: float) -> tuple[tuple[str, float], ...]:
    """Terms in whole KiB, with "not used" as what is left of the total: their sum is the total exactly."""
    named = tuple((name, whole(gib)) for name, gib in terms)
    return (*named, ("not used", whole(reported_gib) - math.fsum(gib for _, gib in named)))
