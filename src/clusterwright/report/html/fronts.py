"""Layouts of each service as points, cost against time per token, and why the popular ones are not the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.lib.figures import format_amount, format_value
from clusterwright.plan.fronts import Front, Point, TrainingFront, TrainingPoint
from clusterwright.report.html.axes import Axis, axis_of
from clusterwright.report.html.drawing import LETTER, Area, line, overlap, picture, words
from clusterwright.report.html.elements import Child, Html, fold, h, markup, table

#: Pixels of the drawing for a desk and for a phone.
_WIDTHS: Final = {"wide": 680.0, "narrow": 340.0}
_HEIGHT: Final = 300.0
_LEFT: Final = 44.0
_RIGHT: Final = 16.0
_TOP: Final = 26.0
_BOTTOM: Final = 44.0
_LABEL: Final = 11
_MOST_ROWS: Final = 40


def render_fronts(fronts: Sequence[Front | TrainingFront]) -> Html:
    """A drawing per service, a table per job, and the reasons of layouts that lost; "" without any."""
    shown = [front for front in fronts if front.points or front.losers]
    return markup(
        _front(front, f"front{i}") if isinstance(front, Front) else _job(front) for i, front in enumerate(shown)
    )


def _job(front: TrainingFront) -> Html:
    planned = f" Of the planned layout it says: {front.planned_reason}." if front.planned_reason else ""
    return markup(
        h("h3", f"Layouts of {front.workload}"),
        h(
            "p",
            f"The search judged {front.tried:,} layouts at the declared batch and recomputation "
            f"({front.calibrated_on}); {front.possible:,} are possible.{planned}",
            cls="small",
        ),
        table(
            ("Layout", "Step", "Memory", ""),
            (
                (
                    point.layout,
                    f"{format_value(point.step_s)} s",
                    f"{format_value(point.memory_gib)} GiB",
                    _roles(point),
                )
                for point in front.points[:_MOST_ROWS]
            ),
            caption=f"Fastest layouts of {front.workload}",
            numeric=(1, 2),
            cls="stack",
        )
        if front.points
        else None,
        _losers(front),
    )


def _roles(point: Point | TrainingPoint) -> str:
    roles = {"planned": point.planned, "best": point.best, "not beaten in both": point.on_front}
    return ", ".join(word for word, is_one in roles.items() if is_one)


def _losers(front: Front | TrainingFront) -> Html | None:
    if not front.losers:
        return None
    return table(
        ("Popular layout", "Ranks", "Why not"),
        ((lost.name, lost.layout, lost.reason) for lost in front.losers),
        caption=f"Popular layouts of {front.workload} that are not the best",
        cls="stack",
    )


def _front(front: Front, key: str) -> Html:
    return markup(
        h("h3", f"Layouts of {front.workload}"),
        h("p", _said(front), cls="small"),
        _drawing(front, key) if front.points else None,
        fold(
            ("The same as a table ", h("span", f"{len(front.points)} possible layouts", cls="soft")),
            _points(front),
            cls="fold",
        )
        if front.points
        else None,
        _losers(front),
    )


def _said(front: Front) -> str:
    constants = f"constants {front.calibrated_on}" if front.calibrated_on else "constants that nobody measured"
    planned = f" Of the planned layout it says: {front.planned_reason}." if front.planned_reason else ""
    losses = " Costs count spares for the declared losses, times are those after them." if front.lost_nodes else ""
    return (
        f"The search judged {front.tried:,} layouts at the declared load, lengths and targets ({constants}); "
        f"{len(front.points)} are possible.{losses}{planned}"
    )


def _drawing(front: Front, key: str) -> Html:
    legend = h(
        "ul",
        h("li", _mark("k1", 5), " no other layout beats it in both"),
        h("li", _mark("k0", 4), " another one does"),
        h("li", _mark("ring", 5), " the planned layout"),
        cls="legend",
    )
    drawn = (_picture(front, f"{key}-{cls}", width, cls) for cls, width in _WIDTHS.items())
    return markup(legend, h("figure", *drawn))


def _picture(front: Front, key: str, width: float, cls: str) -> Html:
    times = [point.tpot_s * 1e3 for point in front.points]
    target = None if front.tpot_target_s is None else front.tpot_target_s * 1e3
    x = axis_of([point.cost for point in front.points], _LEFT, width - _RIGHT)
    y = axis_of([*times, *([target] if target is not None else [])], _HEIGHT - _BOTTOM, _TOP)
    shapes: list[Child] = [*_grid(x, y, front.unit)]
    if target is not None:
        level = y.at(target)
        shapes += [line(_LEFT, level, x.end, level, "limit", width=2)]
        shapes += [words(x.end, level - 5, f"target {format_value(target)} ms", "s11 end")]
    shapes.append(_staircase(front, x, y))
    shapes += [_dot(point, x, y, front.unit) for point in sorted(front.points, key=lambda p: (p.on_front, p.planned))]
    shapes += _labels(front.points, x, y)
    return picture(
        width, _HEIGHT, *shapes, title=f"Layouts of {front.workload}: cost against time per token",
        description="Left and low is better. Joined points are those that no other layout beats in both; the table "
        "below says the same in numbers.",
        cls=cls, id_=key,
    )  # fmt: skip


def _staircase(front: Front, x: Axis, y: Axis) -> Html:
    """The line below which no layout lies: nothing between two layouts can be had."""
    best = sorted((point for point in front.points if point.on_front), key=lambda p: p.cost)
    corners: list[tuple[float, float]] = []
    for point in best:
        at = (x.at(point.cost), y.at(point.tpot_s * 1e3))
        if corners:
            corners.append((at[0], corners[-1][1]))
        corners.append(at)
    return h("polyline", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in corners), cls="wire", stroke_width=1.5)


def _mark(cls: str, radius: float) -> Html:
    return h("svg", h("circle", cx=6, cy=6, r=radius, cls=cls), width=12, height=12, aria_hidden="true")


def _grid(x: Axis, y: Axis, unit: str) -> list[Html]:
    shapes = []
    for mark in x.marks():
        at = x.at(mark)
        shapes += [
            line(at, _TOP, at, _HEIGHT - _BOTTOM, "tick"),
            words(at, _HEIGHT - _BOTTOM + 15, _amount(mark, unit), "s11 mid"),
        ]
    for mark in y.marks():
        at = y.at(mark)
        shapes += [
            line(_LEFT, at, x.end, at, "tick"),
            words(_LEFT - 6, at + 4, format_value(mark), "s11 end"),
        ]
    shapes.append(
        words((x.start + x.end) / 2, _HEIGHT - 8, f"cost, {unit}{' (log)' if x.logarithmic else ''}", "s12 mid")
    )
    shapes.append(words(4, 14, f"time per output token, ms{' (log)' if y.logarithmic else ''}", "s12"))
    return shapes


def _amount(value: float, unit: str) -> str:
    return format_amount(value, unit.partition("/")[0]) if unit[:1] in "$€£" else format_value(value)


def _dot(point: Point, x: Axis, y: Axis, unit: str) -> Html:
    at_x, at_y = x.at(point.cost), y.at(point.tpot_s * 1e3)
    dot = h(
        "circle",
        h("title", f"{point.layout}: {_numbers(point, unit)}"),
        cx=at_x, cy=at_y, r=5 if point.on_front else 4, cls="k1 gap" if point.on_front else "k0 gap",
    )  # fmt: skip
    ring = h("circle", cx=at_x, cy=at_y, r=8.5, cls="ring") if point.planned else None
    return markup(ring, dot)


def _numbers(point: Point, unit: str) -> str:
    return (
        f"{format_amount(point.cost, unit)}, {format_value(point.tpot_s * 1e3)} ms per token, TTFT "
        f"{format_value(point.ttft_s)} s, {point.replicas} replicas on {point.gpus} GPUs"
    )


def _labels(points: Sequence[Point], x: Axis, y: Axis) -> list[Html]:
    """Names of the best and the planned layouts where they cover no other name."""
    taken: list[Area] = []
    shapes = []
    named = [point for point in points if point.on_front or point.planned or point.best]
    for point in sorted(named, key=lambda p: (not p.planned, not p.best, p.cost)):
        roles = [role for role, is_one in (("plan", point.planned), ("best", point.best)) if is_one]
        said = f"{point.layout} ({', '.join(roles)})" if roles else point.layout
        wide = len(said) * _LABEL * LETTER
        at_x, at_y = x.at(point.cost), y.at(point.tpot_s * 1e3)
        right = at_x + 12 + wide <= x.end + _RIGHT - 2
        left = at_x + 12 if right else at_x - 12 - wide
        for shift in (-8.0, 16.0, -20.0, 28.0, -32.0):
            area = (left, at_y + shift - 10, left + wide, at_y + shift + 2)
            if not any(overlap(area, other) for other in taken):
                taken.append(area)
                anchor = at_x + 12 if right else at_x - 12
                shapes.append(words(anchor, at_y + shift, said, "s11" if right else "s11 end"))
                break
    return shapes


def _points(front: Front) -> Html:
    shown = front.points[:_MOST_ROWS]
    rows = (
        (
            point.layout,
            format_amount(point.cost, front.unit),
            f"{format_value(point.tpot_s * 1e3)} ms",
            f"{format_value(point.ttft_s)} s",
            point.replicas,
            point.gpus,
            _roles(point),
        )
        for point in shown
    )  # fmt: skip
    rest = len(front.points) - len(shown)
    return markup(
        table(
            ("Layout", "Cost", "Per token", "TTFT", "Replicas", "GPUs", ""),
            rows,
            caption=f"Possible layouts of {front.workload}, cheapest first",
            numeric=(1, 2, 3, 4, 5),
            cls="stack",
        ),
        h("p", f"and {rest} more, none of them cheaper", cls="small") if rest > 0 else None,
    )
