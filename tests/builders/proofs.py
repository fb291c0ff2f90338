"""A proof of the two-workers example with a plan whose numbers are set by hand, so that reports can be tested alone."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.judging.requirements import collect_claims
from clusterwright.judging.sites import site_of
from clusterwright.judging.verdicts import cover, judge
from clusterwright.lib.figures import Figure, Origin, derive, leaf
from clusterwright.lib.quantities import Quantity
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Check, Moment, MomentKind, Reading, Rehearsal, RehearsalOutcome
from clusterwright.model.findings import Area, Finding, Severity
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import Source
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.clusters import CollectivePlan, NetworkPlan, PoolPlan
from clusterwright.plan.results.layouts import Assignment, Layout, PlacementChoice
from clusterwright.plan.results.losses import LossPlan
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.money import AlternativeCost, CapacityPlan, EconomicsPlan, UnitCost
from clusterwright.plan.results.payloads import LinkPlan, PayloadPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.services import ServicePlan
from clusterwright.plan.results.trainings import CheckpointPlan, TrainingPlan
from clusterwright.report.proofs import LATER_STEPS, Assumption, Proof, Step, rank_assumptions
from clusterwright.review.reviewing import review_document
from clusterwright.review.reviews import Review

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "two-workers" / "cluster.yaml"
NOW = datetime.datetime(2026, 11, 30, 3, 4, 11, tzinfo=datetime.UTC)


def declared(name: str, value: float, unit: str, line: int = 1) -> Figure:
    return leaf(name, value, unit, Origin.DECLARED, f"cluster.yaml:{line}")


def assumed(name: str, value: float, unit: str, basis: str) -> Figure:
    return leaf(name, value, unit, Origin.ASSUMED, basis)


def catalogued(name: str, value: float, unit: str) -> Figure:
    return leaf(name, value, unit, Origin.CATALOGUE, "catalogue h100-sxm-80gb: NVIDIA H100 data sheet, 2024-03-01")


def example_document(text: str | None = None) -> Document:
    """The two-workers example, or a document of this text."""
    return parse_architecture(Source("cluster.yaml", text if text is not None else EXAMPLE.read_text()))


def example_proof(document: Document | None = None) -> Proof:
    """What proving the example shows: no review error, both rehearsals passed, nothing measured."""
    document = document or example_document()
    rehearsals = (scheduled_execution(), worker_loss())
    verdicts = judge(
        collect_claims(document.architecture), (), rehearsals, now=NOW, site=site_of(document.architecture)
    )
    plan = example_plan()
    return Proof(
        cluster=document.architecture.cluster.name,
        document=document,
        review=example_review(document),
        plan=plan,
        rehearsals=rehearsals,
        verdicts=verdicts,
        coverage=cover(verdicts),
        steps=(
            Step("load", "done", "cluster.yaml, 412 lines", 0.2),
            Step("review", "done", "no error, 2 warnings, 4 notes", 0.1),
            Step("plan", "done", "both workloads fit", 0.1),
            Step("rehearse scheduled execution", "done", "every task landed as declared", 6.1),
            Step("rehearse worker loss", "done", "work went on after 7.3 s", 14.0),
            Step("judge", "done", "0 of 21 required claims met", 0.0),
            *(Step(name, "not run", reason) for name, reason in LATER_STEPS),
        ),
        assumptions=tuple(Assumption(a, f, e) for a, f, e in _assumptions(plan)),
        started=NOW,
        seconds=21.4,
        version="0.1.0",
        inputs=(
            ("cluster.yaml", document.digest),
            ("catalogue", "sha256:9b1f0d2c4a6e8b7d5f3c1a0e9d8c7b6a5f4e3d2c1b0a9f8e7d6c5b4a39281706"),
        ),
        exit_code=3,
    )


def planned_proof(file: Path = EXAMPLE) -> Proof:
    """The proof of a file as planned and reviewed; its rehearsals were not run."""
    document, catalogue = load_document([file]), load_catalogue()
    plan = plan_architecture(document, catalogue)
    verdicts = judge(collect_claims(document.architecture), (), (), now=NOW, site=site_of(document.architecture))
    return replace(
        example_proof(document),
        review=review_document(document, catalogue, plan, today=NOW.date()),
        plan=plan,
        rehearsals=(
            Rehearsal("scheduled-execution", RehearsalOutcome.NOT_RUN, "left out on request"),
            Rehearsal("worker-loss", RehearsalOutcome.NOT_RUN, "left out on request"),
        ),
        verdicts=verdicts,
        coverage=cover(verdicts),
        assumptions=rank_assumptions(plan),
    )


def _assumptions(plan: Plan) -> list[tuple[Figure, Figure, float]]:
    names = ("chat.unit_cost", "chat.replica_rate", "finetune.time_to_target")
    found: dict[str, tuple[Figure, Figure, float]] = {}
    for name in names:
        for item, effect in plan.figures[name].effects:
            if item.origin is Origin.ASSUMED and effect > found.get(item.name, (item, item, 0.0))[2]:
                found[item.name] = (item, plan.figures[name], effect)
    return sorted(found.values(), key=lambda f: -f[2])


def finding(
    rule: str, severity: Severity, area: Area, path: str, message: str, document: Document, **changes: object
) -> Finding:
    """A finding at a path of the document."""
    made = Finding(
        rule,
        severity,
        area,
        path,
        document.places.of(path),
        message,
        action="write it down, or waive it with a reason and a date",
        owner=document.architecture.owners.of(area) or "",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def example_review(document: Document) -> Review:
    """Two warnings, an undecided rule, notes in several areas and a waived one."""
    warning, note = Severity.WARNING, Severity.NOTE
    said = (
        finding(
            "store-margin",
            warning,
            "storage",
            "storage.stores.object.read",
            "chat and finetune loading together need 5.1 GB/s of 20 GB/s; on the surviving path 10 GB/s are left",
            document,
        ),
        finding(
            "idle-declared-high",
            warning,
            "economics",
            "economics.shares.idle",
            "25 % of paid GPU time is declared idle, which is $0.94 of every useful GPU-hour",
            document,
        ),
        finding(
            "kernel-support",
            warning,
            "compute",
            "software.profiles.gpu-node.kernel",
            "the support matrix does not say whether kernel 6.8.0-88 carries driver 595.91.07",
            document,
            undecided=True,
        ),
        finding(
            "spares-none",
            note,
            "compute",
            "pools.gpu",
            "no spare node: a failed server is away for up to 24 h",
            document,
        ),
        finding(
            "oob-single-switch",
            note,
            "network",
            "fabric.networks.oob.failure_domain",
            "one switch carries all out-of-band access",
            document,
        ),
        finding(
            "price-age", note, "economics", "economics.alternatives.api.date", "the API price is 60 days old", document
        ),
        finding(
            "signature-scope", note, "security", "access.signing", "signing does not say which key is trusted", document
        ),
    )
    waived = finding(
        "backup-second-site",
        note,
        "storage",
        "storage.stores.object.backup",
        "only checkpoints are copied to a second site",
        document,
        waived="weights can be downloaded again; until 2027-03-31, storage@example.com",
    )
    return Review(said, (waived,), (), "build", NOW.date(), ("store-margin",), (), document.digest)


def scheduled_execution() -> Rehearsal:
    """A passed rehearsal with its checks."""
    checks = tuple(
        Check(f"{task}: {what}", expected, expected, True)
        for task, node in (("chat/0", "gpu-001"), ("chat/1", "gpu-002"), ("finetune/0", "gpu-001"))
        for what, expected in (("node", node), ("devices", "4"), ("group", "rank 0 of 1"), ("mounts", "object, nvme"))
    )
    return Rehearsal(
        "scheduled-execution",
        RehearsalOutcome.PASSED,
        "3 of 3 tasks landed as declared",
        checks=checks,
        readings=(Reading("tasks_as_expected", Quantity(1.0, (), "100%")),),
        seconds=6.1,
    )


def worker_loss() -> Rehearsal:
    """A passed rehearsal with its timeline."""

    def took(seconds: float) -> Quantity:
        return Quantity(seconds, (("s", 1),), f"{seconds:g} s")

    return Rehearsal(
        "worker-loss",
        RehearsalOutcome.PASSED,
        "the job went on from checkpoint 4 on what was left",
        workload="finetune",
        checks=(
            Check("attempt 1 fenced before attempt 2 wrote", "no overlap", "no overlap", True),
            Check("processes of attempt 1 left over", "0", "0", True),
            Check("lost node excluded", "gpu-001", "gpu-001", True),
        ),
        readings=(
            Reading("detection_time", took(2.1)),
            Reading("recovery_time", took(7.3)),
            Reading("lost_work", took(0.8)),
        ),
        timeline=(
            Moment(0.0, "control plane up, 2 virtual nodes"),
            Moment(0.9, "finetune started on gpu-001, attempt 1"),
            Moment(4.2, "checkpoint 4 written"),
            Moment(5.0, "agent of gpu-001 killed with -9", MomentKind.LOSS),
            Moment(7.1, "gpu-001 declared lost", MomentKind.NOTICED),
            Moment(7.2, "attempt 1 fenced"),
            Moment(8.9, "every process of attempt 1 is gone"),
            Moment(9.1, "attempt 2 started on gpu-002 from checkpoint 4"),
            Moment(12.3, "step 41 done: work goes on", MomentKind.RECOVERED),
        ),
        seconds=14.0,
        log_directory="rehearsals/worker-loss",
    )


def example_plan() -> Plan:
    """A plan of the example; the values are plausible and set by hand."""
    chat, finetune = _chat(), _finetune()
    economics = _economics(chat)
    figures: dict[str, Figure] = {}
    for name, figure in (
        ("chat.unit_cost", economics.units[0].unit_cost),  # type: ignore[union-attr]
        ("chat.replica_rate", chat.service.replica_rate),  # type: ignore[union-attr]
        ("finetune.time_to_target", finetune.training.time_to_target),  # type: ignore[union-attr]
    ):
        figures[name] = figure  # type: ignore[assignment]
    rail = declared("fabric.networks.ib.rate", 400, "Gb/s", 162)
    bound = derive("pools.gpu.all_reduce.bound", "GB/s", "r·(n−1)/(k−1), r = rate/8", lambda r: r / 8 * 15, rail)
    ring = derive("pools.gpu.all_reduce.reference", "GB/s", "flat ring g·r", lambda r: r / 8 * 8, rail)
    both = derive(
        "payload_rate",
        "GB/s",
        "sum of required rates",
        lambda a, b: a + b,
        chat.payload.required_rate,
        finetune.payload.required_rate,  # type: ignore[union-attr]
    )
    return Plan(
        cluster="two-workers",
        workloads=(chat, finetune),
        pools=(PoolPlan("gpu", ("gpu-001", "gpu-002"), "h100-sxm-80gb", 8, 8, 12),),
        network=NetworkPlan((CollectivePlan("gpu", "all-reduce", 2, bound, ring),)),
        payload_rate=both,
        economics=economics,
        figures=figures,
        unplanned=(
            Unplanned(
                "workloads.finetune.capacity", "no monthly work is declared", ("workloads.finetune.train.every",)
            ),
        ),
        limits=("queueing between workloads is not modelled: both are planned on GPUs of their own",),
    )


def memory_of(name: str, parts: tuple[tuple[str, float], ...], usable: float, *, kv: bool = True) -> MemoryPlan:
    """A memory plan with these parts in GiB."""
    weights = declared(f"workloads.{name}.model", 1, "", 48)
    figures = tuple(
        (
            label,
            derive(
                f"workloads.{name}.memory.{label.replace(' ', '_')}",
                "GiB",
                "parameters × bytes per parameter ÷ tensor parallel width",
                lambda w, v=value: w * v,
                weights,
            ),
        )
        for label, value in parts
    )
    total = derive(
        f"workloads.{name}.memory.total", "GiB", "sum of the parts", lambda *p: sum(p), *(f for _, f in figures)
    )
    reported = catalogued("gpus.h100-sxm-80gb.reported", 79.2, "GiB")
    share_ = declared(f"workloads.{name}.serve.memory_share", usable, "", 62)
    allowed = derive(
        f"workloads.{name}.memory.usable", "GiB", "share × reported total", lambda s, r: s * r, share_, reported
    )
    pool = derive(f"workloads.{name}.memory.kv_pool", "GiB", "usable − the rest", lambda u, t: u - t, allowed, total)
    return MemoryPlan(
        "vllm 0.11" if kv else "fsdp",
        figures,
        total,
        allowed,
        reported,
        total.value <= allowed.value,
        kv_pool=pool if kv else None,
        notes=("graphs sit outside the budget in this version",) if kv else (),
    )


def _payload(name: str, size: float, within: float, readers: int) -> PayloadPlan:
    base = f"workloads.{name}.payload"
    each = derive(f"{base}.size", "GB", "parameters × bytes", lambda n: n * size, catalogued(f"models.{name}", 1, ""))
    many, limit = declared(f"{base}.readers", readers, "", 60), declared(f"{base}.within", within, "s", 70)
    rate = derive(
        f"{base}.rate",
        "GB/s",
        "bytes of all concurrent readers ÷ allowed time",
        lambda s, n, t: s * n / t,
        each,
        many,
        limit,
    )
    links = []
    for kind, path, speed in (
        ("source", "storage.stores.object", 20.0),
        ("network", "fabric.networks.storage", 100.0),
        ("cache", "storage.stores.nvme", 50.0),
    ):
        link = declared(f"{path}.read", speed, "GB/s", 203)
        time = derive(f"{base}.{kind}.time", "s", "bytes ÷ rate", lambda s, n, r: s * n / r, each, many, link)
        links.append(LinkPlan(kind, path, link, time, True))  # type: ignore[arg-type]
    startup = declared(f"{base}.startup", 60, "s", 71)
    cold = derive(f"{base}.cold_start", "s", "time + startup", lambda a, b: a + b, links[0].time, startup)
    return PayloadPlan(
        each,
        many,
        rate,
        limit,
        tuple(links),
        links[0],
        links[0].time,
        links[2].time,
        startup,
        cold,
        None,
        declared(f"workloads.{name}.target.cold_start", 300, "s", 80),
        True,
        True,
    )


def _choices(total: Figure) -> tuple[PlacementChoice, ...]:
    return (
        PlacementChoice("gpu", Layout(), False, False, "70.6 GiB of weights leave no room for a KV cache", "one GPU"),
        PlacementChoice(
            "node",
            Layout(tp=4, declared=True),
            True,
            True,
            "tensor parallelism stays inside the NVSwitch domain",
            "one GPU, NVSwitch or node takes the replica",
            total,
        ),
        PlacementChoice(
            "nodes",
            Layout(tp=8, pp=2),
            True,
            False,
            "nothing needs it: a pipeline over the network adds latency",
            "either of two nodes takes the replica",
        ),
    )


def _chat() -> WorkloadPlan:
    memory = memory_of(
        "chat",
        (("weights", 17.6), ("activations", 4.9), ("other", 0.7), ("KV cache at the load", 12.3)),
        0.9,
    )
    load = declared("workloads.chat.serve.rate", 8, "req/s", 58)
    efficiency = assumed(
        "assumptions.decode_efficiency", 0.77, "", "share of memory bandwidth in decode; planning, Time"
    )
    bandwidth = catalogued("gpus.h100-sxm-80gb.bandwidth", 3350, "GB/s")
    replica = derive(
        "workloads.chat.replica_rate",
        "req/s",
        "requests within the targets on one replica",
        lambda e, b: e * b / 258,
        efficiency,
        bandwidth,
    )
    ttft = derive("workloads.chat.ttft", "s", "prefill 2·P·T/(peak·MFU)", lambda e: 0.28 / e, efficiency)
    tpot = derive("workloads.chat.tpot", "ms", "max((weights + KV)/bandwidth, FLOP/peak)", lambda e: 14 / e, efficiency)
    left = derive("workloads.chat.after_loss", "req/s", "surviving replicas × rate of one", lambda r: r, replica)
    service = ServicePlan(
        load,
        replica,
        1,
        2,
        derive("workloads.chat.capacity", "req/s", "2 × rate of one", lambda r: 2 * r, replica),
        ttft,
        tpot,
        derive("workloads.chat.in_flight", "", "Little's law", lambda r: r * 2.2, load),
        ("ttft_p95", declared("workloads.chat.target.ttft_p95", 1, "s", 75)),
        ("tpot_p95", declared("workloads.chat.target.tpot_p95", 50, "ms", 76)),
        (LossPlan(1, ("gpu-001",), 1, 2, 1, left, True, "one replica runs on gpu-002 and carries 8 req/s"),),
    )
    month = derive("workloads.chat.target_work", "Mtok", "rate × tokens × month", lambda r: r * 3285, load)
    useful = derive("workloads.chat.useful", "Mtok", "after failures, idle and retries", lambda r: r * 480, replica)
    capacity = CapacityPlan(
        "accepted Mtok",
        month,
        useful,
        derive("workloads.chat.gpu_months", "GPU-months", "target ÷ useful", lambda a, b: a / b, month, useful),
    )
    placement = (
        Assignment("chat", 0, "gpu", "gpu-001", (0, 1, 2, 3)),
        Assignment("chat", 1, "gpu", "gpu-002", (0, 1, 2, 3)),
    )
    return WorkloadPlan(
        "chat",
        "inference",
        "meta-llama/Llama-3.3-70B-Instruct",
        "gpu",
        "h100-sxm-80gb",
        Layout(tp=4, declared=True),
        2,
        2,
        memory,
        _choices(memory.total),
        placement,
        service=service,
        payload=_payload("chat", 70.6, 90, 2),
        capacity=capacity,
    )


def _finetune() -> WorkloadPlan:
    memory = memory_of(
        "finetune", (("weights, gradients, optimizer", 29.9), ("activations", 8.4), ("other", 6.1)), 1.0, kv=False
    )
    mfu = assumed("assumptions.mfu", 0.205, "", "median of published H100 bf16 runs; planning, Time")
    speed = derive(
        "workloads.finetune.tokens_per_s", "tokens/s", "peak · MFU ÷ FLOP per token", lambda m: m * 8.2e4, mfu
    )
    wall = derive("workloads.finetune.time_to_target", "h", "tokens ÷ speed ÷ goodput", lambda v: 2e8 / v / 3600, speed)
    rate = assumed("assumptions.failure_rate", 6.5, "/1000 node-days", "RSC-1 (Meta, 2024)")
    mttf = derive("workloads.finetune.mttf", "h", "1/(N·r)", lambda r: 24000 / r, rate)
    training = TrainingPlan(
        speed,
        None,
        mttf,
        derive("workloads.finetune.goodput", "", "ETTR", lambda m: 1 - 0.25 / m, mttf),
        wall,
        derive("workloads.finetune.gpu_hours", "GPU-h", "4 GPUs × wall time", lambda w: 4 * w, wall),
        declared("workloads.finetune.train.deadline", 72, "h", 112),
        True,
        (LossPlan(1, ("gpu-001",), 0, 1, 1, None, True, "the job restarts on gpu-002, GPUs 4-7"),),
    )
    size = derive(
        "workloads.finetune.checkpoint.size",
        "GB",
        "14 B × parameters",
        lambda p: 14 * p,
        catalogued("models.llama-8b.parameters", 8.03, "G"),
    )
    store = declared("storage.stores.object.write", 10, "GB/s", 204)
    write = derive("workloads.finetune.checkpoint.write", "s", "size ÷ rate", lambda s, r: s / r, size, store)
    every = declared("workloads.finetune.train.checkpoint.every", 1800, "s", 118)
    checkpoint = CheckpointPlan(
        size,
        every,
        "async",
        write,
        write,
        None,
        declared("workloads.finetune.train.checkpoint.stall_within", 60, "s", 120),
        True,
        write,
        declared("workloads.finetune.train.checkpoint.restore_within", 120, "s", 121),
        True,
        None,
        derive(
            "workloads.finetune.checkpoint.daly",
            "s",
            "√(2wM) − w",
            lambda w, m: (2 * w * m * 3600) ** 0.5 - w,
            write,
            mttf,
        ),
        None,
        None,
        derive("workloads.finetune.lost_work", "s", "interval + write", lambda e, w: e + w, every, write),
        declared("workloads.finetune.target.lost_work", 1800, "s", 131),
        False,
    )
    return WorkloadPlan(
        "finetune",
        "training",
        "meta-llama/Llama-3.1-8B",
        "gpu",
        "h100-sxm-80gb",
        Layout(dp=4, declared=True),
        1,
        1,
        memory,
        _choices(memory.total),
        (Assignment("finetune", 0, "gpu", "gpu-001", (4, 5, 6, 7)),),
        training=training,
        payload=_payload("finetune", 16.1, 120, 1),
        checkpoint=checkpoint,
    )


def _economics(chat: WorkloadPlan) -> EconomicsPlan:
    price = declared("pools.gpu.price", 2.4, "$/GPU-h", 139)
    paid = derive("economics.paid_gpu_hours", "GPU-h", "16 GPUs × 730 h", lambda p: 16 * 730 + 0 * p, price)
    idle = declared("economics.shares.idle", 0.25, "", 380)

    def part(name: str, share_: float) -> Figure:
        return derive(
            f"economics.{name}", "$/month", "share × paid GPU-hours × price", lambda h, p: share_ * h * p, paid, price
        )

    lines = (
        ("compute, useful", part("useful", 0.7)),
        (
            "compute, idle",
            derive("economics.idle", "$/month", "idle × hours × price", lambda i, h, p: i * h * p, idle, paid, price),
        ),
        ("compute, retries", part("retries", 0.03)),
        ("compute, failed", part("failed", 0.02)),
        ("network", declared("economics.costs.network", 900, "$/month", 371)),
        ("storage", declared("economics.costs.storage", 4000, "$/month", 372)),
        ("support", declared("economics.costs.support", 1500, "$/month", 373)),
        ("operations", declared("economics.costs.operations", 9000, "$/month", 374)),
    )
    total = derive("economics.total", "$/month", "sum of the lines", lambda *a: sum(a), *(f for _, f in lines))
    use = declared("economics.utilisation", 0.45, "", 366)
    hour = derive(
        "economics.useful_gpu_hour", "$/GPU-h", "total ÷ (paid × use)", lambda t, h, u: t / h / u, total, paid, use
    )
    rate = chat.service.replica_rate  # type: ignore[union-attr]
    assert isinstance(rate, Figure)
    unit = derive(
        "workloads.chat.unit_cost",
        "$/Mtok",
        "useful GPU-hour × GPUs ÷ tokens per hour",
        lambda h, r: h * 4 / (r * 1250 * 3.6e-3),
        hour,
        rate,
    )
    rental = derive("workloads.chat.on_demand", "$/Mtok", "at the rental price", lambda u: u * 1.09, unit)
    api = declared("economics.alternatives.api", 0.6, "$/Mtok", 392)
    even = derive("workloads.chat.break_even.api", "", "use × ours ÷ theirs", lambda u, a, s: s * u / a, unit, api, use)
    alternatives = (
        AlternativeCost(
            "on-demand",
            "rental",
            rental,
            derive(
                "workloads.chat.break_even.on-demand",
                "",
                "use × ours ÷ theirs",
                lambda u, a, s: s * u / a,
                unit,
                rental,
                use,
            ),
        ),
        AlternativeCost("api", "model-api", api, even, "no control of model revisions"),
        AlternativeCost(
            "reserved", "rental", Unplanned("economics.alternatives.reserved", "no price is declared"), None
        ),
    )
    return EconomicsPlan(
        "USD",
        lines,
        total,
        paid,
        use,
        None,
        hour,
        (
            UnitCost("chat", "accepted Mtok", unit, alternatives),
            Unplanned("finetune", "no price per run can be formed without runs per month"),
        ),
        ("power is part of the rental price",),
    )
