"""What must hold for every setting: terms sum, more load is never faster, longer prompts start later."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.decoders import deepseek_v3, gpt_oss, llama_70b, qwen3_moe
from builders.serving import answer, setting, worker
from clusterwright.physics.layouts import Layout

MODELS = (llama_70b(), qwen3_moe(), deepseek_v3(), gpt_oss())
models = st.integers(0, len(MODELS) - 1)
layouts = st.sampled_from((Layout(tp=4), Layout(tp=8, ep=8), Layout(tp=8, ep=8, attention_dp=8), Layout(tp=16)))
tokens = st.floats(64, 32768)
counts = st.integers(1, 2048)


@settings(max_examples=60, deadline=None)
@given(models, layouts, tokens, tokens, counts)
def test_terms_sum_to_the_figure_and_none_is_negative(model, layout, prompt, output, count):
    found = answer(setting(worker(MODELS[model], layout, weights="fp8"), prompt=prompt, output=output), count)
    for timed in (found.ttft, found.tpot):
        assert timed.seconds == math.fsum(value for _, value in timed.terms)
        assert all(value >= 0 for _, value in timed.terms)


@settings(max_examples=60, deadline=None)
@given(models, layouts, tokens, tokens, counts, st.booleans(), st.floats(1.1, 8))
def test_more_concurrency_is_never_faster(model, layout, prompt, output, count, apart, more):
    side = worker(MODELS[model], layout, weights="fp8", cache_tokens=4e6)
    ask = setting(side, prompt=prompt, output=output, first=side if apart else None)
    few, many = answer(ask, count), answer(ask, count * more)
    assert many.tpot.seconds >= few.tpot.seconds * (1 - 1e-4)
    assert many.ttft.seconds >= few.ttft.seconds * (1 - 1e-4)


@settings(max_examples=60, deadline=None)
@given(models, layouts, tokens, st.floats(1.05, 8), counts)
def test_a_longer_prompt_starts_later(model, layout, prompt, longer, count):
    side = worker(MODELS[model], layout, weights="fp8", cache_tokens=1e9)
    short, long = (answer(setting(side, prompt=p), count) for p in (prompt, prompt * longer))
    assert long.ttft.seconds > short.ttft.seconds


@settings(max_examples=40, deadline=None)
@given(models, layouts, tokens, counts)
def test_half_the_cache_bytes_are_never_slower(model, layout, prompt, count):
    wide, narrow = (worker(MODELS[model], layout, weights="fp8", cache=c, cache_tokens=1e9) for c in ("bf16", "fp8"))
    slow, fast = (answer(setting(side, prompt=prompt), count) for side in (wide, narrow))
    assert fast.tpot.seconds <= slow.tpot.seconds * (1 + 1e-6)


@settings(max_examples=80, deadline=None)
@given(models, layouts, tokens, st.floats(1, 4000), counts, st.sampled_from([1, 4]))
def test_no_gpu_multiplies_faster_than_its_peak(model, layout, prompt, output, count, stages):
    """Also where prompts are nearly all of the work, as of answers with few tokens."""
    side = worker(MODELS[model], replace(layout, pp=stages), weights="fp8", cache_tokens=4e8)
    found = answer(setting(side, prompt=prompt, output=output), count)
    each = side.dense_math / side.groups + side.expert_math
    assert found.requests_s * (prompt + output) * each / side.stages < 1


@settings(max_examples=60, deadline=None)
@given(models, layouts, tokens, st.floats(1, 4000), counts, st.sampled_from([1, 4]), st.floats(1.1, 8))
def test_more_requests_in_flight_are_never_served_much_slower(model, layout, prompt, output, count, stages, more):
    """Where prompts are nearly all of the work a group is full with few of them, and stays so."""
    side = worker(MODELS[model], replace(layout, pp=stages), weights="fp8", cache_tokens=4e8)
    few, many = (answer(setting(side, prompt=prompt, output=output), n).requests_s for n in (count, count * more))
    assert many > few * 0.85
