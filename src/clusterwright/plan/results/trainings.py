"""Speed of a training job, and its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterwright.lib.figures import Figure
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.refusals import Unplanned


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Speed of a training workload.

    Args:
        tokens_per_s: of the whole job while it runs.
        step_time: s per optimizer step.
        mttf: mean time between failures that stop the job, h.
        goodput: share of wall time that moves the run forward (ETTR).
        time_to_target: wall time until the target tokens, h; None without a target.
        gpu_hours: of that time.
        deadline: declared, h.
        network_time: s that the network needs at least for the bytes of a step; None inside one node, and where the
            step time is declared or measured.
        upper_limit: the job leaves its node, and no network is known.
        exchange_time: s of a step that exchanges among GPUs take beside computation; None without, and where the step
            time is declared or measured.
        slow_network: the network is slower than those that the constants of the speed were fitted on.
    """

    tokens_per_s: Figure | Unplanned
    step_time: Figure | None
    mttf: Figure | None
    goodput: Figure | None
    time_to_target: Figure | None
    gpu_hours: Figure | None
    deadline: Figure | None
    meets_deadline: bool | None
    losses: tuple[LossPlan, ...] = ()
    network_time: Figure | None = None
    upper_limit: bool = False
    slow_network: bool = False
    exchange_time: Figure | None = None


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """Checkpoints: size, what they stop, how often they should be taken.

    Args:
        size: GB of one checkpoint.
        every: declared interval, s.
        write_time, restore: s through the slowest known link; write_binding, restore_binding name it.
        stall: s for which training stops per checkpoint.
        stall_share: of wall time.
        young, daly, daly_higher: optimal interval, s, for the stall and the failure rate: first orders and Daly's
            higher order.
        best: interval to take, s: Daly's higher order, when asynchronous not shorter than the write.
        waste, best_waste: share of time lost to stalls and repeated work, at the declared and at the best interval.
        ettr, ettr_exact: productive share at the declared interval, by the published formula and of the process itself.
        lost_work: most work lost by one failure, s.
    """

    size: Figure
    every: Figure
    mode: Literal["sync", "async"]
    write_time: Figure | None
    stall: Figure | None
    stall_share: Figure | None
    stall_within: Figure | None
    meets_stall: bool | None
    restore: Figure | None
    restore_within: Figure | None
    meets_restore: bool | None
    young: Figure | None
    daly: Figure | None
    waste: Figure | None
    best_waste: Figure | None
    lost_work: Figure | None
    lost_work_target: Figure | None
    meets_lost_work: bool | None
    daly_higher: Figure | None = None
    best: Figure | None = None
    ettr: Figure | None = None
    ettr_exact: Figure | None = None
    write_binding: str = ""
    restore_binding: str = ""
    unknown: tuple[Unplanned, ...] = ()
