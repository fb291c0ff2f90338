"""What a useful GPU-hour makes, in the denominators that workloads are paid by."""

from __future__ import annotations

import re

from clusterwright.lib.figures import Figure
from clusterwright.plan.bills import Yield
from clusterwright.plan.drafts import Draft
from clusterwright.plan.economics import Costs
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.plans import WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import TrainingPlan

#: Denominator in words → unit.
_UNITS = (
    (r"\bm(illion )?tok(en)?s?\b", "Mtok"),
    (r"\brequests?\b|\breq\b", "request"),
    (r"\bruns?\b|\bjobs?\b", "run"),
    (r"\bgpu[- ]?h(ours?)?\b", "GPU-h"),
)


def read_unit(text: str) -> str | None:
    """`accepted Mtok` → Mtok; None for a denominator that the planner cannot count."""
    return next((unit for pattern, unit in _UNITS if re.search(pattern, text, re.IGNORECASE)), None)


def read_yields(sheet: Sheet, workloads: tuple[WorkloadPlan, ...], drafts: list[Draft]) -> list[Yield | Unplanned]:
    """One yield per workload, in its own denominator, else in that of the economics section."""
    money = sheet.architecture.economics
    common = money.denominator if money else None
    found: list[Yield | Unplanned] = []
    for plan, draft in zip(workloads, drafts, strict=True):
        text = draft.workload.denominator or common
        if text is None:
            found.append(
                sheet.miss(
                    f"workloads.{plan.name}.unit_cost",
                    "no denominator is stated",
                    f"workloads.{plan.name}.denominator",
                    "economics.denominator",
                )
            )
        else:
            found.append(_yield(sheet, plan, draft, text))
    return found


def _yield(sheet: Sheet, plan: WorkloadPlan, draft: Draft, text: str) -> Yield | Unplanned:
    subject, unit = f"workloads.{plan.name}.unit_cost", read_unit(text)
    if unit == "GPU-h":
        one = sheet.planned(f"workloads.{plan.name}.per_useful_gpu_hour", 1, "GPU-h", "the denominator itself")
        return Yield(plan.name, text, one, unit, site=draft.site)
    if isinstance(plan.service, ServicePlan) and unit in ("Mtok", "request"):
        return _served(sheet, plan, draft, plan.service, text, unit)
    if isinstance(plan.training, TrainingPlan) and unit in ("Mtok", "run"):
        return _trained(sheet, plan, draft, plan.training, text, unit)
    if unit is None:
        return sheet.miss(subject, f"'{text}' is no unit that the planner counts (Mtok, request, run, GPU-h)")
    return sheet.miss(subject, f"{plan.name} cannot be counted in '{text}'", f"workloads.{plan.name}.denominator")


def _served(
    sheet: Sheet, plan: WorkloadPlan, draft: Draft, service: ServicePlan, text: str, unit: str
) -> Yield | Unplanned:
    if isinstance(service.replica_rate, Unplanned) or plan.layout is None or draft.lengths is None:
        return Unplanned(f"workloads.{plan.name}.unit_cost", "the rate of a replica is unknown")
    gpus = service.rate_gpus or plan.layout.gpus
    tokens = draft.lengths
    name = f"workloads.{plan.name}.per_useful_gpu_hour"
    if unit == "request":
        made = sheet.derive(
            name,
            "requests/GPU-h",
            "rate of a replica × 3,600 s ÷ its GPUs",
            lambda r: r * 3600 / gpus,
            service.replica_rate,
        )
    else:
        made = sheet.derive(
            name,
            "Mtok/GPU-h",
            "rate of a replica × (input + output tokens) × 3,600 s ÷ its GPUs",
            lambda r, i, o: r * (i + o) * 3600 / gpus / 1e6,
            service.replica_rate,
            *tokens,
        )
    return Yield(plan.name, text, made, unit, tokens, draft.site)


def _trained(
    sheet: Sheet, plan: WorkloadPlan, draft: Draft, training: TrainingPlan, text: str, unit: str
) -> Yield | Unplanned:
    subject, train = f"workloads.{plan.name}.unit_cost", draft.train
    if isinstance(training.tokens_per_s, Unplanned) or train is None:
        return Unplanned(subject, "the speed of the job is unknown")
    gpus = sheet.declared(f"workloads.{plan.name}.train.gpus", train.gpus, "GPUs")
    name = f"workloads.{plan.name}.per_useful_gpu_hour"
    speed = training.tokens_per_s
    if unit == "Mtok":
        made = sheet.derive(
            name, "Mtok/GPU-h", "tokens per second ÷ GPUs × 3,600 s", lambda t, g: t / g * 3600 / 1e6, speed, gpus
        )
        return Yield(plan.name, text, made, unit, site=draft.site)
    if train.tokens is None:
        return sheet.miss(subject, "the tokens of a run are not stated", f"workloads.{plan.name}.train.tokens")
    tokens = sheet.declared(f"workloads.{plan.name}.train.tokens", train.tokens, "Mtok")
    made = sheet.derive(
        name,
        "runs/GPU-h",
        "tokens per second ÷ GPUs × 3,600 s ÷ tokens of a run",
        lambda t, g, n: t / g * 3600 / 1e6 / n,
        speed,
        gpus,
        tokens,
    )
    return Yield(plan.name, text, made, unit, site=draft.site)


def implied_utilisation(sheet: Sheet, workloads: tuple[WorkloadPlan, ...], costs: Costs) -> Figure | None:
    """Share of paid GPU time that the declared rates of all services use.

    None without services, or when one of them carries an unknown rate or none. Training is left out: how often a run is
    repeated is not in the file.
    """
    parts: list[Figure] = []
    for plan in workloads:
        service = plan.service
        if plan.kind != "inference":
            continue
        if not isinstance(service, ServicePlan) or plan.layout is None or isinstance(service.replica_rate, Unplanned):
            return None
        if not service.replica_rate.value:
            return None
        gpus = service.rate_gpus or plan.layout.gpus
        parts.append(
            sheet.derive(
                f"workloads.{plan.name}.busy_gpus",
                "GPUs",
                "rate ÷ rate of a replica × its GPUs",
                lambda r, c, n=gpus: r / c * n,
                service.rate,
                service.replica_rate,
            )
        )
    if not parts:
        return None
    return sheet.derive(
        "economics.implied_utilisation",
        "share",
        "busy GPUs of all services at their declared rate ÷ GPUs; training not counted",
        lambda h, *p: sum(p) * 730 / h,
        costs.paid_gpu_hours,
        *parts,
    )
