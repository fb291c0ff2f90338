"""Layouts that a workload could have on its pool: the fronts, the best ones, and why not the others.

Every layout is judged by the search under the file's own load, lengths, targets and settings, the planned one among
them. What is kept here compares layouts with each other; the plan's own figures carry the derivations.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.model.workloads import Goal


@dataclass(frozen=True, slots=True)
class Point:
    """One possible layout of a service.

    Args:
        layout: as the file says it. gpus: of all replicas; replicas: with those that may be lost.
        cost: in the front's unit. tpot_s, ttft_s: at the declared load.
        on_front: no other layout is at least as good in cost and time per token and better in one.
        best: the search's choice. planned: the layout of the plan.
    """

    layout: str
    replicas: int
    gpus: int
    cost: float
    tpot_s: float
    ttft_s: float
    on_front: bool
    best: bool
    planned: bool


@dataclass(frozen=True, slots=True)
class TrainingPoint:
    """One possible layout of a job: seconds of a step and GiB of its fullest GPU; the rest as of a `Point`."""

    layout: str
    step_s: float
    memory_gib: float
    on_front: bool
    best: bool
    planned: bool


@dataclass(frozen=True, slots=True)
class Lost:
    """A layout that people try first and that is not the best, with the reason in numbers; whether it is possible."""

    name: str
    layout: str
    reason: str
    possible: bool = False


@dataclass(frozen=True, slots=True)
class Front:
    """The layouts of a service.

    Args:
        goal: what they are ranked by.
        unit: of the costs: money, or GPU-hours where no price is known, per million output tokens.
        points: possible layouts, cheapest first. tried, possible: how many.
        losers: popular layouts. planned_reason: what is said of the planned layout, "" where it is the best.
        tpot_target_s: None without one.
        calibrated_on: where the constants of times come from.
        lost_nodes: after the loss of how many the replicas carry the load in these times.
    """

    workload: str
    goal: Goal
    unit: str
    points: tuple[Point, ...]
    tried: int
    possible: int
    losers: tuple[Lost, ...]
    planned_reason: str
    tpot_target_s: float | None
    calibrated_on: str
    lost_nodes: int = 0


@dataclass(frozen=True, slots=True)
class TrainingFront:
    """The layouts of a job; `points` are the fastest and those that no other beats, the rest as of a `Front`."""

    workload: str
    goal: Goal
    points: tuple[TrainingPoint, ...]
    tried: int
    possible: int
    losers: tuple[Lost, ...]
    planned_reason: str
    calibrated_on: str
