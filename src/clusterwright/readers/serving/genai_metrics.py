"""Metrics of genai-perf and AIPerf: titles in tables and CSV, keys in JSON.

What both call inter-token latency is (request latency - time to first token) / (tokens - 1) of each request, which
vLLM's client calls TPOT: it is kept under both names. AIPerf's inter-chunk latency is the gap between chunks.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import NoValue, Value, Weight
from clusterwright.readers.serving.benchmarks import Benchmark
from clusterwright.readers.values import quantity, unreadable

_LATENCIES: Final = {
    "time to first token": ("ttft",), "time to second token": ("ttst",), "request latency": ("e2e",),
    "inter token latency": ("itl", "tpot"), "inter chunk latency": ("icl",), "time to first output token": ("ttfo",),
    "output sequence length": ("output_length",), "input sequence length": ("input_length",),
    "output token throughput per user": ("output_token_rate_per_user",), "output token count": ("output_count",),
    "reasoning token count": ("reasoning_count",),
}  # fmt: skip
_SINGLES: Final = {
    "output token throughput": "output_token_rate", "request throughput": "request_rate", "goodput": "goodput",
    "request goodput": "goodput", "total token throughput": "total_token_rate", "request count": "requests_ok",
    "error request count": "requests_failed", "good request count": "requests_good",
    "benchmark duration": "duration", "input token throughput": "input_token_rate",
}  # fmt: skip
_UNITS: Final = {
    "ms": "ms", "s": "s", "sec": "s", "seconds": "s", "us": "µs", "ns": "ns", "tokens": "tokens", "token": "tokens",
    "tokens/sec": "tokens/s", "tokens/s": "tokens/s", "tokens/sec/user": "tokens/s", "requests/sec": "req/s",
    "requests/s": "req/s", "requests": "",
}  # fmt: skip
#: What `(per sec)` of old genai-perf counts.
_PER_SECOND: Final = {
    "output_token_rate": "tokens/s", "request_rate": "req/s", "goodput": "req/s", "total_token_rate": "tokens/s",
    "output_token_rate_per_user": "tokens/s", "input_token_rate": "tokens/s",
}  # fmt: skip
_LENGTHS: Final = ("output_length", "input_length", "output_count", "reasoning_count")
_STATISTICS: Final = re.compile(r"avg|min|max|std|p\d{1,2}(?:\.\d{1,4})?")


def split_title(title: str) -> tuple[str, str]:
    """Name of a metric in lower case and its unit, of `Time to First Token (ms)`."""
    found = re.fullmatch(r"(.*?)\s*\(([^()]*)\)", " ".join(title.split()))
    return (found[1].lower(), found[2]) if found else (" ".join(title.split()).lower(), "")


def is_metric(name: str) -> bool:
    """Whether the name is one that is read."""
    return name in _LATENCIES or name in _SINGLES


def is_statistic(column: str) -> bool:
    """Whether a column is a statistic, such as p99."""
    return _STATISTICS.fullmatch(column.strip()) is not None


def put_metric(benchmark: Benchmark, name: str, unit: str, statistic: str, value: float | NoValue, line: int) -> None:
    """Keep one value.

    Args:
        unit: as printed.
        statistic: avg, min, max, std or a percentile.
    """
    if name in _SINGLES:
        if statistic == "avg":
            _single(benchmark, _SINGLES[name], unit, value, line)
        return
    word = {"avg": "mean"}.get(statistic, statistic.replace(".", "_"))
    for metric in _LATENCIES[name]:
        known = _unit_of(metric, unit)
        if isinstance(value, NoValue):
            benchmark.put(f"{metric}_{word}", value, line)
        elif known is None:
            benchmark.put(f"{metric}_{word}", unreadable(str(value), f"unit {unit!r} is not known"), line)
        else:
            benchmark.put(f"{metric}_{word}", quantity(value, known) if known else value, line)


def _unit_of(metric: str, unit: str) -> str | None:
    if metric in _LENGTHS and unit in ("", "tokens"):
        return "tokens"
    if unit == "per sec":
        return _PER_SECOND.get(metric)
    return _UNITS.get(unit)


def _single(benchmark: Benchmark, name: str, unit: str, value: float | NoValue, line: int) -> None:
    if name == "duration":
        known = _UNITS.get(unit)
        if isinstance(value, float) and known:
            benchmark.duration_s = quantity(value, known).value
        return
    known = "" if name.startswith("requests_") else _unit_of(name, unit)
    kept: Value = value
    if not isinstance(value, NoValue):
        kept = unreadable(str(value), f"unit {unit!r} is not known") if known is None else value
        if known:
            kept = quantity(value, known)
    benchmark.put(name, kept, line)


def say_goodput(benchmark: Benchmark) -> None:
    """Say which share of the requests met the objectives."""
    good, rate = benchmark.number("goodput"), benchmark.number("request_rate")
    if good is None or not rate:
        return
    share = good / rate
    if share < 0.99:
        message = f"{good:g} of {rate:g} req/s met the service objectives: {share:.0%}"
        benchmark.builder.notice("objectives-missed", message, Weight.WARNING)
