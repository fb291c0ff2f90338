"""Releases that are not modelled."""

from __future__ import annotations

import pytest

from clusterwright.physics.engines.releases import MODELLED, instead, modelled
from clusterwright.plan.fitting.reading import read_wants


@pytest.mark.parametrize("engine", MODELLED)
def test_a_release_that_is_modelled_is_planned_as_it_is(engine: str) -> None:
    for release in MODELLED[engine]:
        assert modelled(engine, release) == release
        assert instead(engine, release) == ""


@pytest.mark.parametrize(
    ("asked", "planned", "says"),
    [
        ("vllm 0.99", (0, 28), "vllm 0.99 is newer than any release that is modelled: planned as 0.28, the newest"),
        ("vllm 1.0", (0, 28), "newer"),
        ("vllm 0.1", (0, 4), "vllm 0.1 is older than any release that is modelled: planned as 0.4, the oldest"),
        ("trtllm 0.4", (0, 5), "older"),
        ("sglang 0.6", (0, 5), "newer"),
    ],
)
def test_another_one_is_planned_as_the_nearest_and_told(asked: str, planned: tuple[int, int], says: str) -> None:
    own = read_wants({"engine": asked}).serving
    assert own.version == planned
    assert own.asked_version is not None
    assert says in instead(own.engine, own.asked_version)


def test_without_a_release_nothing_is_told() -> None:
    own = read_wants({"engine": "vllm"}).serving
    assert (own.version, own.asked_version) == (None, None)
