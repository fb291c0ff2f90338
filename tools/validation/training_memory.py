"""Training memory against public runs: memory.jsonl's training rows, and torchtitan's reports.

State sizes are the frameworks' documented ones, activations are counted, the reserve is that of published Megatron
runs, buckets those of DeepSpeed's documentation. The 96 Megatron-DeepSpeed rows are one cluster (one team, one machine,
one month): they are scored whole, and nothing of them went into the model. Of the DeepSpeed ZeRO-3 cluster's benchmark
script the model knows what it switches on (overlapping communication, Liger kernels, default buckets). The reserve of
sharded weights (1.1) was set in view of torchtitan's 8B runs, so that group is not independent; that of expandable
segments (1.1) in view of ms-swift's examples of other models than the two that are scored here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from clusterwright.physics.training.memory import StageMemory, training_memory
from validation.scoring import Failures, Row, Scored
from validation.torchtitan_tables import TitanRun, torchtitan
from validation.training_cases import llama, read_case, shown_gib
from validation.training_tables import megatron_bridge
from validation.training_throughput import layout_of, read_decoders, recipe_of

#: Runs that stopped for lack of memory, fixed before any estimate was made: all of the set.
OUT_OF_MEMORY: Final = ("tr147", "tr154", "tr155", "tr167", "tr168", "tr182")
#: What the record of a run itself says against a steady state that did not fit.
NOT_FORESEEN: Final = {
    "tr182": "; its twin of the same day and layout with 98 % of its parameters per stage ran at 67 GB (tr176): what "
    "stopped it is not in the table",
}
#: GiB that PyTorch sees of a GPU.
USABLE: Final = {"A100 40GB": 39.4, "A100 80GB": 79.2, "H100 80GB": 79.1, "H200": 139.7, "B200": 178.35}
#: Why rows of a cluster are off.
WHY: Final = {
    "ml-engineering-llama8-zero3": "2 to 5 GiB high at every length: buckets are counted full, as configured",
}
#: Part of a row's name → why it is off: the report itself tells these runs apart, the model does not.
TITAN_WHY: Final = (
    ("4:2D", "the report has 67.6 and 71.9 GiB for one layout, with and without asynchronous TP"),
    ("5:1F1B", "the report's interleaved schedule takes 10 GiB less than this one, though it holds more micro-batches"),
    ("CP 8", "the report grows by 10 GiB from context parallel 1 to 8, the estimate does not"),
)
#: GiB that CUDA reports (hardware catalogue) of the systems in Megatron-Bridge's tables.
REPORTED: Final = {"DGX-H100": 79.1, "DGX-B200": 178.35, "DGX-B300": 267.7, "DGX-GB200": 184.3, "DGX-GB300": 276.5}


def score(cases: Path) -> list[Scored | Failures]:
    """Peak memory of the runs that ran, the runs out of memory, and whether published recipes fit at all."""
    return [score_peaks(cases), failures(cases), recipes(cases)]


def score_peaks(cases: Path) -> Scored:
    """Peak memory of the runs that ran."""
    rows = [_titan_row(run) for run in torchtitan(cases)]
    for case in _cases(cases):
        if case["outcome"] != "ok":
            continue
        measured = float(case["measured"]["peak_memory"])
        predicted = _predicted(case, cases)
        inside = predicted is not None and abs(predicted - measured) <= max(3.0, 0.10 * measured)
        why = WHY.get(case["cluster"], case["note"] or "") if predicted is not None else "engine or model not known"
        rows.append(Row(case["id"], case["engine"], predicted, measured, inside, case["model"].split()[0], why))
    return Scored(
        "training memory",
        "max(3 GiB, 10 %)",
        "nothing fitted on Megatron-DeepSpeed, one cluster; reserves of 1.1 set in view of torchtitan and of other "
        "ms-swift runs",
        tuple(rows),
        notes=("layer counts that the table leaves out follow from its model sizes; heads from the nearest run",),
        unit="GiB",
    )


def _titan_row(run: TitanRun) -> Row:
    peak = training_memory(_LLAMAS[run.model], run.layout, run.recipe).peak
    predicted = peak.total_gib - dict(peak.terms)["CUDA context and NCCL"]
    inside = abs(predicted - run.memory_gib) <= max(3.0, 0.10 * run.memory_gib)
    why = next((why for part, why in TITAN_WHY if part in run.id), "")
    return Row(run.id, "torchtitan (in sample)", predicted, run.memory_gib, inside, run.model, why)


def failures(cases: Path) -> Failures:
    """Runs out of memory that the estimate foresees, and runs that ran and are predicted to fit."""
    foreseen, missed, fits, ran = [], [], 0, 0
    for case in _cases(cases):
        total, usable = _predicted(case, cases), USABLE.get(case["gpu"])
        if total is None or usable is None:
            continue
        if case["outcome"] == "ok":
            ran, fits = ran + 1, fits + (total <= usable)
        elif total > usable:
            foreseen.append(case["id"])
        else:
            why = NOT_FORESEEN.get(case["id"], "")
            missed.append((case["id"], f"the estimate is {total:.1f} of {usable} GiB{why}"))
    return Failures("training out of memory", tuple(foreseen), tuple(missed), fits, ran)


def recipes(cases: Path) -> Failures:
    """Megatron-Bridge's published runs, all of which ran: those that fit at least when whole layers are recomputed;
    what they recomputed is not published.
    """
    decoders, fits, ran, notes = read_decoders(cases), 0, 0, []
    for run in megatron_bridge(cases):
        if run.model not in decoders:
            continue
        recipe = replace(recipe_of(run, decoders[run.model]), expandable=True, recompute="full")
        peak = training_memory(decoders[run.model], layout_of(run), recipe).peak
        total = peak.total_gib
        ran, fits = ran + 1, fits + (total <= REPORTED[run.system])
        if total > REPORTED[run.system]:
            notes.append(f"{run.id} {run.model} {layout_of(run)}: {_too_much(peak, REPORTED[run.system])}")
    return Failures("published Megatron-Bridge runs", (), (), fits, ran, tuple(notes))


def _too_much(peak: StageMemory, reported_gib: float) -> str:
    """By how much a run is over, and what of it follows from its layout alone."""
    states = sum(value for name, value in peak.terms if name in ("weights", "gradients", "optimizer"))
    text = f"{peak.total_gib:.0f} of {reported_gib} GiB"
    if states < 0.95 * reported_gib:
        return text
    return f"{text}; as printed its states alone take {states:.0f}, so the table leaves something out"


def _cases(cases: Path) -> Iterator[dict[str, Any]]:
    with (cases / "memory.jsonl").open() as lines:
        yield from (case for case in map(json.loads, lines) if case["kind"] == "training")


def _predicted(case: Mapping[str, Any], cases: Path) -> float | None:
    """GiB that the row's tool would show; None where its engine or model is not known."""
    read = read_case(case, cases / "model_configs")
    return None if read is None else shown_gib(case, training_memory(*read).peak)


#: Models of torchtitan's reports.
_LLAMAS: Final = {
    "LLAMA3_8B": llama("Llama-3.1-8B", 32, 4096, 32, 8, 128, 14336, 128256),
    "LLAMA3_70B": llama("Llama-3.1-70B", 80, 8192, 64, 8, 128, 28672, 128256),
    "LLAMA3.1_405B": llama("Llama-3.1-405B", 126, 16384, 128, 8, 128, 53248, 128256),
}
