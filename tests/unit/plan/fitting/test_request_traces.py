"""Traces of requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterwright.app.fitting_traces import read_requests
from clusterwright.lib.errors import InvalidInput
from clusterwright.plan.fitting.reading import read_wants
from clusterwright.plan.fitting.request_traces import summarise


def test_lengths_and_the_rate_of_the_busiest_minute() -> None:
    rows = [{"TIMESTAMP": f"2023-11-16 18:{m:02d}:00.1234567", "ContextTokens": "100", "GeneratedTokens": "10"}
            for m in (15, 15, 15, 16, 18)]  # fmt: skip
    found = summarise(rows)
    assert (found.rows, found.skipped, found.window_s) == (5, 0, 60)
    assert float(found.options["in"]) == 100
    assert float(found.options["rate"]) == pytest.approx(3 / 60, rel=1e-3)
    assert "reuse" not in found.options


def test_rows_without_lengths_are_counted_and_told() -> None:
    found = summarise([{"in": "5", "out": "5"}, {"in": "", "out": "5"}, {"in": "5"}, {"in": "inf", "out": "1"}])
    assert (found.rows, found.skipped) == (1, 3)
    assert "3 rows without readable lengths" in found.told
    assert "rate" not in found.options
    with pytest.raises(InvalidInput, match="no request"):
        summarise([{"a": 1}])


def test_blocks_that_were_seen_before_are_reused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"timestamp": t * 1000, "input_length": 1024, "output_length": 7, "hash_ids": [0, t]} for t in range(4)]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\nnonsense\n", encoding="utf-8")
    found = read_requests(str(path))
    assert (found.rows, found.skipped) == (4, 1)
    assert float(found.options["reuse"]) == pytest.approx(3 * 512 / 4096, rel=1e-3)
    assert float(found.options["rate"]) == pytest.approx(4 / 3, rel=1e-3)


def test_reuse_is_counted_in_order_of_arrival_and_by_the_size_of_the_cache() -> None:
    rows = [
        {"time": t, "in": 2048, "out": 1, "hash_ids": ids}
        for t, ids in ((3, [1, 5, 6, 7]), (1, [1, 2, 3, 4]), (2, [9] * 4))
    ]
    found = summarise(rows)
    assert float(found.options["reuse"]) == pytest.approx(512 / (3 * 2048), rel=1e-3)
    assert found.blocks[0] == [1, 2, 3, 4]
    sizes = found.reuse_by_cache((512, 512 * 8))
    assert sizes[0][1] <= sizes[-1][1]
    assert found.reuse_by_cache((512 * 64, 512 * 128)) == ((512 * 64, pytest.approx(1 / 12)),)


def test_blocks_that_are_no_names_are_not_counted() -> None:
    found = summarise([{"in": 1024, "out": 1, "hash_ids": [[1], 2]}, {"in": 1024, "out": 1, "hash_ids": [1, 2]}])
    assert found.blocks == ()
    assert found.reuse_by_cache() == ()


def test_a_csv_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("prompt_tokens,completion_tokens\n10,20\n30,40\n", encoding="utf-8")
    assert read_requests(str(path)).options["out"] == "30"


def test_what_a_trace_says_can_be_asked() -> None:
    rows = [{"in": 12040 + i, "out": 3, "time": i / 7, "hash_ids": [0]} for i in range(10)]
    wants = read_wants(summarise(rows).options)
    assert wants.serving.mean_in == pytest.approx(12044.5, rel=1e-3)
    assert wants.serving.p95_in is not None
    assert wants.serving.reused_share > 0
