"""A disaggregated service at its load: TTFT over prefill, handover and decode, TPOT, money, latency by concurrency."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterwright.lib.figures import Figure
from clusterwright.plan.choosing import Kind
from clusterwright.plan.collectives import fabric_rate, nic_rate
from clusterwright.plan.drafts import Draft
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import LoadCurve, SplitPlan, WorkersPlan
from clusterwright.plan.service_costs import gpu_hour
from clusterwright.plan.services import Load
from clusterwright.plan.serving_curves import load_curve
from clusterwright.plan.starting import Half, started


@dataclass(frozen=True)
class SplitAtLoad:
    """What a split is and does.

    Args:
        ttft (s), tpot (ms): at the load, at their targets' percentiles. in_flight: requests per decode worker.
        capacity: req/s that all placed workers carry.
        rate_gpus: of a decode worker and its share of prefill workers.
    """

    split: SplitPlan
    capacity: Figure
    ttft: Figure
    tpot: Figure
    in_flight: Figure
    curve: LoadCurve
    rate_gpus: float


def split_at_load(sheet: Sheet, draft: Draft, placed: tuple[int, int]) -> SplitAtLoad | Unplanned:
    """The split with so many (prefill, decode) workers that have a place."""
    first, name = draft.first, draft.name
    if first is None or draft.handover is None or not (isinstance(draft.load, Load) and isinstance(first.load, Load)):
        return Unplanned(f"workloads.{name}.service", "the speed of prefill and decode workers is unknown")
    prefill, decode = _workers(sheet, first, placed[0], "prefill"), _workers(sheet, draft, placed[1], "decode")
    if prefill is None or decode is None:
        return Unplanned(f"workloads.{name}.service", "the layout of prefill and decode workers is unknown")
    halves = (prefill, decode)
    counts = tuple(
        sheet.planned(f"workloads.{group.name}.service.placed", max(1, n), "workers", "workers that this plan places")
        for group, n in zip((first, draft), placed, strict=True)
    )
    capacity = sheet.derive(
        f"workloads.{name}.service.capacity",
        "req/s",
        "smaller of prefill and decode workers × rate of each",
        lambda p, d, n, m: min(p * n, d * m) if all(placed) else 0.0,
        halves[0].rate, halves[1].rate, *counts,
    )  # fmt: skip
    share = halves[1].rate.value / halves[0].rate.value if halves[0].rate.value else 0.0
    return SplitAtLoad(
        split=_money(sheet, draft, halves[0], halves[1], draft.handover),
        capacity=capacity,
        ttft=_ttft(sheet, draft, first.load, draft.load, counts, draft.handover),
        tpot=_tpot(sheet, draft, draft.load, counts[1]),
        in_flight=_in_flight(sheet, name, draft.load, counts[1]),
        curve=_curve(sheet, draft, first.load, draft.load, halves),
        rate_gpus=halves[1].layout.gpus + halves[0].layout.gpus * share,
    )


def _workers(sheet: Sheet, draft: Draft, placed: int, half: Half) -> WorkersPlan | None:
    if draft.layout is None or not isinstance(draft.rate, Figure):
        return None
    memory = started(sheet, draft, half)
    return WorkersPlan(draft.layout, memory, draft.rate, draft.needed, draft.wanted, placed)


def _tpot(sheet: Sheet, draft: Draft, load: Load, count: Figure) -> Figure:
    label = load.step[0] if load.step else "mean"

    def step(*values: float) -> float:
        loop = load.build(*values[:-2])
        return float(loop.met(loop.decoding_at(values[-2] / values[-1])).tpot_s[0]) * 1e3

    found = sheet.derive(
        f"workloads.{draft.name}.service.tpot",
        "ms",
        f"step of a decode worker with so many sequences ({label}), no prompt beside it; {load.said}",
        step,
        *load.inputs,
        load.rate,
        count,
        band=load.bands.get("tpot"),
    )
    return sheet.picked(Kind.TIME, found.name, found, nodes=len(draft.site.nodes) if draft.site else 1)


def _in_flight(sheet: Sheet, name: str, load: Load, count: Figure) -> Figure:
    return sheet.derive(
        f"workloads.{name}.service.in_flight",
        "requests",
        "sequences that decode on a worker at the load (Little's law)",
        lambda *v: load.build(*v[:-2]).decoding_at(v[-2] / v[-1]),
        *load.inputs,
        load.rate,
        count,
    )


def _ttft(
    sheet: Sheet, draft: Draft, prefill: Load, decode: Load, counts: tuple[Figure, ...], handover: Figure
) -> Figure:
    label = prefill.first[0] if prefill.first else "mean"
    step = sheet.derive(
        f"workloads.{draft.name}.service.step_at_load",
        "ms",
        "mean step of a decode worker at the load",
        lambda *v: float(
            (loop := decode.build(*v[:-2])).met(loop.decoding_at(v[-2] / v[-1])).tpot_mean_s[0] * 1e3
        ),
        *decode.inputs, decode.rate, counts[1],
    )  # fmt: skip
    found = sheet.derive(
        f"workloads.{draft.name}.service.ttft",
        "s",
        f"wait as M/G/1 + own prefill + handover + half a decode step ({label}); {prefill.said}",
        lambda *v: prefill.build(*v[:-4]).first_handed(v[-4] / v[-3], v[-2] / 1e3, v[-1]),
        *prefill.inputs, prefill.rate, counts[0], step, handover, band=prefill.bands.get("ttft"),
    )  # fmt: skip
    return sheet.picked(Kind.TIME, found.name, found, nodes=len(draft.site.nodes) if draft.site else 1)


def _money(sheet: Sheet, draft: Draft, prefill: WorkersPlan, decode: WorkersPlan, handover: Figure) -> SplitPlan:
    gpus = sum(half.wanted * half.layout.gpus for half in (prefill, decode))
    plan = SplitPlan(prefill, decode, handover, gpus)
    price = gpu_hour(sheet, draft.site) if draft.site else None
    if price is None or not isinstance(draft.load, Load):
        return plan
    money = price.unit.removesuffix("/GPU-h")
    prefix = f"workloads.{draft.name}.service"
    count = sheet.planned(f"{prefix}.split_gpus", gpus, "GPUs", "GPUs of all prefill and decode workers")
    per_h = sheet.derive(f"{prefix}.split_per_h", f"{money}/h", "GPUs × price", lambda n, p: n * p, count, price)
    per_mtok = sheet.derive(
        f"{prefix}.split_per_mtok",
        f"{money}/Mtok",
        "per hour ÷ output tokens of the declared rate",
        lambda p, r, o: p / (r * o * 3600 / 1e6),
        per_h, draft.load.rate, draft.load.output,
    )  # fmt: skip
    return replace(plan, per_h=per_h, per_mtok=per_mtok)


def _curve(sheet: Sheet, draft: Draft, prefill: Load, decode: Load, halves: tuple[WorkersPlan, ...]) -> LoadCurve:
    worker, first = decode.replica, prefill.replica
    nic = None if draft.site is None else nic_rate(sheet, draft.site)
    assert isinstance(nic, Figure)
    assert draft.site is not None
    through, _ = fabric_rate(sheet, draft.site, nic)
    setting = replace(
        worker.setting,
        first=first.worker,
        prefill_workers=halves[0].wanted,
        decode_workers=halves[1].wanted,
        token_s=worker.worker.hand_bytes / (through.value * 1e9),
    )
    targets = tuple(None if t is None else t[1].value for t in (decode.first, decode.step))
    gpus = sum(half.wanted * half.layout.gpus for half in halves)
    return load_curve(setting, int(worker.room) * halves[1].wanted, targets, gpus, decode.said)
