"""Public request traces: their published counts, what their prefixes save, and services that carry them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from builders.arrivals import Replica, Stream, carried, meet
from builders.serving import worker
from clusterwright.app.fitting_traces import read_requests
from clusterwright.app.planning import plan_files
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.lengths import fixed, observed

TRACES = Path(__file__).parents[3] / "shared" / "traces"
pytestmark = pytest.mark.skipif(
    not (TRACES / "mooncake").is_dir(), reason="public traces are missing: ../shared/traces beside the clone"
)
CONVERSATIONS = "mooncake/conversation_trace.jsonl"
FILE = """
apiVersion: clusterwright/v1alpha1
cluster: c
pools: {gpu: {nodes: "n-[1-32]", shape: hgx-h200-sxm-8}}
workloads:
  chat:
    model: meta-llama/Llama-3.3-70B-Instruct
    serve: {engine: vllm 0.11, precision: fp8, parallel: {tp: 8}, replicas: 16, lengths: {trace: TRACE}}
    target: {ttft_p95: 10 s, tpot_p95: 50 ms}
"""


@cache
def trace(name: str):
    return read_requests(str(TRACES / name))


@pytest.mark.parametrize(
    ("name", "requests"),
    [
        ("azure-llm-2023/AzureLLMInferenceTrace_conv.csv", 19366),
        ("azure-llm-2023/AzureLLMInferenceTrace_code.csv", 8819),
        (CONVERSATIONS, 12031),
        ("mooncake/synthetic_trace.jsonl", 3993),
    ],
)
def test_every_request_is_read(name, requests):
    assert (trace(name).rows, trace(name).skipped) == (requests, 0)


def test_prefixes_of_conversations_save_a_third_of_the_prefill_and_carry_more():
    found = trace(CONVERSATIONS)
    sizes = found.reuse_by_cache()
    assert 0.30 < sizes[-1][1] < 0.45
    assert sizes[0][1] < sizes[-1][1]
    replica = Replica(worker(weights="fp8"), Constants())
    prompts, output = observed(found.prompts), fixed(float(found.options["out"]))
    with_cache, without = Stream(prompts, output, sizes[-1][1]), Stream(prompts, output)
    assert carried(replica, with_cache, 5.0, 0.1) > 1.2 * carried(replica, without, 5.0, 0.1)


def test_the_azure_conversations_fit_replicas_at_their_rate():
    found = trace("azure-llm-2023/AzureLLMInferenceTrace_conv.csv")
    replica = Replica(worker(weights="fp8"), Constants())
    stream = Stream(observed(found.prompts), fixed(float(found.options["out"])))
    each = carried(replica, stream, 1.0, 0.05)
    assert each > 0
    met = meet(replica, stream, each * 0.999)
    assert met.ttft_s <= 1.0
    assert met.tpot_s <= 0.05


def test_a_file_that_names_the_conversations_is_planned_with_their_reuse(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE.replace("TRACE", str(TRACES / CONVERSATIONS)), encoding="utf-8")
    service = plan_files([path]).workload("chat").service
    less = plan_files([path], ["workloads.chat.serve.prefix_reuse=0%"]).workload("chat").service
    assert 0.1 < service.prefix_reuse.value < 0.4
    assert service.replica_rate.value > less.replica_rate.value
