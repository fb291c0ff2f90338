"""Whole documents (JSON, YAML, XML) with the faults that usual parsers pass over: duplicate keys, depth, not-a-number.

Every function raises Refused with the place when the document cannot be read, and ends in time linear in its size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final
from xml.etree import ElementTree
from xml.parsers import expat

from clusterwright.readers.plain_yaml import load_plain_yaml
from clusterwright.readers.refusing import Refused

#: Deepest nesting that is read; nothing that a tool writes comes near it.
DEEPEST: Final = 100
#: Characters that the full YAML parser may take, about a second's work; programs print plain YAML, which needs it not.
_MOST_UNUSUAL: Final = 64 * 1024
_ALIAS: Final = re.compile(r"(?:^|[\s\[,{])\*[\w-]+")
_MOST_ALIASED: Final = 100_000


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that stands twice in one object; the values are kept in order."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON document with its duplicate keys; the object itself holds the *first* value of each."""

    value: Any
    duplicates: tuple[Duplicate, ...]


def load_json(text: str, *, first_line: int = 1) -> Json:
    """Read one JSON document. NaN and Infinity become None.

    Args:
        first_line: line at which the text begins in its file.
    """
    _guard_depth(text, first_line)
    duplicates: list[Duplicate] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        twice: dict[str, list[Any]] = {}
        for key, item in found:
            if key in value:
                twice.setdefault(key, [value[key]]).append(item)
            else:
                value[key] = item
        duplicates.extend(Duplicate(key, tuple(items)) for key, items in twice.items())
        return value

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip())
        what = (
            "the JSON ends in the middle" if cut or error.msg.startswith("Unterminated") else f"not JSON: {error.msg}"
        )
        raise Refused(what, first_line + error.lineno - 1, text[error.pos : error.pos + 60]) from None
    except ValueError as error:  # an integer of thousands of digits
        raise Refused(f"not JSON: {error}", first_line) from None
    return Json(value, tuple(duplicates))


def find_json(text: str) -> tuple[int, int] | None:
    """Offsets of the first JSON object or array that begins at the start of a line, up to the end of the text.

    For tools whose JSON stands after warnings of a launcher. None when no line begins one.
    """
    match = re.search(r"^[ \t]*([\[{])(?=\s*(?:[\"{\[\]}]|-?\d|true|false|null|$))", text, re.MULTILINE)
    return (match.start(1), len(text)) if match else None


class Patience:
    """How much text of an output may still go through the full YAML parser, which reads some 0.1 MB/s."""

    def __init__(self) -> None:
        self._left = _MOST_UNUSUAL

    def spend(self, size: int) -> None:
        """Take the size of a text; Refused when it is more than what is left."""
        if size > self._left:
            raise Refused(
                f"more than {_MOST_UNUSUAL // 1024} KiB of YAML with anchors, tags, folded or nested flow values; "
                "print it as JSON"
            )
        self._left -= size


def load_yaml(text: str, patience: Patience | None = None) -> list[Any]:
    """Read every document of a YAML stream as plain values; templates and endless aliases are refused.

    Args:
        patience: shared by the texts of one output.
    """
    template = re.search(r"\{\{[^{}\n]*\}\}", text)
    if template is not None:
        line = text.count("\n", 0, template.start()) + 1
        raise Refused("this is a template, not YAML; render it first (helm template)", line, template.group())
    if (plain := load_plain_yaml(text)) is not None:
        return plain
    (patience or Patience()).spend(len(text))
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    _guard_yaml(text)
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = False
    try:
        documents = list(yaml.load_all(StringIO(text)))
    except MarkedYAMLError as error:
        mark = error.problem_mark
        problem = str(error.problem or error).split("\n")[0]
        raise Refused(f"not YAML: {problem}", mark.line + 1 if mark else 0) from None
    except (YAMLError, ValueError, RecursionError, AttributeError, TypeError, KeyError, OverflowError) as error:
        raise Refused(f"not YAML: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None
    _guard_aliases(documents, text)
    return documents


def _guard_aliases(documents: list[Any], text: str) -> None:
    """Refuse a value that contains itself, or that its aliases make larger than its text could be."""
    if not _ALIAS.search(text):
        return
    left = len(text) + _MOST_ALIASED
    waiting: list[Any] = [documents]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
            left -= len(value)
        if left < 0:
            raise Refused("YAML aliases that contain themselves or repeat without end")


def _guard_yaml(text: str) -> None:
    """Refuse nesting or aliases that would make a small text a huge value."""
    if len(_ALIAS.findall(text)) > 1000:
        raise Refused("more than 1,000 YAML aliases")
    if len(re.findall(r"(?:^|[\s\[,{:-])&[\w-]+", text)) > 1000:
        raise Refused("more than 1,000 YAML anchors")
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > DEEPEST:
            raise Refused(f"nested deeper than {DEEPEST}", text.count("\n", 0, bracket.start()) + 1)
    for line, body in enumerate(text.split("\n"), 1):
        if len(body) - len(body.lstrip(" ")) > 8 * DEEPEST or re.match(r"\s*(?:- ){50}", body):
            raise Refused(f"nested deeper than {DEEPEST}", line)


def load_xml(text: str) -> ElementTree.Element:
    """Read an XML document; entities and external references are refused."""
    parser = expat.ParserCreate()
    depth = 0

    def entity(*_: object) -> None:
        raise Refused("declares XML entities, which are not read", parser.CurrentLineNumber)

    builder = ElementTree.TreeBuilder()

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise Refused(f"nested deeper than {DEEPEST}", parser.CurrentLineNumber)
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.buffer_text = True
    parser.EntityDeclHandler = entity
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    body = re.sub(r"^\s*<\?xml[^>]*\?>", lambda m: " " * len(m.group()), text, count=1)
    try:
        parser.Parse(body.encode("utf-8", "replace").strip(b"\x00"), True)
    except expat.ExpatError as error:
        cut = "no element found" in str(error) or "unclosed" in str(error)
        reason = "the XML ends in the middle" if cut else f"not XML: {expat.ErrorString(error.code)}"
        raise Refused(reason, error.lineno) from None
    return builder.close()


def _guard_depth(text: str, first_line: int) -> None:
    depth = 0
    for token in _tokens(text):
        depth += 1 if token.group() in "[{" else -1
        if depth > DEEPEST:
            raise Refused(f"nested deeper than {DEEPEST}", first_line + text.count("\n", 0, token.start()))


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Brackets of a JSON text outside its strings."""
    for match in re.finditer(r'"(?:[^"\\]|\\.)*+"?+|[\[\]{}]', text, re.DOTALL):
        if match.group()[0] != '"':
            yield match
