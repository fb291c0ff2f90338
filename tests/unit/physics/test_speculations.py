"""Tokens that a step keeps, and the time of drafts and verification."""

from __future__ import annotations

import numpy as np
import pytest

from builders.serving import worker
from clusterwright.physics.serving.constants import Constants, columns_of
from clusterwright.physics.serving.sides import stack
from clusterwright.physics.serving.steps import sequence_costs, step_terms, total
from clusterwright.physics.speculations import drafted_side, kept_tokens


@pytest.mark.parametrize(
    ("acceptance", "drafts", "kept"),
    [(0.8, 1, 1.8), (0.5, 3, 1.875), (0.0, 4, 1.0), (1.0, 4, 5.0), (0.8, 5, 3.68928)],
)
def test_kept_tokens_are_those_of_leviathan_et_al(acceptance, drafts, kept):
    assert kept_tokens(acceptance, drafts) == pytest.approx(kept, rel=1e-5)


def test_kept_tokens_are_the_mean_of_runs_of_accepted_drafts():
    chance = 0.7
    runs = [chance**n * (1 - chance) * (n + 1) for n in range(4)] + [chance**4 * 5]
    assert kept_tokens(chance, 4) == pytest.approx(sum(runs))


def step(side, running, width):
    held, ones = columns_of(Constants()), np.ones(1)
    columns = stack([side])
    costs = sequence_costs(columns, 1500 * ones)
    return float(total(step_terms(columns, held, running * ones, costs, width * ones))[0])


@pytest.mark.parametrize(("running", "slack"), [(1.0, 0.001), (4000.0, 0.02)])
def test_a_step_takes_its_drafts_one_by_one_and_one_verification(running, slack):
    """Apart from what a step takes once (scheduling and sampling), and where both are bound alike."""
    target, draft, count = worker(), worker(), 3
    held = Constants()
    once = held.step_ms * 1e-3 + running * held.sequence_us * 1e-6
    apart = step(target, running, count + 1) + count * (step(draft, running, 1.0) - once)
    assert step(drafted_side(target, draft, count), running, count + 1) == pytest.approx(apart, rel=slack)


def test_drafting_is_never_cheaper_than_verifying_alone():
    target = worker()
    for running in (1.0, 64.0, 1024.0):
        assert step(drafted_side(target, worker(), 2), running, 3.0) > step(target, running, 3.0)
