"""Traces that a file's services name → what the trace says, as values of the file.

They are merged like a further file, so a length that stands in both is given twice, and every figure says which trace
it comes from. Of rate and prefix reuse the file's own words count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clusterwright.app.fitting_traces import read_requests
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.merging import OVERRIDE
from clusterwright.model.nodes import MappingNode, Node, ScalarNode, mapping_of, sequence_of
from clusterwright.model.scalars import resolve_scalar
from clusterwright.physics.serving.lengths import observed
from clusterwright.plan.fitting.request_traces import Requests

#: Keys of `serve` → options of a trace, with their unit.
_LENGTHS: Final = {"in": "in", "in_p95": "in-p95", "out": "out", "out_p95": "out-p95"}


def traced_lengths(tree: MappingNode) -> list[MappingNode]:
    """One tree for each service whose lengths come from a trace.

    Args:
        tree: of all files, with what `--set` says written over them.

    Raises:
        InvalidInput: a trace cannot be read, naming the line that asks for it.
    """
    found, problems = list[MappingNode](), list[Problem]()
    for name, serve in _services(tree).items():
        node = _at(serve, "lengths", "trace")
        if not isinstance(node, ScalarNode) or node.value is None:
            continue
        path = _path(node)
        try:
            requests = read_requests(str(path))
        except InvalidInput as error:
            key = f"workloads.{name}.serve.lengths.trace"
            problems += [Problem(node.place, key, f"{path}: {p.message}") for p in error.problems]
            continue
        found.append(_tree(name, serve, requests, Place(f"{path} ({requests.rows:,} requests)")))
    if problems:
        raise InvalidInput(*problems)
    return found


def _services(tree: MappingNode) -> Mapping[str, MappingNode]:
    workloads = _at(tree, "workloads")
    if not isinstance(workloads, MappingNode):
        return {}
    found = {name: _at(node, "serve") for name, (_, node) in workloads.entries.items()}
    return {name: node for name, node in found.items() if isinstance(node, MappingNode)}


def _at(node: Node, *keys: str) -> Node | None:
    for key in keys:
        if not isinstance(node, MappingNode) or key not in node.entries:
            return None
        node = node.entries[key][1]
    return node


def _path(node: ScalarNode) -> Path:
    """The trace beside the file that names it; beside the user where that is a flag or standard input."""
    file = Path(node.place.file)
    return file.parent / node.text if node.place.file != OVERRIDE and file.is_file() else Path(node.text)


def _tree(name: str, serve: MappingNode, requests: Requests, place: Place) -> MappingNode:
    options, said = requests.options, dict[str, Node]()
    for key, option in _LENGTHS.items():
        if key in serve.entries and serve.entries[key][1].place.file == OVERRIDE:
            continue  # a flag is written to win
        said[key] = _scalar(place, f"{options[option]} tokens")
    if "rate" in options and "rate" not in serve.entries:
        said["rate"] = _scalar(place, f"{options['rate']} req/s")
    points = tuple(_scalar(place, f"{value:.1f}") for value in observed(requests.prompts).points)
    lengths: dict[str, Node] = {"prompts": sequence_of(place, points)}
    if "prefix_reuse" not in serve.entries:
        saved = [
            {"cache": _scalar(place, f"{tokens} tokens"), "share": _scalar(place, f"{share * 100:.4g}%")}
            for tokens, share in requests.reuse_by_cache()
        ]
        lengths |= {"reuse": sequence_of(place, tuple(_mapping(place, row) for row in saved))} if saved else {}
    said["lengths"] = _mapping(place, lengths)
    return _mapping(place, {"workloads": _mapping(place, {name: _mapping(place, {"serve": _mapping(place, said)})})})


def _scalar(place: Place, text: str) -> ScalarNode:
    return ScalarNode(place, resolve_scalar(text), text)


def _mapping(place: Place, entries: Mapping[str, Node]) -> MappingNode:
    return mapping_of(place, {key: (place, node) for key, node in entries.items()})
