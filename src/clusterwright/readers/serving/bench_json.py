"""JSON of vLLM's and SGLang's clients, and of InferenceX (InferenceMAX) which reworks it.

A key with `_ms` counts milliseconds. InferenceX writes the same names without it and means seconds; that is checked
against duration, concurrency and the number of requests (Little's law) where they are there, and where the check
says otherwise the value is unreadable.
"""

from __future__ import annotations

import re
from typing import Any, Final

from clusterwright.model.observations import NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.documents import Json
from clusterwright.readers.fields import number, plain, text
from clusterwright.readers.serving.benchmarks import Benchmark
from clusterwright.readers.serving.labels import name_statistic
from clusterwright.readers.values import quantity, unreadable

_LATENCY: Final = re.compile(
    r"(mean|median|std|max|min|p\d{1,2}(?:\.\d{1,4})?)_(ttft|tpot|itl|e2el|e2e_latency)(_ms|_s)?"
)
_METRICS: Final = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e", "e2e_latency": "e2e"}
_FIGURES: Final = {
    "completed": ("requests_ok", ""), "failed": ("requests_failed", ""), "num_prompts": ("requests_asked", ""),
    "request_throughput": ("request_rate", "req/s"), "output_throughput": ("output_token_rate", "tokens/s"),
    "input_throughput": ("input_token_rate", "tokens/s"), "total_throughput": ("total_token_rate", "tokens/s"),
    "total_token_throughput": ("total_token_rate", "tokens/s"), "request_goodput": ("goodput", "req/s"),
    "max_output_tokens_per_s": ("peak_output_token_rate", "tokens/s"),
    "max_concurrent_requests": ("peak_concurrency", ""), "concurrency": ("mean_concurrency", ""),
    "tput_per_gpu": ("token_rate_per_gpu", "tokens/s"),
    "output_tput_per_gpu": ("output_token_rate_per_gpu", "tokens/s"),
    "input_tput_per_gpu": ("input_token_rate_per_gpu", "tokens/s"), "accept_length": ("acceptance_length", ""),
}  # fmt: skip
_CONDITIONS: Final = {
    "model_id": "model", "model": "model", "backend": "engine", "endpoint_type": "endpoint", "framework": "engine",
    "date": "started", "label": "label", "hw": "hardware", "precision": "precision", "tp": "tensor_parallel",
    "ep": "expert_parallel", "isl": "asked_input_tokens", "osl": "asked_output_tokens", "dataset_name": "dataset",
    "burstiness": "burstiness", "image": "image",
}  # fmt: skip
#: A latency in seconds and one in milliseconds are a factor 1,000 apart: this lies between.
_OTHER_UNIT: Final = 30.0


def is_result(value: Any) -> bool:
    """Whether a JSON value is a result of one of these clients."""
    if not isinstance(value, dict):
        return False
    known = sum(1 for key in value if _LATENCY.fullmatch(str(key)))
    return known >= 2 and bool({"completed", "request_throughput", "output_throughput", "tput_per_gpu"} & value.keys())


def is_sglang(value: dict[str, Any]) -> bool:
    """Whether SGLang wrote it."""
    return "total_output_tokens_retokenized" in value or "mean_e2e_latency_ms" in value


def read_result(document: Json, tool: str, line: int) -> Run:
    """The run of one JSON object."""
    found: dict[str, Any] = document.value
    builder = RunBuilder(tool)
    benchmark = Benchmark(builder)
    twice = {duplicate.key for duplicate in document.duplicates}
    for duplicate in document.duplicates:
        values = " and ".join(str(v)[:40] for v in duplicate.values[:3])
        builder.notice("duplicate-key", f"{duplicate.key} stands there twice: {values}", Weight.ERROR, line)
    for key, name in _CONDITIONS.items():
        if (said := text(found.get(key))) and name not in builder.conditions():
            builder.condition(name, said)
    _load(benchmark, found)
    seconds = _counts_seconds(found)
    for key, value in found.items():
        if key in twice:
            name = _name(key)
            if name:
                benchmark.put(name, unreadable(str(value), "the key stands there twice"), line)
        elif latency := _LATENCY.fullmatch(key):
            benchmark.put(_name(key), _latency(value, latency[3], seconds), line)
        elif key in _FIGURES:
            _figure(benchmark, *_FIGURES[key], value, line)
    if not found.keys() & {"mean_ttft_ms", "median_ttft_ms", "median_ttft", "mean_ttft"}:
        builder.missing("the time to the first token")
    benchmark.finish()
    return builder.build()


def _name(key: str) -> str:
    if latency := _LATENCY.fullmatch(key):
        return name_statistic(latency[1], _METRICS[latency[2]])
    return _FIGURES[key][0] if key in _FIGURES else ""


def _load(benchmark: Benchmark, found: dict[str, Any]) -> None:
    rate, cap = found.get("request_rate"), plain(found.get("max_concurrency", found.get("conc")))
    if isinstance(rate, str) and rate.lower() in ("inf", "infinity"):
        benchmark.builder.condition("asked_rate", "inf")
    elif (asked := plain(rate)) is not None:
        benchmark.asked_rate = asked
        benchmark.builder.condition("asked_rate", quantity(asked, "req/s"))
    if cap is not None:
        benchmark.cap = cap
        benchmark.builder.condition("concurrency", cap)
    benchmark.duration_s = plain(found.get("duration"))
    for side, key in (("input", "total_input_tokens"), ("output", "total_output_tokens")):
        if (total := plain(found.get(key))) is not None:
            benchmark.tokens[side] = total


def _figure(benchmark: Benchmark, name: str, unit: str, value: Any, line: int) -> None:
    if value is None and name in ("goodput", "requests_failed"):
        return
    found = number(value)
    benchmark.put(name, quantity(found, unit) if unit and not isinstance(found, NoValue) else found, line)


def _latency(value: Any, suffix: str | None, seconds: bool) -> Value:
    found = number(value)
    if isinstance(found, NoValue):
        return found
    if suffix is None and not seconds:
        return unreadable(str(value), "no unit in the key, and seconds contradict duration and concurrency")
    return quantity(found, "ms" if suffix == "_ms" else "s")


def _counts_seconds(found: dict[str, Any]) -> bool:
    """Whether end-to-end latencies without a unit can be seconds: concurrency = rate · latency."""
    latency = plain(found.get("mean_e2el", found.get("median_e2el")))
    duration, done = plain(found.get("duration")), plain(found.get("completed"))
    most = plain(found.get("max_concurrency", found.get("conc")))
    if not latency or not duration or not done or not most:
        return True
    expected = duration * most / done
    return latency < _OTHER_UNIT * expected
