"""What one inference replica carries, and how fast it answers: the roofline of physics/latencies.py, uncalibrated.

A replica with B requests in flight makes one step in `step_s(B)`; by Little's law it then serves B ÷ residence requests
per second. Both grow with B, so the largest rate within targets and cache is found by bisection. Prompts are served one
after another (M/M/1), since a prefill fills the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from clusterwright.physics.collectives import all_reduce_us
from clusterwright.physics.latencies import (
    decode_flops,
    decode_step_s,
    interference_s,
    memory_s,
    overhead_s,
    prefill_flops,
    prefill_s,
    unique_experts_share,
    wait_mean_s,
    wait_quantile_s,
)

#: Bisection steps: a batch of 1,024 to better than a thousandth.
_STEPS: Final = 24


@dataclass(frozen=True)
class ReplicaShape:
    """What of a replica is a whole number and never estimated.

    Args:
        tp, dp: GPUs that share a token's work; attention copies with their own requests.
        gpus: of the replica.
        experts, active: routed experts and those used per token, 0 for a dense model.
    """

    tp: int
    dp: int
    gpus: int
    layers: int
    hidden: int
    heads: int
    head_dim: int
    experts: int = 0
    active: int = 0


@dataclass(frozen=True)
class Replica:
    """One replica as numbers.

    Args:
        dense_bytes, expert_bytes: B of weights that a GPU reads per step, of experts if all were used.
        kv_bytes: B of cache per token on a GPU.
        multiplied: parameters that one token is multiplied with.
        bandwidth, bandwidth_share: B/s of memory and the share achieved.
        peak, matmul_share, prefill_share: FLOP/s of a GPU and the shares achieved in decode and prefill.
        latency_us, bus_gbytes_s, root_us: of an all-reduce (physics/collectives.py).
        input_tokens, output_tokens, late_input_tokens: means, and the input at the target's percentile.
        most: requests in flight that cache and engine allow.
    """

    shape: ReplicaShape
    dense_bytes: float
    expert_bytes: float
    kv_bytes: float
    multiplied: float
    bandwidth: float
    bandwidth_share: float
    peak: float
    matmul_share: float
    prefill_share: float
    latency_us: float
    bus_gbytes_s: float
    root_us: float
    input_tokens: float
    output_tokens: float
    late_input_tokens: float
    most: float

    @cached_property
    def prefill_time_s(self) -> float:
        """Seconds of a prompt of mean length."""
        return self._prefill(self.input_tokens)

    @cached_property
    def late_prefill_time_s(self) -> float:
        """Seconds of a prompt as long as the target's percentile."""
        return self._prefill(self.late_input_tokens)

    def _prefill(self, tokens: float) -> float:
        s = self.shape
        flops = prefill_flops(self.multiplied, tokens, s.layers, s.heads, s.head_dim)
        return prefill_s(flops, s.gpus, self.peak, self.prefill_share) + self._reduce_s(tokens)

    def _reduce_s(self, tokens: float) -> float:
        """Two all-reduces of 16-bit hidden states per layer."""
        s = self.shape
        each = all_reduce_us(tokens * s.hidden * 2, s.tp, self.latency_us, self.bus_gbytes_s, self.root_us)
        return 2 * s.layers * each * 1e-6

    @property
    def _context(self) -> float:
        return self.input_tokens + self.output_tokens / 2

    def memory_s(self, batch: float) -> float:
        """Seconds in which a GPU reads weights, the experts that the batch uses, and the cache of the batch."""
        s = self.shape
        used = unique_experts_share(s.experts, s.active, batch) if s.experts else 0.0
        read = self.dense_bytes + self.expert_bytes * used + batch / s.dp * self._context * self.kv_bytes
        return memory_s(read, self.bandwidth, self.bandwidth_share)

    def compute_s(self, batch: float) -> float:
        """Seconds of the matrix products and attention of a batch on one GPU."""
        s = self.shape
        flops = batch * decode_flops(self.multiplied, self._context, s.layers, s.heads, s.head_dim) / s.gpus
        return flops / (self.matmul_share * self.peak)

    def reduces_s(self, batch: float) -> float:
        """Seconds of the all-reduces of a decode step."""
        return self._reduce_s(batch / self.shape.dp)

    @property
    def overhead_s(self) -> float:
        """Seconds of a step beside the roofline: launches, norms, scheduler, sampler."""
        return overhead_s(self.shape.layers)

    def prefills_s(self, batch: float) -> float:
        """Seconds that prompts of new requests add to a step."""
        return interference_s(batch, self.prefill_time_s, self.output_tokens)

    def step_s(self, batch: float) -> float:
        """Seconds per output token with `batch` requests in flight, prefills of new ones included."""
        layers = self.shape.layers
        step = decode_step_s(self.memory_s(batch), self.compute_s(batch), self.reduces_s(batch), layers)
        return step + self.prefills_s(batch)

    def rate(self, batch: float) -> float:
        """Requests per second with `batch` in flight, by Little's law."""
        step = self.step_s(batch)
        return batch / (self.prefill_time_s + step + self.output_tokens * step)

    def first_token_s(self, batch: float, quantile: float | None) -> float:
        """Seconds until the first token at `quantile` of requests, mean for None."""
        load = self.rate(batch) * self.prefill_time_s
        if quantile is None:
            return wait_mean_s(load, self.prefill_time_s) + self.prefill_time_s + self.step_s(batch)
        wait = wait_quantile_s(load, self.prefill_time_s, quantile)
        return wait + self.late_prefill_time_s + self.step_s(batch)

    def batch_at(self, rate: float) -> float:
        """Requests in flight at which `rate` requests per second are served; `most` when it cannot."""
        if self.rate(self.most) <= rate:
            return self.most
        return _largest(lambda b: self.rate(b) <= rate, self.most)

    def largest_batch(self, step_within_s: float, first_within_s: float, quantile: float | None) -> float:
        """Most requests in flight within both targets (infinite where there is none); 0 if none is possible."""

        def holds(batch: float) -> bool:
            return self.step_s(batch) <= step_within_s and self.first_token_s(batch, quantile) <= first_within_s

        if self.most < 1 or not holds(1.0):
            return 0.0
        return self.most if holds(self.most) else _largest(holds, self.most)

    def carried(self, step_within_s: float, first_within_s: float, quantile: float | None) -> float:
        """Requests per second within the targets."""
        batch = self.largest_batch(step_within_s, first_within_s, quantile)
        return self.rate(batch) if batch else 0.0


def _largest(holds: Callable[[float], bool], high: float) -> float:
    """Largest value below `high` for which a condition that fails upwards still holds."""
    low = 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def quantile_of(label: str) -> float | None:
    """0.95 of `ttft_p95`, None of `ttft` (a mean)."""
    _, _, number = label.partition("_p")
    return int(number) / 100 if number else None


def target_of(target: object, what: str) -> tuple[str, object] | None:
    """(label, declared value) of the strictest percentile that a target states for `ttft` or `tpot`."""
    for label in (f"{what}_p99", f"{what}_p95", f"{what}_p50", what):
        value = getattr(target, label, None)
        if value is not None:
            return label, value
    return None
