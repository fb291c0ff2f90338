"""Colours and patterns of the ledger's lines, on pages of simulations."""

from __future__ import annotations

from typing import Final

from clusterwright.ledger.lines import Line
from clusterwright.report.html.elements import Html, h

#: line → (class of its colour, pattern over it or "").
MARKS: Final[dict[str, tuple[str, str]]] = {
    Line.PRODUCTIVE.value: ("l-productive", ""),
    Line.STARTING.value: ("l-starting", "dots"),
    Line.CHECKPOINT.value: ("l-checkpoint", "dots"),
    Line.HELD_IDLE.value: ("l-held", "rows"),
    Line.LOST.value: ("l-lost", "slash"),
    Line.FAILED.value: ("l-failed", "slash"),
    Line.PREEMPTED.value: ("l-preempted", "slash"),
    Line.UNHEALTHY.value: ("l-unhealthy", "cross"),
    Line.DRAINED.value: ("l-drained", "rows"),
    Line.RESERVED.value: ("l-reserved", ""),
    Line.FREE_WITH_DEMAND.value: ("l-wanted", "dots"),
    Line.FREE.value: ("l-free", ""),
    Line.UNKNOWN.value: ("l-unknown", "cross"),
}

LINE_STYLE: Final = """
.l-productive{fill:var(--c2)}.l-starting{fill:var(--c7)}.l-checkpoint{fill:var(--c9)}.l-held{fill:var(--c3)}
.l-lost{fill:var(--c5)}.l-failed{fill:var(--c10)}.l-preempted{fill:var(--c4)}.l-unhealthy{fill:var(--bad)}
.l-drained{fill:var(--c6)}.l-reserved{fill:var(--c0)}.l-wanted{fill:var(--open-bg)}.l-free{fill:var(--sunk)}
.l-unknown{fill:var(--none-bg)}
.pattern{stroke:var(--ink);stroke-width:1;stroke-opacity:.55;fill:none}.pattern-dot{fill:var(--ink);fill-opacity:.55}
.swatch{width:16px;height:12px;vertical-align:-1px;border:1px solid var(--strong)}
svg .curve{fill:none;stroke-width:2}
svg .s0{stroke:var(--c1)}svg .s1{stroke:var(--c3)}svg .s2{stroke:var(--c2)}svg .s3{stroke:var(--c5)}
svg .s4{stroke:var(--c4)}svg .s5{stroke:var(--c6)}svg .s6{stroke:var(--c9)}svg .s7{stroke:var(--c10)}
svg .grid{stroke:var(--line)}svg .whisker{stroke:var(--ink)}
.plots{display:flex;flex-wrap:wrap;gap:1rem}.plots figure{margin:0}
figure.scroll>svg{max-width:none}
"""


def patterns(key: str) -> Html:
    """Definitions of the patterns, with names that are the drawing's own."""

    def one(name: str, *shapes: Html) -> Html:
        return h("pattern", *shapes, id=f"{key}-{name}", width=5, height=5, patternUnits="userSpaceOnUse")

    return h(
        "defs",
        one("slash", h("path", d="M0 5L5 0", cls="pattern")),
        one("cross", h("path", d="M0 5L5 0M0 0L5 5", cls="pattern")),
        one("rows", h("path", d="M0 2.5L5 2.5", cls="pattern")),
        one("dots", h("circle", cx=2.5, cy=2.5, r=0.9, cls="pattern-dot")),
    )


def filled(x: float, y: float, width: float, height: float, line: str, key: str, tip: str) -> Html:
    """A cell in the colour of its line with the pattern over it."""
    cls, pattern = MARKS[line]
    over = h("rect", x=x, y=y, width=width, height=height, fill=f"url(#{key}-{pattern})") if pattern else None
    return h("g", h("title", tip), h("rect", x=x, y=y, width=width, height=height, cls=cls), over)


def mark_of(line: str) -> Html:
    """A swatch of a line, for tables and legends."""
    key = "m-" + MARKS[line][0]
    return h(
        "svg",
        patterns(key),
        filled(0, 0, 16, 12, line, key, line),
        cls="swatch",
        width=16,
        height=12,
        aria_hidden="true",
    )
