"""Which node differs from its peers."""

from __future__ import annotations

from builders.evidence import evidence, reading
from clusterwright.judging.outliers import find_outliers, score_nodes

AT_8_GIB = {"operation": "all-reduce", "message_size": "8 GiB"}


def busbw(values: dict[str, str], conditions: dict[str, str] = AT_8_GIB):
    return [evidence(reading("busbw", value, [node], conditions)) for node, value in values.items()]


HEALTHY = {f"n{i}": f"{470 + i} GB/s" for i in range(1, 8)}


def test_a_slow_node_is_found_and_the_fast_ones_are_not():
    (group,) = find_outliers(busbw(HEALTHY | {"n8": "310 GB/s"}))
    (only,) = group.outliers
    assert (only.node, only.worse, only.peers) == ("n8", True, 7)
    assert str(only.value) == "310 GB/s"
    assert only.score > 10


def test_a_node_that_is_far_faster_differs_too_but_is_not_worse():
    (group,) = find_outliers(busbw(HEALTHY | {"n8": "820 GB/s"}))
    assert [(o.node, o.worse) for o in group.outliers] == [("n8", False)]


def test_for_a_latency_the_high_node_is_the_worse_one():
    times = {f"n{i}": f"{200 + i} ms" for i in range(6)} | {"bad": "900 ms"}
    (group,) = find_outliers([evidence(reading("ttft_p95", v, [n])) for n, v in times.items()])
    assert [(o.node, o.worse) for o in group.outliers] == [("bad", True)]


def test_several_bad_nodes_do_not_hide_each_other():
    values = HEALTHY | {"a": "300 GB/s", "b": "305 GB/s", "c": "290 GB/s"}
    (group,) = find_outliers(busbw(values))
    assert {o.node for o in group.outliers} == {"a", "b", "c"}
    assert group.outliers[0].node == "c"


def test_where_most_nodes_read_the_same_the_odd_one_is_still_found():
    same = {f"n{i}": "400 GB/s" for i in range(9)} | {"odd": "395 GB/s"}
    (group,) = find_outliers(busbw(same))
    assert [o.node for o in group.outliers] == ["odd"]


def test_a_difference_below_a_hundredth_is_none():
    same = {f"n{i}": "400 GB/s" for i in range(9)} | {"odd": "396.1 GB/s"}
    (group,) = find_outliers(busbw(same))
    assert group.outliers == ()


def test_four_nodes_are_too_few_to_name_one():
    (group,) = find_outliers(busbw({"a": "400 GB/s", "b": "401 GB/s", "c": "399 GB/s", "d": "100 GB/s"}))
    assert group.outliers == ()
    assert "4 nodes: fewer than 5" in group.why_not


def test_other_conditions_are_other_groups_whatever_their_spelling():
    small = busbw({f"n{i}": "60 GB/s" for i in range(5)}, AT_8_GIB | {"message_size": "16 MiB"})
    large = busbw({f"n{i}": "400 GB/s" for i in range(4)}, {"operation": "all_reduce", "message_size": "8589934592 B"})
    groups = find_outliers([*small, *large, *busbw({"n9": "401 GB/s"})])
    assert [len(g.nodes) for g in groups] == [5, 5]


def test_readings_over_several_nodes_say_nothing_about_one():
    assert find_outliers([evidence(reading("busbw", "400 GB/s", ["a", "b"], AT_8_GIB))]) == ()


def test_a_reading_without_value_is_no_value():
    lost = [evidence(reading("busbw", None, ["lost"], AT_8_GIB, "cut"))]
    (group,) = find_outliers(busbw(HEALTHY) + lost)
    assert "lost" not in group.nodes


def test_a_node_with_repeats_counts_once_with_its_median():
    repeats = [evidence(reading("busbw", v, ["n1"], AT_8_GIB)) for v in ("100 GB/s", "471 GB/s", "472 GB/s")]
    (group,) = find_outliers(repeats + busbw({k: v for k, v in HEALTHY.items() if k != "n1"}))
    assert group.outliers == ()


def test_of_facts_the_node_that_says_otherwise_differs():
    drivers = {f"n{i}": "570.86" for i in range(5)} | {"old": "535.104"}
    (group,) = find_outliers([evidence(reading("driver_version", v, [n])) for n, v in drivers.items()])
    assert [(o.node, o.value, o.usual) for o in group.outliers] == [("old", "535.104", "570.86")]


def test_a_node_with_more_errors_is_worse_and_one_that_contradicts_itself_counts_with_its_worst():
    counts = [evidence(reading("xid_errors", 0.0, [f"n{i}"])) for i in range(5)]
    counts += [evidence(reading("xid_errors", 3.0, ["bad"])), evidence(reading("xid_errors", 0.0, ["bad"]))]
    (group,) = find_outliers(counts)
    assert [(o.node, o.value, o.worse) for o in group.outliers] == [("bad", 3.0, True)]


def test_without_a_majority_nothing_is_usual():
    values = [evidence(reading("driver_version", f"5{i}", [f"n{i}"])) for i in range(6)]
    (group,) = find_outliers(values)
    assert "no value is that of most nodes" in group.why_not


def test_scores_count_standard_deviations_of_a_normal_distribution():
    scores = score_nodes({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 100.0})
    assert scores["e"][1] == 0.6745 * (100 - 3) / 1.0
    assert scores["c"][1] == 0.0
