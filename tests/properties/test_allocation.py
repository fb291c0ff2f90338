"""Filling small random clusters, against plain loops over the definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.queueing.filling import fill
from clusterwright.queueing.fractions import MILLI, Ask, NodeRows, NodeSpec, lay_out
from clusterwright.queueing.fragmenting import Gauge, TaskMix, fragmentation
from clusterwright.queueing.preferring import POLICIES, GpuChoice, Offer, SharePolicy

MODELS = ("T4", "G2")
SHARES = st.integers(1, 10).map(lambda tenth: tenth * 100)
WANTED = st.lists(st.sampled_from(MODELS), unique=True).map(tuple)
CPU = st.integers(0, 8).map(lambda cores: cores * 1000)
ASKS = st.one_of(
    st.builds(Ask, CPU),
    st.builds(Ask, CPU, st.just(1), SHARES, st.just(1), WANTED),
    st.builds(Ask, CPU, st.integers(1, 4), st.just(MILLI), st.just(1), WANTED),
)
NODES = st.builds(
    lambda gpus, cores, model, domain: NodeSpec("", gpus, cores * 1000, 8, model, domain),
    st.integers(0, 4),
    st.integers(1, 16),
    st.sampled_from(MODELS),
    st.sampled_from("xy"),
)
CLUSTERS = st.lists(NODES, min_size=1, max_size=6).map(
    lambda specs: lay_out([replace(spec, name=f"n{i}") for i, spec in enumerate(specs)])
)
MIXES = st.lists(ASKS, min_size=1, max_size=5, unique=True).map(
    lambda asks: TaskMix(tuple(asks), tuple(range(1, len(asks) + 1)))
)
STEADY = [policy for policy in POLICIES.values() if not policy.by_chance]


def plain_fragmentation(rows: NodeRows, row: int, mix: TaskMix) -> float:
    """The formula of the paper, word by word."""
    free = [int(r) for r in rows.free_milli[row]]
    out = 0
    for ask, count in zip(mix.asks, mix.counts, strict=True):
        enough = ask.gpus and sum(r >= ask.gpu_milli for r in free) >= ask.gpus
        welcome = not ask.models or rows.models[rows.model[row]] in ask.models
        if enough and welcome and rows.cpu_milli[row] >= ask.cpu_milli:
            out += count * sum(r for r in free if r < ask.gpu_milli)
        else:
            out += count * sum(free)
    return out / mix.total


def plain_fill(rows: NodeRows, arrivals: list[Ask], policy: SharePolicy, mix: TaskMix) -> list[int]:
    """Every node scored for every arrival."""
    rows = rows.at(np.arange(len(rows.gpus)))
    gauge = Gauge(mix, rows)
    placed = []
    for ask in arrivals:
        every = np.arange(len(rows.gpus))
        candidates = [int(row) for row in every[rows.fits(ask, every)]]
        if not candidates:
            placed.append(-1)
            continue
        score = policy.score(Offer(rows, ask, gauge))
        best = score.max(axis=1) if score.ndim == 2 else score
        row = max(candidates, key=lambda r: (best[r], -r))
        placed.append(row)
        free = rows.free_milli[row]
        gpus = [g for g in range(len(free)) if free[g] == MILLI][: ask.gpus]
        if ask.shared and policy.gpu is GpuChoice.SCORED:
            gpus = [int(score[row].argmax())]
        elif ask.shared:
            gpus = [min((g for g in range(len(free)) if free[g] >= ask.gpu_milli), key=lambda g: (free[g], g))]
        rows.place(row, ask, gpus)
        assert (rows.free_milli >= 0).all()
        assert (rows.cpu_milli >= 0).all()
        assert (rows.memory_mib >= 0).all()
    return placed


@pytest.mark.parametrize("policy", STEADY, ids=[p.name for p in STEADY])
@given(rows=CLUSTERS, arrivals=st.lists(ASKS, min_size=1, max_size=15), mix=MIXES)
@settings(deadline=None, max_examples=25)
def test_scoring_only_what_changed_chooses_as_scoring_everything_and_never_over_allocates(
    policy: SharePolicy, rows: NodeRows, arrivals: list[Ask], mix: TaskMix
) -> None:
    filling = fill(rows, arrivals, np.arange(len(arrivals)), policy, mix)
    assert filling.rows.tolist() == plain_fill(rows, arrivals, policy, mix)
    assert filling.allocated_milli[-1] <= filling.capacity_milli


@given(rows=CLUSTERS, data=st.data(), mix=MIXES)
@settings(deadline=None, max_examples=50)
def test_fragmentation_is_the_formula_and_at_most_what_is_free(
    rows: NodeRows, data: st.DataObject, mix: TaskMix
) -> None:
    for row, gpus in enumerate(rows.gpus.tolist()):
        rows.free_milli[row, :gpus] = data.draw(st.lists(st.integers(0, MILLI), min_size=gpus, max_size=gpus))
    measured = fragmentation(rows, mix)
    assert measured == pytest.approx([plain_fragmentation(rows, row, mix) for row in range(len(rows.gpus))])
    assert (measured <= rows.free_milli.sum(axis=1) + 1e-9).all()
