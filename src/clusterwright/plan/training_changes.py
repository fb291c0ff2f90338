"""What a file could change so that its training job fits: single changes that a file can say, best first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from clusterwright.model.decoders import Decoder
from clusterwright.model.hardware import Gpu
from clusterwright.physics.engines.results import Change
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.advice import changes
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.systems import System, system_of
from clusterwright.plan.searching.machines import inner_domain, link_bytes_s, node_link
from clusterwright.plan.searching.questions import Pool

#: What advice says → the field of `train` that says it; others are not in the file.
_FIELDS: Final = (
    (r"recompute whole layers", "recompute: full"),
    (r"recompute norms.*", "recompute: selective"),
    (r"micro-batch (\d+)", r"micro_batch: \1"),
    (r"divide the optimizer.*", "sharding: zero1"),
    (r"divide weights and gradients too", "sharding: fsdp"),
    (r"optimizer on the host", "offload: optimizer"),
    (r"optimizer and parameters on the host", "offload: parameters"),
    (r"tensor parallel (\d+)", r"parallel: tp \1"),
    (r"pipeline parallel (\d+)", r"parallel: pp \1"),
    (r"context parallel (\d+)", r"parallel: cp \1"),
    (r"expert parallel (\d+)", r"parallel: ep \1"),
)
#: Most that are said.
_MOST: Final = 5


def training_changes(
    decoder: Decoder, layout: Layout, recipe: Recipe, pool: Pool, gpu_gib: float
) -> tuple[Change, ...]:
    """Single changes after which less memory is needed, those that fit first, the fastest of them before the others."""
    try:
        system = _system(pool, pool.gpu)
    except ValueError:  # the catalogue has no rates of this GPU
        return ()
    return tuple(_said(decoder, layout, recipe, system, gpu_gib))[:_MOST]


def _said(decoder: Decoder, layout: Layout, recipe: Recipe, system: System, gpu_gib: float) -> Iterator[Change]:
    for change in changes(decoder, layout, recipe, gpu_gib, system):
        field = next(
            (re.sub(says, field, change.text) for says, field in _FIELDS if re.fullmatch(says, change.text)), ""
        )
        if field:
            what = f"{field} ({change.total_gib:.1f} GiB, {change.slowdown:.2f} × the time of a step)"
            yield Change(what, change.fits, 0, 0.0, 0)


def _system(pool: Pool, gpu: Gpu) -> System:
    """The pool's system; a network that is not known costs nothing here, where only changes are compared."""
    nic = (pool.nic_gbytes_s or math.inf) * 1e9
    link = link_bytes_s(pool) or math.inf
    return system_of(gpu, domain=inner_domain(pool), link_bytes_s=link, nic_bytes_s=nic, node=node_link(pool))
