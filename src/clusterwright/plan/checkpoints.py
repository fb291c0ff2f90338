"""Checkpoints: size, what they stop, restore, and the interval against the optimum for the failure rate."""

from __future__ import annotations

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Checkpoint, Target, Train
from clusterwright.physics.failures import daly_higher_s, daly_s, ettr, ettr_exact, waste, young_s
from clusterwright.physics.training.shares import trained_parameters
from clusterwright.physics.training.states import checkpoint_bytes
from clusterwright.physics.transfers import transfer_s
from clusterwright.plan.choosing import Kind
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.host_paths import gpu_copy_rate, host_links
from clusterwright.plan.models import PlannedModel
from clusterwright.plan.payloads import network_to, store_rate
from clusterwright.plan.recipes import adapter_rank
from clusterwright.plan.results.payloads import LINK_WORDS
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.trainings import CheckpointPlan
from clusterwright.plan.sites import Site


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
    rate: Figure | None = None,
) -> CheckpointPlan | Unplanned | None:
    """Plan the checkpoints of a training job, None when it takes none.

    Args:
        nodes: of the job, that write and read at once.
        mttf: h between failures of the job.
        restart: s from a failure until work goes on.
        rate: failures per 1,000 node-days, None where no productive share is wanted.
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
    gpus = sheet.declared(f"workloads.{name}.train.gpus", train.gpus, "GPUs")
    write, wrote = _transfer(sheet, prefix, checkpoint, "write", site, nodes, gpus, size, one, unknown)
    restore, read = _transfer(sheet, prefix, checkpoint, "read", site, nodes, gpus, size, one, unknown)
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
        **_intervals(sheet, prefix, checkpoint.mode, every, write, stall, mttf, restart),
        **_shares(sheet, prefix, nodes, rate, restart, every, stall),
        write_binding=wrote,
        restore_binding=read,
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
    words = "14 B/parameter: bf16 weights, fp32 master weights, two moments"
    if train.method == "full":
        computed = sheet.derive(f"{prefix}.size", "GB", words, lambda p: checkpoint_bytes(p) / 1e9, model.total)
    else:
        rank = adapter_rank(sheet, path.removesuffix(".checkpoint"), train)
        computed = sheet.derive(
            f"{prefix}.size",
            "GB",
            f"of the adapters alone, {words}",
            lambda r, decoder=model.decoder: checkpoint_bytes(trained_parameters(decoder, round(r))) / 1e9,
            rank,
        )
    return sheet.picked(Kind.SIZE, f"{prefix}.size", computed)


def _transfer(
    sheet: Sheet,
    prefix: str,
    checkpoint: Checkpoint,
    way: str,
    site: Site | None,
    nodes: Figure,
    gpus: Figure,
    size: Figure,
    one: Figure,
    unknown: list[Unplanned],
) -> tuple[Figure | None, str]:
    """(s of one checkpoint to or from its store, link that binds); None when store or network is unknown."""
    label = "write_time" if way == "write" else "restore"
    stores = sheet.architecture.storage.stores if sheet.architecture.storage else {}
    store = stores.get(checkpoint.to)
    local = store is not None and store.kind in ("local-nvme", "memory")
    links: list[tuple[str, Figure | Unplanned]] = [("store", store_rate(sheet, checkpoint.to, way, nodes, site))]
    if not local:
        links.append(("network", network_to(sheet, store, site, nodes)[1]))
    host = host_links(sheet, f"{prefix}.{way}", site, nodes, gpus, local)
    links += [(kind, rate) for kind, _, rate in host]
    rates: list[tuple[str, Figure]] = []
    for kind, rate in links:
        if isinstance(rate, Unplanned):
            unknown.append(sheet.miss(f"{prefix}.{label}", rate.reason, *rate.missing))
        else:
            rates.append((kind, rate))
    if len(rates) != len(links):
        return None, ""
    binding = min(rates, key=lambda r: r[1].value)[0]
    words = "node's own store" if local else "store"
    named = [LINK_WORDS.get(kind, words) for kind, _ in rates]
    time = sheet.derive(
        f"{prefix}.{label}",
        "s",
        f"size ÷ slowest of {', '.join(named)}",
        lambda s, n, *r: transfer_s(s, n, min(r)),
        size,
        one,
        *(rate for _, rate in rates),
    )
    return time, LINK_WORDS.get(binding, words)


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
    copied = gpu_copy_rate(sheet, site) if site else None
    if copied is None:
        unknown.append(
            sheet.miss(f"{prefix}.stall", "the host link of the GPU is unknown, so the blocking copy is not timed")
        )
        return None
    gpus = sheet.declared(prefix.replace("checkpoint_plan", "train.gpus"), train.gpus, "GPUs")
    return sheet.derive(
        f"{prefix}.stall",
        "s",
        "asynchronous: each GPU copies its part to host memory, at once",
        lambda s, n, r, c: s / n / (r * c),
        size,
        gpus,
        *copied,
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
    sheet: Sheet,
    prefix: str,
    mode: str,
    every: Figure,
    write: Figure | None,
    stall: Figure | None,
    mttf: Figure | None,
    restart: Figure | None,
) -> dict[str, Figure | None]:
    names = ("young", "daly", "daly_higher", "best", "waste", "best_waste")
    if stall is None or mttf is None or restart is None:
        return dict.fromkeys(names)
    optimal = {
        "young": ("√(2·stall·MTTF), Young 1974", young_s),
        "daly": ("√(2·stall·MTTF) − stall, Daly 2006", daly_s),
        "daly_higher": ("√(2·stall·MTTF)(1 + √(stall/2·MTTF)/3 + stall/18·MTTF) − stall, Daly 2006", daly_higher_s),
    }
    found: dict[str, Figure | None] = {
        key: sheet.derive(f"{prefix}.{key}", "s", said, lambda w, m, f=f: f(w, m * 3600), stall, mttf)
        for key, (said, f) in optimal.items()
    }
    best = _best(sheet, prefix, mode, found["daly_higher"], write)
    found["best"] = best
    for key, interval, at in (("waste", every, ""), ("best_waste", best, " at the best interval")):
        found[key] = interval and sheet.derive(
            f"{prefix}.{key}",
            "share",
            f"stall/interval + interval/2·MTTF + restart/MTTF{at}",
            lambda t, w, m, r: waste(t, w, m * 3600, r),
            interval,
            stall,
            mttf,
            restart,
        )
    return found


def _best(sheet: Sheet, prefix: str, mode: str, daly: Figure | None, write: Figure | None) -> Figure | None:
    """Daly's higher order; an asynchronous checkpoint cannot begin before the last one is written."""
    if daly is None or (mode == "async" and write is None):
        return None
    if mode == "sync" or write is None:
        return sheet.derive(f"{prefix}.best", "s", "Daly's higher order", lambda d: d, daly)
    return sheet.derive(
        f"{prefix}.best", "s", "Daly's higher order, not shorter than the write of the last", max, daly, write
    )


def _shares(
    sheet: Sheet,
    prefix: str,
    nodes: Figure,
    rate: Figure | None,
    restart: Figure | None,
    every: Figure,
    stall: Figure | None,
) -> dict[str, Figure | None]:
    """Productive share at the declared interval by the published formula and of the process."""
    if rate is None or restart is None or stall is None:
        return dict.fromkeys(("ettr", "ettr_exact"))
    said = {
        "ettr": ("(1 − failures × (restart + interval/2)) ÷ (1 + stall/interval), arXiv:2410.21680", ettr),
        "ettr_exact": ("interval ÷ (M·e^(restart/M)·(e^((interval + stall)/M) − 1)), M = MTTF: renewal", ettr_exact),
    }
    return {
        key: sheet.derive(f"{prefix}.{key}", "share", formula, function, nodes, rate, restart, every, stall)
        for key, (formula, function) in said.items()
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
