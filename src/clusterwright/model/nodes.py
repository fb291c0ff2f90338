"""Nodes: a YAML text as a tree in which every key and value knows its place.

The tree is built from the parser's events, not from its own composer, so that depth, node count and alias expansion
are bounded while reading, and so that all faults of a text are reported and not only the first.
Source: YAML 1.2.2; merge keys (`<<`) as in the YAML 1.1 merge type, https://yaml.org/type/merge.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.scalars import Value, resolve_scalar
from clusterwright.model.sources import Source, checked_source
from clusterwright.model.syntax import place_of, plain_words

#: Values after all aliases are expanded. The largest architecture we know has under 5,000.
MAX_NODES: Final = 100_000
#: Levels of nesting. The file format itself needs seven.
MAX_DEPTH: Final = 40

_LONG_TEXT: Final = 100_000
_LONG_TAG: Final = re.compile(r"![^\s!]{1000}")
_STANDARD_TAGS: Final = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "map", "seq")}
_TEXT_TAGS: Final = ("!", "tag:yaml.org,2002:str")


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value; `text` is how it stands in the file."""

    place: Place
    value: Value
    text: str
    size: ClassVar[int] = 1
    depth: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list; `size` counts all nodes below with aliases expanded."""

    place: Place
    items: tuple[Node, ...]
    size: int
    depth: int


@dataclass(frozen=True, slots=True)
class MappingNode:
    """Keys in file order, each with the place of the key and its value."""

    place: Place
    entries: Mapping[str, tuple[Place, Node]]
    size: int
    depth: int


Node = ScalarNode | SequenceNode | MappingNode


def mapping_of(place: Place, entries: Mapping[str, tuple[Place, Node]]) -> MappingNode:
    """A mapping node over `entries`."""
    size = 1 + sum(node.size for _, node in entries.values())
    return MappingNode(place, entries, size, 1 + max((node.depth for _, node in entries.values()), default=0))


def sequence_of(place: Place, items: tuple[Node, ...]) -> SequenceNode:
    """A sequence node over `items`."""
    return SequenceNode(place, items, 1 + sum(n.size for n in items), 1 + max((n.depth for n in items), default=0))


def read_nodes(source: Source, *, located: bool = True) -> Node | None:
    """The tree of a text with exactly one document, None when it holds none.

    Args:
        located: False for a text without lines of its own (a flag); its places have a name only.

    Raises:
        InvalidInput: with every fault found, located; a fault of syntax ends the reading.
    """
    source = checked_source(source)
    _refuse_long_tag(source)
    composer = _Composer(source, located)
    try:
        for event in YAML(typ="safe", pure=True).parse(source.text):
            composer.take(event)
    except _Stop:
        pass
    except MarkedYAMLError as error:
        composer.fault(place_of(error), *plain_words(error))
    except YAMLError as error:
        composer.fault(None, str(error).splitlines()[0])
    except (ValueError, IndexError, TypeError, AttributeError, AssertionError, KeyError, OverflowError) as error:
        # The parser fails in its own ways on a few malformed texts, such as `%YAML x` or `"\Uffffffff"`.
        composer.fault(None, f"this is not valid YAML ({error or type(error).__name__})")
    if composer.problems:
        raise InvalidInput(*composer.problems)
    return composer.root


def _refuse_long_tag(source: Source) -> None:
    """The parser needs time with the square of a tag's length; none is supported, so a long one is refused first."""
    found = _LONG_TAG.search(source.text) if len(source.text) > _LONG_TEXT else None
    if found is not None:
        raise InvalidInput(Problem(source.place_at(found.start()), "", "a very long tag", "tags are not supported"))


class _Stop(Exception):
    """Ends the reading after a fault that makes the rest meaningless; the fault itself is already noted."""


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being read."""

    place: Place
    anchor: str | None
    is_mapping: bool
    items: list[Node] = field(default_factory=list)
    entries: dict[str, tuple[Place, Node]] = field(default_factory=dict)
    merges: list[Node] = field(default_factory=list)
    #: The key whose value comes next: (text, place), text None when the key is unusable.
    key: tuple[str | None, Place] | None = None


class _Composer:
    """Takes events one by one; holds the tree, the anchors and the faults."""

    def __init__(self, source: Source, located: bool) -> None:
        self.source = source
        self.located = located
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._nodes = 0
        self._documents = 0
        self._last = self._place(None)

    def take(self, event: Any) -> None:
        """Add one event to the tree."""
        if isinstance(event, ScalarEvent):
            self._add(self._scalar(event), event.anchor)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            self._tag(event)
            self._open(_Open(self._place(event.start_mark), event.anchor, isinstance(event, MappingStartEvent)))
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._close(self._stack.pop())
        elif isinstance(event, AliasEvent):
            self._add(self._alias(event), None)
        elif isinstance(event, DocumentStartEvent):
            self._document(event)

    def fault(self, mark: Any, message: str, hint: str = "") -> None:
        """Note a fault at the parser's mark, or at the last place read when it has none."""
        self._problem(self._place(mark) if mark is not None else self._last, message, hint)

    def _problem(self, place: Place, message: str, hint: str = "") -> None:
        path = ".".join(o.key[0] for o in self._stack if o.key is not None and o.key[0] is not None)
        self.problems.append(Problem(place, path, message, hint))

    def _place(self, mark: Any) -> Place:
        if not self.located:
            return Place(self.source.name)
        if mark is None:
            return Place(self.source.name, 1, 1)
        return Place(self.source.name, mark.line + 1, mark.column + 1)

    def _document(self, event: DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            self.fault(event.start_mark, "a second document starts here", "keep one document per file")
            raise _Stop
        if event.version is not None and tuple(event.version) != (1, 2):
            found = ".".join(str(v) for v in event.version)
            self.fault(event.start_mark, f"%YAML {found} is not supported", "remove the line; YAML 1.2 is read")

    def _scalar(self, event: ScalarEvent) -> ScalarNode:
        tag = self._tag(event)
        plain = event.style is None and tag not in _TEXT_TAGS
        value = resolve_scalar(event.value) if plain else event.value
        return ScalarNode(self._place(event.start_mark), value, event.value)

    def _tag(self, event: Any) -> str | None:
        tag = None if event.tag is None else str(event.tag)
        if tag is not None and tag not in _STANDARD_TAGS and tag not in _TEXT_TAGS:
            self.fault(event.start_mark, f"the tag {tag} is not supported", "remove it")
        return tag

    def _alias(self, event: AliasEvent) -> Node:
        name = str(event.anchor)
        place = self._place(event.start_mark)
        if any(o.anchor == name for o in self._stack):
            self._problem(place, f"*{name} stands inside &{name}", "a value cannot contain itself")
            raise _Stop
        if name not in self._anchors:
            known = ", ".join(f"&{a}" for a in list(self._anchors)[:5]) or "none"
            self._problem(place, f"*{name} has no anchor before it", f"anchors so far: {known}")
            raise _Stop
        return replace(self._anchors[name], place=place)

    def _open(self, opened: _Open) -> None:
        self._check_depth(opened.place, 1)
        self._stack.append(opened)

    def _check_depth(self, place: Place, levels: int) -> None:
        if len(self._stack) + levels > MAX_DEPTH:
            self._problem(place, f"nested deeper than {MAX_DEPTH} levels")
            raise _Stop

    def _add(self, node: Node, anchor: str | None) -> None:
        self._last = node.place
        self._nodes += node.size
        if self._nodes > MAX_NODES:
            self._problem(node.place, f"more than {MAX_NODES:,} values, aliases expanded")
            raise _Stop
        self._check_depth(node.place, node.depth)
        if anchor is not None:
            if anchor in self._anchors:
                self._problem(node.place, f"the anchor &{anchor} is defined twice")
            self._anchors[anchor] = node
        self._attach(node)

    def _attach(self, node: Node) -> None:
        if not self._stack:
            self.root = node
            return
        parent = self._stack[-1]
        if not parent.is_mapping:
            parent.items.append(node)
        elif parent.key is None:
            parent.key = (self._key(parent, node), node.place)
        else:
            text, place = parent.key
            parent.key = None
            if text == "<<" and isinstance(node, MappingNode | SequenceNode):
                parent.merges.extend(node.items if isinstance(node, SequenceNode) else [node])
            elif text is not None and text not in parent.entries:
                parent.entries[text] = (place, node)

    def _key(self, parent: _Open, node: Node) -> str | None:
        if not isinstance(node, ScalarNode):
            self._problem(node.place, "a key must be text", "put a value that starts with { or [ in quotes")
            return None
        if not node.text:
            self._problem(node.place, "a key is empty")
            return None
        if node.text in parent.entries:
            first = parent.entries[node.text][0]
            self._problem(node.place, f"the key '{node.text}' stands here twice", f"first at {first}")
        return node.text

    def _close(self, closed: _Open) -> None:
        node: Node
        if closed.is_mapping:
            node = mapping_of(closed.place, {**closed.entries, **dict(self._merged(closed))})
        else:
            node = sequence_of(closed.place, tuple(closed.items))
        # Its parts are counted already.
        self._nodes -= node.size - 1
        self._add(node, closed.anchor)

    def _merged(self, closed: _Open) -> Iterator[tuple[str, tuple[Place, Node]]]:
        seen = set(closed.entries)
        for other in closed.merges:
            if not isinstance(other, MappingNode):
                self._problem(other.place, "<< wants a mapping or a list of mappings")
                continue
            yield from ((k, v) for k, v in other.entries.items() if k not in seen)
            seen |= set(other.entries)
