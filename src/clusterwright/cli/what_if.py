"""`cw what-if`: two futures side by side, the cluster as it is and changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clusterwright.app.guarding import INTERRUPTED
from clusterwright.cli.output import columns, note
from clusterwright.cli.simulate import (
    CATALOGUE,
    CHECKPOINT,
    DAYS,
    DRAW,
    FAILURES,
    FILES,
    FORCE,
    FORMAT,
    JOBS,
    KIND,
    MAP,
    NODES,
    OUTPUT,
    QUEUE,
    SEED,
    SEEDS,
    TOLERANCE,
    TRACE,
    ZONE,
    Form,
    leave,
    request_of,
    watched,
    write,
)


def what_if(
    files: Annotated[list[str] | None, FILES] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="What is changed; as often as needed.")
    ] = None,
    nodes: Annotated[str, NODES] = "",
    trace: Annotated[list[str] | None, TRACE] = None,
    kind: Annotated[str, KIND] = "",
    mapping: Annotated[str, MAP] = "",
    zone: Annotated[str, ZONE] = "",
    days: Annotated[float | None, DAYS] = None,
    draw: Annotated[bool, DRAW] = False,
    seeds: Annotated[int, SEEDS] = 5,
    seed: Annotated[int, SEED] = 0,
    jobs: Annotated[int | None, JOBS] = None,
    failures: Annotated[str, FAILURES] = "llama3-405b",
    checkpoint: Annotated[str, CHECKPOINT] = "",
    queues: Annotated[list[str] | None, QUEUE] = None,
    catalogues: Annotated[list[str] | None, CATALOGUE] = None,
    tolerance: Annotated[float, TOLERANCE] = 0.5,
    output: Annotated[Form, FORMAT] = Form.text,
    out: Annotated[Path | None, OUTPUT] = None,
    force: Annotated[bool, FORCE] = False,
) -> None:
    """Simulate the cluster as it is and changed, with the same jobs, failures and repairs, and say what differs.

    --set addresses the architecture by path: pools.gpu.nodes=24 (a number of nodes, or a host list),
    scheduling.backfill=easy, scheduling.queues.research.guarantee.gpu=64. An empty value removes it.

    Differences are paired by seed and carry the 95 % interval of the pairs; one whose interval holds 0 is not clear.
    With a trace that has real waits, the cluster as it is is replayed first: outside of --tolerance the what-if is
    marked as not to be relied on.

    Exit codes: 0 simulated; 2 invalid input; 3 the replay is outside its tolerance, or jobs never fit; 130 interrupted.
    """
    asked = request_of(
        files, nodes, trace, kind, mapping, zone, days, draw, seeds, seed, jobs, failures, checkpoint, queues,
        (), catalogues, tolerance, None, out, force, picture=output is Form.html,
    )  # fmt: skip
    from clusterwright.app import simulation_outputs, what_ifs

    wanted = tuple(changes or ())
    with watched() as (stop, show):
        found = what_ifs.what_if_request(asked, wanted, stop, show)
    if found is None:
        note(f"stopped by {stop.name} before both futures had begun")
        raise typer.Exit(INTERRUPTED)
    if output is Form.html:
        write(out, simulation_outputs.page_of_two(found, wanted), force=force)
    elif output is Form.json:
        write(out, simulation_outputs.values_of_two(found, wanted), force=force)
    else:
        write(out, simulation_outputs.text_of_two(found, wanted, min(columns(), 100)), force=force)
    leave(found, stop.name)
