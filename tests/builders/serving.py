"""Devices, sides and settings of serving for tests, and what a setting meets at one concurrency, with all terms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from builders.decoders import llama_70b
from clusterwright.model.decoders import Decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.answers import Setting, latencies
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.sides import Device, Side, side
from clusterwright.physics.serving.steps import Terms
from clusterwright.physics.serving.traffic import traffic

#: Peaks of an H100 SXM as its datasheet gives them.
H100 = Device(79.1, 3.35e12, {"bf16": 989.4e12, "fp8": 1978.9e12}, 450e9, 8)


def worker(
    decoder: Decoder | None = None,
    layout: Layout | None = None,
    *,
    weights: str | None = None,
    cache: str = "bf16",
    device: Device = H100,
    cache_tokens: float | None = None,
) -> Side:
    """A worker of Llama 70B on eight H100 unless said otherwise."""
    model = traffic(decoder or llama_70b(), weights=weights, cache=cache)
    return side(model, layout or Layout(tp=8), device, cache_tokens=cache_tokens)


def setting(decode: Side | None = None, **changed: object) -> Setting:
    """1,000 prompt and 500 output tokens unless said otherwise."""
    values: dict[str, object] = {"prompt": 1000.0, "output": 500.0, "constants": Constants()} | changed
    return Setting(decode or worker(), **values)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds by term in the order of the formulas; `seconds` is their math.fsum."""

    terms: tuple[tuple[str, float], ...]

    @property
    def seconds(self) -> float:
        """Sum of the terms."""
        return math.fsum(value for _, value in self.terms)


@dataclass(frozen=True, slots=True)
class Answer:
    """What requests meet at a concurrency.

    Args:
        concurrency: requests in flight over all workers; `running` of them decode.
    """

    concurrency: float
    running: float
    ttft: Timed
    tpot: Timed
    output: float

    @property
    def request_s(self) -> float:
        """Seconds from arrival to the last token."""
        return self.ttft.seconds + self.output * self.tpot.seconds

    @property
    def requests_s(self) -> float:
        """Requests completed per second, by Little's law."""
        return self.concurrency / self.request_s

    @property
    def output_tokens_s(self) -> float:
        """Output tokens per second over all requests."""
        return self.requests_s * self.output


def answer(setting: Setting, concurrency: float) -> Answer:
    """TTFT and TPOT of a setting at `concurrency` requests in flight."""
    found = latencies(setting, np.array([float(concurrency)]))
    return Answer(concurrency, float(found.running[0]), _timed(found.ttft), _timed(found.tpot), setting.output)


def _timed(terms: Terms) -> Timed:
    return Timed(tuple((name, float(value[0])) for name, value in terms.items()))
