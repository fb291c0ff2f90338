"""A table as an XLSX workbook: numbers as numbers, text always as text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xlsxwriter

from clusterwright.lib.errors import InvalidInput, Place, Problem, Unavailable

#: Widest column, characters.
_WIDEST = 60


def workbook(heads: Sequence[str], rows: Sequence[Sequence[Any]], sheet: str = "fits") -> bytes:
    """One sheet with a head that stays in view; nothing in it is a formula or a link, whatever its text begins with."""
    stream = io.BytesIO()
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "nan_inf_to_errors": True,
    }
    with xlsxwriter.Workbook(stream, options) as book:
        page = book.add_worksheet(sheet)
        bold = book.add_format({"bold": True})
        for column, head in enumerate(heads):
            page.write_string(0, column, head, bold)
            longest = max([len(head), *(len(str(row[column])) for row in rows if isinstance(row[column], str))])
            page.set_column(column, column, min(longest + 1, _WIDEST))
        for line, row in enumerate(rows, 1):
            for column, cell in enumerate(row):
                if isinstance(cell, str):
                    page.write_string(line, column, cell)
                elif cell is not None:
                    page.write_number(line, column, float(cell))
        page.freeze_panes(1, 0)
    return stream.getvalue()


def write_workbook(path: Path, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, replace: bool = False) -> None:
    """Write the table to a file.

    Args:
        replace: whether a file that exists may be replaced.

    Raises:
        InvalidInput: it exists and may not be replaced.
        Unavailable: the system does not let us write.
    """
    data = workbook(heads, rows)
    try:
        with path.open("wb" if replace else "xb") as stream:
            stream.write(data)
    except FileExistsError:
        raise InvalidInput(Problem(Place(str(path)), "", "this file exists", "use --force to replace it")) from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}") from error
