"""TTFT and TPOT at a concurrency: terms, limits of the formulas, disaggregation, targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builders.decoders import deepseek_v3, llama_70b
from builders.serving import H100, answer, setting, worker
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.answers import curve, largest_concurrency
from clusterwright.physics.serving.closed import load
from clusterwright.physics.serving.constants import BOUNDS, NAMES, Constants, bounded, columns_of, named
from clusterwright.physics.serving.sides import stack
from clusterwright.physics.serving.steps import pass_floor, prefill_terms, total


def test_one_sequence_reads_weights_once_per_step():
    found = answer(setting(), 1)
    terms = dict(found.tpot.terms)
    read = llama_70b().text_parameters - 128256 * 8192
    assert terms["weights"] == pytest.approx(read * 2 / 8 / 3.35e12 / Constants().weight_share, rel=0.02)
    assert terms["prompts of others"] == 0.0
    assert terms["experts"] == 0.0


def test_a_long_prompt_takes_its_products_at_the_achieved_share():
    held, side = columns_of(Constants()), stack([worker()])
    prompt, none = np.array([8000.0]), np.zeros(1)
    terms = prefill_terms(side, held, prompt, none, np.array([8192.0]), np.ones(1))
    products = 2 * llama_70b().multiplied * 8000 / 8 / 989.4e12 / Constants().math_share
    assert terms["weights"][0] == pytest.approx(products, rel=1e-3)


def test_reused_tokens_need_no_products_and_attend_all_the_same():
    whole, reused = (answer(setting(prompt=4000.0, cached=c), 1) for c in (0.0, 3000.0))
    before, after = dict(whole.ttft.terms), dict(reused.ttft.terms)
    assert after["weights"] == pytest.approx(before["weights"] / 4)
    assert after["attention"] == pytest.approx(before["attention"] * (1 - (3 / 4) ** 2))


def test_chunks_read_the_weights_anew():
    held, side = columns_of(Constants()), stack([worker()])
    prompt, none, ones = np.array([4096.0]), np.zeros(1), np.ones(1)
    whole, parts = (prefill_terms(side, held, prompt, none, np.array([c]), ones) for c in (4096.0, 128.0))
    assert total(parts)[0] > total(whole)[0]
    assert parts["layers"][0] == pytest.approx(32 * whole["layers"][0])


def test_prompts_that_wait_share_a_pass_as_far_as_it_has_room():
    held, side = columns_of(Constants()), stack([worker()])
    none, ones, chunk = np.zeros(1), np.ones(1), np.array([8192.0])

    def each(prompt: float, together: float) -> dict[str, float]:
        found = prefill_terms(side, held, np.array([prompt]), none, chunk, ones, together)
        return {name: float(value[0]) for name, value in found.items()}

    alone, packed, full = (each(1024.0, n) for n in (1.0, 4.0, 1000.0))
    assert packed["layers"] == pytest.approx(alone["layers"] / 4)
    assert full["layers"] == pytest.approx(alone["layers"] / 8)  # 8,192 tokens have room for eight
    assert packed["attention"] == alone["attention"]
    assert packed["weights"] == alone["weights"]  # products do not get fewer
    assert each(8192.0, 1000.0) == each(8192.0, 1.0)


def test_a_read_that_products_hide_is_no_part_of_a_pass_that_prompts_share():
    held, slow, fast = columns_of(Constants()), worker(), worker()
    fast = replace(fast, dense_read=fast.dense_read / 2)
    new, chunk, ones = np.array([4096.0]), np.array([8192.0]), np.ones(1)
    floors = [float(pass_floor(stack([side]), held, new, chunk, ones)[0]) for side in (slow, fast)]
    assert floors[0] == pytest.approx(floors[1])
    few = np.array([16.0])
    assert pass_floor(stack([slow]), held, few, chunk, ones)[0] > pass_floor(stack([fast]), held, few, chunk, ones)[0]


def test_short_prompts_wait_less_for_prefill_workers_that_pack_them():
    short = answer(setting(prompt=512.0, output=16.0, first=worker(), decode_workers=4), 512)
    own = sum(value for name, value in short.ttft.terms if name in ("weights", "attention", "collectives", "layers"))
    assert dict(short.ttft.terms)["other prompts"] < 512 * own


def test_constants_of_before_take_those_of_all_products_for_experts():
    assert named({"math_share": 0.4}).expert_math_share == 0.4
    assert named({"math_share": 0.4, "expert_math_share": 0.2}).expert_math_share == 0.2
    assert named({"weight_share": 7.0}).weight_share == BOUNDS["weight_share"].high


def test_requests_beyond_the_cache_wait_and_do_not_slow_the_others():
    small = setting(worker(cache_tokens=10 * 1300.0))
    few, many = answer(small, 10), answer(small, 100)
    assert many.running <= 10.001
    assert many.tpot.seconds <= few.tpot.seconds * 1.05
    assert dict(many.ttft.terms)["waiting for cache"] > 8 * few.request_s


def test_prefill_apart_frees_decode_from_prompts_and_adds_the_handover():
    both = answer(setting(prompt=8000.0), 64)
    apart = answer(setting(prompt=8000.0, first=worker(), token_s=1e-6), 64)
    assert "prompts of others" not in dict(apart.tpot.terms)
    assert apart.tpot.seconds < both.tpot.seconds
    assert dict(apart.ttft.terms)["handover"] > 0.008


def test_too_few_prefill_workers_hold_the_loop_back():
    one, four = (answer(setting(prompt=8000.0, output=100.0, first=worker(), prefill_workers=n), 256) for n in (1, 4))
    assert one.ttft.seconds > 2 * four.ttft.seconds
    assert one.requests_s < four.requests_s


def test_little_holds():
    found = answer(setting(), 32)
    assert found.requests_s * found.request_s == pytest.approx(32)
    assert found.running * (found.ttft.seconds + 500 * found.tpot.seconds) == pytest.approx(
        32 * 500 * found.tpot.seconds, rel=1e-3
    )


def test_accepted_drafts_shorten_the_time_per_token():
    plain = answer(setting(), 4).tpot.seconds
    drafted = answer(setting(width=3.0, accepted=2.0), 4).tpot.seconds
    assert drafted < plain * 0.75


def test_spread_attention_beats_tensor_ranks_on_latent_caches_at_many_requests():
    model = {"weights": "fp8", "device": H100}
    tensor, data = (
        answer(setting(worker(deepseek_v3(), Layout(tp=16, ep=16, attention_dp=d), **model), prompt=4000.0), 512)
        for d in (1, 16)
    )
    assert dict(data.tpot.terms)["kv cache"] < dict(tensor.tpot.terms)["kv cache"] / 3


def test_the_largest_concurrency_is_the_last_within_the_targets():
    ask = setting()
    most = largest_concurrency(ask, ttft_s=1.0, tpot_s=0.03)
    held, over = answer(ask, most), answer(ask, most + 1)
    assert held.ttft.seconds <= 1.0
    assert held.tpot.seconds <= 0.03
    assert over.ttft.seconds > 1.0 or over.tpot.seconds > 0.03
    assert largest_concurrency(ask, ttft_s=1e-4, tpot_s=0.03) == 0


def test_a_curve_is_its_answers():
    ask = setting()
    ttft, tpot, rate = curve(ask, np.array([1.0, 16.0, 64.0]))
    for place, concurrency in enumerate((1, 16, 64)):
        one = answer(ask, concurrency)
        assert (ttft[place], tpot[place]) == pytest.approx((one.ttft.seconds, one.tpot.seconds))
        assert rate[place] == pytest.approx(one.requests_s)


def test_a_load_spreads_scalars_over_the_rows():
    work = load(np.array([1.0, 2.0]), np.array([100.0, 100.0]), np.array([10.0, 10.0]), width=2.0)
    assert work.width.tolist() == [2.0, 2.0]
    assert work.accepted.tolist() == [1.0, 1.0]


def test_priors_lie_within_their_bounds_and_bounding_moves_only_what_is_outside():
    for name in NAMES:
        assert BOUNDS[name].low <= getattr(Constants(), name) <= BOUNDS[name].high
    assert bounded(Constants(weight_share=2.0)) == Constants(weight_share=BOUNDS["weight_share"].high)
