"""Capacity of servers: tokens, concurrency, starts that fail, figures that contradict each other."""

from __future__ import annotations

from pathlib import Path

from builders.corpus import values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Outcome, Run, Weight
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "server-capacity"
VLLM = (FIXTURES / "vllm.log").read_text()


def runs(text: str) -> tuple[Run, ...]:
    transcript = read_output([text.encode()])
    assert transcript.kind == "server-capacity", transcript.refusal
    return transcript.runs


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def amount(run: Run, name: str, unit: str) -> list[float]:
    return [round(v.to(unit), 6) for v in values(run, name) if isinstance(v, Quantity)]


def test_vllm_prints_tokens_with_separators() -> None:
    (run,) = runs(VLLM)
    assert run.version == "0.9.1"
    assert amount(run, "kv_cache_tokens", "tokens") == [819200]
    assert values(run, "max_concurrency") == [100]
    assert amount(run, "kv_cache_memory", "GiB") == [50.25]
    assert amount(run, "weight_memory", "GiB") == [7.5123, 7.5123]
    assert amount(run, "engine_start_time", "s") == [30.25]
    assert run.condition("max_model_length") == "8192"
    assert codes(run) == set()


def test_old_vllm_prints_gib_under_the_label_gb() -> None:
    (run,) = runs("Loading model weights took 10.5 GB\n# GPU blocks: 100, # CPU blocks: 10\n")
    assert amount(run, "weight_memory", "GiB") == [10.5]
    assert "unit-label" in codes(run)


def test_tokens_of_blocks_follow_from_the_concurrency_and_are_not_assumed() -> None:
    log = "Loading model weights took 10.5 GB\n# GPU blocks: 1000, # CPU blocks: 10\n"
    (run,) = runs(log)
    assert isinstance(values(run, "kv_cache_tokens")[0], NoValue)
    (run,) = runs(log + "Maximum concurrency for 8000 tokens per request: 2.00x\n")
    assert amount(run, "kv_cache_tokens", "tokens") == [16000]


def test_a_concurrency_below_one_serves_no_full_request() -> None:
    (run,) = runs(VLLM.replace("819,200", "4,096").replace("100.00x", "0.50x"))
    (notice,) = [n for n in run.notices if n.code == "cannot-serve-full-length"]
    assert notice.weight is Weight.ERROR


def test_a_concurrency_of_one_is_at_the_boundary() -> None:
    (run,) = runs(VLLM.replace("819,200", "8,192").replace("100.00x", "1.00x"))
    assert "concurrency-at-boundary" in codes(run)


def test_tokens_and_concurrency_that_disagree_are_named() -> None:
    (run,) = runs(VLLM.replace("819,200", "200,000"))
    assert "capacity-inconsistent" in codes(run)


def test_no_memory_for_the_cache_is_no_zero() -> None:
    (run,) = runs("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`\n")
    assert values(run, "server_starts") == [False]
    assert values(run, "kv_cache_tokens") == []
    assert "no-kv-memory" in codes(run)


def test_a_length_that_does_not_fit_says_both_numbers() -> None:
    (run,) = runs(
        "ValueError: The model's max seq len (9000) is larger than the maximum number of tokens that can be stored in "
        "KV cache (7200). Try increasing `gpu_memory_utilization`\n"
    )
    (notice,) = [n for n in run.notices if n.code == "length-does-not-fit"]
    assert "9000" in notice.message
    assert "7200" in notice.message


def test_blocks_that_are_overridden_are_named() -> None:
    (run,) = runs(VLLM + "Overriding num_gpu_blocks=5000 with num_gpu_blocks_override=1\n")
    assert "blocks-overridden" in codes(run)


def test_two_starts_are_two_runs_and_differing_lengths_are_compared() -> None:
    other = VLLM.replace("8,192", "4,096").replace("max_seq_len=8192", "max_seq_len=4096").replace("819,200", "409,600")
    one, two = runs(VLLM + other)
    assert amount(two, "kv_cache_tokens", "tokens") == [409600]
    assert "capacity-varies-with-length" in codes(one)


def test_ranks_that_differ_keep_the_smaller_cache() -> None:
    (run,) = runs(VLLM + "INFO [kv_cache_utils.py:716] GPU KV cache size: 800,000 tokens\n")
    assert amount(run, "kv_cache_tokens", "tokens") == [800000]
    assert "ranks-differ" in codes(run)


def test_sglang_and_tensorrt_llm_are_read() -> None:
    (run,) = runs((FIXTURES / "sglang.log").read_text())
    assert set(amount(run, "kv_cache_tokens", "tokens")) == {400000}
    assert values(run, "max_running_requests") == [2048]
    (run,) = runs(
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 60.25 GiB for max tokens in paged KV cache (900000).\n"
    )
    assert amount(run, "kv_cache_tokens", "tokens") == [900000]
    assert amount(run, "kv_cache_memory", "GiB") == [60.25]


def test_a_table_written_by_hand_is_read_by_its_titles() -> None:
    table = (
        "| util | available KV | `GPU KV cache size` | max concurrency @4,096 | result |\n|---|---|---|---|---|\n"
        "| 0.8 | 1.50 GiB | — | — | refuses to start |\n| 0.9 | 2.00 GiB | **4,096** | **1.00x** | then 0 tok/s |\n"
        "| 0.95 | 3 |\n"
    )
    failed, edge, torn = runs(table)
    assert values(failed, "server_starts") == [False]
    assert isinstance(values(failed, "kv_cache_tokens")[0], NoValue)
    assert amount(edge, "kv_cache_tokens", "tokens") == [4096]
    assert {"concurrency-at-boundary", "answers-nothing"} <= codes(edge)
    assert torn.rejected == 1


def test_a_log_that_ends_before_the_cache_is_incomplete() -> None:
    transcript = read_output([b"Loading model weights took 10.5 GB\n"])
    assert transcript.outcome is Outcome.PARTLY
