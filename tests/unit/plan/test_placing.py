import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.plan.placing import Nodes, Request, place, place_by_priority, surviving_replicas, worst_loss
from clusterwright.plan.services import replicas_for_failures

TWO = [Nodes("gpu", ("n1", "n2"), 8)]


def nodes_of(placement, workload):
    return [a.node for a in placement.assignments if a.workload == workload]


def test_replicas_of_one_workload_go_to_different_nodes():
    placement = place([Request("chat", "gpu", 4, 2), Request("tune", "gpu", 4, 1)], TWO)
    assert sorted(nodes_of(placement, "chat")) == ["n1", "n2"]
    assert placement.placed == {"chat": 2, "tune": 1}


def test_the_largest_goes_first_so_that_everything_fits():
    placement = place([Request("small", "gpu", 1, 8, priority=9), Request("large", "gpu", 8, 1)], TWO)
    assert placement.placed == {"small": 8, "large": 1}


def test_when_not_everything_fits_priority_decides():
    requests = [Request("large", "gpu", 8, 2), Request("small", "gpu", 4, 1, priority=10)]
    assert place(requests, TWO).placed == {"small": 1, "large": 1}
    assert place_by_priority(requests, TWO).placed == {"small": 1, "large": 1}


def test_a_replica_larger_than_a_node_takes_equal_shares_of_whole_nodes():
    placement = place([Request("big", "gpu", 16, 1)], TWO)
    assert [(a.node, len(a.gpus)) for a in placement.assignments] == [("n1", 8), ("n2", 8)]
    assert place([Request("odd", "gpu", 15, 1)], TWO).placed == {}


def test_a_small_replica_never_straddles_nodes():
    placement = place([Request("three", "gpu", 3, 5)], TWO)
    assert placement.placed == {"three": 4}


def test_an_unknown_pool_places_nothing():
    assert place([Request("x", "elsewhere", 1, 1)], TWO).placed == {}


def test_what_survives_a_loss():
    placement = place([Request("chat", "gpu", 4, 3)], TWO)
    worst = worst_loss("chat", placement.assignments, ("n1", "n2"), 1)
    assert worst == ("n1",)
    assert surviving_replicas("chat", placement.assignments, worst) == 1
    assert surviving_replicas("chat", placement.assignments, ("n2",)) == 2


@pytest.mark.parametrize(
    ("needed", "nodes", "per_node", "spans", "lost", "expected"),
    [
        (1, 2, 2, 1, 1, 2),
        (2, 2, 2, 1, 1, 4),
        (3, 2, 2, 1, 1, None),  # four replicas are most, two survive
        (2, 4, 1, 1, 1, 3),
        (2, 4, 1, 1, 0, 2),
        (1, 4, 0, 2, 1, 2),  # each spans two nodes
    ],
)
def test_replicas_that_survive_losses(needed, nodes, per_node, spans, lost, expected):
    assert replicas_for_failures(needed, nodes, per_node, spans, lost) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 5), st.integers(0, 3)), max_size=5),
    st.integers(1, 4),
    st.sampled_from([1, 2, 4, 8]),
)
def test_no_gpu_is_given_twice(asked, count, size):
    requests = [Request(f"w{i}", "gpu", gpus, replicas, p) for i, (gpus, replicas, p) in enumerate(asked)]
    placement = place(requests, [Nodes("gpu", tuple(f"n{i}" for i in range(count)), size)])
    given_out = [(a.node, gpu) for a in placement.assignments for gpu in a.gpus]
    assert len(given_out) == len(set(given_out))
    assert all(0 <= gpu < size for _, gpu in given_out)
    for request in requests:
        mine = [a for a in placement.assignments if a.workload == request.workload]
        placed = placement.placed.get(request.workload, 0)
        assert sum(len(a.gpus) for a in mine) == request.gpus * placed
        assert placed <= request.replicas
