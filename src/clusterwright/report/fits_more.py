"""What is added to the page of a fit on demand: the bill of materials, and the same work elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from clusterwright.report.blocks import Block, Grid, Heading, Lines
from clusterwright.report.fits_words import money, number

if TYPE_CHECKING:
    from clusterwright.plan.fitting.alternatives import Alternative
    from clusterwright.plan.materials import Materials


def bill_blocks(bill: Materials | None, machine: str) -> Iterator[Block]:
    """The bill as a table with how each line was counted."""
    yield Heading(f"Bill of materials, {machine}")
    if bill is None:
        yield Lines(("The catalogue has no node with this GPU, or nothing holds: nothing to count.",))
        return
    for line in bill.lines:
        unit = f" {line.unit}" if line.unit else ""
        yield Lines((f"{line.what}: {number(line.count)}{unit} ({line.reason})",), bullet=True)
    if bill.unknown:
        yield Lines(tuple(f"not counted: {text}" for text in bill.unknown), bullet=True)


def alternative_blocks(found: Sequence[Alternative], machine: str) -> Iterator[Block]:
    """The same work elsewhere, cheapest first."""
    yield Heading(f"The same work elsewhere, against {machine}; prices past their shelf life are marked")
    if not found:
        yield Lines(("No price of a rental or an API is known for it.",))
        return
    rows = tuple(
        (
            a.what + (" [old]" if a.stale else ""),
            a.dated,
            money(a.low, a.currency)
            if a.low == a.high
            else f"{money(a.low, a.currency)} to {money(a.high, a.currency)}",
            "-" if a.ratio is None else f"{a.ratio:.2f} ×",
        )
        for a in found
    )
    yield Grid(("", "dated", "per hour", "of ours"), rows)
    cheaper = [a.what for a in found if a.ratio is not None and a.ratio < 1 and a.what.startswith("API")]
    if cheaper:
        yield Lines((f"An API is cheaper at this load: {', '.join(cheaper)}.",))


def bill_values(bill: Materials | None) -> dict[str, Any] | None:
    """The bill as plain values."""
    if bill is None:
        return None
    return {
        "lines": [{"what": x.what, "count": x.count, "unit": x.unit, "reason": x.reason} for x in bill.lines],
        "unknown": list(bill.unknown),
    }


def alternative_values(found: Sequence[Alternative]) -> list[dict[str, Any]]:
    """Alternatives as plain values."""
    return [
        {
            "what": a.what,
            "per_hour_low": a.low,
            "per_hour_high": a.high,
            "currency": a.currency,
            "ratio": a.ratio,
            "dated": a.dated,
            "stale": a.stale,
        }
        for a in found
    ]
