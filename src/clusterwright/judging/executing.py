"""The rehearsal of scheduled execution: what every task reports against what was expected of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusterwright.judging.expecting import Expectation, ExpectedJob
from clusterwright.lib.hostlists import fold
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Check, Reading


@dataclass(frozen=True, slots=True)
class Report:
    """What one rank said.

    Args:
        devices: of its task; the rank's own is the one at its local rank, as torchrun programs choose it.
        members: (rank, pid) of every rank it met.
        stores: store → what is wrong with it, "" if nothing.
        failure: why the ranks did not meet, or "".
    """

    node: str
    devices: tuple[str, ...]
    rank: int
    local_rank: int
    world_size: int
    pid: int
    members: tuple[tuple[int, int], ...]
    stores: Mapping[str, str]
    failure: str = ""

    @property
    def device(self) -> str:
        """The device that this rank uses, "" if it got none."""
        return self.devices[self.local_rank] if 0 <= self.local_rank < len(self.devices) else ""


@dataclass(frozen=True, slots=True)
class JobReport:
    """What came back from one job: readable reports, and lines that are none, with their text."""

    reports: tuple[Report, ...]
    unreadable: tuple[str, ...] = ()
    note: str = ""


def parse_report(line: str) -> Report | str:
    """A reporter's line, or the text itself when it is no report."""
    try:
        seen = json.loads(line)
        return Report(
            node=str(seen["node"]),
            devices=tuple(str(d) for d in seen["devices"]),
            rank=int(seen["rank"]),
            local_rank=int(seen["local_rank"]),
            world_size=int(seen["world_size"]),
            pid=int(seen["pid"]),
            members=tuple((int(m["rank"]), int(m["pid"])) for m in seen["members"]),
            stores={name: _store_problem(name, store) for name, store in seen["stores"].items()},
            failure=str(seen["meeting"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return line


def _store_problem(name: str, store: Mapping[str, Any]) -> str:
    if not store["visible"]:
        return "not visible"
    if store["label"] != name:
        return f"is {store['label'] or 'without label'}"
    if not store["writable"]:
        return f"not writable: {store.get('why', '')}"
    missing = store.get("missing") or []
    return f"does not show what {', '.join(missing)} wrote" if missing else ""


@dataclass(slots=True)
class _Tally:
    """Problems by aspect, and the ranks that had any."""

    problems: dict[str, list[str]] = field(default_factory=dict)
    spoilt: set[tuple[str, int]] = field(default_factory=set)

    def add(self, aspect: str, job: str, rank: int, problem: str) -> None:
        self.problems.setdefault(aspect, []).append(problem)
        self.spoilt.add((job, rank))


def compare_execution(expectation: Expectation, found: Mapping[str, JobReport]) -> tuple[tuple[Check, ...], Reading]:
    """Checks per job and over all of them, and the share of ranks that ran exactly as expected.

    A rank that did not report counts as not as expected; so does every rank that the plan has no place for.
    """
    tally, checks = _Tally(), list[Check]()
    for job in expectation.jobs:
        checks += _check_job(job, found.get(job.name, JobReport(())), tally)
    checks.append(_check_sharing(expectation, found, tally))
    checks += [
        Check(f"{m.workload}: placed", f"{m.ranks if m.ranks is not None else 'all'} ranks", m.reason, holds=False)
        for m in expectation.missing
    ]
    total = expectation.ranks
    good = sum(_good_ranks(j, found.get(j.name, JobReport(())), tally) for j in expectation.jobs)
    nodes = tuple(dict.fromkeys(n for j in expectation.jobs for n in j.nodes))
    share = good / total if total else 0.0
    unknown = any(m.ranks is None for m in expectation.missing)
    text = "100%" if share == 1.0 else f"{min(share * 100, 99.9):.1f}%"
    if unknown or not total:
        return tuple(checks), Reading("tasks_as_expected", None, (), nodes, "the plan does not say how many tasks")
    return tuple(checks), Reading("tasks_as_expected", Quantity(share, (), text), (), nodes)


def _good_ranks(job: ExpectedJob, found: JobReport, tally: _Tally) -> int:
    seen = {r.rank for r in found.reports if 0 <= r.rank < job.ranks}
    return sum((job.name, rank) not in tally.spoilt for rank in seen)


def _check_job(job: ExpectedJob, found: JobReport, tally: _Tally) -> Iterator[Check]:
    counts = Counter(r.rank for r in found.reports)
    missing = sorted(set(range(job.ranks)) - set(counts))
    extra = [r for r, n in counts.items() if n > 1 or not 0 <= r < job.ranks]
    seen = f"{len(counts)} ranks" + "".join(
        f"; {what}" for what in (
            f"without {_numbers(missing)}" if missing else "",
            f"more than once or unknown: {_numbers(sorted(extra))}" if extra else "",
            f"unreadable: '{found.unreadable[0][:120]}'" if found.unreadable else "",
            found.note,
        ) if what
    )  # fmt: skip
    holds = not missing and not extra and not found.unreadable
    yield Check(f"{job.name}: every rank reports", f"{job.ranks} ranks", seen, holds)
    for aspect, expected, problems in (
        ("nodes", _expected_nodes(job), _node_problems(job, found.reports)),
        ("devices", f"{job.ranks} distinct devices", _device_problems(job, found.reports)),
        ("membership", f"each rank meets all {job.ranks}", _member_problems(job, found.reports)),
        ("mounts", ", ".join((*job.shared_stores, *job.node_stores)) or "none", _store_problems(job, found.reports)),
    ):
        wrong = list(problems)
        for rank, problem in wrong:
            tally.add(aspect, job.name, rank, problem)
        fine = expected if found.reports else "no report"
        text = "; ".join(dict.fromkeys(p for _, p in wrong)) or fine
        yield Check(f"{job.name}: {aspect}", expected, text[:500], not wrong and bool(found.reports))


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(str(v) for v in values[:16]) + (" …" if len(values) > 16 else "")


def _expected_nodes(job: ExpectedJob) -> str:
    pools = ", ".join(dict.fromkeys(t.pool for t in job.tasks))
    return f"{fold(job.nodes)} of pool {pools}"


def _node_problems(job: ExpectedJob, reports: Sequence[Report]) -> Iterator[tuple[int, str]]:
    """Every rank on a planned node, and each node with as many ranks as planned."""
    wanted: Counter[str] = Counter()
    for task in job.tasks:
        wanted[task.node] += task.gpus
    seen = Counter(r.node for r in reports)
    for report in reports:
        if report.node not in wanted:
            yield report.rank, f"rank {report.rank} on {report.node or 'no node'}"
        elif seen[report.node] > wanted[report.node]:
            yield report.rank, f"{seen[report.node]} ranks on {report.node} instead of {wanted[report.node]}"


def _device_problems(job: ExpectedJob, reports: Sequence[Report]) -> Iterator[tuple[int, str]]:
    """Every rank has a device of its own, and sees exactly as many as one of its job's tasks has there."""
    sizes: dict[str, set[int]] = {}
    for task in job.tasks:
        sizes.setdefault(task.node, set()).add(task.gpus)
    users = Counter((r.node, r.device) for r in reports)
    for report in reports:
        if not report.device:
            yield report.rank, f"rank {report.rank} has no device at local rank {report.local_rank}"
        elif users[report.node, report.device] > 1:
            yield report.rank, f"{users[report.node, report.device]} ranks on device {report.device} of {report.node}"
        elif len(set(report.devices)) != len(report.devices):
            yield report.rank, f"rank {report.rank} was given a device twice: {','.join(report.devices)}"
        elif report.node in sizes and len(report.devices) not in sizes[report.node]:
            yield report.rank, f"rank {report.rank} sees {len(report.devices)} devices"


def _member_problems(job: ExpectedJob, reports: Sequence[Report]) -> Iterator[tuple[int, str]]:
    """Every rank met every rank, and those it met are the processes that report."""
    processes = {r.rank: r.pid for r in reports}
    for report in reports:
        if report.failure:
            yield report.rank, report.failure
        elif report.world_size != job.ranks:
            yield report.rank, f"rank {report.rank} was told a world of {report.world_size}"
        elif sorted(rank for rank, _ in report.members) != list(range(job.ranks)):
            yield report.rank, f"rank {report.rank} met {len(report.members)} ranks"
        elif any(processes.get(rank, pid) != pid for rank, pid in report.members):
            yield report.rank, f"rank {report.rank} met a process that is not the rank it claims to be"


def _store_problems(job: ExpectedJob, reports: Sequence[Report]) -> Iterator[tuple[int, str]]:
    for report in reports:
        for store in (*job.shared_stores, *job.node_stores):
            problem = report.stores.get(store, "was not looked at")
            if problem:
                yield report.rank, f"{store} on {report.node} {problem}"


def _check_sharing(expectation: Expectation, found: Mapping[str, JobReport], tally: _Tally) -> Check:
    """No device belongs to two jobs at once; all jobs held their devices together when they reported."""
    users: dict[tuple[str, str], set[str]] = {}
    for job in expectation.jobs:
        for report in found.get(job.name, JobReport(())).reports:
            for device in report.devices:
                users.setdefault((report.node, device), set()).add(job.name)
    shared = {place: jobs for place, jobs in users.items() if len(jobs) > 1}
    for (node, device), jobs in shared.items():
        for name in jobs:
            for report in found[name].reports:
                if report.node == node and device in report.devices:
                    tally.add("sharing", name, report.rank, device)
    text = "; ".join(f"{d} of {n} by {', '.join(sorted(jobs))}" for (n, d), jobs in shared.items())
    seen = text[:500] or (f"none, {len(users)} devices in use" if users else "no device was reported")
    return Check("devices given to two jobs at once", "none", seen, not shared and bool(users))
