"""vLLM's block pool: how layers share blocks, and how many blocks a request takes.

All layers draw block numbers from one pool. Layers that keep entries for every token form one group, whatever their
sizes. Otherwise layers of equal kind are cut into groups of equal size (the smallest count of any kind, or the largest
where they differ by less than half), short groups padded, and a block is one page of every layer position. A page has
one size: attention blocks grow until they hold a recurrent state, states are padded to that page, and layers with
smaller entries get more tokens per block.

Source: vLLM `v1/core/kv_cache_utils` (get_kv_cache_groups, unify_kv_cache_spec_page_size,
get_max_concurrency_for_kv_cache_config, _approximate_gcd), `kv_cache_interface` (max_memory_usage_bytes),
`model_executor/models/config.HybridAttentionMambaModelConfig`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.physics.caches_by_layer import Kept, Kind

#: Kernels want attention blocks in multiples of it when they are enlarged.
_ALIGN_TOKENS: Final = 16
#: DeepSeek-V4: tokens of a block of compressed entries, of a window block; pages are multiples of 576 B.
_V4_BLOCK, _V4_WINDOW_BLOCK, _V4_ALIGN = 256, 64, 576


@dataclass(frozen=True, slots=True)
class Group:
    """`count` block tables of one kind.

    Args:
        block_tokens: tokens that one block holds.
        fixed: blocks per request whatever its length (states).
    """

    kind: Kind
    block_tokens: int
    span: int = 0
    fixed: int = 0
    count: int = 1

    def blocks(self, tokens: int, in_flight: int, dcp: int) -> int:
        """Blocks that a request of `tokens` takes from the pool."""
        if self.kind == "state":
            return self.count * self.fixed
        if self.kind == "full":
            return self.count * math.ceil(math.ceil(tokens / dcp) / self.block_tokens)
        if self.kind == "window":
            return self.count * (math.ceil(min(self.span - 1 + in_flight, tokens) / self.block_tokens) + 1)
        return self.count * math.ceil(min(self.span + in_flight, tokens) / self.block_tokens)


@dataclass(frozen=True, slots=True)
class Pool:
    """How a model's layers share a pool.

    Args:
        block_bytes: B of one block on a GPU of every pipeline stage; 0 on a stage that keeps nothing.
        uniform: one group that keeps every token: tokens of the pool are blocks × block size.
    """

    groups: tuple[Group, ...]
    block_bytes: tuple[int, ...]
    uniform: bool

    @property
    def block_tokens(self) -> int:
        """Tokens of a block of the group that keeps every token, of the first group where there is none."""
        return next((g.block_tokens for g in self.groups if g.kind == "full"), self.groups[0].block_tokens)

    def request_blocks(self, tokens: int, in_flight: int, dcp: int = 1) -> int:
        """Blocks of one request of `tokens`."""
        return sum(g.blocks(tokens, in_flight, dcp) for g in self.groups)

    def blocks(self, kv_bytes: Sequence[float]) -> int:
        """Blocks of the pool: the fewest over the stages' bytes."""
        found = [int(have // need) for have, need in zip(kv_bytes, self.block_bytes, strict=True) if need]
        return max(0, min(found, default=0))

    def longest(self, blocks: int, limit: int, in_flight: int, dcp: int = 1) -> int:
        """Longest request, up to `limit` tokens, that `blocks` hold; 0 where not even one token fits."""
        if self.request_blocks(limit, in_flight, dcp) <= blocks:
            return limit
        low, high = 0, limit
        while high - low > 1:
            middle = (low + high) // 2
            if self.request_blocks(middle, in_flight, dcp) <= blocks:
                low = middle
            else:
                high = middle
        return low


def share_blocks(
    layers: Sequence[tuple[int, Kept]],
    stage_count: int,
    *,
    block_tokens: int = 16,
    window_aware: bool = True,
    state_blocks: int = 1,
    limit: float = 1.5,
    packed: bool = True,
) -> Pool:
    """Groups and block sizes for what the layers keep.

    Args:
        layers: (stage, what one layer of it keeps), in order; a layer may appear more than once.
        window_aware: whether windowed layers give blocks back (hybrid KV cache manager).
        state_blocks: blocks of a state per request and layer group.
        limit: groups take the largest count where it is below `limit` × the smallest.
        packed: DeepSeek-V4 pages lie densely in a block (later releases).
    """
    kept = [(stage, k if window_aware or k.kind == "state" else replace(k, kind="full", span=0)) for stage, k in layers]
    if any(k.ratio > 1 or k.role == "compressor" for _, k in kept):
        return _compressed(kept, stage_count, packed=packed)
    if all(k.kind == "full" for _, k in kept):
        size = [0] * stage_count
        for stage, k in kept:
            size[stage] += k.entry_bytes * block_tokens
        return Pool((Group("full", block_tokens),), tuple(size), uniform=True)
    return _paged(kept, stage_count, block_tokens, state_blocks, limit)


def _paged(
    kept: Sequence[tuple[int, Kept]], stage_count: int, block_tokens: int, state_blocks: int, limit: float
) -> Pool:
    entries = [k.entry_bytes for _, k in kept if k.kind != "state"]
    states = [k.entry_bytes for _, k in kept if k.kind == "state"]
    widest = max(entries, default=0)
    tokens = block_tokens
    if widest and states:
        tokens = max(tokens, _ALIGN_TOKENS * math.ceil(max(states) / (_ALIGN_TOKENS * widest)))
    page = max(widest * tokens, max(states, default=0))
    kinds: dict[Kept, list[int]] = {}
    for stage, k in kept:
        kinds.setdefault(k, []).append(stage)
    counts = [len(found) for found in kinds.values()]
    size = max(counts) if max(counts) < min(counts) * limit else min(counts)
    groups, width = [], [0] * stage_count
    for k, found in kinds.items():
        count = math.ceil(len(found) / size)
        for first in range(count):
            for stage, members in Counter(found[first::count]).items():
                width[stage] = max(width[stage], members)
        groups.append(_group(k, count, page, tokens, state_blocks))
    return Pool(tuple(groups), tuple(w * page for w in width), uniform=False)


def _group(k: Kept, count: int, page: int, tokens: int, state_blocks: int) -> Group:
    if k.kind == "state":
        return Group("state", tokens, fixed=state_blocks, count=count)
    own = k.entry_bytes * tokens
    return Group(k.kind, tokens * (page // own) if page % own == 0 else tokens, k.span, count=count)


def _compressed(kept: Sequence[tuple[int, Kept]], stage_count: int, *, packed: bool) -> Pool:
    main = Counter(_v4_page(k) for _, k in kept if k.kind == "full")
    windows: dict[tuple[int, int], Counter[int]] = {}
    for _, k in kept:
        if k.kind == "window":
            windows.setdefault((k.span, _v4_tokens(k)), Counter())[_v4_page(k)] += 1
    counts = [max(main.values()), *(max(pages.values()) for pages in windows.values())]
    unit = _common(counts, counts[0])
    groups = [Group("full", _V4_BLOCK)]
    for ((span, tokens), _), count in zip(windows.items(), counts[1:], strict=True):
        groups.append(Group("window", tokens, span, count=math.ceil(count / unit)))
    whole = sum(page * count for page, count in main.items()) if packed else unit * sum(main)
    share = Counter(stage for stage, k in kept if k.kind == "full")
    width = tuple(math.ceil(whole * share[stage] / share.total()) for stage in range(stage_count))
    return Pool(tuple(groups), width, uniform=False)


def _v4_tokens(k: Kept) -> int:
    if k.role == "compressor":
        return 4 if k.span <= 8 else 8
    return _V4_WINDOW_BLOCK


def _v4_page(k: Kept) -> int:
    entries = _V4_BLOCK // k.ratio if k.kind == "full" else _v4_tokens(k)
    return math.ceil(entries * k.entry_bytes / _V4_ALIGN) * _V4_ALIGN


def _common(counts: Sequence[int], least: int) -> int:
    """Group size from `least` on that pads the fewest layers; the smallest of those."""
    return min(range(least, max(counts) + 1), key=lambda d: (sum(-c % d for c in counts), d))
