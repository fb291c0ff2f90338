"""Philly, openb, SWF and our own events: every nasty row is a job, a part of one, or rejected by name."""

from __future__ import annotations

import json
import math
from datetime import UTC

import pytest

from builders.traces import PACIFIC, adds_up, codes, numbered
from clusterwright.traces.events import read_events
from clusterwright.traces.openb import read_nodes, read_pods
from clusterwright.traces.philly import read_philly
from clusterwright.traces.rows import NotThisKind
from clusterwright.traces.swf import read_swf

PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-08 06:13:03,2951.0,8,23608.0,6214e9
2017-11-05 01:32:10,60.0,1,60.0,a
2017-03-12 02:30:00,60.0,1,60.0,a
2017-10-09 08:00:00,0.0,1,0.0,a
2017-10-09 08:00:00,,1,,a
2017-10-09 08:00:00,60.0,2,60.0,a

2017-10-09 08:00:00,-5.0,1,5.0,a
2017-10-09 08:00:00,1e12,1,1e12,a
2017-10-09 08:00:00,60.0,-1,60.0,a
2017-10-09 08:00:00,60.0,1.5,60.0,a
2017-10-09 08:00:00,sixty,1,60.0,a
2017-10-09 08:00:00,nan,1,60.0,a
2017-02-30 08:00:00,60.0,1,60.0,a
,60.0,1,60.0,a
2017-10-09 08:00:00,60.0,1
2017-10-09 08:00:00,60.0,1,60.0,a,b
"""


def test_philly_times_are_pacific_and_every_row_is_accounted_for():
    found = read_philly(numbered(PHILLY), PACIFIC)
    assert adds_up(found.counts, 17)
    assert codes(found.counts) == {
        "rejected": {"fields": 2, "no-submit": 1, "bad-time": 1, "bad-number": 1, "bad-gpus": 2, "negative-run": 1,
                     "run-too-long": 1},
        "remarks": {"zero-run": 1, "time-not-there": 1, "time-twice": 1, "gpu-time-differs": 1},
    }  # fmt: skip
    first = next(job for job in found.trace.jobs() if job.queue == "11cb48")
    assert (first.submit_s, first.run_s, first.gpus, first.line) == (1507557715.0, 66.0, 1, 2)  # 14:01:55 UTC
    assert math.isnan(first.start_s)


def test_philly_jobs_are_in_the_order_of_submission():
    submit_s = read_philly(numbered(PHILLY), PACIFIC).trace.submit_s.tolist()
    assert submit_s == sorted(submit_s)


def test_an_hour_that_a_change_of_the_clock_skips_or_repeats():
    found = read_philly(numbered(PHILLY), PACIFIC).trace
    at = {job.line: job.submit_s for job in found.jobs()}
    assert at[4] == 1509870730.0  # 2017-11-05 01:32:10 PDT, the first of the two: 08:32:10 UTC
    assert at[5] == 1489314600.0  # 2017-03-12 02:30 PST would be 10:30 UTC


def test_the_other_form_of_philly():
    found = read_philly(numbered("vc,gpu_num,submit_time,duration\n6214e9,4,2017-10-01 00:00:45,30\n"), PACIFIC)
    assert (found.trace[0].queue, found.trace[0].gpus, found.trace[0].run_s) == ("6214e9", 4, 30.0)


def test_another_header_is_not_philly():
    with pytest.raises(NotThisKind, match="num_gpus"):
        read_philly(numbered("a,b\n1,2\n"), PACIFIC)


PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,0,900,0
p1,6000,12288,1,460,V100M16|V100M32,BE,Succeeded,10,100,20
p2,4000,2048,0,0,,BE,Failed,10,100,12
p3,4000,2048,8,1000,,LS,Pending,20,60,
p4,4000,2048,1,1000,,LS,Pending,20,900,
p5,4000,2048,1,1000,,LS,Running,20,300,30
p6,4000,2048,2,500,,LS,Running,20,300,30
p7,4000,2048,1,0,,LS,Running,20,300,30
p8,4000,2048,1,1001,,LS,Running,20,300,30
p9,x,2048,1,1000,,LS,Running,20,300,30
p10,4000,2048,1,1000,,LS,Running,20,10,30
p11,4000,2048,1,1000,,LS,Running,,300,30
,4000,2048,1,1000,,LS,Running,20,300,30
"""


def test_pods_share_gpus_run_on_and_wait_for_ever():
    found = read_pods(numbered(PODS))
    assert adds_up(found.counts, 13)
    assert codes(found.counts) == {
        "rejected": {"no-id": 1, "no-submit": 1, "bad-number": 1, "bad-gpus": 3, "end-before-start": 1},
        "remarks": {"never-ran": 1, "still-running": 1, "still-pending": 1},
    }
    jobs = {job.id: job for job in found.trace.jobs()}
    assert (jobs["p1"].gpu_milli, jobs["p1"].flavor, jobs["p1"].run_s, jobs["p1"].state) == (
        460, "V100M16|V100M32", 80.0, "COMPLETED",
    )  # fmt: skip
    assert (jobs["p0"].censored, jobs["p0"].state, jobs["p0"].run_s) == (True, "RUNNING", 900.0)
    assert (jobs["p5"].censored, jobs["p5"].state) == (False, "CANCELLED")
    assert (jobs["p3"].state, jobs["p4"].state) == ("CANCELLED", "PENDING")
    assert (jobs["p2"].gpus, jobs["p2"].tasks, jobs["p2"].cpus, jobs["p2"].memory_gib) == (0, 1, 4.0, 2.0)


def test_shares_of_gpus_count_as_shares():
    found = read_pods(numbered(PODS))
    shares = {job.id: whole for job, whole in zip(found.trace.jobs(), found.trace.whole_gpus, strict=True)}
    assert (shares["p1"], shares["p2"], shares["p3"]) == (0.46, 0.0, 8.0)


def test_pods_without_times_are_in_their_order():
    found = read_pods(numbered("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\nb,1,1,1,1000\n"))
    assert found.trace.submit_s.tolist() == [0.0, 1.0]
    assert any("order of arrivals" in gap.consequence for gap in found.gaps)
    assert not found.dated


def test_nodes_are_no_jobs():
    found = read_nodes(numbered("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,1000,1024,-2,P100\n"))
    assert [(m.name, m.gpus, m.flavor, m.cpus, m.memory_gib) for m in found.machines] == [
        ("n0", 2, "P100", 64.0, 256.0)
    ]
    assert codes(found.counts) == {"parts": {"node": 1}, "rejected": {"bad-gpus": 1}}
    assert adds_up(found.counts, 2)


SWF = """\
; Version: 2.2
; UnixStartTime: 1000000000
; MaxProcs: 128
;
  1 0 5 100 8 -1 -1 8 3600 -1 1 1 1 -1 1 -1 -1 -1
  2 10 -1 0 -1 -1 -1 4 3600 -1 5 1 1 -1 1 -1 -1 -1
  3 20 5 100 8 -1 -1
  4 30 5 100 8 -1 2048 12 3600 2048 2 1 1 -1 1 -1 -1 -1
  5 30 -500 100 8 -1 -1 12 3600 2048 1 1 1 -1 1 -1 -1 -1
  6 30 -5 100 9 -1 -1 12 3600 1048576 0 7 2 -1 3 -1 -1 -1
  x 30 -5 100 9 -1 -1 12 3600 1048576 0 1 1 -1 1 -1 -1 -1
  8 -1 -1 100 9 -1 -1 12 3600 -1 1 1 1 -1 1 -1 -1 -1
  9 40 0 100 -7 -1 -1 -7 3600 -1 1 1 1 -1 1 -1 -1 -1
  10 50 0 -1 4 -1 -1 4 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
"""


def test_swf_in_all_its_fields():
    found = read_swf(numbered(SWF), processors_per_gpu=8)
    assert adds_up(found.counts, 10)
    assert codes(found.counts) == {
        "parts": {"partial-run": 1},
        "rejected": {"fields": 1, "no-submit": 1, "bad-number": 1, "bad-gpus": 1, "start-before-submit": 1},
        "remarks": {"clock-skew": 1, "never-ran": 1, "processors-not-gpus": 3},
    }
    jobs = {job.id: job for job in found.trace.jobs()}
    first = jobs["1"]
    assert (first.submit_s, first.start_s, first.run_s, first.limit_s) == (1e9, 1e9 + 5, 100.0, 3600.0)
    assert (first.gpus, first.cpus, first.state) == (1, 8.0, "COMPLETED")
    assert math.isnan(jobs["2"].run_s)
    assert (jobs["6"].gpus, jobs["6"].memory_gib) == (2, 9.0)
    assert (jobs["6"].user, jobs["6"].account, jobs["6"].queue) == ("7", "2", "3")
    assert math.isnan(jobs["10"].run_s)
    assert (jobs["10"].user, jobs["10"].state) == ("", "")
    assert found.header["MaxProcs"] == "128"


def test_processors_are_no_gpus_unless_it_is_said():
    found = read_swf(numbered(SWF))
    assert set(found.trace.gpus.tolist()) == {-1}
    assert any(gap.what == "GPUs" for gap in found.gaps)


def test_a_log_without_a_date_says_so():
    found = read_swf(numbered("1 0 5 100 8 -1 -1 8 3600 -1 1 1 1 -1 1 -1 -1 -1"))
    assert not found.dated
    assert any("date" in gap.what for gap in found.gaps)


def test_other_text_is_no_swf():
    with pytest.raises(NotThisKind):
        read_swf(numbered("one two three\n"))


def events(*told):
    names = ("seq", "at_s", "kind", "job", "data")
    return numbered("\n".join(json.dumps(dict(zip(names, each, strict=True))) for each in told))


def test_events_of_the_engine_become_jobs_with_their_attempts():
    found = read_events(
        events(
            (1, 99.0, "control_plane_started", None, {}),
            (2, 100.0, "submitted", "1", {"queue": "q", "gpus": 8}),
            (3, 110.0, "admitted", "1", {"gpus": 8, "nodes": ["a", "b"]}),
            (4, 170.0, "fenced", "1", {}),
            (5, 170.0, "requeued", "1", {"end": "NODE_LOST"}),
            (6, 200.0, "admitted", "1", {"gpus": 8, "nodes": ["a", "b"]}),
            (7, 230.0, "fenced", "1", {}),
            (8, 230.0, "ended", "1", {"state": "SUCCEEDED", "cause": None}),
            (9, 240.0, "submitted", "2", {"gpus": 1}),
            (10, 250.0, "cancel_requested", "2", {}),
            (11, 250.0, "ended", "2", {"state": "CANCELLED"}),
            (12, 260.0, "submitted", "3", {"gpus": 1}),
            (13, 270.0, "admitted", "3", {"gpus": 1, "nodes": ["a"]}),
            (14, 280.0, "submitted", "4", {"gpus": 1}),
            (15, 300.0, "ended", "9", {}),
        )
    )
    jobs = {job.id: job for job in found.trace.jobs()}
    one = jobs["1"]
    assert (one.start_s, one.end_s, one.run_s, one.lost_s, one.attempts) == (110.0, 230.0, 30.0, 60.0, 2)
    assert (one.gpus, one.tasks, one.gpus_per_task, one.queue, one.state) == (8, 2, 4, "q", "COMPLETED")
    assert math.isnan(jobs["2"].run_s)
    assert (jobs["3"].censored, jobs["3"].run_s, jobs["3"].state) == (True, 30.0, "RUNNING")
    assert jobs["4"].state == "PENDING"
    assert codes(found.counts)["rejected"] == {"no-base": 1}
    assert codes(found.counts)["remarks"] == {"never-ran": 1, "still-running": 1, "still-pending": 1, "requeued": 1}
    assert adds_up(found.counts, 15)


def test_events_that_are_none_are_rejected():
    found = read_events(numbered('{"seq": 1\n[1]\n{"seq": 1, "at_s": "now", "kind": "submitted", "job": "1"}\n'))
    assert codes(found.counts)["rejected"] == {"unreadable-row": 2, "bad-time": 1}
    assert adds_up(found.counts, 3)


def test_the_zone_matters():
    one, other = (read_philly(numbered(PHILLY), zone).trace.submit_s[-1] for zone in (PACIFIC, UTC))
    assert one - other == 7 * 3600.0
