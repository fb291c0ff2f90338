"""What the command line of a replica needs besides where the replica takes several nodes.

Sources: vLLM documentation, Data Parallel Deployment (internal load balancing; Ray's pack strategy `span`) and
Parallelism and Scaling (`--nnodes`); vllm-project/vllm#23691 (multiprocessing over nodes, also data-parallel ranks that
span nodes); SGLang documentation, Multi-Node Deployment; TensorRT-LLM documentation, trtllm-serve, Multi-node Serving
with Slurm (`trtllm-llmapi-launch`).
"""

from __future__ import annotations

import math
from typing import Final

from clusterwright.physics.engines.releases import NEWEST
from clusterwright.physics.layouts import Layout
from clusterwright.plan.fitting.serving import ServingFit

#: First vLLM that runs the ranks of one engine on several nodes without Ray.
_WITHOUT_RAY_SINCE: Final = (0, 12)
#: What stands for the address of the first node.
_FIRST: Final = "FIRST_NODE"


def over_nodes(fit: ServingFit) -> str:
    """How the command is started on the nodes of one replica, "" where a node holds it."""
    question = fit.question
    return started_over(fit.chosen.layout, question.pool.gpus_per_node, question.engine, question.version)


def started_over(layout: Layout, node: int, engine: str, version: tuple[int, int] | None) -> str:
    """The same of a layout on nodes of so many GPUs, under an engine of this version."""
    nodes = math.ceil(layout.gpus / node)
    if nodes == 1:
        return ""
    how = {"vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _trtllm}[engine](
        layout, node, nodes, version or NEWEST[engine]
    )
    return f"One replica takes {nodes} nodes: {how}"


def _vllm(layout: Layout, node: int, nodes: int, version: tuple[int, int]) -> str:
    rank_gpus = layout.gpus // layout.dp
    if layout.dp > 1 and node % rank_gpus == 0:
        return _data_parallel(layout.dp, node // rank_gpus, nodes)
    if layout.dp > 1:
        return (
            "join them in a Ray cluster, and run the command on one, with --data-parallel-backend ray and"
            " VLLM_RAY_DP_PACK_STRATEGY=span in the environment."
        )
    if version < _WITHOUT_RAY_SINCE:
        return "join them in a Ray cluster, and run the command on one, with --distributed-executor-backend ray."
    return (
        f"run the command on each, with --nnodes {nodes} --node-rank {_ranks(nodes)} --master-addr {_FIRST}, and"
        " on all but the first with --headless."
    )


def _data_parallel(ranks: int, local: int, nodes: int) -> str:
    first = range(local, ranks, local)
    starts = ", ".join(map(str, first)) if len(first) < 4 else f"{first[0]}, {first[1]}, … {first[-1]}"
    last = ranks - (nodes - 1) * local
    fewer = f" (the last node {last})" if last != local else ""
    return (
        f"run the command on each, with --data-parallel-size-local {local}{fewer} --data-parallel-address {_FIRST}"
        " --data-parallel-rpc-port 13345, and on all but the first with --headless"
        f" --data-parallel-start-rank {starts}."
    )


def _sglang(layout: Layout, node: int, nodes: int, version: tuple[int, int]) -> str:
    return (
        f"run the command on each, with --nnodes {nodes} --node-rank {_ranks(nodes)} --dist-init-addr {_FIRST}:20000."
    )


def _trtllm(layout: Layout, node: int, nodes: int, version: tuple[int, int]) -> str:
    return (
        f"run the command as {layout.gpus} MPI ranks, {min(node, layout.gpus)} on each, behind trtllm-llmapi-launch"
        f" (srun --mpi=pmix -N {nodes} -n {layout.gpus} trtllm-llmapi-launch trtllm-serve …)."
    )


def _ranks(nodes: int) -> str:
    return "0 or 1" if nodes == 2 else f"0 to {nodes - 1}"
