"""Replicas on nodes: how many are needed so that enough are left, and how many of so many are for the load."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from builders.searches import serving as question
from clusterwright.plan.searching.sizing import needed_of, replicas_in_pool, replicas_with_losses, sized

NODE = 8


def fewest(needed: int, nodes: int, lost: int) -> float:
    """By trying: even over the nodes, of which any may be those that fail."""
    if lost >= nodes:
        return math.inf
    return next(r for r in range(needed, 10_000) if r - lost * math.ceil(r / nodes) >= needed)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_enough_are_left_and_none_more(lost: int) -> None:
    cases = [(needed, nodes) for needed in range(1, 40) for nodes in range(1, 12)]
    needed, nodes = (np.array(column, dtype=float) for column in zip(*cases, strict=True))
    found = replicas_with_losses(needed, nodes, lost)
    assert found.tolist() == [fewest(n, m, lost) for n, m in cases]


def size(needed: int, wide: int, **how: Any) -> dict[str, float]:
    asked = replace(question(), **how)
    found = sized(asked, np.array([float(needed)]), np.ones(1), np.array([wide]))
    return {name: float(column[0]) for name, column in found.items()}


def test_one_small_replica_is_safe_with_one_more_on_another_node() -> None:
    found = size(1, 1, survive_nodes=1)
    assert (found["replicas"], found["nodes"], found["domain_gpus"]) == (2, 2, 1)


def test_full_nodes_lose_a_full_node() -> None:
    found = size(6, 4, survive_nodes=1)
    assert (found["replicas"], found["nodes"], found["domain_gpus"]) == (8, 4, 8)


def test_a_replica_over_nodes_is_lost_whole() -> None:
    found = size(3, 16, survive_nodes=2)
    assert (found["replicas"], found["nodes"], found["domain_gpus"]) == (5, 10, 16)


def test_a_pool_that_is_there_is_used_to_spread() -> None:
    pool = replace(question().pool, nodes=10)
    packed, even = (size(6, 4, survive_nodes=1, pool=pool, spread=how) for how in (False, True))
    assert (packed["replicas"], even["replicas"]) == (8, 7)
    assert even["nodes"] == 7


def test_replicas_that_stay_apart_take_a_node_each() -> None:
    found = size(6, 2, survive_nodes=1, apart=True)
    assert (found["replicas"], found["nodes"], found["domain_gpus"]) == (7, 7, 2)


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("wide", [1, 2, 4, 8, 16])
def test_what_is_for_the_load_is_the_most_that_is_safe(wide: int, lost: int) -> None:
    asked = replace(question(), survive_nodes=lost)
    for replicas in range(1, 30):
        found = int(needed_of(asked, np.array([float(replicas)]), np.array([wide]))[0])
        safe = [n for n in range(1, replicas + 1) if size(n, wide, survive_nodes=lost)["replicas"] <= replicas]
        assert found == max(safe, default=0)


def test_a_pool_holds_what_is_left_of_it() -> None:
    asked = replace(question(), pool=replace(question().pool, nodes=3), survive_nodes=1)
    assert replicas_in_pool(asked, np.array([1, 4, 8, 16])).tolist() == [16, 4, 2, 0]
    assert replicas_in_pool(replace(asked, apart=True), np.array([1, 4])).tolist() == [2, 2]
