"""What lines of slurmctld.log, slurmd.log and slurmdbd.log mean.

Source: messages in Slurm's src/slurmctld, src/slurmd, src/slurmdbd and src/plugins, 14.03 to 25.11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from clusterwright.model.observations import Weight


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of message.

    Args:
        mark: text that such a line holds, for a quick look.
        form: with the groups node, nodes, job, a and b as far as the message has them.
        means: for people, in one clause.
    """

    name: str
    mark: str
    form: re.Pattern[str]
    means: str
    weight: Weight = Weight.WARNING


def _event(name: str, mark: str, form: str, means: str, weight: Weight = Weight.WARNING) -> Event:
    return Event(name, mark, re.compile(form), means, weight)


_NODE: Final = r"(?P<node>[\w.-]{1,200})"
_OTHER: Final = r"(?P<other>[\w.-]{1,200})"
_NODES: Final = r"(?P<nodes>\S{1,4000})"
_JOB: Final = r"(?:JobId=|job )(?P<job>[\d_]{1,20})"
_LESS: Final = r"\((?P<a>\d{1,9}) < (?P<b>\d{1,9})\)"
_FAILED: Final = r"(?:failed|exit status|returned error|status=)"
_LOW_CPUS: Final = rf"Node {_NODE} has low (?:socket\*core\*thread|cpu) count {_LESS}"
_FEWER_GPUS: Final = (
    rf"(?:[Nn]ode {_NODE}.{{0,80}})?gres/gpu:? count (?:reported lower than configured|too low) {_LESS}"
    rf"(?: on node {_OTHER})?"
)
_DRAINED: Final = (
    rf"Setting node {_NODE} state to (?:DRAIN|INVAL)|drain_nodes: node {_NODES} state set to DRAIN"
    rf"|update_node: node {_OTHER} state set to DRAIN"
)
_DOWN: Final = (
    rf"[Nn]ode {_NODE} (?:state set to |now )DOWN|{_NODES} not responding, setting DOWN"
    rf"|setting node {_OTHER} state to DOWN"
)
_BACKWARDS: Final = r"modification time of (?P<file>\S{1,400}) moved backwards by (?P<a>\d{1,12}) seconds"
_JOB_STATE: Final = r"Could not open job state file|No job state file|Incomplete job (?:data|state)"
_NODE_STATE: Final = r"Could not open node state file|Incomplete node data checkpoint|No node state file"
_DATABASE: Final = (
    r"slurmdbd: .{0,80}(?:Connection refused|No route|Unable to open|agent queue is full)"
    r"|agent queue (?:is )?filling"
)
_CONNECTION: Final = (
    r"Unable to contact slurm controller|Connection refused|Connection timed out|Socket timed out"
    r"|Zero Bytes were transmitted"
)
_NVML: Final = r"Failed to initialize NVML|Unable to find NVML|autodetect.{0,40}fail|NVML: Failed"
_AUTHENTICATION: Final = r"(?i:authentication error|g_slurm_auth_verify)"
_ERROR: Final = Weight.ERROR
_INFO: Final = Weight.INFO

EVENTS: Final = (
    _event("low-memory", "real_memory size", rf"Node {_NODE} has low real_memory size {_LESS}",
           "reports less memory than RealMemory: a planning error, not a fault of the node"),
    _event("low-cpus", " count (", _LOW_CPUS, "reports fewer processors than configured"),
    _event("low-disk", "tmp_disk size", rf"Node {_NODE} has low tmp_disk size {_LESS}",
           "reports a smaller temporary disk than configured"),
    _event("fewer-gpus", "gres/gpu", _FEWER_GPUS, "found fewer GPUs than configured", _ERROR),
    _event("node-drained", "state", _DRAINED, "was drained"),
    _event("node-down", "DOWN", _DOWN, "was set down", _ERROR),
    _event("node-not-responding", "not responding", rf"Nodes? {_NODES} not responding",
           "does not answer the controller"),
    _event("node-responds", "now responding", rf"Nodes? {_NODES} now responding", "answers again", _INFO),
    _event("launch-failed", "node(s)=", rf"error running {_JOB} on node\(s\)={_NODE}", "could not start a job", _ERROR),
    _event("slow-completion", "completion process took", rf"{_JOB} completion process took (?P<a>\d{{1,9}}) seconds",
           "a job's nodes were long in completing"),
    _event("hardware-differs", "differs from hardware", r"Node configuration differs from hardware: (?P<a>.{1,300})",
           "the configured processors differ from the hardware"),
    _event("device-missing", "gres.conf file", r"gres\.conf file (?P<file>\S{1,300})",
           "a device of gres.conf does not exist: GPUs are missing or the driver is not loaded", _ERROR),
    _event("node-name-unknown", "NodeName", r"Unable to determine this slurmd's NodeName",
           "slurmd does not find its node in slurm.conf", _ERROR),
    _event("node-rebooted", "unexpectedly rebooted", rf"Node {_NODE} unexpectedly rebooted",
           "rebooted while it held jobs", _ERROR),
    _event("node-returned", "returned to service", rf"[Nn]ode {_NODE} returned to service",
           "returned to service", _INFO),
    _event("registration-refused", "_slurm_rpc_node_registration",
           rf"_slurm_rpc_node_registration node={_NODE}: (?P<a>.{{1,100}})", "was not accepted at registration"),
    _event("node-failed-job", "due to failure of node", rf"{_JOB}.{{0,80}}due to failure of node {_NODE}",
           "took a job down", _ERROR),
    _event("job-killed", "on failed node", rf"Killing {_JOB} on failed node {_NODE}",
           "failed under a job, which was killed or queued again", _ERROR),
    _event("kill-failed", "STEPD TERMINATED",
           rf"(?:JOB|STEP) (?P<job>[\d_.]{{1,20}}) .{{0,40}}STEPD TERMINATED ON {_NODE}",
           "could not end a job's processes", _ERROR),
    _event("kill-task-failed", "Kill task failed", rf"(?:node {_NODE}.{{0,80}})?Kill task failed",
           "could not end a job's processes", _ERROR),
    _event("oom-kill", "oom", r"[Dd]etected (?P<a>\d{1,9}) oom[_-]kill event|oom-kill event",
           "killed processes for memory"),
    _event("prolog-failed", "rolog", rf"[Pp]rolog.{{0,80}}{_FAILED}", "a prolog failed", _ERROR),
    _event("epilog-failed", "pilog", rf"[Ee]pilog.{{0,80}}{_FAILED}", "an epilog failed"),
    _event("batch-job-missing", "missing from", rf"Batch {_JOB} missing from (?:batch )?node {_NODE}",
           "lost a batch job", _ERROR),
    _event("credential-expired", "Expired credential", r"Expired credential",
           "credentials expired: clocks differ, or messages hang"),
    _event("credential-rewound", "Rewound credential", r"Rewound credential",
           "credentials come from the future: clocks differ"),
    _event("credential-replayed", "Replayed credential", r"Replayed credential", "a credential was used twice"),
    _event("munge-failed", "unge", r"(?i:munge) (?:encode|decode) failed: (?P<a>.{1,100})",
           "munge does not work", _ERROR),
    _event("clock-warning", "out of sync clocks", r"Check for out of sync clocks", "Slurm itself suspects the clocks"),
    _event("state-file-backwards", "moved backwards", _BACKWARDS,
           "a state file is older than it was: the clocks of file server and controller differ"),
    _event("job-state-missing", "ob ", _JOB_STATE, "the list of jobs could not be read"),
    _event("node-state-missing", "node", _NODE_STATE, "the state of nodes could not be read"),
    _event("state-file-missing", "state file", r"(?:Could not open|No) (?P<a>\w{1,30}) state file",
           "a state file could not be read"),
    _event("database-unreachable", "dbd", _DATABASE, "accounting cannot be written", _ERROR),
    _event("controller-ended", "Terminate signal", r"Terminate signal \(SIGINT or SIGTERM\) received",
           "the daemon was stopped", _INFO),
    _event("started", "started", r"slurm(?:ctld|d|dbd) version (?P<a>[\w.~-]{1,40}) started", "started", _INFO),
    _event("gpu-plugin-failed", "NVML", _NVML, "GPUs could not be detected", _ERROR),
    _event("gpu-plugin-missing", "n't ", r"(?P<a>nvml|rsmi|oneapi|nrt)\b.{0,60}(?:lib wasn't found|isn't enabled)",
           "this build of Slurm has no library to detect GPUs with: AutoDetect finds none", _ERROR),
    _event("no-gpus-detected", "GPU system device", r"\b0 GPU system device\(s\) detected",
           "no GPU was detected on the node"),
    _event("connection-failed", "", _CONNECTION, "connections fail"),
    _event("authentication-failed", "auth", _AUTHENTICATION, "messages failed authentication"),
    _event("gres-mismatch", "gres", r"(?i:gres.{0,60}(?:mismatch|not match|invalid|unable))",
           "generic resources do not match the configuration"),
    _event("fatal", "fatal: ", r"^fatal: (?P<a>.{1,200})", "the daemon ended", _ERROR),
)  # fmt: skip
