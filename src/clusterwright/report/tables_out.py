"""Answers of fits as flat rows, for CSV and spreadsheets: numbers as numbers, units in the heads.

Source of what spreadsheets read as formulas: OWASP, CSV Injection (cells that begin with = + - @, tab or return).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusterwright.plan.fitting.answers import ServingAnswer
from clusterwright.plan.fitting.bands import Band
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.report.fits import command, verdict

if TYPE_CHECKING:
    from clusterwright.plan.fitting.training_fits import TrainingFit
    from clusterwright.plan.fitting.trainings import TrainingAnswer

Cell = str | float | int | None
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Table:
    """Rows under heads; a head carries the unit of its column."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table_of(rows: Iterable[dict[str, Cell]]) -> Table:
    """Rows by head → a table; heads in the order in which they come up."""
    found = list(rows)
    heads = tuple(dict.fromkeys(head for row in found for head in row))
    return Table(heads, tuple(tuple(row.get(head) for head in heads) for row in found))


def serving_rows(answer: ServingAnswer) -> list[dict[str, Cell]]:
    """One row per machine, best first."""
    places = enumerate(answer.fits, 1)
    return [first_cells(answer, fit, place, verdict(answer)) | _served(fit) for place, fit in places]


def first_cells(
    answer: ServingAnswer | TrainingAnswer, fit: ServingFit | TrainingFit, place: int, said: str
) -> dict[str, Cell]:
    """Columns that every row has; the best machine's says the verdict."""
    return {
        "model": answer.name,
        "GPU": fit.machine.asked,
        "rank": place,
        "verdict": fit.verdict,
        "why": said if place == 1 else fit.missed,
    }


def _served(fit: ServingFit) -> dict[str, Cell]:
    if fit.best is None:
        return {}
    best = fit.best
    found: dict[str, Cell] = {"layout": str(best.layout), "GPUs per replica": best.layout.gpus}
    found |= banded_cells("replicas for load", fit.needed)
    found |= {"replicas with losses": best.replicas, "GPUs": best.gpus, "nodes": best.nodes}
    found |= banded_cells("longest request, tokens", fit.context)
    found |= {"planned context, tokens": fit.question.max_model_len}
    found |= banded_cells("sequences at once per replica", fit.places)
    found |= {"in flight per replica": best.concurrency}
    found |= banded_cells("TTFT, ms", fit.ttft_s.times(1e3)) | banded_cells("TPOT, ms", fit.tpot_s.times(1e3))
    found |= banded_cells("req/s per replica", fit.requests_s) | banded_cells("output tok/s per replica", fit.tokens_s)
    if fit.price is not None:
        currency = fit.price.currency
        found |= {f"price, {currency}/GPU-h": fit.price.value}
        found |= banded_cells(f"{currency}/h", fit.per_h) | banded_cells(f"{currency}/Mtok out", fit.per_mtok_out)
        found |= banded_cells(f"{currency}/Mtok in and out", fit.per_mtok)
    return found | {"engine command": command(fit)}


def banded_cells(head: str, band: Band | None) -> dict[str, Cell]:
    """A figure and its range as three columns."""
    if band is None:
        return {}
    return {head: band.value, f"{head}, low": band.low, f"{head}, high": band.high}


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe goes before what would begin one."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_csv(table: Table) -> str:
    """The table as CSV; text is guarded, numbers have all their digits."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([guarded(head) for head in table.heads])
    writer.writerows([_text(cell) for cell in row] for row in table.rows)
    return stream.getvalue()


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return guarded(cell) if isinstance(cell, str) else repr(cell)
