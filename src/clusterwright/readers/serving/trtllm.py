"""trtllm-bench: the printed report and the JSON of --report_json.

Source: TensorRT-LLM `tensorrt_llm/bench/dataclasses/reporting.py`. Units stand in the labels and keys;
"Number of requests" counts those that were answered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from clusterwright.model.observations import NoValue, Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.fields import get, number, plain, text
from clusterwright.readers.json_streams import load_documents
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.serving.benchmarks import Benchmark
from clusterwright.readers.values import quantity, read_number

_ROW: Final = re.compile(r"\s*(\[?[A-Za-z][^:]{0,70}?)\s*:\s*(\S.*)")
_FIGURES: Final = {
    "Request Throughput (req/sec)": ("request_rate", "req/s"),
    "Total Output Throughput (tokens/sec)": ("output_token_rate", "tokens/s"),
    "Token Throughput (tokens/sec)": ("output_token_rate", "tokens/s"),
    "Total Token Throughput (tokens/sec)": ("total_token_rate", "tokens/s"),
    "Average request latency (ms)": ("e2e_mean", "ms"),
    "Per User Output Throughput [w/ ctx] (tps/user)": ("output_token_rate_per_user", "tokens/s"),
    "Per GPU Output Throughput (tps/gpu)": ("output_token_rate_per_gpu", "tokens/s"),
    "Average time-to-first-token [TTFT] (ms)": ("ttft_mean", "ms"),
    "Average time-per-output-token [TPOT] (ms)": ("tpot_mean", "ms"),
}  # fmt: skip
_CONDITIONS: Final = {
    "Model": "model", "TensorRT-LLM Version": "version", "TensorRT LLM Version": "version", "Dtype": "dtype",
    "KV Cache Dtype": "kv_cache_dtype", "Quantization": "quantization", "TP Size": "tensor_parallel",
    "PP Size": "pipeline_parallel", "EP Size": "expert_parallel", "Max Runtime Batch Size": "max_batch_size",
    "Max Runtime Tokens": "max_batch_tokens", "Scheduling Policy": "scheduling", "KV Memory Percentage": "kv_memory",
    "Average Input Length (tokens)": "input_tokens", "Average Output Length (tokens)": "output_tokens",
    "Number of concurrent requests": "mean_concurrency",
}  # fmt: skip
_BREAKDOWN: Final = re.compile(r"\[(Latency|TTFT|TPOT)\] (P\d+|MINIMUM|MAXIMUM|AVERAGE)")
_TITLE: Final = re.compile(r"-- (Request Latency|Time-to-First-Token|Time-per-Output-Token).*\((ms)\)")
_WORDS: Final = {"MINIMUM": "min", "MAXIMUM": "max", "AVERAGE": "mean"}
_METRICS: Final = {"Latency": "e2e", "TTFT": "ttft", "TPOT": "tpot"}
_PLACEHOLDER: Final = re.compile(r"[xX]+\.[xX]+|\.{3}|<[^>]*>")
#: More requests a second than any client issues: the tool's way to say that all were issued at once.
_ALL_AT_ONCE: Final = 1e6
_JSON: Final = {
    "request_throughput_req_s": ("request_rate", "req/s"),
    "system_output_throughput_tok_s": ("output_token_rate", "tokens/s"),
    "system_total_throughput_tok_s": ("total_token_rate", "tokens/s"), "avg_request_latency_ms": ("e2e_mean", "ms"),
    "output_throughput_per_user_tok_s": ("output_token_rate_per_user", "tokens/s"),
    "output_throughput_per_gpu_tok_s": ("output_token_rate_per_gpu", "tokens/s"), "avg_ttft_ms": ("ttft_mean", "ms"),
    "avg_tpot_ms": ("tpot_mean", "ms"),
}  # fmt: skip


def recognise(head: Head) -> int:
    """Sure by its headings or JSON keys."""
    if "= PERFORMANCE OVERVIEW" in head.text or '"system_output_throughput_tok_s"' in head.text:
        return 100
    return 90 if "= WORLD + RUNTIME INFORMATION" in head.text or "TensorRT LLM Version:" in head.text else 0


def read(source: Source) -> Sequence[Run]:
    """A run for every report."""
    if '"system_output_throughput_tok_s"' in source.head:
        return _read_json(source.text(prefixes=True))
    reader = _Reader()
    for line in source.lines():
        reader.take(line)
    reader.finish()
    if not reader.runs:
        raise Refused("no report of trtllm-bench")
    return reader.runs


class _Reader:
    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._begin()

    def _begin(self) -> None:
        self._builder = RunBuilder("trtllm-bench")
        self._benchmark = Benchmark(self._builder)
        self._unit = ""
        self._figures = self._rows = 0
        self._empty: tuple[int, str] | None = None
        self._placeholders = 0
        self._whole = False

    def take(self, line: Line) -> None:
        """One more line."""
        text_ = line.text.strip()
        if re.fullmatch(r"(?:= )?(?:\w+ BACKEND|ENGINE DETAILS)", text_):
            self.finish()
        elif title := _TITLE.match(text_):
            self._unit = title[2]
        elif row := _ROW.fullmatch(line.text):
            if "|" in row[2]:
                self._builder.reject(
                    line.number, line.text, "several values in one row: which run each is of, it does not say"
                )
            else:
                self._row(" ".join(row[1].split()), row[2].strip(), line.number)
        elif machine := re.match(r"(NVIDIA [\w -]+), memory [\d.]+ GB, [\d.]+ GHz", text_):
            self._builder.condition("gpu", machine[1])

    def _row(self, label: str, value: str, number: int) -> None:
        if label in _CONDITIONS:
            self._rows += 1
            self._condition(_CONDITIONS[label], value)
        elif label in _FIGURES:
            self._put(*_FIGURES[label], value, number)
        elif found := _BREAKDOWN.fullmatch(label):
            name = f"{_METRICS[found[1]]}_{_WORDS.get(found[2], found[2].lower())}"
            self._put(name, self._unit, value, number)
        elif label == "Number of requests":
            self._benchmark.put("requests_ok", read_number(value), number)
        elif label == "Total Latency (ms)":
            total = read_number(value)
            self._benchmark.duration_s = total / 1000 if isinstance(total, float) else None
            self._whole = True
        elif label == "Issue Rate (req/sec)":
            rate = read_number(value)
            if isinstance(rate, float) and rate > _ALL_AT_ONCE:
                self._builder.condition("asked_rate", "inf")
            elif isinstance(rate, float):
                self._benchmark.asked_rate = rate
                self._builder.condition("asked_rate", quantity(rate, "req/s"))

    def _condition(self, name: str, value: str) -> None:
        if name == "version":
            self._builder.version = value
        else:
            self._builder.condition(name, value[:200])

    def _put(self, name: str, unit: str, value: str, number: int) -> None:
        self._figures += 1
        if _PLACEHOLDER.fullmatch(value):
            self._placeholders += 1
            self._empty = self._empty or (number, value)
        found = read_number(value)
        self._benchmark.put(name, found if isinstance(found, NoValue) or not unit else quantity(found, unit), number)

    def finish(self) -> None:
        """End the report that is being read."""
        if self._empty and 2 * self._placeholders >= self._figures:
            reason = f"a template: {self._placeholders} of {self._figures} figures are placeholders, so no result"
            raise Refused(reason, *self._empty)
        if self._figures or self._rows > 2:
            if not self._figures:
                self._builder.missing("the performance overview")
            elif not self._whole:
                self._builder.missing("the end of the performance overview: Total Latency")
            self._benchmark.finish()
            self.runs.append(self._builder.build())
        self._begin()


def _read_json(whole: str) -> list[Run]:
    runs = []
    for document, line in load_documents(whole):
        if isinstance(get(document.value, "performance"), dict):
            runs.append(_report(document.value, line))
    if not runs:
        raise Refused("JSON without a report of trtllm-bench", 1, whole.lstrip()[:80])
    return runs


def _report(found: dict[str, Any], line: int) -> Run:
    builder = RunBuilder("trtllm-bench", text(get(found, "engine", "version")))
    benchmark = Benchmark(builder)
    for section in ("performance", "streaming_metrics"):
        part = get(found, section)
        for key, value in part.items() if isinstance(part, dict) else ():
            if key in _JSON:
                name, unit = _JSON[key]
                figure = number(value)
                benchmark.put(name, figure if isinstance(figure, NoValue) else quantity(figure, unit), line)
    part = get(found, "performance", "request_latency_percentiles_ms")
    for key, value in part.items() if isinstance(part, dict) else ():
        if re.fullmatch(r"p\d{1,3}|minimum|maximum|average", str(key)) and (latency := plain(value)) is not None:
            benchmark.put(f"e2e_{_WORDS.get(str(key).upper(), str(key))}", quantity(latency, "ms"), line)
    total = plain(get(found, "performance", "total_latency_ms"))
    benchmark.duration_s = total / 1000 if total else None
    if (done := plain(get(found, "request_info", "num_requests"))) is not None:
        benchmark.put("requests_ok", done, line)
    for key, name in (("model", "model"), ("dtype", "dtype"), ("quantization", "quantization")):
        if said := text(get(found, "engine", key)):
            builder.condition(name, said)
    benchmark.finish()
    return builder.build()


TRTLLM: Final = Reader("trtllm-bench", "trtllm-bench: printed report and JSON", recognise, read)
