"""What is contradictory in the hardware: nodes counted twice, mixed pools, substitutes, power, memory, formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.lib.hostlists import fold
from clusterwright.model.findings import Severity
from clusterwright.model.hardware import DenseRates, Gpu
from clusterwright.review.rules import Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, counted, listed

_TABLE = RuleTable("compute")


@_TABLE.rule(
    "node-in-two-pools",
    Severity.ERROR,
    85,
    why="A node that two pools count is capacity that exists once and is promised twice.",
    satisfy="list each node in one pool",
    example='pools: {gpu: {nodes: "gpu-[001-002]"}, control: {nodes: "cp-[1-3]"}}',
    source="Clusterwright: a pool belongs to exactly one engine, a node to exactly one pool",
)
def node_in_two_pools(subject: Subject) -> Iterator[Hit]:
    """A node is listed in more than one pool."""
    first: dict[str, str] = {}
    for name, pool in subject.pools.items():
        shared: dict[str, list[str]] = {}
        for node in pool.nodes:
            if node in first:
                shared.setdefault(first[node], []).append(node)
            first.setdefault(node, name)
        for other, nodes in shared.items():
            yield Hit(
                f"pools.{name}.nodes", f"pools {other} and {name} share {len(nodes)} of their nodes: {fold(nodes)}"
            )


@_TABLE.rule(
    "mixed-hardware-in-pool",
    Severity.ERROR,
    80,
    why="A gang on mixed nodes runs at the pace of the slowest, and memory fits on some nodes only.",
    satisfy="split the pool by hardware; each pool has one shape and one software profile",
    example="pools: {h100: {shape: hgx-h100-sxm-8, ...}, h200: {shape: hgx-h200-sxm-8, ...}}",
    source="Clusterwright: a pool is nodes of one shape and one software profile",
)
def mixed_pool(subject: Subject) -> Iterator[Hit]:
    """A pool is known to hold nodes that differ."""
    for name, pool in subject.pools.items():
        if pool.mixed:
            yield Hit(
                f"pools.{name}.mixed",
                f"pool {name} is declared as mixed: its {counted(pool.node_count, 'node')} differ",
            )


@_TABLE.rule(
    "hardware-contradicts-shape",
    Severity.ERROR,
    75,
    why="The declared hardware wins in every formula; when it is not the shape's, one of the two is wrong.",
    satisfy="correct the one that is wrong, or name the shape that was really bought",
    example="shape: hgx-h100-sxm-8   # and no hardware.gpu",
    source="the catalogue's node shapes",
)
def contradicts_shape(subject: Subject) -> Iterator[Hit]:
    """Declared GPUs of a pool differ from those of its catalogue shape."""
    for name, pool in subject.pools.items():
        shape, hardware = subject.shape(name), pool.hardware
        if shape is None or hardware is None:
            continue
        path, gpu = f"pools.{name}.hardware", subject.gpu(name)
        if hardware.gpu and gpu is not None and gpu.name != shape.gpu:
            yield Hit(
                f"{path}.gpu", f"pool {name} declares {hardware.gpu}; shape {pool.shape} has {shape.gpu or 'none'}"
            )
        if hardware.gpus is not None and hardware.gpus != shape.gpus:
            yield Hit(
                f"{path}.gpus",
                f"pool {name} declares {counted(hardware.gpus, 'GPU')}; shape {pool.shape} has {shape.gpus}",
            )
        if hardware.nvswitch is not None and shape.gpu and hardware.nvswitch != shape.nvswitch:
            said = "with" if hardware.nvswitch else "without"
            has = "has" if shape.nvswitch else "has no"
            yield Hit(f"{path}.nvswitch", f"pool {name} is declared {said} NVSwitch; shape {pool.shape} {has} NVSwitch")


@_TABLE.rule(
    "gpu-not-acceptable",
    Severity.ERROR,
    80,
    why="The brief says on which GPUs the workload was sized and tested; on others its targets are hopes.",
    satisfy="give the workload a pool with an acceptable GPU, or accept the GPU knowingly",
    example="gpus: [h100-sxm-80, h200-sxm-141]",
    source="Clusterwright: the workload brief's GPU range",
    area="workload",
)
def gpu_not_acceptable(subject: Subject) -> Iterator[Hit]:
    """A pool that a workload may run on has a GPU that its brief does not accept."""
    for name, workload in subject.workloads.items():
        accepted = {g.name for text in workload.gpus if (g := subject.catalogue.find_gpu(text)) is not None}
        if not accepted:
            continue
        for pool in subject.pools_of(name):
            gpu = subject.gpu(pool)
            if gpu is not None and gpu.name not in accepted:
                known = listed(workload.gpus, "or")
                yield Hit(f"workloads.{name}.gpus", f"workload {name} accepts {known}; pool {pool} has {gpu.name}")


@_TABLE.rule(
    "workload-spans-different-pools",
    Severity.ERROR,
    70,
    why="The scheduler takes whichever pool has room; memory, speed and price of a run then depend on luck.",
    satisfy="name the pools the workload may run on, and every GPU model it accepts",
    example="pools: [h100]\ngpus: [h100-sxm-80]",
    source="Clusterwright: a workload that may land on different GPUs must say so",
    area="workload",
)
def spans_pools(subject: Subject) -> Iterator[Hit]:
    """A workload may land on pools with different GPUs or links without saying so."""
    for name, workload in subject.workloads.items():
        pools = subject.pools_of(name)
        kinds = {p: (subject.gpu_name(p), subject.gpus_per_node(p), subject.domain_gpus(p)) for p in pools}
        known = {p: k for p, k in kinds.items() if k[0] is not None}
        if len(set(known.values())) < 2:
            continue
        accepted = {g.name for text in workload.gpus if (g := subject.catalogue.find_gpu(text)) is not None}
        found = {g.name for p in known if (g := subject.gpu(p)) is not None}
        if workload.pools and found <= accepted:
            continue
        what = listed(f"{p} ({gpu}, {each} per node)" for p, (gpu, each, _) in known.items())
        yield Hit(f"workloads.{name}.pools", f"workload {name} may land on {what}")


@_TABLE.rule(
    "workload-spans-different-software",
    Severity.WARNING,
    50,
    why="A run that lands on another driver or NCCL is another run; a failure of one of them looks random.",
    satisfy="give pools that share a workload one software profile, or name one pool",
    example="pools: {a: {software: gpu-node}, b: {software: gpu-node}}",
    source="Clusterwright: a workload that may land on different software must say so",
    area="workload",
)
def spans_software(subject: Subject) -> Iterator[Hit]:
    """A workload may land on pools with different driver, CUDA or NCCL."""
    for name in subject.workloads:
        stacks: dict[tuple[str | None, str | None, str | None], str] = {}
        for pool in subject.pools_of(name):
            profile = subject.profile(pool)
            if profile is not None:
                stacks.setdefault((profile.driver, profile.cuda, profile.nccl), pool)
        if len(stacks) > 1:
            what = listed(f"{p} (driver {d}, CUDA {c}, NCCL {n})" for (d, c, n), p in stacks.items())
            yield Hit(f"workloads.{name}.pools", f"workload {name} may land on {what}")


@_TABLE.rule(
    "power-above-site",
    Severity.ERROR,
    70,
    why="What draws more than the site gives trips a breaker, or is throttled, under the very load it was bought for.",
    satisfy="raise the site's power, take fewer nodes, or declare a sustained node power that was measured",
    example="cluster: {power: 26 kW}   # 2 × 10.2 kW and switches",
    source="Clusterwright: sum of the nodes' sustained power against the site's",
)
def power_above_site(subject: Subject) -> Iterator[Hit]:
    """All nodes together draw more than the site gives."""
    site = subject.architecture.cluster.power
    if site is None:
        return  # site-power-missing says so
    drawn = {n: (p.node_count, power) for n, p in subject.pools.items() if (power := subject.node_power(n)) is not None}
    total = sum(count * power.value for count, power in drawn.values()) / 1e3
    if total > site.to("kW"):
        sums = " + ".join(f"{count} × {power}" for count, power in drawn.values())
        unknown = [n for n in subject.pools if n not in drawn]
        rest = f", without pool {listed(unknown)}" if unknown else ""
        yield Hit("cluster.power", f"nodes draw {sums} = {total:.1f} kW{rest}; the site gives {site}")


@_TABLE.rule(
    "ram-below-gpu-memory",
    Severity.WARNING,
    45,
    why="Weights and checkpoints are staged in host memory; a node with less of it than its GPUs hold loads in "
    "pieces, and cannot keep an asynchronous checkpoint of all of them.",
    satisfy="give a node at least as much memory as its GPUs have together",
    example="hardware: {ram: 2048 GiB}   # eight 80 GB GPUs",
    source="Clusterwright's default of 1 × GPU memory: the lowest at which one full copy of GPU state fits the host; "
    "DGX systems ship with about three times as much (NVIDIA DGX H100 datasheet: 2 TB for 640 GB)",
)
def ram_low(subject: Subject) -> Iterator[Hit]:
    """A node has less memory than its GPUs together."""
    for name, pool in subject.gpu_pools.items():
        gpu, each, shape = subject.gpu(name), subject.gpus_per_node(name), subject.shape(name)
        ram = (pool.hardware.ram if pool.hardware else None) or (shape.ram if shape else None)
        if gpu is None or each is None or ram is None:
            continue  # host-missing and gpu-unknown say so
        wanted = each * gpu.memory.to("GiB")
        if ram.to("GiB") < wanted:
            message = f"a node of pool {name} has {ram} for {each} GPUs with {wanted:g} GiB together"
            yield Hit(f"pools.{name}.hardware.ram", message)


#: Formats in which a training step computes → the rate that the catalogue gives for them.
_RATES: Final = {"fp8": "fp8", "nvfp4": "fp4", "mxfp4": "fp4", "int8": "int8", "fp16": "fp16", "bf16": "bf16"}


@_TABLE.rule(
    "precision-unsupported",
    Severity.ERROR,
    85,
    why="A format without tensor cores on the GPU is refused by the engine, or unpacked to a wider one: less memory, "
    "no speed.",
    satisfy="choose a format that the GPU computes in, or another GPU",
    example="serve: {precision: fp8, ...}   # not on A100",
    source="the catalogue's engine formats (support tables of the engines) and dense rates (vendor datasheets)",
    area="workload",
)
def precision_unsupported(subject: Subject) -> Iterator[Hit]:
    """A workload's number format is not one that the GPU, or the engine on that GPU, computes in."""
    for name, workload in subject.workloads.items():
        for pool in subject.pools_of(name):
            gpu = subject.gpu(pool)
            if gpu is None:
                continue
            if workload.serve is not None:
                engine = workload.serve.engine.split()[0].lower()
                yield from _serving_format(subject, name, engine, workload.serve.precision, gpu)
            if workload.train is not None and not _computes(gpu, workload.train.precision):
                message = (
                    f"workload {name} trains in {workload.train.precision}, for which {gpu.name} has no dense rate"
                )
                yield Hit(f"workloads.{name}.train.precision", message)


def _computes(gpu: Gpu, precision: str) -> bool:
    rates: DenseRates = gpu.dense
    return precision not in _RATES or getattr(rates, _RATES[precision]) is not None


def _serving_format(subject: Subject, name: str, engine: str, precision: str, gpu: Gpu) -> Iterator[Hit]:
    path = f"workloads.{name}.serve.precision"
    formats = subject.support.engine_formats(engine, precision)
    if gpu.vendor == "amd":
        formats = tuple(f for f in formats if f.gfx)
        runs = [f for f in formats if gpu.gfx in f.gfx]
        on = f"{gpu.name} ({gpu.gfx})"
    else:
        formats = tuple(f for f in formats if f.capability is not None)
        runs = [f for f in formats if gpu.capability is not None and f.capability and gpu.capability >= f.capability]
        on = f"{gpu.name} (compute capability {gpu.compute_capability})"
    if not formats:
        if precision not in ("bf16", "fp16", "fp32") and not _computes(gpu, precision):
            yield Hit(path, f"workload {name} serves in {precision}, for which {gpu.name} has no dense rate")
        return
    if not runs:
        needs = listed(sorted({f.minimum_capability or listed(f.gfx, "or") for f in formats}), "or")
        yield Hit(path, f"{engine} runs {precision} from {needs} on; workload {name} would run on {on}")
    elif not any(f.native for f in runs):
        message = (
            f"on {on} {engine} only stores weights in {precision} and computes wider: memory is saved, time is not"
        )
        yield Hit(path, message, severity=Severity.WARNING, weight=50)


@_TABLE.rule(
    "nvme-below-payload",
    Severity.ERROR,
    60,
    why="A cache that cannot hold what is read through it is emptied by every replica that starts.",
    satisfy="give nodes more local disk, or cache fewer artefacts",
    example="hardware: {nvme_capacity: 30.72 TB}",
    source="Clusterwright: size of the payloads that a node caches against its disk",
    area="storage",
)
def nvme_below_payload(subject: Subject) -> Iterator[Hit]:
    """The local disk of a node is smaller than the payloads it caches."""
    for pool, declared in subject.gpu_pools.items():
        hardware = declared.hardware
        if hardware is None or hardware.nvme_capacity is None:
            continue
        total, names = 0.0, []
        for planned in subject.plan.workloads:
            payload, workload = planned.payload, subject.workloads[planned.name]
            cache = subject.stores.get(workload.payload.cache or "") if workload.payload else None
            size = getattr(payload, "size", None)
            if cache is not None and cache.kind == "local-nvme" and planned.pool == pool and size is not None:
                total += size.value
                names.append(planned.name)
        if total > hardware.nvme_capacity.to("GB"):
            message = (
                f"payloads of {listed(names)} are {total:.0f} GB; a node of pool {pool} has {hardware.nvme_capacity}"
            )
            yield Hit(f"pools.{pool}.hardware.nvme_capacity", message)


@_TABLE.rule(
    "spares-cover-pool",
    Severity.ERROR,
    60,
    why="Spares are kept free; a pool of nothing but spares runs nothing.",
    satisfy="keep fewer nodes spare than the pool has",
    example='pools: {gpu: {nodes: "gpu-[001-010]", spares: 1}}',
    source="Clusterwright: capacity for workloads is nodes less spares",
)
def spares_cover_pool(subject: Subject) -> Iterator[Hit]:
    """A pool keeps as many spares as it has nodes, or more."""
    for name, pool in subject.gpu_pools.items():
        if subject.all_spare(name):
            kept = f"pool {name} keeps {pool.spares} of {counted(pool.node_count, 'node')} spare"
            yield Hit(f"pools.{name}.spares", f"{kept}: no usable node is left, nothing is placed on it")


@_TABLE.rule(
    "mig-unsupported",
    Severity.ERROR,
    60,
    why="A GPU without MIG cannot be partitioned; the operator leaves it whole or the node unready.",
    satisfy="choose another sharing policy or a GPU with MIG",
    example="sharing: none",
    source="the catalogue's GPU entries (MIG instances, NVIDIA MIG user guide)",
)
def mig_unsupported(subject: Subject) -> Iterator[Hit]:
    """A pool is shared by MIG and its GPU has none."""
    for name, pool in subject.gpu_pools.items():
        gpu = subject.gpu(name)
        if pool.sharing != "mig":
            continue
        if gpu is None:
            yield undecided(f"pools.{name}.shape", f"the GPU model of pool {name}, to know whether it has MIG")
        elif gpu.mig_instances == 0:
            yield Hit(f"pools.{name}.sharing", f"pool {name} is shared by MIG; {gpu.name} has no MIG")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
