"""A GPU that is better in every physical figure never needs more GPUs, with any engine.

What an engine reaches of the peaks is the engine's; a GPU's own runs say how far the estimate may be off, and do not
rank it. Source of the two of one die: NVIDIA H200 datasheet, GH100 with HBM3e.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.decoders import DEEPSEEK_V3, LLAMA, QWEN3_MOE, decoder
from builders.searches import LLAMA_70B, pool, serving
from clusterwright.files.catalogue import load_catalogue
from clusterwright.lib.quantities import Quantity
from clusterwright.model.hardware import Gpu
from clusterwright.plan.searching.calibrated import calibrated
from clusterwright.plan.searching.questions import Lengths, Pool
from clusterwright.plan.searching.serving import search_serving

KNOWN = load_catalogue().calibrations()
ENGINES = ("vllm", "sglang", "tensorrt-llm")
MODELS = (decoder(LLAMA), decoder(LLAMA_70B), decoder(QWEN3_MOE), decoder(DEEPSEEK_V3, num_hidden_layers=24))
#: Better figures at the same or higher rates and memory: same die, or the successor.
PAIRS = (("h100-sxm-80", "h200-sxm-141"), ("b200-sxm-180", "gb200-186"), ("b300-sxm-270", "gb300-279"))
FACTORS = st.floats(1.0, 2.0)


@st.composite
def loads(draw):
    """Lengths, rate and targets."""
    mean_in, mean_out = draw(st.sampled_from([300.0, 2000.0, 7000.0])), draw(st.sampled_from([100.0, 300.0, 1500.0]))
    return {
        "lengths": Lengths(mean_in, mean_out),
        "rate": draw(st.sampled_from([2.0, 20.0, 90.0])),
        "ttft_s": draw(st.sampled_from([0.6, 2.0, None])),
        "tpot_s": draw(st.sampled_from([0.03, 0.1])),
        "quantile": draw(st.sampled_from([0.95, None])),
        "survive_nodes": 0,
        "max_model_len": 16384,
    }


def scaled(gpu: Gpu, memory: float, bandwidth: float, math_: float) -> Gpu:
    """The GPU with more memory, bandwidth and FLOP/s, the same otherwise."""

    def times(quantity: Quantity, factor: float) -> Quantity:
        return replace(quantity, value=quantity.value * factor, text="")

    rates = {name: times(rate, math_) for name in ("fp16", "bf16", "fp8", "fp4") if (rate := gpu.dense.of(name))}
    seen = gpu.reported and replace(gpu.reported, total=gpu.reported.total and times(gpu.reported.total, memory))
    return replace(
        gpu,
        memory=times(gpu.memory, memory),
        reported=seen,
        bandwidth=times(gpu.bandwidth, bandwidth),
        dense=replace(gpu.dense, **rates),
    )


def best(model, where: Pool, engine: str, load):
    """The answer with the shipped constants, at one price, any number of nodes."""
    question = serving(model, replace(where, nodes=None, price_per_gpu_h=2.0), engine=engine, **load)
    return search_serving(question, calibrated(question, KNOWN)[0]).best


def compared(worse, better) -> None:
    if worse is not None:
        assert better is not None
        assert better.gpus <= worse.gpus


@pytest.mark.parametrize("pair", PAIRS)
@settings(deadline=None, max_examples=12)
@given(model=st.sampled_from(MODELS), engine=st.sampled_from(ENGINES), load=loads())
def test_more_memory_and_bandwidth_on_the_same_die_never_need_more_gpus(pair, model, engine, load) -> None:
    worse, better = (best(model, pool(name), engine, load) for name in pair)
    compared(worse, better)


@settings(deadline=None, max_examples=25)
@given(
    model=st.sampled_from(MODELS),
    engine=st.sampled_from(ENGINES),
    load=loads(),
    memory=FACTORS,
    bandwidth=FACTORS,
    math_=FACTORS,
)
def test_no_figure_of_a_gpu_is_better_lower(model, engine, load, memory, bandwidth, math_) -> None:
    where = pool("h100-sxm-80")
    worse = best(model, where, engine, load)
    better = best(model, replace(where, gpu=scaled(where.gpu, memory, bandwidth, math_)), engine, load)
    compared(worse, better)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_reaches_the_same_shares_of_the_peaks_on_every_gpu(engine) -> None:
    found = [tuple(sorted(c.constants.items())) for c in KNOWN if c.engine == engine]
    assert len(found) > 1
    assert len(set(found)) == 1
