"""Prompt tokens that need no prefill because an earlier request had the same prefix, from a trace's block ids.

A request's ids name its prompt's blocks in order, equal ids meaning equal tokens from the start (Mooncake trace, block
of 512 tokens: Qin et al., FAST 2025, section 4). Blocks are kept in a cache of limited size, the least recently used
going first, as engines' prefix caches do; a prompt's last token is always computed, since the first output needs it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a cache of prefixes saves.

    Args:
        prompt_tokens: of all requests; `cached_tokens` of them found in the cache.
        requests, hits: requests, and those with at least one block found.
    """

    prompt_tokens: int
    cached_tokens: int
    requests: int
    hits: int

    @property
    def share(self) -> float:
        """Share of prompt tokens that need no prefill."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def prefix_reuse(requests: Iterable[tuple[int, Sequence[int]]], block: int = 512, blocks: int | None = None) -> Reuse:
    """Reuse over requests in order of arrival.

    Args:
        requests: (prompt tokens, block ids).
        block: tokens of a block.
        blocks: that the cache holds; None for all ever seen, the most that any cache can save.
    """
    cache: OrderedDict[int, None] = OrderedDict()
    tokens = cached = hits = count = 0
    for length, ids in requests:
        found = 0
        for number in ids:
            if number not in cache:
                break
            found += 1
        saved = min(found * block, max(length - 1, 0))
        for number in ids:
            cache[number] = None
            cache.move_to_end(number)
        while blocks is not None and len(cache) > blocks:
            cache.popitem(last=False)
        count, tokens, cached, hits = count + 1, tokens + length, cached + saved, hits + (found > 0)
    return Reuse(tokens, cached, count, hits)
