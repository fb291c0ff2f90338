"""The same jobs through this scheduler and through simulators from the package index: results first, then time.

    python bench/peers.py [JOBS]          JOBS is 3000 unless given; needs the public Philly trace and the package index

Each peer lives in an environment of its own below `.peers/` and gets the same jobs as SWF. Jobs are those of the trace
from the 20,000th on, submitted four times faster, on 48 nodes of 8 GPUs; time limits are 1 to 10 times the run time.
Jobs/s are of CPU time of the simulation alone, without start-up and reading. "same start" is the share of jobs that
start in the same second as here; where they do not, the reason is printed below the table, as found in the peer's own
source; "ours ÷" is how many times as many jobs/s the same policy has here.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from driving import NODE_GPUS, Job, drive, philly, pool, requests

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".peers"
NODES, FIRST, TIMES_FASTER = 48, 20_000, 4.0
PER_RUN_S = 900.0


@dataclass(frozen=True)
class Run:
    """One tool under one policy; `like` is the policy here that it is compared with."""

    tool: str
    version: str
    policy: str
    like: str
    why: str = ""


#: Read in the sources of these versions; another version is not assumed to behave alike.
RUNS = (
    Run(
        "accasim",
        "1.1.3",
        "fifo",
        "strict FIFO",
        "Same rule (best fit, the head blocks): any difference is a fault of one of the two.",
    ),
    Run(
        "accasim",
        "1.1.3",
        "easy",
        "EASY",
        "EASYBackfilling.scheduling_method passes reserved_nodes=[] to the allocator, so whatever fits passes the head"
        " and may delay it; and a head once blocked is not tried again before its reserved time, even when jobs end"
        " early. Here the promise holds for every job that passes, and the head starts as soon as it fits.",
    ),
    Run(
        "hpcsim",
        "0.3.1",
        "fifo",
        "best effort",
        "FIFOScheduler passes a head that does not fit. It finds GPUs for all jobs of a moment on the same unchanged"
        " free list, so of two jobs that come at once one is refused and waits for the next event, even on an empty"
        " cluster. Nodes are taken first-fit, and wide jobs get single GPUs wherever they are, not whole tasks.",
    ),
    Run(
        "hpcsim",
        "0.3.1",
        "easy",
        "EASY",
        "BackfillWrapper asks FIFOScheduler first, which has passed the head already: starts are those of its FIFO.",
    ),
)
OURS = {"strict FIFO": {"strict": True}, "best effort": {}, "EASY": {"easy": True}}


def install(package: str, version: str) -> Path | str:
    """The Python of a peer's environment, or why there is none."""
    home = PEERS / package
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
    wanted = f"{package}=={version}"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    shown = subprocess.run([*pip, "show", package], capture_output=True, text=True, check=False).stdout
    if f"Version: {version}\n" not in shown:
        print(f"installing {wanted} …", file=sys.stderr)
        done = subprocess.run([*pip, "install", "--quiet", wanted], capture_output=True, text=True, check=False)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no message"]
            return f"{wanted} could not be installed from the package index: {last[0]}"
    return python


def write_swf(jobs: Sequence[Job], path: Path) -> None:
    """Standard Workload Format 2.2: 18 fields, times in s, processors are GPUs, -1 is unknown."""
    lines = [f"; MaxNodes: {NODES}\n; MaxProcs: {NODES * NODE_GPUS}\n"]
    for job in jobs:
        gpus = job.tasks * job.gpus
        lines.append(
            f"{int(job.id)} {job.submit_s:.0f} -1 {job.run_s:.0f} {gpus} -1 -1 {gpus} {job.limit_s:.0f} -1"
            " 1 1 1 1 1 1 -1 -1\n"
        )
    path.write_text("".join(lines))


def run_peer(run: Run, python: Path, swf: Path) -> tuple[dict[str, float], float] | str:
    """Starts by job and CPU seconds, or why there are none."""
    argv = [python, "-W", "ignore", HERE / f"peer_{run.tool}.py", swf, str(NODES), str(NODE_GPUS), run.policy]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PER_RUN_S)
    except subprocess.TimeoutExpired:
        return f"{run.tool} {run.policy} did not end within {PER_RUN_S:.0f} s"
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return f"{run.tool} {run.policy} failed: {last[0]}"
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return {f"{int(job):06d}": start for job, start in said["starts"].items()}, said["cpu_s"]


def show(
    tool: str, policy: str, jobs: Sequence[Job], starts: dict[str, float], cpu_s: float, ratio: float, same: str
) -> None:
    waits = [starts[job.id] - job.submit_s for job in jobs if job.id in starts]
    mean, median = statistics.fmean(waits), statistics.median(waits)
    row = f"{tool:<16} {policy:<12} {len(waits):>6} {len(jobs) / cpu_s:>9,.0f} {mean:>11,.1f} {median:>13,.1f}"
    print(f"{row} {ratio:>7.1f} {same:>11}", flush=True)


def main(arguments: Sequence[str]) -> None:
    jobs = philly(FIRST, int(arguments[0]) if arguments else 3000, times_faster=TIMES_FASTER)
    pythons = {(r.tool, r.version): install(r.tool, r.version) for r in RUNS}
    missing = [found for found in pythons.values() if isinstance(found, str)]
    for reason in missing:
        print(reason, file=sys.stderr)
    if len(missing) == len(pythons):
        raise SystemExit("no peer can be measured: is the package index reachable?")
    print(
        f"{'tool':<16} {'policy':<12} {'jobs':>6} {'jobs/s':>9} {'mean wait s':>11} {'median wait s':>13} "
        f"{'ours ÷':>7} {'same start':>11}"
    )
    ours = {}
    for policy, options in OURS.items():
        done = drive(pool(NODES, **options), requests(jobs), [job.run_s for job in jobs])
        ours[policy] = (done.starts, done.cpu_s)
        show("clusterwright", policy, jobs, done.starts, done.cpu_s, 1.0, "")
    notes, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        swf = Path(folder) / "philly.swf"
        write_swf(jobs, swf)
        for run in RUNS:
            python = pythons[run.tool, run.version]
            if isinstance(python, str):
                continue
            result = run_peer(run, python, swf)
            if isinstance(result, str):
                print(result, file=sys.stderr)
                failed = True
                continue
            starts, cpu_s = result
            here, here_s = ours[run.like]
            same = sum(starts.get(job.id) == here[job.id] for job in jobs) / len(jobs)
            show(f"{run.tool} {run.version}", run.policy, jobs, starts, cpu_s, cpu_s / here_s, f"{same:.1%}")
            notes.append(f"{run.tool} {run.policy} beside {run.like}: {run.why}")
    print("\n" + "\n".join(notes))
    if failed or missing:
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
