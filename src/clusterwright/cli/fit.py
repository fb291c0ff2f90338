"""`cw fit`: does a model fit these GPUs, how many, in which layout, at what cost."""

from __future__ import annotations

import datetime
from enum import StrEnum
from typing import Annotated

import typer

from clusterwright.app.fitting import FitRequest, describe_fit, fit, markdown_of_fit
from clusterwright.cli.output import Exit, columns, say


class Output(StrEnum):
    """Forms of an answer."""

    text = "text"
    markdown = "markdown"


Text = str | None


def fit_(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Hugging Face id or alias, or the path of a config.json or its folder."),
    ],
    machines: Annotated[
        str, typer.Argument(metavar="GPU[,GPU…]", help="GPUs or nodes to compare: h100,8xh200,dgx-b200,gb200-nvl72.")
    ],
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
    reuse: Annotated[
        Text, typer.Option("--reuse", metavar="SHARE", help="Share of prompt tokens found in the prefix cache.")
    ] = None,
    ttft: Annotated[Text, typer.Option("--ttft", metavar="TIME", help="Target of the time to first token: 1s.")] = None,
    tpot: Annotated[Text, typer.Option("--tpot", metavar="TIME", help="Target of the time per token: 50ms.")] = None,
    at: Annotated[
        Text, typer.Option("--at", metavar="PERCENTILE", help="Which requests must meet targets (p95), or mean.")
    ] = None,
    survive: Annotated[
        Text, typer.Option("--survive", metavar="N", help="Nodes that may be lost with the load still carried.")
    ] = None,
    context: Annotated[
        Text, typer.Option("--context", metavar="N", help="Longest sequence that must fit; 32k is 32,768 tokens.")
    ] = None,
    engine: Annotated[
        Text, typer.Option("--engine", metavar="NAME", help='"vllm 0.11", sglang or tensorrt-llm; vllm where not said.')
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
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    output: Annotated[Output, typer.Option("--format", help="Text for people, or a page in Markdown.")] = Output.text,
) -> None:
    """Say whether a model fits, on how many GPUs, in which layout, with which flags, at what cost.

    Compares the GPUs named and ranks them; of the best it prints the memory of a GPU, the engine's command line, what
    a failure takes, why popular layouts lost, which assumptions move the answer, and what is worth asking back.
    Figures carry the range of their error and what they were held to.

    Exit codes: 0 it fits and holds the targets; 1 not; 2 invalid input; 3 nothing can be said.
    """
    options = {
        "rate": rate, "concurrency": concurrency, "in": mean_in, "out": mean_out, "in-p95": p95_in, "out-p95": p95_out,
        "reuse": reuse, "ttft": ttft, "tpot": tpot, "at": at, "survive": survive, "context": context, "engine": engine,
        "weights": weights, "kv": kv, "memory-share": memory_share, "price": price, "utilisation": utilisation,
        "gpus": gpus, "budget": budget, "power": power, "pue": pue, "nic": nic, "goal": goal,
        "tokens": tokens, "deadline": deadline, "sequence": sequence,
        "batch-size": batch, "precision": precision, "framework": framework,
    }  # fmt: skip
    answer = fit(
        FitRequest(
            model,
            [name.strip() for name in machines.split(",") if name.strip()],
            datetime.date.today(),
            {name: text for name, text in options.items() if text is not None},
            train,
            catalogues=catalogues or (),
        )
    )
    say(markdown_of_fit(answer) if output is Output.markdown else describe_fit(answer, columns()))
    if answer.unknown:
        raise typer.Exit(Exit.INCOMPLETE)
    if not answer.holds:
        raise typer.Exit(Exit.FAILED)
