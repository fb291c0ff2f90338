"""Memory of the fullest GPU of a workload."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.physics.engines.results import Change


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Memory of the fullest GPU.

    Args:
        method: whose budget rules were followed (`vllm 0.11`, `fsdp`).
        parts: (label, GiB) in the order of a stacked bar; for inference the last one is the KV cache at the load.
        total: sum of the parts, GiB.
        usable: what the parts may fill, GiB (for vLLM: share × reported total).
        reported: total memory as a program sees it, GiB.
        fits: total ≤ usable and one sequence of the longest allowed length fits.
        why: why it does not fit, in the engine's terms; empty where it does, and for training.
        kv_bytes_per_token: per GPU; None for training.
        kv_pool: KV cache that is left after everything else, GiB; None for training.
        kv_tokens: tokens that the pool of one replica holds; None for training.
        max_concurrency: sequences of mean length that one replica holds; None for training.
        max_context: longest sequence that one replica can serve, tokens; None for training.
        sequences: that the engine runs at a time on one attention group; None for training.
        changes: what would make it fit, best first; empty where it fits.
        flags: command line of the engine that realises the plan; extra_config the file beside it.
        besides: what must be done for the command line to hold, in sentences.
    """

    method: str
    parts: tuple[tuple[str, Figure], ...]
    total: Figure
    usable: Figure
    reported: Figure
    fits: bool
    kv_bytes_per_token: Figure | None = None
    kv_pool: Figure | None = None
    kv_tokens: Figure | None = None
    max_concurrency: Figure | None = None
    notes: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    max_context: Figure | None = None
    sequences: Figure | None = None
    changes: tuple[Change, ...] = ()
    flags: tuple[str, ...] = ()
    extra_config: str = ""
    besides: tuple[str, ...] = ()
