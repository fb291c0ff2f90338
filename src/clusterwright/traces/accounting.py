"""Records of a batch system's accounting → jobs: steps, arrays, components, attempts, ids that are used again.

An *allocation* is a job. Steps lie inside it. A job that several records name is sorted out by `attempts`; components
of a heterogeneous job (`12+0`, `12+1`) are one job that holds the GPUs of all; tasks of an array that have not started
stand in one row (`12_[4-9]`) and are a job each, as they are once they start.

Source: man sacct (JobID, --duplicates, JOB STATE CODES), https://slurm.schedmd.com/heterogeneous_jobs.html and
https://slurm.schedmd.com/job_array.html.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from math import isnan, nan
from typing import Final

from clusterwright.traces.attempts import Attempt, sort_attempts
from clusterwright.traces.building import TraceBuilder
from clusterwright.traces.checking import settle
from clusterwright.traces.concluding import MIXED, conclude
from clusterwright.traces.counting import Tally
from clusterwright.traces.imports import Imported
from clusterwright.traces.records import Record
from clusterwright.traces.stamps import Clock
from clusterwright.traces.tables import OPEN_STATES

#: Slurm's highest MaxArraySize (man slurm.conf).
_MOST_TASKS: Final = 4_000_001
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?")
#: States of a job that holds nodes now.
_HOLDING: Final = OPEN_STATES - {"PENDING", "REQUEUED"}


@dataclass(slots=True)
class _Components:
    """A heterogeneous job while its components go by."""

    place: int
    submit_s: float
    seen: set[str] = field(default_factory=set)


class Accounting:
    """Takes record after record, of one file or of several; `finish` gives the trace.

    Args:
        zone: of times that name none.
    """

    def __init__(self, zone: tzinfo, tally: Tally) -> None:
        self._zone = zone
        self._clock = Clock(zone)
        self._tally = tally
        self._builder = TraceBuilder()
        self._places: dict[str, int] = {}
        self._sames = array("q")
        self._several: dict[str, list[Attempt]] = {}
        self._components: dict[str, _Components] = {}
        self._stepped: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._orphans: defaultdict[str, int] = defaultdict(int)

    def add(self, record: Record) -> None:
        """Take a record."""
        if record.wrong:
            code = "end-before-start" if record.wrong.startswith("ends ") else "contradiction"
            code = code if record.job else "no-id"
            return self._tally.reject(code, record.line, record.text, record.wrong)
        if "_[" in record.job:  # before steps: a list that is cut ends in points
            return self._take_array(record)
        if record.step:
            return self._take_step(record)
        if "+" in record.job:
            return self._take_component(record)
        self._take(record, record.job)
        return None

    def finish(self, kind: str) -> Imported:
        """The trace of all records."""
        for key, count in self._orphans.items():
            if key in self._places:
                self._tally.part("step", rows=count)
            else:
                line, text = self._stepped[key][0]
                self._tally.reject("no-base", line, text, "a step whose allocation is not there", rows=count)
        for key, records in self._several.items():
            self._sort(self._places[key], records)
        return conclude(kind, self._builder, self._tally, self._zone)

    def _take_step(self, record: Record) -> None:
        key = _key(record, record.job.partition("+")[0])
        if key in self._places:
            return self._tally.part("step", record.line, record.text)
        if not self._orphans[key]:
            self._stepped[key].append((record.line, record.text))
        self._orphans[key] += 1
        return None

    def _take_array(self, record: Record) -> None:
        """Tasks that have not started: one row, a job for each."""
        base, _, inside = record.job.partition("_[")
        tasks = _tasks_of(inside.rstrip("]").partition("%")[0])
        if tasks is None:
            return self._tally.reject("array-cut", record.line, record.text)
        if sum(map(len, tasks)) > _MOST_TASKS:
            return self._tally.reject("array-too-large", record.line, record.text)
        names = [name for numbers in tasks for n in numbers if _key(record, name := f"{base}_{n}") not in self._places]
        if not names:
            return self._tally.part("repeat", record.line, record.text)
        rejected = self._tally.rejected
        self._take(record, names[0])
        if self._tally.rejected == rejected:
            for name in names[1:]:
                self._take(record, name, counted=False)
            if len(names) > 1:
                self._tally.remark("array", record.line, record.text, f"{len(names)} tasks")
        return None

    def _take_component(self, record: Record) -> None:
        base, _, offset = record.job.partition("+")
        key = _key(record, base)
        submit_s = nan if record.submit is None else self._clock.seconds(record.submit)[0]
        known = self._components.get(key)
        if known is None or known.submit_s != submit_s:
            self._take(record, base)
            if key in self._places:
                self._components[key] = _Components(self._places[key], submit_s, {offset})
        elif offset in known.seen:
            self._tally.part("repeat", record.line, record.text)
        else:
            known.seen.add(offset)
            self._tally.part("component", record.line, record.text)
            if key not in self._several:
                self._add_component(known.place, record)

    def _add_component(self, place: int, record: Record) -> None:
        builder = self._builder
        gpus, tasks = int(builder.number(place, "gpus")), int(builder.number(place, "tasks"))
        if gpus * max(record.nodes, 0) != max(record.gpus, 0) * max(tasks, 0):
            if builder.number(place, "gpus_per_task") != MIXED:
                self._tally.remark("component-mixed", record.line, record.text)
            builder.change(place, gpus_per_task=MIXED)
        summed = max(gpus, 0) + max(record.gpus, 0)
        builder.change(
            place,
            gpus=summed if summed or gpus == record.gpus == 0 else gpus,
            tasks=tasks + record.nodes if tasks > 0 and record.nodes > 0 else tasks,
            cpus=builder.number(place, "cpus") + record.cpus,
            memory_gib=builder.number(place, "memory_gib") + record.memory_gib,
        )

    def _take(self, record: Record, job: str, *, counted: bool = True) -> None:
        """Begin a job, or keep another record of one for `_sort`."""
        attempt = self._attempt(record)
        if attempt is None:
            return
        key = _key(record, job)
        place = self._places.get(key)
        if place is not None:
            if key not in self._several:
                self._several[key] = [self._first(place)]
            self._several[key].append(attempt)
            return
        if counted:
            self._tally.job()
        if record.restarts and attempt.state not in ("REQUEUED", "PENDING"):
            self._tally.remark("submit-reset", record.line, record.text, f"{record.restarts} restarts")
        if record.slices:
            self._tally.remark("gpu-slices", record.line, record.text)
        if record.cut:
            self._tally.remark("gpus-cut", record.line, record.text)
        self._sames.append(record.same)
        self._places[key] = self._builder.add(
            job, attempt.submit_s, eligible_s=attempt.eligible_s, start_s=attempt.start_s, end_s=attempt.end_s,
            run_s=attempt.run_s, limit_s=record.limit_s, gpus=record.gpus, tasks=record.nodes, cpus=record.cpus,
            memory_gib=record.memory_gib, priority=record.priority, censored=attempt.censored, queue=record.queue,
            account=record.account, user=record.user, qos=record.qos, flavor=record.flavor, state=attempt.state,
            line=record.line,
        )  # fmt: skip

    def _attempt(self, record: Record) -> Attempt | None:
        tally, line, text = self._tally, record.line, record.text
        odd = dict[str, None]()
        submit_s = self._seconds(record.submit, odd)
        began = record.start is not None or record.elapsed_s > 0
        ran = began and not (record.unplaced and not record.elapsed_s > 0) and record.state != "PENDING"
        times = settle(
            tally, line, text, submit_s=submit_s, start_s=self._seconds(record.start, odd) if ran else nan,
            end_s=self._seconds(record.end, odd), run_s=record.elapsed_s if ran else nan,
        )  # fmt: skip
        if times is None:
            return None
        for code in odd:
            tally.remark(code, line, text)
        if record.state is None:
            tally.remark("unknown-state", line, text)
        if record.limit:
            tally.remark("partition-limit", line, text, record.limit)
        state, open_now = record.state or "", record.end is None and record.state in _HOLDING
        return Attempt(
            place=len(self._sames), line=line, text=text, same=record.same, submit_s=times.submit_s,
            eligible_s=self._seconds(record.eligible, odd), start_s=times.start_s,
            end_s=nan if open_now else times.end_s, run_s=times.run_s, limit_s=record.limit_s, gpus=record.gpus,
            nodes=record.nodes, state=state, user=record.user, censored=open_now and not isnan(times.run_s),
        )  # fmt: skip

    def _first(self, place: int) -> Attempt:
        number, word = self._builder.number, self._builder.word
        return Attempt(
            place=place, line=int(number(place, "line")), text=f"job {self._builder.ids[place]}",
            same=self._sames[place], submit_s=self._builder.submitted_s(place),
            eligible_s=number(place, "eligible_s"), start_s=number(place, "start_s"), end_s=number(place, "end_s"),
            run_s=number(place, "run_s"), limit_s=number(place, "limit_s"), gpus=int(number(place, "gpus")),
            nodes=int(number(place, "tasks")), state=word(place, "state"), user=word(place, "user"),
            censored=bool(number(place, "censored")),
        )  # fmt: skip

    def _sort(self, place: int, records: list[Attempt]) -> None:
        """Write what several records of an id are."""
        tally, found = self._tally, sort_attempts(records)
        for code, parts in (("update", found.updated), ("repeat", found.repeated)):
            for part in parts:
                tally.part(code, part.line, part.text)
        for record in found.clashing:
            tally.reject("attempts-overlap", record.line, record.text)
        for number, attempts in enumerate(found.jobs):
            if number:
                tally.job()
                tally.remark("id-used-again", attempts[0].line, attempts[0].text)
                place = self._builder.copy(place)
            self._write(place, attempts)
            for attempt in attempts[1:]:
                tally.part("attempt", attempt.line, attempt.text)
            if len(attempts) > 1:
                tally.remark("requeued", attempts[0].line, attempts[0].text, f"{len(attempts)} attempts")

    def _write(self, place: int, attempts: list[Attempt]) -> None:
        first, last = attempts[0], attempts[-1]
        self._builder.resubmit(place, first.submit_s)
        self._builder.change(
            place, eligible_s=first.eligible_s, start_s=next((a.start_s for a in attempts if a.start_s > 0), nan),
            end_s=last.end_s, run_s=last.run_s, limit_s=last.limit_s, attempts=len(attempts), state=last.state,
            lost_s=sum(a.run_s for a in attempts[:-1] if a.run_s > 0), censored=last.censored, user=last.user,
            gpus=last.gpus if last.gpus >= 0 else first.gpus, tasks=last.nodes if last.nodes > 0 else first.nodes,
        )  # fmt: skip

    def _seconds(self, moment: datetime | None, odd: dict[str, None]) -> float:
        if moment is None:
            return nan
        seconds, remark = self._clock.seconds(moment)
        if remark:
            odd[remark] = None
        return seconds


def _key(record: Record, job: str) -> str:
    return f"{record.cluster}\0{job}" if record.cluster else job


def _tasks_of(text: str) -> list[range] | None:
    """Task numbers of `1,3,5-9:2`; None when the list is cut with `...`."""
    found = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return None
        low, high, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        found.append(range(low, high + 1, max(step, 1)))
    return found if any(found) else None
