import math

import pytest

from builders.models import LLAMA_8B
from clusterwright.physics.ceilings import COLLECTIVES, busbw_bound, busbw_bound_inside, busbw_reference
from clusterwright.physics.latencies import (
    decode_flops,
    decode_step_s,
    interference_s,
    memory_s,
    prefill_flops,
    prefill_s,
    unique_experts_share,
    wait_mean_s,
    wait_quantile_s,
)
from clusterwright.physics.parameters import count_parameters
from clusterwright.physics.training_speed import MFU, bubble_share, flops_per_token, tokens_per_s

#: Published bus bandwidth (GB/s): operation, GPUs per domain, domains, NIC GB/s per GPU, value.
PUBLISHED = [
    ("all-reduce", 8, 2, 25, 337),
    ("all-gather", 8, 2, 25, 189),
    ("all-to-all", 8, 2, 25, 40.2),
    ("all-reduce", 8, 2, 50, 488),
    ("all-gather", 8, 2, 50, 339),
    ("all-to-all", 8, 2, 50, 79.1),
    ("all-reduce", 4, 4, 50, 191),
    ("all-to-all", 4, 4, 50, 58.2),
    ("all-reduce", 4, 8, 100, 376),
    ("all-gather", 4, 8, 100, 366),
    ("all-to-all", 4, 8, 100, 85.6),
    ("all-reduce", 8, 4, 50, 382),
]


@pytest.mark.parametrize(("operation", "gpus", "domains", "nic", "value"), PUBLISHED)
def test_no_published_measurement_exceeds_its_bound(operation, gpus, domains, nic, value):
    assert value <= busbw_bound(operation, gpus, domains, nic)


def test_bounds_of_two_h100_nodes():
    assert busbw_bound("all-reduce", 8, 2, 25) == 375
    assert busbw_bound("all-to-all", 8, 2, 25) == 46.875
    assert busbw_bound("all-to-all", 4, 8, 100) == pytest.approx(110.7, abs=0.05)
    assert busbw_reference(8, 2, 25, 450) == 200
    assert busbw_reference(4, 8, 100, 900) == 400


def test_the_bound_refuses_a_single_domain():
    with pytest.raises(ValueError, match="one domain"):
        busbw_bound("all-reduce", 8, 1, 50)


@pytest.mark.parametrize(("link", "ranks", "value"), [(450, 8, 480), (900, 8, 846), (900, 72, 835)])
def test_in_switch_reduction_bounds_published_results_inside_a_domain(link, ranks, value):
    assert value <= busbw_bound_inside("all-reduce", ranks, link, switch_reduces=True)


def test_without_in_switch_reduction_the_link_is_the_bound():
    assert {busbw_bound_inside(c, 8, 448, False) for c in COLLECTIVES} == {448}
    assert busbw_bound_inside("all-reduce", 8, 450, True) == pytest.approx(400 * 1.75)


def test_reading_weights_and_cache_of_llama_70b_at_batch_32():
    """fp8 weights without the input table on 8 GPUs, 32 × 4,096 tokens of fp8 cache, 77 % of 3.35 TB/s."""
    weights = (70.554e9 - 128256 * 8192) / 8
    cache = 32 * 4096 * 2 * 80 * 1 * 128 * 1
    assert memory_s(weights + cache, 3.35e12) * 1e3 == pytest.approx(4.4087111517736, rel=1e-4)


def test_unique_experts_of_sixteen_tokens():
    assert unique_experts_share(128, 8, 16) == pytest.approx(0.6439258695482072, rel=1e-12)


def test_decode_step_takes_the_larger_of_memory_and_compute():
    reading = memory_s(1e10, 3.35e12)
    memory_bound = decode_step_s(reading, 1e9 / (0.8 * 989e12), 0, 80)
    compute_bound = decode_step_s(reading, 1e13 / (0.8 * 989e12), 0, 80)
    assert memory_bound == pytest.approx(1e10 / (0.77 * 3.35e12) + 80 * 75e-6 + 0.3e-3)
    assert compute_bound == pytest.approx(1e13 / (0.8 * 989e12) + 80 * 75e-6 + 0.3e-3)


def test_prefill_and_interference():
    flops = prefill_flops(69.5e9, 1000, 80, 64, 128)
    assert flops == pytest.approx(139e12 + 2 * 80 * 64 * 128 * 1e6)
    assert prefill_s(flops, 4, 1978.9e12) == pytest.approx(flops / (4 * 1978.9e12 * 0.5))
    assert interference_s(50, 0.036, 250) == pytest.approx(0.0072)
    assert decode_flops(69.5e9, 1000, 80, 64, 128) == pytest.approx(139e9 + 4 * 80 * 64 * 128 * 1000)


def test_waiting_of_prompts():
    assert wait_quantile_s(0.5, 1.0, 0.95) == pytest.approx(2 * math.log(10))
    assert wait_quantile_s(0.03, 1.0, 0.95) == 0
    assert wait_quantile_s(1.0, 1.0, 0.95) == math.inf
    assert wait_mean_s(0.5, 1.0) == 1.0
    assert wait_mean_s(1.2, 1.0) == math.inf


def test_published_tflops_of_llama_3_8b():
    """torchtitan, 8 × H100, bf16, 8,192 tokens: 5,762 and 6,667 tokens/s per GPU are its 33 to 39 % MFU."""
    flops = flops_per_token(count_parameters(LLAMA_8B).multiplied, 32, 32, 128, 8192)
    slow, fast = 5762 * flops / 989.4e12, 6667 * flops / 989.4e12
    assert slow == pytest.approx(0.30, abs=0.01)
    assert fast == pytest.approx(0.35, abs=0.01)
    measured = sorted(t * flops / 989.4e12 for t in (5762, 6667, 5605, 6514))
    assert MFU["h100-sxm-80"]["bf16", "dense"] == pytest.approx((measured[1] + measured[2]) / 2, abs=0.01)


def test_tokens_per_second():
    assert tokens_per_s(4, 1e15, 0.5, 1e11) == 20_000


@pytest.mark.parametrize(
    ("stages", "micro_batches", "virtual", "share"),
    [(8, 32, 1, 0.1794871794871795), (8, 32, 4, 0.05185185185185185), (16, 128, 8, 0.014436958614051972)],
)
def test_pipeline_bubble(stages, micro_batches, virtual, share):
    assert bubble_share(stages, micro_batches, virtual) == pytest.approx(share, rel=1e-12)
