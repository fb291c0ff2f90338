"""Checkpoints: size, what they stop, restore, and the interval against the optimum for the failure rate."""

from __future__ import annotations

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Checkpoint, Target, Train
from clusterwright.physics.failures import daly_s, waste, young_s
from clusterwright.physics.training_memory import checkpoint_bytes
from clusterwright.physics.transfers import transfer_s
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.payloads import network_to, store_rate
from clusterwright.plan.results import CheckpointPlan, Unplanned
from clusterwright.plan.sites import Site

#: Share of the PCIe rate that a copy from GPU to pinned host memory reaches.
_COPY_SHARE = 0.8


def plan_checkpoint(
    sheet: Sheet,
    name: str,
    train: Train,
    target: Target | None,
    model: PlannedModel | Unplanned,
    site: Site | None,
    nodes: Figure,
    mttf: Figure | None,
    restart: Figure | None,
) -> CheckpointPlan | Unplanned | None:
    """Plan the checkpoints of a training job, None when it takes none.

    Args:
        nodes: of the job, that write and read at once.
        mttf: h between failures of the job.
        restart: s from a failure until work goes on.
    """
    checkpoint = train.checkpoint
    if checkpoint is None:
        return None
    path, prefix = f"workloads.{name}.train.checkpoint", f"workloads.{name}.checkpoint_plan"
    size = _size(sheet, path, prefix, train, checkpoint, model)
    if isinstance(size, Unplanned):
        return size
    every = sheet.declared(f"{path}.every", checkpoint.every, "s")
    one = sheet.planned(f"{prefix}.copies", 1, "copies", "one checkpoint, its parts written by all nodes")
    unknown: list[Unplanned] = []
    write = _transfer(sheet, prefix, checkpoint, "write", site, nodes, size, one, unknown)
    restore = _transfer(sheet, prefix, checkpoint, "read", site, nodes, size, one, unknown)
    restore = sheet.choose(Kind.TIME, f"{prefix}.restore", restore, nodes=int(nodes.value))
    write = sheet.choose(Kind.TIME, f"{prefix}.write_time", write, nodes=int(nodes.value))
    stall = _stall(sheet, prefix, train, checkpoint, site, size, write, unknown)
    stall = sheet.choose(Kind.TIME, f"{prefix}.stall", stall, nodes=int(nodes.value))
    share = stall and sheet.derive(
        f"{prefix}.stall_share", "share", "stall ÷ (interval + stall)", lambda w, t: w / (t + w), stall, every
    )
    within = sheet.maybe(f"{path}.stall_within", checkpoint.stall_within, "s")
    restore_within = sheet.maybe(f"{path}.restore_within", checkpoint.restore_within, "s")
    lost = _lost_work(sheet, prefix, every, write)
    lost_target = sheet.maybe(f"workloads.{name}.target.lost_work", target.lost_work if target else None, "s")
    plan = CheckpointPlan(
        size=size,
        every=every,
        mode=checkpoint.mode,
        write_time=write,
        stall=stall,
        stall_share=share,
        stall_within=within,
        meets_stall=_holds(stall, within),
        restore=restore,
        restore_within=restore_within,
        meets_restore=_holds(restore, restore_within),
        **_intervals(sheet, prefix, every, stall, mttf, restart),
        lost_work=lost,
        lost_work_target=lost_target,
        meets_lost_work=_holds(lost, lost_target),
        unknown=tuple(unknown),
    )
    _check(sheet, prefix, path, name, plan)
    return plan


def _holds(figure: Figure | None, limit: Figure | None) -> bool | None:
    return None if figure is None or limit is None else figure.value <= limit.value


def _size(
    sheet: Sheet, path: str, prefix: str, train: Train, checkpoint: Checkpoint, model: PlannedModel | Unplanned
) -> Figure | Unplanned:
    if checkpoint.size is not None:
        return sheet.declared(f"{path}.size", checkpoint.size, "GB")
    if isinstance(model, Unplanned):
        return sheet.miss(prefix, f"size of a checkpoint: {model.reason}", f"{path}.size")
    if train.method != "full":
        return sheet.miss(prefix, f"size of a {train.method} checkpoint follows from the adapters", f"{path}.size")
    computed = sheet.derive(
        f"{prefix}.size",
        "GB",
        "14 B/parameter: bf16 weights, fp32 master weights, two moments",
        lambda p: checkpoint_bytes(p) / 1e9,
        model.total,
    )
    return sheet.picked(Kind.SIZE, f"{prefix}.size", computed)


def _transfer(
    sheet: Sheet,
    prefix: str,
    checkpoint: Checkpoint,
    way: str,
    site: Site | None,
    nodes: Figure,
    size: Figure,
    one: Figure,
    unknown: list[Unplanned],
) -> Figure | None:
    """s of one checkpoint to or from its store through the slower of store and network; None when one is unknown."""
    label = "write_time" if way == "write" else "restore"
    stores = sheet.architecture.storage.stores if sheet.architecture.storage else {}
    store = stores.get(checkpoint.to)
    rates: list[Figure] = []
    links = [store_rate(sheet, checkpoint.to, way, nodes, site)]
    if store is None or store.kind not in ("local-nvme", "memory"):
        links.append(network_to(sheet, store, site, nodes)[1])
    for link in links:
        if isinstance(link, Unplanned):
            unknown.append(sheet.miss(f"{prefix}.{label}", link.reason, *link.missing))
        else:
            rates.append(link)
    if len(rates) != len(links):
        return None
    return sheet.derive(
        f"{prefix}.{label}",
        "s",
        f"size ÷ slowest of {'store and network' if len(rates) > 1 else 'the nodes own stores'}",
        lambda s, n, *r: transfer_s(s, n, min(r)),
        size,
        one,
        *rates,
    )


def _stall(
    sheet: Sheet,
    prefix: str,
    train: Train,
    checkpoint: Checkpoint,
    site: Site | None,
    size: Figure,
    write: Figure | None,
    unknown: list[Unplanned],
) -> Figure | None:
    if checkpoint.mode == "sync":
        return write and sheet.derive(f"{prefix}.stall", "s", "synchronous: the whole write", lambda w: w, write)
    gpu = site.gpu if site else None
    if gpu is None or gpu.pcie is None:
        unknown.append(
            sheet.miss(f"{prefix}.stall", "the host link of the GPU is unknown, so the blocking copy is not timed")
        )
        return None
    link = sheet.published(gpu, "pcie_rate", gpu.pcie.rate.value / 8e9, "GB/s", "PCIe rate after line coding")
    share = sheet.assumed("copy_share", _COPY_SHARE, "share", "of the PCIe rate, copying to pinned host memory")
    gpus = sheet.declared(prefix.replace("checkpoint_plan", "train.gpus"), train.gpus, "GPUs")
    return sheet.derive(
        f"{prefix}.stall",
        "s",
        "asynchronous: each GPU copies its part to host memory, at once",
        lambda s, n, r, c: s / n / (r * c),
        size,
        gpus,
        link,
        share,
    )


def _lost_work(sheet: Sheet, prefix: str, every: Figure, write: Figure | None) -> Figure | None:
    return write and sheet.derive(
        f"{prefix}.lost_work",
        "s",
        "a failure just before the next checkpoint is durable: interval + its write",
        lambda t, w: t + w,
        every,
        write,
    )


def _intervals(
    sheet: Sheet, prefix: str, every: Figure, stall: Figure | None, mttf: Figure | None, restart: Figure | None
) -> dict[str, Figure | None]:
    if stall is None or mttf is None or restart is None:
        return dict.fromkeys(("young", "daly", "waste", "best_waste"))
    young = sheet.derive(
        f"{prefix}.young", "s", "√(2·stall·MTTF), Young 1974", lambda w, m: young_s(w, m * 3600), stall, mttf
    )
    daly = sheet.derive(
        f"{prefix}.daly", "s", "√(2·stall·MTTF) − stall, Daly 2006", lambda w, m: daly_s(w, m * 3600), stall, mttf
    )
    formula = "stall/interval + interval/2·MTTF + restart/MTTF"
    return {
        "young": young,
        "daly": daly,
        "waste": sheet.derive(
            f"{prefix}.waste",
            "share",
            formula,
            lambda t, w, m, r: waste(t, w, m * 3600, r),
            every,
            stall,
            mttf,
            restart,
        ),
        "best_waste": sheet.derive(
            f"{prefix}.best_waste",
            "share",
            f"{formula} at Daly's interval",
            lambda t, w, m, r: waste(t, w, m * 3600, r),
            daly,
            stall,
            mttf,
            restart,
        ),
    }


def _check(sheet: Sheet, prefix: str, path: str, name: str, plan: CheckpointPlan) -> None:
    if plan.meets_stall is False:
        sheet.misfit(
            prefix, f"{path}.mode", f"a checkpoint stalls training for {plan.stall}, allowed {plan.stall_within}"
        )
    if plan.meets_restore is False:
        sheet.misfit(prefix, f"{path}.to", f"a restore takes {plan.restore}, allowed {plan.restore_within}")
    if plan.meets_lost_work is False:
        sheet.misfit(
            prefix,
            f"{path}.every",
            f"a failure may lose {plan.lost_work} (interval and write), the target is {plan.lost_work_target}",
        )
    if plan.write_time is not None and plan.write_time.value > plan.every.value:
        sheet.misfit(
            prefix, f"{path}.every", f"writing takes {plan.write_time}, longer than the interval of {plan.every}"
        )
