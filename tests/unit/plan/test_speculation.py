"""Speculative decoding in a file."""

from __future__ import annotations

from functools import cache

import pytest

from builders.plans import document
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.files.catalogue import load_catalogue
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.refusals import Unplanned

TEXT = """
apiVersion: clusterwright/v1alpha1
cluster: c
pools: {gpu: {nodes: "n-[1-4]", shape: hgx-h200-sxm-8}}
fabric: {networks: {ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8, oversubscription: 1}}}
workloads:
  chat:
    model: meta-llama/Llama-3.3-70B-Instruct
    serve: {engine: vllm 0.11, precision: fp8, in: 1000 tokens, out: 250 tokens, rate: 2 req/s, parallel: {tp: 8}}
    target: {ttft_p95: 1 s, tpot_p95: 50 ms}
"""
MTP = "workloads.chat.serve.speculation={method: mtp, tokens: 1, acceptance: 85%}"
DEEPSEEK = "workloads.chat.model=deepseek-ai/DeepSeek-V3"


@cache
def shipped() -> Catalogue:
    """The catalogue that every installation has."""
    return load_catalogue()


def planned(*changes):
    return plan_architecture(document(TEXT, *changes), shipped())


def large(*more):
    return planned(DEEPSEEK, *more)


@pytest.mark.parametrize("engine", ["vllm 0.11", "sglang 0.5", "tensorrt-llm 1.0"])
def test_draft_layers_take_memory_and_shorten_the_time_per_token(engine):
    named = f"workloads.chat.serve.engine={engine}"
    plain, drafted = (large(named, *more).workload("chat") for more in ((), (MTP,)))
    assert drafted.memory.fits
    assert drafted.memory.kv_tokens.value < plain.memory.kv_tokens.value
    assert drafted.service.kept_tokens.value == pytest.approx(1.85)
    assert plain.service.tpot.value / 1.85 < drafted.service.tpot.value < plain.service.tpot.value
    assert drafted.service.tpot.band is None
    assert sum(f.value for _, f in drafted.memory.parts) == pytest.approx(drafted.memory.total.value)
    said = " ".join(drafted.memory.flags) + drafted.memory.extra_config
    assert "mtp" in said.lower() or "speculative" in said


def test_an_acceptance_of_nothing_only_costs():
    plain, useless = large().workload("chat").service, large(MTP.replace("85%", "0%")).workload("chat").service
    assert useless.kept_tokens.value == 1
    assert useless.tpot.value > plain.tpot.value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ((MTP,), "no draft layers of its own"),
        (("workloads.chat.serve.speculation={method: eagle3, tokens: 3, acceptance: 70%}",), "needs the model"),
        (
            ("workloads.chat.serve.speculation={method: eagle3, tokens: 3, acceptance: 70%, draft: nobody/nothing}",),
            "no draft model 'nobody/nothing'",
        ),
        ((DEEPSEEK, MTP, "workloads.chat.serve.parallel={tp: 8, pp: 2}"), "no speculation over pipeline stages"),
        (
            ("workloads.chat.serve.engine=tensorrt-llm 1.0",
             "workloads.chat.serve.speculation={method: eagle3, tokens: 3, acceptance: 70%, draft: x}"),
            "draft models of TensorRT-LLM",
        ),
    ],
)  # fmt: skip
def test_what_the_engine_or_the_model_does_not_offer_is_refused(changes, reason):
    plan = planned(*changes)
    assert isinstance(plan.workload("chat").memory, Unplanned)
    assert any(reason in gap.reason for gap in plan.unplanned)


def test_a_draft_model_beside_the_target_takes_weights_and_cache():
    said = "{method: eagle3, tokens: 3, acceptance: 70%, draft: meta-llama/Llama-3.1-8B-Instruct}"
    plain = planned().workload("chat")
    drafted = planned(f"workloads.chat.serve.speculation={said}").workload("chat")
    parts = dict(drafted.memory.parts)
    assert parts["draft weights"].value == pytest.approx(16.06e9 / 8 / 2**30, rel=0.05)
    assert drafted.memory.kv_tokens.value < plain.memory.kv_tokens.value
    assert drafted.service.kept_tokens.value == pytest.approx(2.533)


def test_replicas_that_nobody_counted_have_no_cost_and_fail_no_loss():
    lost = planned(
        "workloads.chat.serve.speculation={method: eagle3, tokens: 3, acceptance: 70%, draft: nobody/knows-it}",
        "workloads.chat.target.survive=1 node",
    )
    service = lost.workload("chat").service
    assert isinstance(service.replica_rate, Unplanned)
    assert service.costs is None
    assert lost.misfits == ()
    assert all("declared" not in loss.reason for loss in service.losses)
