"""`cw up|down|nodes|submit|logs|cancel|release`: the embedded engine."""

from __future__ import annotations

import json
import os
import pwd
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from clusterwright.app.running import ClusterHandle, connect, default_state_dir, start_cluster, stop
from clusterwright.cli.output import Exit, Format, note, say, say_bytes, say_json
from clusterwright.lib.errors import InvalidInput, Unavailable
from clusterwright.lib.hostlists import HostlistError, expand
from clusterwright.lib.quantities import UnitError, parse_kind
from clusterwright.model.jobs import (
    DEFAULT_QUEUE,
    MAX_GPUS,
    MAX_RANKS,
    MAX_TASKS,
    JobId,
    JobSpec,
    JobState,
    LogLine,
    TaskGroup,
)
from clusterwright.model.outputs import Lines
from clusterwright.report.outputs import Interleaver
from clusterwright.report.queues import node_values, render_nodes, render_reasons

#: Variables of the submitting shell without which a program is not found; everything else is asked for by --env.
CARRIED: Final = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "LD_LIBRARY_PATH")
#: How often a foreground `cw up` looks whether its cluster still lives.
LOOK_S: Final = 0.2

State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Where the cluster keeps its state; else $CLUSTERWRIGHT_STATE, else ~/.local/state/clusterwright.",
    ),
]
Output = Annotated[Format, typer.Option("--format", help="Text for people, or JSON.")]


def up(
    files: Annotated[
        list[str] | None, typer.Argument(help="Architecture files whose worker nodes and queues are started.")
    ] = None,
    nodes: Annotated[
        str | None, typer.Option("--nodes", metavar="HOSTLIST", help='Virtual nodes instead of a file: "n[1-2]".')
    ] = None,
    gpus: Annotated[int, typer.Option("--gpus", min=0, max=MAX_GPUS, help="GPUs of each node given by --nodes.")] = 8,
    gpu_model: Annotated[str, typer.Option("--gpu-model", help="Their model, as jobs may ask for it.")] = "",
    virtual: Annotated[bool, typer.Option("--virtual", help="Never use real GPUs for the nodes of a file.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is up; `cw down` ends it.")] = False,
    keep_lost: Annotated[
        bool, typer.Option("--keep-lost", help="Leave a node whose agent died down, instead of starting it again.")
    ] = False,
    grace: Annotated[
        str, typer.Option("--grace", help="Time that running jobs get when the cluster is ended.")
    ] = "10 s",
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write over a value of the files.")
    ] = None,
    state: State = None,
) -> None:
    """Start a control plane and one agent per node on this machine.

    The nodes are those of the architecture files, or virtual ones named by --nodes, or, with neither, this machine with
    its NVIDIA GPUs. On virtual nodes processes are real and GPUs are not. In the foreground Ctrl-C ends the cluster and
    leaves no process; jobs that ran are queued for the next start.

    Exit codes: 0 ended in order (or up, with --detach); 2 it could not be started.
    """
    # Reading an architecture is slow to import, and the other commands of this module answer at once without it.
    from clusterwright.app.starting import choose_start

    start = choose_start(files or [], nodes, gpus, gpu_model, overrides or [], virtual=virtual)
    directory = state or default_state_dir()
    with _termination_as_interrupt():
        try:
            handle = start_cluster(
                directory,
                start.nodes,
                tree=start.tree,
                policy=start.policy,
                budgets=start.budgets,
                restart_agents=not keep_lost,
                detach=detach,
                stop_grace_s=_seconds(grace, "--grace"),
            )
            count = len(start.nodes)
            note(f"cluster is up: {count} node{'s' * (count != 1)}, state in {directory}")
            note(start.note)
            if not detach:
                note("Ctrl-C ends it")
                _stay(handle)
        except KeyboardInterrupt:
            note("cluster ended; no process is left")


def down(
    grace: Annotated[str, typer.Option("--grace", help="Time that running jobs get to end.")] = "10 s",
    state: State = None,
) -> None:
    """Stop everything that `up` started, also what a killed `up` left behind.

    Running jobs get SIGTERM, the grace, SIGKILL, and are queued for the next start. Doing it twice is fine.
    """
    directory = state or default_state_dir()
    if stop(directory, grace_s=_seconds(grace, "--grace"), progress=note):
        note(f"cluster in {directory} ended; no process is left")
    else:
        note(f"no cluster was ever started in {directory}; nothing to do")


def nodes(state: State = None, output: Output = Format.text) -> None:
    """List nodes with their state, GPUs, and whether these are real."""
    found = connect(state or default_state_dir()).nodes()
    if output is Format.json:
        say_json([node_values(n) for n in found])
    else:
        say(render_nodes(found))


def submit(
    command: Annotated[
        list[str], typer.Argument(help="After `--`: program and arguments, run as they are and never by a shell.")
    ],
    gpus: Annotated[
        int, typer.Option("--gpus", min=0, max=MAX_GPUS, help="GPUs on each node; one process per GPU.")
    ] = 1,
    count: Annotated[int, typer.Option("--nodes", min=1, max=MAX_TASKS, help="Nodes of the gang: all or nothing.")] = 1,
    least: Annotated[
        int | None, typer.Option("--nodes-min", min=1, help="Start with any number of nodes from here to --nodes.")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks-per-node", min=1, max=MAX_RANKS, help="Processes, instead of one per GPU.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Else the name of the program.")] = None,
    queue: Annotated[str, typer.Option("--queue", help="One of the declared queues.")] = DEFAULT_QUEUE,
    priority: Annotated[int, typer.Option("--priority", help="Higher goes first.")] = 0,
    gpu_model: Annotated[str | None, typer.Option("--gpu-model", help="Only nodes with this model.")] = None,
    exclude: Annotated[str | None, typer.Option("--exclude", metavar="HOSTLIST", help="Never use these nodes.")] = None,
    max_restarts: Annotated[int, typer.Option("--max-restarts", min=0, help="Retries after a failing task.")] = 0,
    time_limit: Annotated[str | None, typer.Option("--time-limit", help="Per attempt, such as 2h.")] = None,
    grace: Annotated[
        str, typer.Option("--grace", help="Between SIGTERM and SIGKILL; preempted, the cluster's own grace counts.")
    ] = "30 s",
    checkpoint_dir: Annotated[
        Path | None, typer.Option("--checkpoint-dir", help="Else a directory of the job's own in the state.")
    ] = None,
    workdir: Annotated[Path | None, typer.Option("--workdir", help="Else the current directory.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME[=VALUE]",
            help=f"Set or pass a variable; {', '.join(CARRIED)} are passed anyway. Values are kept in the state "
            "directory as they are: pass no secrets.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end; exit 1 unless it succeeded.")] = False,
    state: State = None,
    output: Output = Format.text,
) -> None:
    """Submit a job and print its number: `cw submit --gpus 8 --nodes 2 -- python train.py`.

    Each process gets torchrun's environment (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, …), the GPUs of
    its node in CUDA_VISIBLE_DEVICES, and CLUSTERWRIGHT_CHECKPOINT_DIR. A job whose node is lost starts again on what is
    left, when every process of the old attempt is gone; one that loses a node ten times in a row before every process
    runs is held until `cw release`.
    """
    if least is not None and least > count:
        raise InvalidInput(f"--nodes-min is {least}, must be from 1 to {count}, which is --nodes")
    if not command[0]:
        raise InvalidInput("the program after `--` is empty")
    group = TaskGroup(tuple(command), count, gpus, ranks=ranks, min_count=least, spread=True)
    spec = JobSpec(
        name=name or _readable(Path(command[0]).name),
        groups=(group,),
        queue=queue,
        user=pwd.getpwuid(os.getuid()).pw_name,
        priority=priority,
        gpu_model=gpu_model,
        exclude=_hosts(exclude),
        env=_environment(env or []),
        workdir=str((workdir or Path.cwd()).absolute()),
        checkpoint_dir=None if checkpoint_dir is None else str(checkpoint_dir.absolute()),
        max_restarts=max_restarts,
        time_limit_s=None if time_limit is None else _seconds(time_limit, "--time-limit"),
        grace_s=_seconds(grace, "--grace"),
    )
    directory = state or default_state_dir()
    engine = connect(directory)
    job = engine.submit(spec)
    if output is Format.json:
        say_json({"job": job})
    else:
        say(job)
    if wait:
        ended = engine.wait(job, timeout_s=float("inf"))
        note(f"job {job} {ended.state}: {ended.detail}")
        if ended.state is not JobState.SUCCEEDED:
            raise typer.Exit(Exit.FAILED)


def logs(
    job: Annotated[str, typer.Argument(help="The job's number.")],
    rank: Annotated[
        int | None,
        typer.Option(
            "--rank",
            min=0,
            help="Only this rank, byte for byte: its standard output to standard output, its standard error to "
            "standard error.",
        ),
    ] = None,
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, help="Else the latest.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    state: State = None,
    output: Output = Format.text,
) -> None:
    """Print what the ranks wrote to standard output and standard error, every line with its rank."""
    engine = connect(state or default_state_dir())
    chunks = engine.output(JobId(job), rank=rank, attempt=attempt, follow=follow)
    found = engine.job(JobId(job))
    if not found.attempts:
        note(f"job {job} has written nothing: " + (found.detail if found.state.final else "it has not started"))
        for line in render_reasons(engine.why(found.id)):
            note(f"    {line}")
    if output is Format.json:
        lines = Lines()
        for chunk in chunks:
            say_bytes("".join(f"{_line_text(line)}\n" for line in lines.feed(chunk)).encode())
    elif rank is not None:
        for chunk in chunks:
            say_bytes(chunk.data, error=chunk.stream == "stderr")
    else:
        shown = Interleaver()
        for chunk in chunks:
            say_bytes(shown.feed(chunk))
        say_bytes(shown.end())


def cancel(
    jobs: Annotated[list[str], typer.Argument(help="Numbers of jobs.")],
    wait: Annotated[bool, typer.Option("--wait", help="Return when no process of them is left.")] = False,
    state: State = None,
) -> None:
    """Stop jobs and all their processes: SIGTERM, the job's grace, SIGKILL."""
    engine = connect(state or default_state_dir())
    found = [engine.job(JobId(j)) for j in jobs]
    for job in found:
        if job.state.final:
            note(f"job {job.id} has ended already ({job.state})")
        engine.cancel(job.id)
    for job in found if wait else []:
        note(f"job {job.id} {engine.wait(job.id, timeout_s=float('inf')).state}")


def release(
    jobs: Annotated[list[str], typer.Argument(help="Numbers of jobs.")],
    state: State = None,
) -> None:
    """Let held jobs start: a job is held when attempt after attempt lost a node before every process ran."""
    engine = connect(state or default_state_dir())
    found = [engine.job(JobId(j)) for j in jobs]
    for job in found:
        if not job.held or job.state.final:
            note(f"job {job.id} is not held ({job.state})")
    engine.release(*(j.id for j in found))


def _stay(handle: ClusterHandle) -> None:
    """Until a signal, or until the cluster ends by itself."""
    try:
        while handle.alive:
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave the work half done
        note("ending; running jobs get their grace")
        handle.stop()
        raise
    handle.stop()
    raise Unavailable("the cluster ended without being asked to here (`cw down`, or its supervisor was killed)")


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a foreground cluster in order, as Ctrl-C does; ignored ones stay ignored."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _seconds(text: str, option: str) -> float:
    try:
        return parse_kind(text, "duration").value
    except UnitError as error:
        raise InvalidInput(f"{option}: {error}") from error


def _readable(name: str) -> str:
    """A file's name as text: bytes that are not UTF-8 become the replacement character."""
    return os.fsencode(name).decode(errors="replace")


def _hosts(text: str | None) -> tuple[str, ...]:
    try:
        return () if text is None else expand(text)
    except HostlistError as error:
        raise InvalidInput(f"--exclude: {error}") from error


def _environment(wanted: list[str]) -> dict[str, str]:
    found = {name: os.environ[name] for name in CARRIED if name in os.environ}
    for item in wanted:
        name, equals, value = item.partition("=")
        if not equals and name not in os.environ:
            raise InvalidInput(f"--env {name}: not set in this shell; write {name}=VALUE")
        found[name] = value if equals else os.environ[name]
    return found


def _line_text(line: LogLine) -> str:
    values = {"attempt": line.attempt, "rank": line.rank, "stream": line.stream, "text": line.text}
    return json.dumps(values, ensure_ascii=False)
