"""Seconds until a replica serves: weights through the storage path, the loader, the engine's own start.

Seen publicly: 15 GB from a disk of 1 GB/s take 14 to 48 s by loader (Run:ai Model Streamer benchmarks, 2024); engine
start after loading (profiling, compilation, graph capture) takes tens of seconds in start-up logs of vLLM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loader:
    """How an engine loads weights.

    Args:
        share: of the payload rate that it reaches; 1 reads in parallel, 0.3 a single-threaded safetensors loader.
        fixed_s: per start: process, imports, connections.
        engine_s: after loading: profiling, compilation, graphs.
    """

    share: float = 0.6
    fixed_s: float = 15.0
    engine_s: float = 45.0


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Seconds by term; they add up (math.fsum) to `total_s`."""

    terms: tuple[tuple[str, float], ...]

    @property
    def total_s(self) -> float:
        """Until the first request can be served."""
        return math.fsum(seconds for _, seconds in self.terms)


def cold_start(
    checkpoint_bytes: float, payload_bytes_s: float, replicas: int = 1, loader: Loader | None = None
) -> ColdStart:
    """Start of `replicas` replicas at once that read the same checkpoint over one storage path.

    Args:
        checkpoint_bytes: read once per replica.
        payload_bytes_s: of the whole path, shared by all readers.
    """
    if payload_bytes_s <= 0:
        raise ValueError("a storage path needs a rate above 0")
    how = loader or Loader()
    read = checkpoint_bytes * replicas / payload_bytes_s
    return ColdStart(
        (
            ("process", how.fixed_s),
            ("read", read),
            ("loader", read * (1 / how.share - 1)),
            ("engine", how.engine_s),
        )
    )


def needed_rate_bytes_s(
    checkpoint_bytes: float, within_s: float, replicas: int = 1, loader: Loader | None = None
) -> float:
    """Payload rate at which all replicas serve within `within_s`; infinite where the fixed parts take longer."""
    how = loader or Loader()
    left = within_s - how.fixed_s - how.engine_s
    return checkpoint_bytes * replicas / (left * how.share) if left > 0 else math.inf
