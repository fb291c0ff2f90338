"""What changed in vLLM's memory budget from release to release.

Sources: vLLM release notes and `engine/arg_utils` (default batch sizes), `v1/worker/gpu_worker` (free memory checked
at start from 0.9 on; an estimate of the graphs inside the budget from 0.21 on), `v1/sample/ops/topk_topp_sampler`
(sorting sampler; Triton kernel without sort from 0.17 on; in-place sampler of model runner V2), start-up logs in its
issue tracker (copies of logits, memory outside PyTorch, MiB per graph).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.physics.engines.results import ByRanks, by_ranks

Version = tuple[int, int]

#: First release whose default engine is V1.
V1_SINCE: Final[Version] = (0, 8)
#: First release that checks free memory at start and leaves the CUDA context out of what it counts.
FREE_CHECKED_SINCE: Final[Version] = (0, 9)
#: First release with groups of windowed layers on by default (hybrid KV cache manager).
WINDOWS_SINCE: Final[Version] = (0, 10)
#: First release that keeps prefix-cache checkpoints of states by default (mamba_cache_mode "align").
STATE_PREFIXES_SINCE: Final[Version] = (0, 18)
#: First release that prints concurrency × length as the pool's tokens where layers differ; before, blocks over groups.
TOKENS_BY_CONCURRENCY_SINCE: Final[Version] = (0, 18)
#: First release that can keep recurrent states in another format than the model's own (`--mamba-ssm-cache-dtype`).
STATE_FORMATS_SINCE: Final[Version] = (0, 11)
#: First release that reads that format from a model's config (pull request 29978, December 2025).
STATE_FORMATS_READ_SINCE: Final[Version] = (0, 13)
#: First release that keeps states of a Nemotron-H whose config says nothing in fp32 (pull request 39032, April 2026).
NEMOTRON_STATES_SINCE: Final[Version] = (0, 20)
#: First release whose budget holds an estimate of the graphs.
GRAPHS_INSIDE_SINCE: Final[Version] = (0, 21)
#: First release with a default share of 0.92.
WIDER_SHARE_SINCE: Final[Version] = (0, 21)
#: First release that packs DeepSeek-V4 pages densely.
PACKED_SINCE: Final[Version] = (0, 24)


@dataclass(frozen=True, slots=True)
class VllmConstants:
    """Measured constants; each a median of public start-up logs unless it says otherwise.

    Args:
        sampler_copies: fp32 logits held at the sampler's peak: sorting sampler, Triton sampler, in-place sampler.
        non_torch_gib: outside PyTorch's allocator by tensor ranks (NCCL, workspaces, custom all-reduce).
        non_torch_recent_gib: the same from 0.11 on, with symmetric memory and workspaces of fused all-reduce.
        non_torch_context_gib: CUDA context, counted as used by V1 before 0.9.
        non_torch_rocm_gib: the same as non_torch_gib on ROCm, any width.
        graph_mib: MiB per captured graph and layer: V0, V1 before 0.11, later.
        residuals_v0: hidden states that V0 holds at once on one rank, and on several (copies of all-reduce): slopes of
            the peak over prompt length in vllm-project/vllm#10517.
        encoder_gib: forward peak of a vision tower over the largest image.
        context_gib: of a GPU's total that is never free, plus that share of it.
        spare_gib: to stay free beside graphs.
    """

    sampler_copies: tuple[float, float, float] = (9.7, 3.5, 1.7)
    non_torch_gib: ByRanks = ((1, 0.15), (2, 0.4), (4, 0.7), (8, 1.1), (16, 1.5))
    non_torch_recent_gib: ByRanks = ((1, 0.15), (2, 0.5), (4, 1.2), (8, 1.6), (16, 2.0))
    non_torch_context_gib: float = 0.55
    non_torch_rocm_gib: float = 0.4
    graph_mib: tuple[float, float, float] = (0.05, 0.45, 0.25)
    residuals_v0: tuple[float, float] = (2.6, 5.4)
    encoder_gib: float = 1.2
    context_gib: float = 0.3
    context_share: float = 0.002
    spare_gib: float = 0.3

    def copies(self, version: Version) -> float:
        """Copies of the logits at the sampler's peak."""
        sorting, triton, in_place = self.sampler_copies
        return sorting if version < (0, 17) else triton if version < (0, 22) else in_place

    def residuals(self, ranks: int, *, v0: bool) -> float:
        """Hidden states held at once in a forward pass; compiled graphs of V1 reuse them."""
        return self.residuals_v0[ranks > 1] if v0 else 2.0

    def graph(self, version: Version, *, v0: bool) -> float:
        """MiB per graph and layer."""
        return self.graph_mib[0 if v0 else 1 if version < (0, 11) else 2]

    def non_torch(self, ranks: int, vendor: str, version: Version, *, v0: bool) -> float:
        """GiB outside PyTorch's allocator that count against the budget."""
        if vendor == "amd":
            return self.non_torch_rocm_gib
        base = by_ranks(self.non_torch_recent_gib if version >= (0, 11) else self.non_torch_gib, ranks)
        return base + (self.non_torch_context_gib if not v0 and version < FREE_CHECKED_SINCE else 0.0)


def default_share(version: Version) -> float:
    """Default `gpu_memory_utilization`."""
    return 0.92 if version >= WIDER_SHARE_SINCE else 0.90


def default_sequences(reported_gib: float, *, is_a100: bool, v0: bool) -> int:
    """Default `max_num_seqs`: 256, and 1,024 for V1 on GPUs from 70 GiB other than A100."""
    return 1024 if not v0 and reported_gib >= 70 and not is_a100 else 256


def default_batched_tokens(
    version: Version, max_model_len: int, reported_gib: float, *, is_a100: bool, v0: bool, offline: bool
) -> int:
    """Default `max_num_batched_tokens`.

    V0 profiles a whole prompt unless chunked prefill is on, which it is above 32,768 tokens from 0.5.4 on. V1 takes
    8,192 (server) or 16,384 (offline) on GPUs from 70 GiB other than A100, 2,048 or 8,192 elsewhere.
    """
    if v0:
        if version >= (0, 5) and max_model_len > 32768:
            return 512 if version < (0, 6) else 2048
        return max(max_model_len, 2048)
    if reported_gib >= 70 and not is_a100:
        return 16384 if offline else 8192
    return 8192 if offline else 2048
