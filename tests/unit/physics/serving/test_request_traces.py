"""Lines of request traces: both kinds, order, refusal with the line."""

from __future__ import annotations

import pytest

from clusterwright.physics.serving.request_traces import parse_requests

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:56,400,1
"""
MOONCAKE = """{"timestamp": 0, "input_length": 1024, "output_length": 10, "hash_ids": [1, 2]}
{"timestamp": 2000, "input_length": 1100, "output_length": 20, "hash_ids": [1, 2, 3]}
"""


def test_azure_rows_are_put_in_order_of_arrival():
    trace = parse_requests(AZURE.splitlines())
    assert trace.prompts == (374, 396, 400)
    assert trace.arrivals_s == pytest.approx((0.0, 4.314579, 9.31941))
    assert trace.rate == pytest.approx(2 / 9.31941)
    assert trace.stream().reused == 0.0


def test_mooncake_rows_give_the_share_that_prefixes_save():
    trace = parse_requests(MOONCAKE.splitlines())
    assert trace.arrivals_s == (0.0, 2.0)
    assert trace.reuse().cached_tokens == 1024
    assert trace.stream().reused == pytest.approx(1024 / 2124)
    assert trace.stream(blocks=1).reused == 0.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "without requests"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "without requests"),
        ("TIMESTAMP,ContextTokens\n2023-11-16 18:15:46,1\n", "line 2"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 1}\n{"timestamp": 1}\n', "line 2"),
    ],
)
def test_a_trace_with_holes_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_requests(text.splitlines())
