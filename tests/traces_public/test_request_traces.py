"""Public request traces: their published counts, and replicas that carry them."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.serving import worker
from clusterwright.physics.serving.arrivals import Replica, carried, meet
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.request_traces import parse_requests

TRACES = Path(__file__).parents[3] / "shared" / "traces"
pytestmark = pytest.mark.skipif(
    not (TRACES / "mooncake").is_dir(), reason="public traces are missing: ../shared/traces beside the clone"
)


def trace(name: str):
    return parse_requests((TRACES / name).read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("name", "requests"),
    [
        ("azure-llm-2023/AzureLLMInferenceTrace_conv.csv", 19366),
        ("azure-llm-2023/AzureLLMInferenceTrace_code.csv", 8819),
        ("mooncake/conversation_trace.jsonl", 12031),
        ("mooncake/synthetic_trace.jsonl", 3993),
    ],
)
def test_every_request_is_read(name, requests):
    assert len(trace(name).prompts) == requests


def test_prefixes_of_conversations_save_a_third_of_the_prefill_and_carry_more():
    found = trace("mooncake/conversation_trace.jsonl")
    assert 0.30 < found.reuse().share < 0.45
    assert found.reuse(10_000).share < found.reuse().share
    replica = Replica(worker(weights="fp8"), Constants())
    with_cache, without = found.stream(), found.stream(blocks=1)
    assert carried(replica, with_cache, 5.0, 0.1) > 1.2 * carried(replica, without, 5.0, 0.1)


def test_the_azure_conversations_fit_replicas_at_their_rate():
    found = trace("azure-llm-2023/AzureLLMInferenceTrace_conv.csv")
    replica, stream = Replica(worker(weights="fp8"), Constants()), found.stream()
    each = carried(replica, stream, 1.0, 0.05)
    assert each > 0
    met = meet(replica, stream, each * 0.999)
    assert met.ttft_s <= 1.0
    assert met.tpot_s <= 0.05
