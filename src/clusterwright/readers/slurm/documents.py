"""JSON of Slurm: sinfo, squeue, sacct, scontrol and sdiag with --json, and slurmrestd.

Names as in `nodes`, `jobs` and `accounts`. Times are UTC (the JSON holds seconds since 1970). `sdiag` gives `statistic`
(subject: name), counters since its last reset and no state. A job or node that stands alone, without `{"jobs": [...]}`,
is read too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.documents import find_json, load_json
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm import account_documents
from clusterwright.readers.slurm.jobs import Jobs
from clusterwright.readers.slurm.nodes import Nodes
from clusterwright.readers.slurm.wrapped import entries, epoch, infinite, inner, number, plain, text, words

_PARTS: Final = ("jobs", "nodes", "partitions", "reservations", "statistics", "sinfo")
_MARKS: Final = (
    '"plugin"', '"Slurm"', '"slurm"', '"job_state"', '"slurmd_start_time"', '"gres_used"', '"tres_used"',
    '"schedule_cycle_max"', '"state_flags"', '"tres_alloc_str"', '"array_job_id"', '"state_reason"',
)  # fmt: skip


def recognise(head: Head) -> int:
    """A JSON object with the keys of Slurm."""
    start = head.text.lstrip()[:1]
    if start != "{" and find_json(head.text) is None:
        return 0
    body = head.text
    if '"OpenAPI' in body or '"Slurm OpenAPI' in body or ('"plugin"' in body and '"data_parser' in body):
        return 95
    hits = sum(mark in body for mark in _MARKS)
    own = any(f'"{part}"' in body for part in _PARTS) or '"job_id"' in body or '"hostname"' in body
    return 90 if hits >= 2 and own else 0


def read(source: Source) -> Sequence[Run]:
    """The run that a document holds."""
    body = source.text()
    place = find_json(body)
    if place is None:
        raise Refused("holds no JSON object", found=body[:100])
    loaded = load_json(body[place[0] :], first_line=body.count("\n", 0, place[0]) + 1)
    document = loaded.value
    if not isinstance(document, dict):
        raise Refused("a list where an object with jobs or nodes was expected")
    run = RunBuilder("slurm", _version(document))
    for duplicate in loaded.duplicates[:20]:
        run.notice("duplicate-key", f"key {duplicate.key!r} stands twice in one object; the first value is kept")
    _read_meta(document, run)
    if not _read_parts(document, run):
        raise Refused("JSON without jobs, nodes, partitions, reservations or statistics", found=", ".join(document))
    return [run.build()]


def _version(document: dict[str, Any]) -> str:
    for path in (("meta", "slurm", "release"), ("meta", "Slurm", "release"), ("version",)):
        found = inner(document, *path)
        if isinstance(found, str) and found:
            return found
    return ""


def _read_meta(document: dict[str, Any], run: RunBuilder) -> None:
    plugin = text(inner(document, "meta", "plugin", "type"))
    if plugin:
        run.condition("api", plugin)
    cluster = text(inner(document, "meta", "slurm", "cluster"))
    if cluster:
        run.condition("cluster", cluster)
    errors = inner(document, "errors")
    for error in list(entries(errors))[:20]:
        said = text(error.get("description")) or text(error.get("error"))
        run.notice("slurm-error", f"Slurm answered with an error: {said[:200]}", Weight.ERROR)
    if isinstance(errors, list) and errors:
        run.missing("what Slurm answered with an error instead of")


def _read_parts(document: dict[str, Any], run: RunBuilder) -> bool:
    found = False
    if isinstance(document.get("nodes"), (list, dict)) and not {"job_id", "job_state"} & document.keys():
        _read_nodes(list(entries(document["nodes"])), run)
        found = True
    elif "hostname" in document and ("gres" in document or "state" in document):
        _read_nodes([document], run)
        found = True
    if isinstance(document.get("sinfo"), list):
        _read_sinfo(list(entries(document["sinfo"])), run)
        found = True
    if isinstance(document.get("jobs"), (list, dict)):
        listed = list(entries(document["jobs"]))
        found = True
        if any("steps" in job and "time" in job for job in listed):
            account_documents.read_jobs(listed, run)
        else:
            _read_jobs(listed, run, whole=True)
    elif "job_id" in document:
        _read_jobs([document], run, whole=False)
        found = True
    for key, read_part in (("partitions", _read_partitions), ("reservations", _read_reservations)):
        if isinstance(document.get(key), (list, dict)) and not (found and key == "partitions"):
            read_part(list(entries(document[key])), run)
            found = True
    if isinstance(document.get("statistics"), dict):
        _read_statistics(document["statistics"], run)
        found = True
    return found


def _read_nodes(listed: list[dict[str, Any]], run: RunBuilder) -> None:
    nodes = Nodes(run)
    for node in listed:
        name = text(node.get("name")) or text(node.get("hostname"))
        if not name:
            run.reject(0, str(sorted(node))[:100], "a node without a name")
            continue
        nodes.add(name, _node_facts(node), words(node.get("partitions")), 0)
    if not listed:
        run.condition("nodes_listed", 0.0)
    nodes.finish()


def _node_facts(node: dict[str, Any]) -> dict[str, str]:
    state = "+".join((*words(node.get("state")), *words(node.get("state_flags"))))
    load = number(node.get("cpu_load"))
    facts = {
        "state": state.upper(), "gres": text(node.get("gres")), "gres_used": text(node.get("gres_used")),
        "cpus": plain(node.get("cpus")), "cpus_allocated": plain(node.get("alloc_cpus")),
        "memory": plain(node.get("real_memory")), "memory_allocated": plain(node.get("alloc_memory")),
        "memory_free": plain(node.get("free_mem", node.get("free_memory"))),
        # cpu_load is the load average × 100 (node_info_t in slurm.h)
        "load": "" if load is None else f"{load / 100:.6g}",
        "reason": text(node.get("reason")), "reason_user": text(node.get("reason_set_by_user")),
        "reason_since": epoch(node.get("reason_changed_at")), "cfg_tres": text(node.get("tres")),
        "features": text(node.get("active_features")), "reservation": text(node.get("reservation")),
        "version": text(node.get("version")) or text(node.get("slurmd_version")),
        "boot": epoch(node.get("boot_time")), "started": epoch(node.get("slurmd_start_time")),
    }  # fmt: skip
    if isinstance(node.get("tres_used"), str):
        facts["alloc_tres"] = node["tres_used"]
    return {key: value for key, value in facts.items() if value or key in ("gres", "alloc_tres")}


def _read_sinfo(listed: list[dict[str, Any]], run: RunBuilder) -> None:
    """The form of `sinfo --json` from 23.02 on: groups of equal nodes."""
    nodes = Nodes(run)
    for group in listed:
        names = words(inner(group, "nodes", "nodes"))
        if not names:
            run.reject(0, str(sorted(group))[:100], "a group without node names")
        facts = {
            "state": "+".join(words(inner(group, "node", "state"))), "gres": text(inner(group, "gres", "total")),
            "gres_used": text(inner(group, "gres", "used")), "reason": text(inner(group, "reason", "description")),
            "version": text(inner(group, "cluster", "version")),
        }  # fmt: skip
        if len(names) == 1:
            facts["cpus"] = plain(inner(group, "cpus", "total"))
            facts["cpus_allocated"] = plain(inner(group, "cpus", "allocated"))
        partition = text(inner(group, "partition", "name"))
        for name in names:
            nodes.add(name, {k: v for k, v in facts.items() if v or k == "gres"}, (partition,) if partition else (), 0)
    nodes.finish()


def _read_jobs(listed: list[dict[str, Any]], run: RunBuilder, *, whole: bool) -> None:
    jobs = Jobs(run)
    for job in listed:
        own = plain(job.get("job_id"))
        if not own:
            run.reject(0, str(sorted(job))[:100], "a job without an id")
            continue
        array, task = plain(job.get("array_job_id")), plain(job.get("array_task_id"))
        tasks = text(job.get("array_task_string"))
        facts = _job_facts(job)
        name = own
        if array not in ("", "0") and task and job.get("array_task_id") is not None:
            name = f"{array}_{task}"
        elif array not in ("", "0") and tasks:
            facts["array_tasks"] = tasks
            name = f"{array}_[{tasks}]"
        if array not in ("", "0"):
            facts["array_job"] = array
        jobs.add(name, facts, 0)
    jobs.finish(listing=whole)


def _job_facts(job: dict[str, Any]) -> dict[str, str]:
    states = words(job.get("job_state"))
    limit = job.get("time_limit")
    minutes = number(limit)
    facts = {
        "state": states[0] if states else "", "reason": text(job.get("state_reason")), "name": text(job.get("name")),
        "user": text(job.get("user_name")), "account": text(job.get("account")), "qos": text(job.get("qos")),
        "partition": text(job.get("partition")), "cluster": text(job.get("cluster")),
        "nodes": plain(job.get("node_count")), "cpus": plain(job.get("cpus")),
        "node_list": text(job.get("nodes")) if isinstance(job.get("nodes"), str) else "",
        "alloc_tres": text(job.get("tres_alloc_str")), "req_tres": text(job.get("tres_req_str")),
        "gres_per_node": text(job.get("tres_per_node")), "submit": epoch(job.get("submit_time")),
        "eligible": epoch(job.get("eligible_time")), "start": epoch(job.get("start_time")),
        "end": epoch(job.get("end_time")), "restarts": plain(job.get("restart_cnt")),
        "dependency": text(job.get("dependency")), "batch_host": text(job.get("batch_host")),
        "priority": plain(job.get("priority")), "array_throttle": plain(job.get("array_max_tasks")),
        "comment": text(job.get("admin_comment")), "exit": _exit(job.get("exit_code")),
    }  # fmt: skip
    if infinite(limit):
        facts["time_limit"] = "UNLIMITED"
    elif minutes is not None and 0 <= minutes < 1e9:
        facts["time_limit"] = f"{int(minutes) // 1440}-{int(minutes) % 1440 // 60:02}:{int(minutes) % 60:02}:00"
    if facts["array_throttle"] == "0":
        del facts["array_throttle"]
    return {key: value for key, value in facts.items() if value}


def _exit(value: Any) -> str:
    """`code:signal`; an old plain number is the wait status."""
    code = number(inner(value, "return_code")) if isinstance(value, dict) and "return_code" in value else None
    if code is not None:
        signal = number(inner(value, "signal", "id")) or number(inner(value, "signal", "signal_id")) or 0
        return f"{code:.0f}:{signal:.0f}"
    status = number(value)
    if status is None or not 0 <= status < 65536:
        return ""
    return f"{int(status) >> 8}:{int(status) & 127}"


def _read_partitions(listed: list[dict[str, Any]], run: RunBuilder) -> None:
    for partition in listed:
        subject = (("partition", text(partition.get("name"))),)
        state = text(inner(partition, "partition", "state")) or text(partition.get("state"))
        total = number(inner(partition, "nodes", "total")) or number(partition.get("total_nodes"))
        nodes = text(inner(partition, "nodes", "configured")) or text(partition.get("nodes"))
        for name, value in (("partition_state", state), ("node_list", nodes)):
            if value:
                run.observe(name, value, subject)
        if total is not None:
            run.observe("partition_nodes", total, subject)


def _read_reservations(listed: list[dict[str, Any]], run: RunBuilder) -> None:
    for reservation in listed:
        subject = (("reservation", text(reservation.get("name"))),)
        start, end = epoch(reservation.get("start_time")), epoch(reservation.get("end_time"))
        nodes = number(reservation.get("node_count"))
        for name, value in (
            ("start", start), ("end", end), ("node_list", text(reservation.get("node_list"))),
            ("reservation_flags", text(reservation.get("flags"))),
        ):  # fmt: skip
            if value:
                run.observe(name, value, subject)
        if nodes is not None:
            run.observe("nodes", nodes, subject)
        run.notice(
            "reservation",
            f"reservation {subject[0][1]}: {plain(reservation.get('node_count')) or '?'} nodes from {start} to "
            f"{end}; a "
            "job whose time limit reaches into it waits until it ends",
        )


def _read_statistics(statistics: dict[str, Any], run: RunBuilder) -> None:
    for key, value in list(statistics.items())[:1000]:
        found = number(value)
        if isinstance(value, bool) or found is None:
            continue
        is_time = key in ("req_time", "req_time_start", "job_states_ts", "bf_when_last_cycle")
        seen = epoch(value) if is_time else found
        if seen != "":
            run.observe("statistic", seen, (("name", key),))
    run.notice(
        "statistics-only", "counters of the scheduler since their last reset; no source for capacity", Weight.INFO
    )


READER: Final = Reader("slurm-json", "JSON of Slurm's commands and slurmrestd", recognise, read)
