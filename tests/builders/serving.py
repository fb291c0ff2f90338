"""Devices, sides and settings of serving for tests."""

from __future__ import annotations

from builders.decoders import llama_70b
from clusterwright.model.decoders import Decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.answers import Setting
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.sides import Device, Side, side
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
