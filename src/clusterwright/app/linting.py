"""Linting thresholds: those of an architecture file through its review, those of a table against its systems."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from clusterwright.app.loading import load_catalogue
from clusterwright.app.reviewing import Reviewed, review_files
from clusterwright.files.inputs import read_source
from clusterwright.judging.floor_files import parse_floors
from clusterwright.judging.floors import Linted, lint_floor
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.findings import Finding, Severity
from clusterwright.model.sources import Source
from clusterwright.report.floors import floors_values, render_floors

#: Rules of the review that are about thresholds themselves.
_RULES: Final = (
    "floor-", "limit-", "threshold-", "requirement-", "scope-above-pool", "nodes-left-out", "count-contradicts-pool",
)  # fmt: skip


@dataclass(frozen=True)
class LintResult:
    """What was found in one file.

    Args:
        linted: rows of a table of thresholds.
        findings: of the review of an architecture, about its requirements.
        requirements: how many the architecture has.
    """

    path: str
    linted: tuple[Linted, ...] = ()
    findings: tuple[Finding, ...] = ()
    requirements: int = 0

    @property
    def exit_code(self) -> int:
        """1 when an error stands, 3 when something could not be decided or there is no threshold, else 0."""
        errors = [r for one in self.linted for r in one.remarks if r.severity is Severity.ERROR]
        found = [(r.undecided) for r in errors]
        found += [f.undecided for f in self.findings if f.severity is Severity.ERROR]
        if not all(found):
            return 1
        return 3 if found or not (self.linted or self.requirements) else 0


def lint_file(path: str, catalogues: Sequence[str] = (), *, today: datetime.date) -> LintResult:
    """Lint the thresholds of an architecture file, or of a table (YAML, JSON, CSV).

    Raises:
        InvalidInput: when it cannot be read, with every problem and its place.
    """
    source = read_source(path)
    if _is_architecture(source.text):
        return _lint_architecture(path, review_files([path], (), catalogues, today=today, stage="accept"))
    rows = _csv_rows(source) if _is_csv(source) else _yaml_rows(source)
    floors = parse_floors(rows, load_catalogue(catalogues))
    return LintResult(path, linted=tuple(lint_floor(floor) for floor in floors))


def lint_row(fields: Mapping[str, str], catalogues: Sequence[str] = ()) -> LintResult:
    """Lint one threshold that was given on the command line."""
    rows = [(fields, Place("command line"))]
    return LintResult("command line", tuple(lint_floor(f) for f in parse_floors(rows, load_catalogue(catalogues))))


def describe_lint(result: LintResult, width: int = 120) -> str:
    """The result as text."""
    if result.linted:
        return render_floors(result.linted, width)
    if not result.requirements:
        return f"{result.path}: holds no requirement: nothing would be accepted, and nothing refused"
    head = f"{result.path}: {result.requirements} requirements, {len(result.findings)} findings about them"
    lines = [head]
    for f in result.findings:
        word = "undecided" if f.undecided else f.severity.word
        lines += [f"{f.place}: {word}: {f.message} [{f.rule}]", f"    → {f.action}"]
    return "\n".join(lines)


def values_of_lint(result: LintResult) -> dict[str, Any]:
    """The result as plain values."""
    return {
        "file": result.path,
        "thresholds": floors_values(result.linted),
        "requirements": result.requirements,
        "findings": [
            {
                "rule": f.rule,
                "severity": f.severity.word,
                "undecided": f.undecided,
                "path": f.path,
                "line": f.place.line,
                "message": f.message,
                "action": f.action,
            }
            for f in result.findings
        ],
    }


def _lint_architecture(path: str, reviewed: Reviewed) -> LintResult:
    acceptance = reviewed.document.architecture.acceptance
    found = tuple(f for f in reviewed.review.findings if f.rule.startswith(_RULES) and f.path.startswith("acceptance"))
    return LintResult(path, findings=found, requirements=len(acceptance.requirements) if acceptance else 0)


def _is_architecture(text: str) -> bool:
    return any(line.startswith(("apiVersion:", '"apiVersion"', "acceptance:", "pools:")) for line in text.split("\n"))


def _is_csv(source: Source) -> bool:
    first = next((line for line in source.text.split("\n") if line.strip()), "")
    return source.name.endswith(".csv") or (
        "," in first and not first.lstrip().startswith(("-", "{", "[", "#")) and ": " not in first
    )


def _csv_rows(source: Source) -> list[tuple[Mapping[str, Any], Place]]:
    reader = csv.DictReader(io.StringIO(source.text))
    rows: list[tuple[Mapping[str, Any], Place]] = []
    try:
        for row in reader:
            place = Place(source.name, reader.line_num, 1)
            if None in row or any(v is None for v in row.values()):
                raise InvalidInput(Problem(place, "", "this row has not as many cells as the header"))
            rows.append(({k.strip(): v.strip() for k, v in row.items()}, place))
    except csv.Error as error:
        raise InvalidInput(Problem(Place(source.name, reader.line_num), "", f"not CSV: {error}")) from None
    return _some(rows, source)


def _yaml_rows(source: Source) -> list[tuple[Mapping[str, Any], Place]]:
    try:
        value = YAML(typ="rt", pure=True).load(source.text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = Place(source.name, mark.line + 1, mark.column + 1) if mark else Place(source.name)
        raise InvalidInput(Problem(place, "", f"not YAML: {error.problem or 'unreadable'}")) from None
    except (YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(Problem(Place(source.name), "", f"not YAML: {type(error).__name__}")) from None
    if isinstance(value, CommentedMap) and list(value) == ["thresholds"]:
        value = value["thresholds"]
    if isinstance(value, CommentedMap):
        items = [({"name": key, **row} if isinstance(row, CommentedMap) else None, row) for key, row in value.items()]
    elif isinstance(value, CommentedSeq):
        items = [(dict(row) if isinstance(row, CommentedMap) else None, row) for row in value]
    else:
        items = []
    rows: list[tuple[Mapping[str, Any], Place]] = []
    for fields, row in items:
        if fields is None:
            raise InvalidInput(
                Problem(Place(source.name), "", f"a threshold is a mapping of fields, found {str(row)[:60]!r}")
            )
        rows.append((fields, Place(source.name, row.lc.line + 1, row.lc.col + 1)))
    return _some(rows, source)


def _some(rows: list[tuple[Mapping[str, Any], Place]], source: Source) -> list[tuple[Mapping[str, Any], Place]]:
    if not rows:
        hint = "an architecture, or a list of thresholds in YAML, JSON or CSV"
        raise InvalidInput(Problem(Place(source.name), "", "holds no threshold", hint))
    return rows
