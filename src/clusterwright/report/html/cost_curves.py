"""Cost of a unit against the useful share of paid time as a drawing: here, elsewhere, and where both are the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from clusterwright.lib.figures import format_amount
from clusterwright.plan.cost_curves import CostCurve, CostLine, cost_curve
from clusterwright.plan.results.money import EconomicsPlan, UnitCost
from clusterwright.report.html.axes import Axis, axis_of
from clusterwright.report.html.drawing import LETTER, Area, line, overlap, picture, words
from clusterwright.report.html.elements import Child, Html, fold, h, markup, table

#: Pixels of the drawing for a desk and for a phone.
_WIDTHS: Final = {"wide": 680.0, "narrow": 340.0}
_HEIGHT: Final = 320.0
_LEFT: Final = 52.0
_RIGHT: Final = 26.0
_TOP: Final = 40.0
_BOTTOM: Final = 44.0
#: Pieces of a line that is bent.
_STEPS: Final = 24
#: Between letters at the ends of lines, and dashes by which lines differ where colours do not: none for ours.
_APART: Final = 13.0
_DASHES: Final = ("7 3", "2 3", "10 3 2 3", "4 4", "12 4", "2 6", "7 3 2 3 2 3", "5 2")
#: Shares that the table gives, beside the plan's own.
_SHARES: Final = (0.1, 0.3, 0.6, 1.0)


def render_cost_curves(units: Sequence[UnitCost], money: EconomicsPlan) -> Html:
    """A drawing per unit that is priced here and somewhere else; "" without any."""
    curves = [curve for unit in units if (curve := cost_curve(unit, money)) is not None]
    return markup(_curve(curve, f"cost{number}") for number, curve in enumerate(curves))


def _curve(curve: CostCurve, key: str) -> Html:
    return markup(
        h("h4", f"{curve.workload}: cost per {curve.denominator} by how much of the paid time is useful"),
        h("p", _said(curve), cls="small"),
        h("ul", (_entry(number, entry) for number, entry in enumerate(curve.lines)), cls="legend"),
        h("figure", *(_picture(curve, f"{key}-{cls}", width, cls) for cls, width in _WIDTHS.items())),
        fold(("The same as a table ", h("span", f"{len(curve.lines)} lines", cls="soft")), _numbers(curve), cls="fold"),
    )


def _said(curve: CostCurve) -> str:
    """The drawing in words, for those who cannot see it too."""
    crossed = {line.name: share for line, share in curve.crossings}
    here = curve.lines[0].at(curve.share)
    text = f"At the {_percent(curve.share)} useful time of the plan a unit costs {format_amount(here, curve.unit)} here"
    cheaper = [line.name for line in curve.lines[1:] if line.at(curve.share) < here]
    text += f"; less with {', '.join(cheaper)}." if cheaper else "; nothing that is priced costs less."
    for name, share in crossed.items():
        text += f" {name[0].upper()}{name[1:]} costs the same at {_percent(share)}; above it ours costs less."
    never = [line.name for line in curve.lines[1:] if line.name not in crossed and line.falling == 0]
    if never:
        text += f" At no share does ours cost what {' or '.join(never)} does."
    return text


def _entry(number: int, entry: CostLine) -> Html:
    notes = ["catalogue's price" if entry.published else "", f"dated {entry.dated}" if entry.dated else ""]
    said = ", ".join(note for note in notes if note)
    sample = h(
        "svg", line(0, 6, 28, 6, _class(number), width=2, dashes=_dashes(number)), width=28, height=12, cls="sample",
        aria_hidden="true",
    )  # fmt: skip
    return h(
        "li", sample, h("b", f"{_letter(number)} "), entry.name, h("span", f" {said}", cls="soft") if said else None
    )


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _class(number: int) -> str:
    return f"curve l{number % 10 + 1}"


def _dashes(number: int) -> str | None:
    return _DASHES[(number - 1) % len(_DASHES)] if number else None


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _picture(curve: CostCurve, key: str, width: float, cls: str) -> Html:
    x = _shares(curve, width)
    y = axis_of([entry.at(share) for entry in curve.lines for share in (curve.least, 1.0)], _HEIGHT - _BOTTOM, _TOP)
    taken: list[Area] = []
    shapes: list[Child] = [*_grid(x, y, curve.unit), *_verticals(curve, x, y, taken)]
    shapes += [_drawn(number, entry, x, y) for number, entry in reversed(list(enumerate(curve.lines)))]
    shapes += [*_ends(curve, x, y), *_crossings(curve, x, y, taken)]
    return picture(
        width, _HEIGHT, *shapes, title=f"{curve.workload}: cost per {curve.denominator} against useful time",
        description="Lower is cheaper; the text above says the same in words, the table below in numbers.", cls=cls,
        id_=key,
    )  # fmt: skip


def _shares(curve: CostCurve, width: float) -> Axis:
    return Axis(curve.least, 1.0, _LEFT, width - _RIGHT, logarithmic=1.0 / curve.least >= 8.0)


def _grid(x: Axis, y: Axis, unit: str) -> list[Html]:
    shapes = []
    sign = unit.partition("/")[0]
    for mark in x.marks():
        at = x.at(mark)
        shapes += [line(at, _TOP, at, y.start, "tick"), words(at, y.start + 15, f"{100 * mark:g}", "s11 mid")]
    for mark in y.marks():
        at = y.at(mark)
        shapes += [line(x.start, at, x.end, at, "tick")]
        shapes += [words(x.start - 6, at + 4, format_amount(mark, sign), "s11 end")]
    scales = " (log)" if x.logarithmic else "", " (log)" if y.logarithmic else ""
    shapes.append(words((x.start + x.end) / 2, _HEIGHT - 8, f"useful share of paid GPU time, %{scales[0]}", "s12 mid"))
    shapes.append(words(4, 14, f"{unit}{scales[1]}", "s12"))
    return shapes


def _verticals(curve: CostCurve, x: Axis, y: Axis, taken: list[Area]) -> list[Html]:
    """Where the plan compares, and where the declared loads alone would be."""
    marked = [(curve.share, "plan")]
    if curve.loads and x.low <= curve.loads <= 1 and not math.isclose(curve.loads, curve.share, rel_tol=0.01):
        marked.append((curve.loads, "loads alone"))
    shapes = []
    for row, (share, name) in enumerate(marked):
        at, said = x.at(share), f"{name} {_percent(share)}"
        half = len(said) * 11 * LETTER / 2
        middle = min(max(at, x.start + half), x.end - half)
        shapes += [line(at, _TOP - 2, at, y.start, "limit", width=1)]
        shapes += [words(middle, _TOP - 6 - 13 * row, said, "s11 mid")]
        taken.append((middle - half, _TOP - 30, middle + half, _TOP))
    return shapes


def _drawn(number: int, entry: CostLine, x: Axis, y: Axis) -> Html:
    straight = entry.falling == 0 or (entry.flat == 0 and x.logarithmic and y.logarithmic)
    steps, low, high = 1 if straight else _STEPS, math.log(x.low), math.log(x.high)
    shares = [math.exp(low + (high - low) * step / steps) for step in range(steps + 1)]
    points = " ".join(f"{x.at(share):.1f},{y.at(entry.at(share)):.1f}" for share in shares)
    return h(
        "polyline", points=points, cls=_class(number), stroke_width=3 if number == 0 else 2,
        stroke_dasharray=_dashes(number),
    )  # fmt: skip


def _ends(curve: CostCurve, x: Axis, y: Axis) -> list[Html]:
    """A letter at the right end of every line, moved apart where ends are close."""
    wanted = sorted((y.at(entry.at(1.0)), number) for number, entry in enumerate(curve.lines))
    placed = [wanted[0][0]]
    for (_, _), (at, _) in pairwise(wanted):
        placed.append(max(at, placed[-1] + _APART))
    placed[-1] = min(placed[-1], y.start - 4)
    for place in range(len(placed) - 2, -1, -1):
        placed[place] = min(placed[place], placed[place + 1] - _APART)
    return [
        words(x.end + 6, at + 4, _letter(number), "s12 t-bold") for at, (_, number) in zip(placed, wanted, strict=True)
    ]


def _crossings(curve: CostCurve, x: Axis, y: Axis, taken: list[Area]) -> list[Html]:
    """A ring where a line meets ours, with its share where the text covers least."""
    shapes = []
    numbers = {entry: number for number, entry in enumerate(curve.lines)}
    for entry, share in sorted(curve.crossings, key=lambda found: found[1]):
        at_x, at_y = x.at(share), y.at(entry.at(share))
        amount = format_amount(entry.at(share), curve.unit)
        tip = f"{entry.name} costs the same at {_percent(share)} useful time: {amount}"
        shapes.append(h("circle", h("title", tip), cx=at_x, cy=at_y, r=5, cls="ring"))
        said = f"A = {_letter(numbers[entry])} at {_percent(share)}"
        wide = len(said) * 11 * LETTER
        lefts = (at_x + 9, at_x - 9 - wide, at_x - wide / 2)
        areas = [
            (left, at_y + shift - 10, left + wide, at_y + shift + 2)
            for shift in (-8.0, 18.0, -22.0, 32.0, -36.0, -50.0)
            for left in lefts
            if x.start <= left and left + wide <= x.end and at_y + shift - 10 > _TOP and at_y + shift < y.start
        ]
        free = [area for area in areas if not any(overlap(area, other) for other in taken)]
        if free:
            area = min(free, key=lambda area: _covered(area, curve, x, y))
            taken.append(area)
            shapes.append(words(area[0], area[3] - 2, said, "s11 halo"))
    return shapes


def _covered(area: Area, curve: CostCurve, x: Axis, y: Axis) -> int:
    """How many points of lines an area covers, of a few across its width."""
    left, top, right, bottom = area
    inner = [left + (right - left) * step / 8 for step in range(9)]
    shares = [_share_at(x, pixel) for pixel in inner]
    return sum(top < y.at(entry.at(share)) < bottom for entry in curve.lines for share in shares)


def _share_at(x: Axis, pixel: float) -> float:
    part = (pixel - x.start) / (x.end - x.start)
    return x.low * (x.high / x.low) ** part if x.logarithmic else x.low + part * (x.high - x.low)


def _numbers(curve: CostCurve) -> Html:
    crossed = {line.name: share for line, share in curve.crossings}
    shares = sorted({*_SHARES, curve.share})

    def row(number: int, entry: CostLine) -> list[Child]:
        same = "" if number == 0 else _percent(crossed[entry.name]) if entry.name in crossed else _never(curve, entry)
        amounts = [format_amount(entry.at(share), curve.unit.partition("/")[0]) for share in shares]
        return [f"{_letter(number)} {entry.name}", *amounts, same, entry.dated]

    heads = [f"at {_percent(share)}" + (" (plan)" if share == curve.share else "") for share in shares]
    return table(
        ("Bought as", *heads, "Same cost at", "Dated"),
        (row(number, entry) for number, entry in enumerate(curve.lines)),
        caption=f"{curve.unit} for {curve.workload} by useful share of paid GPU time",
        numeric=range(1, len(shares) + 1),
        cls="stack",
    )


def _never(curve: CostCurve, entry: CostLine) -> str:
    """Why a line never meets ours."""
    here = curve.lines[0]
    if entry.flat == 0 and here.falling:
        return f"never: {entry.falling / here.falling:.2g} × ours"
    return "never: ours costs more"
