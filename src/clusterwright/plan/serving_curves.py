"""Latency against concurrency, and the largest concurrency within targets."""

from __future__ import annotations

import math

import numpy as np

from clusterwright.physics.serving.answers import Setting, curve, largest_concurrency
from clusterwright.plan.results.services import LoadCurve, LoadPoint
from clusterwright.plan.services import Load


def replica_curve(load: Load, gpus: int) -> LoadCurve:
    """The curve of one replica at its declared lengths."""
    replica = load.replica
    targets = tuple(None if t is None else t[1].value for t in (load.first, load.step))
    return load_curve(replica.setting, int(replica.room), targets, gpus, load.said)


def load_curve(setting: Setting, most: int, targets: tuple[float | None, ...], gpus: int, basis: str) -> LoadCurve:
    """Powers of two up to `most` requests in flight, `most` itself, and the largest within (TTFT, TPOT) targets, s."""
    with np.errstate(all="ignore"):  # what no worker can do is infinite
        return _curve(setting, max(most, 1), targets, gpus, basis)


def _curve(setting: Setting, most: int, targets: tuple[float | None, ...], gpus: int, basis: str) -> LoadCurve:
    counts = {2**k for k in range(int(math.log2(most)) + 1)} | {most}
    within = None
    if any(target is not None for target in targets):
        ttft, tpot = (math.inf if target is None else target for target in targets)
        within = largest_concurrency(setting, ttft, tpot, most)
        counts |= {within} if within else set()
    columns = np.array(sorted(counts), dtype=np.float64)
    ttft_s, tpot_s, requests_s = curve(setting, columns)
    rows = zip(columns, ttft_s, tpot_s, requests_s, strict=True)
    return LoadCurve(tuple(LoadPoint(*(float(v) for v in row)) for row in rows), within, gpus, basis)
