"""Words of the field: what each means, its formula, unit and source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final


@dataclass(frozen=True, slots=True)
class Term:
    """One word of the field.

    Args:
        name: as people write it.
        long: spelled out, "" where the name is.
        means: one or two sentences.
        formula: "" where there is none.
        source: document and section.
        also: other names and spellings.
        figures: last parts of the names of a plan's figures that are such.
    """

    name: str
    long: str
    means: str
    formula: str
    source: str
    also: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


TERMS: Final[tuple[Term, ...]] = (
    # Inference.
    Term(
        "TTFT",
        "time to first token",
        (
            "From sending a request to its first output token: queueing, prefill, and the first decode step. Its "
            "percentiles are of requests."
        ),
        "waiting + prefill + first step",
        "MLPerf Inference rules, server scenario of the LLM benchmarks (TTFT, TPOT); vLLM documentation, Metrics",
        also=("first token latency",),
        figures=("ttft",),
    ),
    Term(
        "TPOT",
        "time per output token",
        (
            "Mean time between the tokens of one request after the first. The 95th percentile over requests is of "
            "those means; single gaps (ITL) scatter more."
        ),
        "(end-to-end latency − TTFT) ÷ (output tokens − 1)",
        "MLPerf Inference rules, server scenario of the LLM benchmarks (TTFT, TPOT); vLLM documentation, Metrics",
        also=("time per token",),
        figures=("tpot",),
    ),
    Term(
        "ITL",
        "inter-token latency",
        (
            "Time between two consecutive output tokens. Its mean over a request is TPOT; its percentiles are of "
            "gaps, not of requests, and show prompts of others that were computed in between."
        ),
        "",
        "vLLM documentation, Metrics (inter_token_latency); NVIDIA NIM LLM benchmarking guide, Metrics",
        also=("inter token latency", "gap"),
    ),
    Term(
        "end-to-end latency",
        "",
        "From sending a request to its last token.",
        "TTFT + TPOT × (output tokens − 1)",
        "vLLM documentation, Metrics (e2e_request_latency)",
        also=("e2e", "request latency"),
    ),
    Term(
        "prefill",
        "",
        (
            "Computing all tokens of a prompt at once, which fills the KV cache and gives the first token; limited "
            "by FLOP/s."
        ),
        "about 2 × active parameters × prompt tokens FLOP, and attention on top",
        "Sarathi-Serve, OSDI 2024, section 2; DistServe, OSDI 2024, section 2",
    ),
    Term(
        "decode",
        "",
        (
            "Making one token per sequence and step from the cache; limited by memory bandwidth, since every step "
            "reads the weights and the cache."
        ),
        "step ≥ (weights that are read + KV cache) ÷ bandwidth",
        "Sarathi-Serve, OSDI 2024, section 2; Pope et al., arXiv:2211.05102, section 2",
        figures=("step",),
    ),
    Term(
        "KV cache",
        "",
        (
            "Keys and values of all earlier tokens, kept per sequence and layer so that they are not computed "
            "again. Latent attention keeps a compressed vector instead; windows keep the last tokens only; "
            "recurrent layers a fixed state."
        ),
        "bytes per token = 2 × layers × KV heads × head dimension × bytes (grouped-query attention)",
        "PagedAttention, arXiv:2309.06180, section 3; GQA, arXiv:2305.13245",
        also=("kv", "key-value cache"),
        figures=("kv_tokens", "kv_pool", "kv_per_token"),
    ),
    Term(
        "concurrency",
        "",
        (
            "Requests in flight at a time, waiting ones included. With the rate and the time each stays it is "
            "Little's law."
        ),
        "concurrency = requests per second × seconds per request",
        "Little, Operations Research 9(3), 1961",
        also=("Little's law", "in flight"),
        figures=("in_flight", "max_concurrency"),
    ),
    Term(
        "continuous batching",
        "",
        "The engine takes new sequences into the batch at every step instead of waiting until all of a batch are done.",
        "",
        "Orca, OSDI 2022, section 3",
        also=("in-flight batching", "iteration-level scheduling"),
    ),
    Term(
        "chunked prefill",
        "",
        "A long prompt is computed in pieces that share steps with decode tokens of others, so that these wait less.",
        "",
        "Sarathi-Serve, OSDI 2024, section 4",
    ),
    Term(
        "disaggregated serving",
        "",
        (
            "Prefill and decode on workers of their own; the cache is handed over. Neither delays the other, at the "
            "price of the handover and of two kinds of workers that must be in balance."
        ),
        "handover = cache of the prompt ÷ rate between workers",
        "DistServe, OSDI 2024; Splitwise, ISCA 2024",
        also=("disaggregation", "prefill decode disaggregation", "pd disaggregation"),
    ),
    Term(
        "speculative decoding",
        "",
        "A cheap draft proposes tokens, one step of the model checks them all; what agrees is kept.",
        "tokens per step = 1 + accepted drafts",
        "Leviathan et al., arXiv:2211.17192; EAGLE, arXiv:2401.15077",
        also=("speculation", "mtp", "eagle", "draft model"),
    ),
    Term(
        "prefix reuse",
        "",
        "Prompts that begin alike (system prompts, turns of a conversation) find the cache of their common beginning.",
        "prefill of (1 − reused share) × prompt tokens",
        "SGLang (RadixAttention), arXiv:2312.07104, section 3; Mooncake, FAST 2025",
        also=("prefix caching", "radix cache"),
    ),
    Term(
        "cold start",
        "",
        "From starting a replica to its first answer: weights from the source, into the GPUs, the engine's start.",
        "payload ÷ slowest link of its way + start-up",
        "ServerlessLLM, OSDI 2024",
        also=("start-up",),
        figures=("cold_start", "cold_start_cached"),
    ),
    Term(
        "goodput",
        "",
        (
            "Work that counts per time. Inference: requests per second that meet all latency targets. Training: "
            "share of wall time that moves the run forward (ETTR)."
        ),
        "",
        "DistServe, OSDI 2024, section 2 (serving); arXiv:2410.21680 (training)",
        figures=("goodput", "replica_rate"),
    ),
    # Models.
    Term(
        "GQA",
        "grouped-query attention",
        (
            "Several query heads share one head of keys and values. Tensor ranks beyond the number of KV heads keep "
            "copies."
        ),
        "KV heads per rank = max(1, KV heads ÷ tensor ranks)",
        "arXiv:2305.13245",
        also=("grouped query attention", "mqa", "kv heads"),
    ),
    Term(
        "MLA",
        "multi-head latent attention",
        (
            "Keys and values are computed from one compressed vector per token, which is all that is cached, whole "
            "on every tensor rank: data-parallel attention divides it, tensor ranks do not."
        ),
        "bytes per token = layers × (latent rank + RoPE dimension) × bytes",
        "DeepSeek-V2, arXiv:2405.04434, section 2.1",
        also=("latent attention",),
    ),
    Term(
        "MoE",
        "mixture of experts",
        (
            "A router sends each token to a few of many feed-forward blocks: all of them take memory, only the "
            "chosen compute."
        ),
        "share of experts that a batch of B tokens touches = 1 − (1 − k ÷ E)^B",
        "Switch Transformers, arXiv:2101.03961; DeepSeekMoE, arXiv:2401.06066",
        also=("mixture of experts", "experts"),
    ),
    Term(
        "active parameters",
        "",
        "Parameters that one token passes through; of a mixture of experts those of the chosen experts only.",
        "",
        "DeepSeek-V3, arXiv:2412.19437, section 4.2",
    ),
    # Parallelism.
    Term(
        "TP",
        "tensor parallelism",
        "Every layer is divided over ranks that exchange in every layer; inside the NVLink (or xGMI) domain.",
        "two all-reduces of the activations per layer and pass",
        "Megatron-LM, arXiv:1909.08053, section 3",
        also=("tensor parallel", "tensor parallelism"),
    ),
    Term(
        "PP",
        "pipeline parallelism",
        "Layers are divided into stages that hand activations on; little traffic, idle time at both ends of a step.",
        "bubble = (stages − 1) ÷ (virtual stages × micro-batches + stages − 1)",
        "GPipe, arXiv:1811.06965; Narayanan et al., arXiv:2104.04473, section 2.2",
        also=("pipeline parallel", "pipeline parallelism", "bubble", "pipeline bubble"),
    ),
    Term(
        "VP",
        "virtual pipeline stages (interleaved schedule)",
        "Each rank holds several short stages, which shortens the bubble and adds traffic and activations in flight.",
        "bubble shrinks by the number of virtual stages",
        "Narayanan et al., arXiv:2104.04473, section 2.2",
        also=("interleaving", "virtual stages"),
    ),
    Term(
        "DP",
        "data parallelism",
        (
            "Copies of the model work on other data. Training: their gradients are summed once a step. Inference: "
            "replicas."
        ),
        "",
        "PyTorch Distributed, arXiv:2006.15704",
        also=("data parallel", "data parallelism"),
    ),
    Term(
        "EP",
        "expert parallelism",
        "Experts of a layer lie on different ranks; tokens travel to theirs and back.",
        "two all-to-alls per layer and pass",
        "GShard, arXiv:2006.16668; DeepSeek-V3, arXiv:2412.19437, section 3.2",
        also=("expert parallel", "expert parallelism"),
    ),
    Term(
        "CP",
        "context parallelism",
        "A sequence is divided over ranks, which pass keys and values round; for long sequences.",
        "",
        "Ring Attention, arXiv:2310.01889; Llama 3, arXiv:2407.21783, section 3.3.2",
        also=("context parallel", "context parallelism", "sequence parallelism"),
    ),
    Term(
        "DCP",
        "decode context parallelism",
        (
            "Inference: tensor ranks that would only copy KV heads each keep a part of every sequence's cache instead, "
            "and combine their attention in each step."
        ),
        "",
        "vLLM documentation, Context Parallel Deployment (decode context parallel)",
        also=("decode context parallel",),
    ),
    Term(
        "attention DP",
        "data-parallel attention",
        (
            "Inference: attention runs as copies with their own requests and caches, the experts over all ranks. "
            "Keeps caches that tensor ranks would only copy (MLA, few KV heads) from being copied."
        ),
        "",
        "SGLang documentation, DP attention; TensorRT-LLM documentation, attention DP",
        also=("dp attention",),
    ),
    Term(
        "ZeRO",
        "zero redundancy optimizer",
        (
            "Data-parallel ranks share optimizer states (1), gradients too (2), weights too (3, also FSDP) instead "
            "of copying."
        ),
        "bytes per parameter with mixed-precision Adam: 4 + 12 ÷ N, 2 + 14 ÷ N, 16 ÷ N",
        "arXiv:1910.02054, section 3; PyTorch FSDP, arXiv:2304.11277",
        also=("fsdp", "distributed optimizer", "zero1", "zero2", "zero3"),
    ),
    Term(
        "recomputation",
        "",
        "Activations are not kept but computed again in the backward pass: less memory, up to a third more work.",
        "",
        "Korthikanti et al., arXiv:2205.05198, section 5",
        also=("activation checkpointing", "recompute", "gradient checkpointing"),
    ),
    # Memory of a GPU, and parts of a step, as pages name them.
    Term(
        "activations",
        "",
        (
            "Values between layers. Inference: the largest pass and the sampler's logits, measured at start. "
            "Training: what the backward pass needs, for every micro-batch in flight."
        ),
        "",
        "vLLM, v1/worker/gpu_worker (profile run); Korthikanti et al., arXiv:2205.05198, section 4",
    ),
    Term(
        "outside PyTorch",
        "",
        "Memory that PyTorch's allocator does not see: NCCL's buffers and workspaces of kernels.",
        "",
        "vLLM, v1/worker/gpu_worker (non-torch memory); start-up logs in its issue tracker",
        also=("CUDA context and NCCL",),
    ),
    Term(
        "CUDA graphs",
        "",
        "Steps that are recorded once for each batch size and then replayed without launching every kernel anew.",
        "",
        "vLLM documentation, CUDA Graphs",
        also=("graphs",),
    ),
    Term(
        "allocator reserve",
        "",
        "What PyTorch's allocator holds beyond what is in use at the peak, since freed pieces do not fit new ones.",
        "reserved ÷ allocated − 1",
        "PyTorch documentation, CUDA semantics, memory management",
    ),
    Term(
        "layer at work",
        "gathered layers",
        (
            "Training: what lives only while one layer is computed: its recomputed or temporary values, and under "
            "sharding its weights gathered from all ranks."
        ),
        "",
        "PyTorch FSDP, arXiv:2304.11277, section 3",
    ),
    Term(
        "elementwise passes",
        "",
        "Training: norms, activation functions, dropout, residual sums: bound by memory bandwidth, not by products.",
        "bytes moved ÷ reached bandwidth",
        "docs/planning.md",
    ),
    Term(
        "launches",
        "",
        "Time per layer that neither products nor bytes explain: starting kernels, waiting for the host.",
        "",
        "docs/planning.md",
    ),
    Term(
        "micro-batch",
        "",
        "Sequences that one pass through the model takes; a step runs as many passes as its batch needs.",
        "sequences a step ÷ (data-parallel ranks × sequences a pass)",
        "GPipe, arXiv:1811.06965; Megatron-LM, arXiv:2104.04473, section 2",
    ),
    Term(
        "LoRA",
        "low-rank adaptation",
        ("Fine-tuning that trains two thin matrices beside each frozen one; QLoRA holds the frozen ones in 4 bits."),
        "rank × (inputs + outputs) parameters a matrix",
        "arXiv:2106.09685; QLoRA, arXiv:2305.14314",
        also=("QLoRA", "adapters", "rank"),
    ),
    # Training speed and failures.
    Term(
        "MFU",
        "model FLOP utilisation",
        (
            "Share of the dense peak that the model's own work makes; recomputation does not count (with it: HFU). "
            "Says nothing without the precision whose peak it is of."
        ),
        "tokens per second × model FLOP per token ÷ (GPUs × peak FLOP/s)",
        "PaLM, arXiv:2204.02311, appendix B",
        also=("model flops utilization", "hfu"),
        figures=("mfu",),
    ),
    Term(
        "ETTR",
        "effective training time ratio",
        "Share of a run's wall time in which it moves forward: without waiting after failures, lost work, checkpoints.",
        (
            "about (1 − N·r·(u₀ + Δt ÷ 2)) ÷ (1 + w ÷ Δt); N nodes, r failures per node and time, u₀ restart, Δt "
            "interval, w stall"
        ),
        "arXiv:2410.21680 (expected ETTR)",
        also=("effective training time",),
        figures=("ettr", "ettr_exact", "goodput"),
    ),
    Term(
        "MTTF",
        "mean time to failure",
        "Mean time until something that stops the job fails; of a job it falls with its nodes.",
        "1 ÷ (nodes × failures per node and time)",
        "arXiv:2410.21680 (failure rates of two research clusters)",
        also=("mtbf", "mean time between failures", "failure rate"),
        figures=("mttf",),
    ),
    Term(
        "checkpoint interval",
        "",
        (
            "Time between checkpoints. Too short stalls, too long loses work; the optimum follows from the stall "
            "and the MTTF."
        ),
        "Young √(2wM); Daly √(2wM) − w; w stall, M mean time to failure",
        "Young, CACM 17(9), 1974; Daly, FGCS 22(3), 2006",
        also=("young", "daly", "checkpoint"),
        figures=("young", "daly", "best"),
    ),
    Term(
        "spares",
        "",
        "Nodes kept free so that a job finds whole nodes again while failed ones are repaired.",
        "smallest k with P[Binomial(N + k, MTTR ÷ (MTBF + MTTR)) ≤ k] ≥ target",
        "Binomial availability of k-out-of-n systems: Trivedi, Probability and Statistics, 2nd edition, 2002",
        also=("spare nodes",),
        figures=("spares",),
    ),
    # Network.
    Term(
        "algbw",
        "algorithm bandwidth",
        "Bytes of a collective's buffer ÷ its time. Falls with the number of ranks where the hardware does not.",
        "size ÷ time",
        "nccl-tests, doc/PERFORMANCE.md",
        also=("algorithm bandwidth",),
    ),
    Term(
        "busbw",
        "bus bandwidth",
        (
            "What the busiest link carries in a ring: comparable with the hardware's rate whatever the number of "
            "ranks. In-network reduction (NVLS, SHARP) can exceed it."
        ),
        "algbw × 2(n − 1) ÷ n (all-reduce); × (n − 1) ÷ n (all-gather, reduce-scatter, all-to-all)",
        "nccl-tests, doc/PERFORMANCE.md",
        also=("bus bandwidth",),
        figures=("bound", "reference", "expected"),
    ),
    Term(
        "scale-up domain",
        "",
        (
            "GPUs that reach each other without a NIC: over NVLink and NVSwitch, or xGMI; 8 of an HGX board, 72 of "
            "an NVL72."
        ),
        "",
        "NVIDIA DGX H100 user guide; GB200 NVL72 datasheet",
        also=("nvlink domain", "nvlink", "nvswitch", "xgmi"),
    ),
    Term(
        "rail",
        "",
        "GPU i of every node is on leaf switch i, so that ranks of the same position meet one hop away.",
        "",
        "NVIDIA DGX SuperPOD reference architecture, compute fabric",
        also=("rail-optimised", "rail-optimized", "pxn"),
    ),
    Term(
        "oversubscription",
        "",
        "Rate into a switch from below ÷ rate out of it above; 1 is non-blocking.",
        "ports down × rate ÷ (ports up × rate)",
        "Al-Fares et al., SIGCOMM 2008, section 2",
        also=("non-blocking", "blocking factor"),
    ),
    Term(
        "GPUDirect RDMA",
        "",
        "A NIC reads and writes GPU memory without a copy through the host's memory.",
        "",
        "NVIDIA GPUDirect RDMA documentation",
        also=("gdr", "gpudirect"),
    ),
    Term(
        "SHARP",
        "scalable hierarchical aggregation and reduction protocol",
        "Switches add up: of InfiniBand between nodes; NVLink SHARP (NVLS) in an NVSwitch.",
        "",
        "Graham et al., COMHPC 2016; NCCL release notes 2.17 (NVLS)",
        also=("nvls", "in-network reduction"),
    ),
    # Sharing and operation.
    Term(
        "failure domain",
        "",
        "What one failure takes down together: a GPU, a node, a rack with its switch or its power.",
        "",
        "Kubernetes documentation, topology; DGX SuperPOD reference architecture",
    ),
    Term(
        "gang scheduling",
        "",
        "All tasks of a job start together or none does, so that no job holds GPUs while it waits for the rest.",
        "",
        "Ousterhout, ICDCS 1982; Kueue documentation, all-or-nothing",
        also=("gang", "all or nothing"),
    ),
    Term(
        "backfill",
        "",
        (
            "A job further back starts early where that delays none (conservative), or not the first (EASY), of "
            "those ahead."
        ),
        "",
        "Mu'alem and Feitelson, IEEE TPDS 12(6), 2001; Slurm documentation, sched/backfill",
        also=("easy backfill",),
    ),
    Term(
        "fair share",
        "",
        "Who used less than their share goes first; past use counts less the older it is.",
        "Slurm's classic factor: 2^(−usage ÷ share)",
        "Slurm documentation, multifactor priority and fair tree",
        also=("fairshare",),
    ),
    # Money.
    Term(
        "useful share",
        "",
        "Part of paid GPU time that makes accepted work; the rest is idle, retried or failed. Allocated is not useful.",
        "",
        "Hu et al., NSDI 2024 (a cluster's GPU time by how its jobs end)",
        also=("utilisation", "utilization", "useful utilisation"),
        figures=("utilisation", "implied_utilisation"),
    ),
    Term(
        "unit cost",
        "",
        "Money per accepted unit of work: everything that is paid ÷ what was accepted.",
        "cost of a useful GPU-hour × GPU-hours per unit ÷ accepted share",
        "FinOps Framework, Unit economics",
        also=("cost per token", "tco"),
        figures=("unit_cost",),
    ),
    Term(
        "PUE",
        "power usage effectiveness",
        "Energy of the whole site ÷ energy of its IT.",
        "facility kW ÷ IT kW",
        "ISO/IEC 30134-2:2016",
    ),
    Term(
        "capital recovery factor",
        "",
        "Yearly payment that pays a purchase with interest back over its life.",
        "i ÷ (1 − (1 + i)^−n); 1 ÷ n without interest",
        "Annuity formula",
        also=("crf", "annuity", "depreciation"),
    ),
    Term(
        "break-even",
        "",
        "Useful share, price or volume at which two ways to get the same unit cost the same.",
        "",
        "FinOps Framework, Unit economics",
        also=("break even",),
        figures=("break_even",),
    ),
    # How numbers are said.
    Term(
        "band",
        "",
        (
            "Factors on an estimate between which measurements of its validation set lie; docs/accuracy.md says "
            "which set. An estimate without one was not validated."
        ),
        "value × low to value × high",
        "docs/accuracy.md",
        also=("error band",),
    ),
    Term(
        "replica",
        "",
        "One copy of a service with all its weights: the GPUs that together answer a request.",
        "load ÷ what one carries within its targets, rounded up",
        "docs/planning.md",
        also=("replicas",),
    ),
    Term(
        "Mtok",
        "million tokens",
        "Money per Mtok out counts generated tokens alone, per Mtok in and out prompts as well.",
        "money per hour ÷ (tokens per second × 3,600 ÷ 10⁶)",
        "docs/fit.md",
        also=("per Mtok",),
    ),
    Term(
        "shelf life",
        "",
        "How long a published figure is taken as current: rents and API prices 90 days, datasheets for ever.",
        "",
        "docs/planning.md, How long a number stays good",
    ),
    Term(
        "origin",
        "",
        (
            "Where a number came from, weakest first: assumed, rehearsed, catalogue, declared, measured. A computed "
            "number has the weakest origin among the numbers that carry it."
        ),
        "",
        "docs/planning.md",
        also=("assumed", "rehearsed", "measured", "declared"),
    ),
    Term(
        "percentile",
        "",
        (
            "p95 of a latency: 95 of 100 requests are at most so slow. Says more than a mean only with as many "
            "measurements as its tail needs; a mean below a target proves no percentile."
        ),
        "",
        "Hyndman and Fan, The American Statistician 50(4), 1996",
        also=("p50", "p90", "p95", "p99", "quantile"),
    ),
)


def _fold(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


_BY_NAME: Final[dict[str, Term]] = {_fold(n): t for t in TERMS for n in (*t.also, t.long, t.name) if n}


#: A part of a layout with its number of ranks, such as TP4 or ATTENTION_DP32.
_RANKS: Final = re.compile(r"(attention_?dp|dcp|[tpdecv]p)\d+", re.IGNORECASE)


def find_term(name: str) -> Term | None:
    """The term of that name, spelling or long form, whatever its case, or of a layout's part; None if there is none."""
    part = _RANKS.fullmatch(name.strip())
    return _BY_NAME.get(_fold(part[1] if part else name))


def nearest_terms(name: str, count: int = 3) -> tuple[str, ...]:
    """Names of the terms most like a wrong one, nearest first."""
    folded = _fold(name)
    near = [key for key in _BY_NAME if len(folded) > 2 and folded in key]
    near += get_close_matches(folded, _BY_NAME, n=count, cutoff=0.6)
    return tuple(dict.fromkeys(_BY_NAME[key].name for key in near))[:count]


def terms_of_figure(name: str) -> tuple[Term, ...]:
    """Terms that a figure of a plan is one of, by the last part of its name."""
    last = name.rpartition(".")[2]
    return tuple(term for term in TERMS if last in term.figures)
