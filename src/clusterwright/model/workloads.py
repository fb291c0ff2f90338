"""Workloads: what must run, at which scale, with which targets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from clusterwright.model.section import Section
from clusterwright.model.units import Bytes, Duration, Nodes, RequestRate, Share, Text, Texts, Tokens

Precision = Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]
Artifact = Literal["weights", "tokenizer", "engine", "adapter", "dataset"]
Sensitivity = Literal["low", "medium", "high"]
Count = Field(ge=1, le=1_000_000)


class Parallel(Section):
    """Ways in which one replica or one job is split; the product of tp, pp, cp and dp is its GPUs."""

    tp: int = Field(default=1, ge=1, le=4096, description="tensor parallel width")
    pp: int = Field(default=1, ge=1, le=4096, description="pipeline stages")
    dp: int = Field(default=1, ge=1, le=65536, description="data parallel width")
    ep: int = Field(default=1, ge=1, le=65536, description="expert parallel width")
    cp: int = Field(default=1, ge=1, le=4096, description="context parallel width")

    @property
    def gpus(self) -> int:
        """GPUs of one replica or job."""
        return self.tp * self.pp * self.cp * self.dp


class Serve(Section):
    """Online inference: engine, lengths, load and layout."""

    engine: Text = Field(description="engine and version, such as vllm 0.11")
    precision: Precision
    kv_precision: Precision | None = Field(default=None, description="KV cache; the engine's default (bf16) if absent")
    input: Tokens = Field(alias="in", description="mean prompt length")
    output: Tokens = Field(alias="out", description="mean output length")
    in_p95: Tokens | None = None
    out_p95: Tokens | None = None
    rate: RequestRate = Field(description="requests per second of the whole service")
    concurrency: int | None = Field(default=None, ge=1, description="requests in flight over all replicas")
    replicas: int | None = Field(default=None, ge=1, le=100_000)
    replica_rate: RequestRate | None = Field(
        default=None, description="what one replica carries at the target, if known; else estimated"
    )
    parallel: Parallel | None = Field(
        default=None, description="layout of one replica; chosen by the planner if absent"
    )
    memory_share: Share | None = Field(default=None, description="of GPU memory the engine may use")
    max_model_len: Tokens | None = None


class Checkpoint(Section):
    """Checkpoints: where, how often, what they may cost."""

    to: Text = Field(description="store that holds checkpoints")
    every: Duration
    size: Bytes | None = Field(default=None, description="of one checkpoint; computed from the model if absent")
    mode: Literal["sync", "async"] = "sync"
    stall_within: Duration | None = Field(default=None, description="longest acceptable stall per checkpoint")
    restore_within: Duration | None = Field(default=None, description="longest acceptable restore")
    keep: int | None = Field(default=None, ge=1)


class Train(Section):
    """Training or fine-tuning: framework, scale, layout, target work."""

    framework: Text = Field(description="framework and version, such as torchtitan 0.2")
    method: Literal["full", "lora", "qlora"] = "full"
    precision: Precision
    sequence: Tokens
    global_batch: int = Field(ge=1, description="sequences per step")
    micro_batch: int = Field(default=1, ge=1, description="sequences per GPU and forward pass")
    gpus: int = Field(ge=1, le=1_000_000)
    min_gpus: int | None = Field(default=None, ge=1, description="smallest gang an elastic job may run on")
    parallel: Parallel | None = None
    sharding: Literal["ddp", "zero1", "zero2", "zero3", "fsdp"] = "fsdp"
    recompute: Literal["none", "selective", "full"] = "selective"
    tokens: Tokens | None = Field(default=None, description="target work")
    deadline: Duration | None = None
    mfu: Share | None = Field(default=None, description="model FLOP utilisation, if known; else from the catalogue")
    step_time: Duration | None = None
    data: Text | None = Field(default=None, description="store that holds the dataset")
    checkpoint: Checkpoint | None = None


class Payload(Section):
    """What every replica must load before it works, and how fast."""

    size: Bytes | None = Field(default=None, description="per replica; the weights if absent")
    source: Text = Field(description="durable store it comes from")
    cache: Text | None = Field(default=None, description="store that caches it near the GPUs")
    within: Duration = Field(description="time in which all concurrent readers must have it")
    readers: int | None = Field(default=None, ge=1, description="concurrent readers; the replicas if absent")
    startup: Duration | None = Field(default=None, description="deserialisation and engine start beside the transfer")
    artifacts: Annotated[tuple[Artifact, ...], Strict(False)] = ("weights",)


class Target(Section):
    """What the workload must reach. A latency without percentile is accepted here and found by review."""

    ttft: Duration | None = None
    ttft_p50: Duration | None = None
    ttft_p95: Duration | None = None
    ttft_p99: Duration | None = None
    tpot: Duration | None = None
    tpot_p50: Duration | None = None
    tpot_p95: Duration | None = None
    tpot_p99: Duration | None = None
    survive: Nodes | None = Field(default=None, description="nodes that may be lost with the load still carried")
    availability: Share | None = None
    detection: Duration | None = Field(default=None, description="longest time to notice a lost worker")
    recovery: Duration | None = Field(default=None, description="longest time from a loss until work goes on")
    lost_work: Duration | None = Field(default=None, description="most work lost by one failure")
    cold_start: Duration | None = None


class Workload(Section):
    """A workload brief: exactly one of `serve` and `train`."""

    model: Text = Field(description="Hugging Face id or a model of your own catalogue")
    revision: Text | None = Field(default=None, description="exact revision of the weights (commit)")
    image: Text | None = Field(default=None, description="container image with digest")
    pools: Texts = Field(default=(), description="pools it may run on; every GPU pool if absent")
    queue: Text | None = None
    priority: Text | None = None
    gpus: Texts = Field(default=(), description="GPU models that are acceptable")
    serve: Serve | None = None
    train: Train | None = None
    payload: Payload | None = None
    target: Target | None = None
    network_sensitivity: Sensitivity | None = None
    storage_sensitivity: Sensitivity | None = None
    operations_boundary: Text | None = Field(default=None, description="who runs what, up to where")
    denominator: Text | None = Field(default=None, description="business unit that is paid for, such as accepted Mtok")
    pattern: Literal["steady", "diurnal", "bursty"] | None = None
    needs: Literal["outputs", "control", "data-residency", "own-weights"] | None = Field(
        default=None, description="why this is run on a cluster; `outputs` means any API would do"
    )
    model_changes_every: Duration | None = None

    @property
    def kind(self) -> Literal["inference", "training", "unknown"]:
        """What the brief describes."""
        if self.serve is not None:
            return "inference"
        return "training" if self.train is not None else "unknown"
