"""Constants of a serving engine on a system, as fitted to measurements: catalogue data with its fit set and error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from clusterwright.model.entries import Above, Entry, Positive, Record, Share, Text

Engine = Literal["vllm", "sglang", "tensorrt-llm"]


@dataclass(frozen=True, kw_only=True)
class Factors(Record):
    """Factors on an estimate between which nine of ten measurements of rows held out lie, and how many rows those are.

    Args:
        of: which rows, in words.
    """

    low: Above
    high: Above
    rows: Positive
    of: Text


@dataclass(frozen=True, kw_only=True)
class TimeBands(Record):
    """Bands of the two times in one mode.

    Args:
        mode: aggregated, or disaggregated: prefill on workers of its own.
        model: fitted, or new: rows of the model's family were left out with it.
    """

    mode: Literal["aggregated", "disaggregated"]
    model: Literal["fitted", "new"]
    ttft: Factors | None = None
    tpot: Factors | None = None


@dataclass(frozen=True, kw_only=True)
class FitSet(Record):
    """What a calibration was fitted to and how far it is off.

    Args:
        rows: measurements used; `models` among them.
        ttft_error, tpot_error: mean |predicted ÷ measured − 1| on rows held out, None where there were none.
        ttft_median, tpot_median: medians of the same.
        held_out: which rows those are, in words.
        bands: by mode, and by whether the model was fitted; a calibration written before there were any has none.
    """

    rows: Positive
    models: tuple[Text, ...] = ()
    ttft_error: Share | None = None
    tpot_error: Share | None = None
    ttft_median: Share | None = None
    tpot_median: Share | None = None
    held_out: Text
    bands: tuple[TimeBands, ...] = ()

    def band(self, model: Literal["fitted", "new"], mode: str = "aggregated") -> TimeBands | None:
        """The bands of a mode, None where nothing is known of it."""
        return next((each for each in self.bands if (each.mode, each.model) == (mode, model)), None)


@dataclass(frozen=True, kw_only=True)
class Span(Record):
    """Lowest and highest value among the rows that were fitted."""

    low: Above
    high: Above

    def holds(self, value: float) -> bool:
        """Whether a value lies within."""
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Calibration(Entry):
    """Constants of one engine.

    Args:
        versions: that the rows ran, "" where they did not tell; another version falls back to this with less trust.
        gpu: catalogue name, None for every GPU of which nothing better is known.
        constants: by name, see `physics.serving.constants.Constants`.
        spans: prompt, output, concurrency and gpus of the rows; outside them a prediction is an extrapolation.
    """

    engine: Engine
    versions: tuple[str, ...] = ()
    gpu: Text | None = None
    constants: dict[str, Above]
    fit: FitSet
    spans: dict[Literal["prompt", "output", "concurrency", "gpus"], Span] = field(default_factory=dict)
