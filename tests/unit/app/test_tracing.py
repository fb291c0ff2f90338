"""Files become one trace: their kind by contents, several of one kind together, and what is wrong with its place."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from builders.traces import SACCT, adds_up, codes, row, sacct_json
from clusterwright.app.trace_reading import TraceRequest, find_zone, read_trace
from clusterwright.app.tracing import (
    document_of_fit,
    fit_inspected,
    inspect_trace,
    load_fit,
    values_of_trace,
    write_lines,
)
from clusterwright.lib.errors import Interrupted, InvalidInput

REAL = Path(__file__).parents[2] / "fixtures" / "traces"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"
POD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\np,1,1,1,1000,0,9,1\n"
NODE = "sn,cpu_milli,memory_mib,gpu,model\nn,1000,1024,8,T4\n"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,a\n"
SWF = "; UnixStartTime: 1000000000\n1 0 5 100 8 -1 -1 8 3600 -1 1 1 1 -1 1 -1 -1 -1\n"


def write(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in texts]


@pytest.mark.parametrize(
    ("text", "kind"), [(POD, "openb"), (NODE, "openb-nodes"), (PHILLY, "philly"), (SWF, "swf"),
                       (f"{SACCT}\n{row('7')}\n", "slurm-sacct")],
)  # fmt: skip
def test_a_kind_is_found_by_contents(tmp_path, text, kind):
    assert read_trace(TraceRequest(write(tmp_path, x=text))).kind == kind


def test_sacct_as_a_table_and_as_json_are_read_through_the_one_reader():
    table = read_trace(TraceRequest([str(FIXTURES / "slurm-sacct" / "wide.txt")]))
    assert [job.id for job in table.trace.jobs()] == ["900", "901", "902"]
    document = read_trace(TraceRequest([str(FIXTURES / "slurm-json" / "sacct-22.05.json")]))
    assert (document.kind, len(document.trace), document.trace[0].gpus) == ("slurm-json", 1, 16)
    assert document.trace[0].limit_s == 10080 * 60.0


def test_what_a_real_slurm_recorded_of_requeues_components_and_a_job_that_never_ran():
    # Slurm 22.05.8 with slurmdbd: job 5 was requeued by hand, lost its node, and was cancelled on its third attempt;
    # 6 is heterogeneous; 2 was cancelled while it waited, for which sacct prints its end as its start.
    found = read_trace(TraceRequest([str(REAL / "sacct-22.05.txt")]))
    jobs = {job.id: job for job in found.trace.jobs()}
    assert list(jobs) == ["1", "2", "3_1", "3_2", "3_3", "5", "6", "8", "10"]
    five = jobs["5"]
    assert (five.attempts, five.run_s, five.lost_s, five.start_s - five.submit_s) == (3, 19.0, 20.0, 0.0)
    assert (five.end_s - five.submit_s, five.state, five.limit_s) == (104.0, "CANCELLED", 60.0)
    assert math.isnan(jobs["2"].start_s)
    assert math.isnan(jobs["2"].run_s)
    assert (jobs["6"].gpus, jobs["6"].tasks, jobs["6"].gpus_per_task) == (5, 2, -1)
    assert (jobs["8"].gpus, jobs["8"].limit_s) == (0, math.inf)
    assert (jobs["3_3"].submit_s, jobs["3_3"].eligible_s - jobs["3_3"].submit_s) == (jobs["3_1"].submit_s, 15.0)
    assert adds_up(found.counts, 23)
    assert codes(found.counts)["parts"] == {"step": 11, "attempt": 2, "component": 1}
    assert "rejected" not in codes(found.counts)


def test_the_same_jobs_as_json_are_the_same_but_for_a_missing_limit():
    table = read_trace(TraceRequest([str(REAL / "sacct-22.05.txt")]))
    document = read_trace(TraceRequest([str(REAL / "sacct-22.05.json")]))
    jobs = {job.id: job._replace(line=0) for job in table.trace.jobs()}
    for job in document.trace.jobs():
        expected = jobs.pop(job.id)
        if job.id == "8":  # the JSON of 22.05 has null for no limit and for an unknown one
            assert math.isnan(job.limit_s)
            expected = expected._replace(limit_s=math.nan)
        assert repr(job) == repr(expected)
    assert not jobs


def test_a_table_without_submit_times_rejects_every_row_by_name():
    found = read_trace(TraceRequest([str(FIXTURES / "slurm-sacct" / "default-22.05.txt")]))
    assert set(codes(found.counts)["rejected"]) == {"no-submit", "no-base"}
    assert not len(found.trace)
    assert [gap.remedy for gap in found.gaps] == ["sacct --format=…,Submit"]


def test_json_in_small_pieces_is_the_same_trace():
    text = (FIXTURES / "slurm-json" / "sacct-22.05.json").read_text(encoding="utf-8")
    one, other = (sacct_json(text, piece).trace[0] for piece in (3, 100_000))
    assert repr(one) == repr(other)  # NaN is not equal to itself


def test_a_job_without_an_id_is_rejected_by_name():
    found = sacct_json('{"jobs": [{"job_id": null, "time": {"submission": 1740000000}}]}')
    assert codes(found.counts) == {"rejected": {"no-id": 1}}


def test_months_of_accounting_are_one_trace_with_jobs_that_ran_across_their_border(tmp_path):
    running = row("7", State="RUNNING", End="Unknown", ElapsedRaw="60")
    files = write(tmp_path, april=f"{SACCT}\n{running}\n", may=f"{SACCT}\n{row('7')}\n{row('8')}\n")
    found = read_trace(TraceRequest(files))
    assert len(found.trace) == 2
    assert codes(found.counts)["parts"] == {"update": 1}


def test_pods_and_nodes_belong_together(tmp_path):
    found = read_trace(TraceRequest(write(tmp_path, nodes=NODE, pods=POD)))
    assert (found.kind, len(found.trace), found.machines[0].gpus) == ("openb", 1, 8)


def test_files_of_different_kinds_are_refused_by_name(tmp_path):
    with pytest.raises(InvalidInput, match=r"not of one kind: .*a is philly; .*b is swf"):
        read_trace(TraceRequest(write(tmp_path, a=PHILLY, b=SWF)))


def test_unknown_text_is_refused_with_the_kinds(tmp_path):
    with pytest.raises(InvalidInput, match=r"no trace of a known kind.*slurm-sacct.*swf.*--map"):
        read_trace(TraceRequest(write(tmp_path, a="hello\nworld\n")))


@pytest.mark.parametrize(
    ("request_of", "said"),
    [
        ({"kind": "philli"}, "did you mean 'philly'"), ({"kind": "csv"}, "needs --map"),
        ({"kind": "openb"}, "is not openb"),
        ({"zone": "Mars/Olympus"}, "no time zone"), ({"processors_per_gpu": -1}, "must be 1 or more"),
    ],
)  # fmt: skip
def test_what_is_asked_for_wrongly_is_refused(tmp_path, request_of, said):
    with pytest.raises(InvalidInput, match=said):
        read_trace(TraceRequest(write(tmp_path, a=PHILLY), **request_of))


def test_an_archive_and_an_empty_file_are_refused(tmp_path):
    (tmp_path / "log.gz").write_bytes(b"\x1f\x8b\x08rest")
    with pytest.raises(InvalidInput, match="gzip"):
        read_trace(TraceRequest([str(tmp_path / "log.gz")]))
    with pytest.raises(InvalidInput, match="is empty"):
        read_trace(TraceRequest(write(tmp_path, none=" \n")))


def test_json_that_is_cut_is_refused_with_its_file(tmp_path):
    with pytest.raises(InvalidInput, match=r"cut\.json: the list of jobs ends in the middle"):
        read_trace(TraceRequest(write(tmp_path, **{"cut.json": '{"meta": {"plugin": {}}, "jobs": [{"job_id": 1'})))


def test_local_times_are_in_the_zone_that_is_given(tmp_path):
    files = write(tmp_path, jobs=f"{SACCT}\n{row('7')}\n")
    utc, berlin = (read_trace(TraceRequest(files, zone=zone)).trace[0].submit_s for zone in ("", "Europe/Berlin"))
    assert utc - berlin == 3600.0


def test_a_zone_that_does_not_exist_is_answered_with_the_nearest():
    with pytest.raises(InvalidInput, match="did you mean 'Europe/Berlin'"):
        find_zone("Europe/Berlinn")


def test_progress_reaches_the_size_of_all_files(tmp_path):
    told = []
    files = write(tmp_path, a=PHILLY, b=PHILLY)
    read_trace(TraceRequest(files), lambda *each: told.append(each))
    size = 2 * len(PHILLY)
    assert told == [(size // 2, size, files[0]), (size, size, files[1])]


def test_a_trace_as_values_is_json_without_nan():
    inspected = inspect_trace(TraceRequest([str(FIXTURES / "slurm-sacct" / "wide.txt")]))
    values = json.loads(json.dumps(values_of_trace(inspected), allow_nan=False))
    assert values["rows"] == {"all": 7, "jobs": 3, "parts": 2, "rejected": 2}
    assert values["rejected"][0]["samples"][0]["line"] == 8
    assert {gap["what"] for gap in values["not_recorded"]} == {"time limits", "when jobs became eligible"}


def test_a_fit_is_written_and_loaded(tmp_path):
    rows = "".join(f"2017-10-{1 + k % 28:02} 07:{k % 60:02}:00,{10 + k},{1 + k % 2},0,a\n" for k in range(400))
    (path,) = write(tmp_path, trace="timestamp,duration,num_gpus,gpu_time,cluster\n" + rows)
    fit = fit_inspected(inspect_trace(TraceRequest([path])))
    (document,) = write(tmp_path, fit=document_of_fit(fit))
    assert load_fit(document) == fit
    assert fit.zone == "America/Los_Angeles"
    with pytest.raises(InvalidInput, match="is a fit, not a trace"):
        read_trace(TraceRequest([document]))


def test_a_file_is_left_as_it_was_when_writing_is_stopped(tmp_path):
    def stopped():
        yield "first"
        raise Interrupted("stopped by SIGINT")

    path = tmp_path / "out"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(Interrupted):
        write_lines(path, stopped(), force=True)
    assert path.read_text(encoding="utf-8") == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
