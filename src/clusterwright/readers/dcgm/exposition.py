"""Lines of the Prometheus text format and of OpenMetrics: comments, samples, labels with escapes, timestamps.

Source: Prometheus "Exposition formats", text format 0.0.4; OpenMetrics 1.0.0 (`# EOF`, `# UNIT`, exemplars).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Final

from clusterwright.model.observations import Labels

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*+")
_LABEL: Final = re.compile(r'\s*+([a-zA-Z_][a-zA-Z0-9_]*+)\s*+=\s*+"((?:[^"\\\n]|\\.)*+)"\s*+(,|$)')
_ELIDED: Final = re.compile(r"\s*+(?:\.{2,}|…)\s*+(,|$)")
_CLOSE: Final = re.compile(r'(?:[^"}]|"(?:[^"\\]|\\.)*+")*+\}')
_ESCAPES: Final = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
#: Characters of label sets that are remembered; those of 1,000 GPUs take about 300,000.
_REMEMBERED: Final = 8 * 1024 * 1024
_LONGEST_NAME: Final = 200
_LONGEST_LABELS: Final = 16 * 1024
#: Longer than any number that is read.
_LONGEST_WORD: Final = 100
#: Most labels that one sample has; the exporter writes about 20.
_MOST_LABELS: Final = 200


@dataclass(frozen=True, slots=True)
class Comment:
    """`# HELP`, `# TYPE` or `# UNIT` of a metric; `kind` "EOF" ends an OpenMetrics document."""

    kind: str
    name: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample.

    Args:
        elided: whether labels were left out with `...`.
        value: as written, "" when the line has none.
        timestamp: as written (milliseconds; seconds in OpenMetrics), "" when none.
    """

    name: str
    labels: Labels
    elided: bool
    value: str
    timestamp: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """A line that looks like a sample and is none; `open` when its labels do not end on this line."""

    why: str
    open: bool = False


class Exposition:
    """Parser of lines; remembers the label sets, which repeat from metric to metric."""

    def __init__(self) -> None:
        self._labels: dict[str, tuple[Labels, bool] | None] = {}
        self._remembered = 0

    def parse(self, text: str) -> Comment | Sample | Broken | None:
        """What the line is; None for a blank line, an ordinary comment or a line of something else."""
        line = text.strip()
        if not line:
            return None
        if line[0] == "#":
            return _comment(line)
        name = _NAME.match(line)
        if name is None:
            return None
        if name.end() > _LONGEST_NAME:
            return Broken(f"a name of more than {_LONGEST_NAME} characters")
        rest = line[name.end() :]
        if rest[:1] == "{":
            return self._labelled(sys.intern(name.group()), rest)
        if rest[:1] in (" ", "\t"):
            return _bare(name.group(), rest)
        return None

    def _labelled(self, name: str, rest: str) -> Sample | Broken:
        end = rest.rfind("}")
        inside = rest[1:end] if end > 0 else ""
        if inside not in self._labels:  # a set of labels that was seen needs no search for its end
            close = _CLOSE.match(rest, 1)
            if close is None:
                return Broken("the labels do not end on this line", open=True)
            end = close.end() - 1
            inside = rest[1:end]
            if inside not in self._labels:
                if len(inside) > _LONGEST_LABELS:
                    return Broken(f"labels of more than {_LONGEST_LABELS:,} characters")
                self._remembered += len(inside)
                if self._remembered > _REMEMBERED:
                    self._labels.clear()
                    self._remembered = len(inside)
                self._labels[inside] = parse_labels(inside)
        labels = self._labels[inside]
        if labels is None:
            return Broken('the labels are not name="value" pairs')
        words = rest[end + 1 :].split(" # ", 1)[0].split()
        if len(words) > 2:
            return Broken("more than a value and a timestamp")
        value = words[0][:_LONGEST_WORD] if words else ""
        return Sample(name, labels[0], labels[1], value, words[1][:_LONGEST_WORD] if len(words) > 1 else "")


def parse_labels(text: str) -> tuple[Labels, bool] | None:
    """(labels, whether some were left out with `...`); None when the text is none."""
    labels: list[tuple[str, str]] = []
    elided = False
    position = 0
    if not text.strip():
        return (), False
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is not None:
            labels.append((match[1], _unescape(match[2])))
        else:
            match = _ELIDED.match(text, position)
            if match is None:
                return (tuple(labels), elided) if not text[position:].strip() else None
            elided = True
        position = match.end()
        if len(labels) > _MOST_LABELS:
            return None
    return tuple(labels), elided


def _comment(line: str) -> Comment | None:
    words = line[1:].split(None, 2)
    if words and words[0] == "EOF":
        return Comment("EOF")
    if len(words) < 2 or words[0] not in ("HELP", "TYPE", "UNIT"):
        return None
    return Comment(words[0], words[1], words[2] if len(words) > 2 else "")


def _bare(name: str, rest: str) -> Sample | None:
    """A sample without labels, which only a number makes one."""
    words = rest.split(" # ", 1)[0].split()
    if len(words) not in (1, 2) or not re.fullmatch(r"[+-]?(?:\d[\d.eE+-]{0,60}|\.\d{1,40}|NaN|Inf)", words[0]):
        return None
    return Sample(sys.intern(name), (), False, words[0], words[1][:_LONGEST_WORD] if len(words) > 1 else "")


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return re.sub(r"\\.", lambda match: _ESCAPES.get(match.group(), match.group()), text)
