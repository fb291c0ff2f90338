"""nccl-tests in the layouts of its versions, whole, torn, cut, elided and edited by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Transcript, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "nccl-tests"
HEADER = (
    "#       size         count      type   redop    root     time   algbw   busbw #wrong"
    "     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
)
ROW = "   268435456      67108864     float     sum      -1  4473.92   60.00  90.00       0" + (
    "  4473.92   60.00   90.00       0\n"
)
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 90\n#\n"


def read(text: str) -> Transcript:
    return read_output([text.encode()])


def only_run(text: str) -> Run:
    transcript = read(text)
    assert transcript.refusal is None, str(transcript.refusal)
    assert transcript.kind == "nccl-tests"
    (run,) = transcript.runs
    return run


def fixture(name: str) -> Transcript:
    return read_output([(FIXTURES / name).read_bytes()], name=name)


def numbers(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    found = [o for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]
    return [round(o.value.to(unit), 4) for o in found if isinstance(o.value, Quantity)]


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def test_a_whole_run_is_read_with_its_conditions():
    transcript = fixture("two-nodes-all-reduce.log")
    (run,) = transcript.runs
    assert transcript.outcome is Outcome.READ
    assert (run.tool, run.version) == ("all_reduce_perf", "2.17.6")
    assert run.condition("operation") == "all-reduce"
    assert run.condition("ranks") == 4
    assert run.condition("nodes") == "node-a,node-b"
    assert run.condition("node_count") == 2
    assert run.condition("gpu") == "NVIDIA H100 80GB HBM3"
    assert (run.condition("nccl"), run.condition("cuda")) == ("2.28.7", "12.9")
    assert (run.condition("validation"), run.condition("correctness")) == (True, "right")
    assert numbers(run, "busbw", "GB/s", size="2147483648") == [99.0, 100.5]
    assert numbers(run, "time", "µs", size="268435456", place="in") == [4400.58]
    assert [o.value for o in run.observations if o.name == "wrong"] == [0.0] * 8


def test_each_gpu_is_an_observation_with_its_address_in_one_form():
    (run,) = fixture("two-nodes-all-reduce.log").runs
    gpus = [dict(o.subject) for o in run.observations if o.name == "gpu"]
    assert gpus[3] == {"node": "node-b", "index": "1", "rank": "3", "pci": "0000:43:00.0"}


def test_two_tagged_runs_in_one_file_stay_apart():
    transcript = fixture("two-runs-old-header.log")
    first, second = transcript.runs
    assert dict(transcript.cleaned)["launcher tags"] == 23
    assert (first.condition("operation"), first.complete) == ("all-to-all", True)
    assert second.condition("operation") == "reduce"
    assert "sizes above 1,048,576 B; the run goes to 4,194,304 B" in second.missing
    assert second.rejected == 1


def test_a_blank_reduction_column_does_not_shift_the_others():
    first = fixture("two-runs-old-header.log").runs[0]
    assert numbers(first, "busbw", "GB/s", size="1048576") == [10.0, 10.0]
    assert numbers(first, "time", "µs", size="1048576") == [52.43, 52.43]


def test_results_that_were_not_compared_are_unknown_and_not_zero():
    first = fixture("two-runs-old-header.log").runs[0]
    wrong = [o.value for o in first.observations if o.name == "wrong"]
    assert wrong == [NoValue(Lack.ABSENT, "N/A")] * 4
    assert (first.condition("validation"), first.condition("correctness")) == (False, "unknown")
    assert first.condition("out_of_bounds") == NoValue(Lack.ABSENT, "0", "nothing was compared")
    assert "validation-off" in codes(first)


def test_an_old_deviation_is_no_count_of_wrong_values():
    second = fixture("two-runs-old-header.log").runs[1]
    assert [o.value for o in second.observations if o.name == "max_error"] == [2e-07, 1e-07]
    assert not [o for o in second.observations if o.name == "wrong"]
    assert second.condition("correctness") == "right in the rows shown"


def test_an_old_deviation_above_what_the_type_allows_is_an_error():
    old = HEADER.replace("#wrong", " error")
    run = only_run(
        old + ROW.replace("90.00       0\n", "90.00  3e-02\n").replace("       0  4473", "  2e-07  4473") + FOOTER
    )
    assert codes(run)["wrong-values"] is Weight.ERROR


def test_rows_of_size_zero_are_dropped_and_said():
    first = fixture("two-runs-old-header.log").runs[0]
    assert not [o for o in first.observations if dict(o.subject).get("size") == "0"]
    assert "size-zero-rows" in codes(first)


def test_wrong_values_are_an_error_with_their_size():
    run = only_run(HEADER + ROW.replace("90.00       0", "90.00    1234", 1) + FOOTER)
    notice = next(n for n in run.notices if n.code == "wrong-values")
    assert notice.weight is Weight.ERROR
    assert "268,435,456 B: 1,234 wrong elements" in notice.message
    assert run.condition("correctness") == "wrong"


def test_the_header_without_its_hash_names_the_same_column():
    run = only_run(
        HEADER.replace("#", " ") + ROW.replace("90.00       0", "90.00      77", 1) + FOOTER.replace("#", " ")
    )
    assert run.condition("correctness") == "wrong"
    assert 77.0 in [o.value for o in run.observations if o.name == "wrong"]


@pytest.mark.parametrize("mark", ["...", "   [...]", "\t…", "<snip>", "# ... ", "  (output truncated)"])
def test_an_elision_makes_the_table_incomplete(mark):
    run = only_run(HEADER + ROW + mark + "\n" + FOOTER)
    assert not run.complete
    assert "lines that somebody left out (line 4)" in run.missing


def test_rows_left_out_without_a_mark_show_in_the_average():
    run = only_run(HEADER + ROW + FOOTER.replace(": 90", ": 41.5"))
    assert any("is not the mean of the rows shown, 90 GB/s" in part for part in run.missing)


@pytest.mark.parametrize("cut", [1, 20, 45, 60, 80, 95, 106])
def test_a_cut_last_row_never_becomes_a_row(cut):
    transcript = read(HEADER + ROW + ROW.replace("268435456 ", "536870912 ")[: cut + 10])
    (run,) = transcript.runs
    assert {dict(o.subject)["size"] for o in run.observations} == {"268435456"}
    assert not run.complete


def test_a_last_row_cut_inside_its_last_number_never_becomes_a_row():
    wide = ROW.replace("90.00       0\n", "90.00  237858\n")
    run = only_run(HEADER + ROW + wide.replace("268435456 ", "536870912 ")[:-4])
    assert {dict(o.subject)["size"] for o in run.observations} == {"268435456"}
    assert "short of the width" in run.unread[0].why


def test_a_row_torn_by_the_log_is_rejected_with_advice():
    torn = ROW[:60] + "node-a:10:10 [0] NCCL INFO 4096 Bytes -> Algo 1 proto 2 time 12.5\n" + ROW[60:]
    run = only_run(HEADER + torn + ROW + FOOTER)
    assert (len(numbers(run, "busbw", "GB/s")), run.rejected) == (2, 2)
    assert "NCCL_DEBUG_FILE" in next(n.message for n in run.notices if n.code == "rows-torn")


def test_a_file_of_nothing_but_torn_rows_is_refused_with_advice():
    refusal = read("[0]     73.11    0.04    0.07      0[0] node-a:7:7 [0] NCCL INFO 64 Bytes -> Algo 0\n" * 3).refusal
    assert refusal is not None
    assert "NCCL_DEBUG_FILE" in refusal.reason
    assert refusal.line == 1


def test_the_log_between_rows_does_not_disturb_them():
    log = "node-a:10:10 [0] NCCL INFO Using network IB\nnode-a:10:11 [0] NCCL WARN something odd\n"
    run = only_run(HEADER + ROW + log + FOOTER)
    assert (run.rejected, run.condition("transport")) == (0, "IB")
    assert "nccl-warning" in codes(run)


def test_sockets_between_nodes_are_said():
    run = only_run("n:1:1 [0] NCCL INFO Using network Socket\n" + HEADER + ROW + FOOTER)
    assert "sockets" in codes(run)


def test_a_template_is_refused():
    refusal = read(HEADER + ROW.replace("4473.92", "XXXXX").replace("60.00", "XX.XX").replace("90.00", "XX.XX")).refusal
    assert refusal is not None
    assert "template" in refusal.reason


def test_a_rank_list_with_gaps_counts_to_its_highest_rank():
    listed = (
        "#  Rank  0 Group  0 Pid 1 on node-a device 0 [0000:1b:00] NVIDIA H100\n"
        "#  Rank  1 Group  0 Pid 2 on node-a device 1 [0000:2b:00] NVIDIA H100\n"
        "#  Rank  3 Group  0 Pid 4 on node-b device 1 [0000:2b:00] NVIDIA H100\n"
    )
    run = only_run(listed + HEADER + ROW + FOOTER)
    assert (run.condition("ranks"), run.condition("ranks_listed"), run.condition("node_count")) == (4, 3, None)
    assert "gaps" in str(run.condition("ranks_by"))
    assert "1 of 4 lines of the rank list" in run.missing


def test_a_rank_list_at_the_end_of_the_file_is_cut():
    run = only_run(
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 9 validation: 1\n"
        "#  Rank  0 Pid 1 on  node-a device 0 [0x1b] NVIDIA H100 80GB HBM3\n"
        "#  Rank  1 Pid 1 on  node-a device 1 [0x2b] NVIDIA H100 80"
    )
    assert run.condition("gpu") == "NVIDIA H100 80GB HBM3"
    assert {"rest of the rank list, which breaks off", "the table"} <= set(run.missing)


def test_without_a_list_the_rows_tell_the_number_of_ranks():
    by_factor = only_run(HEADER + ROW + FOOTER)
    assert (by_factor.condition("ranks"), by_factor.condition("ranks_by")) == (4, "busbw divided by algbw")
    row = "   268435456 8388608 float sum -1 4473.92 60.00 52.50 0 4473.92 60.00 52.50 0\n"
    by_count = only_run(HEADER + row + FOOTER.replace("90", "52.5"))
    assert (by_count.condition("ranks"), by_count.condition("ranks_by")) == (8, "size divided by count")
    assert by_count.condition("operation") == "reduce-scatter"


def test_ranks_that_the_rows_contradict_are_said():
    run = only_run("SLURM_NTASKS=16\n" + HEADER + ROW + FOOTER)
    assert run.condition("ranks") == 16
    assert "16 by number of tasks at launch, 4 by busbw divided by algbw" in next(
        n.message for n in run.notices if n.code == "rank-count-disagrees"
    )


@pytest.mark.parametrize(
    ("cells", "operation"),
    [
        (("8388608", "none", "-1", "0", "N/A"), "all-to-all"),
        (("8388608", "none", "-1", "0", "0"), "all-gather"),
        (("67108864", "none", "-1", "0", "N/A"), "sendrecv"),
        (("67108864", "none", "0", "0", "0"), "broadcast"),
        (("67108864", "sum", "3", "0", "0"), "reduce"),
    ],
)
def test_the_columns_tell_the_operation_where_only_one_fits(cells, operation):
    count, redop, root, out, inside = cells
    row = f"268435456 {count} float {redop} {root} 4473.92 60.00 52.50 {out} 4473.92 60.00 52.50 {inside}\n"
    assert only_run(HEADER + "   " + row + FOOTER.replace("90", "52.5")).condition("operation") == operation


def test_an_operation_that_several_fit_is_left_open():
    row = "   268435456 8388608 float none -1 4473.92 60.00 52.50 N/A 4473.92 60.00 52.50 N/A\n"
    run = only_run(HEADER + row + FOOTER.replace("90", "52.5"))
    assert run.condition("operation") is None
    assert "operation-unknown" in codes(run)


def test_results_in_place_that_the_tool_never_compares_are_no_missing_check():
    row = "   268435456 8388608 float none -1 4473.92 60.00 52.50 0 4473.92 60.00 52.50 N/A\n"
    run = only_run(HEADER + row + FOOTER.replace("90", "52.5"))
    assert [(o.value, dict(o.subject)["place"]) for o in run.observations if o.name == "wrong"] == [(0.0, "out")]
    assert run.condition("correctness") == "right"


def test_several_reductions_in_one_table_are_keyed_apart():
    run = only_run(HEADER + ROW + ROW.replace(" sum", " max") + FOOTER)
    keys = {(dict(o.subject)["size"], dict(o.subject)["redop"]) for o in run.observations}
    assert keys == {("268435456", "sum"), ("268435456", "max")}
    assert "rows-repeat" not in codes(run)


def test_the_same_row_twice_is_said_and_numbered():
    run = only_run(HEADER + ROW + ROW + FOOTER)
    assert "rows-repeat" in codes(run)
    assert {dict(o.subject).get("repeat") for o in run.observations} == {None, "2"}


def test_rows_without_a_header_are_read_only_when_their_numbers_agree():
    run = only_run(ROW + FOOTER)
    assert "header of the table" in run.missing
    assert len(numbers(run, "busbw", "GB/s")) == 4 // 2
    false = only_run(ROW.replace("4473.92", "9999.99") + FOOTER)
    assert (len(numbers(false, "busbw", "GB/s")), false.rejected) == (0, 1)


def test_a_row_whose_bandwidth_is_not_size_over_time_is_an_error():
    run = only_run(HEADER + ROW.replace("60.00", "600.0", 1) + FOOTER)
    assert codes(run)["row-contradicts"] is Weight.ERROR


def test_a_table_edited_by_hand_is_said_to_be_one():
    text = (
        "           size    time   algbw   busbw\n            (B)    (us)  (GB/s)  (GB/s)\n"
        "      1_048_576   52.43   20.00   35.00\n       2097_152   69.91   30.00   52.50\n"
    )
    run = only_run("$ ./all_reduce_perf -b 1M -e 2M -g 8\n" + text)
    message = next(n.message for n in run.notices if n.code == "hand-edited")
    assert "2 sizes carry digit groups (1 of them wrong)" in message
    assert numbers(run, "busbw", "GB/s") == [35.0, 52.5]
    assert run.condition("correctness") == "unknown"
    assert "column #wrong" in run.missing


def test_jitter_of_small_messages_is_said():
    rows = "".join(
        f"   {1024 << i} {256 << i} float sum -1 {t} 0.00 0.00 0 {t} 0.00 0.00 0\n"
        for i, t in enumerate(["80.00", "90.00", "600.0", "85.00", "590.0", "88.00", "610.0"])
    )
    assert "jitter" in codes(only_run(HEADER + rows))


def test_one_rank_measures_no_link():
    text = "#  Rank  0 Group  0 Pid 1 on node-a device 0 [0000:1b:00] NVIDIA H100\n" + HEADER
    run = only_run(text + ROW.replace("90.00", " 0.00") + FOOTER.replace("90", "0"))
    assert codes(run)["single-rank"] is Weight.ERROR


def test_a_failure_without_a_table_is_an_error_and_no_pass():
    run = only_run(
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
        "node-a:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 8 - Init COMPLETE\n"
        "node-a: Test NCCL failure common.cu:958 'unhandled system error'\n"
    )
    assert codes(run)["test-failed"] is Weight.ERROR
    assert "the table" in run.missing
    assert run.condition("correctness") == "unknown"


def test_a_timestamp_column_is_two_words_wide():
    header = HEADER.replace("#wrong\n", "#wrong            timestamp\n", 1)
    run = only_run(header + ROW.replace("0\n", "0   2026-03-01 12:00:00\n") + FOOTER)
    assert numbers(run, "busbw", "GB/s") == [90.0, 90.0]


def test_hosts_that_prefix_their_lines_are_read_apart():
    body = HEADER + ROW + FOOTER
    text = "".join(f"{host}: {line}\n" for line in body.splitlines() for host in ("node-a", "node-b"))
    assert len(read(text).runs) == 2


def test_the_first_layout_counts_time_in_milliseconds():
    text = (
        "#   Rank  0 on     node-a device  0 [0x06] Tesla V100-SXM2-16GB\n"
        "#   Rank  1 on     node-a device  1 [0x07] Tesla V100-SXM2-16GB\n"
        "#                                                 out-of-place                    in-place\n"
        "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
        "    10485760       2621440   float     sum    0.524  20.00  20.00    0e+00    0.524  20.00  20.00    0e+00\n"
        " Out of bounds values : 0 OK\n Avg bus bandwidth    : 20\n"
    )
    run = only_run(text)
    assert (numbers(run, "time", "µs"), numbers(run, "busbw", "GB/s")) == ([524.0, 524.0], [20.0, 20.0])
    assert (run.condition("ranks"), run.condition("correctness")) == (2, "right")
    assert "row-contradicts" not in codes(run)


@pytest.mark.parametrize("stamp", ["2026-03-01T10:00:00.123456789Z ", "2026-03-01T10:00:00.1Z stdout F "])
def test_time_stamps_before_lines_are_passed_over(stamp):
    text = "".join(f"{stamp}{line}\n" for line in (HEADER + ROW + FOOTER).splitlines())
    assert numbers(only_run(text), "busbw", "GB/s") == [90.0, 90.0]


def test_a_table_with_bars_is_read():
    bars = "\n".join("| " + " | ".join(line.lstrip("#").split()) + " |" for line in (HEADER + ROW).splitlines())
    assert numbers(only_run(bars + "\n" + FOOTER), "busbw", "GB/s") == [90.0, 90.0]


def test_lines_labelled_by_srun_are_read():
    text = "".join(f"0: {line}\n" for line in (HEADER + ROW + FOOTER).splitlines())
    assert numbers(only_run(text), "busbw", "GB/s") == [90.0, 90.0]


def test_the_json_report_is_read():
    transcript = fixture("report.json")
    (run,) = transcript.runs
    assert transcript.kind == "nccl-tests"
    assert run.tool == "alltoall_perf"
    assert (run.condition("ranks"), run.condition("nccl")) == (2, "2.28.7")
    assert (run.condition("started"), run.condition("ended")) == ("2026-03-02T10:00:00", "2026-03-02T10:00:09")
    assert numbers(run, "busbw", "GB/s", size="134217728") == [25.0, 25.0]
    assert [o.value for o in run.observations if o.name == "wrong"] == [0.0, 3.0]
    assert codes(run)["wrong-values"] is Weight.ERROR
    assert [dict(o.subject)["pci"] for o in run.observations if o.name == "gpu"] == ["0000:1b:00.0"] * 2


def test_a_cut_json_report_is_refused():
    text = (FIXTURES / "report.json").read_text()
    refusal = read("mpirun: a warning\n" + text[:900]).refusal
    assert refusal is not None
    assert (refusal.line, refusal.reason) == (2, "the JSON ends in the middle")


def test_a_json_report_of_an_unknown_version_is_refused_by_name():
    refusal = read((FIXTURES / "report.json").read_text().replace('"version":2', '"version":7')).refusal
    assert refusal is not None
    assert "version 7; known are 1 and 2" in refusal.reason


ALONE = """mpirun -np 2 ./build/all_reduce_perf -b 256M -e 256M -g 1
# nThread 1 nGpus 1 minBytes 268435456 maxBytes 268435456 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
# nThread 1 nGpus 1 minBytes 268435456 maxBytes 268435456 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid   20 on node-a device  0 [0x00] NVIDIA H100 80GB HBM3
#   Rank  0 Pid   30 on node-b device  0 [0x00] NVIDIA H100 80GB HBM3
#
"""
LONE = (
    "   268435456      67108864     float     sum      -1   223.70  1200.00   0.00       0"
    "    1.00  268435.46   0.00       0\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0\n#\n"
)


def test_processes_that_never_met_are_one_run_that_proves_nothing():
    run = only_run(ALONE + HEADER + "#\n" + HEADER + LONE + LONE)
    assert codes(run)["processes-alone"] is Weight.ERROR
    assert run.condition("ranks") == 1
    assert run.condition("nodes") == "node-a,node-b"
    assert numbers(run, "algbw", "GB/s", place="out") == [1200, 1200]
    assert "rank-count-disagrees" not in codes(run)


def test_two_whole_runs_of_one_gpu_stay_two():
    one = (
        ALONE.split("# Using devices\n")[1]
        + "# Using devices\n#  Rank  0 Group  0 Pid 20 on node-a device  0 [0x00] NVIDIA H100 80GB HBM3\n"
    )
    assert len(read((one + HEADER + LONE) * 2).runs) == 2


def test_a_program_started_at_a_prompt_without_options_is_named_by_it():
    rank = "#  Rank  0 Group  0 Pid 21 on node-a device  0 [0x01] NVIDIA H100 80GB HBM3\n"
    run = only_run("me@node-a:~/nccl-tests$ sudo ./build/./alltoall_perf\n" + rank + HEADER + LONE)
    assert run.condition("operation") == "all-to-all"


def test_the_columns_of_one_rank_name_no_operation():
    rank = "#  Rank  0 Group  0 Pid 21 on node-a device  0 [0x01] NVIDIA H100 80GB HBM3\n"
    run = only_run(rank + HEADER + LONE.replace("  sum", " none"))
    assert run.condition("operation") is None


def test_launchers_count_processes_with_a_short_option_too():
    run = only_run("mpirun -n 64 --map-by node ./all_reduce_perf -b 256M -e 256M -n 20\n" + HEADER + ROW + FOOTER)
    assert run.condition("ranks") == 64


def test_results_that_are_never_compared_in_place_are_no_lack():
    row = ROW.rstrip("\n").removesuffix("0") + "N/A\n"
    assert "partly-checked" not in codes(only_run("./alltoall_perf -g 4\n" + HEADER + row + FOOTER))


def test_list_marks_and_bars_of_web_pages_are_no_columns():
    marked = "".join(f"- {line}\n" for line in (HEADER + ROW + FOOTER).splitlines())
    barred = "".join(f"{line} | |\n" for line in (HEADER + ROW + FOOTER).splitlines())
    for text in (marked, barred):
        run = only_run(text)
        assert numbers(run, "busbw", "GB/s") == [90, 90]
        assert "unknown-column" not in codes(run)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "MSCCL++",
            "# Initializing MSCCL++\n#  size  count  time  algbw  busbw  #wrong\n  1024  16  23.1  4.13  4.25  0\n",
        ),
        ("nccom-test", "size(B)  count(elems)  type  time(us)  algbw(GB/s)  busbw(GB/s)\n4096 4096 uint8 76 4.1 4.1\n"),
    ],
)
def test_tools_with_a_like_table_are_refused_by_name(name, text):
    assert name in str(read(text + "Avg bus bandwidth:\t4.1GB/s\n").refusal)
