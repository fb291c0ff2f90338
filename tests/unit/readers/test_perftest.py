"""perftest: units, GPU memory, both ends, latencies, faults and cuts."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Value, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "perftest-bw-lat"
GPU = (FIXTURES / "write-bw-gpu.txt").read_text()
LATENCY = (FIXTURES / "send-lat.txt").read_text()
PLAIN = GPU[GPU.index("-----") :]


def only_run(text: str) -> Run:
    transcript = read_output([text.encode()])
    assert transcript.refusal is None, str(transcript.refusal)
    assert transcript.kind == "perftest-bw-lat"
    (run,) = transcript.runs
    return run


def value(run: Run, name: str) -> Value:
    (observation,) = [o for o in run.observations if o.name == name]
    return observation.value


def amount(run: Run, name: str, unit: str) -> float:
    found = value(run, name)
    assert isinstance(found, Quantity)
    return round(found.to(unit), 4)


def codes(run: Run) -> dict[str, Weight]:
    return {notice.code: notice.weight for notice in run.notices}


def test_bandwidth_from_gpu_memory_is_read_with_its_conditions():
    transcript = read_output([GPU.encode()])
    (run,) = transcript.runs
    assert (transcript.outcome, run.tool) == (Outcome.READ, "ib_write_bw")
    assert amount(run, "bandwidth_average", "Gb/s") == 389.52
    assert amount(run, "bandwidth_peak", "Gb/s") == 390.10
    assert amount(run, "message_rate", "op/s") == 742950
    assert dict(run.observations[0].subject) == {"size": "65536"}
    assert (run.condition("gpu_memory"), run.condition("gpu"), run.condition("gpu_index")) == (
        True, "NVIDIA H100 80GB HBM3", "2",
    )  # fmt: skip
    assert run.condition("gpu_pci") == "0000:5d:00.0"
    assert (run.condition("transport"), run.condition("connection"), run.condition("qps")) == ("InfiniBand", "RC", 4)
    assert str(run.condition("mtu")) == "4096 B"
    assert (run.condition("bidirectional"), run.condition("loopback")) == (False, False)


def test_megabytes_of_perftest_are_binary():
    run = only_run(PLAIN.replace("Gb/sec", "MB/sec").replace("389.52", "46434.40"))
    assert amount(run, "bandwidth_average", "MiB/s") == 46434.4
    assert amount(run, "bandwidth_average", "GB/s") == 48.69
    assert "row-contradicts" not in codes(run)


def test_a_unit_that_the_message_rate_contradicts_is_said():
    assert "row-contradicts" in codes(only_run(PLAIN.replace("Gb/sec", "MB/sec")))


def test_without_a_word_about_memory_it_is_not_known_to_be_the_hosts():
    assert only_run(PLAIN).condition("gpu_memory") is None
    assert only_run("$ ib_write_bw -d mlx5_4 node-b\n" + PLAIN).condition("gpu_memory") is False


def test_latencies_are_read_by_name():
    run = only_run(LATENCY)
    assert (run.tool, run.complete) == ("ib_send_lat", True)
    assert amount(run, "latency_typical", "µs") == 2.01
    assert (amount(run, "latency_p99", "µs"), amount(run, "latency_p99_9", "µs")) == (2.40, 8.70)
    assert run.condition("transport") == "RoCE"


def test_cycles_are_no_time():
    run = only_run("$ ib_send_lat -n 1000 -C node-b\n" + LATENCY)
    assert isinstance(value(run, "latency_mean"), NoValue)
    assert codes(run)["in-cycles"] is Weight.ERROR


def test_few_iterations_are_said():
    assert "few-iterations" in codes(only_run(LATENCY.replace(" 1000 ", " 5    ")))
    assert "few-iterations" in codes(only_run("$ ib_send_lat -a -n 5\n" + LATENCY[: LATENCY.index(" #bytes") + 16]))


def test_negative_results_are_impossible():
    run = only_run(PLAIN.replace(" 389.52", "-12.31 "))
    assert isinstance(value(run, "bandwidth_average"), NoValue)
    assert codes(run)["impossible-value"] is Weight.ERROR


def test_a_peak_that_was_not_measured_is_absent():
    run = only_run(" WARNING: BW peak won't be measured in this run.\n" + PLAIN.replace("390.10", "0.00  "))
    assert value(run, "bandwidth_peak") == NoValue(Lack.ABSENT, "0.00", "the peak is not measured in this mode")


def test_a_bidirectional_sum_is_said_with_its_half():
    run = only_run(PLAIN.replace("RDMA_Write BW", "RDMA_Write Bidirectional BW"))
    assert run.condition("bidirectional") is True
    assert "194.8 Gb/s each way" in next(n.message for n in run.notices if n.code == "sum-of-directions")


def test_client_and_server_of_one_test_count_once():
    local, remote = (next(line for line in PLAIN.splitlines() if side in line) for side in (" local", " remote"))
    server = PLAIN.replace(local, local.replace("local", "REMOTE")).replace(remote, remote.replace("remote", "local"))
    run = only_run(PLAIN + "* Waiting for client to connect... *\n" + server.replace("REMOTE", "remote"))
    assert len([o for o in run.observations if o.name == "bandwidth_average"]) == 1
    assert "both-ends" in codes(run)


def test_a_test_against_itself_is_loopback():
    run = only_run(PLAIN.replace("LID 0x22", "LID 0x11"))
    assert run.condition("loopback") is True
    assert "loopback" in codes(run)


def test_a_line_between_header_and_row_is_no_row():
    run = only_run(PLAIN.replace(" 65536 ", "Conflicting CPU frequency values detected: 1200.0 != 3400.0.\n 65536 "))
    assert (run.rejected, run.complete) == (0, True)
    assert "cpu-frequency" in codes(run)


@pytest.mark.parametrize("end", [" 65536      20000            390.10", " #bytes     #iterat", " Mtu             : 40"])
def test_a_cut_output_has_no_result(end):
    run = only_run(PLAIN[: PLAIN.index(end) + len(end)])
    assert not [o for o in run.observations if o.name.startswith("bandwidth")]
    assert not run.complete


def test_a_failure_after_some_sizes_is_an_error_and_incomplete():
    failing = PLAIN[: PLAIN.index("0.742950")] + "0.742950\n Completion with error at client\n"
    run = only_run("$ ib_write_bw -a node-b\n" + failing)
    assert codes(run)["test-failed"] is Weight.ERROR
    assert "sizes above 65,536 B; -a goes to 8,388,608 B" in run.missing


def test_an_unknown_column_is_refused_by_name():
    refusal = read_output([PLAIN.replace("MsgRate[Mpps]", "Wobble[furlong]").encode()]).refusal
    assert refusal is not None
    assert "Wobble" in refusal.found


def test_repeated_rows_of_one_size_are_numbered():
    row = next(line for line in PLAIN.splitlines() if line.startswith(" 65536"))
    run = only_run(PLAIN.replace(row, f"{row}\n{row}"))
    assert [dict(o.subject).get("repeat") for o in run.observations if o.name == "bandwidth_average"] == [None, "2"]


def test_tagged_tests_of_several_ranks_stay_apart():
    lines = PLAIN.splitlines()
    text = "".join(f"[1,{rank}]<stdout>:{line}\n" for line in lines for rank in (0, 1))
    assert [r.condition("device") for r in read_output([text.encode()]).runs] == ["mlx5_4", "mlx5_4"]


@pytest.mark.parametrize(
    ("average", "rate", "unit"), [("196.20", "0.374222", "Gb/s"), ("2229.27", "0.035668", "MiB/s")]
)
def test_the_unit_of_json_follows_from_the_message_rate(average, rate, unit):
    text = (FIXTURES / "report.json").read_text().replace("196.20", average).replace("0.374222", rate)
    run = only_run(text)
    assert (run.tool, amount(run, "bandwidth_average", unit)) == ("ib_read_bw", float(average))


def test_json_without_a_settled_unit_gives_no_bandwidth():
    run = only_run((FIXTURES / "report.json").read_text().replace("0.374222", "0.000000"))
    assert isinstance(value(run, "bandwidth_average"), NoValue)


def test_numbers_set_in_bold_are_numbers_and_their_peak_of_0_is_none():
    run = only_run(
        "#bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
        " 1024       1000             0.00               **920.13**           0.942218\n"
    )
    assert amount(run, "bandwidth_average", "MiB/s") == 920.13
    assert isinstance(value(run, "bandwidth_peak"), NoValue)


def test_a_test_that_ended_in_a_completion_error_is_a_failed_test():
    run = only_run("Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n")
    assert codes(run)["test-failed"] is Weight.ERROR
    assert not run.complete


def test_a_test_that_never_began_is_refused_with_its_error():
    text = "./ib_write_bw -d mlx5_1 -a --use_cuda_dmabuf\nCUDA DMA-BUF cannot be used without CUDA\n"
    transcript = read_output([(text + " Parser function exited with Error\n").encode()])
    assert transcript.kind == "perftest-bw-lat"
    assert "perftest ended before its test" in str(transcript.refusal)
