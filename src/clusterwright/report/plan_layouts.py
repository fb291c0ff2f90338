"""What the search says of a workload's layouts as lines of the plan: how many, which none beats, why not the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from clusterwright.lib.figures import format_amount, format_value
from clusterwright.plan.fronts import Front, Lost, Point, TrainingFront, TrainingPoint

#: Points of the front and popular layouts that are shown where not all are asked for.
_FEW: Final = 3


def layout_lines(front: Front | TrainingFront, *, full: bool = False) -> list[str]:
    """The front and the popular layouts that come closest in few lines; with `full` every layout and every why."""
    if not front.points:
        return [f"none of {front.tried:,} is possible", *_lost(front.losers, full)]
    counted = f"{front.tried:,} tried, {front.possible:,} possible; no other beats in"
    if isinstance(front, Front):
        when = " after the declared losses" if front.lost_nodes else ""
        lines = [
            f"{counted} cost and time per token{when}: {_ends([p for p in front.points if p.on_front], front.unit)}"
        ]
    else:
        lines = [f"{counted} time and memory: {_ends([p for p in front.points if p.on_front])}"]
    if front.planned_reason:
        lines.append(f"the planned one {front.planned_reason}")
    if full:
        lines += [_full(point, front.unit if isinstance(front, Front) else "") for point in front.points]
    return lines + _lost(front.losers, full)


_P = TypeVar("_P", Point, TrainingPoint)


def _ends(points: list[_P], unit: str = "") -> str:
    """The ends of a front and its middle."""
    shown: list[_P] = points if len(points) <= _FEW else [points[0], points[len(points) // 2], points[-1]]
    rest: int = len(points) - len(shown)
    return "; ".join([*(_short(point, unit) for point in shown), *([f"{rest} more"] if rest else [])])


def _short(point: Point | TrainingPoint, unit: str) -> str:
    if isinstance(point, Point):
        return f"{point.layout} {_cost(point, unit)}, {_three(point.tpot_s * 1e3)} ms"
    return f"{point.layout} {_three(point.step_s)} s, {_three(point.memory_gib)} GiB"


def _cost(point: Point, unit: str) -> str:
    return format_amount(float(f"{point.cost:.3g}"), unit.removesuffix(" output"))


def _three(value: float) -> str:
    return format_value(float(f"{value:.3g}"))


def _full(point: Point | TrainingPoint, unit: str) -> str:
    roles = {"best": point.best, "planned": point.planned, "not beaten in both": point.on_front}
    text = _short(point, unit)
    if isinstance(point, Point):
        each = point.gpus // point.replicas
        text += f", TTFT {_three(point.ttft_s)} s, {point.replicas} × {each} GPU{'s' * (each != 1)}"
    said = ", ".join(role for role, is_one in roles.items() if is_one)
    return f"{text} ({said})" if said else text


def _lost(losers: Sequence[Lost], full: bool) -> list[str]:
    """Popular layouts that lost, those that are possible first."""
    if full:
        return [f"not {lost.layout} ({lost.name}): {lost.reason}" for lost in losers]
    nearest = sorted(losers, key=lambda lost: not lost.possible)[:_FEW]
    return [f"not {'; not '.join(f'{lost.layout}: {lost.reason}' for lost in nearest)}"] if nearest else []
