"""Paid GPU-months that the target work needs: of a paid GPU-month only the useful share works."""

from __future__ import annotations

from clusterwright.lib.figures import Figure
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.plan.economics import Use
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.money import CapacityPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan

_MONTH_S = HOURS_PER_MONTH * 3600


def serving_capacity(
    sheet: Sheet, name: str, service: ServicePlan, layout: Layout, lengths: tuple[Figure, Figure], use: Use | Unplanned
) -> CapacityPlan | Unplanned:
    """GPU-months per month of a service at its declared rate."""
    prefix = f"workloads.{name}.capacity"
    if isinstance(service.replica_rate, Unplanned):
        return Unplanned(prefix, f"the rate of a replica is unknown: {service.replica_rate.reason}")
    if not service.replica_rate.value:
        return Unplanned(prefix, "at no rate does a replica meet the latency targets")
    if isinstance(use, Unplanned):
        return sheet.miss(prefix, use.reason, *use.missing)
    work = sheet.derive(
        f"{prefix}.target_work",
        "Mtok/month",
        "rate × (input + output tokens) × 730 h, as if the declared rate held all month",
        lambda r, i, o: r * (i + o) * _MONTH_S / 1e6,
        service.rate,
        *lengths,
    )
    gpus = service.rate_gpus or layout.gpus
    useful = sheet.derive(
        f"{prefix}.useful_per_gpu_month",
        "Mtok/GPU-month",
        "rate of a replica × tokens ÷ its GPUs × 730 h × useful share of paid time",
        lambda r, i, o, u: r * (i + o) / gpus * _MONTH_S / 1e6 * u,
        service.replica_rate,
        *lengths,
        use.useful,
    )
    return _capacity(sheet, prefix, "Mtok", work, useful)


def training_capacity(
    sheet: Sheet, name: str, training: TrainingPlan, gpus: int, tokens: Figure | None, use: Use | Unplanned
) -> CapacityPlan | Unplanned:
    """GPU-months of a whole run."""
    prefix = f"workloads.{name}.capacity"
    if isinstance(training.tokens_per_s, Unplanned):
        return Unplanned(prefix, f"the speed is unknown: {training.tokens_per_s.reason}")
    if tokens is None:
        return sheet.miss(prefix, "the target work is not stated", f"workloads.{name}.train.tokens")
    if training.goodput is None:
        return Unplanned(prefix, "the share lost to failures is unknown")
    if isinstance(use, Unplanned):
        return sheet.miss(prefix, use.reason, *use.missing)
    useful = sheet.derive(
        f"{prefix}.useful_per_gpu_month",
        "Mtok/GPU-month",
        "tokens per second ÷ GPUs × 730 h × productive share (failures) × useful share of paid time",
        lambda t, g, u: t / gpus * _MONTH_S / 1e6 * g * u,
        training.tokens_per_s,
        training.goodput,
        use.useful,
    )
    return _capacity(sheet, prefix, "Mtok", tokens, useful)


def _capacity(sheet: Sheet, prefix: str, unit: str, work: Figure, useful: Figure) -> CapacityPlan:
    months = sheet.derive(
        f"{prefix}.gpu_months",
        "GPU-months",
        "target work ÷ useful work of a paid GPU-month",
        lambda w, u: w / u if u else float("inf"),
        work,
        useful,
    )
    return CapacityPlan(unit, work, useful, months)
