"""Layers per stage, the pace of the slowest stage, and what stages and tensor ranks send each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from validation.training_systems import SYSTEMS

from builders.decoders import DEEPSEEK_V3, LLAMA, decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.exchanges import context_exchange, stage_exchange, tensor_exchange
from clusterwright.physics.training.recipes import Recipe
from clusterwright.physics.training.speed import step_time
from clusterwright.physics.training.stages import chunk_sizes, head_layers, stage_paces

H100 = SYSTEMS["DGX-H100"]
KIMI_K2 = {"num_attention_heads": 64, "n_routed_experts": 384, "first_k_dense_replace": 1, "vocab_size": 163840}


def test_what_is_missing_is_taken_from_ends_then_from_all() -> None:
    assert chunk_sizes(126, 8) == (15, 16, 16, 16, 16, 16, 16, 15)
    assert chunk_sizes(33, 16) == (2, 3, *[2] * 14)
    assert chunk_sizes(80, 20) == (4,) * 20
    assert chunk_sizes(5, 1) == (5,)
    assert chunk_sizes(32, 34) == (0, *[1] * 32, 0)


def test_a_heavy_head_leaves_room_beside_it() -> None:
    """NVIDIA Megatron-Bridge recipes: DeepSeek-V3 with its draft layer in 16 chunks "Et*4|(t*4|)*14tmL", Kimi K2 in 32
    chunks "Et|(tt|)*30L" (E embedding, t layer, m draft layer, L head).
    """
    deepseek, kimi = decoder(DEEPSEEK_V3), decoder(DEEPSEEK_V3, **KIMI_K2)
    assert chunk_sizes(61, 16, head_layers(deepseek, drafts=True)) == (*[4] * 15, 1)
    assert chunk_sizes(61, 32, head_layers(kimi, drafts=False)) == (1, *[2] * 30, 0)
    assert head_layers(deepseek, drafts=True) == pytest.approx(2 * head_layers(deepseek, drafts=False) + 1)


def test_paces_are_of_the_fullest_stage_and_of_the_last() -> None:
    deepseek = decoder(DEEPSEEK_V3)
    with_draft = stage_paces(deepseek, Recipe(drafts=True), 16, 1)
    assert with_draft == pytest.approx((4 * 16 / 62, 2 * 16 / 62))
    assert stage_paces(decoder(LLAMA), Recipe(stage_layers=(10, 22)), 2, 1) == pytest.approx((10 / 16, 22 / 16))
    pp, vp = np.array([1, 4, 16]), np.array([1, 4, 1])
    arrays = stage_paces(deepseek, Recipe(), pp, vp)
    for row, (p, v) in enumerate(zip(pp, vp, strict=True)):
        assert (arrays[0][row], arrays[1][row]) == stage_paces(deepseek, Recipe(), int(p), int(v))


def test_the_head_slows_a_pipeline_that_leaves_it_no_room() -> None:
    """One stage more than there are layers fewer beside the head: layers of other stages set the pace instead."""
    model, layout = decoder(LLAMA), Layout(pp=8, dp=8)
    even = step_time(model, layout, Recipe(global_batch=512), H100)
    roomy = step_time(model, layout, Recipe(global_batch=512, stage_layers=(*[4] * 4, 5, 5, 5, 1)), H100)
    assert dict(even.terms)["head"] > 0
    assert dict(roomy.terms)["head"] == 0
    assert dict(roomy.terms)["dense products"] == pytest.approx(5 / 4 * dict(even.terms)["dense products"])


def test_stages_hand_on_activations_and_gradients_by_every_chunk() -> None:
    layers, sizes = list(decoder(LLAMA).groups), {"tp": 2.0, "cp": 1.0, "dp": 8.0, "pp": 4.0, "vp": 2.0}
    plane = 2 * 8192 * 4096 / 2
    assert stage_exchange(layers, 4096, 8192, sizes, H100) == pytest.approx(2 * 2 * plane / 50e9)
    inside = sizes | {"dp": 1.0}
    assert stage_exchange(layers, 4096, 8192, inside, H100) == pytest.approx(2 * 2 * plane / 450e9)
    assert stage_exchange(layers, 4096, 8192, sizes | {"pp": 1.0}, H100) == 0


def test_context_ranks_pass_whole_kv_heads_once_forward_and_twice_back() -> None:
    model, tokens = decoder(LLAMA), 2048
    layers = list(model.groups)
    few = context_exchange(layers, tokens, {"cp": 4.0, "tp": 2.0}, H100)
    assert few == pytest.approx(3 * 32 * 2 * 4 * 256 * tokens * 3 / 450e9)
    copied = context_exchange(layers, tokens, {"cp": 2.0, "tp": 16.0}, H100)
    assert copied == pytest.approx(3 * 32 * 2 * 1 * 256 * tokens / 50e9)


def test_tensor_ranks_of_two_domains_use_all_their_nics() -> None:
    model, tokens = decoder(LLAMA), 8192
    layers, planes = list(model.groups), 5 * 64 * 8192 * 4096 * 2
    inside = tensor_exchange(layers, model, tokens, {"tp": 8.0}, H100)
    over = tensor_exchange(layers, model, tokens, {"tp": 16.0}, H100)
    assert inside == pytest.approx(planes * 7 / 8 / 450e9)
    assert over == pytest.approx(planes * (7 / 8 / 450e9 + 1 / 2 / (8 * 50e9)))


def test_a_slower_network_slows_tensor_ranks_that_leave_the_domain_only() -> None:
    slow = replace(H100, nic_bytes_s=H100.nic_bytes_s / 8)
    for tp, slower in ((8, False), (16, True)):
        times = [
            dict(step_time(decoder(LLAMA), Layout(tp=tp, dp=2), Recipe(), system).terms)["tensor exchange"]
            for system in (H100, slow)
        ]
        assert (times[1] > times[0]) == slower
