"""One serving benchmark as every client reports it, and what a careful person says about its figures.

Names: `ttft_`, `tpot_`, `itl_`, `e2e_` with `mean`, `p50`, `p95`, `p99`, `std`, `min`, `max`; `request_rate`,
`output_token_rate`, `total_token_rate`, `input_token_rate`, `goodput`, `peak_output_token_rate`; `requests_ok`,
`requests_failed`, `requests_asked`. Conditions: `asked_rate` in req/s or `inf`, `concurrency` the most requests at
once that the client allowed, `duration`, `streaming`, `input_tokens` and `output_tokens` the mean of a request.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import quantity

#: An achieved rate below this share of the asked one is an overload; our default.
KEPT_UP: Final = 0.8
#: Mean time to the first token from which on it is mostly waiting, seconds; our default.
QUEUEING_S: Final = 5.0
_QUICK_S: Final = 0.5
_AGREES: Final = 0.02
_STEPS: Final = ("min", "p50", "p75", "p90", "p95", "p99", "p99_9", "max")
_NO_ANSWER: Final = "no request was answered"
_ONE_TOKEN: Final = "nothing was timed, as where every answer is one token"
_NO_TIMES: Final = {
    "ttft": "nothing was timed", "e2e": "nothing was timed", "tpot": _ONE_TOKEN, "itl": _ONE_TOKEN,
}  # fmt: skip
_NOT_STREAMED: Final = "measured without streaming: the time of the whole answer, not of the first token"


class Benchmark:
    """Figures of one run; `finish` checks them against each other and keeps them.

    Args:
        builder: where they go.
    """

    def __init__(self, builder: RunBuilder) -> None:
        self.builder = builder
        self._values: dict[str, tuple[Value, int]] = {}
        self.asked_rate: float | None = None
        self.cap: float | None = None
        self.duration_s: float | None = None
        self.streaming: bool | None = None
        self.tokens: dict[str, float] = {}

    def put(self, name: str, value: Value, line: int = 0) -> None:
        """Keep a figure; the same figure twice with different values is unreadable."""
        before = self._values.get(name)
        if before is None or before[0] == value:
            self._values.setdefault(name, (value, line))
            return
        if isinstance(before[0], Quantity) and isinstance(value, Quantity) and before[0].value == value.value:
            return
        message = f"{name} is printed as {before[0]} and as {value}"
        self.builder.notice("value-twice", message, Weight.ERROR, line)
        self._values[name] = (NoValue(Lack.UNREADABLE, f"{before[0]} and {value}"[:40], "printed twice"), line)

    def has(self, name: str) -> bool:
        """Whether the figure is there with a value."""
        return self.number(name) is not None

    def number(self, name: str) -> float | None:
        """Magnitude of a figure in base units, None without a value."""
        value = self._values.get(name, (None, 0))[0]
        if isinstance(value, Quantity):
            return value.value
        return value if isinstance(value, float) else None

    def forget(self, starts: tuple[str, ...], why: str) -> None:
        """Make the figures with these beginnings of a name absent."""
        for name, (value, line) in list(self._values.items()):
            if name.startswith(starts):
                self._values[name] = (NoValue(Lack.ABSENT, str(value)[:40], why), line)

    def scale(self, start: str, factor: float) -> None:
        """Multiply the figures with this beginning of a name: their label names a wrong unit."""
        for name, (value, line) in list(self._values.items()):
            if name.startswith(start) and isinstance(value, Quantity):
                self._values[name] = (Quantity(value.value * factor, value.powers), line)

    def finish(self) -> None:
        """Check and keep everything."""
        self._forget_zeros()
        self._say_conditions()
        self._count()
        self._check_rates()
        self._check_latencies()
        self._check_load()
        if self.streaming is False:
            self._blind()
        for name, (value, line) in self._values.items():
            self.builder.observe(name, value, (), line)

    def _forget_zeros(self) -> None:
        """Zeros stand where nothing was timed: no answer, or answers of one token, between which no time passes."""
        nothing = self.number("requests_ok") == 0
        for metric, why in _NO_TIMES.items():
            found = [v for n, (v, _) in self._values.items() if n.startswith(f"{metric}_") and not n.endswith("_std")]
            if found and all(isinstance(value, Quantity) and value.value == 0 for value in found):
                self.forget((f"{metric}_",), _NO_ANSWER if nothing else why)
                if not nothing:
                    self.builder.notice("not-timed", f"{metric} is 0 throughout, which is no time: {why}")

    def _say_conditions(self) -> None:
        builder, done = self.builder, self.number("requests_ok")
        if self.duration_s is not None:
            builder.condition("duration", quantity(self.duration_s, "s"))
        if self.streaming is not None:
            builder.condition("streaming", self.streaming)
        for side in ("input", "output"):
            total = self.tokens.get(side)
            if total is not None:
                self.put(f"{side}_tokens_total", quantity(total, "tokens"))
                if done:
                    builder.condition(f"{side}_tokens", round(total / done, 2))

    def _count(self) -> None:
        done, failed, asked = (self.number(f"requests_{n}") for n in ("ok", "failed", "asked"))
        builder = self.builder
        if failed is None and done is not None and asked is not None and "requests_failed" not in self._values:
            failed = asked - done
            self.put("requests_failed", failed)
        if done is None:
            builder.notice("success-unknown", "how many requests were answered is not printed", Weight.ERROR)
        elif failed is None and asked is None:
            message = "how many requests were asked or failed is not printed: the share of answered ones is unknown"
            builder.notice("success-rate-unknown", message, Weight.WARNING)
        elif done == 0:
            builder.notice("nothing-answered", "no request was answered", Weight.ERROR)
        if failed and done is not None:
            share = failed / (failed + done)
            weight = Weight.ERROR if share >= 0.01 else Weight.WARNING
            message = f"{failed:.0f} of {failed + done:.0f} requests failed ({share:.2g}); latencies are of the others"
            builder.notice("requests-failed", message.replace(f"({share:.2g})", f"({share:.1%})"), weight)

    def _check_rates(self) -> None:
        seconds, done = self.duration_s, self.number("requests_ok")
        if seconds and done is not None:
            self._compare("request_rate", done / seconds, "requests over time")
        if seconds and "output" in self.tokens:
            self._compare("output_token_rate", self.tokens["output"] / seconds, "generated tokens over time")
            if "input" in self.tokens:
                both = sum(self.tokens.values())
                self._compare("total_token_rate", both / seconds, "all tokens over time")
        mean, peak = self.number("output_token_rate"), self.number("peak_output_token_rate")
        if mean and peak is not None and peak < mean * (1 - _AGREES):
            message = f"the peak output rate {peak:g} tokens/s is below the mean {mean:g}: impossible"
            self.builder.notice("impossible", message, Weight.ERROR)

    def _compare(self, name: str, expected: float, what: str) -> None:
        found = self.number(name)
        if found is None or abs(found - expected) <= max(_AGREES * abs(expected), 0.006):
            return
        message = f"{name} is printed as {found:g} per s, {what} give {expected:g}"
        self.builder.notice("inconsistent", message, Weight.ERROR)

    def _check_latencies(self) -> None:
        for metric in ("ttft", "tpot", "itl", "e2e"):
            steps = [(s, v) for s in _STEPS if (v := self.number(f"{metric}_{s}")) is not None]
            for (low, a), (high, b) in pairwise(steps):
                if a > b * (1 + 1e-9):
                    message = f"{metric} {low} {a:g} s is above {high} {b:g} s: impossible"
                    self.builder.notice("impossible", message, Weight.ERROR)
        first, whole = self.number("ttft_mean"), self.number("e2e_mean")
        if first is not None and whole is not None and first > whole * (1 + 1e-6):
            message = f"the mean time to the first token, {first:g} s, is above that of the whole answer, {whole:g} s"
            self.builder.notice("impossible", message, Weight.ERROR)

    def _check_load(self) -> None:
        rate, first = self.number("request_rate"), self.number("ttft_mean") or self.number("ttft_p50")
        asked, builder = self.asked_rate, self.builder
        if asked and rate is not None and rate < KEPT_UP * asked and not (first is not None and first < _QUICK_S):
            message = f"{asked:g} req/s were asked and {rate:g} achieved: overloaded, latencies are mostly waiting"
            builder.notice("overloaded", message, Weight.WARNING)
        last = self.number("ttft_p99")
        if (first is not None and first >= QUEUEING_S) or (last is not None and last >= 6 * QUEUEING_S):
            said = f"mean {first:.4g} s" if first is not None else ""
            said += f"{', ' if said else ''}99th percentile {last:.4g} s" if last is not None else ""
            message = f"time to the first token: {said}: requests wait for their turn, this is no service time"
            builder.notice("queueing", message, Weight.WARNING)
        peak = self.number("peak_concurrency")
        if self.cap and peak is not None and peak > self.cap:
            message = f"{peak:g} requests at once where at most {self.cap:g} were allowed (counted per second)"
            builder.notice("concurrency-above-cap", message, Weight.INFO)

    def _blind(self) -> None:
        kept = False
        for name, (value, line) in list(self._values.items()):
            if name.startswith(("ttft_", "tpot_", "itl_")) and isinstance(value, Quantity):
                kept = True
                self._values[name] = (NoValue(Lack.UNREADABLE, str(value), _NOT_STREAMED), line)
        if kept:
            self.builder.notice("not-streamed", "times to the first token are " + _NOT_STREAMED, Weight.WARNING)
