"""States per parameter and activations per layer, against published closed forms with all their arguments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.decoders import DEEPSEEK_V3, LLAMA, decoder
from clusterwright.model.decoders import Attention, Layer, Mlp, Part
from clusterwright.physics.training.activations import kept
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.stages import bubble_share, in_flight, stage_counts
from clusterwright.physics.training.states import checkpoint_bytes, state_bytes, states_of

#: Parameters that the vectors were computed with.
LLAMA_70B, LLAMA_405B = 70.554e9, 405.853e9
#: A GPT layer as wide as Llama 70B: multi-head attention, four times as wide inside, two products.
H, HEADS, S = 8192, 64, 8192
GPT = Layer(Attention(HEADS, HEADS, 128, 128), Mlp(4 * H, 2), (Part("mlp", 8 * H * H, 8 * H * H, "tp"),))


@pytest.mark.parametrize(
    ("recipe", "ranks", "expected"),
    [
        (Recipe(), 1, 18),  # Megatron-Core: 6 + 12/dp
        (Recipe(), 64, 6 + 12 / 64),
        (Recipe(framework="deepspeed", sharding="zero1"), 8, 4 + 16 / 8),  # DeepSpeed's own estimate
        (Recipe(framework="deepspeed", sharding="zero2"), 8, 2 + 18 / 8),
        (Recipe(framework="deepspeed", sharding="zero3"), 8, 20 / 8),
        (Recipe(framework="torchtitan", sharding="fsdp"), 8, 16 / 8),
        (Recipe(framework="megatron-deepspeed", sharding="zero1", precision="fp16"), 1, 20),  # BLOOM's 20 B
        (Recipe(framework="megatron-deepspeed", sharding="zero1", gradient_accumulation_bytes=4), 8, 8 + 12 / 8),
        (Recipe(sharding="ddp"), 8, 16),
        (Recipe(precision="fp8", fp8_weights=True), 1, 18),  # two 8-bit casts in place of 16-bit weights
        (Recipe(precision="mxfp8", fp8_weights=True), 1, 18 + 2 / 32),
        (Recipe(precision="nvfp4"), 1, 18 + 2 * (0.5 + 1 / 16)),
    ],
)
def test_bytes_per_parameter(recipe: Recipe, ranks: float, expected: float) -> None:
    assert state_bytes(recipe, ranks) == expected


def test_training_vectors_of_states() -> None:
    assert LLAMA_70B * state_bytes(Recipe(), 1) / 1e9 == pytest.approx(1269.972, rel=1e-12)
    assert checkpoint_bytes(LLAMA_70B) / 1e9 == pytest.approx(987.756, rel=1e-12)
    assert checkpoint_bytes(LLAMA_405B) / 1e9 == pytest.approx(5681.942, rel=1e-12)
    assert LLAMA_405B / (8 * 16) * state_bytes(Recipe(), 64) / 1e9 == pytest.approx(19.61887060546875, rel=1e-12)


def test_a_gpt_layer_keeps_what_the_paper_says() -> None:
    plain = Recipe(sequence=S, flash=False, dropout=True)
    tokens = S * 1
    everything = kept(GPT, H, Recipe(sequence=S, flash=False, dropout=True, modules=()))
    assert tokens * everything.at(1, 1, plain, S) / 1e9 == pytest.approx(23.756537856, rel=1e-12)
    selective = Recipe(sequence=S, flash=False, dropout=True, recompute="selective")
    assert tokens * kept(GPT, H, selective).at(8, 1, selective, S) / 1e9 == pytest.approx(0.285212672, rel=1e-12)
    assert tokens * everything.entry_at(1, plain) / 1e9 == pytest.approx(0.134217728, rel=1e-12)


def test_without_sequence_parallelism_ten_of_thirty_four_stay_whole() -> None:
    recipe = Recipe(flash=False, dropout=True, sequence_parallel=False, recompute="selective")
    assert kept(GPT, H, recipe).at(8, 1, recipe, S) == H * (10 + 24 / 8)


def test_keys_and_values_stop_dividing_at_the_number_of_kv_heads() -> None:
    layer, recipe = decoder(LLAMA).layers[0], Recipe()
    at8, at16 = (kept(layer, 4096, recipe).at(tp, 1, recipe, 1) for tp in (8, 16))
    assert at16 - at8 / 2 == pytest.approx(2 * 2 * 128 / 2)


def test_recomputing_modules_drops_what_they_keep() -> None:
    model = decoder(DEEPSEEK_V3)
    layer = model.layers[-1]
    whole = kept(layer, model.hidden, Recipe()).at(1, 1, Recipe(), 4096)
    sizes = {}
    for module in ("layernorm", "moe_act", "mla_up_proj", "moe"):
        recipe = Recipe(recompute="selective", modules=(module,))
        sizes[module] = whole - kept(layer, model.hidden, recipe).at(1, 1, recipe, 4096)
    assert sizes["layernorm"] == 2 * 2 * 7168
    assert sizes["moe_act"] == 8 * 2 * 2048
    assert sizes["mla_up_proj"] == 128 * 2 * (2 * 192 + 128)
    assert sizes["moe"] == 8 * 2 * (7168 + 3 * 2048)


def test_offload_leaves_weights_and_takes_the_optimizer() -> None:
    states = states_of(Recipe(framework="deepspeed", sharding="zero3", offload="optimizer"))
    assert (states.at(8), states.host) == (2 / 8, 16)
    parameters = states_of(Recipe(framework="deepspeed", sharding="zero3", offload="parameters"))
    assert (parameters.at(8), parameters.host) == (0, 18)
    with pytest.raises(ValueError, match="only under zero3 or fsdp"):
        Recipe(offload="parameters")


@pytest.mark.parametrize(
    ("pp", "m", "vp", "expected"),
    [(8, 32, 1, 0.1794871794871795), (8, 32, 4, 0.05185185185185185), (16, 128, 8, 0.014436958614051972)],
)
def test_bubble_vectors(pp: int, m: int, vp: int, expected: float) -> None:
    assert bubble_share(pp, m, vp) == pytest.approx(expected, rel=1e-12)


def test_micro_batches_in_flight_fall_from_first_to_last_stage() -> None:
    assert [int(in_flight(stage, 4, 1, 16)) for stage in range(4)] == [4, 3, 2, 1]
    assert in_flight(0, 4, 1, 2) == 2
    assert in_flight(0, 8, 4, 64) == pytest.approx(8 * (1 + 7 / 32))
    assert in_flight(7, 8, 4, 64) == pytest.approx((3 * 8 + 1) / 4)


def test_layers_go_to_stages_in_order_and_embedding_and_head_count_as_layers() -> None:
    model = decoder(LLAMA, num_hidden_layers=126, hidden_size=16384, num_attention_heads=128, intermediate_size=53248)
    assert stage_counts(model, 8, 1).sum(axis=1).tolist() == [15, 16, 16, 16, 16, 16, 16, 15]
    assert stage_counts(model, 2, 1, (60, 66)).sum(axis=1).tolist() == [60, 66]
    moe = stage_counts(decoder(DEEPSEEK_V3), 4, 1)
    assert moe[0].tolist() == [3, 12]
    assert moe[:, 0].sum() == 3
    with pytest.raises(ValueError, match="do not divide 126 layers"):
        stage_counts(model, 2, 1, (60, 60))


def test_hyper_connections_keep_every_stream_before_each_block() -> None:
    """mHC, arXiv:2512.24880: n streams of the residual, mixed into what a block reads and back."""
    layer, recipe = decoder(LLAMA).layers[0], Recipe()
    one, four = (kept(replace(layer, streams=n), 4096, recipe) for n in (1, 4))
    assert four.at(1, 1, recipe, 4096) - one.at(1, 1, recipe, 4096) == 2 * 4 * 2 * 4096
    assert (one.entry_at(1, recipe), four.entry_at(1, recipe)) == (2 * 4096, 4 * 2 * 4096)
