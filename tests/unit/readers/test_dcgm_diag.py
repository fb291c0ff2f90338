"""dcgmi diag in JSON of DCGM 3 and 4, as tables, in pieces: all GPUs, all tests, and never a pass without a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "dcgm-diag"


def read(text: str, kind: str = "") -> Transcript:
    return read_output([text.encode()], kind=kind)


def only(transcript: Transcript) -> Run:
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def fixture(name: str) -> Transcript:
    return read_output([(FIXTURES / name).read_bytes()], name=name)


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_json_of_dcgm_3_names_every_gpu_and_keeps_the_states_apart():
    run = only(fixture("v3.json"))
    assert (run.version, run.condition("driver"), run.condition("layout")) == ("3.3.6", "535.161.08", "DCGM 2 or 3")
    assert values(run, "test", test="PCIe") == ["pass", "warn"]
    assert [dict(o.subject)["gpu"] for o in found(run, "test", test="GPU Memory")] == ["0", "1"]
    assert values(run, "test", test="GPU Memory") == ["skip", "skip"]
    assert values(run, "test", test="Diagnostic") == ["not run", "pass"]
    assert values(run, "test", test="Persistence Mode") == ["fail"]
    assert run.condition("result") == "fail"
    assert run.condition("gpus_tested") == 2.0


def test_figures_in_messages_are_read_with_their_units():
    run = only(fixture("v3.json"))
    assert str(values(run, "gpu_to_host_bandwidth", gpu="1")[0]) == "51.07 GB/s"
    assert str(values(run, "host_to_gpu_latency", gpu="0")[0]) == "1.42 µs"


def test_json_of_dcgm_4_is_known_by_its_own_root_key():
    run = only(fixture("v4.json"))
    assert (run.version, run.condition("driver"), run.condition("layout")) == ("4.2.3", "570.86.15", "DCGM 4")
    assert values(run, "test", test="pcie", gpu="1") == ["fail"]
    assert values(run, "test", test="cpu_eud", cpu="0") == ["skip"]
    assert run.condition("result") == "fail"
    assert run.condition("deepest_level") == 2.0
    assert any(n.code == "test-failed" and "GPU 1" in n.message and n.weight is Weight.ERROR for n in run.notices)


def test_another_root_key_is_refused_by_name():
    text = json.dumps({"DCGM Fleet Diagnostic": {"test_categories": []}}, indent=2)
    transcript = read(text)
    assert transcript.outcome is Outcome.REFUSED
    assert "DCGM GPU Diagnostic" in str(transcript.refusal)
    assert "DCGM Fleet Diagnostic" in str(transcript.refusal)


@pytest.mark.parametrize("root", ["DCGM GPU Diagnostic", "DCGM Diagnostic"])
def test_a_diagnosis_with_zero_tests_never_counts(root):
    transcript = read(json.dumps({root: {"test_categories": [], "version": "3"}}))
    assert transcript.outcome is Outcome.REFUSED
    assert "nothing was measured" in str(transcript.refusal)


def test_a_diagnosis_that_did_not_run_is_refused_with_its_error():
    text = json.dumps({"DCGM Diagnostic": {"runtime_error": "Error: unable to start nvvs", "version": "4.2.3"}})
    assert "unable to start nvvs" in str(read(text).refusal)


def test_only_skipped_tests_prove_nothing():
    results = [{"gpu_ids": "0", "status": "SKIP"}]
    category = {"category": "Stress", "tests": [{"name": "targeted_power", "results": results}]}
    run = only(read(json.dumps({"DCGM GPU Diagnostic": {"test_categories": [category]}})))
    assert "nothing-measured" in codes(run)
    assert isinstance(run.condition("result"), NoValue)


def test_fewer_results_than_gpus_are_incomplete():
    document = json.loads((FIXTURES / "v4.json").read_text())
    document["entity_groups"][0]["entities"].append({"entity_id": 2, "device_id": "2330"})
    run = only(read(json.dumps(document)))
    assert run.missing == ("results of 1 of 3 GPUs",)


def test_a_duplicate_key_is_said():
    text = '{"DCGM Diagnostic": {"test_categories": [{"category": "x", "tests": [{"name": "pcie", "name": "memory",'
    text += ' "results": [{"status": "Pass"}]}]}]}}'
    assert "duplicate-key" in codes(only(read(text)))


def test_iterations_and_documents_one_after_the_other_are_runs_of_their_own():
    one = json.loads((FIXTURES / "v4.json").read_text())
    text = json.dumps({"iterations": [one, one], "Overall Result": "Pass"})
    assert [run.condition("iteration") for run in read(text).runs] == [1.0, 2.0]
    compact = json.dumps(one)
    assert len(read(f"{compact}\n{compact}\n").runs) == 2


def test_a_torn_document_gives_what_was_whole_and_no_result():
    text = (FIXTURES / "v3.json").read_text()
    run = only(read(text[: text.index('"gpu_id" : "1"')]))
    assert "the end of the JSON" in run.missing
    assert values(run, "test", test="PCIe") == ["pass"]
    assert values(run, "test", test="Persistence Mode") == ["fail"]
    assert run.condition("result") == "fail"
    healthy = read(text[: text.index('"Persistence Mode"')])
    assert isinstance(only(healthy).condition("result"), NoValue)


def test_a_document_torn_before_its_first_test_is_refused():
    text = (FIXTURES / "v3.json").read_text()
    assert read(text[: text.index('"Denylist"')]).outcome is Outcome.REFUSED


@pytest.mark.parametrize(
    "broken",
    [
        '{"DCGM Diagnostic": [1]}',
        '{"DCGM Diagnostic": {"test_categories": {"a": 1}}}',
        '{"DCGM Diagnostic": {"test_categories": [{"tests": 7}, null, [1]]}}',
        '["DCGM Diagnostic", {"x": 1}]',
    ],
)
def test_unexpected_shapes_are_refused(broken):
    assert read(broken, "dcgm-diag").outcome is Outcome.REFUSED


def test_a_test_with_unreadable_results_counts_as_not_run():
    run = only(read('{"DCGM Diagnostic": {"test_categories": [{"tests": [7, {"name": "pcie", "results": [null]}]}]}}'))
    assert values(run, "test", test="pcie") == ["not run"]
    assert "nothing-measured" in codes(run)


def test_the_table_of_dcgm_3_lists_gpus_per_state_and_joins_messages():
    run = only(fixture("v3.txt"))
    assert run.complete
    assert run.condition("asked_level") == "3"
    assert values(run, "test", test="PCIe") == ["pass", "pass", "pass", "fail"]
    assert values(run, "test", test="PCIe", gpu="3") == ["fail"]
    assert values(run, "test", test="Targeted Stress") == ["skip"]
    assert values(run, "test", test="Diagnostic") == ["warn"]
    (message,) = values(run, "test_message", test="PCIe")
    assert message == "GPU 3 is running at PCI link width 8X, which is below the minimum allowed link width of 16"
    assert run.condition("gpus_tested") == 4.0
    assert {"sentence-is-no-verdict", "test-failed", "test-skipped", "test-warned"} <= codes(run)


def test_the_table_of_dcgm_4_has_a_row_per_entity():
    run = only(fixture("v4.txt"))
    assert values(run, "test", test="memory", gpu="1") == ["fail"]
    assert values(run, "test", test="memory", gpu="0") == ["pass"]
    assert values(run, "test_message", test="memory", gpu="1") == ["A memory error was found at offset 0x1f400."]
    assert run.condition("result") == "fail"


def test_a_table_that_is_cut_has_no_result_and_rejects_the_torn_row():
    text = (FIXTURES / "v4.txt").read_text()
    cut = text[: text.index("| memory") + 35]
    run = only(read(cut))
    assert run.missing == ("the end of the table",)
    assert run.rejected == 1
    assert isinstance(run.condition("result"), NoValue)
    assert values(run, "test", test="memory") == []


def test_gpus_cut_off_in_a_row_are_missing():
    text = (FIXTURES / "v3.txt").read_text().replace("Pass - GPUs: 0, 1, 2    ", "Pass - GPUs: 0, 1, 2... ")
    assert "GPUs of PCIe that were cut off with '...'" in only(read(text)).missing


def test_a_table_without_a_test_never_counts():
    text = (FIXTURES / "v3.txt").read_text()
    rows = [row for row in text.splitlines() if not any(word in row for word in ("Pass", "Fail", "Skip", "Warn"))]
    assert "nothing was measured" in str(read("\n".join(rows)).refusal)


def test_tables_of_several_hosts_are_runs_with_their_node():
    text = (FIXTURES / "v4.txt").read_text()
    lines = text.splitlines()
    both = [f"{node}: {row}" for row in lines for node in ("gpu-001", "gpu-002")]
    transcript = read("\n".join(both))
    assert sorted(str(run.condition("node")) for run in transcript.runs) == ["gpu-001", "gpu-002"]
    assert all(run.complete for run in transcript.runs)


def test_the_level_that_was_asked_for_is_compared_with_what_ran():
    text = (FIXTURES / "v3.txt").read_text().replace("-r 3", "-r 4")
    assert "level-not-reached" in codes(only(read(text)))


def test_an_exit_status_above_127_is_an_error_of_the_tool_and_no_verdict():
    run = only(read("dcgmi diag -r 3 exited with code 221\nsee DCGM_ST_NVVS_KILLED (-35)\n"))
    assert values(run, "exit_status") == [221.0]
    assert values(run, "dcgm_status") == ["DCGM_ST_NVVS_KILLED"]
    assert "tool-error" in codes(run)
    assert not run.complete


def test_a_violation_of_zero_seconds_is_a_warning():
    run = only(read("GPU 4 Thermal violations totaling 0.0 seconds started at 12.0 seconds into the test\n"))
    assert str(values(run, "thermal_violation", gpu="4")[0]) == "0 s"
    assert codes(run) == {"violation-of-no-length"}


def test_the_preflight_log_counts_what_its_summary_counts():
    run = only(fixture("preflight.jsonl"))
    assert values(run, "tests_failed") == [1.0]
    assert values(run, "test", test="pcie") == ["fail"]
    assert run.condition("result") == "fail"
    assert run.complete


def test_a_preflight_summary_with_more_failures_than_lines_is_incomplete():
    text = (FIXTURES / "preflight.jsonl").read_text().replace('"passed": 3, "failed": 1', '"passed": 2, "failed": 2')
    run = only(read(text))
    assert run.missing == ("results of 1 of 4 tests",)


def test_a_table_without_its_head_gives_its_rows_and_says_so():
    text = (FIXTURES / "v3.txt").read_text()
    run = only(read(text[text.index("+-----  Integration") :]))
    assert "the head of the table" in run.missing
    assert values(run, "test", test="PCIe")


def test_an_indented_table_is_read_like_one_at_the_margin():
    text = (FIXTURES / "v3.txt").read_text()
    indented = only(read("\n".join(f"      {row}" for row in text.splitlines())))
    assert values(indented, "test") == values(only(read(text)), "test")
    assert indented.complete


def test_a_table_of_one_plugin_has_no_sections():
    text = (
        "| Diagnostic                | Result                                         |\n"
        "+===========================+================================================+\n"
        "| DCGM Version              | 3.3.7                                          |\n"
        "| Driver Version Detected   | 550.54.15                                      |\n"
        "| EUD Test                  | Fail - GPU: 2                                  |\n"
        "+---------------------------+------------------------------------------------+\n"
    )
    run = only(read(text))
    assert run.complete
    assert (run.version, run.condition("driver")) == ("3.3.7", "550.54.15")
    assert values(run, "test") == ["fail"]


def test_parts_of_the_json_replaced_by_dots_are_missing():
    test = '{"name": "PCIe", "results": [{"gpu_id": "0", "status": "Pass"}]}'
    text = '{"DCGM GPU Diagnostic": {"test_categories": [\n{"..."},\n{"category": "Integration", "tests": [%s]}]}}'
    run = only(read(text % test))
    assert run.missing == ("parts of the JSON that were left out",)
    assert values(run, "test", test="PCIe", gpu="0") == ["pass"]


def test_link_states_beside_a_diagnosis_are_kept():
    links = (FIXTURES.parent / "dcgm-nvlink" / "status.txt").read_text()
    transcript = read(links + "\n" + (FIXTURES / "v3.txt").read_text())
    states = [run for run in transcript.runs if found(run, "nvlink_state")]
    tests = [run for run in transcript.runs if found(run, "test")]
    assert (len(states), len(tests)) == (1, 1)


def test_the_preflight_log_spread_over_lines_reads_like_one_object_a_line():
    lines = [json.loads(line) for line in (FIXTURES / "preflight.jsonl").read_text().splitlines()]
    run = only(read("\n".join(json.dumps(record, indent=2) for record in lines)))
    assert values(run, "test") == values(only(fixture("preflight.jsonl")), "test")
    assert run.complete


def test_a_table_that_is_cut_does_not_say_how_deep_the_tests_went():
    text = (FIXTURES / "v3.txt").read_text()
    assert "level-not-reached" not in codes(only(read(text[: text.index("+-----  Integration")])))
