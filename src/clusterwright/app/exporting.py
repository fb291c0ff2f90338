"""Answers as files: one question or a CSV of them, to Markdown, CSV, XLSX or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clusterwright.app.extras import missing_extra
from clusterwright.app.fitting import FitRequest, fit, markdown_of_fit, options_over
from clusterwright.app.fitting_forms import NOTHING_MORE, More, values_of_fit
from clusterwright.files.inputs import read_source
from clusterwright.files.outputs import write_text
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.plan.fitting.answers import ServingAnswer
from clusterwright.report.tables_out import Cell, Table, as_csv, serving_rows, table_of, training_rows

if TYPE_CHECKING:
    from clusterwright.app.fitting import Answer

#: Endings of files that answers are written to.
ENDINGS: Final = (".md", ".csv", ".xlsx", ".json")
#: Columns of a batch beside those that are named as options.
_MODEL, _GPU, _TRAIN, _LABEL = "model", "gpu", "train", "label"
_YES: Final = ("yes", "true", "1", "x")


@dataclass(frozen=True)
class Row:
    """One row of a batch: its answer, or what is wrong with it.

    Args:
        line: of the file, from 1. label: its own name, "" without. more: what the page says beside the answer.
    """

    line: int
    label: str
    answer: Answer | None
    problems: tuple[str, ...] = ()
    more: More = NOTHING_MORE


def fit_batch(path: str, plain: FitRequest) -> tuple[Row, ...]:
    """A question per row of a CSV whose columns are named as the options are (`model`, `gpu`, `rate`, `in` …).

    A row that is wrong carries its problems; the others are answered.

    Args:
        plain: what the command said: profile, audience, day, and options for rows that do not say.

    Raises:
        InvalidInput: the file cannot be read or has no column of models or GPUs.
    """
    reader = csv.DictReader(read_source(path).text.splitlines())
    heads = [_plain(head) for head in reader.fieldnames or ()]
    for needed in (_MODEL, _GPU):
        if needed not in heads:
            hint = "the first line names columns: model, gpu, rate, in, out, ttft, tpot …"
            raise InvalidInput(Problem(Place(path, 1), "", f"no column '{needed}'", hint))
    reader.fieldnames = heads
    return tuple(_row(path, number, fields, plain) for number, fields in _rows(reader))


def _rows(reader: csv.DictReader[str]) -> Sequence[tuple[int, Mapping[str | None, Any]]]:
    try:
        return [(reader.line_num, dict(fields)) for fields in reader if any(fields.values())]
    except csv.Error as error:
        raise InvalidInput(Problem(Place("CSV", reader.line_num), "", f"cannot be read: {error}")) from None


def _row(path: str, line: int, fields: Mapping[str | None, Any], plain: FitRequest) -> Row:
    label = str(fields.get(_LABEL) or "").strip()
    if None in fields:
        return Row(line, label, None, (f"{path}:{line}: more values than columns",))
    own = {str(name): str(text).strip() for name, text in fields.items() if text and str(text).strip()}
    model, gpus = own.pop(_MODEL, ""), own.pop(_GPU, "")
    own.pop(_LABEL, None)
    train = own.pop(_TRAIN, "").lower() in _YES
    request = replace(
        plain,
        model=model,
        machines=[name.strip() for name in gpus.replace(";", ",").split(",") if name.strip()],
        options=options_over(plain.options, own),
        train=train or plain.train,
        place=lambda name: f"{path}:{line}: {name}",
    )
    try:
        if not model:
            raise InvalidInput(Problem(Place(path, line), "", "no model"))
        return Row(line, label, fit(request))
    except InvalidInput as error:
        return Row(line, label, None, tuple(str(problem) for problem in error.problems))


def _plain(head: str | None) -> str:
    return (head or "").strip().lower().lstrip("-").replace("_", "-").replace(" ", "-")


def rows_of(answer: Answer) -> list[dict[str, Cell]]:
    """An answer as flat rows."""
    return serving_rows(answer) if isinstance(answer, ServingAnswer) else training_rows(answer)


def batch_table(rows: Sequence[Row]) -> Table:
    """A batch as one table, rows that were wrong among the others."""
    found = list[dict[str, Cell]]()
    for row in rows:
        first: dict[str, Cell] = {"line": row.line, "label": row.label}
        if row.answer is None:
            found.append(first | {"verdict": "invalid", "why": "; ".join(row.problems)})
        else:
            found += [first | each for each in rows_of(row.answer)]
    return table_of(found)


def write_answers(path: Path, rows: Sequence[Row], *, replace_file: bool = False) -> None:
    """Write answers to a file whose ending says the form.

    Raises:
        InvalidInput: another ending, or the file exists.
        Unavailable: the extra that writes XLSX is not installed.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput(Problem(Place(str(path)), "", f"no form ends in '{ending}'", f"of {', '.join(ENDINGS)}"))
    if ending == ".xlsx":
        _write_xlsx(path, batch_table(rows), replace_file)
        return
    forms = {".md": _markdown, ".csv": _csv, ".json": _json}
    write_text(path, forms[ending](rows), replace=replace_file)


def _csv(rows: Sequence[Row]) -> str:
    return as_csv(batch_table(rows))


def _markdown(rows: Sequence[Row]) -> str:
    pages = []
    for row in rows:
        if row.answer is None:
            pages.append(f"# Line {row.line}\n\nNot answered: {'; '.join(row.problems)}\n")
        else:
            pages.append(markdown_of_fit(row.answer, row.more.blocks))
    return "\n".join(pages)


def _json(rows: Sequence[Row]) -> str:
    values = [
        {"line": row.line, "label": row.label}
        | ({"problems": list(row.problems)} if row.answer is None else values_of_fit(row.answer, row.more))
        for row in rows
    ]
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _write_xlsx(path: Path, table: Table, replace_file: bool) -> None:
    try:
        from clusterwright.files.spreadsheets import write_workbook
    except ModuleNotFoundError as error:
        raise missing_extra("xlsxwriter") or error from None
    write_workbook(path, table.heads, table.rows, replace=replace_file)
