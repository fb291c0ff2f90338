"""Load and latency of a service: its curve, its workers where they are apart, the replicas that carry it."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.lib.figures import Figure
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What requests meet while so many are in flight: means of a closed loop, as benchmarks run it.

    Args:
        requests_s: that are completed per second.
    """

    concurrency: float
    ttft_s: float
    tpot_s: float
    requests_s: float


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """Latency against concurrency of one replica, or of prefill and decode workers together.

    Args:
        points: from one request in flight to as many as cache and engine hold.
        within: the largest concurrency whose means keep the declared targets (0 where one alone misses them); None
            without targets.
        gpus: that all this takes.
        basis: what the constants of the speed were held to.
    """

    points: tuple[LoadPoint, ...]
    within: int | None
    gpus: int
    basis: str


@dataclass(frozen=True, slots=True)
class WorkersPlan:
    """One half of a disaggregated service.

    Args:
        rate: req/s that one worker carries within the target of its half.
        needed: workers for the load; wanted: as declared, or with the declared losses; placed.
    """

    layout: Layout
    memory: MemoryPlan | Unplanned
    rate: Figure
    needed: int
    wanted: int
    placed: int


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Prefill and decode on workers of their own.

    Args:
        handover: s until the cache of a prompt of mean length is with its decode worker, over the NICs.
        gpus: of all wanted workers. per_h: money of these GPUs an hour; per_mtok: per million output tokens at the
            declared rate; None without a price per GPU-hour.
    """

    prefill: WorkersPlan
    decode: WorkersPlan
    handover: Figure
    gpus: int
    per_h: Figure | None = None
    per_mtok: Figure | None = None


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """Load and latency of an inference workload.

    Args:
        rate: declared load, req/s.
        replica_rate: what one replica carries within the targets, req/s.
        replicas_for_load: smallest number that carries the load.
        replicas_for_failures: smallest number that still carries it after the declared losses.
        capacity: placed replicas × replica_rate, req/s.
        ttft: s at the declared load over the placed replicas, of which requests `ttft_is` says: those at the
            percentile that the target names, else the mean; None where not modelled.
        tpot: ms at that load, of which requests `tpot_is` says; an upper estimate at a percentile.
        in_flight: requests in flight per replica at that load.
        ttft_target, tpot_target: (label such as `ttft_p95`, figure) or None.
        losses: scenarios up to the declared number of nodes, at least one node where the pool has two.
        binds: target or limit that keeps a replica from carrying more; "" where its rate is not our estimate.
        prefix_reuse: share of prompt tokens that need no prefill; None where nothing is said of it.
        kept_tokens: that a step of one sequence keeps with speculation; None without.
        curve: TTFT and TPOT of a replica against concurrency; None where its speed is not estimated.
        split: prefill and decode workers where they are apart; `replica_rate` is then of a decode worker, and `curve`
            of all workers.
        rate_gpus: GPUs that `replica_rate` takes where that is not one replica: a decode worker and its share of
            prefill workers.
        costs: of the placed replicas, money per hour and per million output tokens at the declared rate; None without
            a price.
    """

    rate: Figure
    replica_rate: Figure | Unplanned
    replicas_for_load: int | None
    replicas_for_failures: int | None
    capacity: Figure | None
    ttft: Figure | None = None
    tpot: Figure | None = None
    in_flight: Figure | None = None
    ttft_target: tuple[str, Figure] | None = None
    tpot_target: tuple[str, Figure] | None = None
    losses: tuple[LossPlan, ...] = ()
    binds: str = ""
    prefix_reuse: Figure | None = None
    kept_tokens: Figure | None = None
    curve: LoadCurve | None = None
    split: SplitPlan | None = None
    rate_gpus: float | None = None
    costs: tuple[Figure, Figure] | None = None

    @property
    def unreachable(self) -> bool:
        """Whether a replica meets its latency targets at no rate at all."""
        return isinstance(self.replica_rate, Figure) and not self.replica_rate.value

    @property
    def ttft_is(self) -> str:
        """What `ttft` is of all requests: `p95` or `mean`."""
        _, _, percentile = self.ttft_target[0].partition("_") if self.ttft_target else ("", "", "")
        return percentile or "mean"

    @property
    def tpot_is(self) -> str:
        """What `tpot` is of all requests: `p95` or `mean`."""
        _, _, percentile = self.tpot_target[0].partition("_") if self.tpot_target else ("", "", "")
        return percentile or "mean"

    @property
    def ttft_met(self) -> bool | None:
        """Whether the TTFT target is met; None without one."""
        if self.ttft is None or self.ttft_target is None:
            return None
        return self.ttft.value <= self.ttft_target[1].value

    @property
    def tpot_met(self) -> bool | None:
        """Whether the TPOT target is met; None without one."""
        if self.tpot is None or self.tpot_target is None:
            return None
        return self.tpot.value / 1e3 <= self.tpot_target[1].value
