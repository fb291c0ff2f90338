"""scontrol show node, job, partition, reservation, step and config, as blocks or with -o.

Observations of nodes as in `nodes`, of jobs as in `jobs`. Partitions (subject: partition): `partition_state`,
`partition_nodes`, `node_list`, `gpus_configured`, `time_limit`, `default_time`, `oversubscribe`, `priority_tier`,
`preempt_mode`. Reservations (subject: reservation): `start`, `end`, `duration`, `nodes`, `node_list`, `cores`,
`reservation_flags`, `reservation_state`, `users`, `accounts`. Steps (subject: job, step): `step_state`, `node_list`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Final

from clusterwright.lib.hostlists import HostlistError
from clusterwright.model.observations import Labels, Lack, NoValue, Run, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm import configurations
from clusterwright.readers.slurm.amounts import read_count, read_duration, read_time
from clusterwright.readers.slurm.commands import Asked
from clusterwright.readers.slurm.gres import count_gpus, count_indices, gpus_in_tres, read_gres, read_tres
from clusterwright.readers.slurm.hosts import Hosts
from clusterwright.readers.slurm.jobs import Jobs, is_job_id
from clusterwright.readers.slurm.nodes import Nodes
from clusterwright.readers.slurm.records import Record, read_records
from clusterwright.readers.slurm.sources import lines_of
from clusterwright.readers.values import lacking

_NODE_FACTS: Final = {
    "State": "state", "Gres": "gres", "GresUsed": "gres_used", "CPUTot": "cpus", "CPUAlloc": "cpus_allocated",
    "CPULoad": "load", "RealMemory": "memory", "AllocMem": "memory_allocated", "FreeMem": "memory_free",
    "CfgTRES": "cfg_tres", "AllocTRES": "alloc_tres", "ActiveFeatures": "features", "ReservationName": "reservation",
    "Version": "version", "BootTime": "boot", "SlurmdStartTime": "started",
}  # fmt: skip
_JOB_FACTS: Final = {
    "JobState": "state", "Reason": "reason", "JobName": "name", "Account": "account", "Partition": "partition",
    "QOS": "qos", "NumNodes": "nodes", "NodeList": "node_list", "NumCPUs": "cpus", "TimeLimit": "time_limit",
    "RunTime": "elapsed", "SubmitTime": "submit", "EligibleTime": "eligible", "StartTime": "start", "EndTime": "end",
    "ExitCode": "exit", "Restarts": "restarts", "Dependency": "dependency", "BatchHost": "batch_host",
    "Priority": "priority", "ArrayJobId": "array_job", "ArrayTaskId": "array_tasks",
    "ArrayTaskThrottle": "array_throttle", "ReqTRES": "req_tres", "AllocTRES": "alloc_tres",
    "AdminComment": "comment", "Gres": "gres_per_node", "TresPerNode": "gres_per_node", "Reservation": "reservation",
}  # fmt: skip
_PARTITION: Final = {
    "State": ("partition_state", "text"), "Nodes": ("node_list", "text"), "TotalNodes": ("partition_nodes", "count"),
    "MaxTime": ("time_limit", "duration"), "DefaultTime": ("default_time", "duration"),
    "OverSubscribe": ("oversubscribe", "text"), "PriorityTier": ("priority_tier", "count"),
    "PreemptMode": ("preempt_mode", "text"), "Default": ("partition_default", "text"), "QoS": ("qos", "text"),
}  # fmt: skip
_RESERVATION: Final = {
    "StartTime": ("start", "time"), "EndTime": ("end", "time"), "Duration": ("duration", "duration"),
    "NodeCnt": ("nodes", "count"), "Nodes": ("node_list", "text"), "CoreCnt": ("cores", "count"),
    "Flags": ("reservation_flags", "text"), "State": ("reservation_state", "text"), "Users": ("users", "text"),
    "Accounts": ("accounts", "text"), "PartitionName": ("partition", "text"),
}  # fmt: skip
_NOTHING: Final = frozenset({"No reservations in the system", "No jobs in the system"})
_SIGNS: Final = {
    "NodeName=": ("CPUTot=", "CfgTRES=", "CPUAlloc="), "JobId=": ("JobState=", "UserId="),
    "PartitionName=": ("TotalNodes=", "AllocNodes="), "ReservationName=": ("StartTime=",),
    "StepId=": ("StartTime=", "State="),
}  # fmt: skip


def recognise(head: Head) -> int:
    """A record of scontrol: its first key at the start of a line, and keys that only scontrol prints."""
    text = head.text
    if "Configuration data as of" in text[:2000] and "ClusterName" in text:
        return 100
    lines = text.split("\n")
    for key, others in _SIGNS.items():
        at_start = any(line.startswith(key) for line in lines)
        if at_start and any(other in text for other in others):
            return 95
    return 60 if text.strip() in _NOTHING else 0


def read_lines(lines: Iterable[Line], asked: Asked | None = None) -> list[Run]:
    """The run that the lines of one scontrol output hold."""
    lines = iter(lines)
    first = next((line for line in lines if line.text.strip()), None)
    if first is None:
        raise Refused("scontrol printed nothing")
    whole = chain((first,), lines)
    if first.text.startswith("Configuration data as of"):
        return [configurations.read_lines(whole)]
    if first.text.strip() in _NOTHING:
        raise Refused(f"nothing to read: {first.text.strip()}", first.number)
    run = RunBuilder("scontrol")
    nodes, jobs, hosts = Nodes(run), Jobs(run), Hosts()
    count = 0
    for record in read_records(whole, run):
        count += 1
        _add(record, run, nodes, jobs, hosts, asked or Asked())
    if not count:
        raise Refused("holds no record of scontrol", first.number, first.text)
    nodes.finish()
    jobs.finish()
    return [run.build()]


def _add(record: Record, run: RunBuilder, nodes: Nodes, jobs: Jobs, hosts: Hosts, asked: Asked) -> None:
    kind = record.kind or ("node" if asked.node else "")
    if kind == "node":
        _add_node(record, nodes, run, asked)
    elif kind == "job":
        _add_job(record, jobs, hosts, run)
    elif kind in ("partition", "reservation", "step"):
        before = len(run.observations)
        if kind == "partition":
            _add_partition(record, run)
        elif kind == "reservation":
            _add_reservation(record, hosts, run)
        else:
            _add_step(record, run)
        if len(run.observations) == before:
            run.reject(record.line, record.name, f"the record of this {kind} holds nothing that is read")
    else:
        why = "a topology; read it as slurm-topology" if kind else "belongs to no record"
        run.reject(record.line, "=".join(next(iter(record.values.items()), ("", ""))), why)


def _add_node(record: Record, nodes: Nodes, run: RunBuilder, asked: Asked) -> None:
    values = record.values
    facts = {key: values[name] for name, key in _NODE_FACTS.items() if name in values}
    reason = values.get("Reason", "")
    said, bracket, by = reason.rpartition("[")
    if bracket and by.endswith("]") and "@" in by:
        user, _, since = by[:-1].partition("@")
        facts.update(reason=said.strip(), reason_user=user, reason_since=since)
    elif reason:
        facts["reason"] = reason
    name = values.get("NodeName") or asked.node
    if not {"RealMemory", "State"} <= values.keys():
        run.missing(f"rest of the record of node {name}")
    partitions = tuple(p for p in values.get("Partitions", "").split(",") if p.strip())
    nodes.add(name, facts, partitions, record.line)


def _add_job(record: Record, jobs: Jobs, hosts: Hosts, run: RunBuilder) -> None:
    values = record.values
    job = values.get("JobId", "")
    if not is_job_id(job):
        run.reject(record.line, job, "no job id")
        return
    facts = {key: values[name] for name, key in _JOB_FACTS.items() if name in values}
    low, dash, high = facts.get("nodes", "").partition("-")
    if dash and low == high:  # a request of so many nodes at least and at most
        facts["nodes"] = low
    if "UserId" in values:
        facts["user"] = values["UserId"].partition("(")[0]
    if "TRES" in values:
        key = "alloc_tres" if values.get("JobState") not in ("PENDING", None) else "req_tres"
        facts.setdefault(key, values["TRES"])
    per_node = facts.get("gres_per_node", "")
    if per_node.endswith(":0") or not per_node:
        facts.pop("gres_per_node", None)
    if (
        "JobState" not in values
        or not {"TRES", "ReqTRES", "NumNodes"} & values.keys()
        or any(key in values and values[key].endswith("=") for key in ("TRES", "ReqTRES", "AllocTRES"))
    ):
        run.missing(f"rest of the record of job {job}")
    if values.get("Account") == "(null)":
        run.notice(
            "no-account", f"job {job} has no account: its cost cannot be attributed and must be listed, not dropped"
        )
    if values.get("JobState") == "CANCELLED" and '"pods"' in values.get("AdminComment", ""):
        run.notice(
            "job-of-a-pod",
            f"job {job} stands for a Kubernetes pod (slurm-bridge): it ends as CANCELLED also when the pod completed",
            Weight.INFO,
        )
    before = jobs.count
    jobs.add(job, facts, record.line)
    if jobs.count > before:
        _observe_details(record, job, facts, hosts, run)


def _observe_details(record: Record, job: str, facts: dict[str, str], hosts: Hosts, run: RunBuilder) -> None:
    """What `scontrol show job -d` says about GPUs on each group of nodes."""
    allocated = read_tres(facts.get("alloc_tres", ""))
    wanted = None if isinstance(allocated, NoValue) else gpus_in_tres(allocated)
    shown = 0
    for detail in record.details:
        if "Nodes" not in detail or "GRES" not in detail:
            continue
        subject: Labels = (("job", job), ("nodes", detail["Nodes"]))
        resources = read_gres(detail["GRES"])
        if isinstance(resources, NoValue):
            run.observe("gpus_per_node", resources, subject, record.line)
            if isinstance(wanted, int) and wanted:
                run.notice(
                    "device-indices-unknown",
                    f"job {job} holds {wanted} GPUs by AllocTRES, but its detail line lists no device: indices unknown",
                )
            continue
        gpus = count_gpus(resources)
        shown += gpus * (_count(detail["Nodes"], hosts) or 0)
        run.observe("gpus_per_node", float(gpus), subject, record.line)
        for gres in resources:
            if gres.indices:
                run.observe("gpu_indices", gres.indices, subject, record.line)
                listed = count_indices(gres.indices)
                if listed is not None and listed != gres.count:
                    run.notice(
                        "gpu-count-conflict",
                        f"job {job}: {gres.name}:{gres.type} count {gres.count} on {detail['Nodes']}, but indices "
                        f"{gres.indices} name {listed}; AllocTRES says what was held",
                        Weight.ERROR,
                    )
    if shown and isinstance(wanted, int) and shown != wanted:
        run.notice("gpu-sum-conflict", f"job {job}: AllocTRES says {wanted} GPUs, the detail lines add up to {shown}")
    asked = read_tres(facts.get("req_tres", ""))
    if not isinstance(asked, NoValue) and isinstance(wanted, int) and gpus_in_tres(asked) != wanted:
        run.notice(
            "allocated-more-than-asked",
            f"job {job} asked for {facts['req_tres']} and holds {facts['alloc_tres']}: it is billed by AllocTRES",
        )
    nodes = read_count(facts.get("nodes", ""))
    if isinstance(nodes, float) and (held := _count(facts.get("node_list", ""), hosts)) and held != nodes:
        run.notice(
            "node-count-conflict",
            f"job {job}: NumNodes={nodes:.0f}, but NodeList names {held}",
        )


def _count(text: str, hosts: Hosts) -> int | None:
    if lacking(text) is not None:
        return None
    try:
        return len(hosts.expand(text))
    except HostlistError:
        return None


def _add_partition(record: Record, run: RunBuilder) -> None:
    subject = (("partition", record.name),)
    _observe_all(record, run, _PARTITION, subject)
    tres = read_tres(record.values.get("TRES", ""))
    if not isinstance(tres, NoValue) or tres.lack is Lack.UNREADABLE:
        gpus = tres if isinstance(tres, NoValue) else gpus_in_tres(tres)
        run.observe("gpus_configured", float(gpus) if isinstance(gpus, int) else gpus, subject, record.line)
    if record.values.get("State", "UP") != "UP":
        run.notice("partition-not-up", f"partition {record.name} is {record.values['State']}: its jobs do not start")


def _add_reservation(record: Record, hosts: Hosts, run: RunBuilder) -> None:
    subject = (("reservation", record.name),)
    values = record.values
    _observe_all(record, run, _RESERVATION, subject)
    nodes, start = values.get("NodeCnt", ""), values.get("StartTime", "")
    named = _count(values.get("Nodes", ""), hosts)
    if named is not None and nodes.isdigit() and named != int(nodes):
        run.notice("node-count-conflict", f"reservation {record.name}: NodeCnt={nodes}, but Nodes names {named}")
    future = values.get("State") == "INACTIVE"
    run.notice(
        "reservation",
        f"reservation {record.name}: {nodes or '?'} nodes "
        + (f"will be unavailable to others from {start}" if future else f"are reserved since {start}")
        + f" for {values.get('Duration', '?')}; a job whose time limit reaches into it waits until it ends",
        Weight.WARNING,
        record.line,
    )


def _add_step(record: Record, run: RunBuilder) -> None:
    job, _, step = record.name.partition(".")
    subject = (("job", job), ("step", step))
    for key, name in (("State", "step_state"), ("NodeList", "node_list"), ("StartTime", "start")):
        if lacking(record.values.get(key, "")) is None:
            run.observe(name, record.values[key], subject, record.line)


def _observe_all(record: Record, run: RunBuilder, table: dict[str, tuple[str, str]], subject: Labels) -> None:
    for key, (name, how) in table.items():
        if key in record.values:
            run.observe(name, _read(record.values[key], how), subject, record.line)


def _read(text: str, how: str) -> Value:
    if how == "count":
        return read_count(text)
    if how == "time":
        return read_time(text)
    if how == "duration":
        return read_duration(text)
    return lacking(text) or text


READER: Final = Reader("slurm-scontrol", "scontrol show", recognise, lambda s: read_lines(lines_of(s)))
