"""Time of inference: prefill, decode step, and what one replica carries; roofline terms.

Prefill 2·P·T/(peak·MFU) with causal attention on top. Decode step max((weights read + KV read)/(0.77·bandwidth),
FLOP/(share·peak)) + all-reduces + 75 µs per layer + 0.3 ms, and B·t_prefill/out for the prompts that share the GPU.
Among B tokens a mixture of experts reads 1 − (1 − k/E)^B of its experts.

The constants are not calibrated: on 923 public measurements of dense and MoE GQA models (Llama 3.1 8B and 70B, Qwen3
32B and 235B; H100, H200, B200; vLLM, SGLang, TensorRT-LLM; InferenceX runs shipped in aiconfigurator-core) the mean
error of the decode step is 42 %, nearly always too slow; eight of ten measurements lie within BAND of the estimate.
"""

from __future__ import annotations

import math
from typing import Final

#: Achieved share of peak memory bandwidth in decode.
BANDWIDTH_SHARE: Final = 0.77
#: Share of peak FLOP/s in prefill.
PREFILL_SHARE: Final = 0.50
#: s per layer and step beside the roofline: kernel launches, norms, small kernels.
LAYER_S: Final = 75e-6
#: s per step: scheduler and sampler.
STEP_S: Final = 0.3e-3
#: Factors on the decode estimate between which eight of ten validation rows lie.
BAND: Final = (0.54, 0.95)
VALIDATED: Final = "923 public measurements (mean error 42 %, eight of ten within ×0.54 to ×0.95)"

#: Achievable share of peak in large matrix products, by catalogue name of the GPU.
MATMUL_SHARE: Final[dict[str, float]] = {
    "h100-sxm-80": 0.80,
    "h200-sxm-141": 0.80,
    "a100-sxm-80": 0.87,
    "a100-sxm-40": 0.87,
    "b200-sxm-180": 0.78,
    "mi300x": 0.51,
}
MATMUL_SOURCE: Final = "best of published square matmul benchmarks (stas00/ml-engineering, compute/accelerator), 2025"


def unique_experts_share(experts: float, active: float, tokens: float) -> float:
    """Expected share of experts that at least one of `tokens` tokens uses, 1 − (1 − k/E)^B, evenly routed."""
    return 1.0 - math.pow(1 - active / experts, tokens)


def decode_step_s(memory_time_s: float, compute_time_s: float, all_reduces_s: float, layers: float) -> float:
    """Seconds of one decode step without interference by prefills: the roofline, and what is not part of it.

    Args:
        memory_time_s: to read weights and KV cache, see `memory_s`.
        compute_time_s: of the matrix products and attention.
        all_reduces_s: of the whole step.
    """
    return max(memory_time_s, compute_time_s) + all_reduces_s + overhead_s(layers)


def overhead_s(layers: float) -> float:
    """Seconds of a step beside the roofline: launches, norms, scheduler, sampler."""
    return LAYER_S * layers + STEP_S


def memory_s(read_bytes: float, bandwidth_bytes_s: float, bandwidth_share: float = BANDWIDTH_SHARE) -> float:
    """Seconds to read `read_bytes` at the achieved share of memory bandwidth."""
    return read_bytes / (bandwidth_share * bandwidth_bytes_s)


def prefill_flops(multiplied: float, tokens: float, layers: float, heads: float, head_dim: float) -> float:
    """FLOP of a prompt: 2 per parameter and token, and causal attention 2·L·H·hd·T²."""
    return 2 * multiplied * tokens + 2 * layers * heads * head_dim * tokens**2


def decode_flops(multiplied: float, context: float, layers: float, heads: float, head_dim: float) -> float:
    """FLOP of one token: 2 per parameter, and attention 4·L·H·hd·context."""
    return 2 * multiplied + 4 * layers * heads * head_dim * context


def prefill_s(flops: float, gpus: float, peak_flops_s: float, share: float = PREFILL_SHARE) -> float:
    """Seconds of a prompt on `gpus` GPUs."""
    return flops / (gpus * peak_flops_s * share)


def interference_s(batch: float, prefill_time_s: float, output_tokens: float) -> float:
    """Seconds that prefills of newly arrived requests add to a decode step, B·t_prefill/out."""
    return batch * prefill_time_s / output_tokens


def wait_quantile_s(load: float, service_s: float, quantile: float) -> float:
    """Waiting time that a share `quantile` of prompts stays within, prompts served one after another.

    M/M/1: P(W > x) = ρ·exp(−(1 − ρ)·x/s). Poisson arrivals, exponential lengths; infinite when ρ ≥ 1.
    """
    if load >= 1:
        return math.inf
    late = 1 - quantile
    return 0.0 if load <= late else service_s / (1 - load) * math.log(load / late)


def wait_mean_s(load: float, service_s: float) -> float:
    """Mean waiting time of M/M/1, ρ·s/(1 − ρ)."""
    return load * service_s / (1 - load) if load < 1 else math.inf
