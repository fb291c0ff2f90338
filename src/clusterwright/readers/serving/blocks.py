"""The `Serving Benchmark Result` block of vLLM's and SGLang's clients: label, colon, value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.refusing import Refused
from clusterwright.readers.serving.benchmarks import Benchmark
from clusterwright.readers.serving.commands import Command
from clusterwright.readers.serving.labels import CONDITIONS, FIGURES, read_statistic, split_unit, without_unit
from clusterwright.readers.values import quantity, read_number, unreadable

BANNER: Final = re.compile(r"={4} (Serving Benchmark Result|Offline Throughput Benchmark Result) ={4}")
_FOOTER: Final = re.compile(r"={20,}")
_ROW: Final = re.compile(r"([A-Za-z][^:]{1,60}):\s*(.*)")
_PLACEHOLDER: Final = re.compile(r"[xX]+(?:\.[xX]+)?|\.{2,}|…|<[^>]*>|N\.NN|#+")
_NUMBER_FIRST: Final = re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf|nan)(?:\s+(.*))?$")
_LONGEST: Final = 200
_LEAST_FIGURES: Final = 3
_MOST_ROWS: Final = 10_000
_WANTED: Final = ("Successful requests", "Benchmark duration (s)", "Mean TTFT (ms)")


@dataclass(slots=True)
class Block:
    """Rows of one block, and the command that stood before it."""

    line: int
    title: str
    rows: list[tuple[str, str, int]] = field(default_factory=list)
    ended: bool = False
    command: Command = field(default_factory=Command)


def find_blocks(lines: Iterable[Line]) -> list[Block]:
    """Every block of the file, each with the command line or arguments that stood before it."""
    blocks: list[Block] = []
    command = Command()
    loose: Block | None = None
    for line in lines:
        text = line.text.strip()
        if banner := BANNER.search(text):
            blocks += _beheaded(loose)
            loose = None
            blocks.append(Block(line.number, banner[1], command=command))
            command = Command()
        elif blocks and not blocks[-1].ended:
            _take(blocks[-1], text, line.number)
        else:
            command.take(text)
            loose = _hold(loose, text, line.number)
            if loose is not None and loose.ended:
                blocks += _beheaded(loose)
                loose = None
    return [*blocks, *_beheaded(loose)]


def _hold(loose: Block | None, text: str, number: int) -> Block | None:
    """Rows that stand outside of a block: the end of one whose banner was cut off."""
    row = _ROW.fullmatch(text)
    known = row is not None and (read_statistic(row[1]) or split_unit(row[1])[0] in {*FIGURES, *CONDITIONS})
    if not (known or _is_heading(text) or _FOOTER.fullmatch(text)):
        return None if text else loose
    loose = loose or Block(number, "")
    _take(loose, text, number)
    return loose


def _beheaded(loose: Block | None) -> list[Block]:
    """The held rows as a block, when they hold enough figures of latency."""
    figures = sum(read_statistic(label) is not None for label, _, _ in loose.rows) if loose is not None else 0
    return [loose] if loose is not None and figures >= _LEAST_FIGURES else []


def _take(block: Block, text: str, number: int) -> None:
    if _FOOTER.fullmatch(text):
        block.ended = True
    elif _is_heading(text):
        return
    elif row := _ROW.fullmatch(text):
        block.rows.append((row[1].strip(), row[2].strip(), number))
    elif 0 < len(text) < _LONGEST and len(block.rows) < _MOST_ROWS:
        block.rows.append((text, "", number))


def _is_heading(text: str) -> bool:
    return text.startswith("----") and text.endswith("----")


def refuse_templates(blocks: list[Block]) -> None:
    """Refuse a document whose blocks hold placeholders where results should be."""
    for block in blocks:
        figures = [row for row in block.rows if split_unit(row[0])[1] or read_statistic(row[0])]
        empty = [row for row in figures if _PLACEHOLDER.fullmatch(row[1])]
        if empty and 2 * len(empty) >= len(figures):
            label, value, number = empty[0]
            reason = f"a template: {len(empty)} of {len(figures)} figures are placeholders, so this is no result"
            raise Refused(reason, number, f"{label}: {value}")


def read_block(block: Block, tool: str, say: Callable[[Benchmark], None] | None = None) -> Run:
    """The run of a block.

    Args:
        say: what else to say about the benchmark before it is checked.
    """
    builder = RunBuilder(tool)
    benchmark = Benchmark(builder)
    block.command.tell(benchmark)
    for label, text, number in block.rows:
        _read_row(benchmark, label, text, number)
    if say is not None:
        say(benchmark)
    labels = {label for label, _, _ in block.rows}
    for wanted in _WANTED:
        if wanted not in labels:
            builder.missing(f"the row {wanted}")
    if not block.title:
        builder.missing("the banner: the beginning was cut off")
    if not block.ended:
        builder.missing("the line of = at the end")
    benchmark.finish()
    return builder.build()


def _read_row(benchmark: Benchmark, label: str, text: str, number: int) -> None:
    statistic = read_statistic(label)
    name, unit = split_unit(label)
    if name in CONDITIONS:
        _condition(benchmark, CONDITIONS[name], text, number)
    elif statistic is not None:
        value = _number(benchmark, text, number)
        if isinstance(value, NoValue):
            benchmark.put(statistic[0], value, number)
        elif statistic[1] is None:
            benchmark.put(statistic[0], without_unit(text), number)
        else:
            benchmark.put(statistic[0], quantity(value, statistic[1]), number)
    elif name in FIGURES:
        _figure(benchmark, *FIGURES[name], text, number)
    elif not text and not label.endswith(":"):
        if re.match(r"(?:Mean|Median|P\d|Max|Total|Request|Output)", label):
            benchmark.builder.reject(number, label, "a row without a value")
    elif label.startswith("Position ") or unit == "" or _PLACEHOLDER.fullmatch(text):
        return
    else:
        benchmark.builder.reject(number, f"{label}: {text}", "a figure of an unknown name")


def _figure(benchmark: Benchmark, name: str, unit: str, text: str, number: int) -> None:
    value = _number(benchmark, text, number)
    if unit == "total":
        if isinstance(value, NoValue):
            benchmark.put(f"{name}_tokens_total", value, number)
        else:
            benchmark.tokens[name] = value
    elif isinstance(value, NoValue) or not unit:
        benchmark.put(name, value, number)
    else:
        benchmark.put(name, quantity(value, unit), number)


def _condition(benchmark: Benchmark, name: str, text: str, number: int) -> None:
    builder = benchmark.builder
    if name == "engine":
        builder.condition(name, text)
        return
    value = _number(benchmark, text, number)
    if name == "asked_rate":
        if text.lower() in ("inf", "infinity", "unlimited"):
            builder.condition(name, "inf")
        elif isinstance(value, float):
            benchmark.asked_rate = value
            builder.condition(name, quantity(value, "req/s"))
    elif name == "concurrency" and isinstance(value, float):
        benchmark.cap = value
        builder.condition(name, value)
    elif name == "duration":
        if isinstance(value, float):
            benchmark.duration_s = value
        else:
            builder.condition(name, value)


def _number(benchmark: Benchmark, text: str, number: int) -> float | NoValue:
    """The number of a cell; what stands behind it is dropped with a notice when it is no word or number."""
    found = _NUMBER_FIRST.match(text)
    rest = (found[2] or "").strip() if found else ""
    if found and rest:
        if any(c.isalnum() for c in rest):
            return unreadable(text, "more than a number stands here")
        benchmark.builder.notice("stray-text", f"{rest!r} behind {found[1]} is not read", Weight.INFO, number)
        return read_number(found[1])
    return read_number(text)
