"""Services whose lengths come from a trace beside the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterwright.app.loading import load_document
from clusterwright.app.planning import plan_files
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.figures import Origin

FILE = """
apiVersion: clusterwright/v1alpha1
cluster: c
pools: {h100: {nodes: "n-[1-4]", shape: hgx-h100-sxm-8}}
workloads:
  chat:
    model: meta-llama/Llama-3.1-8B-Instruct
    serve: {engine: vllm 0.11, precision: bf16, SAID}
    target: {ttft_p95: 2 s, tpot_p95: 50 ms}
"""
SERVE = "workloads.chat.serve"
EXAMPLE = Path(__file__).parents[3] / "examples" / "serving-trace" / "service.yaml"


def written(folder: Path, said: str = "lengths: {trace: traces/t.jsonl}", *, blocks: bool = True) -> Path:
    """A file and its trace: 64 requests at 2 a second, every fourth prompt long, half of each prompt known."""
    rows = [
        {"timestamp": n * 500, "input_length": 4096 if n % 4 == 0 else 1024, "output_length": 100}
        | ({"hash_ids": [0, 1000 + n] if n % 4 else [0, 1, 2, 3, *range(n * 50, n * 50 + 4)]} if blocks else {})
        for n in range(64)
    ]
    (folder / "traces").mkdir(exist_ok=True)
    (folder / "traces" / "t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    path = folder / "cluster.yaml"
    path.write_text(FILE.replace("SAID", said), encoding="utf-8")
    return path


def test_a_trace_beside_the_file_gives_lengths_rate_and_reuse(tmp_path):
    document = load_document([written(tmp_path)])
    serve = document.architecture.workloads["chat"].serve
    assert serve is not None
    assert serve.input.value == pytest.approx(1792, rel=1e-3)
    assert (serve.output.value, serve.in_p95.value) == (100, 4096)
    assert serve.rate.value == pytest.approx(64 / 31.5, rel=1e-3)
    assert len(serve.lengths.prompts) == 64
    assert serve.lengths.reuse[-1].share.value > 0.3
    assert "t.jsonl (64 requests)" in str(document.places.of(f"{SERVE}.in"))


def test_the_files_own_rate_and_reuse_count(tmp_path):
    file = written(tmp_path, "lengths: {trace: traces/t.jsonl}, rate: 9 req/s, prefix_reuse: 20%")
    serve = load_document([file]).architecture.workloads["chat"].serve
    assert serve is not None
    assert (serve.rate.value, serve.prefix_reuse.value, serve.lengths.reuse) == (9, 0.2, ())


def test_a_length_beside_the_trace_is_given_twice_and_a_flag_wins(tmp_path):
    file = written(tmp_path, "lengths: {trace: traces/t.jsonl}, in: 500 tokens")
    with pytest.raises(InvalidInput, match="given twice"):
        load_document([file])
    plain = written(tmp_path)
    serve = load_document([plain], [f"{SERVE}.in=500 tokens"]).architecture.workloads["chat"].serve
    assert serve is not None
    assert serve.input.value == 500


def test_a_trace_that_is_not_there_or_is_none_is_said_with_the_line(tmp_path):
    file = written(tmp_path, "lengths: {trace: nowhere.csv}")
    with pytest.raises(InvalidInput, match=r"cluster.yaml:8:.*nowhere.csv: cannot be read"):
        load_document([file])
    with pytest.raises(InvalidInput, match="no request in the trace has lengths"):
        load_document([written(tmp_path, "lengths: {trace: cluster.yaml}")])


def test_the_plan_takes_the_distribution_and_the_reuse_of_the_trace(tmp_path):
    plan = plan_files([written(tmp_path)])
    service, without = (
        plan.workload("chat").service,
        plan_files([written(tmp_path, blocks=False)]).workload("chat").service,
    )
    assert service.prefix_reuse is not None
    assert service.prefix_reuse.value == pytest.approx(0.4, abs=0.15)
    assert without.prefix_reuse is None
    assert service.replica_rate.value > without.replica_rate.value
    equal = plan_files([written(tmp_path, "in: 1792 tokens, out: 100 tokens, rate: 2 req/s")]).workload("chat").service
    assert without.ttft.value > equal.ttft.value  # the long prompts of the trace


def test_declared_reuse_shortens_the_prefill_only(tmp_path):
    said = "in: 4000 tokens, out: 100 tokens, rate: 2 req/s"
    plain, reused = (plan_files([written(tmp_path, f"{said}{more}")]) for more in ("", ", prefix_reuse: 40%"))
    name = "workloads.chat.service.prefill"
    assert reused.figures[name].value < 0.75 * plain.figures[name].value
    assert "found in the cache of prefixes" in reused.figures[name].basis
    assert reused.workload("chat").memory.max_concurrency == plain.workload("chat").memory.max_concurrency
    assert reused.workload("chat").service.prefix_reuse.own_origin is Origin.DECLARED
    assert any("prefix reuse counts on" in limit for limit in reused.limits)


def test_the_example_is_planned_from_the_trace_beside_it():
    plan = plan_files([EXAMPLE])
    service = plan.workload("chat").service
    assert plan.misfits == ()
    assert service.split.prefill.placed == service.split.prefill.wanted
    assert service.kept_tokens.value == pytest.approx(1.85)
    assert 0 < service.prefix_reuse.value < 1
    assert plan.workload("chat").payload.meets_target
