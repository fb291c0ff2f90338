"""What a step takes beside weights and cache, against peaks that logs print."""

import numpy as np
import pytest

from builders.decoders import deepseek_v3, llama, llama_70b, qwen3_moe
from clusterwright.physics.engines.activations import captured_sizes, forward_gib, graphs_gib, sampler_gib
from clusterwright.physics.layouts import Layout


@pytest.mark.parametrize(
    ("sequences", "vocabulary", "printed"),
    [  # "PyTorch activation peak memory takes …", sorting sampler
        (256, 128256, 1.26),  # Llama-3-8B on one and two ranks, vllm-project/vllm#10511
        (256, 152064, 1.42),  # Qwen2-32B shape, vllm-project/vllm#15018
        (256, 50272, 0.49),  # opt-125m, vllm-project/vllm#15394
    ],
)
def test_sampler_explains_the_peak_of_short_batches(sequences: int, vocabulary: int, printed: float) -> None:
    assert sampler_gib(sequences, vocabulary, 9.7) == pytest.approx(printed, rel=0.07)


def test_forward_grows_with_the_batch_as_logged() -> None:
    """vllm-project/vllm#10517: peak 17.06 GiB at 20,000 tokens, 17.98 at 29,000."""
    grown = forward_gib(llama(), Layout(), 29000, 2.6) - forward_gib(llama(), Layout(), 20000, 2.6)
    assert grown == pytest.approx(17.98 - 17.06, abs=0.03)


def test_ranks_divide_what_is_inside_a_layer_and_not_the_hidden_state() -> None:
    one, eight = (forward_gib(llama_70b(), Layout(tp=tp), 8192) for tp in (1, 8))
    hidden = 2 * 2 * 8192 * 8192 / 2**30
    assert one - hidden == pytest.approx(8 * (eight - hidden))


def test_experts_take_a_chunk_of_tokens_at_once() -> None:
    """Beyond 16,384 tokens only hidden state and output of experts grow."""
    decoder = qwen3_moe()
    grown = forward_gib(decoder, Layout(tp=8), 32768) - forward_gib(decoder, Layout(tp=8), 16384)
    assert grown == pytest.approx(16384 * 3 * 4096 * 2 / 2**30)


def test_latent_attention_expands_earlier_context() -> None:
    """64 Ki tokens × (576 + 16 heads × 256) in 16 bit on one of eight ranks."""
    assert forward_gib(deepseek_v3(), Layout(tp=8), 0) == pytest.approx(65536 * (576 + 16 * 256) * 2 / 2**30)


@pytest.mark.parametrize(("largest", "sizes"), [(1, 1), (4, 3), (8, 4), (256, 35), (512, 51)])
def test_captured_sizes(largest: int, sizes: int) -> None:
    """vLLM prints "PIECEWISE=51 (largest=512), FULL=35 (largest=256)"."""
    assert captured_sizes(largest) == sizes
    assert captured_sizes(np.array([largest, 4])).tolist() == [sizes, 3]


def test_graphs_are_of_one_stage() -> None:
    assert graphs_gib(llama(), Layout(pp=2), 64, 0.25) == graphs_gib(llama(), Layout(), 32, 0.25) == 0.25
