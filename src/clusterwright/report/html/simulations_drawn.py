"""Drawings of simulated futures: nodes over time, curves of queue times, plots of a sweep."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from clusterwright.ledger.lines import Line
from clusterwright.ledger.ratios import allocated_share, goodput_share
from clusterwright.lib.scales import DAY_S
from clusterwright.report.html.drawing import line, picture, words
from clusterwright.report.html.elements import Html, fold, h, markup, table
from clusterwright.report.html.simulations_style import filled, mark_of, patterns
from clusterwright.report.replications import (
    CURVE,
    Estimate,
    Picture,
    Simulated,
    estimate_level,
    estimate_of,
    group_names,
)
from clusterwright.report.simulations import cost_per_hour, span

_LEFT: Final = 150.0
_WIDTH: Final = 880.0
_MOST_CURVES: Final = 8
#: Part of a cell from which on a line that went wrong is shown in it.
_PART: Final = 0.05
_WRONG: Final = frozenset(
    x.value
    for x in (Line.UNHEALTHY, Line.DRAINED, Line.LOST, Line.FAILED, Line.PREEMPTED, Line.HELD_IDLE, Line.UNKNOWN)
)
#: Marks of a logarithmic axis of times, s.
_MARKS_S: Final = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0)
_NAMES: Final = ("1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d", "7 d", "30 d")


# -- nodes over time --------------------------------------------------------------------------------------------------


def render_picture(found: Picture, seed: int, key: str) -> Html:
    """Rows of nodes by domain, columns of time, each cell in the colour of the line that held most of it."""
    key = f"map{key}"
    row_px = max(5.0, min(20.0, 620.0 / max(1, len(found.rows))))
    columns = max((len(cells) for cells in found.cells), default=1)
    cell_px = _WIDTH / max(1, columns)
    shapes: list[Html] = [patterns(key)]
    y, domain, labelled = 14.0, None, 0.0
    for (above, name, count), cells in zip(found.rows, found.cells, strict=True):
        if above != domain:
            y += 16.0
            shapes.append(words(0, y - 4, above, "s11 t-bold", room=_LEFT + _WIDTH))
            domain = above
        if y - labelled >= 10:
            shapes.append(words(_LEFT - 6, y + row_px - 1, _short(name, count), "s10 end", room=140))
            labelled = y
        shapes += _row(cells, found, (y, row_px, cell_px), name, key)
        y += row_px
    shapes += _time_axis(found, y)
    drawn = picture(
        _LEFT + _WIDTH + 8, y + 30, *shapes, title="What every node did over time",
        description="Rows are nodes, grouped by domain, columns are time; the table below says the same in numbers.",
        cls="", id_=key,
    )  # fmt: skip
    present = [x for x in Line if any(x.value == part for row in found.cells for cell in row for part, _ in cell)]
    legend = h("ul", (h("li", mark_of(x.value), " ", x.value) for x in present), cls="legend")
    caption = (
        f"future of seed {seed}; a cell is {span(found.column_s)} and shows the line that took most of its GPU time, "
        "with a strip for what went wrong in a part of it; point at one for all. GPUs of a gang are drawn evenly "
        "over its nodes."
    )
    return markup(
        legend,
        h("figure", drawn, cls="scroll", tabindex=0, role="region", aria_label="Nodes over time"),
        h("p", caption, cls="small soft"),
        fold("The same as a table: share of each row's GPU time", _row_table(found, present)),
    )


def _row(
    cells: Sequence[tuple[tuple[str, float], ...]], found: Picture, at: tuple[float, float, float], name: str, key: str
) -> list[Html]:
    """Runs of cells with the same lines as one shape; what went wrong in a part of them as a strip in it."""
    y, row_px, cell_px = at
    shapes, column = list[Html](), 0
    for (first, wrong), run in groupby(cells, key=_signs):
        group = list(run)
        x, width = _LEFT + column * cell_px, cell_px * len(group)
        if first:
            sums = _sums(group)
            total = sum(sums.values())
            since, until = column * found.column_s, min((column + len(group)) * found.column_s, found.end_s)
            parts = ", ".join(f"{p} {100 * s / total:.0f} %" for p, s in sums.items() if s > 0.005 * total)
            tip = f"{name}, day {since / DAY_S:.2f} to {until / DAY_S:.2f}: {parts}"
            shapes.append(filled(x, y, width, row_px - 1, first, key, tip))
            if wrong:
                high = min(row_px - 1, max(2.0, (row_px - 1) * sums[wrong] / total))
                shapes.append(filled(x, y + row_px - 1 - high, width, high, wrong, key, tip))
        column += len(group)
    return shapes


def _signs(cell: tuple[tuple[str, float], ...]) -> tuple[str, str]:
    """The line of most of a cell, and the largest other one that went wrong in at least a twentieth of it."""
    if not cell:
        return "", ""
    least = _PART * sum(seconds for _, seconds in cell)
    wrong = next((part for part, seconds in cell[1:] if part in _WRONG and seconds >= least), "")
    return cell[0][0], wrong


def _sums(cells: Sequence[tuple[tuple[str, float], ...]]) -> dict[str, float]:
    """GPU-seconds by line, largest first."""
    sums: dict[str, float] = {}
    for cell in cells:
        for part, seconds in cell:
            sums[part] = sums.get(part, 0.0) + seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _time_axis(found: Picture, y: float) -> list[Html]:
    days = found.end_s / DAY_S
    step = next((s for s in (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 90, 365) if days / s <= 12), 3650)
    columns = max((len(cells) for cells in found.cells), default=1)
    scale = _WIDTH / max(1e-9, columns * found.column_s / DAY_S)
    shapes = [line(_LEFT, y + 2, _LEFT + _WIDTH, y + 2, "axis")]
    for number in range(int(days / step + 1e-9) + 1):
        x = _LEFT + number * step * scale
        if x <= _LEFT + _WIDTH + 1:
            shapes += [line(x, y + 2, x, y + 6, "axis"), words(x, y + 18, f"{number * step:g}", "s11 mid")]
    return [*shapes, words(_LEFT - 6, y + 18, "day", "s11 end")]


def _short(name: str, count: int) -> str:
    return name if count == 1 else f"{name.partition(' … ')[0]} +{count - 1}"


def _named(name: str, count: int) -> str:
    return name if count == 1 else f"{name} ({count})"


def _row_table(found: Picture, present: Sequence[Line]) -> Html:
    rows = []
    for (domain, name, count), cells in zip(found.rows, found.cells, strict=True):
        sums = {x.value: 0.0 for x in present}
        for cell in cells:
            for part, seconds in cell:
                sums[part] += seconds
        total = sum(sums.values())
        shares = (f"{100 * sums[x.value] / total:.1f} %" if total else "-" for x in present)
        rows.append((_named(name, count), domain, *shares))
    heads = ("nodes", "domain", *(x.value for x in present))
    return table(heads, rows, caption="share of the GPU time of each row", numeric=range(2, 2 + len(present)))


# -- curves -----------------------------------------------------------------------------------------------------------


def render_curves(found: Simulated) -> Html:
    """Share of the jobs that started within a time, by size."""
    names = group_names(found.replications, "size")[:_MOST_CURVES]
    curves = [(f"{name} GPUs", _curve(found, name)) for name in names]
    curves = [(name, points) for name, points in curves if points]
    if not curves:
        return Html("")
    width, height, left, top = 760.0, 260.0, 56.0, 10.0
    most_s = max(10.0, *(points[-1] for _, points in curves))

    def x_of(seconds: float) -> float:
        return left + (width - left - 20) * math.log10(max(1.0, seconds)) / math.log10(max(10.0, most_s))

    shapes = []
    for percent in (0, 25, 50, 75, 100):
        y = top + (height - top) * (1 - percent / 100)
        shapes += [line(left, y, width - 20, y, "grid"), words(left - 6, y + 4, f"{percent} %", "s11 end")]
    for mark, name in zip(_MARKS_S, _NAMES, strict=True):
        if mark <= most_s:
            x = x_of(mark)
            shapes += [line(x, top, x, height, "grid"), words(x, height + 16, name, "s11 mid")]
    for number, (_, points) in enumerate(curves):
        path = " ".join(
            f"{x_of(s):.1f},{top + (height - top) * (1 - share):.1f}" for share, s in zip(CURVE, points, strict=True)
        )
        shapes.append(h("polyline", points=path, cls=f"curve s{number}"))
    drawn = picture(
        width, height + 26, *shapes, title="Share of jobs that started within a time",
        description="One curve for each size of jobs; the table above gives the quantiles.", cls="", id_="curves",
    )  # fmt: skip
    legend = h("ul", (h("li", _stroke(number), name) for number, (name, _) in enumerate(curves)), cls="legend")
    caption = "share of jobs that had started within a time (logarithmic), by size, mean of the futures"
    figure = h("figure", drawn, cls="scroll", tabindex=0, role="region", aria_label=caption)
    return markup(figure, legend, h("p", caption, cls="small soft"))


def _curve(found: Simulated, name: str) -> list[float]:
    curves = [g.curve_s for r in found.replications if (g := r.group("size", name)) is not None and g.curve_s]
    return [sum(values) / len(values) for values in zip(*curves, strict=True)]


def _stroke(number: int) -> Html:
    return h("svg", line(0, 6, 12, 6, f"curve s{number}", width=3), width=12, height=12, aria_hidden="true")


# -- a sweep ----------------------------------------------------------------------------------------------------------


def render_sweep_plots(path: str, found: Sequence[Simulated]) -> Html:
    """A plot each of queue time, use and cost over the values of a parameter."""
    labels = [one.label.partition("=")[2] for one in found]

    def wait(one: Simulated) -> Estimate | None:
        hours = estimate_level(one.replications, "all", "", "wait_s", "p95")
        return (
            None if hours is None else Estimate(hours.value / 3600, None if hours.half is None else hours.half / 3600)
        )

    def percent(read: Callable[[Simulated], Estimate | None]) -> list[Estimate | None]:
        return [
            None if (e := read(one)) is None else Estimate(100 * e.value, None if e.half is None else 100 * e.half)
            for one in found
        ]

    plots = [
        ("p95 queue time, h", [[wait(one) for one in found]], ()),
        (
            "use of installed GPU time, %",
            [
                percent(lambda one: estimate_of(one.replications, lambda r: goodput_share(r.lines))),
                percent(lambda one: estimate_of(one.replications, lambda r: allocated_share(r.lines))),
            ],
            ("useful", "allocated"),
        ),
        ("cost per successful GPU-h", [[cost_per_hour(one) for one in found]], ()),
    ]
    drawn = [
        _plot(title, path, labels, series, names, f"sweep{number}")
        for number, (title, series, names) in enumerate(plots)
        if any(e is not None for s in series for e in s)
    ]
    return h("div", drawn, cls="plots")


def _plot(
    title: str,
    path: str,
    labels: Sequence[str],
    series: Sequence[Sequence[Estimate | None]],
    names: Sequence[str],
    key: str,
) -> Html:
    width, height, left, top = 330.0, 220.0, 46.0, 12.0
    tops = [e.value + (e.half or 0.0) for s in series for e in s if e is not None]
    most = _round_up(max(tops, default=1.0))

    def x_of(place: int) -> float:
        return left + 14 + (width - left - 30) * (place / max(1, len(labels) - 1))

    def y_of(value: float) -> float:
        return top + (height - top) * (1 - min(1.0, max(0.0, value / most)))

    shapes = []
    for quarter in range(5):
        value = most * quarter / 4
        shapes += [
            line(left, y_of(value), width - 6, y_of(value), "grid"),
            words(left - 5, y_of(value) + 4, f"{value:.3g}", "s11 end"),
        ]
    every = max(1, -(-len(labels) // 6))
    shapes += [words(x_of(n), height + 16, label[:9], "s11 mid") for n, label in enumerate(labels) if n % every == 0]
    for number, values in enumerate(series):
        known = [(x_of(n), e) for n, e in enumerate(values) if e is not None]
        shapes.append(
            h("polyline", points=" ".join(f"{x:.1f},{y_of(e.value):.1f}" for x, e in known), cls=f"curve s{number}")
        )
        for x, e in known:
            if e.half:
                shapes.append(line(x, y_of(e.value - e.half), x, y_of(e.value + e.half), "whisker"))
            shapes.append(
                h("circle", h("title", f"{e.value:.4g}"), cx=x, cy=y_of(e.value), r=3, cls=f"curve s{number}")
            )
    drawn = picture(
        width, height + 24, *shapes, title=f"{title} over {path}", description="The table below gives the numbers.",
        cls="", id_=key,
    )  # fmt: skip
    legend = h("ul", (h("li", _stroke(n), name) for n, name in enumerate(names)), cls="legend") if names else None
    return h("figure", h("figcaption", title), drawn, legend)


def _round_up(value: float) -> float:
    """The next 1, 2, 2.5 or 5 of a power of ten."""
    if not 0 < value < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= value * 0.999)
