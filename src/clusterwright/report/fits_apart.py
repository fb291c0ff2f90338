"""Prefill and decode on workers of their own: a row per machine, with what whole replicas take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clusterwright.report.blocks import Block, Grid, Heading, Lines
from clusterwright.report.fits_words import money

if TYPE_CHECKING:
    from clusterwright.plan.fitting.apart import Apart

_HEADS = ("", "prefill", "decode", "handover", "TTFT", "TPOT", "GPUs", "per hour", "of whole replicas")


def apart_blocks(found: Sequence[Apart]) -> Iterator[Block]:
    """A table of those that can be split, and why the others cannot."""
    yield Heading("Prefill and decode on workers of their own, the cheapest of each machine")
    rows = tuple(_row(each) for each in found if each.split is not None)
    if rows:
        yield Grid(_HEADS, rows)
        yield Lines(("Spare workers for the nodes that may be lost are counted in each half.",))
    for each in found:
        if each.split is None:
            yield Lines((f"{each.machine}: {each.why}",), bullet=True)


def _row(each: Apart) -> tuple[str, ...]:
    split = each.split
    assert split is not None
    return (
        each.machine,
        f"{split.prefill_workers} × {split.prefill}",
        f"{split.decode_workers} × {split.decode}",
        f"{split.handover_s * 1e3:.3g} ms",
        f"{split.ttft_s:.3g} s",
        f"{split.tpot_s * 1e3:.3g} ms",
        f"{split.charged_gpus:g}",
        "-" if split.cost_per_h is None else money(split.cost_per_h, each.currency),
        "-" if each.gpus_ratio is None else f"{each.gpus_ratio:.2f} ×",
    )


def apart_values(found: Sequence[Apart]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [
        {
            "machine": each.machine,
            "why_not": each.why,
            "split": None
            if each.split is None
            else asdict(each.split) | {"prefill": str(each.split.prefill), "decode": str(each.split.decode)},
            "whole_gpus": each.whole_gpus,
            "whole_per_hour": each.whole_per_h,
            "currency": each.currency,
        }
        for each in found
    ]
