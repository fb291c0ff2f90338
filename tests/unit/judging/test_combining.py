"""Parts of one test that ran on several hosts at the same time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders.evidence import NOW, evidence, reading
from clusterwright.judging.combining import combine


def part(node, metric="storage_read", value="5 GB/s", late_s=0.0, lasts_s=300.0, lost=False, **conditions):
    began = NOW - timedelta(hours=1) + timedelta(seconds=late_s)
    said = {"concurrency": "4", "block_size": "1 MiB", "duration": f"{lasts_s:g} s"} | conditions
    found = [reading(metric, value, [node], said)]
    if lost:
        found.append(reading(metric, None, [node], said, "incomplete: cut"))
    return evidence(*found, started=began, ended=began + timedelta(seconds=lasts_s), id=f"sha256:{node}")


def whole(*parts):
    """The combined readings, beyond those of the parts."""
    return [r for record in combine(parts)[len(parts) :] for r in record.readings]


def test_rates_of_hosts_that_ran_together_add_up_with_their_load():
    (only,) = whole(part("a"), part("b", late_s=3))
    assert only.value.to("GB/s") == 10
    assert only.nodes == ("a", "b")
    assert dict(only.conditions)["concurrency"] == "8"
    assert dict(only.conditions)["duration"] == "297 s"


def test_times_are_that_of_the_slowest():
    (only,) = whole(part("a", "checkpoint_write", "40 s"), part("b", "checkpoint_write", "55 s"))
    assert only.value.to("s") == 55


def test_hosts_that_ran_one_after_the_other_prove_nothing_together():
    assert whole(part("a"), part("b", late_s=301)) == []
    assert whole(part("a"), part("b", late_s=100)) == []


def test_one_host_twice_is_no_pair():
    assert whole(part("a"), part("a", late_s=1)) == []


def test_other_conditions_are_another_test():
    assert whole(part("a"), part("b", block_size="4 KiB")) == []


def test_rates_of_collectives_never_add_up():
    assert whole(part("a", "busbw"), part("b", "busbw")) == []


def test_what_one_part_lost_is_lost_of_the_whole():
    found = whole(part("a"), part("b", lost=True))
    assert [(r.value is None, r.nodes) for r in found] == [(False, ("a", "b")), (True, ("a", "b"))]


def test_the_parts_stay_and_are_named():
    parts = (part("a"), part("b"))
    records = combine(parts)
    assert records[:2] == parts
    assert dict(records[2].environment)["parts"] == "sha256:a sha256:b"


@pytest.mark.parametrize("length", [0, 1])
def test_few_records_are_left_alone(length):
    parts = tuple(part(str(i)) for i in range(length))
    assert combine(parts) == parts


def test_each_repetition_is_a_test_of_its_own():
    again = [part("a", late_s=1000, value="3 GB/s"), part("b", late_s=1001, value="4 GB/s")]
    assert [r.value.to("GB/s") for r in whole(part("a"), part("b", late_s=3), *again)] == [10, 7]


def test_one_output_in_two_records_counts_once():
    first = replace(part("a"), raw_digest="sha256:1")
    found = whole(first, replace(first, id="sha256:kept"), part("b", late_s=1))
    assert [r.value.to("GB/s") for r in found] == [10]


def test_two_values_of_one_output_are_no_two_hosts():
    first = replace(part("a"), raw_digest="sha256:1")
    twice = replace(first, readings=(*first.readings, *(replace(r, unreadable=" ") for r in first.readings)))
    assert whole(twice, part("b", late_s=1)) == []
