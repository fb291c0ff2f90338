"""The command line of a plan starts what was planned."""

from __future__ import annotations

from functools import cache

import pytest

from builders.plans import document
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.files.catalogue import load_catalogue
from clusterwright.plan.planning import plan_architecture
from clusterwright.report.plans import render_plan

TEXT = """
apiVersion: clusterwright/v1alpha1
cluster: c
pools: {gpu: {nodes: "n-[1-8]", shape: hgx-h200-sxm-8}}
fabric: {networks: {ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8, oversubscription: 1}}}
workloads:
  chat:
    model: meta-llama/Llama-3.3-70B-Instruct
    serve: {engine: vllm 0.11, precision: fp8, in: 2000 tokens, out: 300 tokens, rate: 4 req/s, parallel: {tp: 4}}
"""
SERVE = "workloads.chat.serve"
APART = (
    f"{SERVE}.parallel=",
    f"{SERVE}.disaggregated={{prefill: {{parallel: {{tp: 4}}}}, decode: {{parallel: {{tp: 4}}}}}}",
)


@cache
def shipped() -> Catalogue:
    """The catalogue that every installation has."""
    return load_catalogue()


def planned(*changes: str):
    return plan_architecture(document(TEXT, *changes), shipped())


def memory(*changes: str):
    return planned(*changes).workload("chat").memory


@pytest.mark.parametrize(
    ("model", "precision", "flags"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", "fp8", ("--quantization", "fp8")),
        ("meta-llama/Llama-3.3-70B-Instruct", "fp16", ("--dtype", "float16")),
        ("meta-llama/Llama-3.3-70B-Instruct", "bf16", ()),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", "fp8", ()),
    ],
)
@pytest.mark.parametrize("engine", ["vllm 0.11", "sglang 0.5"])
def test_the_engine_is_told_to_load_in_the_planned_precision(model, precision, flags, engine):
    found = memory(f"workloads.chat.model={model}", f"{SERVE}.precision={precision}", f"{SERVE}.engine={engine}")
    assert found.flags[-2:] == flags if flags else not {"--quantization", "--dtype"} & set(found.flags)
    assert found.besides == ()


def test_a_format_that_no_engine_casts_to_needs_another_checkpoint():
    assert any("checkpoint in int4" in text for text in memory(f"{SERVE}.precision=int4").besides)


def test_a_replica_over_several_nodes_says_how_it_is_started_on_each():
    wide = ("workloads.chat.model=deepseek-ai/DeepSeek-V3", f"{SERVE}.engine=sglang 0.5", f"{SERVE}.parallel.tp=16")
    assert any("--nnodes 2" in text for text in memory(*wide).besides)
    assert "--nnodes 2" in render_plan(planned(*wide), 400)


@pytest.mark.parametrize(
    ("engine", "prefill", "decode"),
    [
        ("vllm 0.11", "NixlConnector", "NixlConnector"),
        ("sglang 0.5", "--disaggregation-mode prefill", "--disaggregation-mode decode"),
    ],
)
def test_workers_apart_are_started_as_such(engine, prefill, decode):
    chat = planned(*APART, f"{SERVE}.engine={engine}").workload("chat")
    assert prefill in " ".join(chat.service.split.prefill.memory.flags)
    assert decode in " ".join(chat.memory.flags)
    assert any("router" in text for text in chat.memory.besides)


def test_no_worker_of_vllm_that_hands_caches_over_has_stages():
    split = planned(f"{SERVE}.parallel=", f"{SERVE}.disaggregated=true", "workloads.chat.target={ttft_p95: 3 s}")
    halves = split.workload("chat").service.split
    assert halves.prefill.layout.pp == halves.decode.layout.pp == 1


@pytest.mark.parametrize(("engine", "drafts"), [("vllm 0.11", True), ("sglang 0.5", False)])
def test_prefill_workers_speculate_where_the_engine_hands_over_between_equals_only(engine, drafts):
    mtp = f"{SERVE}.speculation={{method: mtp, tokens: 1, acceptance: 80%}}"
    large = "workloads.chat.model=deepseek-ai/DeepSeek-V3"
    halves = f"{SERVE}.disaggregated={{prefill: {{parallel: {{tp: 8}}}}, decode: {{parallel: {{tp: 8}}}}}}"
    split = planned(large, mtp, f"{SERVE}.parallel=", halves, f"{SERVE}.engine={engine}").workload("chat").service.split
    assert ("specul" in " ".join(split.prefill.memory.flags)) == drafts
    assert "specul" in " ".join(split.decode.memory.flags)


@pytest.mark.parametrize("version", ["0.11", "0.28"])
def test_old_vllm_reads_no_caches_of_wider_prefill_workers(version):
    wide = ("workloads.chat.model=Qwen/Qwen3-235B-A22B", f"{SERVE}.parallel=", f"{SERVE}.disaggregated=true")
    slow = (
        "workloads.chat.target={ttft_p95: 2 s, tpot_p95: 30 ms}",
        f"{SERVE}.in=8000 tokens",
        f"{SERVE}.rate=10 req/s",
    )
    split = planned(*wide, *slow, f"{SERVE}.engine=vllm {version}").workload("chat").service.split
    if version == "0.11":
        assert split.prefill.layout.tp <= split.decode.layout.tp
    else:
        assert split.prefill.layout.tp > split.decode.layout.tp
