"""Training logs of other tools and ages: progress bars of NeMo, losses that are no number, words of newer watchdogs."""

from clusterwright.model.observations import NoValue, Run
from clusterwright.readers.reading import read_output


def read(text: str) -> Run:
    transcript = read_output([text.encode()], name="pasted.txt")
    assert transcript.refusal is None, transcript.refusal
    assert transcript.kind == "training-log"
    (run,) = transcript.runs
    return run


def values(run: Run, name: str, **subject: str) -> list[object]:
    return [o.value for o in run.observations if o.name == name and subject.items() <= dict(o.subject).items()]


def said(run: Run, code: str) -> str:
    return next(n.message for n in run.notices if n.code == code)


def watchdog(rank: int, number: int = 40) -> str:
    work = f"WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=1000)"
    said = f"Watchdog caught collective operation timeout: {work} ran for 1001 milliseconds before timing out."
    return f"[E ProcessGroupNCCL.cpp:1] [Rank {rank}] {said}\n"


def bar(left: str) -> str:
    return f"Epoch 0:  1%| | 12/90 [0:10:00<0:50:00, {left}]"


def test_takes_the_step_of_a_bar_where_nemo_rounds_it():
    cells = "v_num=0-5, reduced_train_loss=2.50, global_step=4.01e+3, train_step_timing in s=0.5"
    run = read(f"Epoch 0: :   3%|▎ | 4012/9000 [1:42:42<55:37:46, {cells}]\n")
    assert str(values(run, "step_time", iteration="4012")[0]) == "0.5 s"
    assert values(run, "loss", iteration="4012") == [2.5]


def test_the_rate_of_a_bar_is_smoothed_and_no_step_time():
    run = read(bar("50.0s/it, loss=3.1, v_num=, reduced_train_loss=3.0, global_step=11.0") + "\n")
    assert str(values(run, "step_time_smoothed", iteration="11")[0]) == "50 s"
    assert not values(run, "step_time")


def test_reads_the_step_and_the_timeout_of_one_line():
    run = read(bar("2.00it/s, reduced_train_loss=3.0, global_step=11.0") + watchdog(0))
    assert str(values(run, "step_time_smoothed")[0]) == "0.5 s"
    assert values(run, "collective_timeout", rank="0")


def test_says_from_when_on_the_loss_is_no_number():
    row = "[titan] - root - INFO - step: {} loss: {}  grad_norm: 1.0  memory: 1.00GiB(1.00%)  tps: 10\n"
    run = read(row.format(7, "2.5") + row.format(8, "nan") + row.format(9, "nan"))
    assert isinstance(values(run, "loss", iteration="8")[0], NoValue)
    assert said(run, "loss-not-a-number") == "the loss is no number in 2 of 3 steps, first at iteration 8 (nan)"


def test_lightning_begins_a_checkpoint_and_never_says_that_it_is_saved():
    said = "'val_loss' reached 7.0 (best 7.0), saving model to '/x/step=12.ckpt' as top 3"
    run = read(bar("2.0it/s, reduced_train_loss=3.0, global_step=12.0") + f"\nEpoch 0, global step 12: {said}\n")
    assert values(run, "checkpoint_begun", iteration="12") == [True]
    assert not values(run, "checkpoint")
    assert "checkpoint-not-saved" not in {n.code for n in run.notices}
    assert "end-not-reported" in {n.code for n in run.notices}


def test_names_the_rank_that_did_not_wait():
    run = read("".join(watchdog(rank) for rank in (0, 1, 3)))
    assert "only 2 did not report" in said(run, "rank-did-not-wait")


def test_two_ranks_alone_do_not_point_at_others():
    assert "rank-did-not-wait" not in {n.code for n in read(watchdog(2) + watchdog(3)).notices}


def test_says_which_rank_is_behind():
    assert said(read(watchdog(0, 90) + watchdog(7, 41)), "ranks-apart").startswith(
        "rank 7 waits in collective #41, rank 0"
    )


def test_reads_the_last_collective_in_the_words_of_newer_watchdogs():
    newer = (
        "[PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 40"
        ", last enqueued NCCL work: 43, last completed NCCL work: 39.\n"
    )
    newest = (
        "[PG ID 0 PG GUID 0 Rank 2] failure detected by watchdog at work sequence id: 40 PG status: "
        "last enqueued work: 43, last completed work: 38\n"
    )
    run = read(watchdog(1) + newer + newest)
    assert values(run, "last_completed_collective", rank="1") == [39.0]
    assert values(run, "last_completed_collective", rank="2") == [38.0]
