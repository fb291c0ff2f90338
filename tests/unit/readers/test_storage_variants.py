"""Storage benchmarks as people paste them: live statistics, cut ends, summaries alone, results without a version."""

import pytest

from clusterwright.model.observations import NoValue, Run
from clusterwright.readers.reading import read_output

LIVE = "ISO Date,Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes,MiB/s,IOPS,Entries,Entries/s,Active,CPU,Service,"
TABLE = (
    "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n=========== ================    ==========   =========\n"
)


def read(text: str, kind: str) -> list[Run]:
    transcript = read_output([text.encode()], name="pasted.txt")
    assert transcript.refusal is None, transcript.refusal
    assert transcript.kind == kind
    return list(transcript.runs)


def value(run: Run, name: str) -> object:
    return next(o.value for o in run.observations if o.name == name)


def test_reads_live_statistics_of_elbencho_as_samples_and_not_as_a_result():
    (run,) = read(f"{LIVE}\n2026-01-01T00:00:01,,READ,1000,Total,,10,1048576000,1000,2000,0,0,4,9,,\n"
                  "2026-01-01T00:00:01,,READ,1000,0,,10,262144000,,,0,,,,,\n"
                  "2026-01-01T00:00:02,,READ,2000,Total,,30,3145728000,2000,4000,0,0,4,9,,\n", "elbencho")  # fmt: skip
    assert str(value(run, "read_live_rate_mean")) == "1500 MiB/s"
    assert value(run, "read_live_samples") == 2.0
    assert not run.complete
    assert "read_rate" not in {o.name for o in run.observations}


def test_a_phase_that_was_asked_for_and_did_not_come_is_missing():
    (run,) = read(f'COMMAND LINE: "elbencho" "-w" "-r" "-t" "2" "/mnt/x"\n\n{TABLE}'
                  "WRITE       Elapsed time     :      2.000s      2.100s\n"
                  "            Throughput MiB/s :         100          90\n"
                  "            Objects total    :           4           5\n---\n", "elbencho")  # fmt: skip
    assert run.missing == ("the phase READ, which the command line asks for",)
    assert value(run, "write_objects") == 5.0
    assert not run.rejected


def test_reads_a_table_of_elbencho_behind_the_prefix_of_a_log():
    (run,) = read(f"09:32:25 - DEBUG - ssh [h1] stdout: {TABLE}READ        Elapsed time     :      1.0s      2.0s\n"
                  "            Throughput MiB/s :         200         150\n---\n", "elbencho")  # fmt: skip
    assert str(value(run, "read_rate")) == "150 MiB/s"


def test_reads_the_summary_of_ior_alone():
    (run,) = read("Operation Max(MiB) Min(MiB) Mean(MiB) StdDev #Tasks tPN reps blksiz xsize aggs(MiB) API RefNum\n"
                  "17: write 500.0 400.0 450.0 50.0 8 4 2 4096 1024 32.0 POSIX 0\n", "ior")  # fmt: skip
    assert str(value(run, "write_rate_mean")) == "450 MiB/s"
    assert dict(run.conditions)["ranks"] == "8"
    assert not run.complete


def test_reads_the_csv_of_ior_and_asks_for_no_end():
    (run,) = read("access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),total(s),numTasks,iter\n"
                  "write,10.5,10.6,0.08,1024,64,1.7,4,0\n", "ior")  # fmt: skip
    assert str(value(run, "write_rate")) == "10.5 MiB/s"
    assert run.complete
    assert "read-back" not in {n.code for n in run.notices}


def test_rows_of_ior_without_a_header_are_counted_and_not_read():
    (run,) = read(
        "write 25110 2097152 4.00 0.012 3.91 0.5 3.91 1\n\nMax Write: 25154.87 MiB/sec (26376.80 MB/sec)\n", "ior"
    )
    assert run.rejected == 1
    assert str(value(run, "write_rate_max")) == "25154.87 MiB/s"


def fio_job(name: str = "j") -> str:
    return (f"{name}: (groupid=0, jobs=1): err= 0: pid=1: Mon Jan  5 10:00:00 2026\n"
            "  read: IOPS=100, BW=50.0MiB/s (52.4MB/s)(3000MiB/60000msec)\n")  # fmt: skip


STATUS = "\nRun status group 0 (all jobs):\n   READ: bw=50.0MiB/s (52.4MB/s), 50.0MiB/s-50.0MiB/s (52.4MB/s-52.4MB/s)\n"


def test_reads_results_of_fio_that_name_their_units_without_the_version():
    (run,) = read(fio_job() + STATUS, "fio")
    assert str(value(run, "read_rate")) == "50 MiB/s"
    assert run.missing == ("the line with the version of fio",)


def test_refuses_results_of_fio_whose_units_only_the_version_tells():
    text = "j: (groupid=0, jobs=1): err= 0: pid=1: x\n  read : io=4KB, bw=100KB/s, iops=25, runt= 4msec\n"
    assert read_output([text.encode()], kind="fio").refusal is not None


def test_says_how_many_jobs_of_fio_have_no_result():
    definition = "j: (g=0): rw=read, bs=4096B-4096B,4096B-4096B,4096B-4096B, ioengine=libaio, iodepth=4\n...\n"
    (run,) = read(f"$ fio --direct=1 --name=j\n{definition}fio-3.36\nStarting 4 processes\n{fio_job()}{STATUS}", "fio")
    assert run.missing == ("results of 3 of 4 jobs",)
    assert dict(run.conditions)["direct"] is True


def test_a_definition_after_the_run_status_begins_another_run_of_fio():
    definition = "k: (g=0): rw=read, bs=4096B-4096B,4096B-4096B,4096B-4096B, ioengine=libaio, iodepth=4\n"
    first, second = read(f"{STATUS}{definition}fio-3.36\nStarting 1 process\n{fio_job('k')}{STATUS}", "fio")
    assert not first.complete
    assert second.version == "3.36"
    assert second.complete


@pytest.mark.parametrize("unit", ["KB", "MB"])
def test_an_amount_whose_base_is_not_known_is_unreadable(unit):
    (run,) = read(fio_job() + f"  write: IOPS=1, BW=5{unit}/s (5.1kB/s)(1MiB/60000msec)\n" + STATUS, "fio")
    assert isinstance(value(run, "write_rate"), NoValue)


def test_takes_the_version_of_fio_from_what_its_servers_say():
    text = f"hostname=h1, be=0, 64-bit, os=Linux, arch=x86-64, fio=fio-3.35, flags=1\n<h1> {fio_job()}{STATUS}"
    (run,) = read(text, "fio")
    assert run.version == "3.35"
    assert run.complete
