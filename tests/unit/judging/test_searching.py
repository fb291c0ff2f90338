"""Plans that find a bad node with few tests."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.judging.searching import next_pairs, next_step, pair_rounds, read_pairs


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


def names(found):
    return [slow.nodes for slow in found]


def test_a_node_that_is_slow_with_everybody_is_bad():
    found = read_pairs(NODES, tournament(NODES, ["n3"]))
    assert names(found.bad_nodes) == [("n3",)]
    assert (found.bad_nodes[0].value, found.bad_nodes[0].pairs) == (190.0, 7)
    assert found.bad_pairs == ()
    assert found.cleared == tuple(n for n in NODES if n != "n3")
    assert found.usual.median == 392.0


def test_a_pair_of_good_nodes_that_is_slow_has_a_bad_path():
    found = read_pairs(NODES, tournament(NODES, slow_pairs=[frozenset(("n1", "n5"))]))
    assert found.bad_nodes == ()
    assert [set(p) for p in names(found.bad_pairs)] == [{"n1", "n5"}]


def test_equal_pairs_name_nobody():
    assert read_pairs(NODES, tournament(NODES)).bad_nodes == ()


def test_for_a_latency_the_slow_pairs_are_the_high_ones():
    results = {pair: 1000.0 / rate for pair, rate in tournament(NODES, ["n2"]).items()}
    assert names(read_pairs(NODES, results, better="less").bad_nodes) == [("n2",)]


def test_four_nodes_or_less_than_three_rounds_are_too_few():
    assert read_pairs(NODES[:4], tournament(NODES[:4])).open == tuple(NODES[:4])
    for rounds in (1, 2):
        results = {p: 390.0 for group in pair_rounds(NODES)[:rounds] for p in group}
        assert read_pairs(NODES, results).open == tuple(NODES)


@settings(max_examples=100, deadline=None)
@given(st.integers(10, 24), st.data())
def test_after_all_rounds_any_quarter_of_bad_nodes_is_named_and_nobody_else(count, data):
    nodes = [f"n{i:02}" for i in range(count)]
    slow = data.draw(st.sets(st.sampled_from(nodes), max_size=count // 4))
    rates = {n: data.draw(st.floats(100, 300)) for n in slow}
    noise = data.draw(st.randoms(use_true_random=False))
    results = {
        pair: min(rates.get(n, 390.0) for n in pair) * noise.uniform(0.998, 1.002)
        for group in pair_rounds(nodes)
        for pair in group
    }
    found = read_pairs(nodes, results)
    assert {n for (n,) in names(found.bad_nodes)} == slow
    assert not {n for pair in names(found.bad_pairs) for n in pair} & slow


def test_after_three_rounds_a_node_that_met_two_bad_ones_is_not_blamed():
    nodes = [f"n{i:02}" for i in range(16)]
    rounds = pair_rounds(nodes)[:3]
    partners = [next(p for p in group if "n00" in p) for group in rounds]
    bad = [next(n for n in pair if n != "n00") for pair in partners[:2]]
    results = {p: 190.0 if set(p) & set(bad) else 390.0 for group in rounds for p in group}
    found = read_pairs(nodes, results)
    assert {n for (n,) in names(found.bad_nodes)} == set(bad)
    assert "n00" in found.cleared


def test_the_next_round_takes_open_nodes_to_others_that_they_have_not_met():
    tried = [frozenset(p) for p in pair_rounds(NODES)[0]]
    found = next_pairs(NODES, tried, NODES)
    assert len({n for pair in found for n in pair}) == 8
    assert not {frozenset(p) for p in found} & set(tried)
    assert all("n3" in pair for pair in next_pairs(NODES, tried, ["n3"]))
    assert next_pairs(NODES[:2], [frozenset(NODES[:2])], NODES[:2]) == ()


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
