"""What a plan says: frozen values whose numbers are figures.

Whatever cannot be planned is an `Unplanned` in the place of the result, with the reason and what is missing; it is
never an exception and never approximated in silence. Whatever is planned and does not hold is a `Misfit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from clusterwright.lib.figures import Figure
from clusterwright.physics.engines.results import Change
from clusterwright.physics.sensitivities import Swing
from clusterwright.plan.fronts import Front, TrainingFront
from clusterwright.plan.sensitivities import swings_of

Level = Literal["gpu", "node", "nodes"]


@dataclass(frozen=True, slots=True)
class Unplanned:
    """Something that could not be planned.

    Args:
        subject: dotted name of what is missing from the plan (`workloads.chat.memory`).
        reason: one sentence.
        missing: paths in the file, or catalogue entries, that would allow it.
    """

    subject: str
    reason: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Misfit:
    """Something that was planned and does not hold.

    Args:
        subject: dotted name (`workloads.chat.memory`).
        path: path in the file whose change would help most.
        message: what does not hold, with the numbers.
    """

    subject: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Layout:
    """How one replica or one job is split over GPUs; `declared` when the file says so."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    declared: bool = False
    vp: int = 1
    dcp: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of one replica or job."""
        return self.tp * self.pp * self.dp * self.cp

    def __str__(self) -> str:
        widths = {"TP": self.tp, "PP": self.pp, "DP": self.dp, "CP": self.cp, "EP": self.ep, "VP": self.vp}
        widths["DCP"] = self.dcp
        return " ".join(f"{name}{width}" for name, width in widths.items() if width > 1) or "TP1"


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Memory of the fullest GPU.

    Args:
        method: whose budget rules were followed (`vllm 0.11`, `fsdp`).
        parts: (label, GiB) in the order of a stacked bar; for inference the last one is the KV cache at the load.
        total: sum of the parts, GiB.
        usable: what the parts may fill, GiB (for vLLM: share × reported total).
        reported: total memory as a program sees it, GiB.
        fits: total ≤ usable and one sequence of the longest allowed length fits.
        why: why it does not fit, in the engine's terms; empty where it does, and for training.
        kv_bytes_per_token: per GPU; None for training.
        kv_pool: KV cache that is left after everything else, GiB; None for training.
        kv_tokens: tokens that the pool of one replica holds; None for training.
        max_concurrency: sequences of mean length that one replica holds; None for training.
        max_context: longest sequence that one replica can serve, tokens; None for training.
        sequences: that the engine runs at a time on one attention group; None for training.
        changes: what would make it fit, best first; empty where it fits.
        flags: command line of the engine that realises the plan; extra_config the file beside it.
    """

    method: str
    parts: tuple[tuple[str, Figure], ...]
    total: Figure
    usable: Figure
    reported: Figure
    fits: bool
    kv_bytes_per_token: Figure | None = None
    kv_pool: Figure | None = None
    kv_tokens: Figure | None = None
    max_concurrency: Figure | None = None
    notes: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    max_context: Figure | None = None
    sequences: Figure | None = None
    changes: tuple[Change, ...] = ()
    flags: tuple[str, ...] = ()
    extra_config: str = ""


@dataclass(frozen=True, slots=True)
class PlacementChoice:
    """One way to place a replica or job: in a GPU, in a node, over nodes.

    Args:
        reason: why it was chosen, or why not.
        failure_domain: what one failure takes down.
        memory_total: GiB on the fullest GPU, None where it could not be computed.
    """

    level: Level
    layout: Layout
    feasible: bool
    chosen: bool
    reason: str
    failure_domain: str
    memory_total: Figure | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """GPUs of one node given to one replica (training: replica 0) of a workload."""

    workload: str
    replica: int
    pool: str
    node: str
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LossPlan:
    """What is left of a workload after nodes are lost.

    Args:
        nodes_lost: how many.
        worst: the nodes whose loss hurts this workload most.
        surviving: replicas that run on without being moved (training: 1 when untouched).
        placeable: replicas that run after everything was placed again on what is left, by priority.
        needed: replicas that carry the declared load (training: 1).
        capacity: req/s of the surviving replicas; None for training or when no rate is known.
        carries: whether the load is carried (inference: by the surviving replicas; training: it can be placed again).
        reason: one sentence.
    """

    nodes_lost: int
    worst: tuple[str, ...]
    surviving: int
    placeable: int
    needed: int
    capacity: Figure | None
    carries: bool
    reason: str


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


#: Each kind of link of a payload's way in words.
LINK_WORDS: Final[dict[str, str]] = {
    "source": "source",
    "network": "network",
    "cache": "cache",
    "nic": "storage adapters",
    "pcie": "GPUs' host links",
    "memory": "host memory",
    "loader": "loader",
}


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """One link on the way of a payload: a store, the network, or what the nodes let pass (`plan/host_paths.py`).

    Args:
        path: path in the file of what it is.
        rate: GB/s for all concurrent readers together.
        time: s for all bytes through this link alone.
        enough: rate ≥ required.
    """

    kind: Literal["source", "network", "cache", "nic", "pcie", "memory", "loader"]
    path: str
    rate: Figure
    time: Figure
    enough: bool

    @property
    def words(self) -> str:
        """The kind of link as people say it."""
        return LINK_WORDS[self.kind]


@dataclass(frozen=True, slots=True)
class PayloadPlan:
    """What all replicas must load before they work.

    Args:
        size: GB per reader.
        required_rate: GB/s; bytes of all concurrent readers ÷ allowed time.
        links: every link whose rate is known.
        binding: the slowest link on the way from the source, None if none is known.
        time: s through the way from the source: its slowest link.
        time_cached: s from the cache, None without one.
        startup: s of process and engine start beside the transfer.
        cold_start: s from the source until the replicas work; cold_start_cached the same from the cache.
        target: declared cold start, s.
        node_class: class of NVIDIA's reference node (good, better, best) that the way reaches per node, "" if unknown.
        unknown: links whose rate the file does not give, with the path that would.
        rate_for_target: GB/s that the way must give for the declared cold start; None without one.
    """

    size: Figure
    readers: Figure
    required_rate: Figure
    within: Figure
    links: tuple[LinkPlan, ...]
    binding: LinkPlan | None
    time: Figure | None
    time_cached: Figure | None
    startup: Figure
    cold_start: Figure | None
    cold_start_cached: Figure | None
    target: Figure | None
    meets_rate: bool | None
    meets_target: bool | None
    node_class: str = ""
    unknown: tuple[Unplanned, ...] = ()
    rate_for_target: Figure | None = None


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


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """GPUs that the target work needs.

    Args:
        target_work: work per month (inference) or of the whole run (training), in `unit`.
        useful_per_gpu_month: work of one paid GPU-month, of which only the declared useful share works.
        gpu_months: paid GPU-months, target_work ÷ useful_per_gpu_month.
    """

    unit: str
    target_work: Figure
    useful_per_gpu_month: Figure
    gpu_months: Figure


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """Everything planned for one workload.

    Args:
        gpu: catalogue name of the GPU of the pool it is planned on, "" if none.
        replicas_wanted: declared, else what load and failures need; 1 for training.
        replicas_placed: of those, placed together with all other workloads.
        layouts: all that it could have, None where none could be searched.
    """

    name: str
    kind: Literal["inference", "training", "unknown"]
    model: str
    pool: str
    gpu: str
    layout: Layout | None
    replicas_wanted: int
    replicas_placed: int
    memory: MemoryPlan | Unplanned
    choices: tuple[PlacementChoice, ...]
    placement: tuple[Assignment, ...]
    service: ServicePlan | Unplanned | None = None
    training: TrainingPlan | Unplanned | None = None
    payload: PayloadPlan | Unplanned | None = None
    checkpoint: CheckpointPlan | Unplanned | None = None
    capacity: CapacityPlan | Unplanned | None = None
    layouts: Front | TrainingFront | None = None

    @property
    def chosen(self) -> PlacementChoice | None:
        """The placement choice that the plan uses."""
        return next((c for c in self.choices if c.chosen), None)

    @property
    def wanted_gpus(self) -> int:
        """GPUs of all replicas, or of all prefill and decode workers, that it should have; 0 without a layout."""
        if isinstance(self.service, ServicePlan) and self.service.split is not None:
            return self.service.split.gpus
        return self.replicas_wanted * self.layout.gpus if self.layout is not None else 0


@dataclass(frozen=True, slots=True)
class SparesPlan:
    """Spare nodes of a pool.

    Args:
        declared: spares that the file keeps.
        repair: days until a failed node is back.
        needed: (probability that all working nodes are whole, spares that it takes).
    """

    declared: int
    repair: Figure
    needed: tuple[tuple[float, Figure], ...]

    @property
    def reached(self) -> float | None:
        """The highest probability that the declared spares reach, None below all."""
        return max((target for target, figure in self.needed if self.declared >= figure.value), default=None)


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A pool that has GPUs, how many of them the workloads take, and the spares that its working nodes need."""

    name: str
    nodes: tuple[str, ...]
    gpu: str
    gpus_per_node: int
    domain_gpus: int
    used: int
    spares: SparesPlan | None = None

    @property
    def gpus(self) -> int:
        """GPUs of the pool."""
        return len(self.nodes) * self.gpus_per_node


@dataclass(frozen=True, slots=True)
class CollectivePlan:
    """Bus bandwidth of one collective over some nodes of a pool.

    Args:
        bound: GB/s busbw that nothing on this transport can exceed.
        reference: GB/s busbw of a flat ring: more means look again, far less means look for the cause.
        expected: GB/s busbw of a message of 1 GiB; None where nobody measured the inside of such a domain.
    """

    pool: str
    operation: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
    nodes: int
    bound: Figure
    reference: Figure
    expected: Figure | None = None


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """Collective bounds per pool, and what kept others from being computed."""

    collectives: tuple[CollectivePlan, ...] = ()
    unknown: tuple[Unplanned, ...] = ()


@dataclass(frozen=True, slots=True)
class AlternativeCost:
    """The same accepted unit bought another way.

    Args:
        unit_cost: in the workload's denominator.
        break_even: useful share of our paid GPU time at which ours costs the same; above 1 it never does.
        even_price: its price (of a GPU-hour, or blended per unit) at which both cost the same.
        even_volume: accepted units a month from which our bill is the smaller one; more than our GPUs make is never.
        dated: day of its price as declared, "undated" without.
    """

    name: str
    kind: str
    unit_cost: Figure | Unplanned
    break_even: Figure | None
    note: str = ""
    even_price: Figure | None = None
    even_volume: Figure | None = None
    dated: str = ""


@dataclass(frozen=True, slots=True)
class MarketCost:
    """One accepted unit at published prices; of GPU-hours the compute alone, its band the range of the prices.

    Args:
        kind: rental, colocation, on-premises, or an API with its provider.
        dated: day of the oldest price in it.
    """

    kind: str
    unit_cost: Figure
    dated: str


@dataclass(frozen=True, slots=True)
class UnitCost:
    """Cost of one accepted unit of a workload here and in the alternatives.

    Args:
        unit_cost: what the alternatives are compared with: the higher of `declared` and `at_load`.
        declared: at the declared useful share; None where `unit_cost` is all that is known.
        at_load: of a service, at the useful share that the declared loads imply; None where that is unknown.
        share: useful share of `unit_cost` and of the alternatives.
        market: the same unit at published prices.
    """

    workload: str
    denominator: str
    unit_cost: Figure
    alternatives: tuple[AlternativeCost, ...] = ()
    declared: Figure | None = None
    at_load: Figure | None = None
    share: Figure | None = None
    market: tuple[MarketCost, ...] = ()

    @property
    def swings(self) -> tuple[Swing, ...]:
        """Inputs of the unit cost between the ends of their bands, widest first."""
        return swings_of(self.unit_cost)

    @property
    def at_declared(self) -> Figure:
        """The cost at the declared useful share."""
        return self.declared or self.unit_cost


@dataclass(frozen=True, slots=True)
class EconomicsPlan:
    """What a month costs and what it yields.

    Args:
        lines: (label, money per month); compute is split into useful, idle, retries and failed, so the lines add up.
        total: money per month.
        paid_gpu_hours: per month.
        utilisation: useful share of paid GPU time that unit costs are computed with.
        implied_utilisation: share that the declared loads alone would use, None if unknown.
        useful_gpu_hour: money per useful GPU-hour.
    """

    currency: str
    lines: tuple[tuple[str, Figure], ...]
    total: Figure
    paid_gpu_hours: Figure
    utilisation: Figure
    implied_utilisation: Figure | None
    useful_gpu_hour: Figure
    units: tuple[UnitCost | Unplanned, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumed leaf and the figure it moves most.

    Args:
        effect: relative change of `on` for a 10 % change of the leaf.
        on: name of the figure.
    """

    leaf: Figure
    effect: float
    on: str


@dataclass(frozen=True)
class Plan:
    """The plan of a whole architecture.

    Args:
        payload_rate: GB/s when every workload loads at once, None without payloads.
        figures: every figure of the plan by dotted name; `explain` finds its trees here.
        assumptions: assumed leaves of the headline figures, largest effect first.
        misfits: what does not hold.
        unplanned: what could not be planned, from all parts.
        limits: what this form of the planner does not model, where it matters for this file.
        compute_month: money per month of the pools with GPUs; known from their prices even without economics.
    """

    cluster: str
    workloads: tuple[WorkloadPlan, ...]
    pools: tuple[PoolPlan, ...]
    network: NetworkPlan
    payload_rate: Figure | None
    economics: EconomicsPlan | Unplanned
    figures: Mapping[str, Figure] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    unplanned: tuple[Unplanned, ...] = ()
    limits: tuple[str, ...] = ()
    compute_month: Figure | None = None

    def workload(self, name: str) -> WorkloadPlan | None:
        """The plan of one workload by name."""
        return next((w for w in self.workloads if w.name == name), None)

    @property
    def fronts(self) -> tuple[Front | TrainingFront, ...]:
        """Layouts of every workload that could be searched."""
        return tuple(w.layouts for w in self.workloads if w.layouts is not None)

    @property
    def fits(self) -> bool:
        """Whether everything that was planned holds."""
        return not self.misfits
