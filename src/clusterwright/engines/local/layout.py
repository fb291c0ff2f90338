"""Where things lie in a state directory.

cluster.json              cluster id, nodes, policy: written by `up`
state.db                  the store
run/cp.sock               the control plane's socket
run/*.lock                held while the supervisor and the control plane live
run/failure.json          why the control plane could not begin
run/*.json                pid and start time of supervisor, control plane and agents
log/                      what these wrote
jobs/ID/checkpoint        default checkpoint directory, with the epoch file
jobs/ID/work              default working directory
jobs/ID/attempt-N/rank-R  stdout.log, stderr.log, exit
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

#: Name of the environment variable by which every process of a cluster is found again.
TAG: Final = "CLUSTERWRIGHT_TAG"
#: Set in the environment of shims only; they take it out for the rank.
SHIM: Final = "CLUSTERWRIGHT_SHIM"


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths in one state directory."""

    root: Path

    @property
    def config(self) -> Path:
        """Cluster id, nodes and policy."""
        return self.root / "cluster.json"

    @property
    def database(self) -> Path:
        """The store."""
        return self.root / "state.db"

    @property
    def run(self) -> Path:
        """Sockets, locks and process identities."""
        return self.root / "run"

    @property
    def log(self) -> Path:
        """Output of supervisor, control plane and agents."""
        return self.root / "log"

    def identity(self, process: str) -> Path:
        """Where a process ("supervisor", "controlplane", "agent-n1") says who it is."""
        return self.run / f"{process}.json"

    @property
    def stop_order(self) -> Path:
        """How `down` wants a supervisor to stop; read when it gets SIGTERM."""
        return self.run / "stop.json"

    @property
    def failure(self) -> Path:
        """Why the last control plane could not even begin; whoever starts a cluster says it instead of waiting."""
        return self.run / "failure.json"

    def lock(self, process: str) -> Path:
        """The lock a process holds while it lives."""
        return self.run / f"{process}.lock"

    def job(self, job: str) -> Path:
        """Everything of one job."""
        return self.root / "jobs" / job

    def work(self, job: str) -> Path:
        """Default working directory of a job."""
        return self.job(job) / "work"

    def rank(self, job: str, attempt: int, rank: int) -> Path:
        """Logs and exit of one rank in one attempt."""
        return self.job(job) / f"attempt-{attempt}" / f"rank-{rank}"

    def make(self) -> None:
        """Make the directories, readable by their owner only."""
        for path in (self.root, self.run, self.log, self.root / "jobs"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)


def default_state_dir() -> Path:
    """$CLUSTERWRIGHT_STATE, else $XDG_STATE_HOME/clusterwright, else ~/.local/state/clusterwright."""
    named = os.environ.get("CLUSTERWRIGHT_STATE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "clusterwright"


def write_json(path: Path, value: Any) -> None:
    """Replace a file as a whole: a reader sees the old or the new text, also after a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> Any:
    """The value in a file, or None where there is no such file or it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


# Tags: one string per process, so that a prefix finds a rank, an attempt, a job, or everything of a cluster.


def cluster_tag(cluster: str) -> str:
    """Prefix of every tag of a cluster."""
    return f"{cluster}/"


def supervisor_tag(cluster: str) -> str:
    """Tag of the supervisor, and of what it has forked but not yet turned into another process."""
    return f"{cluster}/supervisor/"


def attempt_tag(cluster: str, job: str, epoch: int) -> str:
    """Prefix of the tags of all processes of one attempt."""
    return f"{cluster}/job/{job}/{epoch}/"


def agent_tag(cluster: str, node: str, boot: str) -> str:
    """Tag of one incarnation of an agent, and of what it has forked but not yet turned into a shim."""
    return f"{cluster}/agent/{node}/{boot}/"
