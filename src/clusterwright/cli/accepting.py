"""`cw accept`: which tests an acceptance needs, as scripts for others to run, and the verdict on what comes back."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clusterwright.app.accepting import (
    AcceptanceRequest,
    Engine,
    Options,
    acceptance_code,
    describe_acceptance,
    evidence_of_bundle,
    export_acceptance,
    foreign_engine,
    markdown_of_acceptance,
    plan_acceptance,
    values_of_acceptance,
    write_acceptance,
)
from clusterwright.app.accepting_results import (
    ImportRequest,
    describe_import,
    import_acceptance,
    markdown_of_import,
    values_of_import,
)
from clusterwright.cli.main import command_group
from clusterwright.cli.output import Exit, columns, note, say, say_json
from clusterwright.lib.errors import InvalidInput

accept = command_group("Plan an acceptance, hand it out as scripts, and judge what comes back.")


class PageFormat(StrEnum):
    """Output for people, for a ticket, or for programs."""

    text = "text"
    markdown = "markdown"
    json = "json"


_Files = Annotated[list[str], typer.Argument(help="Architecture files, merged in order; - reads standard input.")]
_Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write over a value of the files.")
]
_Catalogues = Annotated[
    list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
]
_Replaced = Annotated[
    str, typer.Option(metavar="HOSTS", help="Nodes that were replaced: plan only what must be run again for them.")
]
_Since = Annotated[
    Path | None,
    typer.Option(metavar="BUNDLE", help="Evidence of before; with --replaced only claims that it met are run again."),
]
_Level = Annotated[int, typer.Option("--dcgm-level", metavar="1-4", help="Level of the DCGM diagnostics.")]
_Format = Annotated[PageFormat, typer.Option("--format", help="Text for people, Markdown for a ticket, or JSON.")]


@accept.command("plan")
def plan(
    files: _Files,
    replaced: _Replaced = "",
    since: _Since = None,
    dcgm_level: _Level = 3,
    overrides: _Overrides = None,
    catalogues: _Catalogues = None,
    output: _Format = PageFormat.text,
) -> None:
    """Derive the tests that the architecture's claims need, ordered to fit the declared window.

    For each test: what it runs, on which nodes, how long, GPU-hours, whether it keeps others out, which rights it
    needs, who must provide it, what it shows and what it leaves open. Negative controls come with the collectives.
    Claims that no test covers are listed with what else would measure them.

    Exit codes: 0 every claim has a test and all fit the window; 1 the window is too short; 2 invalid input; 3 a claim
    has no test.
    """
    planned = plan_acceptance(_request(files, replaced, since, dcgm_level, overrides, catalogues))
    if output is PageFormat.json:
        say_json(values_of_acceptance(planned))
    elif output is PageFormat.markdown:
        say(markdown_of_acceptance(planned))
    else:
        say(describe_acceptance(planned, columns()))
    code = acceptance_code(planned.plan)
    if code:
        raise typer.Exit(code)


def _request(
    files: list[str],
    replaced: str,
    since: Path | None,
    dcgm_level: int,
    overrides: list[str] | None,
    catalogues: list[str] | None,
) -> AcceptanceRequest:
    if since is not None and not replaced:
        raise InvalidInput("--since BUNDLE wants to know what changed: name the replaced nodes with --replaced HOSTS")
    evidence = evidence_of_bundle(since) if since is not None else None
    return AcceptanceRequest(files, overrides or (), catalogues or (), replaced, evidence, dcgm_level)


@accept.command("export")
def export(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE... DIR", help="Architecture files, then the directory to write to.")
    ],
    kubernetes: Annotated[bool, typer.Option("--kubernetes", help="As plain Jobs.")] = False,
    slurm: Annotated[bool, typer.Option("--slurm", help="As sbatch scripts.")] = False,
    shell: Annotated[bool, typer.Option("--shell", help="As shell scripts, for one machine or over ssh.")] = False,
    stores: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="NAME=WHERE", help="Path of a store on the nodes; with --kubernetes its PVC."),
    ] = None,
    endpoints: Annotated[
        list[str] | None, typer.Option("--endpoint", metavar="WORKLOAD=URL", help="Address of a service.")
    ] = None,
    queue: Annotated[str, typer.Option(metavar="NAME", help="Partition of Slurm, or LocalQueue of Kueue.")] = "",
    namespace: Annotated[str, typer.Option(metavar="NAME", help="Namespace of Kubernetes.")] = "default",
    image: Annotated[str, typer.Option(metavar="REF", help="Production image, instead of the declared one.")] = "",
    tools_image: Annotated[
        str, typer.Option(metavar="REF", help="Image with dcgmi, perftest, ibstat and fio, for Kubernetes.")
    ] = "",
    rdma_resource: Annotated[
        str, typer.Option(metavar="NAME", help="Extended resource by which pods get RDMA devices.")
    ] = "",
    gpu_resource: Annotated[
        str, typer.Option(metavar="NAME", help="Extended resource by which pods get GPUs.")
    ] = "nvidia.com/gpu",
    force: Annotated[bool, typer.Option("--force", help="Write into a directory that holds something.")] = False,
    replaced: _Replaced = "",
    since: _Since = None,
    dcgm_level: _Level = 3,
    overrides: _Overrides = None,
    catalogues: _Catalogues = None,
) -> None:
    """Write the tests as scripts that need nothing of ours in the cluster.

    The directory holds a README, one POSIX shell script per test, what starts them on the engine, and a collect
    script that packs everything with a manifest. The same file and options give the same bytes.

    Exit codes: 0 written; 2 invalid input, or the directory is not empty.
    """
    flags: dict[Engine, bool] = {"kubernetes": kubernetes, "slurm": slurm, "shell": shell}
    chosen = [engine for engine, given in flags.items() if given]
    if len(chosen) != 1:
        raise InvalidInput("choose one of --kubernetes, --slurm and --shell")
    if len(files) < 2:
        raise InvalidInput("name the architecture and then the directory to write to")
    planned = plan_acceptance(_request(files[:-1], replaced, since, dcgm_level, overrides, catalogues))
    options = Options(
        stores=_pairs("--store", stores),
        endpoints=_pairs("--endpoint", endpoints),
        queue=queue,
        namespace=namespace,
        image=image,
        tools_image=tools_image,
        rdma_resource=rdma_resource,
        gpu_resource=gpu_resource,
    )
    written = export_acceptance(planned, chosen[0], options)
    directory = Path(files[-1])
    write_acceptance(written, directory, replace=force)
    if why := foreign_engine(planned, chosen[0]):
        note(f"warning: these results will not count. {why}")
    tests = sum(name.startswith("tests/") for name in written)
    note(f"{tests} tests in {len(written)} files below {directory}; read {directory / 'README.md'}")


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise InvalidInput(f"{option} '{text}': write NAME=VALUE")
        found[name] = value
    return found


@accept.command("import")
def import_(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE... DIR", help="Architecture files, then the directory that came back."),
    ],
    engine: Annotated[
        str, typer.Option(metavar="ENGINE", help="What ran outputs that lie there without a record of their run.")
    ] = "",
    overrides: _Overrides = None,
    catalogues: _Catalogues = None,
    output: _Format = PageFormat.text,
) -> None:
    """Judge everything that came back, on one page, with the next command for whatever is not measured.

    Runs are known by their records (`run.json`), other files by what is in them. What is missing, empty, failed, cut or
    altered after it was collected is not measured; a failure that was measured counts also when a later run passes.
    Nodes that did not report are named.

    Exit codes: 0 every required claim is met; 1 one is not met; 2 invalid input; 3 something is not measured, or a
    negative control did not change the number that it belongs to.
    """
    if len(files) < 2:
        raise InvalidInput("name the architecture and then the directory that came back")
    imported = import_acceptance(ImportRequest(files[:-1], files[-1], overrides or (), catalogues or (), engine))
    if output is PageFormat.json:
        say_json(values_of_import(imported))
    elif output is PageFormat.markdown:
        say(markdown_of_import(imported))
    else:
        say(describe_import(imported, columns()))
    if imported.exit_code != Exit.OK:
        raise typer.Exit(imported.exit_code)
