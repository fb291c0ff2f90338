"""Many questions at once: a CSV whose columns are named as the options are → an answer, or what is wrong, per row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from clusterwright.app.fitting import FitRequest, fit, options_over
from clusterwright.app.fitting_forms import NOTHING_MORE, More
from clusterwright.files.inputs import read_source
from clusterwright.lib.errors import InvalidInput, Place, Problem

if TYPE_CHECKING:
    from clusterwright.app.fitting import Answer

#: Columns of a batch beside those that are named as options.
_MODEL, _GPU, _TRAIN, _LABEL = "model", "gpu", "train", "label"
_YES: Final = ("yes", "true", "1", "x")
_NO: Final = ("", "no", "false", "0")
#: Line of the file and its values by column.
Written = tuple[int, Mapping[str | None, Any]]


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


def read_batch(path: str) -> tuple[Written, ...]:
    """Rows of a CSV with the lines that they end on.

    Raises:
        InvalidInput: the file cannot be read, has no column of models or GPUs, or no row.
    """
    text = read_source(path).text.removeprefix("\ufeff")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        reader.fieldnames = _heads(path, reader.fieldnames or ())
        found = tuple((reader.line_num, dict(fields)) for fields in reader if any(fields.values()))
    except csv.Error as error:
        raise InvalidInput(Problem(Place(path, reader.line_num + 1, 1), "", f"is no CSV: {error}")) from None
    if not found:
        raise InvalidInput(
            Problem(Place(path, 2, 1), "", "holds no question", "a row each, below the names of columns")
        )
    return found


def fit_batch(path: str, rows: Sequence[Written], plain: FitRequest) -> tuple[Row, ...]:
    """Answers of all rows; one that is wrong carries its problems, the others are answered.

    Args:
        path: of the CSV, for messages.
        plain: what the command said: profile, audience, day, and options for rows that do not say.
    """
    return tuple(_row(path, line, fields, plain) for line, fields in rows)


def _heads(path: str, written: Sequence[str]) -> list[str]:
    """Names of columns as options are called.

    Raises:
        InvalidInput: one is missing, has no name, or stands there twice.
    """
    heads = [_plain(head) for head in written]
    problems = list[str]()
    for needed in (_MODEL, _GPU):
        if needed not in heads:
            problems.append(f"no column '{needed}'")
    problems += [f"column {number} has no name" for number, head in enumerate(heads, 1) if not head]
    problems += [f"two columns '{head}'" for head in dict.fromkeys(heads) if head and heads.count(head) > 1]
    if problems:
        parted = "; columns are parted by commas" if len(heads) == 1 and re.search("[;\t|]", written[0]) else ""
        hint = f"the first line names columns: model, gpu, rate, in, out, ttft, tpot …{parted}"
        raise InvalidInput(*(Problem(Place(path, 1, 1), "", text, hint) for text in problems))
    return heads


def _row(path: str, line: int, fields: Mapping[str | None, Any], plain: FitRequest) -> Row:
    label = str(fields.get(_LABEL) or "").strip()
    if None in fields:
        return Row(line, label, None, (f"{path}:{line}: more values than columns",))
    own = {str(name): str(text).strip() for name, text in fields.items() if text and str(text).strip()}
    model, gpus = own.pop(_MODEL, ""), own.pop(_GPU, "")
    own.pop(_LABEL, None)
    train = own.pop(_TRAIN, "").lower()
    request = replace(
        plain,
        model=model,
        machines=[name.strip() for name in gpus.replace(";", ",").split(",") if name.strip()],
        options=options_over(plain.options, own),
        train=train in _YES or plain.train,
        place=lambda name: f"{path}:{line}: {name}",
    )
    try:
        if not model:
            raise InvalidInput(Problem(Place(f"{path}:{line}"), "", "no model"))
        if train not in (*_YES, *_NO):
            raise InvalidInput(Problem(Place(request.place(_TRAIN)), "", f"'{train}' is neither yes nor no"))
        return Row(line, label, fit(request))
    except InvalidInput as error:
        return Row(line, label, None, tuple(_placed(f"{path}:{line}: ", problem) for problem in error.problems))


def _placed(place: str, problem: Problem) -> str:
    """A problem with the row that it stands in."""
    text = str(problem)
    return text if text.startswith(place) else place + text


def _plain(head: str | None) -> str:
    return (head or "").strip().lower().lstrip("-").replace("_", "-").replace(" ", "-")
