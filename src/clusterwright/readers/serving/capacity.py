"""Capacity in the start-up log of vLLM, SGLang or TensorRT-LLM: weights, KV cache, how many full requests fit.

Names: `kv_cache_tokens`, `kv_cache_memory`, `kv_cache_blocks`, `max_concurrency` (how many requests of full length
fit), `weight_memory`, `server_starts` (False where the log says that it does not). Subject: worker, where several log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, Notice, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.serving import capacity_tables
from clusterwright.readers.serving.capacity_patterns import (
    CONCURRENCY,
    CONDITIONS,
    ENGINE_START,
    FAILURES,
    OVERRIDE,
    PATTERNS,
    WORKER,
    Pattern,
)
from clusterwright.readers.serving.concurrencies import say_concurrency
from clusterwright.readers.values import quantity, read_number

#: Two ways to the same number of tokens that are further apart contradict each other.
_AGREES: Final = 0.10
_BLOCK_SIZES: Final = (1, 8, 16, 32, 64, 128, 256)
_MOST_RUNS: Final = 1_000
#: Of a line, characters that are looked at; the lines of servers are far shorter.
_LONGEST: Final = 4_000
_STRONG: Final = (
    "GPU KV cache size:", "Maximum concurrency for", "KV Cache is allocated.", "in paged KV cache",
    "No available memory for the cache blocks", "Loading model weights took", "max_total_num_tokens=",
    "number of tokens that can be stored in KV cache", "KV cache memory:",
)  # fmt: skip
_WEAK: Final = ("GPU blocks:", "Load weight end.", "Model loading took", "Memory pool end.", "Memory profiling results")


def recognise(head: Head) -> int:
    """Strong by the lines about the KV cache, weak by those about the weights."""
    strong = sum(1 for mark in _STRONG if mark in head.text)
    if strong:
        return min(80 + 4 * strong, 92)
    if capacity_tables.is_table(head.text):
        return 75
    return 45 if any(mark in head.text for mark in _WEAK) else 0


def read(source: Source) -> Sequence[Run]:
    """A run for every start of a server."""
    if capacity_tables.is_table(source.head) and not any(mark in source.head for mark in _STRONG):
        return capacity_tables.read_table(source.lines(prefixes=False))
    reader = _Reader()
    for line in source.lines():
        reader.take(line)
    reader.finish()
    if not reader.runs:
        raise Refused("no line about the capacity of a server")
    return _say_lengths(reader.runs)


def _say_lengths(runs: list[Run]) -> list[Run]:
    """Say it where the cache differs between lengths: activations take more or less beside it."""
    found = {
        str(run.condition("max_model_length")): str(o.value)
        for run in runs
        for o in run.observations
        if o.name == "kv_cache_tokens" and isinstance(o.value, Quantity) and run.condition("max_model_length")
    }
    if len(found) < 2 or len(set(found.values())) < 2:
        return runs
    said = ", ".join(f"{tokens} at a length of {length}" for length, tokens in list(found.items())[:6])
    message = f"KV cache of {said}: activations of the profiled length take what the cache loses"
    notice = Notice("capacity-varies-with-length", message, Weight.INFO)
    return [replace(run, notices=(*run.notices, notice)) for run in runs]


class _Reader:
    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._begin()

    def _begin(self) -> None:
        self._builder = RunBuilder("server")
        self._values: dict[tuple[str, str], tuple[Value, int]] = {}
        self._lengths: list[tuple[float, float]] = []
        self._failed = False

    def take(self, line: Line) -> None:
        """One more line."""
        text = line.text[:_LONGEST]
        if ENGINE_START.search(text) and self._values:
            self.finish()
        for form, name in CONDITIONS:
            if found := form.search(text):
                if name == "version":
                    self._builder.version = self._builder.version or found[1][:40]
                elif name not in self._builder.conditions():
                    self._builder.condition(name, found[1][:200])
        worker = WORKER.search(text)
        who = (worker["a"] or f"TP{worker['b']}") if worker else ""
        for pattern in PATTERNS:
            if found := pattern.form.search(text):
                self._value(pattern, found[1], who, line.number)
        if found := CONCURRENCY.search(text):
            self._length(found[1], found[2])
        if found := OVERRIDE.search(text):
            message = f"the number of KV blocks is overridden: {found[2]} instead of {found[1]}"
            self._builder.notice("blocks-overridden", message, Weight.WARNING, line.number)
        self._failures(text, line.number)

    def _value(self, pattern: Pattern, text: str, who: str, number: int) -> None:
        if pattern.starts and (pattern.name, who) in self._values and self._has_capacity():
            self.finish()
        self._builder.tool = pattern.engine if self._builder.tool == "server" else self._builder.tool
        found = read_number(text.replace(",", ""))
        value: Value = found
        if not isinstance(found, NoValue):
            value = (
                _tokens(found) if pattern.unit == "token" else quantity(found, pattern.unit) if pattern.unit else found
            )
        if pattern.label:
            message = f"{pattern.engine} prints {pattern.unit} under the label {pattern.label}"
            self._builder.notice("unit-label", message, Weight.INFO, number)
        key = (pattern.name, who)
        before = self._values.get(key)
        if before is None:
            self._values[key] = (value, number)
        elif str(before[0]) != str(value) and pattern.name in ("kv_cache_tokens", "max_concurrency"):
            message = f"{pattern.name} is logged as {before[0]} and as {value}; the smaller one is kept"
            self._builder.notice("ranks-differ", message, Weight.WARNING, number)
            if _size(value) < _size(before[0]):
                self._values[key] = (value, number)

    def _has_capacity(self) -> bool:
        return any(name in ("kv_cache_tokens", "kv_cache_blocks", "max_concurrency") for name, _ in self._values)

    def _length(self, length: str, times: str) -> None:
        tokens, found = read_number(length.replace(",", "")), read_number(times)
        if isinstance(tokens, float) and isinstance(found, float) and len(self._lengths) < 1000:
            self._lengths.append((tokens, found))
            if "max_model_length" not in self._builder.conditions():
                self._builder.condition("max_model_length", f"{tokens:.0f}")

    def _failures(self, text: str, number: int) -> None:
        for form, code, meaning in FAILURES:
            if found := form.search(text):
                self._failed = True
                groups = found.groupdict()
                if groups:
                    meaning = f"{meaning}: {groups['asked']} tokens asked, room for {groups['room']}"
                self._builder.notice(code, meaning, Weight.ERROR, number)
                return

    def finish(self) -> None:
        """End the start that is being read."""
        if (self._values or self._failed) and len(self.runs) < _MOST_RUNS:
            self.runs.append(self._build())
        self._begin()

    def _build(self) -> Run:
        builder = self._builder
        self._blocks_to_tokens()
        self._compare()
        for length, times in dict.fromkeys(self._lengths):
            say_concurrency(builder, times, f"{length:,.0f} tokens")
        for (name, who), (value, number) in self._values.items():
            builder.observe(name, value, (("worker", who),) if who else (), number)
        if self._failed:
            builder.observe("server_starts", False)
        if not self._failed and not self._has_capacity():
            builder.missing("the size of the KV cache")
        return builder.build()

    def _number(self, name: str) -> float | None:
        found = [_size(value) for (key, _), (value, _) in self._values.items() if key == name]
        known = [size for size in found if size != float("inf")]
        return min(known) if known else None

    def _blocks_to_tokens(self) -> None:
        """Tokens of a number of blocks; the size of a block shows in the concurrency, it is not assumed."""
        blocks = self._number("kv_cache_blocks")
        if blocks is None or self._number("kv_cache_tokens") is not None:
            return
        line = next(number for (name, _), (_, number) in self._values.items() if name == "kv_cache_blocks")
        sizes = {
            size
            for length, times in self._lengths
            for size in _BLOCK_SIZES
            if blocks and abs(length * times / blocks - size) < _AGREES * size
        }
        if len(sizes) == 1:
            tokens: Value = _tokens(blocks * sizes.pop())
        else:
            tokens = NoValue(Lack.ABSENT, f"{blocks:.0f} blocks", "the size of a block is not printed")
        self._values["kv_cache_tokens", ""] = (tokens, line)

    def _compare(self) -> None:
        tokens = self._number("kv_cache_tokens")
        for length, times in dict.fromkeys(self._lengths):
            if tokens is None or times < 0.1:
                continue
            if abs(length * times - tokens) > _AGREES * max(tokens, length * times):
                message = (
                    f"{tokens:,.0f} tokens of KV cache, but {times:g} requests of {length:,.0f} tokens are "
                    f"{length * times:,.0f}: a model with several kinds of layers, neither follows from the other"
                )
                self._builder.notice("capacity-inconsistent", message, Weight.WARNING)


def _tokens(count: float) -> Quantity:
    return Quantity(count, (("token", 1),), f"{count:,.0f} tokens")


def _size(value: Value) -> float:
    if isinstance(value, Quantity):
        return value.value
    return value if isinstance(value, float) else float("inf")


CAPACITY: Final = Reader(
    "server-capacity", "start-up log of vLLM, SGLang, TensorRT-LLM: memory and KV cache", recognise, read
)
