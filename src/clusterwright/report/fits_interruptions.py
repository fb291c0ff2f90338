"""What checkpoints and failures take of a training run, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

from clusterwright.plan.fitting.interruptions import expected_failures
from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.trainings import TrainingAnswer
from clusterwright.report.fits_words import banded, number, share_words, span


def interruption_lines(answer: TrainingAnswer, fit: TrainingFit) -> Iterator[str]:
    """Checkpoints, failures, goodput and spare nodes, each with its band and origin."""
    own, lost, run = answer.wants.training, fit.lost, fit.lost.run
    assert own is not None

    def origin(option: str) -> str:
        found = answer.wants.origin(option)
        if answer.audience == "customer" and found == "profile":
            found = "assumed"
        return "" if found == "stated" else f" [{found}]"

    rate = run.checkpoint_bytes / run.write_s / 1e9
    yield (
        f"a checkpoint of {_bytes(run.checkpoint_bytes)} every {span(run.interval_s)} (Daly's interval) stops training "
        f"for {span(run.stall_s)}, while states are copied to the host, and is on storage after {span(run.write_s)} "
        f"at {number(rate)} GB/s{origin('checkpoint-rate')}"
    )
    if not math.isfinite(lost.mttf_h.value):
        yield "nothing fails, as stated"
    else:
        count = None if fit.days is None else expected_failures(lost, fit.days.value)
        often = "" if count is None else f", {_times(count)}"
        yield (
            f"the job fails every {banded(lost.mttf_h)} h{often}: {lost.failures:g} failures per 1,000 node-days"
            f"{_rate(answer, lost.origin, origin('failures'))}; each takes {span(own.restart_s)}{origin('restart')} "
            "and half an interval"
        )
    yield f"goodput {share_words(lost.goodput)}: useful time ÷ all time, as a process of such failures has it"
    yield _spares(answer, fit, origin("repair"))


def _times(count: float) -> str:
    """So many failures of a run in words; below one, how likely any is."""
    if count >= 1:
        return f"{number(count)} times in the run"
    return f"in this run with a probability of {_percent(-math.expm1(-count))}"


def _rate(answer: TrainingAnswer, origin: str, said: str) -> str:
    if origin != "assumed":
        return said
    doubt = "; jobs of 1,024 GPUs were seen to fail 3.6 × as often" if answer.audience == "internal" else ""
    return f" [assumed: RSC-1, arXiv:2410.21680{doubt}]"


def _spares(answer: TrainingAnswer, fit: TrainingFit, repair: str) -> str:
    own, lost, nodes = answer.wants.training, fit.lost, fit.chosen.nodes
    assert own is not None
    stops = f"a failing node stops the job, {fit.chosen.gpus:,} GPU{'s' * (fit.chosen.gpus != 1)}"
    many = "no number of spare nodes keeps" if lost.needed is None else f"{_nodes(lost.needed)} to spare keep"
    many = f"{many}{'s' * (lost.needed == 1)}" if lost.needed != 0 else "no spare node is needed to keep"
    needed = f"{many} {_nodes(nodes)} at work {_percent(lost.target)} of the time"
    back = f"repairs of {span(own.repair_s)}{repair}"
    if lost.spares is None:
        return f"{stops}; taken is that another takes its place at once: {needed}, with {back} (--survive)"
    covered = f"no node is missing {_percent(lost.covered)} of the time"
    spare = f"{_nodes(lost.spares)} to spare" if lost.spares else "none to spare"
    return f"{stops}; with {spare} and {back} {covered}; {needed}"


def _nodes(count: int) -> str:
    return f"{count:,} node{'s' * (count != 1)}"


def _percent(share: float) -> str:
    return f"{share * 100:.3g}%" if share < 0.99 else f"{share * 100:.4g}%"


def _bytes(value: float) -> str:
    return f"{number(value / 1e12)} TB" if value >= 1e12 else f"{number(value / 1e9)} GB"
