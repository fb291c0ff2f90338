"""What lines say about a cluster: goodput, utilisation, fairness.

Each is None where it has no meaning (nothing was installed, nobody asked), never 0 or 1 instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterwright.ledger.lines import Line
from clusterwright.ledger.totals import Lines


def goodput_share(lines: Lines) -> float | None:
    """Productive part of all installed GPU time, 0 to 1: useful utilisation."""
    return lines.share(Line.PRODUCTIVE)


def allocated_share(lines: Lines) -> float | None:
    """Part of all installed GPU time that attempts held, 0 to 1: what most sites call utilisation."""
    total = lines.total_gpu_ms
    return lines.held_gpu_ms / total if total else None


def useful_of_allocated(lines: Lines) -> float | None:
    """Productive part of the time that attempts held, 0 to 1."""
    held = lines.held_gpu_ms
    return lines.of(Line.PRODUCTIVE) / held if held else None


def jain_index(amounts: Sequence[float]) -> float | None:
    """(Σx)² ÷ (n·Σx²): 1 when all are equal, 1/n when one has everything; None when nobody has anything.

    Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
    Computer Systems", DEC-TR-301, 1984.

    Raises:
        ValueError: for a negative amount.
    """
    if any(x < 0 for x in amounts):
        raise ValueError("amounts must not be negative")
    largest = max(amounts, default=0.0)
    if not largest:
        return None
    scaled = [x / largest for x in amounts]
    return sum(scaled) ** 2 / (len(scaled) * sum(x * x for x in scaled))


def fairness(delivered: Mapping[str, float], entitled: Mapping[str, float]) -> float | None:
    """Jain's index over queues of delivered ÷ entitled; queues that are entitled to nothing are left out.

    Args:
        delivered: by queue, in any unit of GPU time.
        entitled: by queue, in the same unit: its share of what was installed, at most what it asked for. A queue that
            is not in `delivered` got nothing.
    """
    return jain_index([delivered.get(queue, 0.0) / share for queue, share in entitled.items() if share > 0])
