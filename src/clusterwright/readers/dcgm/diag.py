"""Any output of `dcgmi diag`: JSON, table, the preflight log that wraps it, or a piece that a report quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import LARGEST_DOCUMENT, Line, Source
from clusterwright.readers.dcgm.diag_excerpts import EXCERPT, read_excerpt
from clusterwright.readers.dcgm.diag_json import read_json
from clusterwright.readers.dcgm.diag_table import HEADLESS, read_table
from clusterwright.readers.dcgm.nvlinks import links_in
from clusterwright.readers.dcgm.preflight import MARK, read_preflight
from clusterwright.readers.documents import find_json
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_TABLE: Final = re.compile(r"^[ \t]*\|[ \t]*Diagnostic[ \t]*\|[ \t]*Result[ \t]*+\|?[ \t]*+$", re.MULTILINE)
_ROOT: Final = re.compile(r'"(DCGM(?: GPU)? Diagnostic)"\s*:')
_ANY_ROOT: Final = re.compile(r'"(DCGM [\w ]{0,30}Diag[\w ]{0,20})"\s*:')
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?+|[{}]', re.DOTALL)
_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?+|[{}\[\]]', re.DOTALL)
#: Where somebody put dots in place of an object of a list.
_ELIDED: Final = re.compile(r'\{\s*"?\.{3}"?\s*\}\s*,|,\s*\{\s*"?\.{3}"?\s*\}|^[ \t]*"?\.{3}"?,?[ \t]*$', re.MULTILINE)
_MOST_DOCUMENTS: Final = 10_000
_FAILED: Final = re.compile(r"^(?:Error: (?:Unable to complete diagnostic|Diagnostic c)[^\n]*)", re.MULTILINE)


def recognise(head: Head) -> int:
    """How sure this is a diagnosis by DCGM."""
    if _ROOT.search(head.text) or _TABLE.search(head.text):
        return 98
    if HEADLESS.search(head.text):
        return 88
    if f'"{MARK}"' in head.text or _ANY_ROOT.search(head.text):
        return 90
    if '"test_categories"' in head.text and '"tests"' in head.text:
        return 70
    if _FAILED.search(head.text):
        return 85
    if EXCERPT.search(head.text):
        return 55
    return 0


def read(source: Source) -> Sequence[Run]:
    """Every run; a part printed by another host (a launcher's prefix) is a run of its own."""
    groups = _by_prefix(source)
    runs: list[Run] = []
    refused: Refused | None = None
    for lines in groups:
        runs.extend(links_in(lines))
        try:
            runs.extend(_read_group(lines))
        except Refused as error:
            refused = refused or error
    if not runs and refused is not None:
        raise refused
    return runs


def _by_prefix(source: Source) -> list[list[Line]]:
    groups: dict[str, list[Line]] = {}
    size = 0
    for line in source.lines():
        size += len(line.text) + 1
        if size > LARGEST_DOCUMENT:
            raise Refused(f"larger than {LARGEST_DOCUMENT // 2**20} MiB; split it")
        groups.setdefault(line.prefix, []).append(line)
    return list(groups.values())


def _read_group(lines: list[Line]) -> list[Run]:
    text = "\n".join(line.text for line in lines)
    if f'"{MARK}"' in text:
        return read_preflight(lines)
    if _ROOT.search(text) or _ANY_ROOT.search(text) or '"test_categories"' in text:
        place = find_json(text)
        if place is not None:
            return _read_documents(text, place[0], lines)
    if _TABLE.search(text) or HEADLESS.search(text):
        runs = [run for run in read_table(lines) if any(o.name == "test" for o in run.observations)]
        if runs:
            return runs
        raise Refused("the table holds no result of a test: nothing was measured", lines[0].number)
    if failed := _FAILED.search(text):
        raise Refused("the diagnosis did not run", lines[text.count("\n", 0, failed.start())].number, failed.group())
    excerpt = read_excerpt(text)
    if excerpt is not None:
        return [excerpt]
    raise Refused("neither a table nor the JSON of a diagnosis", lines[0].number if lines else 0, text[:200])


def _read_documents(text: str, start: int, lines: list[Line]) -> list[Run]:
    """Each JSON document that begins and ends at the margin; a launcher or a loop may print several."""
    runs: list[Run] = []
    refused: Refused | None = None
    for begin, end in _spans(text, start):
        document, cut = text[begin:end], False
        document, elided = _ELIDED.subn(lambda match: "\n" * match.group().count("\n"), document)
        if not document.rstrip().endswith("}") or _depth(document):
            document, cut = _closed(document), True
        lack = "the end of the JSON" if cut else "parts of the JSON that were left out" if elided else ""
        try:
            runs.extend(read_json(document, lines[text.count("\n", 0, begin)].number, lack=lack))
        except Refused as error:
            refused = refused or error
    if not runs and refused is not None:
        raise refused
    return runs


def _spans(text: str, start: int) -> list[tuple[int, int]]:
    """(begin, end) of each object at the top level from `start`; the last one may lack its end."""
    spans: list[tuple[int, int]] = []
    depth, begin = 0, start
    for token in _TOKEN.finditer(text, start):
        mark = token.group()[0]
        if mark == "{":
            begin = token.start() if depth == 0 else begin
            depth += 1
        elif mark == "}" and depth:
            depth -= 1
            if depth == 0:
                spans.append((begin, token.end()))
    if depth:
        spans.append((begin, len(text)))
    return spans[:_MOST_DOCUMENTS]


def _depth(text: str) -> int:
    """Braces that are left open."""
    return sum({"{": 1, "}": -1}.get(token.group()[0], 0) for token in _TOKEN.finditer(text))


def _closed(text: str) -> str:
    """A document that was cut, up to the last bracket that closes, with the missing ones added."""
    stack: list[str] = []
    end, left = 0, ""
    for token in _BRACKET.finditer(text):
        mark = token.group()[0]
        if mark in "{[":
            stack.append("}" if mark == "{" else "]")
        elif mark in "}]" and stack:
            stack.pop()
            end, left = token.end(), "".join(reversed(stack)) if len(stack) < 100 else ""
    return text[:end] + left


READER: Final = Reader("dcgm-diag", "dcgmi diag: JSON of DCGM 2 to 4, tables, preflight logs", recognise, read)
