"""`cw fit`: does a model fit these GPUs, how many, in which layout, at what cost."""

from __future__ import annotations

import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterwright.app.fitting import FitRequest, describe_fit, fit, markdown_of_fit, options_over
from clusterwright.app.fitting_profile import load_profile
from clusterwright.cli.output import Exit, columns, note, say, say_json
from clusterwright.lib.errors import InvalidInput

if TYPE_CHECKING:
    from clusterwright.app.fitting import Answer
    from clusterwright.app.fitting_forms import More


class Output(StrEnum):
    """Forms of an answer."""

    text = "text"
    markdown = "markdown"
    json = "json"
    csv = "csv"


class Audience(StrEnum):
    """Who reads the answer."""

    internal = "internal"
    customer = "customer"


Text = str | None


def fit_(
    model: Annotated[
        Text,
        typer.Argument(metavar="MODEL", help="Hugging Face id or alias, or the path of a config.json or its folder."),
    ] = None,
    machines: Annotated[
        Text,
        typer.Argument(metavar="GPU[,GPU…]", help="GPUs, nodes or SKUs to compare: h100,8xh200,dgx-b200,gb200-nvl72."),
    ] = None,
    rate: Annotated[Text, typer.Option("--rate", metavar="N", help="Requests per second of the whole service.")] = None,
    concurrency: Annotated[
        Text, typer.Option("--concurrency", metavar="N", help="Requests in flight, instead of a rate.")
    ] = None,
    mean_in: Annotated[Text, typer.Option("--in", metavar="N", help="Mean tokens of a prompt (2,000).")] = None,
    mean_out: Annotated[Text, typer.Option("--out", metavar="N", help="Mean tokens of an answer (300).")] = None,
    p95_in: Annotated[
        Text, typer.Option("--in-p95", metavar="N", help="95th percentile of prompts; else all are equally long.")
    ] = None,
    p95_out: Annotated[Text, typer.Option("--out-p95", metavar="N", help="95th percentile of answers.")] = None,
    trace: Annotated[
        Text,
        typer.Option(
            "--trace", metavar="FILE", help="Lengths, rate and prefix reuse of requests in CSV or JSON lines."
        ),
    ] = None,
    reuse: Annotated[
        Text, typer.Option("--reuse", metavar="SHARE", help="Share of prompt tokens found in the prefix cache.")
    ] = None,
    ttft: Annotated[Text, typer.Option("--ttft", metavar="TIME", help="Target of the time to first token: 1s.")] = None,
    tpot: Annotated[Text, typer.Option("--tpot", metavar="TIME", help="Target of the time per token: 50ms.")] = None,
    at: Annotated[
        Text, typer.Option("--at", metavar="PERCENTILE", help="Which requests must meet targets (p95), or mean.")
    ] = None,
    survive: Annotated[
        Text,
        typer.Option("--survive", metavar="N", help="Nodes to lose with the load still carried; training: spares."),
    ] = None,
    context: Annotated[
        Text, typer.Option("--context", metavar="N", help="Longest sequence that must fit; 32k is 32,768 tokens.")
    ] = None,
    engine: Annotated[
        Text, typer.Option("--engine", metavar="NAME", help='"vllm 0.28", sglang or tensorrt-llm; else vllm.')
    ] = None,
    weights: Annotated[
        Text, typer.Option("--weights", metavar="FORMAT", help="Format that weights are served in; else as stored.")
    ] = None,
    kv: Annotated[Text, typer.Option("--kv", metavar="FORMAT", help="Format of the KV cache: auto, bf16, fp8.")] = None,
    memory_share: Annotated[
        Text, typer.Option("--memory-share", metavar="SHARE", help="Share of memory as the engine counts it.")
    ] = None,
    price: Annotated[
        Text, typer.Option("--price", metavar="MONEY", help="Per GPU-hour: $2.40, or h100=2.4,h200=3.1.")
    ] = None,
    utilisation: Annotated[
        Text, typer.Option("--utilisation", metavar="SHARE", help="Mean load ÷ --rate, for money per token.")
    ] = None,
    gpus: Annotated[
        Text, typer.Option("--gpus", metavar="N", help="GPUs that there are; else as many as needed.")
    ] = None,
    budget: Annotated[
        Text, typer.Option("--budget", metavar="MONEY", help="What do I get for $50k/month (training: or $2M once)?")
    ] = None,
    power: Annotated[
        Text, typer.Option("--power", metavar="POWER", help="What do I get for 100kW, cooling included?")
    ] = None,
    pue: Annotated[Text, typer.Option("--pue", metavar="N", help="Power with cooling ÷ power of IT (1.25).")] = None,
    nic: Annotated[
        Text, typer.Option("--nic", metavar="RATE", help="NIC of one GPU: 400Gb/s; else what the node has.")
    ] = None,
    goal: Annotated[
        Text, typer.Option("--goal", metavar="GOAL", help="Best by cost, latency, throughput, or domain (failure).")
    ] = None,
    train: Annotated[bool, typer.Option("--train", help="Ask about training instead of inference.")] = False,
    tokens: Annotated[Text, typer.Option("--tokens", metavar="N", help="Training: tokens in all: 1T.")] = None,
    deadline: Annotated[
        Text, typer.Option("--deadline", metavar="TIME", help="Training: until it is done: 30d.")
    ] = None,
    sequence: Annotated[Text, typer.Option("--sequence", metavar="N", help="Training: tokens a sequence (8k).")] = None,
    batch: Annotated[
        Text, typer.Option("--batch-size", metavar="N", help="Training: sequences a step; else 4 Mi tokens.")
    ] = None,
    precision: Annotated[
        Text, typer.Option("--precision", metavar="FORMAT", help="Training: bf16, fp8, mxfp8, nvfp4 or fp16.")
    ] = None,
    framework: Annotated[
        Text, typer.Option("--framework", metavar="NAME", help="Training: megatron, torchtitan or deepspeed.")
    ] = None,
    method: Annotated[
        Text, typer.Option("--method", metavar="METHOD", help="Training: full, or adapters: lora, qlora (4-bit base).")
    ] = None,
    rank: Annotated[Text, typer.Option("--rank", metavar="N", help="Training: rank of adapters (16).")] = None,
    offload: Annotated[
        Text, typer.Option("--offload", metavar="WHAT", help="Training: on the host: none, optimizer or parameters.")
    ] = None,
    failures: Annotated[
        Text, typer.Option("--failures", metavar="N", help="Training: nodes that fail per 1,000 node-days (6.5).")
    ] = None,
    restart: Annotated[
        Text, typer.Option("--restart", metavar="TIME", help="Training: from a failure until work goes on (10min).")
    ] = None,
    repair: Annotated[
        Text, typer.Option("--repair", metavar="TIME", help="Training: until a failed node is back (1d).")
    ] = None,
    checkpoints: Annotated[
        Text, typer.Option("--checkpoint-rate", metavar="RATE", help="Training: what storage takes (2GB/s a node).")
    ] = None,
    bill: Annotated[
        bool, typer.Option("--bom", help="Add the bill of materials: nodes, switches, optics, racks, power, spares.")
    ] = False,
    elsewhere: Annotated[
        bool, typer.Option("--alternatives", help="Add what APIs and rentals charge for the same work.")
    ] = False,
    apart: Annotated[
        bool, typer.Option("--disaggregated", help="Add prefill and decode on workers of their own, against replicas.")
    ] = False,
    profile: Annotated[
        Text,
        typer.Option(
            "--profile",
            metavar="FILE",
            help="Your prices, SKUs and assumptions; else $CLUSTERWRIGHT_PROFILE or "
            "~/.config/clusterwright/profile.yaml. An empty name means none.",
        ),
    ] = None,
    audience: Annotated[
        Audience, typer.Option("--audience", help="A customer's page has no costs, margins or doubts of yours.")
    ] = Audience.internal,
    rows: Annotated[
        Text, typer.Option("--batch", metavar="FILE", help="A CSV with a question per row; columns named as options.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Write answers to a .md, .csv, .xlsx or .json file.")
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Write an architecture file that `cw plan` goes on from."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files of --to and --write.")] = False,
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    output: Annotated[
        Output, typer.Option("--format", help="Text or Markdown to read, JSON or CSV to use.")
    ] = Output.text,
) -> None:
    """Say whether a model fits, on how many GPUs, in which layout, with which flags, at what cost.

    Compares the GPUs named and ranks them; of the best it prints the memory of a GPU, the engine's command line, what
    a failure takes, why popular layouts lost, which assumptions move the answer, and what is worth asking back.
    Figures carry the range of their error and what they were held to. With --budget or --power the answer is the load
    that they carry; with --train it is about training.

    Exit codes: 0 it fits and holds the targets; 1 not; 2 invalid input; 3 nothing can be said. Of a batch the worst.
    """
    options = {
        "rate": rate, "concurrency": concurrency, "in": mean_in, "out": mean_out, "in-p95": p95_in, "out-p95": p95_out,
        "reuse": reuse, "ttft": ttft, "tpot": tpot, "at": at, "survive": survive, "context": context, "engine": engine,
        "weights": weights, "kv": kv, "memory-share": memory_share, "price": price, "utilisation": utilisation,
        "gpus": gpus, "budget": budget, "power": power, "pue": pue, "nic": nic, "goal": goal, "tokens": tokens,
        "deadline": deadline, "sequence": sequence, "batch-size": batch, "precision": precision, "framework": framework,
        "method": method, "rank": rank, "offload": offload, "failures": failures, "restart": restart, "repair": repair,
        "checkpoint-rate": checkpoints,
    }  # fmt: skip
    asked = {name: text for name, text in options.items() if text is not None}
    if trace is not None:
        from clusterwright.app.fitting_traces import read_requests

        found = read_requests(trace)
        note(found.told)
        asked = options_over(found.options, asked)
    request = FitRequest(
        model or "",
        [name.strip() for name in (machines or "").split(",") if name.strip()],
        datetime.date.today(),
        asked,
        train,
        load_profile(profile),
        audience.value,
        catalogues or (),
    )
    if rows is not None:
        if model is not None:
            raise InvalidInput("--batch names models and GPUs in its rows: leave MODEL and GPU out")
        if bill or elsewhere or apart or write is not None:
            raise InvalidInput(
                "--bom, --alternatives, --disaggregated and --write are for one question, not for --batch"
            )
        _answer_batch(rows, to, request, force)
        return
    if apart and train:
        raise InvalidInput("--disaggregated is about inference; leave out --train")
    if model is None or machines is None:
        raise InvalidInput("name a model and one or several GPUs, such as: cw fit llama-3.3-70b h100,h200")
    if to is not None:
        from clusterwright.app.exporting import check_answers

        check_answers(to, replace_file=force)
    answer = fit(request)
    more = None
    if bill or elsewhere or apart:
        from clusterwright.app.fitting_forms import more_of

        more = more_of(answer, request, bill=bill, elsewhere=elsewhere, apart=apart)
    _write(answer, more, to, write, force)
    _print(answer, more, output)
    raise typer.Exit(_code(answer))


def _write(answer: Answer, more: More | None, to: Path | None, architecture: Path | None, force: bool) -> None:
    if to is not None:
        from clusterwright.app.exporting import write_answers
        from clusterwright.app.fitting_batches import Row
        from clusterwright.app.fitting_forms import NOTHING_MORE

        write_answers(to, (Row(1, "", answer, more=more or NOTHING_MORE),), replace_file=force)
        note(f"wrote {to}")
    if architecture is not None:
        from clusterwright.app.fitting_forms import write_architecture

        write_architecture(answer, architecture, replace=force)
        note(f"wrote {architecture}")


def _print(answer: Answer, more: More | None, output: Output) -> None:
    if output in (Output.json, Output.csv):
        from clusterwright.app.fitting_forms import NOTHING_MORE, csv_of_fit, values_of_fit

        if output is Output.json:
            say_json(values_of_fit(answer, more or NOTHING_MORE))
        else:
            say(csv_of_fit(answer).rstrip("\n"))
        return
    blocks = () if more is None else more.blocks
    if output is Output.markdown:
        say(markdown_of_fit(answer, blocks).rstrip("\n"))
    else:
        say(describe_fit(answer, columns(), blocks))


def _answer_batch(path: str, to: Path | None, request: FitRequest, force: bool) -> None:
    from clusterwright.app.exporting import check_answers, write_answers
    from clusterwright.app.fitting_batches import fit_batch, read_batch

    asked = read_batch(path)
    if to is None:
        raise InvalidInput("--batch needs --to FILE for the answers: .md, .csv, .xlsx or .json")
    check_answers(to, replace_file=force)
    rows = fit_batch(path, asked, request)
    write_answers(to, rows, replace_file=force)
    for row in rows:
        for problem in row.problems:
            note(f"error: {problem}")
    wrong = sum(row.answer is None for row in rows)
    holding = sum(row.answer is not None and row.answer.holds for row in rows)
    say(f"{len(rows)} questions: {holding} held, {len(rows) - holding - wrong} not, {wrong} invalid; wrote {to}")
    codes = [Exit.INVALID if row.answer is None else _code(row.answer) for row in rows]
    raise typer.Exit(next((code for code in (Exit.INVALID, Exit.FAILED, Exit.INCOMPLETE) if code in codes), Exit.OK))


def _code(answer: Answer) -> Exit:
    if answer.unknown:
        return Exit.INCOMPLETE
    return Exit.OK if answer.holds else Exit.FAILED
