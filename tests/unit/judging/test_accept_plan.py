"""Claims → the acceptance plan: what runs where, in which order, and what no test covers."""

from __future__ import annotations

import pytest

from builders.acceptance import TRAINING, hostile, planned
from clusterwright.judging.acceptance_plans import Slot
from clusterwright.lib.errors import InvalidInput


def argv_of(plan, id_):
    test = plan.test(id_)
    return ["".join(f"<{p.name}>" if isinstance(p, Slot) else p for p in word) for word in test.argv]


def intervals(plan):
    return {i.test: i for i in plan.schedule}


def test_every_claim_is_covered_or_named_with_what_would_measure_it():
    made = planned()
    covered = {c for t in made.plan.tests for c in t.claims}
    left = {u.claim: u for u in made.plan.uncovered}
    declared = set(made.document.architecture.acceptance.requirements)
    assert declared <= covered | set(left)
    assert not covered & set(left)
    assert left["finetune-recovery"].how == "kill one worker of the real job"


def test_a_collective_is_measured_at_the_size_and_type_that_its_claim_names():
    argv = argv_of(planned().plan, "collective-in-node")
    assert argv[0] == "all_reduce_perf"
    assert argv[argv.index("-e") + 1] == str(16 * 2**30)
    assert argv[argv.index("-g") + 1] == "8"
    assert argv[argv.index("-d") + 1] == "float"


@pytest.mark.parametrize("size", ["3 GB", "16 GiB", "1 MiB", "65536 B", "1000001 B"])
def test_the_doubling_sweep_meets_the_claimed_size(size):
    plan = planned(f"acceptance.requirements.all-reduce-in-node.conditions.message_size={size}").plan
    argv = argv_of(plan, "collective-in-node")
    first, last = (int(argv[argv.index(f) + 1]) for f in ("-b", "-e"))
    while first < last:
        first *= 2
    assert first == last


def test_the_scope_of_a_claim_decides_which_nodes_run_at_once():
    plan = planned().plan
    assert plan.test("collective-in-node").rounds == ((("gpu-001",), ("gpu-002",)),)
    assert plan.test("collective-all").rounds == ((("gpu-001", "gpu-002"),),)
    assert plan.test("rdma-write").rounds == ((("gpu-001", "gpu-002"),),)


def test_spares_do_not_take_part_where_fewer_nodes_are_asked_for():
    plan = planned(file=TRAINING).plan
    assert len(plan.test("collective-all").nodes) == 128
    assert "gpu-132" not in plan.test("collective-all").nodes
    assert len(plan.test("gpu-inventory").nodes) == 132


def test_pairs_cover_every_node_and_an_odd_one_gets_a_round_of_its_own():
    plan = planned("pools.gpu.nodes=gpu-[001-005]", "acceptance.requirements.rdma-every-rail.scope.nodes=5").plan
    rounds = plan.test("rdma-write").rounds
    assert rounds == ((("gpu-001", "gpu-002"), ("gpu-003", "gpu-004")), (("gpu-001", "gpu-005"),))
    for groups in rounds:
        nodes = [n for g in groups for n in g]
        assert len(nodes) == len(set(nodes))


def test_concurrency_is_divided_over_the_nodes_and_refused_where_it_cannot_be():
    argv = argv_of(planned().plan, "storage-cold-load")
    assert "--numjobs=4" in argv
    plan = planned("acceptance.requirements.cold-load.conditions.concurrency=7").plan
    reason = next(u.reason for u in plan.uncovered if u.claim == "cold-load")
    assert "do not divide" in reason


def test_values_of_the_machine_stay_open_until_the_script_runs():
    argv = argv_of(planned().plan, "storage-cold-load")
    assert "--directory=<store>" in argv
    assert planned().plan.test("storage-cold-load").store == "object"


def test_controls_come_after_the_test_that_they_belong_to():
    plan = planned().plan
    when = intervals(plan)
    controls = [t for t in plan.tests if t.control_of]
    assert {t.kind.name for t in controls} == {"control-without-nvls", "control-without-p2p", "control-without-ib"}
    for control in controls:
        assert when[control.id].begins_s >= when[control.control_of].ends_s
        assert not control.claims


def test_there_is_no_control_for_a_feature_that_the_pool_lacks():
    plan = planned("pools.gpu.hardware.gpu=a100-sxm-80", "workloads.chat.gpus=[a100-sxm-80]").plan
    assert not [t for t in plan.tests if t.kind.name == "control-without-nvls"]


def test_blocking_tests_are_over_before_anything_of_a_later_stage_begins_on_their_nodes():
    plan = planned().plan
    when = intervals(plan)
    for early in (t for t in plan.tests if t.kind.blocking):
        for late in (t for t in plan.tests if t.kind.stage > early.kind.stage):
            if set(early.busy) & set(late.busy):
                assert when[late.id].begins_s >= when[early.id].ends_s


def test_no_node_runs_two_tests_at_once():
    plan = planned().plan
    when = intervals(plan)
    for one in plan.tests:
        for other in plan.tests:
            if one.id < other.id and set(one.busy) & set(other.busy):
                a, b = when[one.id], when[other.id]
                assert a.ends_s <= b.begins_s or b.ends_s <= a.begins_s


def test_disjoint_pools_are_tested_in_parallel():
    plan = planned(
        'pools.more={"nodes": "more-[1-2]", "shape": "hgx-h100-sxm-8"}',
        'acceptance.requirements.more={"metric": "gpus_present", "equals": 8, "scope": {"of": "node", "pool": "more"}}',
    ).plan
    starts = [i.begins_s for i in plan.schedule if i.test.startswith("gpu-inventory")]
    assert starts == [0.0, 0.0]


def test_what_does_not_fit_the_window_is_named():
    assert planned().plan.late == ()
    late = planned("acceptance.window=2 h").plan.late
    assert "sustained-load" in late
    assert "gpu-inventory" not in late


def test_a_log_claim_with_a_duration_gets_that_much_load_before_it():
    plan = planned().plan
    load, log = plan.test("sustained-load"), plan.test("kernel-log")
    assert load.duration == 2 * 3600
    assert "targeted_power.test_duration=7200" in argv_of(plan, "sustained-load")
    assert intervals(plan)[log.id].begins_s >= intervals(plan)[load.id].ends_s
    assert "32 GPU-h" in plan.statistics[0]


def test_gpu_hours_count_the_gpus_that_others_cannot_use():
    plan = planned().plan
    test = plan.test("sustained-load")
    assert test.gpu_hours == pytest.approx(2 * 8 * test.seconds / 3600)
    assert plan.test("gpu-inventory").gpu_hours == 0.0
    assert plan.test("serving").gpu_hours > 0


def test_rights_are_the_highest_that_the_test_or_its_claims_need():
    plan = planned().plan
    assert plan.test("dcgm-level-3").rights == "root"
    assert plan.test("dcgm-level-3").providers == ("provider",)
    assert plan.test("collective-in-node").rights == "user"


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_the_level_of_dcgm_can_be_chosen_and_level_1_always_comes_first(level):
    names = [t.kind.name for t in planned(dcgm_level=level).plan.tests if t.kind.suite == "dcgm"]
    assert names == list(dict.fromkeys(["dcgm-level-1", f"dcgm-level-{level}"]))


def test_a_level_that_does_not_exist_is_refused():
    with pytest.raises(InvalidInput, match="levels 1 to 4"):
        planned(dcgm_level=5)


def test_a_pool_without_gpus_gets_no_gpu_test_and_the_claims_say_why():
    plan = planned("pools.gpu.hardware.gpus=0", "pools.gpu.hardware.gpu=", "pools.gpu.shape=").plan
    assert "collective-in-node" not in [t.kind.name for t in plan.tests]
    reason = next(u.reason for u in plan.uncovered if u.claim == "all-reduce-in-node")
    assert "no GPUs" in reason


def test_after_a_replacement_only_what_it_makes_stale_is_run_and_on_the_new_node():
    plan = planned(replaced="gpu-002").plan
    assert plan.test("gpu-inventory").nodes == ("gpu-002",)
    assert plan.test("collective-all").nodes == ("gpu-001", "gpu-002")
    assert set(plan.stale) >= {"all-gpus-present", "all-reduce-both-nodes"}
    assert "replaced" in plan.stale["all-gpus-present"]


def test_a_replaced_node_that_is_not_declared_is_refused_with_the_nearest():
    with pytest.raises(InvalidInput, match="gpu-002"):
        planned(replaced="gpu-02")


def test_ids_are_safe_for_files_and_jobs_whatever_the_names_are():
    plan = hostile().plan
    assert all(set(t.id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for t in plan.tests)
    assert len({t.id for t in plan.tests}) == len(plan.tests)


def test_the_same_file_gives_the_same_plan():
    assert planned().plan == planned().plan
