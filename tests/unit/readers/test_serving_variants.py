"""Serving benchmarks with nothing behind some of their figures."""

from clusterwright.model.observations import NoValue, Run
from clusterwright.readers.reading import read_output

HEAD = "============ Serving Benchmark Result ============\n"
FOOT = "==================================================\n"


def read(text: str) -> Run:
    transcript = read_output([text.encode()], name="pasted.txt")
    assert transcript.refusal is None, transcript.refusal
    (run,) = transcript.runs
    return run


def value(run: Run, name: str) -> object:
    return next(o.value for o in run.observations if o.name == name)


def test_a_time_between_tokens_of_answers_with_one_token_is_absent_and_not_0():
    run = read(f"{HEAD}Backend:                                 sglang\nSuccessful requests:                     64\n"
               "Benchmark duration (s):                  8.00\nTotal input tokens:                      640\n"
               "Total generated tokens:                  64\nRequest throughput (req/s):              8.00\n"
               "Mean TTFT (ms):                          100.0\nP99 TTFT (ms):                           200.0\n"
               "Mean ITL (ms):                           0.00\nP99 ITL (ms):                            0.00\n"
               f"{FOOT}")  # fmt: skip
    assert isinstance(value(run, "itl_p99"), NoValue)
    assert str(value(run, "ttft_p99")) == "200 ms"
    assert "not-timed" in {n.code for n in run.notices}


def test_latencies_of_a_run_without_an_answer_are_absent_and_not_0():
    run = read(f"{HEAD}Successful requests:                     0\nFailed requests:                         9\n"
               "Benchmark duration (s):                  8.00\nTotal input tokens:                      0\n"
               "Total generated tokens:                  0\nRequest throughput (req/s):              0.00\n"
               "Mean TTFT (ms):                          0.00\nP99 TTFT (ms):                           0.00\n"
               f"{FOOT}")  # fmt: skip
    assert isinstance(value(run, "ttft_p99"), NoValue)
    assert "nothing-answered" in {n.code for n in run.notices}


def test_refuses_a_table_of_guidellm_that_a_narrow_terminal_broke():
    text = ("Benchmarks Info:\n=====\nMetadata |||| Requests Made ||| Prompt\nTok/Req ||| Output Tok/Req\n"
            "---------|-----|\n-----|-----\n synchronous| 20:46:40|\n 979.0| 0.0\n")  # fmt: skip
    transcript = read_output([text.encode()], name="x.txt")
    assert transcript.kind == "guidellm"
    assert transcript.refusal is not None
    assert "narrow terminal" in transcript.refusal.reason


ROWS = ("Benchmark duration (s):                  10.00\nTotal input tokens:                      100\n"
        "Total generated tokens:                  200\nRequest throughput (req/s):              2.00\n"
        "Mean TTFT (ms):                          50.0\nMedian TTFT (ms):                        40.0\n"
        "P99 TTFT (ms):                           90.0\n")  # fmt: skip


def test_reads_what_vllm_announces_before_its_result():
    run = read("Traffic request rate: 2.5 RPS.\nBurstiness factor: 1.0\nMaximum request concurrency: 7\n"
               f"{HEAD}Successful requests:                     20\n{ROWS}{FOOT}")  # fmt: skip
    assert run.tool == "vllm-bench"
    assert str(dict(run.conditions)["asked_rate"]) == "2.5 req/s"
    assert dict(run.conditions)["concurrency"] == 7.0


def test_keeps_a_result_whose_banner_was_cut_off():
    text = f"{ROWS}{FOOT}\n{HEAD}Successful requests:                     20\n{ROWS}{FOOT}"
    first, second = read_output([text.encode()]).runs
    assert "the banner: the beginning was cut off" in first.missing
    assert str(value(first, "ttft_p99")) == "90 ms"
    assert second.complete


def test_a_report_of_trtllm_bench_that_ends_early_is_not_whole():
    head = ("===\n= PYTORCH BACKEND\n===\nModel:   m\nTensorRT-LLM Version: 1.0\n===\n= REQUEST DETAILS\n===\n"
            "Number of requests:      8\n===\n= WORLD + RUNTIME INFORMATION\n===\nTP Size:         4\n===\n"
            "= PERFORMANCE OVERVIEW\n===\nRequest Throughput (req/sec):                     2.0\n")  # fmt: skip
    assert not read(head).complete
    assert read(head + "Total Latency (ms):                               4000.0\n").complete


def test_rows_of_trtllm_bench_with_two_values_are_rejected():
    text = ("=====\nPYTORCH BACKEND\n=====\nModel:   m\nTensorRT LLM Version:   1.2\nTP Size:   8\n"
            "Request Throughput (req/sec): |  0.9 | 1.0\n")  # fmt: skip
    run = read(text)
    assert run.rejected == 1
    assert "request_rate" not in {o.name for o in run.observations}
