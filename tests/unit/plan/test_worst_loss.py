"""The worst loss is the worst, exactly where it says so, and found at the size of the largest clusters."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.plan.placing import Nodes, Request, place, surviving_replicas, worst_loss
from clusterwright.plan.results.layouts import Assignment

NODES = tuple(f"n{i:02}" for i in range(9))


@st.composite
def layouts(draw: st.DrawFn) -> list[Assignment]:
    replicas = draw(st.integers(1, 8))
    spans = draw(st.integers(1, 3))
    places = draw(st.lists(st.permutations(NODES), min_size=replicas, max_size=replicas))
    return [Assignment("w", r, "gpu", node, (0,)) for r in range(replicas) for node in places[r][:spans]]


@given(layouts(), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_no_other_set_of_nodes_leaves_fewer_replicas(assignments: list[Assignment], count: int) -> None:
    worst = worst_loss("w", assignments, NODES, count)
    assert len(worst) == count
    fewest = min(surviving_replicas("w", assignments, lost) for lost in combinations(NODES, count))
    assert surviving_replicas("w", assignments, worst) == fewest


def test_many_nodes_lost_from_a_large_pool() -> None:
    pool = Nodes("gpu", tuple(f"g{i:05}" for i in range(12_500)), 8)
    placed = place([Request("w", "gpu", 4, 20_000)], [pool])
    assert placed.placed == {"w": 20_000}
    worst = worst_loss("w", placed.assignments, pool.names, 6_000)
    # 7,500 nodes hold two replicas, 5,000 hold one: the worst 6,000 losses all hit nodes with two.
    assert surviving_replicas("w", placed.assignments, worst) == 20_000 - 2 * 6_000


def test_replicas_over_nodes_fall_with_any_of_their_nodes() -> None:
    pool = Nodes("gpu", tuple(f"g{i:03}" for i in range(400)), 8)
    placed = place([Request("w", "gpu", 32, 100)], [pool])
    worst = worst_loss("w", placed.assignments, pool.names, 60)
    assert surviving_replicas("w", placed.assignments, worst) == 40
