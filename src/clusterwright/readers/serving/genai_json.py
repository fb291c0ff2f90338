"""JSON of genai-perf and AIPerf: the summary of a run, and the record of each request (`profile_export.jsonl`)."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.model.observations import Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.documents import Json
from clusterwright.readers.fields import amount, get, number, objects, plain, text
from clusterwright.readers.json_streams import load_documents
from clusterwright.readers.refusing import Refused
from clusterwright.readers.serving.benchmarks import Benchmark
from clusterwright.readers.serving.genai_metrics import is_metric, is_statistic, put_metric, say_goodput
from clusterwright.readers.values import quantity, unreadable

_RECORD: Final = {
    "time_to_first_token": "request_ttft", "request_latency": "request_latency",
    "time_to_second_token": "request_ttst", "inter_token_latency": "request_itl",
    "output_sequence_length": "request_output_length", "input_sequence_length": "request_input_length",
    "output_token_throughput_per_user": "request_output_token_rate", "output_token_count": "request_output_count",
}  # fmt: skip
_UNITS: Final = {
    "ms": "ms", "sec": "s", "s": "s", "ns": "ns", "us": "µs", "tokens": "tokens", "tokens/sec/user": "tokens/s",
    "tokens/sec": "tokens/s", "requests/sec": "req/s",
}  # fmt: skip
#: From here on the stamps of a request and its latency are said to differ.
_DIFFERS: Final = 0.01


def read_documents(whole: str) -> list[Run]:
    """A run for every summary; all records of single requests are one run."""
    runs: list[Run] = []
    records: list[tuple[Json, int]] = []
    for document, line in load_documents(whole):
        if isinstance(get(document.value, "metrics"), dict):
            records.append((document, line))
        elif isinstance(document.value, dict) and _metrics(document.value):
            runs.append(_summary(document, line))
    if records:
        runs.append(_records(records))
    if not runs:
        raise Refused("JSON without metrics of genai-perf or AIPerf", 1, whole.lstrip()[:80])
    return runs


def _metrics(value: dict[str, Any]) -> dict[str, Any]:
    """Metrics of a summary by key."""
    inner = value.get("records")
    source = inner if isinstance(inner, dict) else value
    return {k: v for k, v in source.items() if isinstance(v, dict) and "unit" in v and is_metric(k.replace("_", " "))}


def _twice(builder: RunBuilder, document: Json, line: int) -> set[str]:
    for duplicate in document.duplicates:
        shown = " and ".join(str(get(v, "value") if isinstance(v, dict) else v)[:40] for v in duplicate.values[:3])
        builder.notice("duplicate-key", f"{duplicate.key} stands there twice: {shown}", Weight.ERROR, line)
    return {duplicate.key for duplicate in document.duplicates}


def _summary(document: Json, line: int) -> Run:
    found = document.value
    builder = RunBuilder("aiperf" if "aiperf_version" in found or "schema_version" in found else "genai-perf")
    builder.version = text(found.get("aiperf_version"))
    benchmark = Benchmark(builder)
    twice = _twice(builder, document, line)
    for key, row in _metrics(found).items():
        unit = text(row.get("unit"))
        for statistic, value in row.items():
            if is_statistic(statistic):
                lost = unreadable(str(plain(value)), "the key stands there twice") if key in twice else None
                put_metric(benchmark, key.replace("_", " "), unit, statistic, lost or number(value), line)
    for key, name in (("start_time", "started"), ("end_time", "ended")):
        if said := text(found.get(key)):
            builder.condition(name, said)
    _load(benchmark, found.get("input_config"))
    if found.get("was_cancelled") is True:
        builder.missing("the rest of the run: it was cancelled")
    failed = sum(plain(row.get("count")) or 0 for row in objects(found.get("error_summary")))
    if failed and not benchmark.has("requests_failed"):
        benchmark.put("requests_failed", float(failed), line)
    say_goodput(benchmark)
    benchmark.finish()
    return builder.build()


def _load(benchmark: Benchmark, config: Any) -> None:
    load = get(config, "loadgen") or get(config, "perf_analyzer", "stimulus") or {}
    if (cap := plain(get(load, "concurrency"))) is not None:
        benchmark.cap = cap
        benchmark.builder.condition("concurrency", cap)
    if (rate := plain(get(load, "request_rate"))) is not None:
        benchmark.asked_rate = rate
        benchmark.builder.condition("asked_rate", quantity(rate, "req/s"))
    if (asked := plain(get(load, "request_count"))) is not None:
        benchmark.put("requests_asked", asked)
    names = get(config, "endpoint", "model_names") or get(config, "model_names")
    if isinstance(names, list) and names and (model := text(names[0])):
        benchmark.builder.condition("model", model)
    if isinstance(streaming := get(config, "endpoint", "streaming"), bool):
        benchmark.streaming = streaming


def _records(records: list[tuple[Json, int]]) -> Run:
    builder = RunBuilder("aiperf")
    done = failed = 0.0
    warm = 0
    for document, line in records:
        found = document.value
        twice = _twice(builder, document, line)
        meta = found.get("metadata")
        phase = text(get(meta, "benchmark_phase"))
        cancelled = get(meta, "was_cancelled") is True
        if phase == "warmup":
            warm += 1
        elif found.get("error") or cancelled:
            failed += 1
        else:
            done += 1
        name = text(get(meta, "x_request_id")) or text(get(meta, "session_num"))
        subject = (("request", name), *((("phase", phase),) if phase else ()))
        for key, row in found["metrics"].items():
            if key in _RECORD and isinstance(row, dict):
                builder.observe(_RECORD[key], _value(row, key in twice), subject, line)
        _stamps(builder, meta, get(found, "metrics", "request_latency"), name, line)
    builder.observe("requests_ok", done)
    builder.observe("requests_failed", failed)
    if warm:
        builder.notice("warm-up", f"{warm} requests of the warm-up are apart and not counted", Weight.INFO)
    builder.notice("single-requests", "records of single requests, not a summary of the run", Weight.INFO)
    return builder.build()


def _value(row: dict[str, Any], twice: bool) -> Value:
    if twice:
        return unreadable(str(plain(row.get("value"))), "the key stands there twice with different values")
    unit = _UNITS.get(text(row.get("unit")))
    return amount(row.get("value"), unit) if unit else unreadable(text(row.get("value")), "its unit is not known")


def _stamps(builder: RunBuilder, meta: Any, latency: Any, name: str, line: int) -> None:
    """The latency against the stamps of start and end."""
    start, end = plain(get(meta, "request_start_ns")), plain(get(meta, "request_end_ns"))
    unit, value = _UNITS.get(text(get(latency, "unit"))), plain(get(latency, "value"))
    if start is None or end is None or value is None or unit is None:
        return
    seconds, stamped = quantity(value, unit).value, (end - start) / 1e9
    if abs(stamped - seconds) > _DIFFERS * max(stamped, seconds):
        message = f"request {name}: {stamped * 1e3:.2f} ms by its stamps, {seconds * 1e3:.2f} ms by its latency"
        builder.notice("stamps-differ", message, Weight.INFO, line)
