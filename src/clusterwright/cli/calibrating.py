"""`cw calibrate`: refit the constants of serving to measurements of one's own."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from clusterwright.app.calibrating import (
    CalibrateRequest,
    calibrate,
    describe_outcome,
    values_of_outcome,
    write_calibration,
)
from clusterwright.cli.output import Exit, Format, note, say, say_json


def calibrate_(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="CSV tables, outputs of serving benchmarks, evidence stores; another directory stands for its files.",
        ),
    ],
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="NAME", help="vllm, sglang or tensorrt-llm, where an output does not say."),
    ] = "",
    version: Annotated[str, typer.Option("--engine-version", metavar="VERSION", help="Version of the engine.")] = "",
    model: Annotated[
        str, typer.Option("--model", metavar="MODEL", help="Model, where the output has a path of its own for it.")
    ] = "",
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="GPU", help="GPU of the server, as the catalogue names it.")
    ] = "",
    weights: Annotated[
        str,
        typer.Option("--weights", metavar="FORMAT", help="Format the weights are served in; else the checkpoint's."),
    ] = "",
    cache: Annotated[str, typer.Option("--kv-cache", metavar="FORMAT", help="Format of the KV cache.")] = "bf16",
    tp: Annotated[int, typer.Option("--tp", metavar="N", help="Tensor-parallel GPUs of the server.")] = 1,
    ep: Annotated[int, typer.Option("--ep", metavar="N", help="Expert-parallel ranks of the server.")] = 1,
    dp: Annotated[int, typer.Option("--dp", metavar="N", help="Data-parallel ranks of the server.")] = 1,
    attention_dp: Annotated[
        int, typer.Option("--attention-dp", metavar="N", help="Attention groups that the tensor ranks form.")
    ] = 1,
    width: Annotated[
        float,
        typer.Option("--draft-width", metavar="N", help="Tokens computed per step and sequence with speculation."),
    ] = 1.0,
    accepted: Annotated[
        float, typer.Option("--accepted", metavar="N", help="Tokens kept per step and sequence with speculation.")
    ] = 1.0,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Catalogue file to write the constants to.")
    ] = None,
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or everything as JSON.")] = Format.text,
) -> None:
    """Refit the constants behind TTFT and TPOT to your own measurements, and show what that changes.

    Reads results of vllm bench serve, sglang.bench_serving, genai-perf, aiperf, guidellm and InferenceX, and CSV tables
    with columns such as backend, model, system, isl, osl, concurrency, tp_size, ttft_ms, tpot_ms. Shows errors before
    and after, also on rows held out, the constants that moved, and what the fit has not seen. Write the constants with
    --write and give that file with --catalogue.

    Exit codes: 0 everything was used; 2 a file is not there, an option is wrong, or nothing could be fitted; 3 rows or
    groups were left out.
    """
    outcome = calibrate(
        CalibrateRequest(
            files, engine, version, model, gpu, weights, cache, tp, ep, dp, attention_dp, width, accepted,
            catalogues or (),
        )
    )  # fmt: skip
    if output is Format.json:
        say_json(values_of_outcome(outcome))
    else:
        say(describe_outcome(outcome))
    if write is not None and outcome.refits:
        write_calibration(outcome, write, [Path(file).name for file in files], datetime.date.today())
        note(f"written: {write}")
    if not outcome.refits:
        raise typer.Exit(Exit.INVALID)
    if outcome.refused or outcome.left:
        raise typer.Exit(Exit.INCOMPLETE)
