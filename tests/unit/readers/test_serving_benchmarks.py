"""Serving benchmarks: units by label or key, placeholders, failures, overload, figures that contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.corpus import found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue, Outcome, Run, Transcript, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"


def text_of(name: str) -> str:
    return (FIXTURES / name).read_text()


SERVE = text_of("vllm-bench/serve.txt")
RESULT = text_of("vllm-bench/result.json")
INFERENCEX = text_of("vllm-bench/inferencex.json")
AIPERF = text_of("genai-perf/aiperf.txt")


def read(text: str, kind: str) -> Transcript:
    transcript = read_output([text.encode()])
    assert transcript.kind == kind, transcript.refusal
    return transcript


def only(text: str, kind: str) -> Run:
    (run,) = read(text, kind).runs
    return run


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def weight(run: Run, code: str) -> Weight:
    return next(n.weight for n in run.notices if n.code == code)


def amount(run: Run, name: str, unit: str) -> float:
    (value,) = values(run, name)
    assert isinstance(value, Quantity), value
    return round(value.to(unit), 6)


def test_vllm_rows_are_read_with_the_unit_of_their_label() -> None:
    run = only(SERVE, "vllm-bench")
    assert amount(run, "ttft_mean", "ms") == 120.5
    assert amount(run, "ttft_p50", "ms") == 110.25
    assert amount(run, "tpot_p99", "ms") == 18
    assert amount(run, "output_token_rate", "tokens/s") == 970.59
    assert values(run, "requests_ok") == [198]
    assert run.condition("concurrency") == 64
    assert run.condition("input_tokens") == 1000
    assert run.condition("model") == "example/model-8b"
    assert values(run, "requests_asked") == [200]
    assert run.complete
    assert "overloaded" not in codes(run)


def test_a_latency_without_a_unit_has_no_value() -> None:
    run = only(SERVE.replace("P99 TTFT (ms):", "P99 TTFT:"), "vllm-bench")
    (value,) = values(run, "ttft_p99")
    assert isinstance(value, NoValue)


def test_failed_requests_weigh_as_an_error() -> None:
    run = only(SERVE, "vllm-bench")
    assert weight(run, "requests-failed") is Weight.ERROR


def test_a_template_is_refused_though_some_rows_are_numbers() -> None:
    lines = [
        line if "Successful" in line or ":" not in line else line.split(":")[0] + ": xxx.xx"
        for line in SERVE.split("\n")
    ]
    transcript = read_output(["\n".join(lines).encode()])
    assert transcript.refusal is not None
    assert "template" in transcript.refusal.reason


def test_one_placeholder_among_results_is_unreadable() -> None:
    run = only(SERVE.replace("310.00", "xxx.xx"), "vllm-bench")
    (value,) = values(run, "ttft_p99")
    assert isinstance(value, NoValue)
    assert value.lack is Lack.UNREADABLE


def test_stray_glyphs_are_dropped_with_a_notice_and_words_are_not() -> None:
    run = only(SERVE.replace("310.00   ", "310.00  ·"), "vllm-bench")
    assert amount(run, "ttft_p99", "ms") == 310
    assert "stray-text" in codes(run)
    run = only(SERVE.replace("310.00   ", "310.00 or so"), "vllm-bench")
    assert isinstance(values(run, "ttft_p99")[0], NoValue)


def test_an_achieved_rate_far_below_the_asked_one_is_an_overload() -> None:
    slow = SERVE.replace("(RPS):           4.00", "(RPS):           40.00").replace("120.50", "9120.50")
    slow = slow.replace("--request-rate 4 ", "")
    run = only(slow.replace("110.25", "9000.25").replace("310.00", "20000.00"), "vllm-bench")
    assert {"overloaded", "queueing"} <= codes(run)


def test_a_peak_below_the_mean_is_impossible() -> None:
    run = only(SERVE.replace("1500.00", "500.00"), "vllm-bench")
    assert weight(run, "impossible") is Weight.ERROR


def test_percentiles_that_fall_are_impossible() -> None:
    assert "impossible" in codes(only(SERVE.replace("310.00", "31.00"), "vllm-bench"))


def test_rates_that_contradict_counts_and_time_are_named() -> None:
    run = only(
        SERVE.replace("Request throughput (req/s):              3.88", "Request throughput (req/s): 38.8"), "vllm-bench"
    )
    assert "inconsistent" in codes(run)


def test_a_block_without_successful_requests_proves_no_success() -> None:
    text = "\n".join(line for line in SERVE.split("\n") if "uccessful" not in line and "vllm bench" not in line)
    transcript = read(text, "vllm-bench")
    assert transcript.outcome is Outcome.PARTLY
    assert "success-unknown" in codes(transcript.runs[0])


def test_neither_asked_nor_failed_leaves_the_share_unknown() -> None:
    text = "\n".join(line for line in SERVE.split("\n") if "Failed" not in line and "vllm bench" not in line)
    assert "success-rate-unknown" in codes(only(text, "vllm-bench"))


def test_failures_follow_from_what_the_command_asked() -> None:
    text = "\n".join(line for line in SERVE.split("\n") if "Failed" not in line)
    assert values(only(text, "vllm-bench"), "requests_failed") == [2]


def test_without_streaming_there_is_no_first_token() -> None:
    run = only(SERVE.replace("--num-prompts 200", "--num-prompts 200 --no-stream"), "vllm-bench")
    assert run.condition("streaming") is False
    assert "not-streamed" in codes(run)
    assert all(isinstance(o.value, NoValue) for o in run.observations if o.name.startswith("ttft_"))


def test_a_cut_block_is_incomplete_and_its_torn_row_no_row() -> None:
    transcript = read(SERVE[: SERVE.index("P99 TPOT") + 4], "vllm-bench")
    (run,) = transcript.runs
    assert transcript.outcome is Outcome.PARTLY
    assert run.rejected == 1
    assert values(run, "tpot_p99") == []


def test_several_blocks_are_several_runs() -> None:
    assert len(read(SERVE + SERVE, "vllm-bench").runs) == 2


def test_json_counts_milliseconds_by_the_suffix_of_the_key() -> None:
    run = only(RESULT, "vllm-bench")
    assert amount(run, "ttft_mean", "ms") == 200.5
    assert run.condition("asked_rate") == "inf"
    assert values(run, "requests_asked") == [100]
    assert values(run, "goodput") == []


def test_json_with_fewer_completed_than_asked_counts_failures() -> None:
    run = only(RESULT.replace('"failed": 0, ', "").replace('"completed": 100', '"completed": 60'), "vllm-bench")
    assert values(run, "requests_failed") == [40]
    assert weight(run, "requests-failed") is Weight.ERROR


def test_inferencex_counts_seconds_and_that_is_checked() -> None:
    run = only(INFERENCEX, "vllm-bench")
    assert run.tool == "inferencex"
    assert amount(run, "ttft_p50", "s") == 0.2
    assert amount(run, "e2e_p99", "s") == 4.8
    wrong = only(INFERENCEX.replace('"median_e2el": 3.9', '"median_e2el": 3900'), "vllm-bench")
    assert isinstance(values(wrong, "ttft_p50")[0], NoValue)


def test_a_key_that_stands_twice_is_unreadable() -> None:
    run = only(RESULT.replace('"p99_ttft_ms": 450.0', '"p99_ttft_ms": 450.0, "p99_ttft_ms": 4.0'), "vllm-bench")
    assert isinstance(values(run, "ttft_p99")[0], NoValue)
    assert weight(run, "duplicate-key") is Weight.ERROR


@pytest.mark.parametrize("value", ["null", '"fast"', "[1]", "{}", "true", "NaN", "1e999"])
def test_json_values_of_any_type_never_become_numbers(value) -> None:
    run = only(RESULT.replace('"p99_ttft_ms": 450.0', f'"p99_ttft_ms": {value}'), "vllm-bench")
    assert isinstance(values(run, "ttft_p99")[0], NoValue)


def test_sglang_has_its_own_rows_and_overload() -> None:
    run = only(text_of("sglang-bench/serve.txt"), "sglang-bench")
    assert amount(run, "e2e_mean", "ms") == 30100
    assert amount(run, "itl_p95", "ms") == 150
    assert values(run, "output_tokens_retokenized")
    assert {"overloaded", "queueing", "success-rate-unknown"} <= codes(run)
    assert run.condition("concurrency") is None


def test_sglang_accepts_the_misspelt_label() -> None:
    text = text_of("sglang-bench/serve.txt").replace(
        "Max request concurrency:                 not set", "Max reqeuest concurrency:                32"
    )
    assert only(text, "sglang-bench").condition("concurrency") == 32


def test_sglang_json_lines_are_runs() -> None:
    calm, late = read(text_of("sglang-bench/results.jsonl"), "sglang-bench").runs
    assert amount(calm, "e2e_mean", "ms") == 2100
    assert "overloaded" not in codes(calm)
    assert "overloaded" in codes(late)


def test_tables_of_aiperf_take_separators_and_wrapped_names() -> None:
    run = only(AIPERF, "genai-perf")
    assert run.tool == "aiperf"
    assert amount(run, "e2e_mean", "ms") == 1250.5
    assert amount(run, "output_token_rate", "tokens/s") == 1600.25
    assert amount(run, "output_token_rate_per_user_mean", "tokens/s") == 80
    assert amount(run, "tpot_p99", "ms") == 14.5
    assert values(run, "requests_ok") == [160]


def test_a_cell_that_the_terminal_shortened_is_unreadable() -> None:
    (value,) = values(only(AIPERF, "genai-perf"), "e2e_max")
    assert isinstance(value, NoValue)
    assert value.lack is Lack.UNREADABLE


def test_a_table_without_its_lower_edge_is_incomplete() -> None:
    transcript = read(AIPERF.split("└")[0], "genai-perf")
    assert transcript.outcome is Outcome.PARTLY


def test_old_genai_perf_titles_count_per_second() -> None:
    text = (
        "NVIDIA GenAI-Perf | LLM Metrics\n┏━━┳━━┓\n┃ Statistic ┃ avg ┃ min ┃ p99 ┃\n"
        "│ Time to first token (ms) │ 16.5 │ 12.5 │ 17.5 │\n│ Output token throughput (per sec) │ 520.5 │ N/A │ N/A │\n"
        "└──┴──┘\n"
    )
    run = only(text, "genai-perf")
    assert amount(run, "output_token_rate", "tokens/s") == 520.5
    assert amount(run, "ttft_p99", "ms") == 17.5


def test_goodput_below_the_throughput_says_which_share_met_the_objectives() -> None:
    row = "│    Request Throughput (requests/sec) │    16.00 │    N/A │    N/A │    N/A │    N/A │"
    run = only(
        AIPERF.replace(row, row + "\n" + row.replace("Request Throughput", "Goodput").replace("16.00", " 4.00")),
        "genai-perf",
    )
    (notice,) = [n for n in run.notices if n.code == "objectives-missed"]
    assert "25%" in notice.message


def test_csv_of_genai_perf_has_two_parts() -> None:
    run = only(text_of("genai-perf/export.csv"), "genai-perf")
    assert amount(run, "e2e_p99", "ms") == 1900
    assert amount(run, "request_rate", "req/s") == 16


def test_json_of_genai_perf_counts_errors() -> None:
    run = only(text_of("genai-perf/summary.json"), "genai-perf")
    assert amount(run, "ttft_p99", "ms") == 85
    assert values(run, "requests_failed") == [4]
    assert run.condition("concurrency") == 20
    assert run.condition("streaming") is True


def test_a_run_that_was_cancelled_is_incomplete() -> None:
    text = text_of("genai-perf/summary.json").replace('"was_cancelled": false', '"was_cancelled": true')
    assert read(text, "genai-perf").outcome is Outcome.PARTLY


def test_records_of_requests_keep_duplicates_unreadable_and_compare_stamps() -> None:
    run = only(text_of("genai-perf/records.jsonl"), "genai-perf")
    first, second = (found(run, "request_ttft", request=f"r-{n}")[0].value for n in (1, 2))
    assert isinstance(first, Quantity)
    assert isinstance(second, NoValue)
    assert {"duplicate-key", "stamps-differ"} <= codes(run)
    assert values(run, "requests_failed") == [1]


def test_warm_up_requests_are_apart() -> None:
    text = text_of("genai-perf/records.jsonl").replace(
        '"benchmark_phase": "profiling"', '"benchmark_phase": "warmup"', 1
    )
    run = only(text, "genai-perf")
    assert values(run, "requests_ok") == [0]
    assert "warm-up" in codes(run)


def test_guidellm_tables_join_counts_and_latencies_and_see_the_wrong_unit() -> None:
    one, none = read(text_of("guidellm/sweep.txt"), "guidellm").runs
    assert amount(one, "e2e_mean", "s") == 1.57
    assert amount(one, "ttft_p99", "ms") == 50.1
    assert values(one, "requests_ok") == [19]
    assert {"mislabelled-unit", "requests-incomplete"} <= codes(one)
    assert isinstance(values(none, "ttft_mean")[0], NoValue)
    assert weight(none, "nothing-answered") is Weight.ERROR


def test_guidellm_json_counts_seconds_and_milliseconds_by_key() -> None:
    run = only(text_of("guidellm/report.json"), "guidellm")
    assert amount(run, "e2e_p95", "s") == 1.9
    assert amount(run, "ttft_p99", "ms") == 75
    assert amount(run, "request_rate", "req/s") == 1.96
    assert values(run, "requests_failed") == [2]


def test_trtllm_bench_is_read_from_text_and_json() -> None:
    for name in ("report.txt", "report.json"):
        run = only(text_of(f"trtllm-bench/{name}"), "trtllm-bench")
        assert amount(run, "output_token_rate", "tokens/s") == 3200
        assert amount(run, "e2e_p99", "ms") == 15000
        assert values(run, "requests_ok") == [500]
        assert run.version == "1.1"


def test_a_trtllm_report_of_placeholders_is_refused() -> None:
    text = text_of("trtllm-bench/report.txt")
    head, tail = text.split("= PERFORMANCE OVERVIEW")
    lines = [line.rpartition(" ")[0] + " X.XX" if line.endswith("000") else line for line in tail.split("\n")]
    transcript = read_output([(head + "= PERFORMANCE OVERVIEW" + "\n".join(lines)).encode()])
    assert transcript.refusal is not None
    assert "template" in transcript.refusal.reason
