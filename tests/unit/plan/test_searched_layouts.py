"""Layouts that a file leaves open: by the search, best by the goal, on the best pool; and what is said of others."""

from __future__ import annotations

from functools import cache

import pytest

from builders.plans import document
from clusterwright.files.catalogue import load_catalogue
from clusterwright.model.workloads import Goal
from clusterwright.plan.fronts import Front, TrainingFront
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.services import ServicePlan
from clusterwright.report.plan_figures import plan_values
from clusterwright.report.plans import render_plan

TEXT = """\
apiVersion: clusterwright/v1alpha1
cluster: test
pools:
  h200: {nodes: "a-[1-4]", shape: hgx-h200-sxm-8, price: $3/GPU-h}
fabric: {networks: {ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8}}}
workloads:
  chat:
    model: deepseek-ai/DeepSeek-V3
    serve:
      {engine: vllm 0.11, precision: fp8, in: 2000 tokens, out: 300 tokens, rate: 10 req/s, max_model_len: 8192 tokens}
    target: {ttft_p95: 2 s, tpot_p95: 60 ms}
"""
JOB = """\
apiVersion: clusterwright/v1alpha1
cluster: test
pools:
  h100: {nodes: "a-[1-8]", shape: hgx-h100-sxm-8}
fabric: {networks: {ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8}}}
workloads:
  job:
    model: meta-llama/Llama-3.3-70B-Instruct
    train: {framework: megatron, precision: bf16, sharding: zero1, sequence: 8192 tokens, global_batch: 256, gpus: 64}
"""


@cache
def planned(*overrides: str, text: str = TEXT, goal: Goal | None = None) -> Plan:
    return plan_architecture(document(text, *overrides), load_catalogue(), goal=goal)


def chat(plan: Plan) -> WorkloadPlan:
    found = plan.workload("chat")
    assert found is not None
    return found


def front(plan: Plan) -> Front:
    found = chat(plan).layouts
    assert isinstance(found, Front)
    return found


@pytest.mark.parametrize("model", ["deepseek-ai/DeepSeek-V3", "moonshotai/Kimi-K2-Instruct"])
def test_a_large_mixture_of_experts_gets_attention_groups_with_experts_over_all_of_them(model: str) -> None:
    plan = planned(f"workloads.chat.model={model}")
    found = chat(plan)
    assert not plan.misfits
    assert found.layout is not None
    assert found.layout.dp == 8
    assert found.layout.ep == found.layout.tp * found.layout.dp
    assert not found.layout.declared
    assert isinstance(found.memory, MemoryPlan)
    assert "--enable-expert-parallel" in found.memory.flags


def test_the_plan_says_of_its_layout_what_the_search_says() -> None:
    plan = planned()
    service = chat(plan).service
    assert isinstance(service, ServicePlan)
    point = next(point for point in front(plan).points if point.planned)
    assert point.best
    assert service.tpot is not None
    assert service.ttft is not None
    assert service.costs is not None
    assert service.tpot.value / 1e3 == pytest.approx(point.tpot_s, rel=1e-6)
    assert service.ttft.value == pytest.approx(point.ttft_s, rel=1e-4)
    assert service.costs[1].value == pytest.approx(point.cost, rel=1e-9)


@pytest.mark.parametrize("goal", ["cost", "latency", "throughput", "domain"])
def test_the_goal_decides_and_the_option_goes_before_the_file(goal: Goal) -> None:
    other = "latency" if goal == "cost" else "cost"
    told, asked = planned(f"workloads.chat.goal={goal}"), planned(f"workloads.chat.goal={other}", goal=goal)
    assert front(told).goal == front(asked).goal == goal
    assert chat(told).layout == chat(asked).layout
    best = next(point for point in front(told).points if point.best)
    if goal == "cost":
        assert best.cost == min(point.cost for point in front(told).points)
    if goal == "latency":
        assert best.tpot_s == min(point.tpot_s for point in front(told).points)


def test_a_declared_layout_is_planned_as_declared_and_told_how_far_it_is_from_the_best() -> None:
    plan = planned("workloads.chat.serve.parallel={tp: 8}")
    found = chat(plan)
    assert str(found.layout) == "TP8"
    assert found.chosen is not None
    assert found.chosen.reason == "declared"
    assert "2 × the cost per token of DP8 EP8" in front(plan).planned_reason
    assert "the planned one fits; 2 × the cost per token of DP8 EP8" in render_plan(plan, 400)


def test_the_text_is_short_and_everything_on_request() -> None:
    plan = planned()
    short, full = (render_plan(plan, 400, layouts=how) for how in (False, True))
    said = [line for line in short.splitlines() if "possible; no other beats in cost and time per token" in line]
    assert len(said) == 1
    assert len(full.splitlines()) > len(short.splitlines()) + 30
    for lost in front(plan).losers:
        assert f"not {lost.layout} ({lost.name})" in full


def test_the_values_hold_every_point_and_every_reason() -> None:
    plan = planned()
    values = plan_values(plan)["workloads"][0]["layouts"]
    assert len(values["points"]) == values["possible"] == len(front(plan).points)
    assert {lost["layout"] for lost in values["losers"]} == {lost.layout for lost in front(plan).losers}


def test_the_best_pool_is_taken_by_money() -> None:
    more = "pools.b200={nodes: 'b-[1-4]', shape: hgx-b200-8, price: $1/GPU-h}"
    dear = "pools.b200={nodes: 'b-[1-4]', shape: hgx-b200-8, price: $90/GPU-h}"
    assert chat(planned(more)).pool == "b200"
    assert chat(planned(dear)).pool == "h200"
    assert chat(planned(more, "workloads.chat.pools=[h200]")).pool == "h200"


def test_a_load_that_no_layout_carries_takes_the_one_that_comes_closest_and_does_not_hold() -> None:
    plan = planned("workloads.chat.serve.rate=500 req/s")
    found = chat(plan)
    assert found.layout is not None
    assert found.chosen is not None
    assert "no layout carries the load on this pool" in found.chosen.reason
    assert plan.misfits


def test_targets_out_of_reach_are_said_with_the_layout_that_comes_closest() -> None:
    plan = planned("workloads.chat.target.tpot_p95=1 ms")
    found = chat(plan)
    assert found.chosen is not None
    assert "no layout meets the targets" in found.chosen.reason
    assert "workloads.chat.service.replica_rate" in {misfit.subject for misfit in plan.misfits}


def test_a_model_that_nothing_holds_has_the_reason_of_the_layout_that_came_furthest() -> None:
    plan = planned("pools.h200.nodes=a-1", "pools.h200.hardware={gpus: 2, nvswitch: true}")
    assert chat(plan).layout is None
    assert any("exceed the budget by" in misfit.message for misfit in plan.misfits)
    assert front(plan).possible == 0
    assert "none of" in render_plan(plan)


def test_without_a_network_no_replica_leaves_its_node() -> None:
    plan = planned("fabric=", "workloads.chat.model=moonshotai/Kimi-K2-Instruct")
    found = chat(plan)
    assert found.layout is None or found.layout.gpus <= 8


def test_declared_replicas_are_kept_and_layouts_that_need_more_are_out() -> None:
    plan = planned("workloads.chat.serve.replicas=1", "workloads.chat.serve.rate=12 req/s")
    found = chat(plan)
    assert found.replicas_wanted == 1
    assert not plan.misfits
    assert any("requests/s, 1 are declared" in lost.reason for lost in front(plan).losers)


def test_spread_replicas_take_a_node_each() -> None:
    small = (
        "workloads.chat.model=llama-3.1-8b",
        "workloads.chat.serve.precision=bf16",
        "workloads.chat.target.survive=1 node",
    )
    apart = planned(*small, "workloads.chat.serve.spread=required")
    nodes = [part.node for part in chat(apart).placement]
    assert len(nodes) == len(set(nodes)) == chat(apart).replicas_wanted
    assert not apart.misfits


def test_the_layout_of_a_job_is_the_fastest_that_surely_fits() -> None:
    plan = planned(text=JOB)
    job = plan.workload("job")
    assert job is not None
    assert isinstance(job.layouts, TrainingFront)
    assert isinstance(job.memory, MemoryPlan)
    assert job.layout is not None
    assert job.layout.gpus == 64
    assert job.memory.fits
    assert job.memory.total.value * 1.14 <= job.memory.usable.value
    assert [point.layout for point in job.layouts.points if point.planned] == [str(job.layout)]
    assert "possible; no other beats in time and memory" in render_plan(plan, 400)


def test_a_declared_job_is_told_how_far_it_is_from_the_best() -> None:
    plan = planned("workloads.job.train.parallel={tp: 8, pp: 8}", text=JOB)
    job = plan.workload("job")
    assert job is not None
    assert isinstance(job.layouts, TrainingFront)
    assert "of the tokens per second of" in job.layouts.planned_reason


def test_a_job_that_nothing_holds_is_planned_where_it_needs_least() -> None:
    plan = planned("workloads.job.train.gpus=8", text=JOB)
    job = plan.workload("job")
    assert job is not None
    assert job.chosen is not None
    assert "no layout fits; this one needs the least memory" in job.chosen.reason
    assert plan.misfits
