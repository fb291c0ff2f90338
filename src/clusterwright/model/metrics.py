"""The metrics that a requirement may name: unit family, claim class, who can measure it and how.

Claim classes as in the design: evidence of one class never proves another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

ClaimClass = Literal["hardware-health", "data-path", "scheduled-execution", "workload-and-recovery"]
CLAIM_CLASSES: Final[tuple[ClaimClass, ...]] = (
    "hardware-health",
    "data-path",
    "scheduled-execution",
    "workload-and-recovery",
)


@dataclass(frozen=True, slots=True)
class Metric:
    """What a metric measures.

    Args:
        kind: a key of quantities.KINDS, or "count", "flag" (true/false), "text".
        claim: the class of claim it can prove.
        better: "more", "less", "equal".
        needs_size: a threshold without a message or file size says nothing.
        rehearsal: rehearsal that observes the same thing on the embedded engine, or "".
        next_step: what to run to measure it on the real cluster.
    """

    kind: str
    claim: ClaimClass
    better: Literal["more", "less", "equal"]
    next_step: str
    needs_size: bool = False
    rehearsal: Literal["", "scheduled-execution", "worker-loss"] = ""


METRICS: Final[dict[str, Metric]] = {
    "gpus_present": Metric("count", "hardware-health", "equal", "nvidia-smi -L on every node"),
    "dcgm_failures": Metric("count", "hardware-health", "less", "dcgmi diag -r 3 -j on every node"),
    "xid_errors": Metric("count", "hardware-health", "less", "dmesg or journalctl -k on every node after a load test"),
    "ecc_uncorrected": Metric("count", "hardware-health", "less", "nvidia-smi -q -d ECC on every node"),
    "ecc_uncorrected_lifetime": Metric("count", "hardware-health", "less", "nvidia-smi -q -d ECC on every node"),
    "remaps_pending": Metric(
        "count", "hardware-health", "less", "nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT on every node"
    ),
    "remap_failures": Metric("count", "hardware-health", "less", "nvidia-smi -q -d ROW_REMAPPER on every node"),
    "retired_pages": Metric("count", "hardware-health", "less", "nvidia-smi -q -d PAGE_RETIREMENT on every node"),
    "nvlink_down": Metric("count", "hardware-health", "less", "nvidia-smi nvlink -s on every node"),
    "fabric_ready": Metric("flag", "hardware-health", "equal", "nvidia-smi -q (section Fabric) on every node"),
    "gpus_throttled": Metric("count", "hardware-health", "less", "nvidia-smi -q -d PERFORMANCE under load"),
    "sxid_errors": Metric("count", "hardware-health", "less", "dmesg or journalctl -k on every node after a load test"),
    "gpus_lost": Metric("count", "hardware-health", "less", "dmesg or journalctl -k on every node after a load test"),
    "pcie_errors": Metric("count", "hardware-health", "less", "dmesg or journalctl -k on every node after a load test"),
    "memory_errors": Metric(
        "count", "hardware-health", "less", "dmesg or journalctl -k on every node after a load test"
    ),
    "driver_version": Metric("text", "hardware-health", "equal", "nvidia-smi -q on every node"),
    "ib_links_up": Metric("count", "hardware-health", "equal", "ibstat on every node"),
    "ib_port_rate": Metric("bit rate", "hardware-health", "more", "ibstat on every node"),
    "ib_symbol_errors": Metric(
        "event rate", "hardware-health", "less", "read the port counters twice, an hour of load apart, on every node"
    ),
    "ib_link_downs": Metric(
        "event rate", "hardware-health", "less", "read the port counters twice, an hour of load apart, on every node"
    ),
    "gpu_temperature_margin": Metric("count", "hardware-health", "more", "nvidia-smi -q -d TEMPERATURE under load"),
    "busbw": Metric("byte rate", "data-path", "more", "nccl-tests (all_reduce_perf) over the scope", needs_size=True),
    "algbw": Metric("byte rate", "data-path", "more", "nccl-tests (all_reduce_perf) over the scope", needs_size=True),
    "collective_errors": Metric("count", "data-path", "less", "nccl-tests with validation on (-c 1)"),
    "rdma_write": Metric("bit rate", "data-path", "more", "ib_write_bw between every pair of rails", needs_size=True),
    "gpudirect_rdma_write": Metric(
        "bit rate", "data-path", "more", "ib_write_bw --use_cuda between pairs", needs_size=True
    ),
    "rdma_read": Metric("bit rate", "data-path", "more", "ib_read_bw between every pair of rails", needs_size=True),
    "rdma_latency": Metric(
        "duration", "data-path", "less", "ib_write_lat between every pair of rails", needs_size=True
    ),
    "storage_read": Metric("byte rate", "data-path", "more", "fio or elbencho with the declared concurrent readers"),
    "storage_write": Metric("byte rate", "data-path", "more", "fio or elbencho with the declared concurrent writers"),
    "storage_read_ops": Metric("operation rate", "data-path", "more", "fio with the declared block size and readers"),
    "storage_write_ops": Metric("operation rate", "data-path", "more", "fio with the declared block size and writers"),
    "storage_read_latency_p99": Metric("duration", "data-path", "less", "fio with the declared block size and readers"),
    "storage_write_latency_p99": Metric(
        "duration", "data-path", "less", "fio with the declared block size and writers"
    ),
    "files_created": Metric("operation rate", "data-path", "more", "mdtest or elbencho from the declared clients"),
    "gds_read": Metric("byte rate", "data-path", "more", "gdsio -x 0 -I 0 after gdscheck shows no compatibility mode"),
    "gds_write": Metric("byte rate", "data-path", "more", "gdsio -x 0 -I 1 after gdscheck shows no compatibility mode"),
    "checkpoint_write": Metric("duration", "data-path", "less", "write one checkpoint from every rank of the job"),
    "checkpoint_restore": Metric("duration", "data-path", "less", "restore one checkpoint on every rank of the job"),
    "tasks_as_expected": Metric(
        "share",
        "scheduled-execution",
        "more",
        "run the placement probe as a job of the production scheduler",
        rehearsal="scheduled-execution",
    ),
    "gpus_schedulable": Metric(
        "count", "scheduled-execution", "equal", "kubectl get nodes -o json, or scontrol show node, on the scheduler"
    ),
    "nodes_schedulable": Metric(
        "count", "scheduled-execution", "equal", "kubectl get nodes -o json, or sinfo -N -l, on the scheduler"
    ),
    "image_digest": Metric("text", "scheduled-execution", "equal", "print the running image's digest from the job"),
    "checkpoint_stall": Metric("duration", "data-path", "less", "time the step that checkpoints, in the real job"),
    "payload_time": Metric("duration", "data-path", "less", "load the payload on every replica at once, caches cold"),
    "ttft": Metric("duration", "workload-and-recovery", "less", "name a percentile first, such as ttft_p95"),
    "ttft_p50": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "ttft_p95": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "ttft_p99": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "tpot": Metric("duration", "workload-and-recovery", "less", "name a percentile first, such as tpot_p95"),
    "tpot_p50": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "tpot_p95": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "tpot_p99": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "itl_p95": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "itl_p99": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "latency_p95": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "latency_p99": Metric("duration", "workload-and-recovery", "less", "vllm bench serve at the declared load"),
    "request_rate": Metric("request rate", "workload-and-recovery", "more", "vllm bench serve at the declared load"),
    "request_success": Metric("share", "workload-and-recovery", "more", "vllm bench serve at the declared load"),
    "goodput": Metric(
        "request rate", "workload-and-recovery", "more", "vllm bench serve --goodput with the declared targets"
    ),
    "output_token_rate": Metric("token rate", "workload-and-recovery", "more", "vllm bench serve at the declared load"),
    "kv_cache_tokens": Metric(
        "tokens", "workload-and-recovery", "more", "start the server as declared and read its log"
    ),
    "availability": Metric("share", "workload-and-recovery", "more", "count answered requests over the agreed period"),
    "cold_start": Metric("duration", "workload-and-recovery", "less", "start every replica with cold caches"),
    "step_time": Metric("duration", "workload-and-recovery", "less", "train 200 steps and read the log"),
    "training_rate": Metric(
        "token rate", "workload-and-recovery", "more", "train until past a checkpoint, read the log"
    ),
    "tflops_per_gpu": Metric("compute rate", "workload-and-recovery", "more", "train 200 steps and read the log"),
    "data_loading_stall": Metric(
        "share", "workload-and-recovery", "less", "train 200 steps with timers on and read the log"
    ),
    "skipped_steps": Metric("count", "workload-and-recovery", "less", "train 200 steps and read the log"),
    "checkpoints_failed": Metric(
        "count", "workload-and-recovery", "less", "train until past a checkpoint, read the log"
    ),
    "detection_time": Metric(
        "duration", "workload-and-recovery", "less", "kill one worker of the real job", rehearsal="worker-loss"
    ),
    "recovery_time": Metric(
        "duration", "workload-and-recovery", "less", "kill one worker of the real job", rehearsal="worker-loss"
    ),
    "lost_work": Metric(
        "duration", "workload-and-recovery", "less", "kill one worker of the real job", rehearsal="worker-loss"
    ),
    "load_after_loss": Metric(
        "request rate", "workload-and-recovery", "more", "drain one node under the declared load"
    ),
    "nodes_survived": Metric("nodes", "workload-and-recovery", "more", "take nodes from the running job, one by one"),
}
