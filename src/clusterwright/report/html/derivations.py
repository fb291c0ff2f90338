"""Numbers of the plan with their origin and, unfolded, the tree they were computed from.

A tree that was unfolded once on the page is linked from then on: a page holds every derivation once, and stays small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clusterwright.lib.figures import Figure, format_band
from clusterwright.report.html.elements import Child, Html, dotted, fold, h
from clusterwright.report.html.words import origin_badge

_DEPTH = 12


class Derivations:
    """What one page has already derived."""

    def __init__(self) -> None:
        self._anchors: dict[tuple[str, float, str], str] = {}

    def ledger(self, rows: Iterable[tuple[Child, Figure | None]]) -> Html:
        """Lines of name, value and origin badge, each unfolding its derivation; rows without a figure are left out."""
        lines = [self.line(name, figure) for name, figure in rows if figure is not None]
        return h("div", lines, cls="ledger") if lines else Html("")

    def line(self, name: Child, figure: Figure) -> Html:
        """One number: what it is, value with unit, origin; its tree on click."""
        summary = (
            h("span", name, cls="name"),
            h("span", _band(figure), cls="soft small") if figure.band else None,
            h("span", str(figure), cls="value"),
            origin_badge(figure.origin),
        )
        return fold(summary, h("ul", self._node(figure, 0), cls="tree"))

    def _node(self, figure: Figure, level: int) -> Html:
        key = (figure.name, figure.value, figure.basis)
        head: list[Child] = [
            dotted(figure.name),
            " = ",
            h("b", str(figure)),
            " ",
            origin_badge(figure.origin),
        ]
        if figure.band:
            head.append(h("span", f" {_band(figure)}", cls="soft"))
        if figure.is_leaf:
            return h("li", head, h("span", figure.basis, cls="formula"))
        if key in self._anchors:
            return h("li", head, " ", h("a", "derived elsewhere", href=f"#{self._anchors[key]}"))
        anchor = f"f{len(self._anchors) + 1}"
        self._anchors[key] = anchor
        inputs: Sequence[Figure] = figure.inputs if level < _DEPTH else ()
        below = h("ul", (self._node(i, level + 1) for i in inputs)) if inputs else None
        return h("li", head, h("span", f"= {figure.basis}", cls="formula"), below, id=anchor)


def _band(figure: Figure) -> str:
    """The factors within which the estimate was validated."""
    return f"band {format_band(figure.band or (1.0, 1.0))}"


def inline_figure(figure: Figure) -> Html:
    """A number in running text or a table cell: value with unit and its badge."""
    return h("span", h("b", str(figure)), " ", origin_badge(figure.origin))
