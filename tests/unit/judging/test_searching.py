"""Plans that find a bad node with few tests."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.judging.searching import next_step, pair_rounds, read_pairs


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 9, 16])
def test_every_node_meets_every_other_once_and_none_is_used_twice_in_a_round(count):
    nodes = [f"n{i}" for i in range(count)]
    rounds = pair_rounds(nodes)
    assert len(rounds) == (count - 1 if count % 2 == 0 else count)
    met = [frozenset(pair) for group in rounds for pair in group]
    assert sorted(met, key=sorted) == sorted((frozenset(p) for p in combinations(nodes, 2)), key=sorted)
    assert all(len({n for pair in group for n in pair}) == 2 * len(group) for group in rounds)


def test_one_node_has_nobody_to_meet():
    assert pair_rounds(["n1"]) == ()


def tournament(nodes, slow_nodes=(), slow_pairs=()):
    def rate(pair):
        return 190.0 if set(pair) & set(slow_nodes) or frozenset(pair) in slow_pairs else 390.0 + len(pair[0])

    return {pair: rate(pair) for group in pair_rounds(nodes) for pair in group}


NODES = [f"n{i}" for i in range(8)]


def test_a_node_that_is_slow_with_everybody_is_bad():
    found = read_pairs(tournament(NODES, ["n3"]))
    assert found.bad_nodes == (("n3", 190.0),)
    assert found.bad_pairs == ()


def test_a_pair_of_good_nodes_that_is_slow_has_a_bad_path():
    found = read_pairs(tournament(NODES, slow_pairs=[frozenset(("n1", "n5"))]))
    assert found.bad_nodes == ()
    assert [set(p) for p in found.bad_pairs] == [{"n1", "n5"}]


def test_equal_pairs_name_nobody():
    assert read_pairs(tournament(NODES)).bad_nodes == ()


def test_for_a_latency_the_slow_pairs_are_the_high_ones():
    results = {pair: 1000.0 / rate for pair, rate in tournament(NODES, ["n2"]).items()}
    assert [n for n, _ in read_pairs(results, better="less").bad_nodes] == ["n2"]


def test_four_nodes_or_one_meeting_each_are_too_few():
    assert "fewer than 5" in read_pairs(tournament(NODES[:4])).why_not
    once = dict(list(tournament(NODES).items())[:4])
    assert "fewer than 2 others" in read_pairs(once).why_not


def search(nodes, is_bad, smallest=2):
    """(last step, tests, rounds) of a search among nodes in which a group fails when it holds a bad node."""
    results, rounds = {}, 0
    step = next_step(nodes, results, smallest=smallest)
    while step.tests:
        rounds += 1
        assert rounds < 200
        used = [n for test in step.tests for n in test]
        assert len(used) == len(set(used)), "a node is in two tests at once"
        assert all(len(test) >= smallest for test in step.tests)
        results.update({frozenset(test): not is_bad(test) for test in step.tests})
        step = next_step(nodes, results, smallest=smallest)
    return step, len(results), rounds


def test_one_bad_node_among_64_is_found_in_a_few_rounds():
    nodes = [f"n{i:02}" for i in range(64)]
    step, tests, rounds = search(nodes, lambda group: "n37" in group)
    assert step.bad == ("n37",)
    assert len(step.cleared) == 63
    assert not step.conflict
    assert rounds <= 9
    assert tests <= 18


def test_a_good_set_needs_one_test():
    step, tests, _ = search(NODES, lambda group: False)
    assert (step.bad, step.cleared, tests) == ((), tuple(NODES), 1)


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 24), st.data())
def test_every_bad_node_is_found_and_no_good_one_is_blamed_where_enough_are_good(count, data):
    nodes = [f"n{i:02}" for i in range(count)]
    bad = data.draw(st.sets(st.sampled_from(nodes), max_size=max(0, count - 2)))
    step, tests, _ = search(nodes, lambda group: bool(bad & set(group)))
    assert set(step.bad) == bad
    assert set(step.cleared) == set(nodes) - bad
    assert tests <= 2 * count + count * count


def test_a_fault_that_needs_both_halves_is_no_fault_of_a_node():
    step, _, _ = search(NODES, lambda group: len(group) == len(NODES))
    assert step.bad == ()
    assert "whose nodes all passed" in step.conflict


def test_where_everything_fails_no_node_is_blamed():
    step, _, _ = search(NODES[:4], lambda group: True)
    assert step.bad == ()
    assert "every pair fails" in step.conflict


def test_single_nodes_are_tested_alone_where_the_test_allows():
    step, tests, _ = search(NODES, lambda group: "n5" in group, smallest=1)
    assert step.bad == ("n5",)
    assert tests <= 7
