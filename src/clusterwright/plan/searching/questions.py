"""What a search is asked: a model, a pool, the work, and what is wanted most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from clusterwright.model.decoders import Decoder
from clusterwright.model.hardware import Gpu

if TYPE_CHECKING:
    from clusterwright.physics.training.recipes import Recipe

#: cost: money per unit of work. latency: time per token. throughput: work per GPU. domain: fewest GPUs that fail
#: together.
Goal = Literal["cost", "latency", "throughput", "domain"]


@dataclass(frozen=True)
class Pool:
    """GPUs of one shape.

    Args:
        gpus_per_node: of one node.
        domain_gpus: that reach each other without a NIC; may span nodes (72 of an NVL72).
        nodes: that there are; None: as many as are needed.
        nic_gbytes_s: rate of the NIC of one GPU, one direction, GB/s; None: no network between nodes is known.
        oversubscription: of the network between nodes, at least 1.
        host_gib: memory of a GPU's host, its share of the node's; None where unknown: then any number of states fits.
        price_per_gpu_h: money per GPU and hour; None where unknown.
        currency: of the price.
    """

    gpu: Gpu
    gpus_per_node: int
    domain_gpus: int
    nodes: int | None = None
    nic_gbytes_s: float | None = None
    oversubscription: float = 1.0
    host_gib: float | None = None
    price_per_gpu_h: float | None = None
    currency: str = "USD"

    @property
    def gpus(self) -> int | None:
        """GPUs of all nodes, None where there are as many as are needed."""
        return None if self.nodes is None else self.nodes * self.gpus_per_node


@dataclass(frozen=True)
class Lengths:
    """Tokens of a request.

    Args:
        mean_in, mean_out: of prompt and output.
        p95_in, p95_out: 95th percentiles, None where not stated.
        reused_share: of prompt tokens whose cache is found again (prefix reuse); 0 without.
        prompts: tokens of a trace's prompts, which then stand for the distribution in place of mean and percentile.
    """

    mean_in: float
    mean_out: float
    p95_in: float | None = None
    p95_out: float | None = None
    reused_share: float = 0.0
    prompts: tuple[float, ...] = ()

    @classmethod
    def of_trace(cls, prompts: Sequence[float], outputs: Sequence[float], reused_share: float = 0.0) -> Lengths:
        """Lengths of a trace's requests.

        Raises:
            ValueError: if there are none.
        """
        if not len(prompts) or not len(outputs):
            raise ValueError("a trace without requests")
        return cls(
            mean_in=float(np.mean(prompts)),
            mean_out=float(np.mean(outputs)),
            p95_in=float(np.quantile(prompts, 0.95)),
            p95_out=float(np.quantile(outputs, 0.95)),
            reused_share=reused_share,
            prompts=tuple(float(tokens) for tokens in prompts),
        )


@dataclass(frozen=True)
class ServingQuestion:
    """Inference.

    Args:
        engine: vllm, sglang, tensorrt-llm; `version` (major, minor), None: the newest that is modelled.
        weights: number format that the weights are served in, None: as stored.
        kv_format: of the cache; auto: what the engine takes.
        rate: req/s of the whole service; concurrency: requests in flight instead; both None: one full replica.
        ttft_s, tpot_s: targets, None without; `quantile` of requests that must meet the first (0.95), None: the mean.
        step_quantile: of requests that must meet `tpot_s`, where that is another share than the first token's.
        survive_nodes: that may be lost with the load still carried. apart: never two replicas on one node.
        replicas: that there are, None: as many as the load takes. spread: over all nodes of the pool, not the fewest;
            no more replicas are taken than the load asks for.
        max_model_len: longest sequence that must fit, None: the longest that prompt and output percentiles ask for.
        memory_share: as the engine calls it, None: its default.
        max_num_seqs, max_num_batched_tokens: of one step, None: the engine's; fewer leave more memory to the cache.
        replica_gpus_at_most: widest replica that is tried, None: all of the pool.
    """

    decoder: Decoder
    pool: Pool
    lengths: Lengths
    engine: str = "vllm"
    version: tuple[int, int] | None = None
    weights: str | None = None
    kv_format: str = "auto"
    rate: float | None = None
    concurrency: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    quantile: float | None = None
    step_quantile: float | Literal["as first"] | None = "as first"
    survive_nodes: int = 0
    apart: bool = False
    replicas: int | None = None
    spread: bool = False
    max_model_len: int | None = None
    memory_share: float | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    replica_gpus_at_most: int | None = None
    goal: Goal = "cost"

    @property
    def late(self) -> float | None:
        """Share of requests that must meet `tpot_s`, None for the mean."""
        return self.quantile if self.step_quantile == "as first" else self.step_quantile


@dataclass(frozen=True)
class Losses:
    """What a long job loses time by.

    Args:
        per_1000_node_days: failures that stop the job. restart_s: until it works again.
        write_bytes_s: of the storage that checkpoints go to, all writers together.
        asynchronous: training stops only while states are copied to the host.
    """

    per_1000_node_days: float
    restart_s: float
    write_bytes_s: float
    asynchronous: bool = False


@dataclass(frozen=True)
class TrainingQuestion:
    """Training.

    Args:
        gpus: of the job; None: the fewest that fit, or that keep the deadline; for latency the most of the pool.
        recipe: as declared; the search varies micro-batch and recomputation where `free` names them.
        tokens: target work. deadline_s: until it is done.
        memory_share: of what CUDA reports, that the estimated peak may take.
        losses: of failures and checkpoints; None: none are counted.
        release: of the software that constants are taken from, "" for the newest.
    """

    decoder: Decoder
    pool: Pool
    recipe: Recipe
    gpus: int | None = None
    tokens: float | None = None
    deadline_s: float | None = None
    losses: Losses | None = None
    memory_share: float = 1.0
    release: str = ""
    free: tuple[Literal["micro_batch", "recompute"], ...] = field(default=("micro_batch", "recompute"))
    goal: Goal = "throughput"
