"""Bands hold what they promise of rows that did not set them, and are drawn to wider sets where runs are few."""

from __future__ import annotations

import numpy as np
import pytest

from clusterwright.calibrating.bands import HELD, LEAST, RUNS, Bands, ends
from clusterwright.calibrating.measurements import Measurement, Worker
from clusterwright.physics.layouts import Layout


def rows(engine: str, gpu: str, models: int, each: int = 10, *, apart: bool = False) -> list[Measurement]:
    worker = Worker(Layout())
    return [
        Measurement(
            f"{engine}{gpu}{m}/{i}", engine, "", f"model {m}", gpu, None, "bf16", 1e3, 1e3, 8.0, worker,
            worker if apart else None, 1.0, 1.0,
        )
        for m in range(models)
        for i in range(each)
    ]  # fmt: skip


def test_nine_of_ten_further_rows_lie_within() -> None:
    random = np.random.default_rng(7)
    inside = []
    for _ in range(200):
        low, high = ends(np.exp(random.normal(0.1, 0.5, 60)))
        further = np.exp(random.normal(0.1, 0.5, 200))
        inside.append(np.mean((further >= low) & (further <= high)))
    assert np.mean(inside) == pytest.approx(HELD, abs=0.02)


def test_of_few_rows_the_ends_are_the_extremes() -> None:
    assert ends(np.array([0.8, 1.3, 1.0, 0.9])) == (0.8, 1.3)


def test_a_side_that_scatters_more_opens_further() -> None:
    low, high = ends(np.concatenate([np.linspace(0.9, 1.0, 100), np.linspace(1.0, 3.0, 100)]))
    assert 0.9 <= low < 0.92
    assert high > 2.7


def test_a_set_is_drawn_to_the_wider_one_as_far_as_runs_are_few() -> None:
    calm, wild = rows("vllm", "h100", RUNS), rows("vllm", "h200", 3 * RUNS)
    ratios = np.concatenate([np.ones(len(calm)), np.exp(np.tile(np.linspace(-1, 1, 10), 3 * RUNS))])
    bands = Bands(calm + wild, ratios)
    engine, own = bands.of("vllm", "b200", "aggregated"), bands.of("vllm", "h100", "aggregated")
    assert engine is not None
    assert own is not None
    assert own.high == pytest.approx(engine.high**0.5)  # as many runs as the wider set weighs
    assert (own.of, own.rows) == ("vllm on h100", 10 * RUNS)
    assert engine.of == "vllm on all GPUs"


def test_rows_of_one_sweep_do_not_outvote_the_other_runs() -> None:
    sweep, others = rows("vllm", "h100", 1, 2000), rows("vllm", "h200", 8, 10)
    ratios = np.concatenate([np.ones(2000), np.tile(np.linspace(0.5, 2.0, 10), 8)])
    found = Bands(sweep + others, ratios).of("vllm", "a100", "aggregated")
    assert found is not None
    assert found.low < 0.6
    assert found.high > 1.8


def test_fewer_rows_than_an_end_needs_say_nothing_and_modes_stay_apart() -> None:
    few, split = rows("vllm", "h100", 1, LEAST - 1), rows("sglang", "h100", 4, apart=True)
    bands = Bands(few + split, np.concatenate([np.full(len(few), 5.0), np.ones(len(split))]))
    apart = bands.of("sglang", "h100", "disaggregated")
    together = bands.of("vllm", "h100", "aggregated")
    assert apart is not None
    assert together is not None
    assert apart.of == "sglang on h100, prefill apart"
    assert together.of == "all engines, prefill apart or not"
    assert Bands(few, np.ones(len(few))).of("vllm", "h100", "aggregated") is None


def test_what_was_not_measured_does_not_count() -> None:
    known = rows("vllm", "h100", 4)
    ratios = np.where(np.arange(len(known)) % 2 == 0, 1.0, np.nan)
    found = Bands(known, ratios).of("vllm", "h100", "aggregated")
    assert found is not None
    assert (found.low, found.high, found.rows) == (1.0, 1.0, len(known) // 2)
