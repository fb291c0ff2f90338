import pytest

from builders.models import DEEPSEEK, LLAMA_8B, LLAMA_70B, LLAMA_405B, MIXTRAL, QWEN3_235B, QWEN25_7B
from clusterwright.physics.caches import kv_bytes, kv_bytes_per_token
from clusterwright.physics.parameters import count_parameters
from clusterwright.physics.serving_memory import (
    GIB,
    vllm_activation_gib,
    vllm_budget_gib,
    vllm_default_batched_tokens,
    vllm_default_sequences,
    vllm_forward_gib,
    vllm_kv_pool_gib,
    vllm_sampler_gib,
)
from clusterwright.physics.training_memory import (
    activation_bytes_per_layer,
    checkpoint_bytes,
    gathered_bytes,
    logits_bytes,
    micro_batches_in_flight,
    state_bytes_per_parameter,
)
from clusterwright.physics.weights import BYTES, weight_bytes, weight_bytes_per_gpu


@pytest.mark.parametrize(
    ("model", "total"),
    [  # as the safetensors index or the publisher counts them
        (LLAMA_8B, 8_030_261_248),
        (LLAMA_70B, 70_553_706_496),
        (LLAMA_405B, 405_853_388_800),
        (QWEN3_235B, 235_093_634_560),
        (MIXTRAL, 46_702_792_704),
        (QWEN25_7B, 7_615_616_512),
    ],
)
def test_parameters_agree_with_the_published_count(model, total):
    assert count_parameters(model).total == total


def test_active_parameters_of_a_mixture_count_only_the_used_experts():
    assert count_parameters(QWEN3_235B).active == pytest.approx(22.2e9, rel=0.002)
    assert count_parameters(MIXTRAL).active == pytest.approx(12.9e9, rel=0.002)


def test_latent_attention_has_no_formula_here():
    with pytest.raises(ValueError, match="mla"):
        count_parameters(DEEPSEEK)


def test_multiplied_parameters_leave_the_input_table_out_and_keep_the_head():
    counted = count_parameters(LLAMA_8B)
    assert counted.multiplied == counted.total - counted.norms - 128256 * 4096
    tied = count_parameters(LLAMA_8B.model_copy(update={"tied_embeddings": True}))
    assert tied.multiplied == counted.multiplied
    assert tied.total == counted.total - 128256 * 4096


@pytest.mark.parametrize(
    ("precision", "gib"), [("bf16", 131.41706585884094), ("fp8", 65.70853292942047), ("nvfp4", 36.961049772799015)]
)
def test_all_parameters_of_llama_70b_in_one_format(precision, gib):
    total = count_parameters(LLAMA_70B).total
    assert total * BYTES[precision] / GIB == pytest.approx(gib, rel=1e-4)


def test_quantized_weights_keep_embedding_and_head_in_16_bit():
    counted = count_parameters(LLAMA_70B)
    gib = weight_bytes(counted.linear, counted.plain, BYTES["fp8"]) / GIB
    assert gib == pytest.approx((70_553_706_496 + 2 * 128256 * 8192) / GIB, rel=1e-4)  # 67.67 GiB


def test_weights_of_fp32_are_all_fp32():
    assert weight_bytes(10, 5, BYTES["fp32"]) == 60


def test_weights_per_gpu_divide_layers_and_replicate_norms():
    parts = {"dense_linear": 800, "experts": 0, "replicated": 10, "vocabulary": 80}
    assert weight_bytes_per_gpu(**parts, bytes_per_dense=2, bytes_per_expert=2, tp=4, pp=1, ep=1) == 400 + 20 + 40
    assert weight_bytes_per_gpu(**parts, bytes_per_dense=2, bytes_per_expert=2, tp=4, pp=2, ep=1) == 200 + 10 + 20


def test_experts_divide_by_expert_parallelism_when_it_is_wider():
    got = weight_bytes_per_gpu(
        dense_linear=0, experts=800, replicated=0, vocabulary=0, bytes_per_dense=2, bytes_per_expert=1, tp=2, pp=1, ep=8
    )
    assert got == 100


@pytest.mark.parametrize(("layers", "kv_heads", "head_dim", "gib"), [(80, 8, 128, 40.0), (94, 4, 128, 23.5)])
def test_cache_of_131072_tokens_in_bf16(layers, kv_heads, head_dim, gib):
    assert kv_bytes_per_token(layers, kv_heads, head_dim, 2) * 131072 / GIB == gib


def test_heads_are_replicated_when_tensor_ranks_outnumber_them():
    assert kv_bytes_per_token(94, 4, 128, 2, tp=4) == kv_bytes_per_token(94, 4, 128, 2, tp=8)


def test_the_fullest_pipeline_stage_counts():
    assert kv_bytes_per_token(94, 4, 128, 2, pp=4) == 2 * 24 * 4 * 128 * 2


def test_sequences_take_whole_blocks():
    assert kv_bytes(17, 100) == 3200


def test_vllm_pool_of_qwen3_8b_on_an_a100_40gb():
    """Published start-up log: weights 15.27 GiB, KV 18.69 GiB, utilisation .9, 2,048 batched tokens, 256 sequences."""
    sampler = vllm_sampler_gib(256, 151936)
    forward = vllm_forward_gib(2048, 4096, 12288, 1)
    activation = vllm_activation_gib(sampler, forward)
    pool = vllm_kv_pool_gib(vllm_budget_gib(39.38, 0.9), 15.27, activation, 0.1, 0)
    assert activation == sampler
    assert pool == pytest.approx(18.69, abs=0.1)


def test_vllm_defaults_by_device():
    assert (vllm_default_sequences(79.1, False), vllm_default_batched_tokens(79.1, False)) == (1024, 8192)
    assert (vllm_default_sequences(79.2, True), vllm_default_batched_tokens(44.3, False)) == (256, 2048)


@pytest.mark.parametrize(
    ("sharding", "dp", "expected"),
    [
        ("ddp", 8, 16),
        ("zero1", 8, 5.5),
        ("zero2", 8, 3.75),
        ("zero3", 8, 2),
        ("fsdp", 4, 4),
        ("distributed", 64, 6.1875),
    ],
)
def test_bytes_per_parameter(sharding, dp, expected):
    assert state_bytes_per_parameter(sharding, dp) == expected


def test_llama_405b_states_under_the_distributed_optimizer():
    per_gpu = state_bytes_per_parameter("distributed", 64) * 405.853e9 / (8 * 16)
    assert per_gpu / 1e9 == pytest.approx(19.61887060546875, rel=1e-9)


def test_checkpoint_sizes():
    assert checkpoint_bytes(405.853e9) / 1e9 == pytest.approx(5681.942, rel=1e-9)
    assert checkpoint_bytes(70.554e9) / 1e9 == pytest.approx(987.756, rel=1e-9)


@pytest.mark.parametrize(
    ("recompute", "tp", "flash", "gb"),
    [
        ("none", 1, False, 23.756537856),
        ("selective", 8, True, 0.285212672),
        ("full", 1, True, 0.134217728),
    ],
)
def test_activations_of_a_llama_70b_layer(recompute, tp, flash, gb):
    got = activation_bytes_per_layer(8192, 1, 8192, 64, recompute, tp, flash)
    assert got / 1e9 == pytest.approx(gb, rel=1e-9)


def test_flash_attention_never_stores_scores():
    assert activation_bytes_per_layer(8192, 1, 8192, 64, "none") == 34 * 8192 * 8192


def test_micro_batches_in_flight():
    assert micro_batches_in_flight(8, 32) == 8
    assert micro_batches_in_flight(8, 4) == 4
    assert micro_batches_in_flight(8, 32, virtual=4) == 8 * (1 + 7 / 32)


def test_logits_and_gathered_units():
    assert logits_bytes(4096, 128256) == 14 * 4096 * 128256
    assert gathered_bytes(1000) == 6000
