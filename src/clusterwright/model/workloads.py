"""Workloads: what must run, at which scale, with which targets."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, Strict, model_validator

from clusterwright.model.section import Section
from clusterwright.model.units import (
    Bytes,
    Count,
    Delay,
    Duration,
    Nodes,
    PositiveShare,
    RequestRate,
    Share,
    Text,
    Texts,
    Tokens,
)

Precision = Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]
Goal = Literal["cost", "latency", "throughput", "domain"]
RecomputedModule = Literal["core_attn", "layernorm", "moe_act", "mla_up_proj", "mlp", "moe"]
Artifact = Literal["weights", "tokenizer", "engine", "adapter", "dataset"]
WeightLoader = Literal["safetensors", "tensorizer", "runai-streamer"]
Sensitivity = Literal["low", "medium", "high"]


#: A number above 0.
PositiveNumber = Annotated[float, Field(gt=0)]


def _lengths_from_trace(schema: dict[str, Any]) -> None:
    """What a trace gives need not be in a file that an editor looks at."""
    given = ("in", "out", "rate")
    required = [name for name in schema["required"] if name not in given]
    schema["required"] = required
    schema["anyOf"] = [{"required": list(given)}, {"required": ["lengths"]}]


class Parallel(Section):
    """Ways in which one replica or one job is split; the product of tp, pp, cp and dp is its GPUs."""

    tp: int = Field(default=1, ge=1, le=4096, description="tensor parallel width; of attention, where dp forms groups")
    pp: int = Field(default=1, ge=1, le=4096, description="pipeline stages")
    dp: int = Field(
        default=1,
        ge=1,
        le=65536,
        description="data parallel width; of a replica: attention groups with a cache each, experts over all of them "
        "(vLLM --data-parallel-size, SGLang --dp-size with --enable-dp-attention, TensorRT-LLM enable_attention_dp)",
    )
    ep: int = Field(
        default=1,
        ge=1,
        le=65536,
        description="expert parallel width (vLLM --enable-expert-parallel: all tp × dp; SGLang --ep-size)",
    )
    cp: int = Field(default=1, ge=1, le=4096, description="context parallel width")
    dcp: int = Field(
        default=1,
        ge=1,
        le=4096,
        description="decode context parallel width: tensor ranks that share one cache by position, within tp (vLLM "
        "--decode-context-parallel-size)",
    )
    vp: int = Field(
        default=1, ge=1, le=4096, description="virtual stages per pipeline rank (interleaved schedule, training)"
    )

    @model_validator(mode="after")
    def _shares_whole(self) -> Self:
        if self.tp % self.dcp:
            raise ValueError(f"dcp {self.dcp} does not divide tp {self.tp}; ranks that share a cache are tensor ranks")
        return self

    @property
    def gpus(self) -> int:
        """GPUs of one replica or job."""
        return self.tp * self.pp * self.cp * self.dp


class ReusedPrefixes(Section):
    """What a cache of prefixes saves at one size."""

    cache: Tokens = Field(description="that one replica's cache holds")
    share: Share = Field(description="of prompt tokens found in it")


class Speculation(Section):
    """Speculative decoding: tokens are drafted, then verified together. Acceptance is declared, never guessed."""

    method: Literal["mtp", "eagle3"] = Field(
        description="mtp: the model's own draft layers; eagle3: a draft model beside it"
    )
    tokens: int = Field(ge=1, le=64, description="drafted per step")
    acceptance: Share = Field(description="share of draft tokens that are accepted, measured on such requests")
    draft: Text | None = Field(default=None, description="Hugging Face id of the draft model, for eagle3")


class RequestLengths(Section):
    """The distribution of prompts, and what their common beginnings save; a trace gives all of it."""

    trace: Text | None = Field(
        default=None,
        description="file of requests (CSV or JSON lines), relative to the file that names it; gives `in`, `out`, "
        "`in_p95`, `out_p95`, and `rate` and `prefix_reuse` where the file does not state them",
    )
    prompts: Annotated[tuple[PositiveNumber, ...], Strict(False)] = Field(
        default=(), description="tokens of prompts that stand for equal shares of the requests, scaled to the mean"
    )
    reuse: Annotated[tuple[ReusedPrefixes, ...], Strict(False)] = Field(
        default=(), description="prefix reuse by the size of a replica's cache"
    )


class WorkerGroup(Section):
    """The workers of one half of disaggregated serving."""

    parallel: Parallel | None = Field(default=None, description="layout of one worker; searched if absent")
    workers: Count | None = Field(default=None, description="how many; as the load needs if absent")


class Disaggregated(Section):
    """Prefill and decode on workers of their own; `true` searches both halves."""

    prefill: WorkerGroup | None = Field(default=None, description="workers that read prompts; searched if absent")
    decode: WorkerGroup | None = Field(default=None, description="workers that write answers; searched if absent")


def _halves(value: object) -> object:
    """`true` is both halves searched, `false` none."""
    return ({} if value else None) if isinstance(value, bool) else value


class Serve(Section):
    """Online inference: engine, lengths, load and layout."""

    model_config = ConfigDict(json_schema_extra=_lengths_from_trace)

    engine: Text = Field(description="engine and version, such as vllm 0.11")
    precision: Precision = Field(description="of the weights")
    kv_precision: Precision | None = Field(default=None, description="KV cache; the engine's default (bf16) if absent")
    input: Tokens = Field(alias="in", description="mean prompt length")
    output: Tokens = Field(alias="out", description="mean output length")
    in_p95: Tokens | None = Field(default=None, description="95th percentile of prompt length")
    out_p95: Tokens | None = Field(default=None, description="95th percentile of output length")
    lengths: RequestLengths | None = Field(default=None, description="distribution of lengths, such as a trace's")
    prefix_reuse: Share | None = Field(
        default=None, description="share of prompt tokens whose cache is found again and needs no prefill"
    )
    disaggregated: Annotated[
        Disaggregated | None, BeforeValidator(_halves, json_schema_input_type=Disaggregated | bool | None)
    ] = Field(default=None, description="prefill and decode on workers of their own: `true`, or what each half is")
    speculation: Speculation | None = Field(default=None, description="speculative decoding; none if absent")
    rate: RequestRate = Field(description="requests per second of the whole service")
    concurrency: Count | None = Field(default=None, description="requests in flight over all replicas")
    replicas: Count | None = Field(default=None, description="replicas; chosen by the planner if absent")
    spread: Literal["required", "preferred"] = Field(
        default="preferred",
        description="replicas on different nodes; required: never two on one node, as topologySpreadConstraints with "
        "DoNotSchedule: without a free node a lost replica waits",
    )
    replica_rate: RequestRate | None = Field(
        default=None, description="what one replica carries at the target, if known; else estimated"
    )
    parallel: Parallel | None = Field(
        default=None, description="layout of one replica; chosen by the planner if absent"
    )
    memory_share: PositiveShare | None = Field(default=None, description="of GPU memory the engine may use")
    max_model_len: Tokens | None = Field(default=None, description="longest prompt and output together")
    max_num_seqs: Count | None = Field(
        default=None, description="sequences in one step of the engine; its default if absent"
    )
    max_num_batched_tokens: Count | None = Field(
        default=None, description="tokens in one step of the engine; its default if absent"
    )


class Checkpoint(Section):
    """Checkpoints: where, how often, what they may cost."""

    to: Text = Field(description="store that holds checkpoints")
    every: Duration = Field(description="interval")
    size: Bytes | None = Field(default=None, description="of one checkpoint; computed from the model if absent")
    mode: Literal["sync", "async"] = Field(
        default="sync", description="async: training goes on while the bytes are written"
    )
    stall_within: Duration | None = Field(default=None, description="longest acceptable stall per checkpoint")
    restore_within: Duration | None = Field(default=None, description="longest acceptable restore")
    keep: Count | None = Field(default=None, description="checkpoints kept")


class Train(Section):
    """Training or fine-tuning: framework, scale, layout, target work."""

    framework: Text = Field(description="framework and version, such as torchtitan 0.2")
    method: Literal["full", "lora", "qlora"] = Field(default="full", description="all weights, or adapters")
    precision: Precision = Field(description="of the matrix products")
    sequence: Tokens = Field(description="length of one sequence")
    global_batch: Count = Field(description="sequences per step")
    micro_batch: Count = Field(default=1, description="sequences per GPU and forward pass")
    gpus: Count = Field(description="GPUs of the job")
    min_gpus: Count | None = Field(default=None, description="smallest gang an elastic job may run on")
    parallel: Parallel | None = Field(default=None, description="layout; chosen by the planner if absent")
    sharding: Literal["ddp", "zero1", "zero2", "zero3", "fsdp"] = Field(
        default="fsdp", description="how weights and optimizer state are split over data parallel ranks"
    )
    recompute: Literal["none", "selective", "full"] = Field(
        default="selective", description="activations computed again in the backward pass"
    )
    recompute_modules: Annotated[tuple[RecomputedModule, ...], Strict(False)] = Field(
        default=(), description="what selective recomputation drops (Megatron --recompute-modules); core_attn if absent"
    )
    logits: Literal["unfused", "fused", "chunked"] = Field(
        default="unfused",
        description="how the loss is computed: over whole logits in fp32, in one kernel that puts gradients in their "
        "place (Megatron --cross-entropy-loss-fusion), or in chunks that are never whole at once",
    )
    expandable_segments: bool = Field(
        default=False, description="PyTorch's allocator grows its segments (PYTORCH_CUDA_ALLOC_CONF)"
    )
    offload: Literal["none", "optimizer", "parameters"] = Field(
        default="none", description="states that the host's memory holds instead of the GPU's"
    )
    adapter_rank: Count | None = Field(
        default=None, description="rank of the adapters of lora and qlora; 16 is assumed if absent"
    )
    tokens: Tokens | None = Field(default=None, description="target work")
    deadline: Duration | None = Field(default=None, description="until the target work is done")
    mfu: PositiveShare | None = Field(
        default=None, description="model FLOP utilisation, if known; else from the catalogue"
    )
    step_time: Duration | None = Field(default=None, description="of one optimizer step, if known")
    data: Text | None = Field(default=None, description="store that holds the dataset")
    checkpoint: Checkpoint | None = Field(default=None, description="how progress is kept")


class Payload(Section):
    """What every replica must load before it works, and how fast."""

    size: Bytes | None = Field(default=None, description="per replica; the weights if absent")
    source: Text = Field(description="durable store it comes from")
    cache: Text | None = Field(default=None, description="store that caches it near the GPUs")
    within: Duration = Field(description="time in which all concurrent readers must have it")
    readers: Count | None = Field(default=None, description="concurrent readers; the replicas if absent")
    loader: WeightLoader | None = Field(
        default=None, description="how each process reads the weights; the engine's default (safetensors) if absent"
    )
    startup: Delay | None = Field(default=None, description="process and engine start beside the transfer")
    artifacts: Annotated[tuple[Artifact, ...], Strict(False)] = Field(
        default=("weights",), description="what it is made of"
    )


class Target(Section):
    """What the workload must reach. A latency without percentile is accepted here and found by review."""

    ttft: Duration | None = Field(default=None, description="time to first token, without percentile")
    ttft_p50: Duration | None = Field(default=None, description="time to first token, median")
    ttft_p95: Duration | None = Field(default=None, description="time to first token, 95th percentile")
    ttft_p99: Duration | None = Field(default=None, description="time to first token, 99th percentile")
    tpot: Duration | None = Field(default=None, description="time per output token, without percentile")
    tpot_p50: Duration | None = Field(default=None, description="time per output token, median")
    tpot_p95: Duration | None = Field(default=None, description="time per output token, 95th percentile")
    tpot_p99: Duration | None = Field(default=None, description="time per output token, 99th percentile")
    survive: Nodes | None = Field(default=None, description="nodes that may be lost with the load still carried")
    availability: Share | None = Field(default=None, description="share of time")
    detection: Duration | None = Field(default=None, description="longest time to notice a lost worker")
    recovery: Duration | None = Field(default=None, description="longest time from a loss until work goes on")
    lost_work: Delay | None = Field(default=None, description="most work lost by one failure")
    cold_start: Duration | None = Field(
        default=None, description="from the start of a replica with cold caches until it answers"
    )


class Workload(Section):
    """A workload brief: exactly one of `serve` and `train`."""

    model: Text = Field(description="Hugging Face id or a model of your own catalogue")
    revision: Text | None = Field(default=None, description="exact revision of the weights (commit)")
    image: Text | None = Field(default=None, description="container image with digest")
    pools: Texts = Field(default=(), description="pools it may run on; every GPU pool if absent")
    queue: Text | None = Field(default=None, description="queue of scheduling.queues")
    priority: Text | None = Field(default=None, description="class of scheduling.priorities")
    gpus: Texts = Field(default=(), description="GPU models that are acceptable")
    goal: Goal | None = Field(
        default=None,
        description="what a layout that the planner chooses is best in: cost per token, latency (time per token), "
        "throughput per GPU, or domain (fewest GPUs that one failing node stops); cost if absent",
    )
    serve: Serve | None = Field(default=None, description="for online inference")
    train: Train | None = Field(default=None, description="for training or fine-tuning")
    payload: Payload | None = Field(default=None, description="what every replica loads")
    target: Target | None = Field(default=None, description="what must be reached")
    network_sensitivity: Sensitivity | None = Field(
        default=None, description="how much work slows down with the network"
    )
    storage_sensitivity: Sensitivity | None = Field(default=None, description="how much work slows down with storage")
    operations_boundary: Text | None = Field(default=None, description="who runs what, up to where")
    denominator: Text | None = Field(default=None, description="business unit that is paid for, such as accepted Mtok")
    pattern: Literal["steady", "diurnal", "bursty"] | None = Field(default=None, description="load over time")
    needs: Literal["outputs", "control", "data-residency", "own-weights"] | None = Field(
        default=None, description="why this is run on a cluster; `outputs` means any API would do"
    )
    model_changes_every: Duration | None = Field(default=None, description="how often the model is replaced")

    @property
    def kind(self) -> Literal["inference", "training", "unknown"]:
        """What the brief describes."""
        if self.serve is not None:
            return "inference"
        return "training" if self.train is not None else "unknown"
