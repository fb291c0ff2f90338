"""Our own CSV loses nothing, SWF only what it cannot hold, and anybody's CSV is read by a mapping with units."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import fields
from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from builders.traces import adds_up, codes, numbered, pending, row, sacct, trace_of
from clusterwright.lib.errors import InvalidInput
from clusterwright.traces.exporting import swf_lines
from clusterwright.traces.mapped import parse_mapping, read_mapped
from clusterwright.traces.merging import merge
from clusterwright.traces.own import columns, own_rows, read_own
from clusterwright.traces.recognising import recognise
from clusterwright.traces.swf import read_swf
from clusterwright.traces.tables import Trace, Words


def own_text(trace: Trace, *, dated: bool = True) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([list(columns(dated=dated)), *own_rows(trace)])
    return out.getvalue()


def assert_equal(one: Trace, other: Trace) -> None:
    for column in fields(Trace):
        left, right = getattr(one, column.name), getattr(other, column.name)
        if column.name == "line":
            continue
        if isinstance(left, Words):
            assert [left[k] for k in range(len(left))] == [right[k] for k in range(len(right))], column.name
        elif column.name == "ids":
            assert left == right
        else:
            np.testing.assert_array_equal(left, right, err_msg=column.name)


RICH = (
    row("1", User='a "quoted", name', Timelimit="UNLIMITED"),
    row("2", State="REQUEUED", End="2025-03-01T08:40:00", ElapsedRaw="1800"),
    row("2", Submit="2025-03-01T08:40:00", Start="2025-03-01T09:00:00", End="2025-03-01T09:30:00", ElapsedRaw="1800"),
    row("3", State="RUNNING", End="Unknown", ElapsedRaw="77"),
    pending("4"),
    pending("5", State="CANCELLED", End="2025-03-01T08:20:00"),
    row("6", AllocTRES="cpu=4,node=1", ReqTRES="", NNodes="", Timelimit="Partition_Limit"),
)


def test_our_own_csv_loses_nothing():
    trace = sacct(*RICH).trace
    found = read_own(numbered(own_text(trace)))
    assert_equal(found.trace, trace)
    assert adds_up(found.counts, 6)
    assert found.dated


def test_fractions_of_seconds_survive():
    trace = trace_of({"submit_s": 0.1, "run_s": 1 / 3, "gpus": 1}, {"submit_s": 7.0, "run_s": 2.0})
    found = read_own(numbered(own_text(trace, dated=False)))
    assert_equal(found.trace, trace)
    assert not found.dated


def test_rows_of_our_own_that_somebody_spoiled_are_rejected():
    header = ",".join(columns(dated=True))
    good = dict.fromkeys(columns(dated=True), "")
    good |= {"id": "1", "submit_unix_s": "100", "start_unix_s": "110", "run_s": "5"}
    spoiled = [{"id": ""}, {"submit_unix_s": ""}, {"run_s": "x"}, {"gpus": "-3"}, {"start_unix_s": "x"}]
    lines = [",".join({**good, **each}.values()) for each in ({}, *spoiled)]
    found = read_own(numbered("\n".join([header, *lines])))
    expected = {"no-id": 1, "no-submit": 1, "bad-number": 1, "bad-gpus": 1, "bad-time": 1}
    assert codes(found.counts)["rejected"] == expected
    assert (len(found.trace), found.trace[0].end_s) == (1, 115.0)


def test_swf_keeps_times_sizes_states_and_names():
    trace = sacct(*RICH).trace
    text = "\n".join(swf_lines(trace, dated=True, title="month"))
    found = read_swf(numbered(text), processors_per_gpu=1)
    assert adds_up(found.counts, 6)
    np.testing.assert_array_equal(found.trace.submit_s, trace.submit_s)
    np.testing.assert_array_equal(found.trace.run_s, trace.run_s)
    np.testing.assert_array_equal(found.trace.start_s, trace.start_s)
    np.testing.assert_array_equal(found.trace.gpus, trace.gpus)
    assert "; User: 2 ada" in text or "; User: 1 ada" in text
    assert found.header["UnixStartTime"] == str(int(trace.submit_s[0]))


def test_swf_does_not_turn_an_unknown_start_into_no_wait():
    trace = trace_of({"submit_s": 5.0, "run_s": 7.0, "gpus": 1})
    found = read_swf(numbered("\n".join(swf_lines(trace, dated=False, title="x"))), processors_per_gpu=1)
    assert math.isnan(found.trace[0].start_s)
    assert (found.trace[0].submit_s, found.trace[0].run_s) == (5.0, 7.0)


CSV = """\
created_at,took_ms,num_gpus,hosts,mem_mb,cap,who,waited
2025-03-01T08:00:00,60000,16,2,1024,1:00:00,ada,30
2025-03-30T02:30:00,60000,9,2,1024,unlimited,bo,30
1740816000,60000,1,1,,1:00:00,ada,
2025-03-01T08:00:00,x,1,1,,1:00:00,ada,
2025-03-01T08:00:00,60000,1.5,1,,1:00:00,ada,
2025-03-01T08:00:00,60000,1,1,,one hour,ada,
,60000,1,1,,1:00:00,ada,
"""
MAPPING = (
    "submit=created_at,run=took_ms:ms,gpus=num_gpus,nodes=hosts,memory=mem_mb:MiB,limit=cap:hms,user=who,wait=waited"
)


def test_a_mapping_reads_anybodys_csv_with_its_units():
    found = read_mapped(numbered(CSV), parse_mapping(MAPPING), ZoneInfo("Europe/Berlin"))
    assert adds_up(found.counts, 7)
    assert codes(found.counts) == {
        "rejected": {"no-submit": 1, "bad-time": 1, "bad-number": 2, "bad-gpus": 1},
        "remarks": {"time-not-there": 1, "gpus-not-per-node": 1},
    }
    first, second = found.trace[0], found.trace[1]
    assert (first.submit_s, first.run_s, first.start_s) == (1740812400.0, 60.0, 1740812430.0)
    assert (first.gpus, first.tasks, first.gpus_per_task, first.memory_gib) == (16, 2, 8, 1.0)
    assert (first.limit_s, second.limit_s, first.user, first.id) == (3600.0, math.inf, "ada", "1")


def test_times_may_be_counted_since_1970():
    mapping = parse_mapping("submit=at:ms,start=from:ms,end=to:ms")
    found = read_mapped(numbered("at,from,to\n1740816000000,1740816001500,1740816002000\n"), mapping, UTC)
    assert (found.trace[0].submit_s, found.trace.wait_s[0], found.trace[0].run_s) == (1740816000.0, 1.5, 0.5)
    assert found.zone == ""


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ("run=a", "needs submit"), ("submit=a", "needs run"), ("submit=a,run=b:parsec", "no unit 'parsec'"),
        ("submit=a,run=b,gpu=c", "did you mean 'gpus'"), ("submit=a,run", "is not FIELD=COLUMN"),
    ],
)  # fmt: skip
def test_a_wrong_mapping_is_refused_with_what_would_be_right(mapping, said):
    with pytest.raises(InvalidInput, match=said):
        parse_mapping(mapping)


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(InvalidInput, match="no column 'b'; columns: a, c"):
        read_mapped(numbered("a,c\n1,2\n"), parse_mapping("submit=a:s,run=b"), UTC)


def test_other_delimiters_and_quotes_are_read():
    mapping = parse_mapping("submit=a:s,run=b:s,user=c")
    found = read_mapped(numbered('a;b;c\n10;5;"x;y"\n'), mapping, UTC)
    assert found.trace[0].user == "x;y"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("timestamp,duration,num_gpus,gpu_time,cluster\n", "philly"), ("vc,gpu_num,submit_time,duration\n", "philly"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "openb"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "openb-nodes"),
        (",".join(columns(dated=True)), "cw-csv"), (",".join(columns(dated=False)), "cw-csv"),
        ("; Version: 2.2\n1 0 5 100 8 -1 -1 8 3600 -1 1 1 1 -1 1 -1 -1 -1\n", "swf"),
        ('{"seq": 1, "at_s": 1.0, "kind": "submitted"}\n', "events"), ('{"jobs": []}', ""), ("JobID|State\n", ""),
        ("a,b,c\n1,2,3\n", ""), ("", ""), ("hello\n", ""),
    ],
)  # fmt: skip
def test_kinds_are_found_by_contents(head, kind):
    assert recognise(head) == kind


def test_a_mapping_makes_it_anybodys_csv():
    assert recognise("timestamp,duration,num_gpus,gpu_time,cluster\n", mapped=True) == "csv"


def test_merging_keeps_the_order_the_words_and_the_account():
    mapping = parse_mapping("submit=a:s,run=b:s,user=c")
    parts = [read_mapped(numbered(text), mapping, UTC) for text in ("a,b,c\n30,1,x\n5,1,y\n", "a,b,c\n10,1,y\nz,1,y\n")]
    found = merge(parts)
    assert [(job.submit_s, job.user) for job in found.trace.jobs()] == [(5.0, "y"), (10.0, "y"), (30.0, "x")]
    assert adds_up(found.counts, 4)
    assert codes(found.counts)["rejected"] == {"bad-time": 1}
