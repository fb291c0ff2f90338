"""What a training step must move between nodes, held against the network: a lower bound on its time."""

from __future__ import annotations

from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.model.decoders import BITS, Attention, LatentAttention
from clusterwright.model.workloads import Train
from clusterwright.physics.training_traffic import (
    ELEMENT_BYTES,
    Ranks,
    context_bytes,
    pipeline_bytes,
    weights_bytes,
)
from clusterwright.plan.collectives import fabric_rate, nic_rate
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.sites import Site, networks_with

#: GB/s per GPU between nodes of the systems that the constants of step time were fitted on: one 400 Gb/s NIC each.
VALIDATED_GBYTES_S: Final = 50.0


def speed_of(workload: str) -> str:
    """How limits of the plan begin that qualify a speed; `… is` only where it is an upper limit."""
    return f"the speed of {workload}"


def step_traffic(
    sheet: Sheet,
    workload: str,
    prefix: str,
    path: str,
    train: Train,
    model: PlannedModel,
    site: Site,
    layout: Layout,
) -> tuple[Figure | None, Figure | None, bool]:
    """What the network between nodes means for a step.

    Returns:
        s that the network needs at least for a step; GB/s per GPU; whether the speed leaves what its constants were
        fitted on. None for a job inside one domain, and where no network is known; the latter is a limit of the plan.
    """
    domain = max(site.gpus_per_node, site.domain_gpus)
    ranks = Ranks(layout.tp, layout.pp, layout.dp, layout.cp, domain)
    if not ranks.leaves:
        return None, None, False
    subject = speed_of(workload)
    rate = nic_rate(sheet, site)
    if isinstance(rate, Unplanned):
        sheet.limit(f"{subject} is an upper limit, not an estimate: no network is declared that its nodes compute over")
        return None, None, True
    through, _ = fabric_rate(sheet, site, rate)
    reduces = any(n.in_network_reduction for n in networks_with(sheet, "compute", site.name).values())
    moved = _volume(sheet, prefix, path, train, model, layout, ranks, reduces)
    time = sheet.derive(
        f"{prefix}.network_time",
        "s",
        f"bytes that cross the edge of {domain} GPUs ÷ their {domain} NICs; a lower bound",
        lambda v, r: v / (r * domain),
        moved,
        through,
    )
    slow = through.value < VALIDATED_GBYTES_S * 0.99
    if slow:
        sheet.limit(
            f"{subject} has no band: its constants were fitted on systems with {VALIDATED_GBYTES_S * 8:g} Gb/s between "
            f"nodes per GPU, here it is {through.value * 8:.4g} Gb/s; measure a step and state step_time"
        )
    return time, through, slow


def _keys(mixer: object) -> int:
    """Elements of keys and values per token and layer."""
    if isinstance(mixer, Attention):
        return mixer.kv_heads * (mixer.key_dim + mixer.value_dim)
    return mixer.kv_rank + mixer.rope_dim if isinstance(mixer, LatentAttention) else 0


def _volume(
    sheet: Sheet,
    prefix: str,
    path: str,
    train: Train,
    model: PlannedModel,
    layout: Layout,
    ranks: Ranks,
    reduces: bool,
) -> Figure:
    """GB that cross the edge of a domain per step: weights and gradients, activations, keys and values."""
    sharded = train.sharding in ("fsdp", "zero3")
    gathered = min(ELEMENT_BYTES, BITS.get(train.precision, 16) // 8)
    decoder = model.decoder
    batch = sheet.declared(f"{path}.global_batch", train.global_batch, "sequences")
    sequence = sheet.declared(f"{path}.sequence", train.sequence, "tokens")
    weights = sheet.derive(
        f"{prefix}.network_weights",
        "GB",
        ("two all-gathers and a reduce-scatter" if sharded else "all-gather and reduce-scatter")
        + f" of weights over {ranks.domains:g} domains, once per step"
        + ("; experts left out" if layout.ep > 1 else ""),
        lambda d, e, r, v: (
            weights_bytes(ranks, d + r + v + (e if layout.ep == 1 else 0), gathered, sharded, reduces) / 1e9
        ),
        model.dense,
        model.experts,
        model.replicated,
        model.vocabulary,
    )
    activations = sheet.derive(
        f"{prefix}.network_activations",
        "GB",
        "activations of a pipeline and their gradients, keys and values of context ranks",
        lambda b, s: (
            (
                pipeline_bytes(ranks, b * s, decoder.hidden)
                + context_bytes(ranks, b * s, 1, sum(_keys(layer.mixer) * n for layer, n in decoder.groups))
            )
            / 1e9
        ),
        batch,
        sequence,
    )
    return sheet.derive(f"{prefix}.network_bytes", "GB", "sum of both", lambda w, a: w + a, weights, activations)
