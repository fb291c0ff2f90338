"""The same test before and after the production image was installed."""

from __future__ import annotations

from builders.evidence import evidence, reading
from clusterwright.judging.comparing_bundles import compare_bundles

SIZE = {"operation": "all-reduce", "message_size": "8 GiB", "data_type": "float"}
PAIR = ("gpu-001", "gpu-002")
OLD = {"environment": (("driver", "570.86"), ("nccl", "2.23.4"), ("image", "app@sha256:aa"))}
NEW = {"environment": (("driver", "570.86"), ("nccl", "2.27.3"), ("image", "app@sha256:bb"), ("kernel", "6.8"))}


def runs(*values, conditions=SIZE, nodes=PAIR, **fields):
    return [evidence(reading("busbw", f"{v} GB/s", nodes, conditions), **fields) for v in values]


def only(before, after):
    (change,) = compare_bundles(before, after).changes
    return change


def test_values_that_do_not_overlap_after_three_runs_each_are_a_change():
    found = only(runs(380, 382, 384), runs(340, 342, 344))
    assert found.verdict == "worse"
    assert round(found.relative, 4) == -0.1047
    assert found.chance == 0.1


def test_more_runs_make_chance_smaller():
    assert only(runs(380, 381, 382, 383, 384), runs(400, 401, 402, 403, 404)).chance < 0.01


def test_overlapping_values_are_within_the_spread():
    assert only(runs(380, 390, 384), runs(382, 378, 386)).verdict == "within spread"


def test_one_run_on_each_side_concludes_nothing():
    found = only(runs(382), runs(191))
    assert (found.verdict, found.relative) == ("too few", -0.5)


def test_the_same_value_once_on_each_side_is_the_same():
    assert only(runs(382), runs(382)).verdict == "same"


def test_less_is_better_for_a_latency():
    before = [evidence(reading("ttft_p95", f"{v} ms", ["a"])) for v in (900, 910, 920)]
    after = [evidence(reading("ttft_p95", f"{v} ms", ["a"])) for v in (500, 510, 520)]
    assert only(before, after).verdict == "better"


def test_counts_need_no_repeats():
    before = [evidence(reading("xid_errors", 0.0, ["a"]))]
    after = [evidence(reading("xid_errors", 2.0, ["a"]))]
    assert only(before, after).verdict == "worse"


def test_text_that_differs_is_different():
    before = [evidence(reading("driver_version", "570.86", ["a"]))]
    after = [evidence(reading("driver_version", "575.51", ["a"]))]
    assert only(before, after).verdict == "different"


def test_another_size_or_other_hosts_are_not_compared():
    other = runs(60, conditions=SIZE | {"message_size": "16 MiB"})
    elsewhere = runs(382, nodes=("gpu-003", "gpu-004"))
    verdicts = {c.verdict for c in compare_bundles(runs(382), [*other, *elsewhere]).changes}
    assert verdicts == {"only before", "only after"}


def test_one_size_in_two_spellings_is_compared():
    after = runs(382, conditions={"operation": "all_reduce", "message_size": "8589934592 B", "data_type": "fp32"})
    assert only(runs(382), after).verdict == "same"


def test_the_image_may_differ_because_it_is_what_changed():
    before = runs(382, conditions=SIZE | {"image": "app@sha256:aa"})
    after = runs(382, conditions=SIZE | {"image": "app@sha256:bb"})
    assert only(before, after).verdict == "same"


def test_what_changed_in_the_system_is_named_and_what_did_not_is_not():
    changes = {c.name: c for c in compare_bundles(runs(382, **OLD), runs(382, **NEW)).environment}
    assert set(changes) == {"nccl", "image", "kernel"}
    assert (changes["nccl"].before, changes["nccl"].after) == (("2.23.4",), ("2.27.3",))
    assert changes["kernel"].before == ()


def test_hosts_that_took_part_only_once_are_named():
    changes = {c.name: c for c in compare_bundles(runs(382), runs(382, nodes=("gpu-001",))).environment}
    assert changes["nodes"].after == ("gpu-001",)


def test_readings_without_value_are_listed_with_their_side():
    lost = [evidence(reading("busbw", None, PAIR, SIZE, "incomplete: no footer"))]
    found = compare_bundles(runs(382), lost)
    assert found.unmeasured == (("after", "busbw", "incomplete: no footer"),)
    assert [c.verdict for c in found.changes] == ["only before"]


def test_what_became_worse_comes_first():
    before = runs(380, 381, 382) + runs(60, 61, 62, conditions=SIZE | {"message_size": "16 MiB"})
    after = runs(380, 381, 382) + runs(30, 31, 32, conditions=SIZE | {"message_size": "16 MiB"})
    assert [c.verdict for c in compare_bundles(before, after).changes] == ["worse", "within spread"]


def test_claims_of_both_sides_are_named():
    assert only(runs(382, requirements=("a",)), runs(382, requirements=("b",))).requirements == ("a", "b")
