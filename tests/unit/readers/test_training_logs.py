"""Training logs: time by its label, warm-up apart, skipped steps, checkpoints, time-outs, causes, bounded memory."""

from __future__ import annotations

from pathlib import Path

from builders.corpus import found, values
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Outcome, Run, Transcript, Weight
from clusterwright.readers.reading import read_output
from clusterwright.readers.training import steps, training_logs

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "training-log"
MEGATRON = (FIXTURES / "megatron.log").read_text()


def row(iteration: int, unit: str = "ms", time: float = 10000.0, **more: str) -> str:
    extra = "".join(f" {key.replace('_', ' ')}: {value} |" for key, value in more.items())
    return (
        f" iteration {iteration:8}/     900 | consumed samples: 9| elapsed time per iteration ({unit}): {time} |{extra}"
        " number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def read(text: str) -> Transcript:
    transcript = read_output([text.encode()])
    assert transcript.kind == "training-log", transcript.refusal
    return transcript


def only(text: str) -> Run:
    (run,) = read(text).runs
    return run


def codes(run: Run) -> set[str]:
    return {notice.code for notice in run.notices}


def amount(run: Run, name: str, unit: str, **subject: str) -> list[float]:
    return [round(v.to(unit), 6) for v in values(run, name, **subject) if isinstance(v, Quantity)]


def test_time_counts_by_its_label() -> None:
    assert amount(only(row(7, "ms", 106000.0)), "step_time", "s") == [106]
    assert amount(only(row(7, "s", 106.0)), "step_time", "s") == [106]
    run = only(row(7, "min", 2.0) + row(8))
    assert isinstance(values(run, "step_time")[0], NoValue)


def test_figures_of_a_megatron_row() -> None:
    run = only(MEGATRON)
    assert amount(run, "step_time", "s", iteration="2") == [10]
    assert amount(run, "tflops_per_gpu", "TFLOP/s", iteration="2") == [201]
    assert values(run, "loss", iteration="2") == [10.5]
    assert amount(run, "sample_rate", "sample/s", iteration="2") == [6.4]
    assert run.condition("ranks") == "16"


def test_the_first_step_is_apart_and_slow_steps_are_named() -> None:
    run = only(MEGATRON)
    (first,) = found(run, "step_time", phase="start")
    assert dict(first.subject)["iteration"] == "1"
    assert {"slow-start", "slow-step"} <= codes(run)
    assert amount(run, "step_time_median", "s") == [10.05]


def test_memory_of_interleaved_ranks_is_kept_by_rank() -> None:
    run = only(MEGATRON)
    assert amount(run, "memory_max", "MiB", rank="0") == [2000.5]
    assert amount(run, "memory_max", "MiB", rank="1") == [2100.5]


def test_a_torn_row_is_no_step() -> None:
    transcript = read(row(1) + row(2)[:90] + "\n" + row(3))
    (run,) = transcript.runs
    assert [dict(o.subject)["iteration"] for o in found(run, "step_time")] == ["1", "3"]
    assert run.rejected == 1
    assert transcript.outcome is Outcome.PARTLY


def test_a_step_that_several_ranks_print_is_counted_once() -> None:
    run = only("".join(f"[default{rank}]:{row(step)}" for step in (4, 5) for rank in (0, 7)))
    assert len(values(run, "step_time")) == 2


def test_an_iteration_that_goes_back_begins_a_new_run() -> None:
    one, two = read(row(40) + row(45) + row(41)).runs
    assert len(values(one, "step_time")) == 2
    assert "started-again" in codes(two)


def test_starts_beyond_what_is_kept_are_counted(monkeypatch) -> None:
    monkeypatch.setattr(training_logs, "_MOST_RUNS", 2)
    runs = read("".join(row(40) + row(45) for _ in range(6))).runs
    assert len(runs) == 2
    assert runs[-1].missing == ("4 later starts of the job",)


def test_a_rate_per_millisecond_is_recognised_by_batch_and_time() -> None:
    run = only(row(7, "ms", 500000.0, global_batch_size="2000", samples_per_second="0.004"))
    assert amount(run, "sample_rate", "sample/s") == [4]
    (notice,) = [n for n in run.notices if n.code == "rate-contradicts"]
    assert "millisecond" in notice.message


def test_skipped_steps_are_counted_and_all_of_them_are_no_work() -> None:
    text = "".join(row(i).replace("skipped iterations:   0", "skipped iterations:   1") for i in (1, 2, 3))
    run = only(text)
    assert {"skipped-iterations", "no-useful-work"} <= codes(run)
    assert "no-useful-work" not in codes(only(text + row(4)))


def test_a_loss_that_jumps_or_ends_is_named() -> None:
    run = only("".join(row(i, lm_loss=loss) for i, loss in enumerate(("2.0", "2.1", "4.5", "nan"), 5)))
    assert "loss-jump" in codes(run)
    assert isinstance(values(run, "loss", iteration="8")[0], NoValue)


def test_a_checkpoint_is_saved_only_when_the_log_says_so() -> None:
    run = only(MEGATRON)
    assert values(run, "checkpoint", iteration="4") == ["started", "saved"]
    assert values(run, "checkpoint", iteration="5") == ["started", "failed"]
    assert amount(run, "checkpoint_write", "ms", iteration="4") == [5300.2]
    (notice,) = [n for n in run.notices if n.code == "checkpoint-not-saved"]
    assert notice.weight is Weight.ERROR


def test_a_checkpoint_that_is_open_at_the_end_is_none() -> None:
    run = only(row(1) + "saving checkpoint at iteration       1 to /lake\n")
    assert values(run, "checkpoint") == ["started"]
    assert "checkpoint-not-saved" in codes(run)


def test_time_outs_say_rank_operation_and_what_completed_last() -> None:
    run = only(MEGATRON)
    (timeout,) = found(run, "collective_timeout")
    assert timeout.subject[:3] == (("rank", "3"), ("sequence", "900"), ("operation", "reduce-scatter"))
    assert values(run, "last_completed_collective") == [899]
    assert {"collective-timeout", "desynchronised"} <= codes(run)


def test_a_wrapped_time_out_is_joined_and_repeats_count_once() -> None:
    line = (
        "[rank6]:[E207 01:29:36.7 ProcessGroupNCCL.cpp:616] [Rank 6] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600050 milliseconds "
        "before timing out.\n"
    )
    wrapped = line.replace("NumelOut", "Nume\nlOut")
    run = only(wrapped + line)
    assert amount(run, "collective_timeout", "ms") == [600050]
    assert "start-up-hang" in codes(run)
    assert run.rejected == 0


def test_prose_about_a_time_out_is_no_torn_row() -> None:
    assert read("Training fails: Watchdog caught collective operation timeout\n" + row(1)).outcome is Outcome.READ


def test_a_cause_stands_before_its_consequence() -> None:
    run = only(
        "a:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START\n"
        "a:1:2 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 9 bytes\n"
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error\n"
    )
    names = [n.code for n in run.notices]
    assert names.index("shared-memory-too-small") < names.index("nccl-system-error")
    (consequence,) = [n for n in run.notices if n.code == "nccl-system-error"]
    assert "1 lines before" in consequence.message


def test_elided_lines_make_it_incomplete() -> None:
    assert read(row(1) + "[...]\n" + row(9)).outcome is Outcome.PARTLY


def test_torchtitan_nemo_and_maxtext_are_read() -> None:
    run = only((FIXTURES / "torchtitan.log").read_text())
    assert amount(run, "training_rate_per_gpu", "tokens/s", iteration="10") == [7250]
    assert amount(run, "tflops_per_gpu", "TFLOP/s", iteration="10") == [420.25]
    assert values(run, "checkpoint") == ["started", "saved"]
    assert amount(run, "checkpoint_write", "s") == [12.5]
    run = only((FIXTURES / "nemo.log").read_text())
    assert amount(run, "step_time", "s") == [6.5, 6.4]
    run = only("completed step: 5, seconds: 2.5, TFLOP/s/device: 300.5, Tokens/s/device: 9000.5, loss: 9.5\n")
    assert amount(run, "step_time", "s") == [2.5]
    assert amount(run, "training_rate_per_gpu", "tokens/s") == [9000.5]


def test_nodes_of_a_scheduler_line_are_counted() -> None:
    run = only(row(1) + "[x] PULSE: job is running for 1:00 (12 on 'p' partition (gpu-[01-03,05])\n")
    assert run.condition("node_count") == "4"


def test_flops_on_a_line_of_their_own_belong_to_the_step_before() -> None:
    run = only(row(1) + "Effective Tera Flops per GPU: 41.5 and total parameters 52.0 B\n")
    assert amount(run, "tflops_per_gpu", "TFLOP/s", iteration="1") == [41.5]


def test_a_log_behind_pages_of_trace_is_recognised() -> None:
    assert len(values(only("++ eval echo x\n" * 10_000 + row(1)), "step_time")) == 1


def test_steps_are_kept_within_bounds_over_the_whole_log(monkeypatch) -> None:
    monkeypatch.setattr(steps, "MOST_STEPS", 100)
    transcript = read_output(row(i).encode() for i in range(1, 2001))
    (run,) = transcript.runs
    kept = [int(dict(o.subject)["iteration"]) for o in found(run, "step_time")]
    assert len(kept) <= 100
    assert kept[-1] > 1900
    assert any("2,000" in part for part in run.missing)
