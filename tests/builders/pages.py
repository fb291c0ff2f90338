"""A parsed report: what is in it, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"wbr", "meta", "link", "br", "hr", "input", "col"})


@dataclass
class Node:
    """An element with its attributes, children and text in order."""

    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text below, white space folded."""
        parts = (c if isinstance(c, str) else "\0" if c.tag == "wbr" else c.text for c in self.children)
        return " ".join(" ".join(parts).replace(" \0 ", "").split())

    def all(self, tag: str = "", **attributes: str) -> Iterator[Node]:
        """Elements below with this tag and these attributes (`class_` matches one of the classes)."""
        for child in self.children:
            if isinstance(child, Node):
                if (not tag or child.tag == tag) and child.matches(attributes):
                    yield child
                yield from child.all(tag, **attributes)

    def matches(self, attributes: dict[str, str]) -> bool:
        """Whether every attribute has the value, or the class is among the classes."""
        for name, value in attributes.items():
            key = name.rstrip("_").replace("_", "-")
            found = self.attributes.get(key)
            if found is None or (value not in found.split() if key == "class" else value != found):
                return False
        return True

    def one(self, tag: str = "", **attributes: str) -> Node:
        """The only such element."""
        found = list(self.all(tag, **attributes))
        assert len(found) == 1, f"{len(found)} of {tag} {attributes}"
        return found[0]


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {k: v if v is not None else "" for k, v in attrs})
        assert len(node.attributes) == len(attrs), f"an attribute occurs twice in <{tag}>"
        self.open[-1].children.append(node)
        if tag not in _VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {k: v if v is not None else "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        last = self.open.pop()
        assert last.tag == tag, f"</{tag}> closes <{last.tag}> {last.attributes}"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse_page(page: str) -> Node:
    """The document as a tree; fails where an element is not closed in its turn."""
    builder = _Builder()
    builder.feed(page)
    builder.close()
    assert builder.open == [builder.root], f"<{builder.open[-1].tag}> is never closed"
    return builder.root
