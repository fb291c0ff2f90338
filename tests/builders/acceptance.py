"""Acceptance plans and returned runs for tests."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path

from clusterwright.app.accepting import AcceptanceRequest, Planned, derive, plan_acceptance
from clusterwright.judging.acceptance_evidence import RunOutput
from clusterwright.judging.acceptance_runs import RunRecord
from clusterwright.judging.acceptance_verdicts import ReturnedRun
from clusterwright.model.parsing import parse_architecture
from clusterwright.model.sources import decode_source
from clusterwright.readers.reading import read_output

ROOT = Path(__file__).parents[2]
TWO_WORKERS = str(ROOT / "examples" / "two-workers" / "cluster.yaml")
TRAINING = str(ROOT / "examples" / "training-1024" / "cluster.yaml")
NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


#: Names that would do harm wherever they are not quoted.
HOSTILE = "a b'c\"$(touch /tmp/owned)`id`;|&\n--x{store}"


@cache
def hostile() -> Planned:
    """The plan of an example whose workload, model, store and image have hostile names."""
    source = Path(TWO_WORKERS).read_text(encoding="utf-8")
    text = source.replace("meta-llama/Llama-3.3-70B-Instruct", json.dumps(HOSTILE))
    text = text.replace("  chat:\n", f"  {json.dumps(HOSTILE)}:\n").replace(
        "workload: chat}", f"workload: {json.dumps(HOSTILE)}}}"
    )
    document = parse_architecture(decode_source("cluster.yaml", text.encode()))
    return Planned(document, derive(document))


@cache
def planned(*overrides, file=TWO_WORKERS, **request) -> Planned:
    """The acceptance plan of an example, with parts of it written over."""
    return plan_acceptance(AcceptanceRequest([file], overrides, **request), now=NOON)


def a_run(test="gpu-inventory", unit="gpu-001", nodes=("gpu-001",), seconds=60.0, **changes) -> RunRecord:
    """The record of a run that went well."""
    run = RunRecord(
        test=test, reader="", unit=unit, attempt=1, role="", node=nodes[0] if nodes else "", nodes=nodes,
        engine="slurm", started=NOON - timedelta(seconds=seconds), ended=NOON, exit_code=0, timed_out=False,
        lacking="", image="", driver="550.90.07", kernel="6.8", files=("stdout.txt",),
    )  # fmt: skip
    return replace(run, **changes)


def returned(run: RunRecord, *texts: str, problem="", image="", kind="") -> ReturnedRun:
    """A run that came back with these outputs."""
    outputs = tuple(
        RunOutput(
            run,
            f"{run.test}/{run.unit}/{run.attempt}-{n}.txt",
            read_output([t.encode()], kind=kind),
            f"sha256:{sha256(t.encode()).hexdigest()}",
            image,
        )
        for n, t in enumerate(texts)
    )
    return ReturnedRun(run, outputs, problem)


def nccl_output(busbw=480.0, size=17179869184, ranks=8, wrong="0", host="gpu-001", gpu="NVIDIA H100 80GB HBM3") -> str:
    """What nccl-tests prints for one size, on one node of `ranks` GPUs."""
    lines = [
        f"# nThread 1 nGpus {ranks} minBytes {size} maxBytes {size} step: 2(factor) "
        "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
    ]
    lines += [
        f"#  Rank {r:2d} Group  0 Pid   1000 on {host:>10} device {r:2d} [0000:{r + 16:02x}:00] {gpu}"
        for r in range(ranks)
    ]
    lines += [
        "#",
        "#                                                              out-of-place                       in-place",
        "#       size         count      type   redop    root " + "    time   algbw   busbw #wrong " * 2,
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]
    algbw = busbw * ranks / (2 * (ranks - 1))
    time = size / algbw / 1e3
    side = f"{time:9.1f} {algbw:7.2f} {busbw:7.2f} {wrong:>6}"
    lines += [
        f"{size:12d} {size // 4:13d}     float     sum      -1 {side} {side}",
        "# Out of bounds values : 0 OK",
        f"# Avg bus bandwidth    : {busbw:.4f}",
        "#",
    ]
    return "\n".join(lines) + "\n"
