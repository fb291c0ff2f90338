"""Prompt tokens of a service that need no prefill: declared, or as a trace's blocks say for the cache of a replica."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Serve
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet

_ROUTED: Final = "prefix reuse counts on requests going to the replica that has their prefix in its cache"


def plan_reuse(sheet: Sheet, name: str, prefix: str, serve: Serve, cache: Figure | None) -> Figure | None:
    """Share of prompt tokens found in the cache of prefixes; None where nothing is said of it.

    Args:
        cache: tokens that the caches of one replica hold.
    """
    path = f"workloads.{name}.serve"
    if serve.prefix_reuse is not None:
        sheet.limit(_ROUTED)
        stated = sheet.declared(f"{path}.prefix_reuse", serve.prefix_reuse.value, "share")
        return sheet.picked(Kind.SHARE, f"{prefix}.prefix_reuse", stated)
    if serve.lengths is None or not serve.lengths.reuse or cache is None:
        return None
    sheet.limit(_ROUTED)
    rows = [(row.cache.value, row.share.value) for row in serve.lengths.reuse]
    most = sheet.declared(f"{path}.lengths.reuse", max(share for _, share in rows), "share")
    count = sheet.maybe(f"{path}.replicas", serve.replicas, "replicas") or sheet.assumed(
        f"{name}.caches", 1, "replicas", "replicas is not stated; the whole trace through one cache is the least saved"
    )
    return sheet.derive(
        f"{prefix}.prefix_reuse",
        "share",
        f"reuse of the trace with caches of {rows[0][0]:,.0f} to {rows[-1][0]:,.0f} tokens, at the size of all "
        "replicas' caches; the least recently used goes first",
        lambda m, tokens, n: reuse_at([(size, share * m / rows[-1][1]) for size, share in rows], tokens * n),
        most,
        cache,
        count,
    )


def reuse_at(rows: Sequence[tuple[float, float]], tokens: float) -> float:
    """Share at a size of the cache, linear in the size's logarithm; proportional below the smallest size."""
    if tokens <= rows[0][0]:
        return rows[0][1] * tokens / rows[0][0]
    for (small, low), (large, high) in pairwise(rows):
        if tokens <= large:
            return low + (high - low) * math.log(tokens / small) / math.log(large / small)
    return rows[-1][1]
