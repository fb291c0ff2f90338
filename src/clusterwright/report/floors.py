"""Linted thresholds as text and as plain values."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from clusterwright.judging.floors import Linted


def render_floors(linted: Sequence[Linted], width: int = 120) -> str:
    """One block per threshold: what it asks, what its system reaches, what is wrong with it."""
    blocks = []
    for one in linted:
        lines = [f"{one.floor.name}: {_verdict(one)}"]
        asked = "" if one.busbw is None else f"asks {one.busbw:.4g} GB/s busbw of "
        lines += _folded(f"{asked}{one.floor.operation or 'no named collective'} on {one.floor.system}", width, "  ")
        if one.ceiling is not None:
            best = one.ceiling.published
            said = f"bound {_rate(one.ceiling.bound)}, reference {_rate(one.ceiling.reference)}"
            lines += _folded(said + (f", published {best.busbw:g} GB/s ({best.source})" if best else ""), width, "  ")
        for remark in one.remarks:
            word = "undecided" if remark.undecided else remark.severity.word
            lines += _folded(f"{word}: {remark.message} [{remark.rule}]", width, "  ")
            lines += _folded(remark.action, width, "    → ")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def floors_values(linted: Sequence[Linted]) -> list[dict[str, Any]]:
    """The same as plain values; rates in GB/s, null for none."""
    return [
        {
            "name": one.floor.name,
            "field": one.floor.field,
            "system": str(one.floor.system),
            "operation": one.floor.operation,
            "metric": one.floor.metric,
            "message_size": str(one.floor.message_size) if one.floor.message_size else None,
            "busbw_gbytes_s": one.busbw,
            "bound_gbytes_s": _finite(one.ceiling.bound) if one.ceiling else None,
            "reference_gbytes_s": _finite(one.ceiling.reference) if one.ceiling else None,
            "published": {"busbw_gbytes_s": one.ceiling.published.busbw, "source": one.ceiling.published.source}
            if one.ceiling and one.ceiling.published
            else None,
            "findings": [
                {
                    "rule": r.rule,
                    "severity": r.severity.word,
                    "undecided": r.undecided,
                    "message": r.message,
                    "action": r.action,
                }
                for r in one.remarks
            ],
        }
        for one in linted
    ]


def _verdict(one: Linted) -> str:
    if not one.remarks:
        return "sound"
    worst = one.remarks[0]
    return "not decided" if worst.undecided else {2: "unsound", 1: "doubtful"}.get(int(worst.severity), "sound")


def _rate(value: float) -> str:
    return f"{value:.4g} GB/s" if math.isfinite(value) else "none (the network adds up in its switches)"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _folded(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, max(60, width), initial_indent=indent, subsequent_indent=" " * len(indent) + "  ", break_on_hyphens=False
    )
