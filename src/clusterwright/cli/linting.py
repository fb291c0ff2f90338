"""`cw lint-thresholds`: thresholds that no hardware meets, that broken hardware meets, or that say nothing."""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from clusterwright.app.linting import describe_lint, lint_file, lint_row, values_of_lint
from clusterwright.cli.output import Format, columns, say, say_json
from clusterwright.lib.errors import InvalidInput


def lint_thresholds(
    files: Annotated[
        list[str] | None, typer.Argument(help="Architecture files, or tables of thresholds in YAML, JSON or CSV.")
    ] = None,
    gpu: Annotated[str, typer.Option(metavar="NAME", help="Without a file: GPU of the catalogue.")] = "",
    shape: Annotated[str, typer.Option(metavar="NAME", help="Without a file: node shape of the catalogue.")] = "",
    nodes: Annotated[str, typer.Option(metavar="N", help="Nodes that take part at once.")] = "",
    gpus_per_node: Annotated[str, typer.Option(metavar="N", help="GPUs of a node; from the shape if absent.")] = "",
    domain_gpus: Annotated[
        str, typer.Option(metavar="N", help="GPUs that reach each other without a NIC; with multi-node NVLink off: 4.")
    ] = "",
    nic: Annotated[str, typer.Option(metavar="RATE", help="Rate of one compute port, such as '400 Gb/s'.")] = "",
    nics: Annotated[str, typer.Option(metavar="N", help="Compute ports of a node; one per GPU if absent.")] = "",
    in_network_reduction: Annotated[
        bool, typer.Option("--in-network-reduction", help="Switches of the network add up (SHARP).")
    ] = False,
    operation: Annotated[str, typer.Option(metavar="NAME", help="all-reduce, all-gather, …")] = "",
    message_size: Annotated[str, typer.Option(metavar="SIZE", help="Such as '16 GiB'.")] = "",
    at_least: Annotated[str, typer.Option(metavar="RATE", help="The threshold, such as '380 GB/s'.")] = "",
    metric: Annotated[str, typer.Option(metavar="NAME", help="busbw or algbw.")] = "",
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="Text for people, or everything as JSON.")] = Format.text,
) -> None:
    """Say which thresholds no hardware can meet, which broken hardware meets, and which say nothing.

    Each bandwidth is held against what its collective can reach on its system: the bound that nothing exceeds, the
    reference of a flat ring, and the best published result. A threshold without a message size, or whose field says
    bits and holds bytes, is found too. A table's row has: name, gpu or shape, nodes, nic, operation, message_size,
    at_least (or a field of its own such as min_busbw_gbps).

    Exit codes: 0 all are sound; 1 one is not; 2 invalid input; 3 one could not be decided, or there is none.
    """
    row = {
        "gpu": gpu, "shape": shape, "nodes": nodes, "gpus_per_node": gpus_per_node, "domain_gpus": domain_gpus,
        "nic": nic, "nics": nics, "operation": operation, "message_size": message_size, "at_least": at_least,
        "metric": metric,
    }  # fmt: skip
    given = {key: value for key, value in row.items() if value}
    if bool(files) == bool(given):
        raise InvalidInput("name files, or describe one threshold with --gpu, --at-least and so on; one of both")
    if given:
        if in_network_reduction:
            given["in_network_reduction"] = "true"
        results = [lint_row({"name": "threshold", **given}, catalogues or ())]
    else:
        results = [lint_file(f, catalogues or (), today=datetime.date.today()) for f in files or ()]
    if output is Format.json:
        say_json([values_of_lint(result) for result in results])
    else:
        say("\n\n".join(describe_lint(result, columns()) for result in results))
    codes = {result.exit_code for result in results}
    code = 1 if 1 in codes else max(codes)
    if code:
        raise typer.Exit(code)
