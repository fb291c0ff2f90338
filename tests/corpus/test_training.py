"""Public operator files of training: the conclusions that a reader must reach."""

from __future__ import annotations

import pytest

from builders.corpus import FOLDER, check_corpus, found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Outcome, Run, Transcript, Weight


def amounts(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [round(v.to(unit), 4) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def message(run: Run, code: str) -> str:
    return next(n.message for n in run.notices if n.code == code)


def only(transcript: Transcript, outcome: Outcome = Outcome.READ) -> Run:
    assert transcript.outcome is outcome, (transcript.refusal, [run.missing for run in transcript.runs])
    (run,) = transcript.runs
    return run


def three_steps(transcript: Transcript) -> None:
    run = only(transcript)
    assert amounts(run, "step_time", "s") == [121.8998, 125.9124, 123.9078]
    assert amounts(run, "tflops_per_gpu", "TFLOP/s") == [41.94, 40.6, 41.26]
    assert amounts(run, "memory_max", "MiB") == [26118.2295]
    assert amounts(run, "phase_time", "s", iteration="1", phase="forward") == [35.6509]
    assert amounts(run, "phase_time", "s", iteration="1", phase="backward") == [85.8619]


def one_slow_window(transcript: Transcript) -> None:
    run = only(transcript)
    (start,) = found(run, "step_time", phase="start")
    assert dict(start.subject)["iteration"] == "10"
    assert amounts(run, "step_time_median", "s") == [1.3806]
    assert "iteration 110 took 1.564 s, 13% above" in message(run, "slow-step")
    assert values(run, "skipped_iterations", iteration="10") == [10.0]
    assert "skipped-iterations" in codes(run)
    assert len(values(run, "memory_max")) == 16


def seconds(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    times = amounts(run, "step_time", "s")
    assert (min(times), max(times)) == (105.9, 107.53)
    rates = amounts(run, "sample_rate", "sample/s")
    assert all(19 < rate < 19.4 for rate in rates)
    assert "loss-jump" in codes(run)


def forty_eight_nodes(transcript: Transcript) -> None:
    run = only(transcript)
    assert amounts(run, "step_time", "s", iteration="45000") == [111]
    assert amounts(run, "sample_rate", "sample/s") == [18.451]
    assert amounts(run, "tflops_per_gpu", "TFLOP/s") == [141.26]
    assert values(run, "validation_loss") == [2.327091]
    assert run.condition("node_count") == "48"


def per_millisecond(transcript: Transcript) -> None:
    run = only(transcript)
    assert [round(rate, 2) for rate in amounts(run, "sample_rate", "sample/s")[:2]] == [3.57, 4.84]
    assert "millisecond" in message(run, "rate-contradicts")
    assert "iteration 17060 took 573.1 s, 35% above" in message(run, "slow-step")
    assert "2.665 to 4.374" in message(run, "loss-jump")


def divergence(transcript: Transcript) -> None:
    run = only(transcript)
    assert "3.317 to 7.268 at iteration 8741" in message(run, "loss-jump")
    times = amounts(run, "step_time", "s")
    assert (round(min(times)), round(max(times))) == (59, 62)
    assert "slow-step" not in codes(run)


def lost_checkpoint(transcript: Transcript) -> None:
    run = only(transcript)
    assert [round(t, 1) for t in amounts(run, "step_time", "s")] == [76.0, 75.3, 75.2, 75.2, 74.5]
    assert dict(found(run, "step_time", phase="start")[0].subject)["iteration"] == "1"
    assert values(run, "checkpoint", iteration="5") == ["started", "failed"]
    assert {"checkpoint-not-saved", "processes-killed"} <= codes(run)


def nothing_but_skips(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert amounts(run, "step_time", "s") == [255.9405, 243.4383, 243.3444]
    assert values(run, "skipped_iterations") == [1.0, 1.0, 1.0]
    assert values(run, "loss") == []
    assert "no-useful-work" in codes(run)


def start_up_hang(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    (timeout,) = found(run, "collective_timeout")
    assert timeout.subject == (("rank", "6"), ("sequence", "2"), ("operation", "all-reduce"), ("elements", "1"))
    assert amounts(run, "collective_timeout", "ms") == [600050]
    assert "start-up-hang" in codes(run)


def shared_memory(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    first = next(n for n in run.notices if n.weight is Weight.ERROR)
    assert first.code == "shared-memory-too-small"
    assert "shared-memory-too-small" in message(run, "nccl-system-error")


def hang(transcript: Transcript) -> None:
    run = only(transcript, Outcome.PARTLY)
    assert values(run, "timed_out_collective", rank="3") == [32.0]
    assert values(run, "last_completed_collective", rank="3") == [31.0]
    assert len(found(run, "collective_timeout")) == 1
    assert {"desynchronised", "collective-timeout"} <= codes(run)


def incomplete(transcript: Transcript) -> None:
    run = only(transcript)
    assert transcript.kind == "checkpoint-listing"
    assert values(run, "checkpoint_complete", checkpoint="checkpoint_last") == [False]
    assert values(run, "checkpoint_complete", checkpoint="checkpoint_23_22750") == [False]
    assert {"zero-size-shard", "short-shard", "temporary-file"} <= codes(run)


EXPECTED = {
    "training-log/001-megatron-16nodes-2021.log": three_steps,
    "training-log/002-megatron-4nodes-interleaved-ranks.log": one_slow_window,
    "training-log/004-bigscience-bloom-176b-default7.log": seconds,
    "training-log/006-bigscience-bloom-eval-and-save.log": forty_eight_nodes,
    "training-log/007-bigscience-step-time-573-seconds.log": per_millisecond,
    "training-log/008-bigscience-tr8-instability.log": divergence,
    "training-log/009-superbench-megatron-deepspeed.log": lost_checkpoint,
    "training-log/010-awsome-gpt3-k8s.log": nothing_but_skips,
    "training-log/013-nccl-watchdog-sglang.log": start_up_hang,
    "training-log/014-nccl-system-error-vllm.log": shared_memory,
    "training-log/016-nccl-multinode-crash.log": hang,
    "training-log/017-checkpoint-listing-zero-size-shards.txt": incomplete,
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the public operator files are not here")
def test_every_file_gives_the_conclusion_that_it_must() -> None:
    assert check_corpus(EXPECTED, "training-log") == len(EXPECTED)
