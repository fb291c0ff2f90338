"""vLLM's memory budget per GPU, in GiB.

vLLM takes `share` of the total that CUDA reports. From it come weights, the peak of the profiling run, memory outside
PyTorch's allocator (NCCL, CUDA context) and, from 0.21 on, an estimate of the CUDA graphs; the rest is the KV pool.
Before 0.21 the graphs come on top of the budget.

Sources: vLLM `gpu_worker.determine_available_memory` (v0.11) and start-up logs published in its issue tracker; the
ranges below are what those logs show.
"""

from __future__ import annotations

from typing import Final

GIB: Final = 2.0**30

#: vLLM's default `gpu_memory_utilization`.
DEFAULT_SHARE: Final = 0.90
#: Copies of the fp32 logits that the sampler's warm-up holds at its peak, counted from published logs.
SAMPLER_COPIES: Final = 9.7
#: (low, high) GiB per GPU outside PyTorch's allocator by tensor-parallel width (CUDA), from published logs.
NON_TORCH_GIB: Final[dict[int, tuple[float, float]]] = {1: (0.02, 0.35), 2: (0.25, 0.55), 4: (0.40, 0.95)}
#: The same on ROCm, any width.
NON_TORCH_ROCM_GIB: Final = (0.25, 0.60)
#: (low, high) GiB per GPU of CUDA graphs in published logs.
GRAPHS_GIB: Final = (0.1, 8.6)
#: First vLLM release whose budget includes an estimate of the graphs.
GRAPHS_INSIDE_SINCE: Final = (0, 21)
#: Memory that should stay free beside budget and graphs, GiB.
SPARE_GIB: Final = 0.3


def vllm_budget_gib(reported_gib: float, share: float) -> float:
    """GiB that vLLM may use on a GPU; that much must be free when it starts."""
    return reported_gib * share


def vllm_default_sequences(reported_gib: float, is_a100: bool) -> int:
    """Default `max_num_seqs` of the API server.

    Source: vLLM v0.11 `EngineArgs._set_default_args`: 1,024 on GPUs from 70 GiB other than A100, else 256.
    """
    return 1024 if reported_gib >= 70 and not is_a100 else 256


def vllm_default_batched_tokens(reported_gib: float, is_a100: bool) -> int:
    """Default `max_num_batched_tokens` of the API server; source as for `vllm_default_sequences`."""
    return 8192 if reported_gib >= 70 and not is_a100 else 2048


def vllm_sampler_gib(sequences: float, vocabulary: float) -> float:
    """Peak of the sampler's warm-up: fp32 logits of all sequences; independent of tensor parallelism."""
    return SAMPLER_COPIES * sequences * vocabulary * 4 / GIB


def vllm_forward_gib(batched_tokens: float, hidden: float, intermediate: float, tp: float) -> float:
    """Peak of one forward pass in 16 bit: residual and hidden state, and the MLP's gate, up and product."""
    return batched_tokens * (2 * hidden + 3 * intermediate / tp) * 2 / GIB


def vllm_activation_gib(sampler_gib: float, forward_gib: float) -> float:
    """Peak of the profiling run: the larger of sampler and forward pass, which do not overlap."""
    return max(sampler_gib, forward_gib)


def vllm_kv_pool_gib(
    budget_gib: float, weights_gib: float, activation_gib: float, non_torch_gib: float, graphs_inside_gib: float
) -> float:
    """GiB left for the KV cache; negative when the engine would not start."""
    return budget_gib - weights_gib - activation_gib - non_torch_gib - graphs_inside_gib
