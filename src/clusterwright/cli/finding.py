"""`cw find-node`: which node is bad."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clusterwright.app.finding import FindRequest, describe_finding, find_node, values_of_finding
from clusterwright.app.kept_evidence import load_kept
from clusterwright.cli.output import Format, columns, say, say_json


class By(StrEnum):
    """How the nodes are tested against each other."""

    pairs = "pairs"
    halves = "halves"


def find_node_(
    nodes: Annotated[str, typer.Option(metavar="HOSTS", help="The nodes among which a bad one is looked for.")],
    results: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RESULT...]",
            help="Outputs of nccl-tests, rccl-tests or perftest over pairs or groups of the nodes, or directories of "
            "them; the output or its path names the hosts.",
        ),
    ] = None,
    by: Annotated[
        By, typer.Option(help="Pairs that all run at once, or halves that are split where they fail.")
    ] = By.pairs,
    bound: Annotated[
        str, typer.Option(metavar="VALUE", help="What every run must reach (a latency: at most); needed for halves.")
    ] = "",
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="What is compared, such as busbw; else whatever was measured.")
    ] = "",
    evidence: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="A store or a bundle of evidence that holds results.")
    ] = None,
    keys: Annotated[
        list[Path] | None,
        typer.Option("--key", metavar="FILE", help="Public key of somebody whose signature on a bundle counts."),
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or everything as JSON.")] = Format.text,
) -> None:
    """Find a bad node by testing nodes against each other; without results, print which runs to make.

    Pairs: in n-1 rounds of disjoint pairs every node meets every other. A node that is slow with whomever it meets is
    suspect, a pair that is slow though both nodes are fast with others has a bad path; median and MAD of the nodes are
    shown. After three rounds bad nodes are known. Halves: all nodes at once, then whatever fails is split, at most as
    often as the nodes can be halved when one is bad; each step follows from the results given so far.

    A node that differs from its peers in a test of its own, such as nccl-tests on one node, is named too. Wrong results
    count like a run that fails. Results of other nodes, or of nobody knows which, are not used.

    Exit codes: 0 none is suspect; 1 a node or path is; 2 invalid input; 3 more runs are needed, which it prints.
    """
    kept = load_kept(evidence or (), keys or ())
    found = find_node(FindRequest(nodes, results or (), by.value, metric, bound), kept=kept)
    if output is Format.json:
        say_json(values_of_finding(found))
    else:
        say(describe_finding(found, columns()))
    if found.exit_code:
        raise typer.Exit(found.exit_code)
