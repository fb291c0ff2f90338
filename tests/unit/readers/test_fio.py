"""fio: units by version, several jobs and runs, errors, syncs, what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "fio"
VERSION_3 = (FIXTURES / "version-3.txt").read_text()
VERSION_2 = (FIXTURES / "version-2.txt").read_text()
JSON_2 = (FIXTURES / "version-2.json").read_text()
JSON_3 = (FIXTURES / "version-3.json").read_text()


def runs(text: str) -> tuple[Run, ...]:
    transcript = read_output([text.encode()])
    assert transcript.kind == "fio", transcript.refusal
    return transcript.runs


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def amount(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [round(v.to(unit), 6) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def test_version_2_counts_latency_in_microseconds_and_rates_in_kib() -> None:
    (run,) = runs(JSON_2)
    assert run.version == "2.21"
    assert amount(run, "read_rate", "KiB/s", job="cold") == [682666]
    assert amount(run, "read_latency_p99", "µs", job="cold") == [2050]
    assert amount(run, "read_iops", "IOPS", job="cold") == [5333.33]


def test_version_3_counts_latency_in_nanoseconds() -> None:
    (run,) = runs(JSON_3)
    assert run.version == "3.33"
    mean = amount(run, "read_latency_mean", "ns", job="load")
    assert mean == [9946.023437]
    assert amount(run, "read_rate", "B/s", job="load") == [1398101333]


def test_the_same_key_means_microseconds_or_nothing_by_the_version() -> None:
    (run,) = runs(JSON_2.replace("fio-2.21", "fio-3.1"))
    (value,) = values(run, "read_latency_mean", job="cold")
    assert isinstance(value, NoValue)
    assert value.lack is Lack.UNREADABLE


@pytest.mark.parametrize("version", ["fio-4.0", "fio-1.59", "fio-x"])
def test_an_unknown_version_is_refused_by_name(version) -> None:
    transcript = read_output([JSON_2.replace("fio-2.21", version).encode()])
    assert transcript.refusal is not None
    assert version in transcript.refusal.found


def test_directions_without_data_are_absent_and_jobs_are_never_added_up() -> None:
    (run,) = runs(JSON_2)
    assert values(run, "write_rate", job="cold") == []
    assert len(values(run, "read_rate")) == 1


def test_an_error_of_a_job_is_named() -> None:
    (run,) = runs(JSON_2)
    (notice,) = [n for n in run.notices if n.code == "job-failed"]
    assert notice.weight is Weight.ERROR
    assert "no space left" in notice.message


def test_a_rate_that_contradicts_bytes_and_time_is_unreadable() -> None:
    (run,) = runs(JSON_2.replace('"bw" : 682666', '"bw" : 699050'))
    assert "rate-disagrees" in codes(run)
    (value,) = values(run, "read_rate", job="cold")
    assert isinstance(value, NoValue)


def test_a_write_that_is_synced_is_as_slow_as_its_sync() -> None:
    for text in (VERSION_3, JSON_3):
        (run,) = runs(text)
        assert {o.subject[-1] for o in found(run, "write_latency_p99")} == {("measure", "sync")}
        assert values(run, "write_completion_p99")
        assert "sync-latency" in codes(run)
    (run,) = runs(VERSION_3)
    assert amount(run, "write_latency_p99", "µs") == [11469]
    assert amount(run, "write_completion_p99", "ns") == [45824]


def test_memory_and_short_runs_are_said() -> None:
    (run,) = runs(VERSION_3)
    assert {"short-run", "page-cache"} <= codes(run)
    assert "buffered-io" in codes(runs(JSON_3)[0])


def test_kb_of_version_2_is_kib_and_percentiles_keep_their_unit() -> None:
    (run,) = runs(VERSION_2)
    assert amount(run, "write_rate", "KiB/s") == [153600]
    assert amount(run, "write_latency_p99", "ms") == [24]
    assert amount(run, "write_latency_mean", "µs") == [6600.5]
    assert amount(run, "write_rate_total", "KiB/s") == [153600]


def test_suffixes_of_version_3_count_thousands() -> None:
    (run,) = runs(VERSION_3)
    assert amount(run, "read_iops", "IOPS") == [36600]
    assert amount(run, "read_latency_max", "ns") == [3619800]
    assert amount(run, "read_rate", "MiB/s") == [571]


def test_several_runs_of_one_file_are_compared() -> None:
    slow = VERSION_2.replace("iops=19200", "iops=5000")
    found_runs = runs(slow + VERSION_2 + VERSION_2)
    assert len(found_runs) == 3
    assert all("runs-differ" in codes(run) for run in found_runs)
    (notice,) = [n for n in found_runs[0].notices if n.code == "outlier-run"]
    assert notice.message.startswith("run 1 ")


def test_equal_runs_are_not_called_different() -> None:
    assert not any("runs-differ" in codes(run) for run in runs(VERSION_2 + VERSION_2))


def test_progress_lines_are_no_result() -> None:
    text = (
        "w: (g=0): rw=write, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=1\nfio-3.1\nStarting 1 process\n"
        "Jobs: 1 (f=1): [W(1)][10.3%][r=0KiB/s,w=40.3MiB/s][r=0,w=10.3k IOPS][eta 01m:44s"
        "Jobs: 1 (f=1): [W(1)][11.1%][r=0KiB/s,w=32.4MiB/s][r=0,w=8288 IOPS][eta 01m:44s]"
    )
    transcript = read_output([text.encode()])
    assert transcript.outcome is Outcome.PARTLY
    assert transcript.runs[0].observations == ()
    assert "no-result" in codes(transcript.runs[0])


def test_a_result_glued_to_a_progress_line_is_read() -> None:
    glued = VERSION_2.replace("\nchurn: (groupid", "\nJobs: 4 (f=4): [w(4)][100%][eta 00m:00s]churn: (groupid")
    (run,) = runs(glued)
    assert amount(run, "write_iops", "IOPS", job="churn") == [19200]


def test_results_without_a_version_are_refused() -> None:
    transcript = read_output([VERSION_2.replace("fio-2.16\n", "").encode()], kind="fio")
    assert transcript.refusal is not None
    assert "version" in transcript.refusal.reason


def test_a_cut_run_misses_its_status() -> None:
    (run,) = runs(VERSION_2.split("Run status")[0])
    assert run.missing == ("the run status at the end",)


def test_an_error_in_the_text_form_keeps_its_words() -> None:
    failed = VERSION_2.replace(
        "err= 0: pid", "err=28 (file:io_u.c:1876, func=io_u error, error=No space left on device): pid"
    )
    (run,) = runs(failed)
    (notice,) = [n for n in run.notices if n.code == "job-failed"]
    assert "No space left on device" in notice.message


def test_a_job_that_failed_before_it_began_has_no_result() -> None:
    text = (
        "e: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\n"
        "fio-3.33\nStarting 1 process\n"
        "fio: pid=1, err=2/file:filesetup.c:805, func=open(/x), error=No such file or directory\n\n\n"
        "Run status group 0 (all jobs):\n"
    )
    (run,) = runs(text)
    assert {"tool-error", "no-result"} <= codes(run)
    assert run.missing


def test_terse_output_is_read_by_its_version_and_its_percentile_fields() -> None:
    text = (FIXTURES / "terse.txt").read_text()
    (run,) = runs(text)
    assert amount(run, "read_rate", "KiB/s")[0] == 67147
    assert amount(run, "read_latency_p99", "µs")[0] == 1073
    assert len(values(run, "read_iops")) == 2


def test_terse_rows_that_are_torn_or_shifted_are_no_rows() -> None:
    row = (FIXTURES / "terse.txt").read_text().split("\n")[0]
    shifted = row.replace(";4096;", ";4096;0;", 1)
    (run,) = runs("\n".join([row, row[:200], shifted]))
    assert len(values(run, "read_rate")) == 1
    assert run.rejected == 2


def test_an_unknown_terse_format_is_refused() -> None:
    transcript = read_output([b"9;fio-3.33;x;0;0;1;2;3\n"])
    assert transcript.refusal is not None
    assert transcript.refusal.found == "9"


def test_warnings_before_json_and_several_documents_are_read() -> None:
    text = "note: both iodepth >= 1 and synchronous I/O engine are selected\n" + JSON_2 + JSON_3
    assert [run.version for run in runs(text)] == ["2.21", "3.33"]


def test_a_cut_document_is_refused_with_its_place() -> None:
    transcript = read_output([JSON_2[:900].encode()])
    assert transcript.refusal is not None
    assert "ends in the middle" in transcript.refusal.reason


def test_clones_without_group_reporting_are_named() -> None:
    twin = JSON_2.replace('"jobname" : "full",\n      "groupid" : 1', '"jobname" : "cold",\n      "groupid" : 0')
    (run,) = runs(twin)
    assert "jobs-not-grouped" in codes(run)
    assert {dict(o.subject).get("instance") for o in found(run, "write_rate")} == {"1"}
