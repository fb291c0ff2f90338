"""Merging: several files and `--set` flags become one tree.

Mappings merge key by key. Anything else may be given once: two files that both say it disagree or will, and neither
silently wins. A flag is written to win, so it replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, get_origin

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.nodes import MappingNode, Node, ScalarNode, SequenceNode, mapping_of, read_nodes, sequence_of
from clusterwright.model.sources import Source, checked_source
from clusterwright.model.suggestions import type_at

#: The name that places of overridden values carry.
OVERRIDE: Final = "--set"
#: Keys that every file may repeat, as long as they agree.
_REPEATABLE: Final = ("apiVersion",)


def merge_trees(trees: Sequence[MappingNode]) -> MappingNode:
    """One mapping of all files' keys, in order of first use.

    Raises:
        InvalidInput: for each value given twice, naming both places.
    """
    problems: list[Problem] = []
    merged = trees[0]
    for tree in trees[1:]:
        merged = _merge(merged, tree, "", problems)
    if problems:
        raise InvalidInput(*problems)
    return merged


def _merge(one: MappingNode, two: MappingNode, path: str, problems: list[Problem]) -> MappingNode:
    entries = dict(one.entries)
    for key, (place, node) in two.entries.items():
        below = f"{path}.{key}" if path else key
        if key not in entries:
            entries[key] = (place, node)
            continue
        first_place, first = entries[key]
        if isinstance(first, MappingNode) and isinstance(node, MappingNode):
            entries[key] = (first_place, _merge(first, node, below, problems))
        elif not _repeats(key, first, node):
            problems.append(Problem(place, below, "this is given twice", f"first at {first_place}; keep one"))
    return mapping_of(one.place, entries)


def _repeats(key: str, one: Node, two: Node) -> bool:
    return key in _REPEATABLE and isinstance(one, ScalarNode) and isinstance(two, ScalarNode) and one.text == two.text


def override_tree(tree: MappingNode, overrides: Sequence[str]) -> MappingNode:
    """The tree with each `path=value` written over it; an empty value removes the key.

    Raises:
        InvalidInput: for each override that is malformed or reaches through a value that has no parts.
    """
    problems: list[Problem] = []
    for override in overrides:
        try:
            tree = _override(tree, override)
        except InvalidInput as error:
            problems.extend(error.problems)
    if problems:
        raise InvalidInput(*problems)
    return tree


def _override(tree: MappingNode, override: str) -> MappingNode:
    _refuse_unprintable(override)
    path, equals, text = override.partition("=")
    path = path.strip()
    if not equals or not path or not all(path.split(".")):
        raise _fault("", f"'{override}' is no override", "write --set PATH=VALUE, such as --set pools.gpu.spares=1")
    node = _read_value(path, text)
    if isinstance(node, ScalarNode) and node.value is None:
        node = None
    changed = _write(tree, path, path, node)
    assert isinstance(changed, MappingNode)
    return changed


def _refuse_unprintable(override: str) -> None:
    try:
        checked_source(Source(OVERRIDE, override))
    except InvalidInput as error:
        raise InvalidInput(*(replace(problem, place=Place(OVERRIDE)) for problem in error.problems)) from None


def _read_value(path: str, text: str) -> Node | None:
    try:
        return read_nodes(Source(OVERRIDE, text), located=False)
    except InvalidInput as error:
        raise InvalidInput(*(replace(problem, path=path) for problem in error.problems)) from None


def _write(at: Node, rest: str, path: str, value: Node | None, keys: tuple[str, ...] = ()) -> Node:
    """A copy of `at` in which the part at dotted path `rest` is `value`.

    Args:
        path: the whole path, for messages.
        keys: those that lead to `at`; what is absent below it is begun as the list or section that belongs there.
    """
    if isinstance(at, SequenceNode):
        return _write_item(at, rest, path, value, keys)
    if isinstance(at, ScalarNode):
        above = path.removesuffix(rest).rstrip(".")
        raise _fault(path, f"{above} is a single value, it has no '{rest}'", f"set {above} itself")
    key, below = _first_key(at, rest)
    entries = dict(at.entries)
    place, node = entries.get(key) or (Place(OVERRIDE), _begin((*keys, key)))
    if isinstance(node, ScalarNode) and node.value is None:
        node = _begin((*keys, key))  # `waivers:` with nothing behind it
    if below:
        entries[key] = (place, _write(node, below, path, value, (*keys, key)))
    elif value is None:
        entries.pop(key, None)
    else:
        entries[key] = (value.place, value)
    return mapping_of(at.place, entries)


def _begin(keys: tuple[str, ...]) -> Node:
    """An empty list where the file's format has one, else an empty section."""
    place = Place(OVERRIDE)
    return sequence_of(place, ()) if get_origin(type_at(keys)) is tuple else mapping_of(place, {})


def _write_item(at: SequenceNode, rest: str, path: str, value: Node | None, keys: tuple[str, ...]) -> Node:
    """The list with one item written over, taken away, or added behind the last."""
    index, _, below = rest.partition(".")
    items = list(at.items)
    if not index.isdecimal() or len(index) > 6 or int(index) > len(items) - (value is None):
        known = f"the list has 0 to {len(items) - 1}" if items else "the list is empty"
        adds = f", {len(items)} adds an item" if value is not None else ""
        raise _fault(path, f"'{index}' is no position in the list", known + adds)
    if int(index) == len(items):
        items.append(_begin((*keys, index)))
    if below:
        items[int(index)] = _write(items[int(index)], below, path, value, (*keys, index))
    elif value is None:
        del items[int(index)]
    else:
        items[int(index)] = value
    return sequence_of(at.place, tuple(items))


def _first_key(at: MappingNode, rest: str) -> tuple[str, str]:
    """The key that `rest` starts with and what follows; a key that holds dots itself is found when it exists."""
    dots = [i for i, char in enumerate(rest) if char == "."] + [len(rest)]
    for end in reversed(dots):
        if rest[:end] in at.entries:
            return rest[:end], rest[end + 1 :]
    return rest[: dots[0]], rest[dots[0] + 1 :]


def _fault(path: str, message: str, hint: str) -> InvalidInput:
    return InvalidInput(Problem(Place(OVERRIDE), path, message, hint))
