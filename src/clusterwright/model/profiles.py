"""The house profile: what a house pays, sells and takes for granted, in a YAML file of its own.

All scalars stay text with their place; `plan.fitting.house` says what they mean. Anchors are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.sources import Source, checked_source
from clusterwright.model.syntax import place_of, plain_words

#: Keys of the file.
KEYS: Final = ("name", "prices", "margin", "skus", "assumptions")
_SKU: Final = ("shape", "price")
#: Options of `cw fit` that a profile may set.
ASSUMPTIONS: Final = (
    "in", "out", "in-p95", "out-p95", "reuse", "ttft", "tpot", "at", "survive", "context", "engine", "weights", "kv",
    "memory-share", "utilisation", "goal", "pue", "spares", "failures", "restart", "repair", "checkpoint-rate",
)  # fmt: skip


@dataclass(frozen=True)
class Written:
    """A value as it stands in the file."""

    text: str
    place: Place


@dataclass(frozen=True)
class Sku:
    """A node as it is sold: what it is, and its price per GPU-hour where it has one."""

    shape: Written
    price: Written | None = None


@dataclass(frozen=True)
class Profile:
    """A house.

    Args:
        name: of the house, "" where it has none.
        prices: GPU, node or SKU → what a GPU-hour costs the house.
        margin: share of the selling price that is kept.
        skus: what is sold, by name.
        assumptions: option of `cw fit` → value where nobody says otherwise.
    """

    name: str = ""
    prices: Mapping[str, Written] = field(default_factory=dict)
    margin: Written | None = None
    skus: Mapping[str, Sku] = field(default_factory=dict)
    assumptions: Mapping[str, Written] = field(default_factory=dict)


def parse_profile(source: Source) -> Profile:
    """A profile from its text.

    Raises:
        InvalidInput: with every problem and its place: form, unknown keys with the nearest one, missing shapes.
    """
    reading = _Reading(checked_source(source).name)
    root = _compose(checked_source(source))
    held = {name: node for name, _, node in reading.pairs(root, "", KEYS)}
    name, margin = (reading.scalar(held.get(key), key) for key in ("name", "margin"))
    found = Profile(
        name.text if name else "",
        reading.scalars(held.get("prices"), "prices"),
        margin,
        dict(reading.skus(held.get("skus"))),
        reading.scalars(held.get("assumptions"), "assumptions", ASSUMPTIONS),
    )
    if reading.problems:
        raise InvalidInput(*reading.problems)
    return found


def _compose(source: Source) -> Node:
    try:
        root: Node | None = YAML(typ="safe", pure=True).compose(source.text)
    except MarkedYAMLError as error:
        mark, (message, hint) = place_of(error), plain_words(error)
        place = Place(source.name, mark.line + 1, mark.column + 1) if mark else Place(source.name)
        raise InvalidInput(Problem(place, "", message, hint)) from None
    except (YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(Problem(Place(source.name), "", f"not YAML: {' '.join(str(error).split())}")) from None
    if root is None:
        raise InvalidInput(Problem(Place(source.name), "", "the file is empty", f"keys are {', '.join(KEYS)}"))
    return root


@dataclass
class _Reading:
    """Reads nodes and gathers what is wrong."""

    file: str
    problems: list[Problem] = field(default_factory=list)

    def place(self, node: Node) -> Place:
        return Place(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def wrong(self, node: Node, path: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.place(node), path, message, hint))

    def pairs(self, node: Node | None, path: str, known: tuple[str, ...] = ()) -> Iterator[tuple[str, Node, Node]]:
        if node is None:
            return
        if not isinstance(node, MappingNode) or node.anchor is not None:
            self.wrong(node, path, "this wants a mapping (name: value) without an anchor")
            return
        seen = set[str]()
        for key, value in node.value:
            name = key.value if isinstance(key, ScalarNode) else ""
            inner = f"{path}.{name}" if path else name
            if not name or name in seen:
                self.wrong(key, path, f"'{name}' is written twice" if name else "a key is plain text")
            elif known and name not in known:
                hint = did_you_mean(name, known) or f"keys are {', '.join(known)}"
                self.wrong(key, inner, f"unknown key '{name}'", hint)
            else:
                yield name, key, value
            seen.add(name)

    def scalar(self, node: Node | None, path: str) -> Written | None:
        if node is None:
            return None
        if not isinstance(node, ScalarNode) or node.anchor is not None or not node.value.strip():
            self.wrong(node, path, "this wants one value")
            return None
        return Written(node.value, self.place(node))

    def scalars(self, node: Node | None, path: str, known: tuple[str, ...] = ()) -> dict[str, Written]:
        found = {name: self.scalar(value, f"{path}.{name}") for name, _, value in self.pairs(node, path, known)}
        return {name: value for name, value in found.items() if value is not None}

    def skus(self, node: Node | None) -> Iterator[tuple[str, Sku]]:
        for name, key, value in self.pairs(node, "skus"):
            path = f"skus.{name}"
            held = {part: inner for part, _, inner in self.pairs(value, path, _SKU)}
            shape, price = (self.scalar(held.get(part), f"{path}.{part}") for part in _SKU)
            if shape is None:
                self.wrong(key, path, "'shape' is missing", "name a node or GPU of the catalogue, such as dgx-h100")
            else:
                yield name, Sku(shape, price)
