"""Labels of the result block that vLLM's and SGLang's clients print: what they are, in which unit.

The unit of a latency stands in its label, `(ms)`; a label without one has no unit and its value is not read.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Lack, NoValue

METRICS: Final = {
    "ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e", "e2e latency": "e2e", "e2e": "e2e",
    "end-to-end latency": "e2e", "latency": "e2e",
}  # fmt: skip
_STATISTIC: Final = re.compile(
    r"(mean|median|std|max|min|p\d{1,2}(?:\.\d{1,4})?) (.+?)(?: \((ms|s|us)\))?", re.IGNORECASE
)
#: Label in lower case, without its unit → (name, unit); "" is a plain count.
FIGURES: Final = {
    "successful requests": ("requests_ok", ""), "failed requests": ("requests_failed", ""),
    "request throughput": ("request_rate", "req/s"), "output token throughput": ("output_token_rate", "tokens/s"),
    "input token throughput": ("input_token_rate", "tokens/s"),
    "total token throughput": ("total_token_rate", "tokens/s"), "request goodput": ("goodput", "req/s"),
    "peak output token throughput": ("peak_output_token_rate", "tokens/s"),
    "peak concurrent requests": ("peak_concurrency", ""), "concurrency": ("mean_concurrency", ""),
    "total generated tokens": ("output", "total"), "total input tokens": ("input", "total"),
    "total generated tokens (retokenized)": ("output_tokens_retokenized", "tokens"),
    "acceptance rate": ("acceptance_rate", "%"), "acceptance length": ("acceptance_length", ""),
    "accept length": ("acceptance_length", ""),
}  # fmt: skip
CONDITIONS: Final = {
    "backend": "engine", "traffic request rate": "asked_rate", "request rate configured": "asked_rate",
    "max request concurrency": "concurrency", "max reqeuest concurrency": "concurrency",
    "maximum request concurrency": "concurrency", "benchmark duration": "duration",
}  # fmt: skip
_UNIT: Final = re.compile(r"^(.*?)\s*\((s|ms|req/s|tok/s|RPS|%)\)$")


def read_statistic(label: str) -> tuple[str, str | None] | None:
    """(`ttft_p99`, unit) of `P99 TTFT (ms)`; the unit is None where the label names none. None: another label."""
    found = _STATISTIC.fullmatch(label.strip())
    if found is None or found[2].lower() not in METRICS:
        return None
    unit = {"ms": "ms", "s": "s", "us": "µs"}.get(found[3] or "")
    return name_statistic(found[1], METRICS[found[2].lower()]), unit


def name_statistic(statistic: str, metric: str) -> str:
    """`ttft_p50` of median and ttft; `ttft_p99_9` of p99.9."""
    word = statistic.lower().replace(".", "_")
    return f"{metric}_{ {'median': 'p50', 'avg': 'mean', 'stddev': 'std'}.get(word, word) }"


def split_unit(label: str) -> tuple[str, str]:
    """Label without its unit, in lower case, and the unit."""
    found = _UNIT.match(label.strip())
    return (found[1].lower(), found[2]) if found else (label.strip().lower(), "")


def without_unit(text: str) -> NoValue:
    """The value of a label that names no unit."""
    return NoValue(Lack.UNREADABLE, text[:40], "the label names no unit")
