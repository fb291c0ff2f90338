"""What the command line or the printed arguments of a benchmark client say about the load."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.readers.serving.benchmarks import Benchmark
from clusterwright.readers.values import quantity, read_number

_CLIENT: Final = re.compile(r"vllm bench|benchmark_serving|bench_serving|Namespace\(|--num-prompts|--no-stream\b")
_FLAG: Final = re.compile(r"--([a-z][\w-]{1,40})(?:[= ]+([^\s\\-][^\s\\]*))?")
_ARGUMENT: Final = re.compile(
    r"\b(num_prompts|request_rate|max_concurrency|model|backend|disable_stream)=('[^']*'|[^,)\s]+)"
)
#: What vLLM's client says before it begins.
_ANNOUNCED: Final = re.compile(
    r"(?:Traffic request rate: ([\d.]{1,20}|inf)(?: RPS)?\.?|Maximum request concurrency: (\d{1,9}))$"
)
_NAMES: Final = {
    "num-prompts": "asked", "num_prompts": "asked", "num-prompt": "asked", "request-rate": "rate",
    "request_rate": "rate", "max-concurrency": "cap", "max_concurrency": "cap", "model": "model", "backend": "engine",
    "no-stream": "no-stream", "disable-stream": "no-stream", "disable_stream": "no-stream",
}  # fmt: skip


class Command:
    """Options of the client, collected over the lines before a result."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._open = False

    def take(self, text: str) -> None:
        """One line that stands before a result; options count on a client's command and the lines that continue it."""
        if announced := _ANNOUNCED.match(text):
            said = "rate" if announced[1] else "cap"
            self._found.setdefault(said, announced[1] or announced[2])
            return
        if not (self._open or _CLIENT.search(text)):
            return
        self._open = text.endswith("\\")
        for key, value in (*_FLAG.findall(text[:20_000]), *_ARGUMENT.findall(text[:20_000])):
            name = _NAMES.get(key)
            if name == "no-stream":
                self._found[name] = value if value in ("True", "False") else "True"
            elif name and value:
                self._found[name] = value.strip("'\"")

    def tell(self, benchmark: Benchmark) -> None:
        """Hand on what was found."""
        asked = read_number(self._found.get("asked", ""))
        if isinstance(asked, float):
            benchmark.put("requests_asked", asked)
        for key in ("model", "engine"):
            if key in self._found:
                benchmark.builder.condition(key, self._found[key][:200])
        rate, cap = read_number(self._found.get("rate", "")), read_number(self._found.get("cap", ""))
        if self._found.get("rate", "").rstrip(".") in ("inf", "Infinity"):
            benchmark.builder.condition("asked_rate", "inf")
        elif isinstance(rate, float):
            benchmark.asked_rate = rate
            benchmark.builder.condition("asked_rate", quantity(rate, "req/s"))
        if isinstance(cap, float):
            benchmark.cap = cap
            benchmark.builder.condition("concurrency", cap)
        if self._found.get("no-stream") == "True":
            benchmark.streaming = False
