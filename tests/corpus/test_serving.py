"""Public operator files of serving benchmarks and servers: the conclusions that a reader must reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders.corpus import FOLDER, check_corpus, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Weight

UNITS = {
    "ttft": "ms", "tpot": "ms", "itl": "ms", "e2e": "ms", "request_rate": "req/s", "output_token_rate": "tokens/s",
    "peak_output_token_rate": "tokens/s", "goodput": "req/s",
}  # fmt: skip


def figure(run: Run, name: str) -> float | None:
    found = values(run, name)
    if len(found) != 1 or isinstance(found[0], NoValue):
        return None
    if isinstance(found[0], Quantity):
        unit = UNITS[name] if name in UNITS else UNITS[name.split("_")[0]]
        return round(found[0].to(unit), 4)
    return float(str(found[0]))


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def errors(run: Run) -> set[str]:
    return {notice.code for notice in run.notices if notice.weight is Weight.ERROR}


def only(transcript: Transcript, outcome: Outcome) -> Run:
    assert transcript.outcome is outcome, (transcript.refusal, [run.missing for run in transcript.runs])
    (run,) = transcript.runs
    return run


def holds(
    *said: str, outcome: Outcome = Outcome.READ, wrong: tuple[str, ...] = (), **figures: float
) -> Callable[[Transcript], None]:
    """One run with these figures, these notices, and these and no other errors."""

    def check(transcript: Transcript) -> None:
        run = only(transcript, outcome)
        for name, value in figures.items():
            assert figure(run, name) == value, f"{name}: {figure(run, name)}"
        assert set(said) <= codes(run), codes(run)
        assert errors(run) == set(wrong), errors(run)

    return check


def template(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.REFUSED
    assert transcript.refusal is not None
    assert "template" in transcript.refusal.reason


def seconds(transcript: Transcript) -> None:
    run = only(transcript, Outcome.READ)
    assert run.tool == "inferencex"
    assert (figure(run, "requests_ok"), figure(run, "requests_asked")) == (160, 160)
    assert figure(run, "ttft_p50") == 3138.2447
    assert figure(run, "ttft_p99") == 16561.8097
    assert figure(run, "tpot_p50") == 141.0519
    assert values(run, "goodput") == []


def no_success(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert "success-unknown" in errors(run)
    assert "the row Successful requests" in run.missing
    assert values(run, "requests_ok") == []


def duplicate(transcript: Transcript) -> None:
    run = only(transcript, Outcome.READ)
    (first,) = values(run, "request_ttft")
    assert isinstance(first, NoValue)
    (latency,) = values(run, "request_latency")
    assert isinstance(latency, Quantity)
    assert round(latency.to("ms"), 1) == 297.5
    assert "duplicate-key" in errors(run)
    (notice,) = [n for n in run.notices if n.code == "stamps-differ"]
    assert "305.86 ms" in notice.message


def half_met(transcript: Transcript) -> None:
    holds("objectives-missed", ttft_mean=50.04, e2e_mean=3651.23, request_rate=0.27, goodput=0.14)(transcript)
    (notice,) = [n for n in transcript.runs[0].notices if n.code == "objectives-missed"]
    assert "52%" in notice.message


def tokens(run: Run) -> list[float]:
    return [v.value for v in values(run, "kv_cache_tokens") if isinstance(v, Quantity)]


def no_memory(transcript: Transcript) -> None:
    run = only(transcript, Outcome.READ)
    assert values(run, "server_starts") == [False]
    assert "no-kv-memory" in errors(run)
    assert tokens(run) == []


def lengths(transcript: Transcript) -> None:
    assert transcript.outcome is Outcome.PARTLY
    short, middle, cut = transcript.runs
    assert tokens(short) == [31232]
    assert tokens(middle) == [23648]
    assert {"cannot-serve-full-length", "length-does-not-fit"} <= errors(middle)
    assert "capacity-varies-with-length" in codes(short)
    assert tokens(cut) == []


def hybrid(transcript: Transcript) -> None:
    run = only(transcript, Outcome.READ)
    assert tokens(run) == [290864]
    assert values(run, "max_concurrency") == [33.04]
    assert "capacity-inconsistent" in codes(run)


def one_block(transcript: Transcript) -> None:
    run = only(transcript, Outcome.READ)
    assert tokens(run) == [16]
    assert "cannot-serve-full-length" in errors(run)
    assert "blocks-overridden" in codes(run)


def boundary(transcript: Transcript) -> None:
    refused, silent, untried, looping = transcript.runs
    assert values(refused, "server_starts") == [False]
    for run in (silent, untried, looping):
        assert "concurrency-at-boundary" in codes(run)
    assert "answers-nothing" in errors(silent)
    assert "answers-nothing" in errors(looping)


EXPECTED = {
    "serving-vllm/001-glm5-stray-middot.txt": holds(
        "stray-text", "overloaded", ttft_mean=13395.44, requests_ok=32, requests_failed=0, request_rate=0.51
    ),
    "serving-vllm/004-kimi-k2-think.txt": holds("queueing", "overloaded", "requests-failed", ttft_p99=686294.46),
    "serving-vllm/005-qwen25-vl.txt": holds("success-rate-unknown", requests_ok=128, ttft_mean=13715.73),
    "serving-vllm/006-gke-placeholder-ellipsis.txt": template,
    "serving-vllm/008-issue-9070.txt": holds("success-rate-unknown", requests_ok=979, request_rate=11.14),
    "serving-vllm/010-inferencex-conc16.json": seconds,
    "serving-vllm/012-cvs-mi300x-result.json": holds(
        "concurrency-above-cap", requests_ok=12800, requests_failed=0, request_rate=4.7599,
        output_token_rate=9748.2452, ttft_mean=668.4899, ttft_p99=2471.5848,
    ),
    "serving-vllm/013-cvs-mi300x-widened.json": holds(
        wrong=("requests-failed",), requests_failed=1409, requests_asked=3200, output_token_rate=4099.1805
    ),
    "serving-vllm/014-spark-poisson-overload.txt": holds(
        "overloaded", "queueing", "concurrency-above-cap", outcome=Outcome.PARTLY, wrong=("impossible",),
        ttft_mean=34710.68, peak_output_token_rate=61,
    ),
    "serving-vllm/015-kv-cache-docs-elided.txt": no_success,
    # Nothing in the file says --no-stream, and TTFT + TPOT x tokens gives the duration as a streamed run would.
    "serving-vllm/016-ascend-qwen3-omni.txt": holds(
        "queueing", outcome=Outcome.PARTLY, requests_ok=100, ttft_mean=12532.3
    ),
    "serving-genai/001-aiperf-readme-table.txt": holds(ttft_mean=18.26, ttft_p99=68.82, output_token_rate=10944.03),
    "serving-genai/002-aiperf-goodput-table.txt": half_met,
    "serving-genai/003-aiperf-profile-exports.txt": duplicate,
    "serving-genai/004-genai-perf-readme-table.txt": holds(
        wrong=("success-unknown",), ttft_mean=16.26, ttft_p99=17.09, output_token_rate=520.87, request_rate=1.99
    ),
    "serving-genai/008-trtllm-bench-b200.txt": template,
    "serving-sglang/001-kvcached-with.txt": holds(
        "overloaded", "queueing", requests_ok=1920, request_rate=8.98, e2e_mean=157842.85, ttft_mean=112043.4
    ),
    "serving-sglang/002-gke-template.txt": template,
    "serving-sglang/003-issue-2805.txt": holds("queueing", requests_ok=1648, request_rate=9.67, ttft_mean=44294.8),
    "serving-capacity/001-vllm-no-kv-memory.txt": no_memory,
    "serving-capacity/004-vllm-max-len-non-monotonic.log": lengths,
    "serving-capacity/005-vllm-hybrid-kv-size-inconsistent.log": hybrid,
    "serving-capacity/006-vllm-one-block-override.log": one_block,
    "serving-capacity/007-vllm-boundary-table-markdown.md": boundary,
}  # fmt: skip


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not here")
def test_every_file_gives_the_conclusion_that_it_must() -> None:
    kinds = ("serving-vllm", "serving-genai", "serving-sglang", "serving-capacity")
    assert check_corpus(EXPECTED, *kinds) == len(EXPECTED)
