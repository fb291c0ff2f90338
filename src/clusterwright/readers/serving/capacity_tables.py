"""A table in Markdown in which somebody noted what a server logged at several settings.

Columns count by their titles; the figures are a person's copy, which the run says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.refusing import Refused
from clusterwright.readers.serving.concurrencies import say_concurrency
from clusterwright.readers.values import lacking, read_amount, read_number, unreadable

_TITLES: Final = ("GPU KV cache size", "max concurrency", "maximum concurrency", "available KV")
_RULE: Final = frozenset(" \t|:-")
_STOPPED: Final = re.compile(r"refuses to start|does not start|fails to start|crash|OOM|out of memory", re.IGNORECASE)
_SILENT: Final = re.compile(r"\b0 tok/s|\b0 output tokens|never (?:answers|returns)|hangs", re.IGNORECASE)


def is_table(text: str) -> bool:
    """Whether there is such a table."""
    return any(_is_title(line) for line in text.split("\n"))


def _is_title(line: str) -> bool:
    return line.lstrip().startswith("|") and any(title in line for title in _TITLES)


def read_table(lines: Iterable[Line]) -> list[Run]:
    """A run for every row."""
    columns: list[str] = []
    runs: list[Run] = []
    torn = RunBuilder("server")
    for line in lines:
        if not line.text.strip().startswith("|"):
            columns = []
        elif _is_title(line.text):
            columns = _cells(line.text)
        elif columns and not _RULE.issuperset(line.text) and len(runs) < 1000:
            cells = _cells(line.text)
            if len(cells) == len(columns):
                runs.append(_row(dict(zip(columns, cells, strict=True)), line.number))
            else:
                torn.reject(line.number, line.text, f"{len(cells)} cells, the header has {len(columns)}")
    if torn.rejected:
        runs.append(torn.build())
    if not runs:
        raise Refused("a table about capacity without rows")
    return runs


def _cells(text: str) -> list[str]:
    stripped = text.strip().removeprefix("|").removesuffix("|")
    return [cell.replace("`", "").replace("*", "").strip() for cell in stripped.split("|")]


def _row(cells: dict[str, str], number: int) -> Run:
    builder = RunBuilder("server")
    builder.notice("written-by-hand", "figures of a table that a person wrote, not of a log", Weight.INFO, number)
    for title, cell in cells.items():
        name = title.lower()
        if "concurrency" in name:
            times = _plain(cell.removesuffix("x"))
            builder.observe("max_concurrency", times, (), number)
            if isinstance(times, float):
                length = re.search(r"@\s?([\d,]+)", title)
                say_concurrency(builder, times, f"{length[1]} tokens" if length else "full length")
        elif "kv cache size" in name:
            tokens = _plain(cell)
            kept = Quantity(tokens, (("token", 1),), f"{tokens:,.0f} tokens") if isinstance(tokens, float) else tokens
            builder.observe("kv_cache_tokens", kept, (), number)
        elif "available kv" in name:
            builder.observe("kv_cache_memory", lacking(cell) or read_amount(cell), (), number)
        elif "result" in name:
            _result(builder, cell, number)
        else:
            builder.condition(title[:60], cell[:60])
    return builder.build()


def _plain(cell: str) -> Value:
    if (lack := lacking(cell)) is not None:
        return lack
    number = read_number(cell, grouped=True)
    return number if isinstance(number, float) else unreadable(cell, "not a number")


def _result(builder: RunBuilder, cell: str, number: int) -> None:
    builder.observe("result", cell[:200], (), number)
    if _STOPPED.search(cell):
        builder.observe("server_starts", False, (), number)
        builder.notice("does-not-start", cell[:200], Weight.ERROR, number)
    elif _SILENT.search(cell):
        message = f"the server starts and answers nothing: {cell[:150]}"
        builder.notice("answers-nothing", message, Weight.ERROR, number)
