"""Latency against concurrency as a drawing and a table: time to first token, and time per token after it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from clusterwright.lib.figures import format_value
from clusterwright.plan.results.services import LoadCurve, LoadPoint
from clusterwright.report.html.axes import Axis, axis_of
from clusterwright.report.html.drawing import line, picture, words
from clusterwright.report.html.elements import Child, Html, fold, h, markup, table

#: Pixels of the drawing for a desk and for a phone.
_WIDTHS: Final = {"wide": 680.0, "narrow": 340.0}
_HEIGHT: Final = 220.0
_LEFT: Final = 48.0
_RIGHT: Final = 16.0
_TOP: Final = 26.0
_BOTTOM: Final = 44.0

_Value = Callable[[LoadPoint], float]


def render_curve(curve: LoadCurve, title: str, key: str) -> Html:
    """The drawing of both times with their table; only the table where a point has no finite time."""
    finite = [p for p in curve.points if math.isfinite(p.ttft_s) and math.isfinite(p.tpot_s)]
    drawn = len(finite) > 1
    return markup(
        h("h4", title),
        h("p", _said(curve), cls="small"),
        _drawn(finite, curve, "time to first token, s", lambda p: p.ttft_s, f"{key}-first") if drawn else None,
        _drawn(finite, curve, "time per output token, ms", lambda p: p.tpot_s * 1e3, f"{key}-each") if drawn else None,
        fold(("The same as a table ", h("span", f"{len(curve.points)} points", cls="soft")), _rows(curve), cls="fold"),
    )


def _said(curve: LoadCurve) -> str:
    gpus = f"{curve.gpus} GPU{'s' * (curve.gpus != 1)}"
    within = {
        None: "No latency target is declared.",
        0: "One request alone misses the targets in the mean.",
    }.get(curve.within, f"{curve.within} in flight are the most that keep the targets in the mean.")
    return f"Means with a fixed number of requests in flight on {gpus}, as benchmarks measure. {within} {curve.basis}."


def _drawn(points: list[LoadPoint], curve: LoadCurve, what: str, value: _Value, key: str) -> Html:
    return h("figure", *(_picture(points, curve, what, value, f"{key}-{cls}", w, cls) for cls, w in _WIDTHS.items()))


def _picture(
    points: list[LoadPoint], curve: LoadCurve, what: str, value: _Value, key: str, width: float, cls: str
) -> Html:
    x = axis_of([p.concurrency for p in points], _LEFT, width - _RIGHT)
    y = axis_of([value(p) for p in points], _HEIGHT - _BOTTOM, _TOP)
    way = " ".join(f"{x.at(p.concurrency):.1f},{y.at(value(p)):.1f}" for p in points)
    shapes: list[Child] = [*_grid(x, y, what), h("polyline", points=way, cls="wire", stroke_width=1.5)]
    shapes += [
        h(
            "circle",
            h("title", f"{format_value(p.concurrency)} in flight: {format_value(value(p))}"),
            cx=x.at(p.concurrency), cy=y.at(value(p)), r=6 if p.concurrency == curve.within else 4,
            cls="k1 gap" if p.concurrency == curve.within else "k0 gap",
        )
        for p in points
    ]  # fmt: skip
    return picture(
        width, _HEIGHT, *shapes, title=f"{what} against requests in flight",
        description="Lower is better; the table below says the same in numbers.", cls=cls, id_=key,
    )  # fmt: skip


def _grid(x: Axis, y: Axis, what: str) -> list[Html]:
    shapes = []
    for mark in x.marks():
        shapes += [
            line(x.at(mark), _TOP, x.at(mark), _HEIGHT - _BOTTOM, "tick"),
            words(x.at(mark), _HEIGHT - _BOTTOM + 15, format_value(mark), "s11 mid"),
        ]
    for mark in y.marks():
        shapes += [
            line(_LEFT, y.at(mark), x.end, y.at(mark), "tick"),
            words(_LEFT - 6, y.at(mark) + 4, format_value(mark), "s11 end"),
        ]
    shapes.append(words((x.start + x.end) / 2, _HEIGHT - 8, f"requests in flight{_log(x)}", "s12 mid"))
    return [*shapes, words(4, 14, f"{what}{_log(y)}", "s12")]


def _log(axis: Axis) -> str:
    return " (log)" if axis.logarithmic else ""


def _rows(curve: LoadCurve) -> Html:
    return table(
        ("In flight", "TTFT", "TPOT", "Requests", ""),
        (
            (
                format_value(p.concurrency),
                f"{format_value(p.ttft_s)} s",
                f"{format_value(p.tpot_s * 1e3)} ms",
                f"{format_value(p.requests_s)} req/s",
                "last within the targets" if p.concurrency == curve.within else "",
            )
            for p in curve.points
        ),
        caption="Latency against requests in flight",
        cls="stack",
    )
