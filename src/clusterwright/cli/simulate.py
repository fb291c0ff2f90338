"""`cw simulate`: what the next weeks of a cluster may look like, before anybody waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterwright.app.guarding import INTERRUPTED
from clusterwright.cli import simulate_options as options
from clusterwright.cli.output import Exit, columns, is_terminal, note, say, say_json
from clusterwright.cli.simulate_options import Form
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.scales import DAY_S

if TYPE_CHECKING:  # numpy and the simulator are imported when something is simulated
    from clusterwright.app.replicating import Request as StopRequest
    from clusterwright.app.replicating import Show, Standing
    from clusterwright.app.simulation_requests import SimulationRequest
    from clusterwright.report.replications import Simulated


def simulate(
    files: options.Files = None,
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
    sweep: Annotated[
        str, typer.Option("--sweep", metavar="PATH=V1,V2,…", help="One row for each value, or for a..b/step.")
    ] = "",
    ask: Annotated[
        str,
        typer.Option(
            "--ask",
            metavar="QUESTION",
            help="Answer a sizing question: longest-wait, node-loss, other-gpu, lead-time or useful.",
        ),
    ] = "",
    limit: Annotated[
        str, typer.Option("--limit", metavar="TIME", help="Of longest-wait and lead-time: acceptable queue time, p95.")
    ] = "",
    pool: Annotated[str, typer.Option("--pool", metavar="POOL", help="Pool that a question is about.")] = "",
    add: Annotated[int, typer.Option("--add", metavar="N", help="Of lead-time: nodes that were ordered.")] = 0,
    overrides: options.Overrides = None,
    catalogues: options.Catalogues = None,
    tolerance: options.Tolerance = 0.5,
    events: Annotated[
        Path | None, typer.Option("--events", metavar="PATH", help="Write every event of the first future to a file.")
    ] = None,
    output: options.Output = Form.text,
    out: options.Out = None,
    force: options.Force = False,
) -> None:
    """Simulate weeks of queueing, failures and repairs in seconds: waits, utilisation, goodput, cost, with intervals.

    Jobs are those of a trace, replayed or drawn (--draw), or the declared workloads. Decisions are those of the queue
    that the embedded engine runs; failures come at published rates, by cause. Every GPU-hour is in one line of the
    ledger. Every figure is simulated, none is measured.

    A trace with real waits is compared first: median and p90 by size and account. Where the replay is further off than
    --tolerance, what is said about waits is marked as not to be relied on.

    What would last month look like on 16 nodes with 8 GPUs:  cw simulate --nodes 16x8 --trace sacct.txt

    Ctrl-C prints what was simulated so far, marked partial.

    Exit codes: 0 simulated; 2 invalid input; 3 the replay is outside its tolerance, or jobs never fit; 130 interrupted.
    """
    asked = request_of(
        files=files, nodes=nodes, trace=trace, kind=kind, mapping=mapping, zone=zone, since=since, until=until,
        days=days, warm_up=warm_up, draw=draw, seeds=seeds, seed=seed, jobs=jobs, failures=failures,
        checkpoint=checkpoint, speeds=speeds, gpus_only=gpus_only, queues=queues, overrides=overrides,
        catalogues=catalogues, tolerance=tolerance, events=events, output=output, out=out, force=force,
    )  # fmt: skip
    if ask:
        _answer(asked, ask, limit, pool, add, output, out)
        return
    from clusterwright.app import simulating, simulation_outputs, sweeping

    with watched() as (stop, show):
        if sweep:
            found = sweeping.sweep_request(asked, sweep, stop, show)
        else:
            found = simulating.simulate_request(asked, stop, show)
    if output is Form.html:
        write(out, simulation_outputs.page_of(found, sweep), force=force)
    elif output is Form.json:
        write(out, simulation_outputs.values_of(found, sweep), force=force)
    else:
        write(out, simulation_outputs.text_of(found, sweep, min(columns(), 100)), force=force)
    leave(found, stop.name)


def _answer(
    asked: SimulationRequest, ask: str, limit: str, pool: str, add: int, output: Form, out: Path | None
) -> None:
    """Answer a sizing question; a page of it there is not."""
    from clusterwright.app import simulation_outputs, sizing

    if output is Form.html:
        raise InvalidInput("an answer is text or JSON; --sweep and a plain simulation have pages")
    question = sizing.Question(ask, time_of("--limit", limit), pool, add)
    with watched() as (stop, show):
        answered = sizing.ask(asked, question, stop, show)
    if answered is None:
        note(f"stopped by {stop.name} before the question could be answered")
        raise typer.Exit(INTERRUPTED)
    answer, found = answered
    if output is Form.json:
        write(out, simulation_outputs.values_of_answer(answer, found), force=asked.force)
    else:
        write(out, simulation_outputs.text_of_answer(answer, found, min(columns(), 100)), force=asked.force)
    leave(found, stop.name)


def time_of(option: str, text: str) -> float | None:
    """Seconds of a time that an option gives; None where it is absent.

    Raises:
        InvalidInput: when it is no time, or a negative one.
    """
    from clusterwright.lib.quantities import UnitError, parse_kind

    try:
        found = parse_kind(text, "duration").value if text else None
    except UnitError as error:
        raise InvalidInput(f"{option}: {error}") from None
    if found is not None and found < 0:
        raise InvalidInput(f"{option} is {text}, must not be negative")
    return found


def request_of(
    *,
    files: Sequence[str] | None,
    nodes: str,
    trace: Sequence[str] | None,
    kind: str,
    mapping: str,
    zone: str,
    since: str,
    until: str,
    days: float | None,
    warm_up: str,
    draw: bool,
    seeds: int,
    seed: int,
    jobs: int | None,
    failures: str,
    checkpoint: str,
    speeds: Sequence[str] | None,
    gpus_only: bool,
    queues: Sequence[str] | None,
    catalogues: Sequence[str] | None,
    tolerance: float,
    output: Form,
    out: Path | None,
    force: bool,
    overrides: Sequence[str] | None = None,
    events: Path | None = None,
) -> SimulationRequest:
    """The request that the options make, checked as far as it can be before anything is read."""
    from clusterwright.app.simulated_jobs import parse_queues
    from clusterwright.app.simulated_speeds import parse_speeds
    from clusterwright.app.simulation_requests import SimulationRequest
    from clusterwright.app.trace_reading import TraceRequest

    if out is not None and out.exists() and not force:
        raise InvalidInput(f"{out} exists; --force replaces it")
    if (kind or mapping or zone) and not trace:
        raise InvalidInput("--kind, --map and --zone are about a trace; give --trace")
    saved_s = time_of("--checkpoint", checkpoint)
    if saved_s is not None:
        if not trace:
            raise InvalidInput("--checkpoint is about jobs of a trace; the file says it of workloads")
        if saved_s < 1:
            raise InvalidInput(f"--checkpoint is {checkpoint}, must be at least 1 s")
    return SimulationRequest(
        files=files or (),
        nodes=nodes,
        trace=TraceRequest(tuple(trace), kind, mapping, zone) if trace else None,
        since=since,
        until=until,
        days=days,
        warm_up_s=time_of("--warm-up", warm_up),
        draw=draw,
        seeds=seeds,
        seed=seed,
        processes=jobs,
        failures=failures,
        checkpoint_s=saved_s,
        speeds=parse_speeds(speeds or ()),
        gpus_only=gpus_only,
        queues=parse_queues(queues or ()),
        overrides=overrides or (),
        catalogues=catalogues or (),
        tolerance=tolerance,
        events=events,
        force=force,
        picture=output is Form.html,
    )


@contextmanager
def watched() -> Iterator[tuple[StopRequest, Show | None]]:
    """SIGINT and SIGTERM as a request to stop, and a line of progress where there is a terminal."""
    from clusterwright.app.replicating import Request

    bar = _Bar() if is_terminal() else None
    with Request() as stop:
        try:
            yield stop, bar.show if bar else None
        finally:
            if bar:
                bar.clear()


def write(path: Path | None, value: object, *, force: bool) -> None:
    """A text, or values as JSON, to a file or to standard output."""
    from clusterwright.app import simulation_outputs

    if path is not None:
        simulation_outputs.write_output(path, value, force=force)
        note(f"written to {path}")
    elif isinstance(value, str):
        say(value)
    else:
        say_json(value)


def leave(found: Sequence[Simulated], signal: str) -> None:
    """Leave with the code that the results call for."""
    if signal:
        note(f"stopped by {signal}: what was simulated so far is marked partial")
        raise typer.Exit(INTERRUPTED)
    if any(not f.trusted or f.never_fit for f in found):
        raise typer.Exit(Exit.INCOMPLETE)


class _Bar:
    """Simulated and real time on one line of standard error."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._shown_s = 0.0

    def show(self, standing: Standing) -> None:
        """Show it, at most five times a second."""
        now_s = time.monotonic()
        if now_s - self._shown_s >= 0.2:
            self._shown_s = now_s
            typer.echo(
                f"\r\033[K{standing.done} of {standing.all_} futures, those running are at day "
                f"{standing.now_s / DAY_S:.1f}, after {now_s - self._began_s:.0f} s; Ctrl-C keeps what there is",
                err=True,
                nl=False,
            )

    def clear(self) -> None:
        """Take the line away."""
        if self._shown_s:
            typer.echo("\r\033[K", err=True, nl=False)
