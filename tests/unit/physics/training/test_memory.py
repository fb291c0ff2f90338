"""Memory per stage, its arrays, and what to change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from validation.training_systems import SYSTEMS

from builders.decoders import DEEPSEEK_V3, LLAMA, QWEN3_MOE, decoder
from clusterwright.lib.scales import GIB
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.activations import kept
from clusterwright.physics.training.advice import changes
from clusterwright.physics.training.memory import training_memory, training_memory_arrays
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.shares import adapter_parameters

LLAMA_70B = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "intermediate_size": 28672}


def terms(*args: object, stage: int = 0) -> dict[str, float]:
    return dict(training_memory(*args).stages[stage].terms)  # type: ignore[arg-type]


def test_states_of_a_small_job_by_hand() -> None:
    model = decoder(LLAMA)
    found = terms(model, Layout(dp=8), Recipe(global_batch=8))
    assert found["weights"] * GIB == pytest.approx(2 * model.parameters)
    assert found["gradients"] * GIB == pytest.approx(4 * model.parameters)
    assert found["optimizer"] * GIB == pytest.approx(12 / 8 * model.parameters)


def test_first_stage_has_the_embedding_and_most_micro_batches_last_has_head_and_logits() -> None:
    model, layout = decoder(LLAMA), Layout(pp=4, dp=2)
    memory = training_memory(model, layout, Recipe(global_batch=64))
    first, middle, last = (dict(memory.stages[i].terms) for i in (0, 1, 3))
    table = model.vocab * model.hidden * 2 / GIB
    assert first["weights"] - middle["weights"] == pytest.approx(table)
    assert last["weights"] - middle["weights"] == pytest.approx(table + 2 * 4096 / GIB)
    assert first["activations"] == pytest.approx(4 * last["activations"])
    assert (first["logits"], last["logits"]) == (0, pytest.approx(14 * 4096 * 128256 / GIB))


def test_a_tied_embedding_is_held_by_both_ends_of_a_pipeline() -> None:
    model = decoder(LLAMA, tie_word_embeddings=True)
    ends = [dict(s.terms)["weights"] for s in training_memory(model, Layout(pp=4), Recipe()).stages]
    assert ends[0] == pytest.approx(ends[3], rel=1e-5)
    assert terms(model, Layout(), Recipe())["weights"] * GIB == pytest.approx(2 * model.parameters)


def test_experts_divide_over_expert_ranks_and_share_fewer_copies() -> None:
    model = decoder(QWEN3_MOE)
    experts = sum(p.parameters * n for p, n in model.parts() if p.split == "experts")
    found = terms(model, Layout(dp=64, ep=8), Recipe())
    rest = model.parameters - experts
    assert found["weights"] * GIB == pytest.approx(2 * (rest + experts / 8))
    assert found["optimizer"] * GIB == pytest.approx(12 * (rest / 64 + experts / 8 / 8))


def test_logits_by_kind_of_loss() -> None:
    model = decoder(LLAMA)
    at = [terms(model, Layout(dp=8), Recipe(logits=kind))["logits"] for kind in ("unfused", "fused", "chunked")]
    assert at[0] / at[1] == pytest.approx(14 / 6)
    assert at[2] < at[1] / 10


def test_fsdp_holds_the_largest_unit_twice_and_a_whole_stage_in_a_pipeline() -> None:
    recipe = Recipe(framework="torchtitan", sharding="fsdp", recompute="full")
    model = decoder(LLAMA)
    assert terms(model, Layout(dp=8), recipe)["gathered layers"] * GIB == pytest.approx(6 * (128256 + 1) * 4096)
    stage = terms(model, Layout(dp=8, pp=2), recipe)["gathered layers"] * GIB
    assert stage == pytest.approx(6 * (16 * model.layers[0].parameters + 128256 * 4096))


def test_qlora_holds_frozen_weights_in_four_bits() -> None:
    model = decoder(LLAMA)
    lora = terms(model, Layout(), Recipe(sharding="ddp", adapter_rank=16))
    qlora = terms(model, Layout(), Recipe(sharding="ddp", adapter_rank=16, base="nf4"))
    trained = 32 * adapter_parameters(model.layers[0], 4096, 16)
    # Seven matrices of a Llama layer: rank × (inputs + outputs).
    assert trained == 32 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336))
    layers = 32 * model.layers[0].parameters
    assert (lora["weights"] - qlora["weights"]) * GIB == pytest.approx((2 - 4.127 / 8) * layers)
    assert lora["optimizer"] * GIB == pytest.approx(12 * trained)


def test_frozen_weights_are_gathered_only_among_copies_and_leave_the_gpu_when_they_are_offloaded() -> None:
    model, shared = decoder(LLAMA), Recipe(framework="torchtitan", sharding="fsdp", adapter_rank=16)
    assert terms(model, Layout(), shared)["gathered layers"] == 0
    largest = 128256 * 4096
    assert terms(model, Layout(dp=8), shared)["gathered layers"] * GIB == pytest.approx(4 * (largest + 4096), rel=1e-3)
    assert terms(model, Layout(dp=8), shared)["weights"] < terms(model, Layout(), shared)["weights"] / 7
    away = training_memory(model, Layout(dp=8), replace(shared, offload="parameters"))
    assert dict(away.peak.terms)["weights"] < 0.1
    assert away.host_gib * GIB == pytest.approx(2 * model.parameters / 8)


def test_latent_and_windowed_layers_keep_their_own() -> None:
    dense = terms(decoder(LLAMA, num_hidden_layers=1), Layout(), Recipe())["activations"]
    assert dense * GIB == pytest.approx(4096 * (2 * 2 * 8192 + 2 * 8192 + 2 * 2 * 1024 + 32 * 4 + 6 * 14336))
    deep = training_memory(decoder(DEEPSEEK_V3), Layout(dp=32, ep=32), Recipe())
    assert dict(deep.peak.terms)["activations"] > 100


def test_arrays_equal_the_scalar_form_and_terms_add_up() -> None:
    model = decoder(QWEN3_MOE)
    grid = [
        Layout(tp=tp, pp=pp, dp=dp, cp=cp, vp=vp, ep=ep, etp=etp)
        for tp, pp, dp, cp, vp, ep, etp in (
            (1, 1, 64, 1, 1, 8, 1), (2, 4, 8, 1, 1, 16, 1), (4, 4, 4, 2, 3, 8, 2), (8, 8, 2, 1, 2, 1, 1),
            (2, 2, 16, 1, 5, 4, 1),
        )
    ]  # fmt: skip
    recipe = Recipe(global_batch=512, recompute="selective", modules=("layernorm", "moe_act"), precision="fp8")
    names = ("tp", "pp", "dp", "cp", "vp", "ep", "etp")
    arrays = {n: np.array([getattr(layout, n) for layout in grid]) for n in names}
    micro = np.array([1, 2, 1, 2, 4])
    found = training_memory_arrays(model, arrays, recipe, micro_batch=micro)
    for layout, batch, total in zip(grid, micro, found, strict=True):
        memory = training_memory(model, layout, replace(recipe, micro_batch=int(batch)))
        assert total == pytest.approx(memory.peak.total_gib, rel=1e-12)
        assert memory.peak.total_gib == math.fsum(v for _, v in memory.peak.terms)


def test_changes_are_ranked_by_what_fits_and_then_by_speed() -> None:
    model = decoder(LLAMA, **LLAMA_70B)
    recipe = Recipe(sequence=8192, global_batch=256, micro_batch=2)
    found = changes(model, Layout(tp=4, pp=4, dp=4), recipe, 79.1, SYSTEMS["DGX-H100"])
    fitting = [c for c in found if c.fits]
    assert found[: len(fitting)] == tuple(fitting)
    assert [c.slowdown for c in fitting] == sorted(c.slowdown for c in fitting)
    assert {"recompute whole layers", "micro-batch 1"} <= {c.text for c in found}
    before = training_memory(model, Layout(tp=4, pp=4, dp=4), recipe).peak.total_gib
    assert all(c.total_gib < before for c in found)


def test_hybrid_sharding_divides_states_among_fewer_ranks() -> None:
    model = decoder(LLAMA)
    few = terms(model, Layout(dp=64), Recipe(framework="torchtitan", sharding="fsdp", shard_ranks=8))
    assert few["optimizer"] == terms(model, Layout(dp=8), Recipe(framework="torchtitan", sharding="fsdp"))["optimizer"]


def test_an_offloaded_optimizer_is_on_the_host() -> None:
    model = decoder(LLAMA)
    memory = training_memory(model, Layout(dp=8), Recipe(framework="deepspeed", sharding="zero3", offload="optimizer"))
    assert memory.host_gib * GIB == pytest.approx(16 * model.parameters / 8)
    assert dict(memory.peak.terms)["optimizer"] == 0


def test_an_uneven_load_of_experts_keeps_more() -> None:
    model, layout = decoder(QWEN3_MOE), Layout(dp=64, ep=8)
    even, uneven = (terms(model, layout, Recipe(expert_imbalance=i))["activations"] for i in (1.0, 1.5))
    routed = 8 * 2 * (4096 + 3 * 1536)
    assert (uneven - even) * GIB == pytest.approx(0.5 * routed * 4096 * 94)


def test_draft_layers_are_held_by_the_last_stage_with_an_embedding_of_their_own() -> None:
    model, layout = decoder(DEEPSEEK_V3), Layout(pp=4, dp=8, ep=8)
    sizes = tuple(int(s.layers) for s in training_memory(model, layout, Recipe(drafts=True)).stages)
    recipe = Recipe(global_batch=64, stage_layers=sizes)
    without, with_drafts = (training_memory(model, layout, replace(recipe, drafts=d)).stages for d in (False, True))
    assert without[:3] == with_drafts[:3]
    more = {name: value - dict(without[3].terms)[name] for name, value in with_drafts[3].terms}
    draft = model.drafts[0]
    experts = sum(p.parameters for p in draft.parts if p.split == "experts")
    assert more["weights"] * GIB == pytest.approx(2 * (draft.parameters - experts * 7 / 8 + 129280 * 7168))
    each = kept(draft, model.hidden, recipe).at(1, 1, recipe, 4096)
    assert more["activations"] * GIB == pytest.approx(each * 4096)


def test_fewer_ranks_share_the_states_of_experts_that_lie_on_all_of_them() -> None:
    model, layout = decoder(QWEN3_MOE), Layout(dp=64, ep=8)
    experts = sum(p.parameters * n for p, n in model.parts() if p.split == "experts")
    recipe = Recipe(framework="torchtitan", sharding="fsdp", shard_ranks=8)
    found = terms(model, layout, recipe)
    assert found["optimizer"] * GIB == pytest.approx(12 * ((model.parameters - experts) / 8 + experts / 8))


#: ms-swift, `examples/megatron` at 26aee6f, 23cad3b and 15898fe: name, layers, hidden, heads, KV heads, width, tensor
#: ranks, data ranks, recipe, GiB as printed.
SWIFT = [
    ("Qwen2.5-14B", 48, 5120, 40, 8, 13824, 4, 2, Recipe(sequence=8192, global_batch=16, recompute="selective"), 65),
    ("Qwen3-32B", 64, 5120, 64, 8, 25600, 8, 1, Recipe(sequence=8192, global_batch=16, recompute="full"), 80),
    ("Qwen2.5-7B", 28, 3584, 28, 4, 18944, 4, 1, Recipe(sequence=32768, global_batch=8, recompute="full"), 50),
    (
        "Qwen2.5-72B, optimizer on the host", 80, 8192, 64, 8, 29568, 8, 1,
        Recipe(sequence=8192, global_batch=16, recompute="full", offload="optimizer"), 65,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "layers", "hidden", "heads", "kv", "width", "tp", "dp", "recipe", "gib"), SWIFT, ids=[r[0] for r in SWIFT]
)
def test_published_megatron_runs_with_expandable_segments(
    name: str, layers: int, hidden: int, heads: int, kv: int, width: int, tp: int, dp: int, recipe: Recipe, gib: float
) -> None:
    model = decoder(
        LLAMA, num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=kv,
        intermediate_size=width, vocab_size=152064, head_dim=128,
    )  # fmt: skip
    found = training_memory(model, Layout(tp=tp, dp=dp), replace(recipe, logits="fused", expandable=True))
    assert found.peak.total_gib == pytest.approx(gib, rel=0.1)


def test_a_compiled_loss_holds_two_thirds_of_a_fused_one() -> None:
    model = decoder(LLAMA)
    fused = [
        terms(model, Layout(dp=8), Recipe(framework=name, sharding="fsdp", logits="fused"))["logits"] * GIB
        for name in ("megatron", "torchtitan")
    ]
    assert fused[1] / fused[0] == pytest.approx(4 / 6)


def test_what_a_product_reads_is_whole_on_every_tensor_rank_while_it_works() -> None:
    model = decoder(LLAMA, vocab_size=1024)
    for framework, planes in (("megatron", 2), ("torchtitan", 3)):
        split, copied = (
            terms(model, Layout(tp=8), Recipe(framework=framework, sequence_parallel=sp, recompute="full"))
            for sp in (True, False)
        )
        kept_whole = kept(model.layers[0], 4096, Recipe())
        extra = (kept_whole.copied - kept_whole.entry) * 7 / 8
        assert (split["layer at work"] - copied["layer at work"]) * GIB == pytest.approx(
            4096 * (planes * 2 * 4096 - extra)
        )


def test_what_stays_through_a_step_leaves_nothing_reserved_beside_it_outside_megatron() -> None:
    """torchtune README, 2024-09: Llama 3.1 8B, batches of 2 × 2,048 tokens, 16.2 GiB with LoRA, 7.4 with QLoRA."""
    for base, gib in (("bf16", 16.2), ("nf4", 7.4)):
        recipe = Recipe(
            framework="torchtitan", sharding="ddp", sequence=2048, micro_batch=2, global_batch=2, recompute="full",
            logits="chunked", master_bytes=0, moment_bytes=2, adapter_rank=8, base=base,
        )  # fmt: skip
        found = terms(decoder(LLAMA), Layout(), recipe)
        moving = found["gathered layers"] + found["activations"] + found["layer at work"] + found["logits"]
        assert found["allocator reserve"] == pytest.approx(0.1 * moving)
        assert sum(found.values()) - found["CUDA context and NCCL"] == pytest.approx(gib, rel=0.1)
