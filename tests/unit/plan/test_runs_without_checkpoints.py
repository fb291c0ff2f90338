"""A job that keeps no checkpoints starts again after every failure."""

from __future__ import annotations

import math

import pytest

from builders.plans import planned

BARE = ("workloads.finetune.train.checkpoint=", "workloads.finetune.target.lost_work=")


def test_its_time_is_that_of_one_run_in_one_piece():
    job = planned(*BARE).workload("finetune").training
    run_h = 200e6 / job.tokens_per_s.value / 3600
    mttf_h, restart_h = job.mttf.value, 0.25
    expected = mttf_h * math.exp(restart_h / mttf_h) * math.expm1(run_h / mttf_h)
    assert job.time_to_target.value == pytest.approx(expected)
    assert job.meets_deadline


def test_a_run_much_longer_than_the_time_between_failures_never_ends():
    job = planned(*BARE, "workloads.finetune.train.tokens=20 Ttok").workload("finetune").training
    assert job.meets_deadline is False
    assert job.goodput.value < 0.01


def test_without_a_length_nothing_is_said_of_it():
    plan = planned(*BARE, "workloads.finetune.train.tokens=")
    assert plan.workload("finetune").training.goodput is None
    assert any("how long the run is, is unknown" in u.reason for u in plan.unplanned)
