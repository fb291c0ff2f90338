"""Listings of checkpoints: empty and short shards, files that were never renamed, what a listing cannot say."""

from __future__ import annotations

from pathlib import Path

from builders.corpus import values
from clusterwright.model.observations import Lack, NoValue, Run
from clusterwright.readers.reading import read_output

SHARDS = (Path(__file__).parents[2] / "fixtures" / "readers" / "checkpoint-listing" / "shards.txt").read_text()


def only(text: str) -> Run:
    transcript = read_output([text.encode()])
    assert transcript.kind == "checkpoint-listing", transcript.refusal
    (run,) = transcript.runs
    return run


def row(name: str, size: int = 1000) -> str:
    return f"-rw-r--r-- 1 ops ops {size} Jan  2 10:00 {name}\n"


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def test_faults_of_one_checkpoint_do_not_touch_another() -> None:
    run = only(SHARDS)
    assert values(run, "checkpoint_complete", checkpoint="step_600") == [False]
    (value,) = values(run, "checkpoint_complete", checkpoint="step_500")
    assert isinstance(value, NoValue)
    assert value.lack is Lack.ABSENT
    assert {"zero-size-shard", "short-shard", "temporary-file", "checkpoint-incomplete"} <= codes(run)


def test_names_that_count_their_shards_prove_completeness() -> None:
    whole = "".join(row(f"model-0000{i}-of-00003.safetensors", 1000 + i) for i in (1, 2, 3))
    assert values(only(whole), "checkpoint_complete") == [True]
    assert "short-shard" not in codes(only(whole))
    run = only(whole.replace(row("model-00002-of-00003.safetensors", 1002), ""))
    assert values(run, "checkpoint_complete") == [False]
    assert "shards-missing" in codes(run)


def test_directories_of_a_recursive_listing_are_checkpoints_of_their_own() -> None:
    text = "./iter_10/mp_rank_00:\ntotal 8\n" + row("model_optim_rng.pt") + "\n./iter_20/mp_rank_00:\ntotal 8\n"
    run = only(text + row("model_optim_rng.pt", 0))
    assert values(run, "checkpoint_complete", checkpoint="./iter_20/mp_rank_00") == [False]
    assert isinstance(values(run, "checkpoint_complete", checkpoint="./iter_10/mp_rank_00")[0], NoValue)


def test_rounded_sizes_are_not_compared() -> None:
    text = "".join(
        row(f"a-shard{i}.pt").replace("1000", size) for i, size in enumerate(("1.5G", "1.5G", "1.5G", "1.4G"))
    )
    assert "short-shard" not in codes(only(text))
