"""ior, mdtest, IO500, elbencho, gdsio, gdscheck: tables by their headers, phases not run, what proves nothing."""

from __future__ import annotations

from pathlib import Path

from builders.corpus import found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Transcript, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"


def text_of(name: str) -> str:
    return (FIXTURES / name).read_text()


def read(text: str, kind: str) -> Transcript:
    transcript = read_output([text.encode()])
    assert transcript.kind == kind, transcript.refusal
    return transcript


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def amount(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [round(v.to(unit), 6) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def test_ior_rows_are_read_per_iteration_and_a_torn_row_is_none() -> None:
    (run,) = read(text_of("ior/two-tests.txt"), "ior").runs
    assert amount(run, "write_rate", "MiB/s") == [20480, 21504]
    assert amount(run, "read_rate", "MiB/s") == [24576]
    assert run.rejected == 1
    assert amount(run, "write_rate_max", "MiB/s") == [21504]
    assert amount(run, "remove_total_time", "s") == [0.5]
    assert str(run.condition("block_size")) == "4 MiB"
    assert "file-system-full" in codes(run)
    assert "read-back" not in codes(run)


def test_ior_that_reads_back_its_own_data_is_named() -> None:
    (run,) = read(text_of("ior/two-tests.txt").replace("constant task offset", "no tasks offsets"), "ior").runs
    assert "read-back" in codes(run)


def test_ior_without_summary_and_end_is_incomplete() -> None:
    transcript = read(text_of("ior/two-tests.txt").split("Max Write")[0], "ior")
    assert transcript.outcome is Outcome.PARTLY
    assert transcript.runs[0].missing == ("the summary", "the line Finished")


def test_ior_stopped_by_the_clock_says_how_much_it_moved() -> None:
    extra = (
        "stonewalling pairs accessed min: 7 max: 9 -- min data: 1.0 GiB mean data: 1.2 GiB time: 60.1s\n"
        "WARNING: Expected aggregate file size       = 1000000\nWARNING: Using actual aggregate bytes moved = 400000\n"
    )
    (run,) = read(text_of("ior/two-tests.txt").replace("write     20480", extra + "write     20480"), "ior").runs
    (notice,) = [n for n in run.notices if n.code == "stonewall"]
    assert notice.weight is Weight.INFO
    assert "400,000" in notice.message


def test_ior_sizes_that_differ_without_a_clock_are_a_warning() -> None:
    extra = "WARNING: Expected aggregate file size = 1000\nWARNING: Using actual aggregate bytes moved = 400\n"
    extra += "write     20480"
    (run,) = read(text_of("ior/two-tests.txt").replace("write     20480", extra), "ior").runs
    assert "size-differs" in codes(run)


def test_ior_2_is_refused_by_name() -> None:
    transcript = read_output([text_of("ior/two-tests.txt").replace("IOR-4.0.0", "IOR-2.10.3").encode()])
    assert transcript.refusal is not None
    assert "IOR-2.10.3" in transcript.refusal.found


def test_ior_json_keys_carry_the_unit() -> None:
    (run,) = read(text_of("ior/summary.json"), "ior").runs
    assert amount(run, "write_rate", "MiB/s") == [9000.5]
    assert amount(run, "read_latency_mean", "s") == [0.0013]
    assert amount(run, "write_rate_max", "MiB/s") == [9000.5]
    assert found(run, "read_rate")[0].subject == (("operation", "read"), ("iteration", "0"))


def test_mdtest_zeros_are_phases_that_did_not_run() -> None:
    (run,) = read(text_of("mdtest/three-iterations.txt"), "mdtest").runs
    assert amount(run, "file_creation", "op/s") == [8000.5]
    assert amount(run, "file_creation_min", "op/s") == [7000.5]
    (value,) = values(run, "file_stat")
    assert isinstance(value, NoValue)
    assert value.lack is Lack.ABSENT


def test_mdtest_times_are_seconds_whatever_the_title_says() -> None:
    (run,) = read(text_of("mdtest/three-iterations.txt"), "mdtest").runs
    assert amount(run, "file_creation_time", "s") == [2]


def test_mdtest_rows_with_too_few_cells_are_rejected() -> None:
    (run,) = read(text_of("mdtest/three-iterations.txt"), "mdtest").runs
    assert run.rejected == 1
    assert values(run, "tree_removal") == []


def test_mdtest_colons_na_and_transport_errors() -> None:
    text = (
        "mdtest-3.3.0 was launched with 8 total task(s) on 2 node(s)\n"
        "FS: 94.9 TiB   Used FS: 29.9%   Inodes: 1.0 Mi   Used Inodes: 100.0%\n"
        "[1594706731.93] [n1:1:1]  sock.c:344  UCX  ERROR recv(fd=55) failed: Connection reset by peer\n"
        "SUMMARY rate: (of 1 iterations)\n"
        "   Operation                      Max            Min           Mean        Std Dev\n"
        "   File create (stonewall)   :             NA             NA       4000.500             NA\n"
    )
    (run,) = read(text, "mdtest").runs
    assert amount(run, "file_create_stonewall", "op/s") == [4000.5]
    assert isinstance(values(run, "file_create_stonewall_max")[0], NoValue)
    assert {"transport-errors", "out-of-inodes"} <= codes(run)
    assert run.missing == ("the line that it finished",)


def test_io500_keeps_the_score_apart_from_the_stonewall_figure() -> None:
    (run,) = read(text_of("io500/result.txt"), "io500").runs
    assert amount(run, "write_rate", "GiB/s", phase="ior-easy-write") == [58.25]
    assert amount(run, "write_rate_stonewall", "GiB/s", phase="ior-easy-write") == [61.5]
    assert amount(run, "metadata_rate", "kIOPS") == [45.5]
    assert values(run, "io500_score") == [22.703524]
    assert "phase-too-short" in codes(run)


def test_io500_summaries_are_read_and_missing_phases_named() -> None:
    text = (
        "[RESULT]       ior-easy-write       50.500000 GiB/s : time 300.500 seconds\n"
        "[SCORE ] Bandwidth 10.5 GiB/s : IOPS 20.5 kiops : TOTAL 14.6 [INVALID]\n"
    )
    (run,) = read(text, "io500").runs
    assert amount(run, "write_rate", "GiB/s") == [50.5]
    assert "invalid" in codes(run)
    assert len(run.missing) == 3


def test_elbencho_counts_the_slowest_worker() -> None:
    (run,) = read(text_of("elbencho/table.txt"), "elbencho").runs
    assert amount(run, "write_rate", "MiB/s") == [4160]
    assert amount(run, "write_rate_first", "MiB/s") == [4400]
    assert amount(run, "write_elapsed", "s") == [61.5]
    assert amount(run, "read_elapsed", "s") == [41]
    assert amount(run, "write_latency_p99", "µs") == [40000]
    assert amount(run, "write_latency_mean", "ms") == [15.2]
    assert run.condition("direct") is True


def test_elbencho_tables_of_a_sweep_are_runs_and_small_files_are_named() -> None:
    table = (
        "Working on /lake/1000x1KiB with 8 threads...\n"
        "OPERATION RESULT TYPE        FIRST DONE  LAST DONE\n========= ================   ==========  =========\n"
        "MKDIRS    Elapsed ms       :          0          2\n          Dirs/s           :       1000       900\n---\n"
        "WRITE     Elapsed ms       :       1000       1100\n          Files/s          :        950       900\n"
        "          Throughput MiB/s :          0          0\n          Total files      :        950       1000\n"
        "          Total MiB        :          0          1\n---\n"
    )
    one, two = read(table + table, "elbencho").runs
    assert amount(one, "write_files_rate", "op/s") == [900]
    assert "small-files" in codes(two)


def test_elbencho_rows_with_one_value_are_rejected() -> None:
    (run,) = read(text_of("elbencho/table.txt").replace("1100        1040", "1100"), "elbencho").runs
    assert run.rejected == 1
    assert values(run, "write_iops") == []


def test_elbencho_csv_is_read_by_its_header() -> None:
    write, second = read(text_of("elbencho/results.csv"), "elbencho").runs
    assert write.version == "3.0-20"
    assert amount(write, "write_rate", "MiB/s") == [4160]
    assert amount(write, "write_latency_mean", "µs") == [15200]
    assert amount(second, "read_iops", "IOPS") == [1560]
    cut = text_of("elbencho/results.csv")[:-40]
    assert read(cut, "elbencho").outcome is Outcome.PARTLY


def test_elbencho_json_is_read_by_its_keys() -> None:
    (run,) = read(text_of("elbencho/phases.jsonl"), "elbencho").runs
    assert amount(run, "write_rate", "B/s") == [4194304000]
    assert amount(run, "write_rate_first", "B/s") == [4404019200]
    assert amount(run, "write_latency_mean", "µs") == [15200]
    assert values(run, "write_entries") == [32]
    assert "io-errors" in codes(run)


def test_gdsio_lines_are_runs_with_the_unit_beside_the_number() -> None:
    direct, copied = read(text_of("gdsio/three-paths.txt"), "gdsio").runs
    assert amount(direct, "write_rate", "GiB/s", transfer="GPUD") == [9.1]
    assert amount(copied, "write_latency_mean", "µs") == [1860]
    assert "no-gain" not in codes(direct)


def test_gdsio_without_gain_over_the_host_is_named() -> None:
    direct, _ = read(text_of("gdsio/three-paths.txt").replace("4.200000", "8.900000"), "gdsio").runs
    assert "no-gain" in codes(direct)


def test_gdsio_short_runs_markup_and_units() -> None:
    row = (
        "IoType: READ XferType: GPU_BATCH Threads: 1 IoDepth: 64 DataSetSize: **2048/4096(**KiB) IOSize: 4(KiB) "
        "Throughput: 0.5 GiB/sec, Avg_Latency: 700.0 usecs ops: 257 total_time 0.0015 secs\n"
    )
    (run,) = read(row, "gdsio").runs
    assert {"short-run", "markup", "not-all-moved"} <= codes(run)
    (run,) = read(row.replace("GiB/sec", "units/sec"), "gdsio").runs
    assert isinstance(values(run, "read_rate")[0], NoValue)


def test_gdsio_command_without_a_result_is_incomplete() -> None:
    transcript = read(text_of("gdsio/three-paths.txt") + "$ gdsio -f /lake/gds -x 1\ncuFileRead failed\n", "gdsio")
    assert transcript.outcome is Outcome.PARTLY
    assert "tool-error" in codes(transcript.runs[-1])


def test_gdscheck_says_whether_a_copy_may_stand_in() -> None:
    (run,) = read(text_of("gdscheck/no-compat.txt"), "gdscheck").runs
    assert values(run, "compat_mode") == [False]
    assert "compat-mode-allowed" not in codes(run)
    assert run.complete
    assert values(run, "gds_supported", gpu="0") == [True]
    allowed = text_of("gdscheck/no-compat.txt").replace("use_compat_mode : false", "use_compat_mode : true")
    (run,) = read(allowed, "gdscheck").runs
    assert "compat-mode-allowed" in codes(run)
    forced = text_of("gdscheck/no-compat.txt").replace("force_compat_mode : false", "force_compat_mode : true")
    assert "compat-mode-forced" in codes(read(forced, "gdscheck").runs[0])
