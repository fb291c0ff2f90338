"""YAML as programs write it, read some thirty times as fast as a full parser does.

Block mappings and sequences, plain and quoted scalars (also folded over lines), literal blocks, empty or JSON-like flow
values, documents between `---`. Everything else (anchors, tags, tabs in the indentation, folded blocks, other flow
values, timestamps, faults of any kind) is left to the full parser: the answer is then None.

Source: YAML 1.2.2, core schema; what kubectl, Helm and Kueue print.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from clusterwright.readers.refusing import Refused

#: Deepest nesting of blocks; Kubernetes objects stay below 20.
_DEEPEST: Final = 100
_LONGEST_KEY: Final = 1_000
#: Most lines of one quoted scalar.
_MOST_FOLDS: Final = 200
_ODD: Final = re.compile(r"[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_SEPARATOR: Final = re.compile(r"^--- *$", re.MULTILINE)
#: What a plain scalar begins with when it means nothing but itself.
_LETTER: Final = re.compile(r"[A-Za-z_/\u00c0-\u024f]")
_WHOLE: Final = re.compile(r"-?(?:0|[1-9]\d{0,18})")
_FRACTION: Final = re.compile(r"-?(?:0|[1-9]\d{0,15})\.\d{1,16}")
#: Numbers with a unit, addresses, versions, flags, paths: what begins with a digit, a dash or a dot and is no number.
_WORD: Final = re.compile(
    r"(?:(?!0[xob])\d{1,18}(?:[A-DF-Za-df-z]|\.\d{1,18}[A-DF-Za-df-z.-])|--?[A-Za-z]|\.\.?/)[\w./@%~-]*|\d{5,18}-[\w.-]+"
    r"|\d{1,18}(?:/\d{1,18})? [A-Za-z][^:]*"
)
_SPECIAL: Final[dict[str, bool | None]] = {
    "null": None, "Null": None, "NULL": None, "~": None, "true": True, "True": True, "TRUE": True, "false": False,
    "False": False, "FALSE": False,
}  # fmt: skip
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_SINGLE: Final = re.compile(r"'((?:[^']|'')*+)'")
_ESCAPES: Final = re.compile(r'(?:[^\\]|\\(?:["\\/bfnrt]|u(?![dD][89abAB])[0-9a-fA-F]{4}))*+')
_BLOCK: Final = re.compile(r"\|(-?)(?: +#.*)?$")
_COMMENT: Final = re.compile(r" +(?:#.*)?")
_MARKS: Final = re.compile("[\\[\\]{}\"'#&*!|>%@`?\\\\\t]")
_NAME: Final = re.compile(r"(?!(?:true|false|null)$)[a-z][\w./-]{0,200}")
_FLOW_ENDS: Final = {"[": "]", "{": "}"}


class _Unusual(Exception):
    """Something that the full parser has to judge."""


def load_plain_yaml(text: str) -> list[Any] | None:
    """The documents of a text, None when the full parser has to read it.

    Raises:
        Refused: when a key stands twice in one mapping.
    """
    if _ODD.search(text):
        return None
    try:
        return [_Block(part, first).document() for part, first in _split(text)]
    except _Unusual:
        return None


def _split(text: str) -> list[tuple[str, int]]:
    """(text, line at which it begins) of every document."""
    parts: list[tuple[str, int]] = []
    first = 1
    for part in _SEPARATOR.split(text):
        if part.startswith(("---", "%")) or "\n---" in part or "\n..." in part or "\n%" in part:
            raise _Unusual
        parts.append((part, first))
        first += part.count("\n")
    return parts[1:] if _is_void(parts[0][0]) else parts


def _is_void(text: str) -> bool:
    return all(not line.strip(" ") or line.lstrip(" ").startswith("#") for line in text.split("\n"))


class _Block:
    """The lines of one document, read once from top to bottom."""

    def __init__(self, text: str, first: int) -> None:
        self._first = first
        self._lines = text.split("\n")
        self._at = 0
        self._depth = 0

    def document(self) -> Any:
        """Its value."""
        self._skip()
        if self._at >= len(self._lines):
            return None
        value = self._node(self._indent())
        self._skip()
        if self._at < len(self._lines):
            raise _Unusual
        return value

    def _skip(self) -> None:
        """Go to the next line that is neither blank nor a comment."""
        lines = self._lines
        while self._at < len(lines):
            text = lines[self._at].lstrip(" ")
            if text and text[0] != "#":
                if text[0] == "\t":
                    raise _Unusual
                return
            self._at += 1

    def _indent(self) -> int:
        line = self._lines[self._at]
        return len(line) - len(line.lstrip(" "))

    def _node(self, indent: int) -> Any:
        """The mapping or sequence whose first line is the current one."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Unusual
        content = self._lines[self._at][indent:]
        value = self._sequence(indent) if content == "-" or content.startswith("- ") else self._mapping(indent)
        self._depth -= 1
        return value

    def _sequence(self, indent: int) -> list[Any]:
        items: list[Any] = []
        lines = self._lines
        while self._at < len(lines) and self._indent() == indent:
            line = lines[self._at]
            if line[indent:] != "-" and not line.startswith("- ", indent):
                break
            rest = line[indent + 1 :]
            content = rest.lstrip(" ")
            if not content or content[0] == "#":
                items.append(self._below(indent))
            elif content == "-" or content.startswith("- ") or _key(content) is not None:
                inner = indent + 1 + len(rest) - len(content)
                lines[self._at] = " " * inner + content
                items.append(self._node(inner))
            else:
                items.append(self._scalar(content, indent))
            self._skip()
        self._ends(indent)
        return items

    def _mapping(self, indent: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines = self._lines
        while self._at < len(lines) and self._indent() == indent:
            line = lines[self._at]
            found = _key(line[indent:])
            if found is None:
                raise _Unusual
            key, content = found
            if key in values:
                raise Refused("not YAML: found duplicate key", self._first + self._at, line)
            if content and content[0] != "#":
                values[key] = self._scalar(content, indent)
            else:
                values[key] = self._below(indent, in_mapping=True)
            self._skip()
        self._ends(indent)
        return values

    def _ends(self, indent: int) -> None:
        """Whatever follows a block belongs to one further out."""
        if self._at < len(self._lines) and self._indent() > indent:
            raise _Unusual

    def _below(self, indent: int, *, in_mapping: bool = False) -> Any:
        """What stands on the lines below a key or a dash; None when nothing does."""
        self._at += 1
        self._skip()
        if self._at >= len(self._lines):
            return None
        inner = self._indent()
        line = self._lines[self._at]
        if inner > indent:
            return self._node(inner)
        dash = line[inner:] == "-" or line.startswith("- ", inner)
        return self._node(inner) if in_mapping and inner == indent and dash else None

    def _scalar(self, content: str, indent: int) -> Any:
        """The value that begins on the current line behind a key or a dash."""
        first = content[0]
        if first in "\"'":
            return self._quoted(content, indent)
        if first == "|":
            return self._literal(content, indent)
        if first in _FLOW_ENDS:
            self._at += 1
            return _flow(content)
        return self._plain(content, indent)

    def _plain(self, content: str, indent: int) -> Any:
        text = _uncommented(content)
        self._at += 1
        parts = [text]
        while self._at < len(self._lines):
            line = self._lines[self._at]
            stripped = line.strip(" ")
            if not stripped:
                break
            if len(line) - len(line.lstrip(" ")) <= indent or stripped[0] == "#":
                break
            if len(text) != len(content) or "\t" in line:
                raise _Unusual
            parts.append(_uncommented(stripped, whole=True))
            self._at += 1
        self._no_more(indent)
        return " ".join(parts) if len(parts) > 1 and _value(text, folded=True) else _value(text)

    def _no_more(self, indent: int) -> None:
        """A scalar that goes on after a blank line or a comment is left to the full parser."""
        at = self._at
        self._skip()
        if self._at > at and self._at < len(self._lines) and self._indent() > indent:
            raise _Unusual

    def _quoted(self, content: str, indent: int) -> str:
        form = _DOUBLE if content[0] == '"' else _SINGLE
        parts, folds = [content], 0
        while (found := form.match(content)) is None:
            self._at += 1
            line = self._lines[self._at] if self._at < len(self._lines) else ""
            stripped = line.strip(" ")
            if not stripped or "\t" in line or len(line) - len(line.lstrip(" ")) <= indent:
                raise _Unusual
            if parts[-1].endswith((" ", "\\")):
                raise _Unusual
            parts.append(stripped)
            if (folds := folds + 1) > _MOST_FOLDS:
                raise _Unusual
            if content[0] in stripped:
                content = " ".join(parts)
                parts = [content]
        if content[found.end() :] and not _COMMENT.fullmatch(content, found.end()):
            raise _Unusual
        self._at += 1
        inside = found[1]
        if content[0] == "'":
            return inside.replace("''", "'")
        if "\\" not in inside:
            return inside
        if not _ESCAPES.fullmatch(inside):
            raise _Unusual
        return str(json.loads(found.group().replace("\t", "\\t")))

    def _literal(self, content: str, indent: int) -> str:
        header = _BLOCK.match(content)
        if header is None:
            raise _Unusual
        self._at += 1
        held: list[str] = []
        inner = -1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            text = line.lstrip(" ")
            spaces = len(line) - len(text)
            if not text:
                if inner < 0 and spaces:
                    raise _Unusual
                held.append(line[inner:] if 0 <= inner < spaces else "")
            elif inner < 0 and spaces > indent:
                inner = spaces
                held.append(text)
            elif spaces >= inner >= 0:
                held.append(line[inner:])
            else:
                break
            self._at += 1
        if inner < 0:
            raise _Unusual
        body = "\n".join(held)
        torn = self._at >= len(self._lines) and held[-1] != ""
        stripped = body.rstrip("\n")
        return stripped if header[1] == "-" or torn else stripped + "\n"


def _key(content: str) -> tuple[str, str] | None:
    """(key, what stands behind its colon) of a line that is a pair, None for any other."""
    first = content[0]
    if first in "\"'":
        form = _DOUBLE if first == '"' else _SINGLE
        found = form.match(content)
        if found is None or not content.startswith(":", found.end()):
            return None
        inside, rest = found[1], content[found.end() + 1 :]
        if "\\" in inside or "''" in inside or (rest and rest[0] != " ") or len(inside) > _LONGEST_KEY:
            raise _Unusual
        return inside, rest.strip(" ")
    if first in "[{|>":
        return None
    end = content.find(": ")
    if end < 0:
        if content.rstrip(" ")[-1:] != ":":
            return None
        end = content.rindex(":")
    key = content[:end]
    if "#" in key and " #" in key:
        return None
    if len(key) > _LONGEST_KEY or key in _SPECIAL or key[-1:] == " " or "\t" in key:
        raise _Unusual
    if not _LETTER.match(key) and not _WORD.fullmatch(key) and key != ".":
        raise _Unusual
    return key, content[end + 1 :].strip(" ")


def _uncommented(content: str, *, whole: bool = False) -> str:
    """A plain scalar without the comment behind it; `whole` when there may be none."""
    at = content.find(" #")
    text = (content[:at] if at >= 0 else content).rstrip(" ")
    if ": " in text or text[-1:] == ":" or "\t" in text or (whole and at >= 0):
        raise _Unusual
    return text


def _value(text: str, *, folded: bool = False) -> Any:
    """The value of a plain scalar; `folded` asks only whether one that goes on is text."""
    if _LETTER.match(text) or text == "~":
        if folded:
            return True
        return _SPECIAL.get(text, text)
    if folded:
        raise _Unusual
    if _WHOLE.fullmatch(text) and text != "-0":
        return int(text)
    if _FRACTION.fullmatch(text):
        return float(text)
    if _WORD.fullmatch(text):
        return text
    raise _Unusual


def _flow(content: str) -> Any:
    """A flow value that is JSON as well, or has plain scalars and nothing inside."""
    end = content.rfind(_FLOW_ENDS[content[0]])
    if end < 0 or (end + 1 < len(content) and not _COMMENT.fullmatch(content, end + 1)):
        raise _Unusual
    content = content[: end + 1]
    if content in ("{}", "[]"):
        return {} if content == "{}" else []
    if not _MARKS.search(content, 1, end):
        return _row(content)
    if "\\" in content or "\t" in content:
        raise _Unusual
    try:
        return json.loads(content, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _Unusual from None


def _row(content: str) -> Any:
    """A flow value of plain scalars alone."""
    parts = [part.strip(" ") for part in content[1:-1].split(",")]
    if content[0] == "[":
        if any(":" in part or not part for part in parts):
            raise _Unusual
        return [_value(part) for part in parts]
    pairs = [part.split(": ") for part in parts]
    if any(len(pair) != 2 or ":" in "".join(pair) or not _NAME.fullmatch(pair[0]) for pair in pairs):
        raise _Unusual
    return _unique([(key, _value(value.strip(" "))) for key, value in pairs])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Unusual
    return value


def _refuse(_: str) -> None:
    raise _Unusual
