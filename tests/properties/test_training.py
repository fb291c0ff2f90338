"""What must hold of training memory and time whatever the job."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from validation.training_systems import SYSTEMS

from builders.decoders import DEEPSEEK_V3, LLAMA, QWEN3_MOE, decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.memory import training_memory
from clusterwright.physics.training.recipes import MODULES, Recipe
from clusterwright.physics.training.speed import step_time

MODELS = (
    decoder(LLAMA),
    decoder(LLAMA, tie_word_embeddings=True),
    decoder(QWEN3_MOE, num_hidden_layers=24),
    decoder(DEEPSEEK_V3, num_hidden_layers=16),
)
POWERS = st.sampled_from([1, 2, 4, 8])


@st.composite
def jobs(draw):
    """(decoder, layout, recipe) of a job that could run."""
    model = draw(st.sampled_from(MODELS))
    tp, pp, cp, dp = (draw(POWERS) for _ in range(4))
    vp = draw(st.sampled_from([1, 2])) if pp > 1 and pp * 2 <= len(model.layers) else 1
    ep = min(draw(POWERS), tp * cp * dp) if model.is_moe else 1
    sharding = draw(st.sampled_from(["ddp", "distributed", "zero1", "zero2", "zero3", "fsdp"]))
    recipe = Recipe(
        framework=draw(st.sampled_from(["megatron", "deepspeed", "torchtitan"])),
        sharding=sharding,
        precision=draw(st.sampled_from(["bf16", "fp8", "mxfp8"])),
        sequence=draw(st.sampled_from([2048, 8192])),
        micro_batch=draw(st.sampled_from([1, 2, 4])),
        global_batch=1024,
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        flash=draw(st.booleans()),
        sequence_parallel=draw(st.booleans()),
        logits=draw(st.sampled_from(["unfused", "fused", "chunked"])),
        expandable=draw(st.booleans()),
    )
    return model, Layout(tp=tp, pp=pp, cp=cp, dp=dp, vp=vp, ep=ep), recipe


def total(model, layout, recipe) -> float:
    return training_memory(model, layout, recipe).peak.total_gib


@settings(deadline=None, max_examples=60)
@given(jobs())
def test_terms_are_not_negative_and_add_up(job):
    for stage in training_memory(*job).stages:
        assert all(value >= 0 for _, value in stage.terms)
        assert stage.total_gib == math.fsum(value for _, value in stage.terms)


@settings(deadline=None, max_examples=60)
@given(jobs())
def test_more_data_parallel_ranks_never_need_more(job):
    model, layout, recipe = job
    more = replace(layout, dp=layout.dp * 2)
    assert total(model, more, recipe) <= total(model, layout, recipe) + 0.31 * (layout.dp * layout.cp == 1)


@settings(deadline=None, max_examples=60)
@given(jobs())
def test_a_larger_micro_batch_never_needs_less(job):
    model, layout, recipe = job
    few = replace(recipe, global_batch=layout.dp * layout.pp * 8 * recipe.micro_batch)
    larger = replace(few, micro_batch=recipe.micro_batch * 2)
    assert total(model, layout, larger) >= total(model, layout, few) - 1e-9


@settings(deadline=None, max_examples=60)
@given(jobs())
def test_recomputing_never_keeps_more(job):
    model, layout, recipe = job
    if recipe.framework == "torchtitan":
        return
    kept = {}
    for how in ("none", "selective", "full"):
        stages = training_memory(model, layout, replace(recipe, recompute=how, modules=MODULES)).stages
        kept[how] = [dict(stage.terms)["activations"] for stage in stages]
    for none, selective, full in zip(kept["none"], kept["selective"], kept["full"], strict=True):
        assert full <= selective + 1e-9
        assert selective <= none + 1e-9


@settings(deadline=None, max_examples=60)
@given(jobs(), st.floats(1, 300), st.floats(0, 300))
def test_a_job_that_fits_fits_on_a_larger_gpu(job, gib, more):
    memory = training_memory(*job)
    assert memory.fits(gib + more) or not memory.fits(gib)


@settings(deadline=None, max_examples=60)
@given(jobs(), st.sampled_from(sorted(SYSTEMS)))
def test_a_step_takes_time_and_never_runs_above_peak(job, system):
    step = step_time(*job, SYSTEMS[system])
    assert all(value >= 0 for _, value in step.terms)
    assert 0 < step.mfu <= 1


@settings(deadline=None, max_examples=40)
@given(jobs())
def test_recomputing_never_saves_time(job):
    model, layout, recipe = job
    system = SYSTEMS["DGX-GB200"]
    none, full = (step_time(model, layout, replace(recipe, recompute=how), system).step_s for how in ("none", "full"))
    assert full >= none
