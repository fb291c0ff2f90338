"""Markup that cannot be broken by what is put into it.

Every string becomes text: `& < > " '` are escaped, and characters that would make a name read as something else
(controls, direction marks) are shown by their number. Only `Html`, which this module alone makes, passes as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final

VOID: Final = frozenset({"br", "wbr", "hr", "meta", "link", "input", "col"})
#: Elements of SVG are closed in place when empty, as XML allows and HTML parsers accept inside <svg>.
SELF_CLOSING: Final = frozenset({"rect", "circle", "line", "path", "polyline", "polygon", "use"})
#: Controls except tab and line feed; direction overrides, embeddings, isolates and marks (Unicode 16.0, annex 9 of
#: UAX 9); zero-width and separator characters; the byte order mark; lone surrogates, which cannot be written as UTF-8.
_MISLEADING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


class Html(str):
    """Markup that is complete and safe to put anywhere in an element."""

    __slots__ = ()


Child = str | Html | int | float | None | Iterable["Child"]


def text(value: str) -> Html:
    """The string as text, with misleading characters shown by number (`⟨U+202E⟩`)."""
    return Html(html.escape(visible(value), quote=True))


def visible(value: str) -> str:
    """The string with every character that could hide or reorder others replaced by its number."""
    return _MISLEADING.sub(lambda m: f"⟨U+{ord(m.group()):04X}⟩", value.replace("\r\n", "\n"))


def markup(*children: Child) -> Html:
    """The children one after the other; None and empty strings leave nothing."""
    return Html("".join(_flat(children)))


def _flat(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield text(child)
        elif isinstance(child, int | float):
            yield f"{child:g}"
        else:
            yield from _flat(child)


def h(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """One element.

    Args:
        attributes: `cls` is written class, a trailing `_` is dropped, other `_` become `-`. True writes the bare name,
            False and None leave it out. There is no way to write a style attribute: the page's policy forbids it.
    """
    parts = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = "class" if name == "cls" else name.rstrip("_").replace("_", "-")
        if key == "style" or key.startswith("on"):
            raise ValueError(f"attribute {key} is forbidden by the page's content policy")
        if value is True:
            parts.append(key)
        else:
            shown = f"{round(value, 2):g}" if isinstance(value, int | float) else text(value)
            parts.append(f'{_CAMEL.get(key, key)}="{shown}"')
    opening = " ".join(parts)
    inner = markup(*children)
    if tag in VOID:
        return Html(f"<{opening}>")
    if tag in SELF_CLOSING and not inner:
        return Html(f"<{opening}/>")
    return Html(f"<{opening}>{inner}</{tag}>")


#: SVG attributes whose names hold capitals.
_CAMEL: Final = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio", "textlength": "textLength"}


def table(
    heads: Iterable[Child], rows: Iterable[Iterable[Child]], *, caption: str, numeric: Iterable[int] = (), cls: str = ""
) -> Html:
    """A table with a caption, column headers, and the first cell of each row as its header.

    Args:
        numeric: columns, counted from 0, that hold numbers and are aligned to the right.
    """
    right = frozenset(numeric)
    titles = list(heads)

    def cell(column: int, value: Child) -> Html:
        kind = "num" if column in right else None
        label = plain(titles[column])
        if column == 0:
            return h("th", value, scope="row", cls=kind, data_label=label)
        return h("td", value, cls=kind, data_label=label)

    return h(
        "div",
        h(
            "table",
            h("caption", caption),
            h(
                "thead",
                h("tr", (h("th", t, scope="col", cls="num" if i in right else None) for i, t in enumerate(titles))),
            ),
            h("tbody", (h("tr", (cell(i, c) for i, c in enumerate(row))) for row in rows)),
        ),
        cls=f"scroll {cls}".strip(),
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def plain(child: Child) -> str:
    """The text of a child without its tags, for labels."""
    return html.unescape(re.sub(r"<[^>]+>", "", markup(child)))


def dotted(name: str) -> Html:
    """A dotted name in fixed width that breaks after its dots, so that a narrow column does not cut its words."""
    first, *rest = name.split(".")
    return h("span", first, ((".", h("wbr"), part) for part in rest), cls="mono")


def fold(summary: Child, *body: Child, cls: str = "", open_: bool = False, id_: str | None = None) -> Html:
    """A part that unfolds on click and in print."""
    return h("details", h("summary", summary), *body, cls=cls or None, open=open_, id=id_)
