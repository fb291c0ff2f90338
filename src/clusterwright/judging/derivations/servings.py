"""Serving benchmarks and server start-up logs: latency and rates at a load, and how many requests were answered.

Latencies count only beside the share of answered requests: a server that refuses half is fast. Without streaming
there is no first token to time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.judging.derivations.facts import Facts
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Reading

METRICS_OF: Final = ("request_success", "ttft_p95", "ttft_p99", "tpot_p95", "tpot_p99", "request_rate")
CAPACITY_METRICS: Final = ("kv_cache_tokens",)
_METRICS: Final = {
    "ttft_p50": "ttft_p50", "ttft_p95": "ttft_p95", "ttft_p99": "ttft_p99",
    "tpot_p50": "tpot_p50", "tpot_p95": "tpot_p95", "tpot_p99": "tpot_p99",
    "itl_p95": "itl_p95", "itl_p99": "itl_p99", "e2e_p95": "latency_p95", "e2e_p99": "latency_p99",
    "request_rate": "request_rate", "output_token_rate": "output_token_rate", "goodput": "goodput",
}  # fmt: skip
_STREAMED: Final = ("ttft", "tpot", "itl")
_LATENCIES: Final = (*_STREAMED, "e2e")
_LOAD: Final = ("model", "engine", "asked_rate", "input_tokens", "output_tokens")


def derive_servings(facts: Facts) -> Iterator[Reading]:
    """Latencies, rates, and the share of requests that were answered."""
    conditions = {name: text for name in _LOAD if (text := facts.text(name))}
    if not facts.has(*_METRICS, "requests_ok"):
        return
    success = _success(facts, conditions)
    for name, metric in _METRICS.items():
        for o in facts.of(name):
            yield facts.reading(metric, o.value, conditions)
            if why := _why_no_pass(facts, name, success):
                yield facts.reading(metric, None, conditions, why=why)
    yield success


def _why_no_pass(facts: Facts, name: str, success: Reading) -> str:
    """Why a good value may not pass, or ""; a bad one still fails."""
    if facts.run.condition("streaming") is False and name.startswith(_STREAMED):
        return "not comparable: without streaming this is the time of the whole answer"
    if name.startswith(_LATENCIES) and success.value is None:
        return f"not checked: latencies are of answered requests, and {success.unreadable.removeprefix('no value: ')}"
    return ""


def _success(facts: Facts, conditions: dict[str, str]) -> Reading:
    done, failed, asked = (facts.number(n) for n in ("requests_ok", "requests_failed", "requests_asked"))
    whole = asked if asked is not None else None if failed is None or done is None else done + failed
    if done is None or not whole:
        why = "no value: how many were asked for or failed is not printed"
        return facts.reading("request_success", None, conditions, why=why)
    share = done / whole
    text = "100%" if share == 1 else f"{min(share * 100, 99.99):.4g}%"
    return facts.reading("request_success", Quantity(share, (), text), conditions)


def derive_capacities(facts: Facts) -> Iterator[Reading]:
    """Tokens for which a started server has room."""
    for o in facts.of("kv_cache_tokens"):
        value = o.value
        if isinstance(value, float | int) and not isinstance(value, bool):
            value = Quantity(float(value), (("token", 1),), f"{value:,.0f} tokens")
        yield facts.reading("kv_cache_tokens", value)
