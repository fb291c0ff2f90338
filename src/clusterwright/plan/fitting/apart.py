"""Prefill and decode on workers of their own against whole replicas, on one machine."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.searching.disaggregated import Split


@dataclass(frozen=True)
class Apart:
    """One machine's answer.

    Args:
        split: the cheapest prefill and decode workers; None with the reason in `why`.
        whole_gpus, whole_per_h: charged GPUs and money of whole replicas for the same load; None where none hold.
        currency: of both.
    """

    machine: str
    split: Split | None
    why: str
    whole_gpus: float | None
    whole_per_h: float | None
    currency: str

    @property
    def gpus_ratio(self) -> float | None:
        """Charged GPUs of the split ÷ those of whole replicas."""
        return self.split.charged_gpus / self.whole_gpus if self.split and self.whole_gpus else None


def apart_of(fit: ServingFit) -> Apart:
    """The split of a machine at the load that was asked for, and why there is none."""
    refused, best = fit.refused, fit.best
    split = None if refused else fit.search.split
    return Apart(
        fit.machine.asked,
        split,
        "" if split else refused or _why(fit),
        None if best is None else best.charged_gpus,
        None if best is None else best.cost_per_h,
        fit.question.pool.currency,
    )


def _why(fit: ServingFit) -> str:
    asked = fit.question
    if not asked.pool.nic_gbytes_s:
        return "no network hands caches over; state --nic"
    if asked.concurrency is not None:
        return "a rate is asked for, not requests in flight; state --rate"
    if asked.rate is None and asked.quantile is None:
        return "neither a rate nor a target is stated"
    return "no prefill and decode workers keep the targets at this load with these GPUs"
