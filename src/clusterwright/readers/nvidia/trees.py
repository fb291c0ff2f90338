"""`nvidia-smi -q` as text (by its indentation) and as XML, both as the same tree of labels and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.etree.ElementTree import Element

from clusterwright.readers.cleaning import Line
from clusterwright.readers.nvidia.fields import slug
from clusterwright.readers.refusing import Refused

_DEEPEST: Final = 30


@dataclass(slots=True)
class Node:
    """A labelled line or element.

    Args:
        label: in lower case with `_`.
        value: what stands behind the label, None for a heading.
    """

    label: str
    value: str | None
    line: int
    children: list[Node] = field(default_factory=list)

    def child(self, *labels: str) -> Node | None:
        """The first child with one of the labels."""
        return next((node for node in self.children if node.label in labels), None)

    def said(self, *labels: str) -> str:
        """Value of the first child with one of the labels, "" when there is none."""
        node = self.child(*labels)
        return (node.value or "") if node else ""

    def leaves(self) -> Iterator[tuple[str, Node]]:
        """(path, node) of every node below that has a value, in the order of the file."""
        waiting = [(node.label, node) for node in reversed(self.children)]
        while waiting:
            path, node = waiting.pop()
            if node.value is not None:
                yield path, node
            waiting.extend((f"{path}/{child.label}", child) for child in reversed(node.children))


def split_label(text: str) -> tuple[str, str | None]:
    """(label, value) of `Total : 81559 MiB`; the value is None for a heading such as `FB Memory Usage`."""
    stripped = text.strip()
    label, mark, value = stripped.partition(" : ")
    if mark:
        return label.strip(), value.strip()
    if stripped.endswith((" :", ":")):
        return stripped.removesuffix(":").strip(), ""
    return stripped, None


def tree_of_lines(lines: Iterable[Line], root: Node) -> None:
    """Hang indented lines below `root` by their depth.

    Raises:
        Refused: when they are nested deeper than any version of the tool does.
    """
    stack: list[tuple[int, Node]] = [(-1, root)]
    for line in lines:
        body = line.text.expandtabs(8)
        depth = len(body) - len(body.lstrip(" "))
        label, value = split_label(body)
        while len(stack) > 1 and stack[-1][0] >= depth:
            stack.pop()
        if len(stack) > _DEEPEST:
            raise Refused(f"nested deeper than {_DEEPEST}", line.number, line.text)
        node = Node(slug(label), value, line.number)
        stack[-1][1].children.append(node)
        stack.append((depth, node))


def tree_of_element(element: Element) -> Node:
    """An XML element and everything below it; XML has no line numbers here, so the lines are 0."""
    root = Node(slug(str(element.tag)), element.get("id"), 0)
    waiting = [(element, root)]
    while waiting:
        source, node = waiting.pop()
        if len(source) == 0 and node.value is None:
            node.value = (source.text or "").strip()
        for part in source:
            child = Node(slug(str(part.tag)), part.get("id"), 0)
            node.children.append(child)
            waiting.append((part, child))
    return root
