"""Whatever the rows of a trace are: each is of a job, a part of one, or rejected, and the table is in order."""

from __future__ import annotations

import math
from datetime import UTC

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.traces import SACCT, adds_up, numbered, pending, row, sacct
from clusterwright.traces.events import read_events
from clusterwright.traces.imports import Imported
from clusterwright.traces.mapped import parse_mapping, read_mapped
from clusterwright.traces.openb import read_pods
from clusterwright.traces.own import columns, read_own
from clusterwright.traces.philly import read_philly
from clusterwright.traces.swf import read_swf

CELLS = st.sampled_from(
    [
        "", "-1", "0", "1", "8", "60", "3600", "1e9", "1e99", "nan", "inf", "x", "1_0", "²", "2025-03-01T08:00:00",
        "2025-03-30T02:30:00", "1740816000", "9999-12-31T23:59:59", '"', '"a,b"', "RUNNING", "Pending", "\x00",
    ]
)  # fmt: skip


def csv_text(header: str, width: int):
    rows = st.lists(st.lists(CELLS, min_size=max(width - 1, 1), max_size=width + 1).map(",".join), max_size=12)
    return rows.map(lambda lines: "\n".join([header, *lines]))


def holds(found: Imported) -> None:
    trace, counts = found.trace, found.counts
    assert adds_up(counts, counts.rows)
    assert counts.jobs <= len(trace)
    submit_s = trace.submit_s.tolist()
    assert submit_s == sorted(submit_s)
    assert not any(math.isnan(each) for each in submit_s)
    assert not (trace.run_s < 0).any()
    assert not (trace.wait_s < 0).any()
    assert ((trace.gpus >= -1) & (trace.gpus_per_task >= -1) & (trace.tasks >= -1)).all()
    assert not (trace.end_s < trace.start_s).any()


@settings(deadline=None)
@given(csv_text("timestamp,duration,num_gpus,gpu_time,cluster", 5))
def test_philly(text):
    holds(read_philly(numbered(text), UTC))


@settings(deadline=None)
@given(csv_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time", 9))
def test_openb(text):
    holds(read_pods(numbered(text)))


@settings(deadline=None)
@given(csv_text(",".join(columns(dated=True)), len(columns(dated=True))))
def test_our_own(text):
    holds(read_own(numbered(text)))


@settings(deadline=None)
@given(csv_text("a,b,c,d,e", 5))
def test_mapped(text):
    holds(read_mapped(numbered(text), parse_mapping("submit=a,run=b,gpus=c,start=d:s,nodes=e"), UTC))


NUMBERS = st.sampled_from(["-1", "0", "1", "5", "60", "2", "3", "1e30", "x", "-7", "1.5"])


@settings(deadline=None)
@given(st.lists(st.lists(NUMBERS, min_size=17, max_size=19).map(" ".join), max_size=12))
def test_swf(lines):
    good = "1 0 5 100 8 -1 -1 8 3600 -1 1 1 1 -1 1 -1 -1 -1"
    found = read_swf(numbered("\n".join([good, *lines])), 8)
    holds(found)
    assert found.counts.rows == len(lines) + 1


EVENTS = st.builds(
    lambda kind, job, at, data: f'{{"seq": 1, "at_s": {at}, "kind": "{kind}", "job": {job}, "data": {data}}}',
    st.sampled_from(["submitted", "admitted", "fenced", "requeued", "ended", "node_lost"]),
    st.sampled_from(['"1"', '"2"', "null"]),
    st.sampled_from([0, 1, 5, 50, -3, 1e300, '"x"']),
    st.sampled_from(["{}", '{"gpus": 8, "nodes": ["a"]}', '{"gpus": "x", "state": 3}', "[]", "7"]),
)


@settings(deadline=None)
@given(st.lists(EVENTS, max_size=15))
def test_events(lines):
    found = read_events(numbered("\n".join(lines)))
    holds(found)
    assert found.counts.rows == len(lines)


TIMES = st.sampled_from(["Unknown", "None", "2025-03-01T08:00:00", "2025-03-01T08:10:00", "2025-03-01T09:00:00"])
NAMES = st.sampled_from(["7", "8", "7.batch", "8.0", "9+0", "9+1", "9+1.batch", "5_1", "5_[1-3]", "5_[2,...]"])
STATES = st.sampled_from(["COMPLETED", "REQUEUED", "NODE_FAIL", "RUNNING", "PENDING", "CANCELLED by 5", "WHAT"])
RECORDS = st.builds(
    lambda make, job, state, submit, start, end, elapsed, tres: make(
        job, State=state, Submit=submit, Start=start, End=end, ElapsedRaw=elapsed, AllocTRES=tres
    ),
    st.sampled_from([row, pending]), NAMES, STATES, TIMES, TIMES, TIMES,
    st.sampled_from(["0", "60", "3600", "-5", ""]), st.sampled_from(["", "cpu=1", "gres/gpu=8,node=2", "gres/gpu=1+"]),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(RECORDS, max_size=15))
def test_sacct(lines):
    found = sacct(*lines)
    holds(found)
    assert found.counts.rows == len(lines)
    assert SACCT.count("|") == (lines[0].count("|") if lines else SACCT.count("|"))
