"""What a sustained run can say about rare faults, and what it cannot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clusterwright.judging.acceptance_plans import PlannedTest
from clusterwright.physics.rare_events import exposure_for, upper_rate

#: GPU-hours between failures as published, for comparison: 8 GPUs failed every 47.7 days.
#: Source: Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
#: arXiv:2410.21680, RSC-1.
PUBLISHED_GPU_HOURS: Final = 47.7 * 24 * 8


def describe_sustained(tests: Iterable[PlannedTest]) -> tuple[str, ...]:
    """Sentences about the sustained tests, one per test."""
    return tuple(_describe(t) for t in tests if t.kind.sustained and t.duration and t.gpus_per_node)


def _describe(test: PlannedTest) -> str:
    gpus, hours = len(test.nodes) * test.gpus_per_node, test.duration / 3600
    return f"{test.id}: {describe_bound(0, gpus, hours)}"


def describe_bound(faults: int, gpus: int, hours: float) -> str:
    """What so many faults on so many GPUs in so many hours say, with 95 % confidence."""
    exposure = gpus * hours
    mean = 1 / upper_rate(faults, exposure)
    seen = {0: "no fault", 1: "one fault"}.get(faults, f"{faults} faults")
    needed = exposure_for(1 / PUBLISHED_GPU_HOURS) / gpus
    return (
        f"{seen} on {gpus:,} GPUs in {hours:g} h ({exposure:,.0f} GPU-h) shows, with 95 % confidence, a mean of at "
        f"least {mean:,.1f} GPU-h between faults (exact Poisson bound; with none it is the rule of three). To show the "
        f"published {PUBLISHED_GPU_HOURS:,.0f} GPU-h (RSC-1) this cluster must run {needed:,.0f} h without a fault; a "
        "rarer fault stays unseen"
    )
