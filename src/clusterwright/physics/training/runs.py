"""A whole training run: days to a number of tokens, what checkpoints and failures take of them.

Source of the interval and of goodput: `physics.failures`.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.scales import DAY_S
from clusterwright.physics.failures import daly_higher_s, ettr_exact, mttf_h
from clusterwright.physics.training.states import checkpoint_bytes


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """How checkpoints are written.

    Args:
        write_bytes_s: of the storage, all writers together.
        asynchronous: training stops only while states are copied to the host.
        host_bytes_s: per GPU to its host (PCIe generation 5: 55 GB/s of 64).
        interval_s: None for the best one (Daly).
    """

    write_bytes_s: float
    asynchronous: bool = False
    host_bytes_s: float = 55e9
    interval_s: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A run to its end.

    Args:
        ideal_days: without checkpoints and failures; days: with them.
        stall_s: for which one checkpoint stops training; write_s: until it is on storage.
        goodput: ideal ÷ real time.
    """

    ideal_days: float
    days: float
    checkpoint_bytes: float
    stall_s: float
    write_s: float
    interval_s: float
    mttf_h: float
    goodput: float


def plan_run(
    tokens: float,
    tokens_per_s: float,
    parameters: float,
    gpus: int,
    nodes: float,
    per_1000_node_days: float,
    restart_s: float,
    checkpointing: Checkpointing,
) -> Run:
    """Time and goodput of a run.

    Args:
        tokens: to train on; tokens_per_s: of the job while it works.
        per_1000_node_days: failures that stop the job; restart_s: until it works again.

    Returns:
        An interval never shorter than a checkpoint takes to be written.
    """
    size = checkpoint_bytes(parameters)
    write = size / checkpointing.write_bytes_s
    stall = size / gpus / checkpointing.host_bytes_s if checkpointing.asynchronous else write
    mttf = mttf_h(nodes, per_1000_node_days)
    best = daly_higher_s(stall, mttf * 3600) if per_1000_node_days else DAY_S
    interval = max(checkpointing.interval_s or best, write)
    goodput = ettr_exact(nodes, per_1000_node_days, restart_s, interval, stall)
    ideal = tokens / tokens_per_s / DAY_S
    days = ideal / goodput if goodput else float("inf")
    return Run(ideal, days, size, stall, write, interval, mttf, goodput)
