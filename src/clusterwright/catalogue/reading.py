"""A catalogue file's text → entries with the place of every key.

All scalars stay text (`1.30` is not 1.3); types come with the model. Anchors are refused: an entry must be readable on
its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from clusterwright.lib.errors import Place, Problem

MAX_BYTES: Final = 8 * 2**20
MAX_DEPTH: Final = 40

#: Sections of a catalogue file; `support` holds lists of its own.
SECTIONS: Final = ("gpus", "shapes", "nics", "models", "prices", "api_prices", "failures", "calibrations", "support")
SUPPORT_LISTS: Final = (
    "driver_branches",
    "fabric_manager",
    "firmware",
    "operators",
    "containerd",
    "skew",
    "kubernetes",
    "cuda",
    "nccl",
    "engines",
)
#: Kinds of entry: the sections, with those of `support` written `support.cuda`.
KINDS: Final = (*(s for s in SECTIONS if s != "support"), *(f"support.{name}" for name in SUPPORT_LISTS))


@dataclass(frozen=True)
class RawEntry:
    """One entry as written: its fields as text, lists and mappings, and where each stands."""

    kind: str
    name: str
    fields: Mapping[str, Any]
    place: Place
    places: Mapping[str, Place] = field(default_factory=dict)

    def place_of(self, path: tuple[str | int, ...]) -> Place:
        """Place of a field, or of its nearest parent that is written."""
        for length in range(len(path), 0, -1):
            found = self.places.get(".".join(str(p) for p in path[:length]))
            if found is not None:
                return found
        return self.place


def read_entries(text: str, file: str) -> tuple[list[RawEntry], list[Problem]]:
    """Entries of one catalogue file, and everything wrong with its form.

    Args:
        text: the file's content.
        file: its name, for messages.
    """
    problems: list[Problem] = []
    root = _compose(text, file, problems)
    if root is None:
        return [], problems
    entries: list[RawEntry] = []
    for section, key, value in _pairs(root, file, "", problems):
        if section not in SECTIONS:
            problems.append(_unknown(section, SECTIONS, _place(key, file), "section"))
        elif section == "support":
            for name, list_key, listed in _pairs(value, file, "support", problems):
                if name not in SUPPORT_LISTS:
                    problems.append(_unknown(name, SUPPORT_LISTS, _place(list_key, file), "list of support"))
                else:
                    entries += _entries(f"support.{name}", listed, file, problems)
        else:
            entries += _entries(section, value, file, problems)
    return entries, problems


def _compose(text: str, file: str, problems: list[Problem]) -> Node | None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        problems.append(Problem(Place(file), "", f"the file is larger than {MAX_BYTES // 2**20} MiB"))
        return None
    try:
        root: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        problems.append(Problem(place, "", f"not YAML: {error.problem or 'unreadable'}"))
        return None
    except (YAMLError, RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        problems.append(Problem(Place(file), "", f"not YAML: {reason}"))
        return None
    if root is None:
        problems.append(Problem(Place(file), "", "the file is empty", f"sections are {', '.join(SECTIONS)}"))
    return root


def _entries(kind: str, node: Node, file: str, problems: list[Problem]) -> list[RawEntry]:
    entries = []
    for name, key, value in _pairs(node, file, kind, problems):
        places: dict[str, Place] = {}
        fields = _plain(value, file, "", places, problems, 0)
        if isinstance(fields, dict):
            entries.append(RawEntry(kind, name, fields, _place(key, file), places))
        else:
            problems.append(Problem(_place(key, file), f"{kind}.{name}", "an entry is a mapping of fields"))
    return entries


def _pairs(node: Node, file: str, path: str, problems: list[Problem]) -> list[tuple[str, Node, Node]]:
    if node.anchor is not None:
        problems.append(Problem(_place(node, file), path, f"anchor '&{node.anchor}': a catalogue file has none"))
        return []
    if not isinstance(node, MappingNode):
        problems.append(Problem(_place(node, file), path, "this wants a mapping (name: value)"))
        return []
    pairs: list[tuple[str, Node, Node]] = []
    seen: dict[str, Place] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode) or not key.value:
            problems.append(Problem(_place(key, file), path, "a key is plain text"))
            continue
        if key.value in seen:
            message = f"'{key.value}' is written twice, first at line {seen[key.value].line}"
            problems.append(Problem(_place(key, file), path, message))
            continue
        seen[key.value] = _place(key, file)
        pairs.append((key.value, key, value))
    return pairs


def _plain(node: Node, file: str, path: str, places: dict[str, Place], problems: list[Problem], depth: int) -> Any:
    if path:
        places[path] = _place(node, file)
    if depth > MAX_DEPTH:
        problems.append(Problem(_place(node, file), path, "nested too deeply"))
        return None
    if isinstance(node, MappingNode):
        fields: dict[str, Any] = {}
        for name, key, value in _pairs(node, file, path, problems):
            inner = f"{path}.{name}" if path else name
            fields[name] = _plain(value, file, inner, places, problems, depth + 1)
            places[inner] = _place(key, file)
        return fields
    if node.anchor is not None:
        problems.append(Problem(_place(node, file), path, f"anchor '&{node.anchor}': a catalogue file has none"))
        return None
    if isinstance(node, SequenceNode):
        return [
            _plain(item, file, f"{path}.{number}", places, problems, depth + 1)
            for number, item in enumerate(node.value)
        ]
    return node.value


def _place(node: Node, file: str) -> Place:
    return Place(file, node.start_mark.line + 1, node.start_mark.column + 1)


def _unknown(name: str, choices: tuple[str, ...], place: Place, what: str) -> Problem:
    return Problem(place, name, f"unknown {what} '{name}'", f"choices are {', '.join(choices)}")


def read_mapping(text: str, file: str, section: str) -> tuple[list[RawEntry], list[Problem]]:
    """Entries of a file that holds one section only, and everything wrong with its form."""
    problems: list[Problem] = []
    root = _compose(text, file, problems)
    entries: list[RawEntry] = []
    for name, key, value in _pairs(root, file, "", problems) if root is not None else ():
        if name == section:
            entries += _entries(section, value, file, problems)
        else:
            problems.append(_unknown(name, (section,), _place(key, file), "section"))
    return entries, problems
