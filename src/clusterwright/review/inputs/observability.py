"""Readiness of observability: what must be visible, per team and workload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import PRACTICE, asked_as_a_whole, require, the_file
from clusterwright.review.rules import BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("observability")


@_TABLE.rule(
    "observability-missing",
    Severity.ERROR,
    60,
    why="What nobody sees is found by users: idle GPUs, flapping links, full stores, jobs that wait for no reason.",
    satisfy="write observability: where jobs, GPUs, fabric, storage and cost are seen, who is alerted, for how long",
    example="observability: {jobs: ..., gpus: ..., fabric: ..., storage: ..., cost: ..., alerts: ..., ...}",
    source=PRACTICE,
    stages=BUILD,
)
def observability_missing(subject: Subject) -> Iterator[Hit]:
    """The file has no section observability: nothing says where anything is seen."""
    if asked_as_a_whole(subject, "observability"):
        open_points = "jobs, GPUs, fabric, storage, cost, alerts, history"
        yield Hit("observability", f"the file says nothing about observability: {open_points}")


require(
    _TABLE,
    "jobs-unobserved",
    the_file,
    {"observability.jobs": "where run time, queue time, retries, exit reason and owner of jobs are seen"},
    catches="Jobs are seen nowhere.",
    why="Without queue time and exit reason nobody can tell a full cluster from a broken one.",
    satisfy="say where jobs are seen",
    example="observability: {jobs: run time, queue time, retries, exit reason, owner in Grafana}",
    weight=50,
)
require(
    _TABLE,
    "gpus-unobserved",
    the_file,
    {"observability.gpus": "where utilisation, memory, power, temperature and ECC of GPUs are seen"},
    catches="GPUs are seen nowhere.",
    why="Idle, throttled and failing GPUs cost the same as working ones.",
    satisfy="say where GPU metrics are seen",
    example="observability: {gpus: DCGM exporter, utilisation, memory, power, temperature, ECC}",
    weight=55,
)
require(
    _TABLE,
    "fabric-unobserved",
    the_file,
    {"observability.fabric": "where fabric health is seen"},
    catches="The fabric is seen nowhere.",
    why="One bad cable slows every job that crosses it.",
    satisfy="say where port errors, retransmits and congestion are seen",
    example="observability: {fabric: port errors, retransmits, congestion marks}",
    weight=45,
)
require(
    _TABLE,
    "storage-unobserved",
    the_file,
    {"observability.storage": "where storage rates, checkpoint and restore times are seen"},
    catches="Storage is seen nowhere.",
    why="Data stalls look like slow GPUs unless storage rates are seen beside them.",
    satisfy="say where read and write rates, checkpoint and restore times are seen",
    example="observability: {storage: read and write rates, checkpoint and restore time}",
    weight=45,
)
require(
    _TABLE,
    "cost-unobserved",
    the_file,
    {
        "observability.cost": "where allocation and quota denials are seen per team and model",
        "observability.labels": "which labels bills are split by",
    },
    catches="Cost is not visible per team and workload.",
    why="What is not attributed is nobody's, and grows.",
    satisfy="say where cost is seen, and the billing labels",
    example="observability: {cost: allocation events and quota denials by team, labels: [team, model, workload]}",
    weight=45,
)
require(
    _TABLE,
    "alerts-missing",
    the_file,
    {"observability.alerts": "who is alerted"},
    catches="Nobody is alerted.",
    why="A dashboard that nobody watches detects nothing within a recovery target.",
    satisfy="say who gets alerts, with what to do",
    example="observability: {alerts: to on-call with a runbook each}",
    weight=45,
)
require(
    _TABLE,
    "history-missing",
    the_file,
    {
        "observability.retention": "how long metrics are kept",
        "observability.benchmark_history": "where benchmark results are kept",
    },
    catches="Metrics or benchmark results are not kept.",
    why="Slow decay shows only against what was measured on the day of acceptance.",
    satisfy="give retention and benchmark_history",
    example="observability: {retention: 90 days, benchmark_history: acceptance results kept in git}",
    severity=Severity.ERROR,
    weight=35,
)

RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
