"""Answers of fits as flat rows, for CSV and spreadsheets: numbers as numbers, units in the heads.

Source of what spreadsheets read as formulas: OWASP, CSV Injection (cells that begin with = + - @, tab or return).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from clusterwright.plan.fitting.answers import ServingAnswer
from clusterwright.plan.fitting.bands import Band
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.trainings import TrainingAnswer, TrainingFit
from clusterwright.report.fits import command, verdict
from clusterwright.report.fits_training import training_verdict

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
    return [_first(answer, fit, place, verdict(answer)) | _served(fit) for place, fit in places]


def _first(
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
    found |= _banded("replicas for load", fit.needed)
    found |= {"replicas with losses": best.replicas, "GPUs": best.gpus, "nodes": best.nodes}
    found |= _banded("longest request, tokens", fit.context)
    found |= {"planned context, tokens": fit.question.max_model_len}
    found |= _banded("sequences at once per replica", fit.places)
    found |= {"in flight per replica": best.concurrency}
    found |= _banded("TTFT, ms", fit.ttft_s.times(1e3)) | _banded("TPOT, ms", fit.tpot_s.times(1e3))
    found |= _banded("req/s per replica", fit.requests_s) | _banded("output tok/s per replica", fit.tokens_s)
    if fit.price is not None:
        currency = fit.price.currency
        found |= {f"price, {currency}/GPU-h": fit.price.value}
        found |= _banded(f"{currency}/h", fit.per_h) | _banded(f"{currency}/Mtok out", fit.per_mtok_out)
        found |= _banded(f"{currency}/Mtok in and out", fit.per_mtok)
    return found | {"engine command": command(fit)}


def training_rows(answer: TrainingAnswer) -> list[dict[str, Cell]]:
    """One row per machine, best first."""
    places = enumerate(answer.fits, 1)
    return [_first(answer, fit, place, training_verdict(answer)) | _trained(fit) for place, fit in places]


def _trained(fit: TrainingFit) -> dict[str, Cell]:
    if fit.best is None:
        return {}
    best = fit.best
    found: dict[str, Cell] = {"layout": str(best.layout), "GPUs": best.gpus, "nodes": best.nodes}
    found |= {"micro-batch": best.recipe.micro_batch, "recomputation": best.recipe.recompute}
    found |= _banded("memory of the fullest GPU, GiB", fit.memory_gib)
    found |= {"step, s": best.step_s, "MFU": best.mfu, "goodput": best.goodput}
    found |= _banded("tokens/s", fit.tokens_s)
    if fit.days is not None:
        found |= _banded("days", fit.days)
    if fit.price is not None:
        currency = fit.price.currency
        found |= {f"price, {currency}/GPU-h": fit.price.value} | _banded(f"{currency}/Mtok", fit.per_mtok)
        if fit.cost is not None:
            found |= _banded(f"whole run, {currency}", fit.cost)
    return found


def _banded(head: str, band: Band | None) -> dict[str, Cell]:
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
