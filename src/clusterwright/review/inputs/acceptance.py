"""Readiness of acceptance: who accepts what, on which image and workload, against which claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.model.metrics import CLAIM_CLASSES
from clusterwright.review.requiring import PRACTICE, asked_as_a_whole, require, the_file
from clusterwright.review.rules import BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("acceptance")


@_TABLE.rule(
    "acceptance-missing",
    Severity.ERROR,
    75,
    why="A cluster that nobody agreed how to accept is accepted when the invoice comes.",
    satisfy="write acceptance: who accepts, on which image and workload, against which claims of all four classes",
    example="acceptance: {accepted_by: head-of-platform@example.com, image: ..., workload: ..., requirements: {...}}",
    source=PRACTICE,
    stages=BUILD,
)
def acceptance_missing(subject: Subject) -> Iterator[Hit]:
    """The file has no section acceptance: who accepts what, and against which thresholds, is open."""
    if asked_as_a_whole(subject, "acceptance"):
        yield Hit("acceptance", "the file says nothing about acceptance: who, which image and workload, which claims")


require(
    _TABLE,
    "acceptor-missing",
    the_file,
    {"acceptance.accepted_by": "who accepts the cluster"},
    catches="Nobody is named who accepts.",
    why="Payment, go-live and responsibility turn on one signature.",
    satisfy="name the person",
    example="acceptance: {accepted_by: head-of-platform@example.com}",
    weight=60,
)
require(
    _TABLE,
    "acceptance-image-missing",
    the_file,
    {"acceptance.image": "with which production image it is accepted"},
    catches="Acceptance names no production image.",
    why="A vendor's test image proves the vendor's image; drivers, NCCL and kernels of the production image differ.",
    satisfy="name the production image with its digest",
    example="acceptance: {image: registry.example.com/serving/vllm@sha256:3f1c...}",
    weight=50,
)
require(
    _TABLE,
    "acceptance-workload-missing",
    the_file,
    {"acceptance.workload": "which fixed workload is run"},
    catches="Acceptance names no fixed workload definition.",
    why="A result without a fixed workload cannot be repeated or compared.",
    satisfy="describe the workload, its load and duration",
    example="acceptance: {workload: 'chat with the recorded prompts of week 40, 8 req/s for 2 h'}",
    weight=50,
)
require(
    _TABLE,
    "log-export-missing",
    the_file,
    {"acceptance.log_export": "where raw logs and evidence go"},
    catches="Export of logs and evidence is not stated.",
    why="Evidence that stays on the provider's machines is the provider's evidence.",
    satisfy="say where raw output is kept, and how long",
    example="acceptance: {log_export: 'raw logs and evidence to the object store, kept 2 years'}",
    weight=40,
)
require(
    _TABLE,
    "acceptance-window-missing",
    the_file,
    {"acceptance.window": "how long acceptance lasts"},
    catches="The length of acceptance is not stated.",
    why="Faults that need hours of load are found after the signature otherwise.",
    satisfy="give acceptance.window",
    example="acceptance: {window: 48 h}",
    severity=Severity.WARNING,
    weight=30,
)


@_TABLE.rule(
    "claim-class-uncovered",
    Severity.ERROR,
    75,
    why="Evidence of one class never proves another: healthy GPUs say nothing about the data path, a fast collective "
    "nothing about latency.",
    satisfy="require at least one claim of the class",
    example="requirements: {tasks-land: {metric: tasks_as_expected, at_least: 100%, ...}}",
    source=PRACTICE,
    stages=BUILD,
)
def class_uncovered(subject: Subject) -> Iterator[Hit]:
    """One of the four classes of claims has no required threshold."""
    acceptance = subject.architecture.acceptance
    claims = acceptance.requirements.values() if acceptance else ()
    covered = {r.claim for r in claims if r.required}
    if asked_as_a_whole(subject, "acceptance"):
        return  # acceptance-missing says so
    if not claims:
        classes = ", ".join(CLAIM_CLASSES)
        yield Hit(
            "acceptance.requirements", f"acceptance requires nothing; claims of four classes are wanted: {classes}"
        )
        return
    for claim in CLAIM_CLASSES:
        if claim not in covered:
            yield Hit("acceptance.requirements", f"no required claim of the class {claim}")


@_TABLE.rule(
    "data-path-unproven",
    Severity.ERROR,
    55,
    why="Network, checkpoint write and restore are what training waits for; a provider delivers what is tested.",
    satisfy="add requirements for the metrics named",
    example="requirements: {checkpoint-write: {metric: checkpoint_write, at_most: 60 s, ...}}",
    source=PRACTICE,
    stages=BUILD,
)
def data_path_unproven(subject: Subject) -> Iterator[Hit]:
    """Acceptance tests no collective over the nodes, no cold read, or no checkpoint although a workload needs it."""
    acceptance = subject.architecture.acceptance
    if acceptance is None or not acceptance.requirements:
        return  # claim-class-uncovered says so
    metrics = {r.metric for r in acceptance.requirements.values()}
    wanted: list[tuple[set[str], str]] = []
    if any(w.payload is not None for w in subject.workloads.values()):
        wanted.append(({"storage_read", "payload_time", "cold_start"}, "a cold read (storage_read)"))
    if any(w.train is not None and w.train.checkpoint for w in subject.workloads.values()):
        wanted.append(({"checkpoint_write"}, "writing a checkpoint (checkpoint_write)"))
        wanted.append(({"checkpoint_restore"}, "restoring one (checkpoint_restore)"))
    if subject.networks_with("compute"):
        wanted.append(({"busbw", "algbw", "rdma_write", "gpudirect_rdma_write"}, "the compute network (busbw)"))
    for names, words in wanted:
        if not names & metrics:
            yield Hit("acceptance.requirements", f"no requirement tests {words}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
