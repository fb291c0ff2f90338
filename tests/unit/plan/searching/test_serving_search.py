"""The search for inference: what wins, what is impossible and why, what popular layouts lost by."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from builders.arrivals import Replica, Stream, meet
from builders.decoders import DEEPSEEK_V3, FP8_BLOCKS, LLAMA, QWEN3_MOE, decoder
from builders.searches import LLAMA_70B, full_plan, pool, serving
from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.lengths import fixed, lognormal
from clusterwright.physics.serving.sides import side
from clusterwright.physics.serving.traffic import traffic
from clusterwright.plan.searching.calibrated import calibrated
from clusterwright.plan.searching.closed_loop import speeds
from clusterwright.plan.searching.machines import device
from clusterwright.plan.searching.memories import places
from clusterwright.plan.searching.questions import Lengths
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving import PRIOR, ServingSearch, search_serving
from clusterwright.plan.searching.serving_columns import workers_of
from clusterwright.plan.searching.shapes import shape_of

ENGINES = ("vllm", "sglang", "tensorrt-llm")


@cache
def chat() -> ServingSearch:
    """The search that several tests ask."""
    return search_serving(serving())


@pytest.mark.parametrize("engine", ENGINES)
def test_winners_fit_by_the_engines_own_estimator_and_meet_the_targets(engine) -> None:
    question = serving(engine=engine, survive_nodes=1)
    found = search_serving(question)
    best = found.best
    assert best is not None
    assert full_plan(question, best.layout) == best.memory
    for row in found.table(20):
        assert row.memory.fits
        assert row.ttft_s <= 2.0
        assert row.tpot_s <= 0.05
        assert row.nodes <= 16
    costs = [row.gpu_h_per_mtok for row in found.table()]
    assert costs == sorted(costs)


@pytest.mark.parametrize("targets", [{"ttft_s": None, "tpot_s": None}, {}])
def test_latencies_in_a_closed_loop_are_those_at_the_requests_in_flight(targets) -> None:
    question = serving(rate=None, quantile=None, **targets)
    found = search_serving(question)
    rows = found.ranked[:40]
    held = workers_of(question, PRIOR, found.judged, rows)
    met = speeds(held, held.columns, found.judged.concurrency[rows])
    assert np.array_equal(met.ttft_s, found.judged.ttft_s[rows])
    assert np.array_equal(met.tpot_s, found.judged.tpot_s[rows])
    assert np.array_equal(met.requests_s, found.judged.requests_s[rows])


def test_one_request_more_would_miss_a_target_or_outgrow_the_cache() -> None:
    question = serving(rate=None, quantile=None, goal="throughput")
    best = search_serving(question).best
    assert best is not None
    for more, needed in ((0, 1), (1, 2)):
        row = search_serving(replace(question, concurrency=best.concurrency + more)).why_not(best.layout).row
        assert row is not None
        assert row.needed == needed


def test_a_rate_is_carried_as_the_scalar_form_of_arrivals_says() -> None:
    question = serving(engine="sglang")
    found = search_serving(question)
    moved = traffic(question.decoder)
    stream = Stream(lognormal(2000, 6000), fixed(500))
    row = found.table(1)[0]
    tokens = places(question, question.decoder, row.layout, row.memory)
    replica = Replica(side(moved, row.layout, device(question.pool), cache_tokens=tokens), found.constants)
    for share, within in ((1 - 1e-4, True), (1 + 1e-4, False)):
        at = meet(replica, stream, row.requests_s * share)
        assert (at.ttft_s <= 2.0 and at.tpot_s <= 0.05) is within
    assert row.needed == math.ceil(5.0 / row.requests_s)
    at_load = meet(replica, stream, 5.0 / row.needed)
    assert row.ttft_s == pytest.approx(at_load.ttft_s, rel=1e-5)
    assert row.tpot_s == pytest.approx(at_load.tpot_s, rel=1e-5)


def test_constants_come_from_the_closest_calibration() -> None:
    known = load_catalogue().calibrations()
    constants, source = calibrated(serving(engine="sglang"), known)
    assert source is not None
    assert source.gpu == "h200-sxm-141"
    assert constants.weight_share == source.constants["weight_share"]
    fallback, general = calibrated(serving(where=pool("l40s"), engine="sglang"), known)
    assert general is not None
    assert general.gpu is None
    assert fallback == constants  # shares of peaks are the engine's
    assert calibrated(serving(), ()) == (PRIOR, None)
    assert search_serving(serving(engine="sglang"), constants).best != search_serving(serving(engine="sglang")).best


@pytest.mark.parametrize(
    ("layout", "reason", "words"),
    [
        (Layout(tp=4), Reason.MEMORY, "GiB"),
        (Layout(tp=16), Reason.DOMAIN, "16 ranks exchange in every layer, 8 GPUs"),
        (Layout(tp=3), Reason.HEADS, "128 query heads over 3 ranks"),
        (Layout(pp=64), Reason.LAYERS, "61 layers into 64 stages"),
        (Layout(tp=8, ep=4), Reason.ENGINE, "vllm does not run TP8 EP4"),
        (Layout(tp=8, dp=2), Reason.COPIES, "2 copies"),
        (Layout(tp=8, pp=200), Reason.POOL, "takes 1,600 GPUs, the pool has 128"),
        (Layout(tp=4, pp=3), Reason.NODES, "12 GPUs do not fill nodes of 8"),
        (Layout(dp=256, ep=256), Reason.POOL, "takes 256 GPUs, the pool has 128"),
        (Layout(dp=16, ep=16), Reason.TTFT, "first token after"),
    ],
)
def test_why_not_names_the_rule_with_its_numbers(layout, reason, words) -> None:
    found = chat().why_not(layout)
    assert found.reason == reason
    assert words in found.text


def test_kv_heads_widths_and_the_network_decide_too() -> None:
    dense = decoder(LLAMA_70B)
    assert search_serving(serving(dense)).why_not(Layout(dp=2)).reason == Reason.COPIES
    odd = decoder(LLAMA_70B, num_attention_heads=48, num_key_value_heads=6, head_dim=128)
    assert search_serving(serving(odd)).why_not(Layout(tp=4)).reason == Reason.KV_HEADS
    narrow = decoder(LLAMA_70B, intermediate_size=28676)
    assert search_serving(serving(narrow)).why_not(Layout(tp=8)).reason == Reason.WIDTHS
    alone = search_serving(serving(dense, pool(nic_gbytes_s=None))).why_not(Layout(tp=8, pp=2))
    assert alone.reason == Reason.NETWORK
    assert "no network between nodes is known" in alone.text


def test_blocks_that_share_a_scale_are_not_cut() -> None:
    blocks = decoder(QWEN3_MOE, quantization_config=FP8_BLOCKS)
    for engine in ENGINES:
        found = search_serving(serving(blocks, engine=engine))
        assert found.why_not(Layout(tp=4)).reason == Reason.NONE
        cut = found.why_not(Layout(tp=8))
        assert cut.reason == Reason.BLOCKS
        assert cut.text == "blocks of 128 in widths of 1536 over 8 ranks"
    published = load_catalogue()
    sides = {
        name: shape_of(published.find_decoder(name)).block
        for name in ("deepseek-ai/DeepSeek-V3", "MiniMaxAI/MiniMax-M2.5")
    }
    assert set(sides.values()) == {128}
    assert shape_of(published.find_decoder("deepseek-ai/DeepSeek-V4-Flash")).block == 128
    whole = search_serving(serving(decoder(QWEN3_MOE)))
    assert whole.why_not(Layout(tp=8)).reason == Reason.NONE


def test_a_layout_that_does_not_fit_says_with_what_it_would() -> None:
    question = serving(decoder(LLAMA_70B), pool("h100-sxm-80"), max_model_len=120_000)
    found = search_serving(question).why_not(Layout(tp=2, pp=1))
    assert found.reason == Reason.MEMORY
    assert "; fits with weights in int4" in found.text
    fewer = search_serving(replace(question, max_num_seqs=64, max_num_batched_tokens=2048)).why_not(Layout(tp=4)).row
    more = search_serving(question).why_not(Layout(tp=4)).row
    assert fewer is not None
    assert more is not None
    assert fewer.kv_tokens > more.kv_tokens
    assert ("--max-num-seqs", "64") in zip(fewer.memory.flags, fewer.memory.flags[1:], strict=False)


def test_a_longer_sequence_than_the_model_allows_is_never_possible() -> None:
    found = search_serving(serving(decoder(LLAMA_70B), max_model_len=200_000))
    assert found.best is None
    assert found.why_not(Layout(tp=8)).text == "200,000 tokens wanted, the model allows 131,072"


def test_popular_layouts_that_lost_say_by_how_much() -> None:
    found = search_serving(serving(survive_nodes=1))
    best = found.best
    assert best is not None
    losers = {each.name: each for each in found.losers()}
    whole = losers["pipeline over the node"]
    assert whole.row is not None
    assert f"{whole.row.gpu_h_per_mtok / best.gpu_h_per_mtok:.3g} × the cost per token" in whole.text
    assert "exceed the budget by" in losers["one GPU a replica"].text


def test_lost_nodes_are_replaced_by_replicas_and_paid_for() -> None:
    plain, safe = (
        search_serving(serving(decoder(LLAMA_70B), survive_nodes=n)).why_not(Layout(tp=4)).row for n in (0, 2)
    )
    assert plain is not None
    assert safe is not None
    assert safe.needed == plain.needed
    assert safe.replicas == plain.replicas + 2 * 2
    assert safe.gpus == 4 * safe.replicas
    assert safe.domain_gpus == 8
    assert safe.domain_nodes == 1
    assert safe.cost_per_h == pytest.approx(3.5 * safe.gpus)
    assert safe.cost_per_mtok_output == pytest.approx(safe.cost_per_h / (5 * 500 * 3600) * 1e6)
    assert safe.cost_per_mtok_total == pytest.approx(safe.cost_per_h / (5 * 2500 * 3600) * 1e6)


def test_goals_choose_by_what_they_say() -> None:
    rows = {goal: search_serving(serving(goal=goal)).best for goal in ("cost", "latency", "throughput", "domain")}
    assert min(rows.values(), key=lambda r: r.tpot_s) is rows["latency"]
    assert min(rows.values(), key=lambda r: r.gpu_h_per_mtok).gpu_h_per_mtok == rows["cost"].gpu_h_per_mtok
    assert rows["domain"].domain_gpus == min(row.domain_gpus for row in rows.values())


def test_a_front_has_no_row_that_another_beats() -> None:
    found = search_serving(serving(decoder(QWEN3_MOE)))
    front = found.pareto("gpu_h_per_mtok", "tpot_s")
    points = [(row.gpu_h_per_mtok, row.tpot_s) for row in found.table()]
    assert front
    for row in front:
        mine = (row.gpu_h_per_mtok, row.tpot_s)
        assert not any(p != mine and p[0] <= mine[0] and p[1] <= mine[1] for p in points)
    with pytest.raises(ValueError, match="no column colour; of gpu_h_per_mtok"):
        found.pareto("colour", "tpot_s")


def test_without_a_load_one_full_replica_is_sized() -> None:
    best = search_serving(serving(rate=None)).best
    assert best is not None
    assert best.replicas == 1
    assert best.gpu_h_per_mtok == pytest.approx(best.charged_gpus / (best.requests_s * 500 * 3600) * 1e6)


def test_reasons_count_every_layout_that_was_tried() -> None:
    found = chat()
    assert sum(found.reasons().values()) == len(found.judged.reason)
    assert found.reasons()[Reason.NONE] == len(found.ranked) == np.count_nonzero(found.judged.possible)


def test_another_engine_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="engine tgi is not modelled; of vllm, sglang, tensorrt-llm"):
        search_serving(serving(engine="tgi"))


def test_other_weight_formats_change_memory_and_unknown_ones_are_refused() -> None:
    dense = decoder(LLAMA_70B)
    wide, narrow = (search_serving(serving(dense, weights=form)).why_not(Layout(tp=2)).row for form in (None, "fp8"))
    assert wide is not None
    assert narrow is not None
    assert narrow.memory.term("weights") < 0.6 * wide.memory.term("weights")
    assert narrow.kv_tokens > wide.kv_tokens
    with pytest.raises(ValueError, match="weights in fp3 are not modelled; of bf16"):
        search_serving(serving(weights="fp3"))


def test_a_trace_stands_for_its_own_distribution() -> None:
    prompts = [500.0] * 90 + [8000.0] * 10
    traced = Lengths.of_trace(prompts, [100.0, 300.0], reused_share=0.2)
    assert (traced.mean_in, traced.mean_out, traced.p95_in) == (1250.0, 200.0, 8000.0)
    dense = decoder(LLAMA_70B)
    even, uneven = (
        search_serving(serving(dense, lengths=lengths)).why_not(Layout(tp=8)).row
        for lengths in (Lengths(1250.0, 200.0, reused_share=0.2), traced)
    )
    assert even is not None
    assert uneven is not None
    assert uneven.ttft_s > even.ttft_s
    assert uneven.requests_s < even.requests_s
    with pytest.raises(ValueError, match="a trace without requests"):
        Lengths.of_trace([], [])


def test_a_gpu_without_bf16_units_runs_such_weights_as_fp16() -> None:
    small = decoder(LLAMA, max_position_embeddings=8192)
    question = serving(small, pool("v100-sxm2-32", nodes=2), rate=0.5, ttft_s=20.0, tpot_s=0.5)
    assert search_serving(question).best is not None


def test_reuse_of_prefixes_shortens_the_first_token() -> None:
    cold, warm = (
        search_serving(serving(rate=None, concurrency=8.0, lengths=Lengths(2000, 500, reused_share=share)))
        .why_not(Layout(tp=8))
        .row
        for share in (0.0, 0.8)
    )
    assert cold is not None
    assert warm is not None
    assert warm.ttft_s < cold.ttft_s


def test_a_split_service_meets_what_the_scalar_form_says_with_the_cheapest_sides() -> None:
    question = serving(engine="sglang", rate=40.0)
    found = search_serving(question)
    split = found.split
    assert split is not None
    assert split.gpus == 8 * split.nodes
    assert split.ttft_s <= 2.0
    assert split.tpot_s <= 0.05
    moved, machine = traffic(question.decoder), device(question.pool)
    first, second = (
        side(moved, x, machine, cache_tokens=places(question, question.decoder, x, full_plan(question, x)))
        for x in (split.prefill, split.decode)
    )
    each, stream = Replica(second, found.constants, first=first), Stream(lognormal(2000, 6000), fixed(500))
    at = meet(replace(each, decode_workers=split.decode_workers), stream, 40.0 / split.prefill_workers)
    assert at.ttft_s <= split.ttft_s <= at.ttft_s + split.handover_s + 0.5 * split.tpot_s
    one = meet(each, stream, 40.0 / split.decode_workers)
    assert split.tpot_s == pytest.approx(one.tpot_s, rel=1e-5)


def test_no_split_without_a_network_or_arrivals() -> None:
    assert search_serving(serving(rate=None, concurrency=8.0)).split is None
    assert search_serving(serving(where=pool(nic_gbytes_s=None))).split is None


@pytest.mark.parametrize(
    ("model", "version", "shared"),
    [
        (LLAMA_70B, (0, 10), False), (LLAMA_70B, (0, 11), True), (LLAMA_70B, None, True),
        (DEEPSEEK_V3, (0, 9), False), (DEEPSEEK_V3, (0, 10), True),
    ],
)  # fmt: skip
def test_ranks_share_a_cache_by_position_where_the_release_does_so(model, version, shared) -> None:
    question = serving(decoder(model, "a model"), pool(gpus_per_node=16, domain_gpus=16), version=version)
    verdict = search_serving(question).why_not(Layout(tp=16, dcp=2))
    assert (verdict.reason != Reason.ENGINE) == shared


def test_a_share_of_its_own_for_later_tokens_moves_only_their_time() -> None:
    both, mean = (search_serving(serving(rate=5.0, step_quantile=share)) for share in ("as first", None))
    layout = Layout(tp=8)
    one, other = both.why_not(layout).row, mean.why_not(layout).row
    assert one is not None
    assert other is not None
    assert one.tpot_s > other.tpot_s
    assert one.ttft_s == pytest.approx(other.ttft_s)


def test_declared_replicas_that_do_not_carry_the_load_are_too_few() -> None:
    question = serving(decoder(LLAMA_70B, "llama-70b"), rate=50.0)
    found = search_serving(question).why_not(Layout(tp=4)).row
    assert found is not None
    enough, few = (
        search_serving(replace(question, replicas=found.needed - fewer)).why_not(Layout(tp=4)) for fewer in (0, 1)
    )
    assert enough.reason == Reason.NONE
    assert few.reason == Reason.LOAD


def test_the_nearest_layout_keeps_up_where_no_target_is_stated() -> None:
    """A replica over NICs of next to nothing never starts a prompt in time, and nothing divides by that."""
    slow = pool("h100-sxm-80", gpus_per_node=4, domain_gpus=4, nodes=2, nic_gbytes_s=1e-15)
    question = serving(
        decoder(QWEN3_MOE), slow, rate=1e9, lengths=Lengths(30000, 1), ttft_s=None, tpot_s=None, quantile=None
    )
    found = search_serving(question)
    assert np.isinf(found.judged.first_ttft_s[~np.isnan(found.judged.first_ttft_s)]).any()
    assert found.best is None
    assert found.nearest is not None
    assert np.isfinite(found.nearest.ttft_s)
