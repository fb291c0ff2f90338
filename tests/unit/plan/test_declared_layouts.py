"""Layouts as a file says them: attention groups, experts over them, caches that ranks share by position."""

from __future__ import annotations

import pytest

from builders.plans import planned, subjects
from clusterwright.lib.errors import InvalidInput
from clusterwright.physics.layouts import Layout as EngineLayout
from clusterwright.plan.engines import engine_layout, file_layout
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.plans import Plan

PARALLEL = "workloads.chat.serve.parallel"


def memory(plan: Plan) -> MemoryPlan:
    found = plan.workload("chat")
    assert found is not None
    assert isinstance(found.memory, MemoryPlan)
    return found.memory


@pytest.mark.parametrize(
    ("engine", "layout"),
    [
        ("vllm", EngineLayout(tp=2, pp=2, dp=4, ep=8)),
        ("vllm", EngineLayout(tp=8, dcp=4)),
        ("sglang", EngineLayout(tp=8, ep=8, attention_dp=8)),
        ("sglang", EngineLayout(tp=16, pp=2, ep=2, attention_dp=4)),
        ("tensorrt-llm", EngineLayout(tp=8, ep=4, attention_dp=8)),
    ],
)
def test_a_layout_of_the_search_is_one_of_the_file_with_as_many_gpus(engine: str, layout: EngineLayout) -> None:
    said = file_layout(layout)
    assert engine_layout(engine, said) == layout
    assert said.gpus == layout.gpus


def test_a_shared_cache_holds_as_many_times_the_tokens() -> None:
    model = "workloads.chat.model=deepseek-like"
    plain, shared = (planned(model, f"{PARALLEL}={{tp: 8, dcp: {ranks}}}") for ranks in (1, 8))
    assert str(shared.workload("chat").layout) == "TP8 DCP8"  # type: ignore[union-attr]
    held, once = memory(shared).kv_tokens, memory(plain).kv_tokens
    assert held is not None
    assert once is not None
    assert held.value == pytest.approx(8 * once.value, rel=0.01)
    assert "--decode-context-parallel-size" in memory(shared).flags


def test_ranks_share_no_more_than_what_they_repeat() -> None:
    plan = planned(f"{PARALLEL}={{tp: 8, dcp: 2}}")  # 8 KV heads
    assert "workloads.chat.placement" in subjects(plan)
    assert any("8 KV heads over 8 ranks lie on 1 each" in misfit.message for misfit in plan.misfits)
    assert "workloads.chat.placement" not in subjects(
        planned("workloads.chat.model=qwen-235b", f"{PARALLEL}={{tp: 8, dcp: 2}}")
    )


def test_ranks_that_share_a_cache_are_tensor_ranks() -> None:
    with pytest.raises(InvalidInput, match="dcp 3 does not divide tp 8"):
        planned(f"{PARALLEL}={{tp: 8, dcp: 3}}")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("data_parallel", "dp"), ("expert_parallel", "ep"), ("decode_context_parallel", "dcp"),
        ("decode_context_parallel_size", "dcp"), ("dp_size", "dp"), ("ep_size", "ep"), ("tp_size", "tp"),
    ],
)  # fmt: skip
def test_names_of_the_engines_flags_lead_to_the_key(said: str, meant: str) -> None:
    with pytest.raises(InvalidInput, match=f"did you mean '{meant}'"):
        planned(f"{PARALLEL}={{tp: 2, {said}: 2}}")
