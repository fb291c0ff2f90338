"""What must hold of a placement search whatever is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.decoders import DEEPSEEK_V3, LLAMA, QWEN3_MOE, decoder
from builders.searches import LLAMA_70B, full_plan, pool, serving, training
from clusterwright.physics.training.memory import training_memory
from clusterwright.plan.searching.fronts import front, order
from clusterwright.plan.searching.machines import reported_gib
from clusterwright.plan.searching.memories import longest_sequence
from clusterwright.plan.searching.questions import Lengths
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.serving import AXES, search_serving
from clusterwright.plan.searching.training import search_training

MODELS = (
    decoder(LLAMA), decoder(LLAMA_70B), decoder(QWEN3_MOE, num_hidden_layers=24),
    decoder(DEEPSEEK_V3, num_hidden_layers=12),
)  # fmt: skip
POOLS = {name: pool(name, nodes=2) for name in ("h100-sxm-80", "h200-sxm-141", "l40s")}
FEW = settings(deadline=None, max_examples=15)


@st.composite
def serving_questions(draw):
    """A question about inference on two nodes."""
    rate, concurrency = draw(st.sampled_from([(None, None), (2.0, None), (20.0, None), (None, 64.0)]))
    mean_in = draw(st.sampled_from([200.0, 2000.0, 6000.0]))
    return serving(
        draw(st.sampled_from(MODELS)),
        POOLS[draw(st.sampled_from(sorted(POOLS)))],
        engine=draw(st.sampled_from(["vllm", "sglang", "tensorrt-llm"])),
        rate=rate,
        concurrency=concurrency,
        lengths=Lengths(mean_in, draw(st.sampled_from([100.0, 800.0])), draw(st.sampled_from([None, mean_in * 2]))),
        ttft_s=draw(st.sampled_from([None, 1.0, 10.0])),
        tpot_s=draw(st.sampled_from([None, 0.02, 0.1])),
        quantile=draw(st.sampled_from([None, 0.95])),
        survive_nodes=draw(st.sampled_from([0, 1])),
        goal=draw(st.sampled_from(["cost", "latency", "throughput", "domain"])),
    )


@FEW
@given(serving_questions())
def test_winners_are_possible_by_the_scalar_estimators_and_keep_every_promise(question) -> None:
    found = search_serving(question)
    for row in found.table(3):
        assert full_plan(question, row.layout).fits
        assert row.nodes <= question.pool.nodes
        assert question.ttft_s is None or row.ttft_s <= question.ttft_s * (1 + 1e-6)
        assert question.tpot_s is None or row.tpot_s <= question.tpot_s * (1 + 1e-6)
        assert row.max_context >= longest_sequence(question)
        assert row.memory.max_concurrency >= 1
        if question.rate is not None:
            assert row.needed * row.requests_s >= question.rate * (1 - 1e-6)
        again = found.why_not(row.layout)
        assert again.reason == Reason.NONE
        assert again.row == row


@FEW
@given(serving_questions(), st.floats(0.01, 100), st.floats(0.01, 1))
def test_a_cheaper_price_never_makes_a_layout_worse(question, price, share) -> None:
    dear, cheap = (replace(question, pool=replace(question.pool, price_per_gpu_h=p)) for p in (price, price * share))
    before, after = search_serving(dear), search_serving(cheap)
    assert np.array_equal(before.ranked, after.ranked)
    for one, other in zip(before.table(5), after.table(5), strict=True):
        assert other.layout == one.layout
        assert other.cost_per_h <= one.cost_per_h
        assert other.cost_per_mtok_output <= one.cost_per_mtok_output


@FEW
@given(serving_questions(), st.integers(1, 3))
def test_more_nodes_never_lose_a_possible_layout(question, more) -> None:
    wider = replace(question, pool=replace(question.pool, nodes=question.pool.nodes + more))
    before, after = search_serving(question), search_serving(wider)
    kept = {row.layout for row in after.table()}
    assert {row.layout for row in before.table()} <= kept
    if question.goal == "cost" and before.best is not None:
        assert after.best.gpu_h_per_mtok <= before.best.gpu_h_per_mtok


@FEW
@given(serving_questions(), st.sampled_from(sorted(AXES)), st.sampled_from(sorted(AXES)))
def test_members_of_a_front_are_not_beaten_and_nobody_else_is_on_it(question, first, second) -> None:
    found = search_serving(question)
    rows = found.table()

    def point(row):
        per_gpu = row.requests_s * question.lengths.mean_out / row.layout.gpus
        values = [per_gpu if axis == "tokens_s_per_gpu" else getattr(row, axis) for axis in (first, second)]
        return tuple(-v if AXES[axis] else v for v, axis in zip(values, (first, second), strict=True))

    points = {point(row) for row in rows}
    best = {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    assert {point(row) for row in found.pareto(first, second)} == best


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=30))
def test_fronts_and_orders_agree_with_brute_force(points) -> None:
    first, second = (np.array(axis, dtype=np.float64) for axis in zip(*points, strict=True))
    rows = np.arange(len(points))
    kept = [points[i] for i in front(first, second, rows)]
    best = {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    assert len(kept) == len(set(kept))
    assert set(kept) == best
    assert [points[i] for i in order((first, second), rows)] == sorted(points)


@st.composite
def training_questions(draw):
    """A question about training on two nodes."""
    return training(
        draw(st.sampled_from([MODELS[0], MODELS[2], MODELS[3]])),
        POOLS[draw(st.sampled_from(["h100-sxm-80", "h200-sxm-141"]))],
        gpus=draw(st.sampled_from([8, 16])),
        recipe={
            "sequence": draw(st.sampled_from([4096, 8192])),
            "global_batch": draw(st.sampled_from([64, 96, 512])),
            "precision": draw(st.sampled_from(["bf16", "fp8"])),
            "sharding": draw(st.sampled_from(["distributed", "fsdp", "ddp"])),
        },
    )


@FEW
@given(training_questions())
def test_winners_of_training_are_possible_by_the_scalar_estimators(question) -> None:
    found = search_training(question)
    for row in found.table(3):
        memory = training_memory(question.decoder, row.layout, row.recipe)
        assert memory.fits(reported_gib(question.pool.gpu))
        assert row.layout.gpus == question.gpus
        assert question.recipe.global_batch % (row.layout.dp * row.recipe.micro_batch) == 0
        again = found.why_not(row.layout).row
        assert again is not None
        assert again.step_s <= row.step_s * (1 + 1e-12)


@FEW
@given(training_questions())
def test_a_larger_gpu_never_loses_a_possible_layout_of_training(question) -> None:
    twice = replace(question.pool.gpu.memory, value=question.pool.gpu.memory.value * 2)
    larger = replace(question.pool.gpu, memory=twice, reported=None)
    before = search_training(question)
    after = search_training(replace(question, pool=replace(question.pool, gpu=larger)))
    assert np.all(after.judged.possible[before.judged.possible])
    if before.best is not None:
        assert after.best.step_s <= before.best.step_s * (1 + 1e-12)
