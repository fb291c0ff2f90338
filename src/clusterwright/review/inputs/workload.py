"""Readiness of the workload brief."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.review.requiring import (
    PRACTICE,
    each_inference,
    each_training,
    each_workload,
    missing,
    require,
)
from clusterwright.review.rules import ALWAYS, BUILD, Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject

_TABLE = RuleTable("workload")


@_TABLE.rule(
    "workload-missing",
    Severity.ERROR,
    100,
    why="Nothing can be sized, tested or priced for a cluster whose work is unknown.",
    satisfy="describe what must run under `workloads`",
    example="workloads: {chat: {model: meta-llama/Llama-3.3-70B-Instruct, serve: {...}}}",
    source=PRACTICE,
)
def no_workload(subject: Subject) -> Iterator[Hit]:
    """No workload is described."""
    if not subject.workloads:
        yield Hit("workloads", "the file describes no workload")


@_TABLE.rule(
    "workload-type-unclear",
    Severity.ERROR,
    95,
    why="Inference and training load a cluster in opposite ways; a brief that is neither or both sizes nothing.",
    satisfy="give the workload exactly one of `serve` and `train`; split it in two if it does both",
    example="workloads: {chat: {model: ..., serve: {engine: vllm 0.11, precision: fp8, ...}}}",
    source=PRACTICE,
)
def type_unclear(subject: Subject) -> Iterator[Hit]:
    """A workload is neither inference nor training, or both."""
    for name, workload in subject.workloads.items():
        if workload.serve is None and workload.train is None:
            yield Hit(f"workloads.{name}.serve", f"workload {name} has neither serve nor train")
        if workload.serve is not None and workload.train is not None:
            yield Hit(f"workloads.{name}.train", f"workload {name} has both serve and train")


require(
    _TABLE,
    "model-revision-missing",
    each_workload,
    {"revision": "the exact revision of its weights"},
    catches="A workload does not pin the revision of its weights.",
    why="A model id moves: sizes, tokenizer and quality change under the same name, and the acceptance test with them.",
    satisfy="write the commit of the weights' repository",
    example="revision: 6f6073b423013f6a7d4d9f39144961bfbfbc386b",
    weight=55,
)
require(
    _TABLE,
    "workload-image-missing",
    each_workload,
    {"image": "which container image it runs"},
    catches="A workload does not name its image.",
    why="Acceptance proves the image that was run; another image is another cluster to the workload.",
    satisfy="name the production image with its digest",
    example="image: registry.example.com/serving/vllm@sha256:3f1c...",
    weight=60,
)
require(
    _TABLE,
    "gpu-range-missing",
    each_workload,
    {"gpus": "which GPU models are acceptable"},
    catches="A workload does not say which GPU models it accepts.",
    why="A provider substitutes what is in stock; memory, interconnect and formats differ between models.",
    satisfy="list the acceptable GPUs by their catalogue names",
    example="gpus: [h100-sxm-80, h200-sxm-141]",
    weight=60,
    stages=ALWAYS,
)
require(
    _TABLE,
    "lengths-without-distribution",
    each_inference,
    {"serve.in_p95": "how long its long prompts are (p95)", "serve.out_p95": "how long its long outputs are (p95)"},
    catches="Prompt and output lengths are means only.",
    why="KV cache and latency follow the long requests; two services of equal mean can need twice the memory.",
    satisfy="give the 95th percentiles beside the means",
    example="serve: {in: 1000 tokens, in_p95: 3000 tokens, out: 250 tokens, out_p95: 600 tokens, ...}",
    weight=65,
    stages=ALWAYS,
)
require(
    _TABLE,
    "concurrency-missing",
    each_inference,
    {"serve.concurrency": "how many requests are in flight"},
    catches="An inference workload does not state its concurrency.",
    why="The KV cache is sized by requests in flight; a rate alone leaves memory open.",
    satisfy="declare the requests in flight over all replicas at the declared rate",
    example="serve: {rate: 8 req/s, concurrency: 64, ...}",
    weight=70,
    stages=ALWAYS,
)


@_TABLE.rule(
    "performance-target-missing",
    Severity.ERROR,
    85,
    why="Without a target every size is right, and nothing can be accepted or refused.",
    satisfy="inference: latency targets with percentiles; training: the target work and its deadline",
    example="target: {ttft_p95: 1 s, tpot_p95: 50 ms}   # training: train: {tokens: 200 Mtok, deadline: 3 days}",
    source=PRACTICE,
)
def no_target(subject: Subject) -> Iterator[Hit]:
    """A workload has no performance target."""
    for name, workload in subject.workloads.items():
        path, target = f"workloads.{name}", workload.target
        if workload.serve is not None:
            for prefix, words in (("ttft", "time to first token"), ("tpot", "time per output token")):
                names = [f for f in type(target).model_fields if f.startswith(prefix)] if target else []
                if not any(getattr(target, f) is not None for f in names):
                    yield Hit(f"{path}.target.{prefix}_p95", f"workload {name} has no target for {words}")
        if workload.train is not None:
            for field, words in (("tokens", "how much work it must do"), ("deadline", "by when it must be done")):
                if getattr(workload.train, field) is None:
                    yield Hit(f"{path}.train.{field}", f"workload {name} does not say {words}")


require(
    _TABLE,
    "sensitivity-missing",
    each_workload,
    {
        "network_sensitivity": "how sensitive it is to the network",
        "storage_sensitivity": "how sensitive it is to storage",
    },
    catches="A workload does not say how sensitive it is to network and storage.",
    why="It decides where money goes: a non-blocking fabric for one workload is waste for another.",
    satisfy="say low, medium or high for each",
    example="network_sensitivity: low\nstorage_sensitivity: high",
    weight=40,
)
require(
    _TABLE,
    "model-loading-missing",
    each_workload,
    {"payload": "what each replica must load, from where, in which time"},
    catches="A workload does not say how its weights reach the GPUs.",
    why="Cold start is bytes of all concurrent readers over the slowest link; unknown, an outage finds it.",
    satisfy="name the durable source, the cache if any, and the allowed time",
    example="payload: {source: object, cache: nvme, within: 90 s}",
    weight=70,
    stages=ALWAYS,
)


@_TABLE.rule(
    "start-expectation-missing",
    Severity.ERROR,
    45,
    why="Engine start can take longer than the transfer; a promise about recovery rests on the sum.",
    satisfy="give payload.startup and target.cold_start",
    example="payload: {startup: 60 s, ...}\ntarget: {cold_start: 5 min}",
    source=PRACTICE,
    stages=BUILD,
)
def start_expectation(subject: Subject) -> Iterator[Hit]:
    """An inference workload does not say what a cold start takes and may take."""
    for part in each_inference(subject):
        if part[2].payload is not None:  # else model-loading-missing says so
            words = "how long deserialisation and engine start take beside the transfer"
            yield from missing([part], {"payload.startup": words})
        yield from missing([part], {"target.cold_start": "how long a cold start may take"})


require(
    _TABLE,
    "recovery-target-missing",
    each_workload,
    {
        "target.detection": "how long a loss may go unnoticed",
        "target.recovery": "how long it may take until work goes on after a loss",
    },
    catches="A workload has no recovery targets.",
    why="GPUs, links and nodes fail every few weeks even in small clusters; what is not asked for is not built.",
    satisfy="give target.detection and target.recovery",
    example="target: {detection: 30 s, recovery: 10 min}",
    weight=65,
)
require(
    _TABLE,
    "lost-work-target-missing",
    each_training,
    {"target.lost_work": "how much work one failure may cost"},
    catches="A training workload does not say how much work a failure may cost.",
    why="The checkpoint interval, and with it storage, follows from it.",
    satisfy="give target.lost_work",
    example="target: {lost_work: 30 min}",
    weight=55,
)
require(
    _TABLE,
    "failure-target-missing",
    each_inference,
    {"target.survive": "how many nodes may be lost with the load still carried"},
    catches="An inference workload does not say which loss it must survive.",
    why="Survival is bought with idle replicas; if nobody asked for it, it is absent or paid for by accident.",
    satisfy="declare the nodes that may be lost; `0 nodes` says that none need be survived",
    example="target: {survive: 1 node}",
    weight=75,
    stages=ALWAYS,
)
require(
    _TABLE,
    "checkpoint-missing",
    each_training,
    {"train.checkpoint": "where it checkpoints and how often"},
    catches="A training workload does not checkpoint.",
    why="Without checkpoints every failure costs the whole run so far.",
    satisfy="declare store, interval, allowed stall and restore time",
    example="train: {checkpoint: {to: object, every: 30 min, stall_within: 60 s, restore_within: 120 s}, ...}",
    weight=80,
    stages=ALWAYS,
)


@_TABLE.rule(
    "checkpoint-limits-missing",
    Severity.ERROR,
    50,
    why="A checkpoint that stalls training for minutes, or cannot be read back in time, protects nothing.",
    satisfy="give stall_within and restore_within",
    example="checkpoint: {to: object, every: 30 min, stall_within: 60 s, restore_within: 120 s}",
    source=PRACTICE,
    stages=BUILD,
)
def checkpoint_limits(subject: Subject) -> Iterator[Hit]:
    """A checkpoint has no limit for its stall or its restore."""
    for name, workload in subject.workloads.items():
        checkpoint = workload.train.checkpoint if workload.train else None
        if checkpoint is None:
            continue
        for field, words in (("stall_within", "how long it may stall"), ("restore_within", "how fast it must restore")):
            if getattr(checkpoint, field) is None:
                yield Hit(f"workloads.{name}.train.checkpoint.{field}", f"checkpoint of {name} does not say {words}")


require(
    _TABLE,
    "training-data-missing",
    each_training,
    {"train.data": "which store its data comes from"},
    catches="A training workload does not say where its data lives.",
    why="Data loading stalls GPUs as surely as a slow network does.",
    satisfy="name the store that holds the dataset",
    example="train: {data: object, ...}",
    weight=50,
)
require(
    _TABLE,
    "operations-boundary-missing",
    each_workload,
    {"operations_boundary": "who runs what, up to where"},
    catches="A workload does not say where one team's responsibility ends.",
    why="An incident at a boundary that nobody drew belongs to nobody.",
    satisfy="say in one sentence who runs nodes, engine, image and model",
    example="operations_boundary: platform runs nodes and engine, applied-ml runs image and prompts",
    weight=45,
)
require(
    _TABLE,
    "workload-denominator-missing",
    each_workload,
    {"denominator": "which business unit is paid for"},
    catches="A workload has no business denominator.",
    why="GPU-hours are a cost, not a result; only a unit of accepted work can be compared with buying it elsewhere.",
    satisfy="name the unit: accepted Mtok, accepted run, image",
    example="denominator: accepted Mtok",
    weight=55,
)
require(
    _TABLE,
    "need-unstated",
    each_workload,
    {"needs": "why it must run on a cluster of yours", "pattern": "how its load moves over time"},
    catches="A workload does not say why it needs a cluster, or how its load moves.",
    why="Where only outputs are needed, or the load comes in bursts, a model API is often the better answer.",
    satisfy="give needs (outputs, control, data-residency, own-weights) and pattern (steady, diurnal, bursty)",
    example="needs: own-weights\npattern: diurnal",
    severity=Severity.WARNING,
    weight=60,
    stages=ALWAYS,
)


@_TABLE.rule(
    "artifacts-incomplete",
    Severity.WARNING,
    30,
    why="A replica that has its weights and waits for a tokenizer or an engine build from the internet is not started.",
    satisfy="list what is loaded beside the weights",
    example="payload: {artifacts: [weights, tokenizer, engine], ...}",
    source=PRACTICE,
    stages=BUILD,
)
def artifacts_incomplete(subject: Subject) -> Iterator[Hit]:
    """A payload names weights but no tokenizer."""
    for name, workload in subject.workloads.items():
        payload = workload.payload
        if payload is not None and "weights" in payload.artifacts and "tokenizer" not in payload.artifacts:
            yield Hit(
                f"workloads.{name}.payload.artifacts",
                f"payload of {name} lists {', '.join(payload.artifacts)} and no tokenizer",
            )


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
