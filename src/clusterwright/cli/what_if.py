"""`cw what-if`: two futures side by side, the cluster as it is and changed."""

from __future__ import annotations

from typing import Annotated

import typer

from clusterwright.app.guarding import INTERRUPTED
from clusterwright.cli import simulate_options as options
from clusterwright.cli.output import columns, note
from clusterwright.cli.simulate import leave, request_of, watched, write
from clusterwright.cli.simulate_options import Form


def what_if(
    files: options.Files = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="What is changed; as often as needed.")
    ] = None,
    nodes: options.Nodes = "",
    trace: options.Trace = None,
    kind: options.Kind = "",
    mapping: options.Mapping = "",
    zone: options.Zone = "",
    since: options.Since = "",
    until: options.Until = "",
    days: options.Days = None,
    warm_up: options.WarmUp = "",
    draw: options.Draw = False,
    seeds: options.Seeds = 5,
    seed: options.Seed = 0,
    jobs: options.Processes = None,
    failures: options.Failures = "llama3-405b",
    checkpoint: options.Checkpoint = "",
    speeds: options.Speeds = None,
    gpus_only: options.GpusOnly = False,
    queues: options.Queues = None,
    catalogues: options.Catalogues = None,
    tolerance: options.Tolerance = 0.5,
    output: options.Output = Form.text,
    out: options.Out = None,
    force: options.Force = False,
) -> None:
    """Simulate the cluster as it is and changed, with the same jobs, failures and repairs, and say what differs.

    --set addresses the architecture by path: pools.gpu.nodes=24 (a number of nodes, or a host list),
    scheduling.backfill=easy, scheduling.queues.research.guarantee.gpu=64, pools.gpu.shape=dgx-h200. An empty value
    removes it. With another GPU, --speed says how fast jobs run there; else equal speed is assumed.

    Differences are paired by seed and carry the 95 % interval of the pairs; one whose interval holds 0 is not clear.
    With a trace that has real waits, the cluster as it is is replayed first: outside of --tolerance the what-if is
    marked as not to be relied on.

    Exit codes: 0 simulated; 2 invalid input; 3 the replay is outside its tolerance, or jobs never fit; 130 interrupted.
    """
    asked = request_of(
        files=files, nodes=nodes, trace=trace, kind=kind, mapping=mapping, zone=zone, since=since, until=until,
        days=days, warm_up=warm_up, draw=draw, seeds=seeds, seed=seed, jobs=jobs, failures=failures,
        checkpoint=checkpoint, speeds=speeds, gpus_only=gpus_only, queues=queues, catalogues=catalogues,
        tolerance=tolerance, output=output, out=out, force=force,
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
