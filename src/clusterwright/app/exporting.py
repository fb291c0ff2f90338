"""Answers as files: of one question or of many, to Markdown, CSV, XLSX or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from clusterwright.app.extras import missing_extra
from clusterwright.app.fitting import markdown_of_fit
from clusterwright.app.fitting_batches import Row
from clusterwright.app.fitting_forms import rows_of, values_of_fit
from clusterwright.files.outputs import write_text
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.report.tables_out import Cell, Table, as_csv, table_of

#: Endings of files that answers are written to.
ENDINGS: Final = (".md", ".csv", ".xlsx", ".json")


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


def check_answers(path: Path, *, replace_file: bool = False) -> None:
    """See that answers can be written there, before any is computed.

    Raises:
        InvalidInput: another ending, or the file exists.
    """
    if path.suffix.lower() not in ENDINGS:
        problem = f"no form ends in '{path.suffix}'" if path.suffix else "the name has no ending that says the form"
        raise InvalidInput(Problem(Place(str(path)), "", problem, f"of {', '.join(ENDINGS)}"))
    if os.path.lexists(path) and not replace_file:
        raise InvalidInput(Problem(Place(str(path)), "", "this file exists", "use --force to replace it"))


def write_answers(path: Path, rows: Sequence[Row], *, replace_file: bool = False) -> None:
    """Write answers to a file whose ending says the form.

    Raises:
        InvalidInput: another ending, or the file exists.
        Unavailable: the extra that writes XLSX is not installed.
    """
    check_answers(path, replace_file=replace_file)
    ending = path.suffix.lower()
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
