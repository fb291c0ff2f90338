"""Bytes of the key-value cache for MHA and GQA.

Per GPU and token 2 · (L/pp) · max(1, kv/tp) · hd · b: with more tensor ranks than KV heads the heads are replicated,
and the pool of a replica is the smallest over its ranks and stages.

Source: vLLM v0.11 `FullAttentionSpec.page_size_bytes`; arXiv:1911.02150 (MQA), arXiv:2305.13245 (GQA).
"""

from __future__ import annotations

import math
from typing import Final

#: Tokens of one block of vLLM's paged cache by default (CUDA).
BLOCK_TOKENS: Final = 16


def kv_bytes_per_token(
    layers: float, kv_heads: float, head_dim: float, bytes_per_element: float, tp: float = 1, pp: float = 1
) -> float:
    """Bytes of keys and values that one token takes on the fullest GPU."""
    return 2 * math.ceil(layers / pp) * max(1.0, kv_heads / tp) * head_dim * bytes_per_element


def kv_bytes(tokens: float, bytes_per_token: float, block_tokens: float = BLOCK_TOKENS) -> float:
    """Bytes on one GPU of a sequence of `tokens`, in whole blocks."""
    return math.ceil(tokens / block_tokens) * block_tokens * bytes_per_token
