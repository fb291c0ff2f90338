"""Rows of a CSV → measurements: names of columns, sizes, what is assumed, what is left out."""

from __future__ import annotations

import pytest

from clusterwright.calibrating.tables import read_table
from clusterwright.physics.layouts import Layout

PLAIN = "backend,model,system,precision,isl,osl,concurrency,tp_size,ttft_ms,tpot_ms\n"
APART = (
    "backend,model_path,system,precision,mode,isl,osl,silicon_data_source,prefill_tp_size,prefill_moe_tp_size,"
    "prefill_moe_ep_size,decode_tp_size,decode_moe_tp_size,decode_moe_ep_size,prefill_num_workers,decode_num_workers,"
    "decode_batch_size,decode_attention_dp_size,silicon_ttft_ms,silicon_tpot_ms\n"
)


def only(text):
    measured = read_table(text)
    assert not measured.left, measured.left
    (row,) = measured.rows
    return row


def test_a_plain_row():
    row = only(PLAIN + "vllm,a/b,h100_sxm,fp8,1024,128,16,4,200,12.5\n")
    assert (row.engine, row.model, row.gpu, row.weights, row.cache) == ("vllm", "a/b", "h100_sxm", "fp8", "bf16")
    assert (row.prompt, row.output, row.concurrency) == (1024, 128, 16)
    assert (row.ttft_s, row.tpot_s) == (0.2, 0.0125)
    assert row.decode.layout == Layout(tp=4)
    assert row.prefill is None


def test_tensorrt_llm_follows_a_quantised_checkpoint_with_its_cache():
    assert only(PLAIN + "trtllm,a/b,h100,fp8,1,1,1,1,1,1\n").cache == "fp8"
    assert only(PLAIN + "trtllm,a/b,h100,bf16,1,1,1,1,1,1\n").cache == "bf16"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("llama.cpp,a,h100,fp8,1,1,1,1,1,1", "engine"),
        ("vllm,a,h100,q4_k,1,1,1,1,1,1", "precision"),
        ("vllm,a,h100,fp8,1,1,,1,1,1", "no concurrency"),
        ("vllm,a,h100,fp8,1,1,1,1,,", "neither TTFT nor TPOT"),
        ("vllm,,h100,fp8,1,1,1,1,1,1", "no model_path"),
        ("vllm,a,h100,fp8,x,1,1,1,1,1", "could not convert"),
    ],
)
def test_a_row_that_lacks_something_is_left_out_with_the_reason(line, reason):
    measured = read_table(PLAIN + line + "\n")
    assert not measured.rows
    assert reason in measured.left[0].reason


def test_gpus_times_expert_ranks_are_taken_as_expert_ranks():
    text = "backend,model,system,precision,isl,osl,concurrency,tp_size,moe_tp_size,moe_ep_size,ttft_ms,tpot_ms\n"
    row = only(text + "sglang,a,b200,fp8,1024,1024,4,16,4,4,200,10\n")
    assert row.decode.layout == Layout(tp=4, ep=4)
    assert row.notes
    assert only(text + "sglang,a,b200,fp8,1024,1024,4,8,1,8,200,10\n").decode.layout == Layout(tp=8, ep=8)


def test_workers_apart():
    row = only(APART + "trtllm,a,gb200,fp4,disagg,1024,1024,concurrency=64,4,1,4,1,1,8,2,3,8,8,500,9\n")
    assert row.prefill is not None
    assert (row.prefill.count, row.prefill.layout) == (2, Layout(tp=4, ep=4))
    assert (row.decode.count, row.decode.layout) == (3, Layout(tp=8, ep=8, attention_dp=8))
    assert row.concurrency == 64
    assert not row.notes


def test_without_counts_one_worker_of_each_is_assumed_and_said():
    few = only(APART + "trtllm,a,gb200,fp4,disagg,1024,1024,concurrency=16,4,1,4,8,2,4,,,,1,500,9\n")
    many = only(APART + "trtllm,a,gb200,fp4,disagg,1024,1024,concurrency=4096,4,1,4,8,2,4,,,,1,500,9\n")
    assert "worker counts are not told" in few.notes[0]
    assert few.decode.layout == Layout(tp=8, ep=8)
    assert many.decode.layout == Layout(tp=8, ep=8, attention_dp=8)


def test_rows_with_assumed_counts_are_not_fitted():
    told = "trtllm,a,gb200,fp4,disagg,1024,1024,concurrency=64,4,1,4,1,1,8,2,3,8,8,500,9\n"
    untold = "trtllm,a,gb200,fp4,disagg,1024,1024,concurrency=16,4,1,4,8,2,4,,,,1,500,9\n"
    kept = read_table(APART + told + untold).without_assumed_counts()
    assert len(kept.rows) == 1
    assert kept.left[0].reason == "worker counts are not told"
