"""The search for training: published recipes, what is impossible and why, jobs that must end in time."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from builders.decoders import DEEPSEEK_V3, LLAMA, QWEN3_MOE, decoder
from builders.searches import LLAMA_70B, LLAMA_405B, pool, training
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.memory import training_memory
from clusterwright.physics.training.speed import step_time
from clusterwright.plan.searching.machines import reported_gib, system
from clusterwright.plan.searching.questions import Losses
from clusterwright.plan.searching.reasons import Reason
from clusterwright.plan.searching.training import TrainingSearch, search_training


@cache
def llama() -> TrainingSearch:
    """The search that several tests ask."""
    return search_training(training())


LOW = {"fp8_weights": True, "precision": "fp8"}
H100 = pool("h100-sxm-80", nodes=128)
GB300 = pool("gb300-279", gpus_per_node=4, domain_gpus=72, nodes=64, nic_gbytes_s=100.0)
#: Model, pool, GPUs, recipe, published layout (NVIDIA Megatron-Bridge performance recipes).
PUBLISHED = {
    "Llama 405B": (
        decoder(LLAMA_405B), H100, 1024, {"global_batch": 1536, **LOW}, Layout(tp=8, pp=8, cp=2, dp=8, vp=8)
    ),
    "Llama 70B": (decoder(LLAMA_70B), H100, 64, LOW, Layout(tp=4, pp=8, dp=2, vp=5)),
    "DeepSeek-V3": (
        decoder(DEEPSEEK_V3), GB300, 256,
        {"sequence": 4096, "global_batch": 4096, "fp8_weights": True, "precision": "mxfp8"},
        Layout(pp=2, dp=128, vp=8, ep=32),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_recipes_are_possible_and_in_the_top_tenth(name) -> None:
    model, where, wide, recipe, layout = PUBLISHED[name]
    found = search_training(training(model, where, gpus=wide, recipe=recipe))
    rank = found.rank(layout, 1)
    assert rank is not None
    assert len(found.ranked) > 500
    assert rank <= 0.1 * len(found.ranked)


def test_rows_are_those_of_the_scalar_estimators() -> None:
    question = training()
    found = search_training(question)
    for row in found.table(5):
        memory = training_memory(question.decoder, row.layout, row.recipe, found.held.memory)
        assert memory == row.memory
        assert memory.peak.total_gib == pytest.approx(row.memory_gib, rel=1e-12)
        assert memory.fits(reported_gib(question.pool.gpu))
        step = step_time(question.decoder, row.layout, row.recipe, system(question.pool), found.held.speed)
        assert step.step_s == pytest.approx(row.step_s, rel=1e-12)
        assert step.mfu == row.mfu
        assert row.layout.gpus == 64
    assert np.all(np.diff(found.judged.step_s[found.ranked]) >= 0)


def test_recomputation_is_the_least_that_fits() -> None:
    question = training()
    found = search_training(question)
    judged = found.judged
    heavier = np.flatnonzero(judged.possible & (judged.recompute > 0))
    assert len(heavier)
    for row in heavier[:: max(1, len(heavier) // 20)]:
        shape = {name: int(judged.sizes[name][row]) for name in ("tp", "pp", "dp", "ep", "cp", "vp")}
        lighter = replace(judged.recipes[judged.recompute[row] - 1], micro_batch=int(judged.sizes["micro_batch"][row]))
        memory = training_memory(question.decoder, Layout(**shape), lighter, found.held.memory)
        assert not memory.fits(reported_gib(question.pool.gpu))


@pytest.mark.parametrize(
    ("layout", "reason", "words"),
    [
        (Layout(dp=64), Reason.MEMORY, "GiB more per GPU"),
        (Layout(tp=16, dp=4), Reason.DOMAIN, "16 tensor ranks, 8 GPUs reach each other without a NIC"),
        (Layout(tp=3, dp=8), Reason.HEADS, "64 query heads over 3 ranks"),
        (Layout(tp=8, pp=8, vp=20), Reason.LAYERS, "80 layers into 8 stages of 20"),
        (Layout(tp=8, ep=8, dp=8), Reason.EXPERTS, "0 experts over 8"),
        (Layout(tp=8, dp=24), Reason.POOL, "takes 192 GPUs, the pool has 128"),
        (Layout(tp=4, pp=3), Reason.NODES, "12 GPUs do not fill nodes of 8"),
        (Layout(tp=8, dp=3), Reason.BATCH, "256 sequences over 3 ranks in micro-batches of"),
        (Layout(tp=4, pp=8, cp=3), Reason.BATCH, "8,192 tokens in two chunks on each of 3 context ranks"),
        (Layout(attention_dp=2, tp=8, dp=8), Reason.ENGINE, "belong to inference"),
    ],
)
def test_why_not_names_the_rule_with_its_numbers(layout, reason, words) -> None:
    found = llama().why_not(layout)
    assert found.reason == reason
    assert words in found.text


def test_popular_layouts_that_lost_say_by_how_much() -> None:
    found = llama()
    best = found.best
    assert best is not None
    losers = {each.name: each for each in found.losers()}
    whole = losers["tensor ranks over the node"]
    assert whole.row is not None
    assert f"{whole.row.tokens_s / best.tokens_s:.3g} of the tokens per second of {best.layout}" in whole.text
    assert losers["data parallel only"].reason == Reason.MEMORY
    mixture = search_training(training(decoder(QWEN3_MOE), recipe={"sequence": 4096}))
    assert "experts over 8 ranks" in {each.name for each in mixture.losers()}


def test_without_a_number_of_gpus_the_fewest_are_taken() -> None:
    small = search_training(training(decoder(LLAMA), gpus=None))
    assert small.best is not None
    fewer = search_training(training(decoder(LLAMA), gpus=small.gpus // 2))
    assert fewer.best is None


def test_a_deadline_takes_more_gpus_and_losses_take_days() -> None:
    slow = search_training(training(decoder(LLAMA), gpus=8, tokens=1e11)).best
    assert slow is not None
    assert slow.goodput == 1.0
    assert slow.days == pytest.approx(1e11 / slow.tokens_s / 86400)
    assert slow.cost == pytest.approx(slow.days * 24 * 8 * 3.5)
    quick = search_training(training(decoder(LLAMA), gpus=None, tokens=1e11, deadline_s=slow.days * 86400 / 3))
    assert quick.best is not None
    assert quick.best.days <= slow.days / 3
    assert quick.gpus > 8
    late = quick.why_not(Layout(tp=8))
    assert late.reason == Reason.DEADLINE
    assert f"wanted {slow.days / 3:.3g}" in late.text
    lossy = training(decoder(LLAMA), gpus=8, tokens=1e11, losses=Losses(6.5, 600.0, 1e9))
    worse = search_training(lossy).best
    assert worse is not None
    assert 0.9 < worse.goodput < 1.0
    assert worse.days == pytest.approx(slow.days / worse.goodput)


def test_frameworks_and_declared_stages_rule_layouts_out() -> None:
    zero = search_training(training(decoder(LLAMA), gpus=8, recipe={"framework": "deepspeed", "sharding": "zero3"}))
    assert zero.best is not None
    assert np.all(zero.judged.sizes["pp"][zero.judged.possible] == 1)
    refused = zero.why_not(Layout(pp=2, dp=4))
    assert (refused.reason, refused.text) == (Reason.ENGINE, "deepspeed has no 2 stages of 1 under zero3")
    uneven = search_training(training(decoder(LLAMA), gpus=8, recipe={"stage_layers": (7, 9, 9, 7)}))
    assert uneven.best is not None
    assert uneven.best.layout.pp == 4
    assert uneven.why_not(Layout(pp=8)).text == "32 layers into 8 stages of 1, declared as 4 stages"


def test_latency_takes_the_whole_pool() -> None:
    found = search_training(training(decoder(LLAMA), pool("h100-sxm-80", nodes=4), gpus=None, goal="latency"))
    assert found.gpus == 32
    assert found.best is not None


def test_less_memory_may_be_asked_for_and_certainty_is_told() -> None:
    whole, part = (search_training(training(decoder(LLAMA), gpus=8, memory_share=share)) for share in (1.0, 0.8))
    gib = reported_gib(whole.question.pool.gpu)
    assert len(part.ranked) < len(whole.ranked)
    assert np.all(part.judged.memory_gib[part.judged.possible] <= 0.8 * gib)
    assert all(row.fits_surely == (row.memory_gib * 1.14 <= gib) for row in whole.table(20))
    assert {row.fits_surely for row in whole.table()} == {True, False}


def test_what_cannot_be_in_time_says_so_on_the_largest_pool() -> None:
    found = search_training(training(gpus=None, tokens=1e13, deadline_s=86400.0))
    assert found.best is None
    assert found.gpus == 128
    assert found.reasons()[Reason.DEADLINE] > 0


def test_a_recipe_that_is_fixed_stays_as_it_is() -> None:
    found = search_training(training(free=(), recipe={"recompute": "full", "micro_batch": 2}))
    assert found.best is not None
    assert all((row.recipe.recompute, row.recipe.micro_batch) == ("full", 2) for row in found.table(5))


def test_a_front_has_no_row_that_another_beats() -> None:
    found = llama()
    front = {(row.step_s, row.memory_gib) for row in found.pareto("step_s", "memory_gib")}
    judged = found.judged
    for step, memory in front:
        better = (judged.step_s <= step) & (judged.memory_gib <= memory) & judged.possible
        assert {(float(judged.step_s[i]), float(judged.memory_gib[i])) for i in np.flatnonzero(better)} == {
            (step, memory)
        }
    with pytest.raises(ValueError, match="no column colour; of step_s"):
        found.pareto("colour", "step_s")


def test_tensor_ranks_over_nodes_are_not_tried_but_timed_when_asked_for() -> None:
    found = search_training(training(decoder(LLAMA), gpus=64))
    asked, best = found.why_not(Layout(tp=16, dp=4)), found.best
    assert best is not None
    assert asked.reason == Reason.DOMAIN
    seconds = step_time(
        found.question.decoder, Layout(tp=16, dp=4), found.question.recipe, system(found.question.pool)
    ).step_s
    assert f"over NICs a step takes {seconds:.3g} s, {seconds / best.step_s:.3g} × that of {best.layout}" in asked.text
    assert seconds > 1.5 * best.step_s
