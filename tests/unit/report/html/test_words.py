"""Thresholds, scopes and times as words."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.model.acceptance import Requirement, Scope
from clusterwright.model.evidence import Outcome, RehearsalOutcome
from clusterwright.model.metrics import CLAIM_CLASSES, METRICS
from clusterwright.report.html.words import (
    CLAIMS,
    OUTCOMES,
    REHEARSALS,
    condition_words,
    count_words,
    duration_words,
    metric_words,
    scope_words,
    threshold_words,
    value_words,
)


def test_every_outcome_class_and_metric_has_words() -> None:
    assert set(OUTCOMES) == set(Outcome)
    assert set(REHEARSALS) == set(RehearsalOutcome)
    assert tuple(CLAIMS) == CLAIM_CLASSES
    assert all("_" not in metric_words(m) for m in METRICS)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"metric": "busbw", "at_least": "430 GB/s"}, "≥ 430 GB/s"),
        ({"metric": "ttft_p95", "at_most": "1 s"}, "≤ 1 s"),
        ({"metric": "gpus_present", "equals": 8}, "= 8"),
        ({"metric": "image_digest", "equals": "sha256:ab"}, "= sha256:ab"),
    ],
)
def test_thresholds(asked: dict[str, Any], words: str) -> None:
    assert threshold_words(Requirement.model_validate(asked)) == words


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ({"of": "node", "pool": "gpu", "nodes": 2}, "each of 2 nodes of pool gpu"),
        ({"of": "node", "nodes": 1}, "one node"),
        ({"of": "node"}, "every node"),
        ({"of": "pair", "pool": "gpu", "nodes": 2}, "every pair among 2 nodes of pool gpu"),
        ({"of": "rack", "nodes": 4}, "each rack, 4 nodes at once"),
        ({"of": "pool", "pool": "gpu", "nodes": 2}, "2 nodes of pool gpu together"),
        ({"of": "pool", "pool": "gpu"}, "the whole of pool gpu"),
        ({"of": "pool"}, "the whole of the pool"),
        ({"of": "cluster", "nodes": 2, "workload": "chat"}, "the cluster, 2 nodes at once, workload chat"),
        ({}, "the whole cluster"),
    ],
)
def test_scopes(scope: dict[str, Any], words: str) -> None:
    assert scope_words(Scope.model_validate(scope)) == words


def test_conditions() -> None:
    asked = Requirement.model_validate(
        {
            "metric": "busbw",
            "at_least": "1 GB/s",
            "conditions": {
                "operation": "all-reduce",
                "message_size": "16 GiB",
                "in_place": False,
                "concurrency": 8,
                "duration": "2 h",
            },
        }
    )
    assert condition_words(asked) == "all-reduce, 16 GiB, out of place, concurrency 8, for 2 h"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (48, "48 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (11_400, "3 h 10 min"),
        (12 * 86400, "12 days"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


def test_a_value_that_could_not_be_read_is_no_zero() -> None:
    assert value_words(None) == "unreadable"
    assert value_words(0.0) == "0"
    assert value_words(True) == "yes"


def test_counts() -> None:
    said = [count_words(n, "claim is", "claims are") for n in (0, 1, 2)]
    assert said == ["no claims are", "1 claim is", "2 claims are"]
