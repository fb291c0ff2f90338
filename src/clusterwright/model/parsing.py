"""Parsing: texts → architecture, with the place of every value; everything wrong is reported at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.architecture import API_VERSION, Architecture
from clusterwright.model.complaints import explain_errors, found_words
from clusterwright.model.documents import Document, Places
from clusterwright.model.magnitudes import raw_text
from clusterwright.model.merging import OVERRIDE, merge_trees, override_tree
from clusterwright.model.nodes import MappingNode, Node, ScalarNode, SequenceNode, read_nodes
from clusterwright.model.secrets import find_secrets
from clusterwright.model.sources import Source

_VERSION_KEY: Final = "apiVersion"


def parse_architecture(*sources: Source, overrides: Sequence[str] = ()) -> Document:
    """Read one or more texts and `path=value` overrides as one architecture.

    Args:
        sources: merged in order; a value may stand in one of them only.
        overrides: as given to `--set`; written over what the sources say.

    Raises:
        InvalidInput: with every problem found and its place. Faults of YAML are reported before faults of content:
            a text that cannot be read has none.
    """
    return parse_trees(read_trees(sources), sources, overrides)


def parse_trees(
    trees: Sequence[MappingNode],
    sources: Sequence[Source],
    overrides: Sequence[str] = (),
    referred: Callable[[MappingNode], Sequence[MappingNode]] | None = None,
) -> Document:
    """The second half of `parse_architecture`: trees of `read_tree`, one per source, as an architecture.

    Args:
        referred: finds what files that the architecture names say, as further trees.

    Raises:
        InvalidInput: with every problem of content found and its place.
    """
    tree = override_tree(merge_trees(trees), overrides)
    if referred is not None:
        tree = merge_trees([tree, *referred(tree)])
    data, places, keys = _spread(tree, sources)
    problems = _secrets(sources, overrides, places) + _version_problems(data, places)
    hidden = {(p.place.file, p.place.line) for p in problems}
    try:
        architecture = Architecture.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        found = explain_errors(error, places, keys)
        problems += [p for p in found if p.path != _VERSION_KEY and (p.place.file, p.place.line or None) not in hidden]
    if problems:
        raise InvalidInput(*sorted(problems, key=_reading_order(sources)))
    return Document(architecture, places, _digest(data), data)


def read_trees(sources: Sequence[Source]) -> list[MappingNode]:
    """`read_tree` of every text.

    Raises:
        InvalidInput: with every fault of YAML of all of them, or when there is none.
    """
    trees, problems = list[MappingNode](), list[Problem]()
    for source in sources:
        try:
            trees.append(read_tree(source))
        except InvalidInput as error:
            problems.extend(error.problems)
    if problems:
        raise InvalidInput(*problems)
    if not trees:
        raise InvalidInput("no architecture file given")
    return trees


def read_tree(source: Source) -> MappingNode:
    """The first half of `parse_architecture`: one text as a tree of sections with places.

    Raises:
        InvalidInput: with every fault of YAML found and its place.
    """
    node = read_nodes(source)
    start = Place(source.name, 1, 1)
    hint = f"begin with `{_VERSION_KEY}: {API_VERSION}`"
    if node is None or (isinstance(node, ScalarNode) and node.value is None):
        raise InvalidInput(Problem(start, "", "the file is empty", hint))
    if not isinstance(node, MappingNode):
        found = "a list" if isinstance(node, SequenceNode) else "a single value"
        raise InvalidInput(Problem(node.place, "", f"the file holds {found}, not sections", hint))
    return replace(node, place=start)


def _spread(tree: MappingNode, sources: Sequence[Source]) -> tuple[dict[str, Any], Places, dict[str, Place]]:
    """Plain data of a tree, places by path (of the key for a mapping or list), and places of the keys by path."""
    values: dict[str, Place] = {"": tree.place}
    keys: dict[str, Place] = {}

    def walk(node: Node, path: str) -> Any:
        if isinstance(node, ScalarNode):
            return node.value
        if isinstance(node, SequenceNode):
            return tuple(item(n, f"{path}.{i}", n.place) for i, n in enumerate(node.items))
        return {key: item(n, f"{path}.{key}" if path else key, place) for key, (place, n) in node.entries.items()}

    def item(node: Node, path: str, place: Place) -> Any:
        keys[path] = place
        values[path] = node.place if isinstance(node, ScalarNode) else place
        return walk(node, path)

    data = walk(tree, "")
    return data, Places(values, {s.name: s.lines for s in sources}), keys


def _secrets(sources: Sequence[Source], overrides: Sequence[str], places: Places) -> list[Problem]:
    texts = [*sources, *(Source(OVERRIDE, text) for text in overrides)]
    found = [(problem, text.name == OVERRIDE) for text in texts for problem in find_secrets(text)]
    if not found:
        return []
    paths = {(place.file, place.line): path for path, place in places.values.items()}
    return [
        replace(p, place=Place(OVERRIDE)) if override else replace(p, path=paths.get((p.place.file, p.place.line), ""))
        for p, override in found
    ]


def _version_problems(data: dict[str, Any], places: Places) -> list[Problem]:
    version = data.get(_VERSION_KEY)
    if version == API_VERSION:
        return []
    wanted = f"write `{_VERSION_KEY}: {API_VERSION}`"
    if version is None:
        return [Problem(places.of(_VERSION_KEY), _VERSION_KEY, "this is missing", wanted)]
    message = f"{found_words(version)} is not supported"
    return [Problem(places.of(_VERSION_KEY), _VERSION_KEY, message, f"this version reads {API_VERSION}")]


def _reading_order(sources: Sequence[Source]) -> Callable[[Problem], tuple[int, int, int]]:
    rank = {source.name: number for number, source in enumerate(sources)}
    return lambda p: (rank.get(p.place.file, len(rank)), p.place.line, p.place.column)


def _digest(data: dict[str, Any]) -> str:
    """Digest of the content as written: key order, comments, quotes and files do not count; `1.30` is not `1.3`."""
    canonical = json.dumps(_written(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _written(v) for key, v in value.items()}
    if isinstance(value, tuple):
        return [_written(v) for v in value]
    return value if value is None or isinstance(value, bool) else str(raw_text(value))
