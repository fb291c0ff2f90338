"""Scalable drawings as text: shapes placed by numbers, coloured by the style sheet's classes.

Two kinds. A *picture* has a coordinate system in pixels and is drawn once for a desk and once for a phone, so that its
text never shrinks. A *strip* is as wide as its place: x and widths are shares of it, heights are pixels, so that bars
stretch and letters do not.
"""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.report.html.elements import Child, Html, h, visible

#: Mean advance of a letter as a share of the font size, for DejaVu Sans, the widest of the fonts asked for.
LETTER = 0.62


def picture(width: float, height: float, *shapes: Child, title: str, description: str, cls: str, id_: str) -> Html:
    """A drawing in pixels with a title and a description for those who cannot see it."""
    return h(
        "svg",
        h("title", title, id=f"{id_}-t"),
        h("desc", description, id=f"{id_}-d"),
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        viewbox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        aria_labelledby=f"{id_}-t {id_}-d",
        cls=cls,
    )


def strip(height: float, *shapes: Child, label: str) -> Html:
    """A drawing as wide as its place; shapes in it use `share` for x and width."""
    return h(
        "svg", *shapes, height=height, width="100%", role="img", aria_label=label, xmlns="http://www.w3.org/2000/svg"
    )


def share(value: float) -> str:
    """A share of the strip's width, between 0 and 1, as SVG writes it."""
    return f"{100 * value:.3f}%"


def box(
    x: float | str, y: float, width: float | str, height: float, cls: str, *, radius: float = 0, tip: str = ""
) -> Html:
    """A rectangle, with a tip that shows on hover."""
    inner = h("title", tip) if tip else None
    return h("rect", inner, x=x, y=y, width=width, height=height, rx=radius or None, cls=cls)


def line(
    x1: float | str, y1: float, x2: float | str, y2: float, cls: str, *, width: float = 1, dashes: str | None = None
) -> Html:
    """A straight line; `dashes` as SVG writes them (`7 3`)."""
    return h("line", x1=x1, y1=y1, x2=x2, y2=y2, cls=cls, stroke_width=width, stroke_dasharray=dashes)


def moved(x: str, *shapes: Child) -> Html:
    """Shapes in pixels whose origin lies at a share of the strip's width."""
    return h("svg", *shapes, x=x, overflow="visible", aria_hidden="true")


def words(x: float | str, y: float, value: str, cls: str = "s12", *, room: float | None = None) -> Html:
    """Text on a base line, cut with an ellipsis where it is wider than `room` pixels."""
    return h("text", fitted(value, room, int(cls.split("s1")[1][:1]) + 10) if room else value, x=x, y=y, cls=cls)


def fitted(value: str, room: float, size: int) -> str:
    """The text if it fits into `room` pixels at `size`, else its beginning with an ellipsis."""
    value = visible(value).replace("\n", " ")
    letters = max(1, int(room / (LETTER * size)))
    return value if len(value) <= letters else value[: letters - 1] + "…"


#: Left, top, right and bottom in pixels.
Area = tuple[float, float, float, float]


def overlap(one: Area, two: Area) -> bool:
    """Whether two areas share any pixel."""
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def swatch(cls: str) -> Html:
    """A small coloured square for a legend."""
    return h("svg", box(0.5, 0.5, 11, 11, cls, radius=2), width=12, height=12, aria_hidden="true")


def legend(entries: Iterable[tuple[str, Child]]) -> Html:
    """(class of the colour, what it means) as a list."""
    return h("ul", (h("li", swatch(cls), meaning) for cls, meaning in entries), cls="legend")
