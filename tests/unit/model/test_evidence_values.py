"""Evidence survives its way through plain values."""

import json
from dataclasses import replace

import pytest

from builders.benchmarks import benchmark
from clusterwright.model.evidence_values import evidence_values, parse_evidence


def test_evidence_comes_back_as_it_was():
    one = replace(benchmark(), id="sha256:1")
    assert parse_evidence(json.loads(json.dumps(evidence_values(one))), "sha256:1") == one


def test_a_flag_stays_a_flag_and_a_number_a_number():
    one = benchmark()
    flags = replace(
        one, readings=tuple(replace(r, value=v) for r, v in zip(one.readings, (True, 1.0, "1"), strict=True))
    )
    back = parse_evidence(evidence_values(flags), "")
    assert [(type(r.value), r.value) for r in back.readings] == [(bool, True), (float, 1.0), (str, "1")]


@pytest.mark.parametrize("values", [None, [], {}, {"tool": 3}])
def test_what_is_no_evidence_is_refused(values):
    with pytest.raises(ValueError, match="not evidence"):
        parse_evidence(values, "")
