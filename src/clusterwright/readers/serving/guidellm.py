"""GuideLLM: console tables and JSON.

Every benchmark (strategy) of a sweep is a run. Up to 0.3 the console titles the request latency `(ms)` and prints
seconds: a whole answer cannot be faster than its first token, which shows it. Zeros where no request was completed
are no figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from clusterwright.model.observations import Lack, NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.fields import get, number, objects, plain, text
from clusterwright.readers.json_streams import load_documents
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.serving.benchmarks import Benchmark
from clusterwright.readers.values import quantity, read_number

_RULE: Final = frozenset(" \t|=+-")
_LATENCY: Final = re.compile(
    r"(?P<what>Req(?:uest)? Latency|TTFT|ITL|TPOT)\s*\(?(?P<unit>ms|sec|s)?\)? (?P<step>mean|median|mdn|p\d{1,3})",
    re.IGNORECASE,
)
_METRICS: Final = {"ttft": "ttft", "itl": "itl", "tpot": "tpot"}
_STEPS: Final = {"mdn": "p50", "median": "p50"}
_COUNTS: Final = {"comp": "requests_ok", "err": "requests_failed", "inc": "requests_incomplete"}
_RATES: Final = (
    (re.compile(r"Request\w*( Stats)? Per Sec(ond)?( mean)?", re.IGNORECASE), "request_rate", "req/s"),
    (re.compile(r"Out(put)? Tok(ens)?(/sec)?( Per Sec)? mean", re.IGNORECASE), "output_token_rate", "tokens/s"),
    (re.compile(r"Tot(al)? Tok(ens)?(/sec)?( Per Sec)? mean", re.IGNORECASE), "total_token_rate", "tokens/s"),
    (re.compile(r"(Request\w*( Stats)? )?Concurrency( mean)?", re.IGNORECASE), "mean_concurrency", ""),
)
_JSON_METRICS: Final = {
    "time_to_first_token_ms": ("ttft", "ms"), "inter_token_latency_ms": ("itl", "ms"),
    "time_per_output_token_ms": ("tpot", "ms"), "request_latency": ("e2e", "s"),
}  # fmt: skip
_JSON_RATES: Final = {
    "requests_per_second": ("request_rate", "req/s"), "output_tokens_per_second": ("output_token_rate", "tokens/s"),
    "tokens_per_second": ("total_token_rate", "tokens/s"), "request_concurrency": ("mean_concurrency", ""),
}  # fmt: skip


def recognise(head: Head) -> int:
    """Sure by the titles of its tables and the keys of its JSON."""
    if "Benchmarks Stats:" in head.text or "Request Latency Statistics" in head.text:
        return 98
    if '"time_to_first_token_ms"' in head.text and ('"benchmarks"' in head.text or '"guidellm_version"' in head.text):
        return 98
    if "Benchmarks Info:" in head.text and re.search(r"\|\|\| *Output Tok/Req|Tok/Req +\|\|\|", head.text):
        return 90
    return 70 if '"benchmarks"' in head.text and "guidellm" in head.text.lower() else 0


def read(source: Source) -> Sequence[Run]:
    """A run for every benchmark."""
    if source.head.lstrip().startswith("{"):
        return _read_json(source.text())
    return _read_tables(source.lines())


def _read_tables(lines: Iterable[Line]) -> list[Run]:
    runs: dict[str, Benchmark] = {}
    heads: list[list[str]] = []
    columns: list[str] = []
    before = ""
    for line in lines:
        if "|" in before and "|" in line.text and _is_rule(before) and _is_rule(line.text):
            why = "a table of GuideLLM whose rows a narrow terminal broke; print it wider or read benchmarks.json"
            raise Refused(why, line.number, line.text[:80])
        before = line.text
        if "|" not in line.text or _is_rule(line.text):
            if "|" in line.text and heads:
                columns, heads = _columns(heads), []
            elif not line.text.strip():
                columns, heads = [], []
            continue
        cells = [cell.strip() for cell in line.text.strip().removeprefix("|").removesuffix("|").split("|")]
        if not columns:
            heads.append(cells) if len(heads) < 6 else None
        elif len(cells) != len(columns):
            _of(runs, cells[0]).builder.reject(line.number, line.text, f"{len(cells)} cells, {len(columns)} expected")
        else:
            _row(_of(runs, cells[0]), columns, cells, line.number)
    if not runs:
        raise Refused("no table of GuideLLM with rows")
    return [_finish(benchmark) for benchmark in list(runs.values())[:1000]]


def _is_rule(text: str) -> bool:
    return ("---" in text or "===" in text) and _RULE.issuperset(text)


def _columns(heads: list[list[str]]) -> list[str]:
    """One title a column: groups stand over the first of their columns, the lowest head over each."""
    width = max(len(row) for row in heads)
    titles = [""] * width
    for depth, row in enumerate(heads):
        last = ""
        for index, cell in enumerate(row + [""] * (width - len(row))):
            last = cell or ("" if depth == len(heads) - 1 else last)
            titles[index] = f"{titles[index]} {last}".strip()
    return titles


def _of(runs: dict[str, Benchmark], name: str) -> Benchmark:
    if name not in runs:
        builder = RunBuilder("guidellm")
        builder.condition("strategy", name[:60])
        runs[name] = Benchmark(builder)
        if asked := re.search(r"(?:constant|poisson)@(\d+(?:\.\d+)?)$", name):
            runs[name].asked_rate = float(asked[1])
            builder.condition("asked_rate", quantity(float(asked[1]), "req/s"))
    return runs[name]


def _row(benchmark: Benchmark, columns: list[str], cells: list[str], line: int) -> None:
    for title, cell in zip(columns[1:], cells[1:], strict=True):
        last = title.lower().rsplit(" ", 1)[-1]
        value = read_number(cell)
        if latency := _LATENCY.search(title):
            word = _STEPS.get(latency["step"].lower(), latency["step"].lower())
            name = f"{_METRICS.get(latency['what'].lower(), 'e2e')}_{word}"
            unit = {"ms": "ms", "sec": "s", "s": "s"}.get((latency["unit"] or "").lower())
            if isinstance(value, float) and unit is None:
                value = NoValue(Lack.UNREADABLE, cell, "the title names no unit")
            benchmark.put(name, quantity(value, unit or "s") if isinstance(value, float) else value, line)
        elif "requests made" in title.lower() and last in _COUNTS:
            benchmark.put(_COUNTS[last], value, line)
        elif re.search(r"duration \((?:s|sec)\)", title, re.IGNORECASE) and isinstance(value, float):
            benchmark.duration_s = value
        else:
            for form, name, unit in _RATES:
                if form.fullmatch(title):
                    benchmark.put(name, quantity(value, unit) if unit and isinstance(value, float) else value, line)


def _finish(benchmark: Benchmark) -> Run:
    builder = benchmark.builder
    if benchmark.number("requests_ok") == 0 or benchmark.number("request_rate") == 0:
        benchmark.forget(("ttft_", "itl_", "tpot_", "e2e_"), "no request was completed")
        builder.notice("nothing-answered", "no request was completed: its latencies are no figures", Weight.ERROR)
    first, whole = benchmark.number("ttft_p50"), benchmark.number("e2e_p50")
    if first and whole and whole < first and whole * 1000 >= first:
        benchmark.scale("e2e_", 1000.0)
        message = f"the request latency is titled (ms) and counts seconds: {whole * 1e3:g} is below the first token's"
        builder.notice("mislabelled-unit", message + f" {first * 1e3:g} ms", Weight.WARNING)
    incomplete = benchmark.number("requests_incomplete")
    if incomplete:
        message = f"{incomplete:.0f} requests were not complete when the time was over: they are in no latency"
        builder.notice("requests-incomplete", message, Weight.WARNING)
    benchmark.finish()
    return builder.build()


def _read_json(whole: str) -> list[Run]:
    runs = []
    for document, line in load_documents(whole):
        version = text(get(document.value, "metadata", "guidellm_version"))
        for found in objects(get(document.value, "benchmarks"))[:1000]:
            runs.append(_benchmark(found, version, line))
    if not runs:
        raise Refused("JSON without benchmarks of GuideLLM", 1, whole.lstrip()[:80])
    return runs


def _benchmark(found: dict[str, Any], version: str, line: int) -> Run:
    builder = RunBuilder("guidellm", version)
    benchmark = Benchmark(builder)
    strategy = get(found, "args", "strategy") or get(found, "config", "strategy")
    builder.condition("strategy", text(get(strategy, "type_")) or "unknown")
    if (rate := plain(get(strategy, "rate"))) is not None:
        benchmark.asked_rate = rate
        builder.condition("asked_rate", quantity(rate, "req/s"))
    totals = get(found, "metrics", "request_totals") or get(found, "run_stats", "requests_made")
    for key, name in (
        ("successful", "requests_ok"), ("errored", "requests_failed"), ("incomplete", "requests_incomplete"),
    ):  # fmt: skip
        if (count := plain(get(totals, key))) is not None:
            benchmark.put(name, count, line)
    duration = plain(found.get("duration"))
    start, end = plain(found.get("start_time")), plain(found.get("end_time"))
    benchmark.duration_s = duration if duration is not None else end - start if end and start else None
    for key, (metric, unit) in (_JSON_METRICS | _JSON_RATES).items():
        rate_like = key in _JSON_RATES
        part = get(found, "metrics", key, "successful") or get(found, key, "successful")
        for statistic, value in _statistics(part):
            if rate_like and statistic != "mean":
                continue
            figure = number(value)
            kept = figure if isinstance(figure, NoValue) or not unit else quantity(figure, unit)
            benchmark.put(metric if rate_like else f"{metric}_{statistic}", kept, line)
    return _finish(benchmark)


def _statistics(part: Any) -> list[tuple[str, Any]]:
    found = [(name, get(part, key)) for key, name in (("mean", "mean"), ("median", "p50"), ("std_dev", "std"))]
    percentiles = get(part, "percentiles")
    for key in ("p90", "p95", "p99"):
        found.append((key, get(percentiles, key)))
    return [(name, value) for name, value in found if value is not None]


GUIDELLM: Final = Reader("guidellm", "GuideLLM: console tables and JSON", recognise, read)
