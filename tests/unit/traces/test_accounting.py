"""Records of Slurm's accounting become jobs, and every record is accounted for."""

from __future__ import annotations

import math

import pytest

from builders.traces import adds_up, codes, pending, row, sacct


def only(found):
    assert len(found.trace) == 1
    return found.trace[0]


def test_an_allocation_is_a_job_with_its_times_and_gpus():
    job = only(sacct(row("7")))
    assert (job.id, job.run_s, job.start_s - job.submit_s, job.limit_s) == ("7", 3600.0, 600.0, 7200.0)
    assert (job.gpus, job.tasks, job.gpus_per_task, job.cpus, job.memory_gib) == (16, 2, 8, 64.0, 128.0)
    assert (job.queue, job.account, job.user, job.qos, job.state) == ("batch", "lab", "ada", "normal", "COMPLETED")
    assert (job.priority, job.attempts, job.lost_s, job.censored) == (100.0, 1, 0.0, False)


def test_steps_lie_inside_their_allocation():
    found = sacct(row("7"), row("7.batch"), row("7.extern"), row("7.0"))
    assert codes(found.counts)["parts"] == {"step": 3}
    assert adds_up(found.counts, 4)


def test_steps_may_come_before_their_allocation():
    found = sacct(row("7.batch"), row("7"))
    assert codes(found.counts)["parts"] == {"step": 1}


def test_a_step_without_an_allocation_is_rejected():
    found = sacct(row("7"), row("8.batch"), row("8.0"))
    assert codes(found.counts)["rejected"] == {"no-base": 2}
    assert adds_up(found.counts, 3)


def requeued(state="REQUEUED", **second):
    return (
        row("7", State=state, End="2025-03-01T08:40:00", ElapsedRaw="1800"),
        row("7", Submit="2025-03-01T08:40:00", Eligible="2025-03-01T08:42:00", Start="2025-03-01T09:00:00",
            End="2025-03-01T09:30:00", **{"ElapsedRaw": "1800", **second}),
    )  # fmt: skip


@pytest.mark.parametrize("state", ["REQUEUED", "NODE_FAIL", "PREEMPTED"])
def test_attempts_of_a_requeued_job_are_one_job_that_keeps_its_first_submission(state):
    found = sacct(*requeued(state))
    job = only(found)
    assert (job.attempts, job.run_s, job.lost_s) == (2, 1800.0, 1800.0)
    assert job.start_s - job.submit_s == 600.0
    assert job.end_s - job.submit_s == 5400.0
    assert job.state == "COMPLETED"
    assert codes(found.counts) == {"parts": {"attempt": 1}, "remarks": {"requeued": 1}}
    assert adds_up(found.counts, 2)


def test_attempts_may_come_in_any_order():
    one, other = only(sacct(*requeued())), only(sacct(*reversed(requeued())))
    assert one._replace(line=0, eligible_s=0.0) == other._replace(line=0, eligible_s=0.0)


def test_an_id_that_is_used_again_is_another_job():
    found = sacct(row("7"), row("7", Submit="2025-04-01T08:00:00", Start="2025-04-01T08:00:05",
                                End="2025-04-01T08:00:10", ElapsedRaw="5", Eligible=""))  # fmt: skip
    assert found.trace.run_s.tolist() == [3600.0, 5.0]
    assert codes(found.counts)["remarks"] == {"id-used-again": 1}
    assert adds_up(found.counts, 2)


def test_an_id_used_again_by_somebody_else_after_a_requeue_is_another_job():
    assert len(sacct(*requeued(User="bo")).trace) == 2


def test_the_same_id_in_another_cluster_is_another_job():
    found = sacct(row("7"), row("7", Cluster="c2"))
    assert len(found.trace) == 2
    assert "remarks" not in codes(found.counts)


def test_a_record_that_stands_twice_counts_once():
    found = sacct(row("7"), row("7"))
    assert codes(found.counts)["parts"] == {"repeat": 1}
    assert only(found).attempts == 1


def test_a_record_of_a_running_attempt_gives_way_to_the_later_one():
    running = row("7", State="RUNNING", End="Unknown", ElapsedRaw="60")
    for rows in ((running, row("7")), (row("7"), running)):
        found = sacct(*rows)
        assert (only(found).run_s, only(found).state, only(found).censored) == (3600.0, "COMPLETED", False)
        assert codes(found.counts)["parts"] == {"update": 1}


def test_records_that_contradict_each_other_are_not_added_up():
    found = sacct(row("7"), row("7", State="FAILED"))
    assert codes(found.counts)["rejected"] == {"attempts-overlap": 1}
    assert adds_up(found.counts, 2)


def test_a_requeue_whose_earlier_record_is_not_there_is_said():
    assert codes(sacct(row("7", Restarts="2")).counts)["remarks"] == {"submit-reset": 1}


def test_a_running_job_is_censored():
    job = only(sacct(row("7", State="RUNNING", End="Unknown", ElapsedRaw="60")))
    assert (job.censored, job.run_s) == (True, 60.0)
    assert math.isnan(job.end_s)


def test_a_pending_job_has_neither_start_nor_run_time():
    found = sacct(pending("7"))
    job = only(found)
    assert math.isnan(job.start_s)
    assert math.isnan(job.run_s)
    assert job.gpus == 16  # what it asks for
    assert codes(found.counts)["remarks"] == {"still-pending": 1}


@pytest.mark.parametrize("start", ["None", "Unknown", "2025-03-01T08:20:00"])
def test_a_job_cancelled_before_it_started_never_ran(start):
    found = sacct(pending("7", State="CANCELLED by 100", Start=start, End="2025-03-01T08:20:00"))
    job = only(found)
    assert math.isnan(job.start_s)
    assert math.isnan(job.run_s)
    assert codes(found.counts)["remarks"] == {"never-ran": 1}


def test_a_job_cancelled_while_it_ran_did_run():
    assert only(sacct(row("7", State="CANCELLED by 100"))).run_s == 3600.0


def test_array_tasks_are_jobs_and_a_row_of_waiting_ones_is_as_many():
    found = sacct(row("4_1"), pending("4_[2-5,9%2]"))
    assert [job.id for job in found.trace.jobs()] == ["4_1", "4_2", "4_3", "4_4", "4_5", "4_9"]
    assert codes(found.counts)["remarks"] == {"still-pending": 5, "array": 1}
    assert (found.counts.rows, found.counts.jobs) == (2, 2)


def test_an_array_whose_list_is_cut_is_rejected():
    assert codes(sacct(row("1"), pending("4_[2-5,...]")).counts)["rejected"] == {"array-cut": 1}


def test_an_array_that_started_later_is_not_counted_twice():
    found = sacct(pending("4_[2-3]"), row("4_2"), row("4_3"))
    assert len(found.trace) == 2
    assert found.trace.run_s.tolist() == [3600.0, 3600.0]
    assert adds_up(found.counts, 3)


def test_components_of_a_heterogeneous_job_are_one_job_with_all_gpus():
    found = sacct(row("12+0"), row("12+1"), row("12+0.batch"))
    job = only(found)
    assert (job.gpus, job.tasks, job.gpus_per_task, job.cpus) == (32, 4, 8, 128.0)
    assert codes(found.counts)["parts"] == {"step": 1, "component": 1}


def test_components_with_other_numbers_of_gpus_per_node_leave_that_unknown():
    found = sacct(row("12+0"), row("12+1", NNodes="4", AllocTRES="cpu=4,gres/gpu=4,node=4"))
    assert (only(found).gpus, only(found).tasks, only(found).gpus_per_task) == (20, 6, -1)
    assert codes(found.counts)["remarks"] == {"component-mixed": 1}


def test_a_heterogeneous_job_is_requeued_as_a_whole():
    first, second = requeued()
    rows = [each.replace("7|", f"7+{offset}|", 1) for each in (first, second) for offset in (0, 1)]
    found = sacct(*rows)
    assert (only(found).attempts, only(found).gpus) == (2, 16)
    assert codes(found.counts)["parts"] == {"attempt": 1, "component": 2}
    assert adds_up(found.counts, 4)


NO_GPU = "cpu=64,mem=128G,node=2"


def test_without_any_gpu_in_the_accounting_gpus_are_unknown_and_the_remedy_is_named():
    found = sacct(row("1", AllocTRES=NO_GPU), row("2", AllocTRES=NO_GPU))
    assert found.trace.gpus.tolist() == [-1, -1]
    assert codes(found.counts)["remarks"] == {"gpus-not-recorded": 2}
    assert "AccountingStorageTRES=gres/gpu" in next(gap.remedy for gap in found.gaps if gap.what == "GPUs")


def test_a_job_without_gpus_has_none_once_others_show_that_they_are_recorded():
    before = row("1", AllocTRES=NO_GPU, Submit="2025-03-01T07:00:00")
    found = sacct(before, row("2"), row("3", AllocTRES=NO_GPU, Submit="2025-03-01T08:00:01"))
    assert found.trace.gpus.tolist() == [-1, 16, 0]
    assert codes(found.counts)["remarks"] == {"gpus-not-recorded": 1, "gpus-not-named": 1}


def test_a_list_of_resources_that_is_cut_leaves_gpus_unknown():
    found = sacct(row("1", AllocTRES="cpu=64,gres/gpu=1+"))
    assert only(found).gpus == -1
    assert codes(found.counts)["remarks"] == {"gpus-cut": 1}


def test_gpus_that_are_no_multiple_of_the_nodes_are_said():
    found = sacct(row("1", AllocTRES="gres/gpu=9,node=2"))
    assert (only(found).gpus, only(found).gpus_per_task) == (9, -1)
    assert codes(found.counts)["remarks"] == {"gpus-not-per-node": 1}


def test_the_type_of_gpus_is_kept_and_mig_instances_are_said():
    found = sacct(row("1", AllocTRES="gres/gpu:h100=2,gres/gpu=2"), row("2", AllocTRES="gres/gpu:1g.10gb=1,gres/gpu=1"))
    assert [job.flavor for job in found.trace.jobs()] == ["h100", "1g.10gb"]
    assert codes(found.counts)["remarks"] == {"gpu-slices": 1, "gpus-not-per-node": 1}


@pytest.mark.parametrize(
    ("text", "limit_s", "remark"),
    [("UNLIMITED", math.inf, {"no-limit": 1}), ("Partition_Limit", math.nan, {"partition-limit": 1}),
     ("1-00:00:00", 86400.0, None), ("00:30:00", 1800.0, {"over-limit": 1})],
)  # fmt: skip
def test_limits(text, limit_s, remark):
    found = sacct(row("1", Timelimit=text))
    assert only(found).limit_s == pytest.approx(limit_s, nan_ok=True)
    assert codes(found.counts).get("remarks") == remark


def test_a_small_difference_of_clocks_is_a_wait_of_nothing_and_a_large_one_is_rejected():
    found = sacct(row("1", Submit="2025-03-01T08:15:00", Eligible=""), row("2", Submit="2025-03-01T08:15:01"))
    assert found.trace.wait_s.tolist() == [0.0]
    assert codes(found.counts) == {"rejected": {"start-before-submit": 1}, "remarks": {"clock-skew": 1}}


def test_records_that_contradict_themselves_are_rejected():
    found = sacct(
        row("1", End="2025-03-01T08:00:00"), row("2", ElapsedRaw="-5"), row("3", Submit="Unknown"),
        row("4", ElapsedRaw="400000000", End=""),
    )  # fmt: skip
    expected = {"end-before-start": 1, "contradiction": 1, "no-submit": 1, "run-too-long": 1}
    assert codes(found.counts)["rejected"] == expected
    assert adds_up(found.counts, 4)


def test_a_torn_row_is_rejected_with_its_text():
    found = sacct(row("1"), "2|c1|ada")
    (finding,) = found.counts.rejected
    assert (finding.code, finding.samples[0].line, finding.samples[0].text) == ("fields", 3, "2|c1|ada")


def test_a_wait_counts_from_when_the_job_was_eligible():
    assert sacct(row("1", Eligible="2025-03-01T08:09:00")).trace.wait_s.tolist() == [60.0]


def test_a_run_time_that_is_not_end_minus_start_is_kept_and_said():
    found = sacct(row("1", ElapsedRaw="1000"))
    assert only(found).run_s == 1000.0
    assert codes(found.counts)["remarks"] == {"run-differs": 1}
