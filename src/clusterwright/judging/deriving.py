"""What a tool's output proves: its transcript → readings of metrics, with conditions and nodes.

A part that is missing, skipped or not checked becomes a reading without value and the reason; such a reading keeps the
other values of its record from passing, while a failure among them still counts. A tool's own verdict is never one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.judging.derivations import (
    collectives,
    diagnoses,
    exports,
    fabrics,
    gpus,
    kernels,
    probes,
    schedulers,
    servings,
    storages,
    trainings,
)
from clusterwright.judging.derivations.facts import Facts
from clusterwright.model.evidence import Reading
from clusterwright.model.observations import Notice, Run, Transcript, Weight

Derive = Callable[[Facts], Iterator[Reading]]


@dataclass(frozen=True, slots=True)
class Family:
    """Tools that prove the same metrics.

    Args:
        kinds: beginnings of the readers' kinds.
        derive: the readings of one run; () for a run that is none of its.
        metrics: what a whole run would have proven; without values these are said to be missing.
        benchmark: a fault of the run spoils every value in it. For a state report each value stands for itself.
    """

    name: str
    kinds: tuple[str, ...]
    derive: Derive
    metrics: tuple[str, ...]
    benchmark: bool


_BENCHMARKS: Final = ("vllm-bench", "sglang-bench", "genai-perf", "trtllm-bench", "guidellm")
FAMILIES: Final[tuple[Family, ...]] = (
    Family("collectives", ("nccl-", "rccl-"), collectives.derive_collectives, collectives.METRICS_OF, True),
    Family("traffic", ("perftest",), fabrics.derive_traffic, fabrics.TRAFFIC_METRICS, True),
    Family("storage", ("fio", "ior", "mdtest", "io500", "elbencho", "gdsio"), storages.derive_storages, (), True),
    Family("support", ("gdscheck",), storages.derive_support, storages.SUPPORT_METRICS, False),
    Family("serving", _BENCHMARKS, servings.derive_servings, servings.METRICS_OF, True),
    Family("capacity", ("server-capacity",), servings.derive_capacities, servings.CAPACITY_METRICS, True),
    Family("training", ("training-log",), trainings.derive_trainings, trainings.METRICS_OF, True),
    Family("exports", ("dcgm-metrics",), exports.derive_exports, exports.METRICS_OF, False),
    Family("listing", ("checkpoint-listing",), trainings.derive_listings, (), False),
    Family("gpus", ("nvidia-smi", "rocm-smi", "dcgm-nvlink", "dcgm-discovery"), gpus.derive_gpus, (), False),
    Family("diagnosis", ("dcgm-diag",), diagnoses.derive_diagnoses, diagnoses.METRICS_OF, False),
    Family("watches", ("dcgm-health",), diagnoses.derive_healths, diagnoses.METRICS_OF, False),
    Family("kernel", ("kernel-log",), kernels.derive_kernels, kernels.METRICS_OF, False),
    Family("switches", ("fabric-manager-log",), kernels.derive_switches, (), False),
    Family("bus", ("lspci",), kernels.derive_bus, (), False),
    Family("checkpoints", ("clusterwright-checkpoint",), probes.derive_checkpoints, probes.CHECKPOINT_METRICS, True),
    Family("placement", ("clusterwright-placement",), probes.derive_placements, probes.PLACEMENT_METRICS, True),
    Family("ports", ("ib-state",), fabrics.derive_ports, (), False),
    Family("counters", ("ib-counters",), fabrics.derive_counters, (), False),
    Family("schedulers", ("slurm", "k8s"), schedulers.derive_schedulers, (), False),
)  # fmt: skip
#: Faults that are about some metrics of a run only: a step was as fast as it was, whatever became of a checkpoint.
_ABOUT: Final = {"checkpoint-not-saved": ("checkpoints_failed", "checkpoint_write")}
#: Conditions that describe the system on which a tool ran.
_ENVIRONMENT: Final = (
    "driver", "cuda", "nccl", "rccl", "rocm", "kernel", "vbios", "firmware", "fabric_manager", "gpu", "image",
    "engine", "model", "libfabric", "ofi", "mpi", "os",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Derivation:
    """What one output proves.

    Args:
        nodes: every host that a reading names.
        environment: versions and devices that the output prints, and the version of the tool.
        started, ended: as printed (ISO 8601 where the reader could tell), "" when nothing is.
        notices: of all runs, errors first.
    """

    kind: str
    tool: str
    readings: tuple[Reading, ...]
    nodes: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    started: str = ""
    ended: str = ""
    notices: tuple[Notice, ...] = ()


def derive(transcript: Transcript, *, nodes: Sequence[str] = (), workload: str = "") -> Derivation:
    """Every reading that an output gives.

    Args:
        nodes: hosts it was taken on, where the output does not name them (or names pods): for a tool that looks at
            one host, that host; for one that runs over several at once, all of them.
        workload: the declared workload that it was about, "" when it is about none.
    """
    readings: list[Reading] = []
    environment: dict[str, str] = {}
    for run in transcript.runs:
        facts = Facts(transcript.kind, run, nodes, workload)
        readings += _derive_run(facts)
        for name in _ENVIRONMENT:
            if text := facts.text(name):
                environment.setdefault(name, text)
        if run.version:
            environment.setdefault("tool_version", f"{run.tool} {run.version}")
    if transcript.refusal is not None or not transcript.runs:
        readings += _refused(transcript, nodes, workload)
    return Derivation(
        kind=transcript.kind,
        tool=transcript.runs[0].tool if transcript.runs else transcript.kind,
        readings=tuple(dict.fromkeys(readings)),
        nodes=tuple(dict.fromkeys(n for r in readings for n in r.nodes)),
        environment=tuple(environment.items()),
        started=_first(transcript.runs, "started"),
        ended=_last(transcript.runs, "ended"),
        notices=tuple(sorted(_notices(transcript.runs), key=lambda n: _ORDER[n.weight])),
    )


_ORDER: Final = {Weight.ERROR: 0, Weight.WARNING: 1, Weight.INFO: 2}


def families_of(kind: str) -> tuple[Family, ...]:
    """The families that a kind of output may belong to."""
    return tuple(f for f in FAMILIES if kind.startswith(f.kinds))


def _derive_run(facts: Facts) -> list[Reading]:
    found: list[Reading] = []
    for family in families_of(facts.kind):
        given = list(family.derive(facts))
        metrics = tuple(dict.fromkeys(r.metric for r in given)) or family.metrics
        faults = list(_faults(facts.run, benchmark=family.benchmark))
        if not given and not faults:
            faults = [("no value: it holds no result of this kind", ())]
        found += given
        found += [
            _lost(facts, metric, why) for why, about in faults for metric in metrics if not about or metric in about
        ]
    return found


def _lost(facts: Facts, metric: str, why: str) -> Reading:
    operation = facts.text("operation")
    return facts.reading(metric, None, {"operation": operation} if operation else {}, why=why)


def _faults(run: Run, *, benchmark: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(why it may not pass, the metrics that this is about; () for all)."""
    if run.missing:
        yield f"incomplete: {'; '.join(run.missing[:3])}", ()
    if run.rejected:
        sample = f", such as line {run.unread[0].line} ({run.unread[0].why})" if run.unread else ""
        yield f"incomplete: {run.rejected} rows could not be read{sample}", ()
    if benchmark:
        for notice in run.notices:
            if notice.weight is Weight.ERROR:
                yield f"invalid: {notice.message}", _ABOUT.get(notice.code, ())


def _refused(transcript: Transcript, nodes: Sequence[str], workload: str) -> Iterator[Reading]:
    why = str(transcript.refusal) if transcript.refusal else "it holds no run"
    facts = Facts(transcript.kind, Run(transcript.kind), nodes, workload)
    for family in families_of(transcript.kind) if transcript.kind else ():
        for metric in family.metrics:
            yield facts.reading(metric, None, why=f"refused: {why}")


def _notices(runs: Sequence[Run]) -> Iterator[Notice]:
    yield from dict.fromkeys(n for run in runs for n in run.notices)


def _first(runs: Sequence[Run], name: str) -> str:
    return next((v for run in runs if isinstance(v := run.condition(name), str)), "")


def _last(runs: Sequence[Run], name: str) -> str:
    return next((v for run in reversed(runs) if isinstance(v := run.condition(name), str)), "")
