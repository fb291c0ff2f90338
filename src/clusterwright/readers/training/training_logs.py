"""Logs of training jobs: steps, throughput, loss, checkpoints, time-outs. Read line by line in bounded memory.

A run ends where the iteration goes back: the job was started again. Ranks that print the same step are counted once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from clusterwright.lib.hostlists import HostlistError, expand
from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.training.checkpoints import Checkpoints
from clusterwright.readers.training.failures import BEGINNING, Failures
from clusterwright.readers.training.step_lines import MAXTEXT, MEGATRON, NEMO_BAR, TITAN, read_step
from clusterwright.readers.training.steps import Step, Steps
from clusterwright.readers.values import quantity, read_number

_MEMORY: Final = re.compile(
    r"(?:\[Rank (?P<rank>\d{1,9})\] )?\(?after \d+ iterations\)? memory \(MB\) \| allocated: (?P<now>[\d.]+) \| "
    r"max allocated: (?P<most>[\d.]+)"
)
_FLOPS: Final = re.compile(r"Effective Tera Flops per GPU: ([\d.]+)")
_TIMERS: Final = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?time \(ms\)((?: \| [\w/ -]+: [\d.]+)+)")
_PHASES: Final = frozenset(
    {"forward", "backward", "forward-compute", "backward-compute", "forward-backward", "optimizer", "batch generator",
     "batch-generator"}
)  # fmt: skip
_VALIDATION: Final = re.compile(r"(?:valid|validation) loss at iteration (\d{1,12}) \|.{0,300}?lm loss value: (\S+)")
_START: Final = re.compile(r"\[before the start of training step\]|^\s*training \.\.\.\s*$|Training starts at step")
_NODES: Final = re.compile(r"(?:SLURM_(?:JOB_)?NODELIST=|is running .{0,200}?\()([\w.-]{1,60}\[[\d,-]{1,4000}\])")
_WORLD: Final = re.compile(r"\bworld_size[ .=:]+(\d{1,9})\b|using world size: (\d{1,9})\b")
_ELIDED: Final = re.compile(r"\s*(?:\[\.\.\.\]|\.\.\.|…)\s*")
#: Most starts of a job that are runs of their own, and most values in them.
_MOST_RUNS: Final = 200
_MOST_VALUES: Final = 500_000
_MOST_TIMERS: Final = 50_000
#: (what stands in every text that the form finds, form or None where that is enough, points)
_STRONG: Final = (
    ("iteration", MEGATRON, 96), (BEGINNING, None, 90), ("completed step", MAXTEXT, 95),
    ("train_step_timing in s", None, 92), ("Epoch ", NEMO_BAR, 60),
    ("reduced_train_loss=", re.compile(r"\bEpoch \d{1,9}:[^\n]{0,1000}?reduced_train_loss="), 92),
    ("Timeout at NCCL work:", None, 88), ("saving checkpoint at iteration", None, 75),
    ("ProcessGroupNCCL.cpp", None, 72), ("DistBackendError", None, 70), ("ncclSystemError", None, 70),
    ("ncclRemoteError", None, 70),
    (" arguments -", re.compile(r"^-+ arguments -+$", re.MULTILINE), 70),
    ("[deepspeed", None, 40), ("DeepSpeed", None, 40), ("[DEEPSPEED", None, 40), ("torch.distributed", None, 40),
    ("NCCL INFO ", re.compile(r"NCCL INFO [^\n]{0,300}?(?:Init START|nranks)"), 35),
)  # fmt: skip


def recognise(head: Head) -> int:
    """Sure by a line about a step, strong by the watchdog's."""
    found = TITAN.search(head.text) if "loss:" in head.text else None
    if found and re.search(r"\b(?:tps|wps): ", found[3]):
        return 95
    text = head.text
    score = max((n for hint, form, n in _STRONG if hint in text and (form is None or form.search(text))), default=0)
    if "tensor_model_parallel_size" in head.text and "micro_batch_size" in head.text:
        score = max(score, 94)
    return score


def read(source: Source) -> Sequence[Run]:
    """A run for every start of the job."""
    reader = _Reader()
    for line in source.lines():
        reader.take(line)
    reader.finish()
    if not reader.runs:
        raise Refused("neither a step of training nor a failure of a job")
    return reader.runs


class _Reader:
    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._held: Line | None = None
        self._values = 0
        self._left_out = 0
        self._begin()

    def _begin(self) -> None:
        self._builder = RunBuilder("training")
        self._steps = Steps(self._builder)
        self._checkpoints = Checkpoints()
        self._failures = Failures()
        self._expecting_start = False
        self._timers = 0
        self._memory: dict[str, tuple[float, int]] = {}
        self._seen_something = False

    def take(self, line: Line) -> None:
        """One more line; a time-out that is wrapped over two is joined."""
        if self._held is not None:
            held, self._held = self._held, None
            if held.prefix == line.prefix or not line.prefix:
                self._take(Line(held.number, held.text + line.text.strip("\n"), held.prefix))
                return
            self._take(held)
        if BEGINNING in line.text and "before timing out" not in line.text and len(line.text) < 10_000:
            self._held = line
            return
        self._take(line)

    def _take(self, line: Line) -> None:
        text, number = line.text, line.number
        step = read_step(text, number, lambda why: self._builder.reject(number, text, why))
        if step is not None:
            self._step(step)
            if BEGINNING in text:  # a progress bar has no end of line of its own
                self._failures.take(self._builder, text, number)
        elif _ELIDED.fullmatch(text) and self._steps.count:
            self._builder.missing("lines that were cut out of the middle")
        elif self._checkpoints.take(self._builder, text, number, self._steps.last):
            self._seen_something = True
        elif not self._other(text, number):
            self._failures.take(self._builder, text, number)

    def _step(self, step: Step) -> None:
        if step.iteration < self._steps.last:
            message = f"iteration {step.iteration} follows {self._steps.last}: the job was started again"
            self.finish()
            self._builder.notice("started-again", message, Weight.WARNING, step.line)
            self._expecting_start = True
        first = self._steps.count == 0
        step.starting = first and (self._expecting_start or step.iteration <= 1)
        self._steps.add(step)

    def _other(self, text: str, number: int) -> bool:
        """Lines beside the steps; whether it was one."""
        builder = self._builder
        if _START.search(text):
            self._expecting_start = True
        elif "memory (MB)" in text:
            for memory in _MEMORY.finditer(text):
                self._keep_memory(memory["rank"] or "", memory["most"], number)
        elif (found := _FLOPS.search(text)) and self._steps.current is not None:
            value = read_number(found[1].rstrip("."))
            kept = value if isinstance(value, NoValue) else quantity(value, "TFLOP/s")
            self._steps.current.values.setdefault("tflops_per_gpu", kept)
        elif found := _TIMERS.match(text):
            self._keep_timers(found[1], number)
        elif found := _VALIDATION.search(text):
            builder.observe("validation_loss", read_number(found[2]), (("iteration", found[1]),), number)
        elif found := _NODES.search(text):
            self._keep_nodes(found[1])
        elif (found := _WORLD.search(text)) and "ranks" not in builder.conditions():
            builder.condition("ranks", found[1] or found[2])
        else:
            return False
        return True

    def _keep_memory(self, rank: str, text: str, number: int) -> None:
        value = read_number(text.rstrip("."))
        if isinstance(value, float) and (rank in self._memory or len(self._memory) < 4096):
            before = self._memory.get(rank, (0.0, number))
            self._memory[rank] = max(before, (value, number))

    def _keep_timers(self, text: str, number: int) -> None:
        step = self._steps.current
        for cell in text.split(" | "):
            phase, _, value = cell.strip().partition(": ")
            if phase == "save-checkpoint":
                self._checkpoints.take(self._builder, f"save-checkpoint: {value} checkpoint", number, self._steps.last)
            elif phase in _PHASES and step is not None and self._timers < _MOST_TIMERS:
                self._timers += 1
                subject = (("iteration", str(step.iteration)), ("phase", phase))
                found = read_number(value)
                kept = found if isinstance(found, NoValue) else quantity(found, "ms")
                self._builder.observe("phase_time", kept, subject, number)
        if self._timers >= _MOST_TIMERS:
            self._builder.missing("times of phases of later steps")

    def _keep_nodes(self, text: str) -> None:
        try:
            names = expand(text)
        except HostlistError:
            return
        if "nodes" not in self._builder.conditions():
            self._builder.condition("nodes", text[:300])
            self._builder.condition("node_count", str(len(names)))

    def finish(self) -> None:
        """End the run that is being read."""
        if self._held is not None:
            held, self._held = self._held, None
            self._take(held)
        builder, failed = self._builder, self._failures
        if self._steps.count or self._seen_something or failed.any or not builder.bare:
            self._checkpoints.finish(builder, failed.killed_line)
            failed.finish(builder)
            self._steps.finish()
            for rank, (value, number) in self._memory.items():
                subject = (("rank", rank),) if rank else ()
                builder.observe("memory_max", quantity(value, "MiB"), subject, number)
            if self._memory:
                builder.notice("unit-label", "Megatron prints MiB under the label MB", Weight.INFO)
            if not self._steps.count:
                builder.missing("steps: the log reports none")
            self._add(builder.build())
        self._begin()

    def _add(self, run: Run) -> None:
        self._values += len(run.observations)
        if not self.runs or (len(self.runs) < _MOST_RUNS and self._values <= _MOST_VALUES):
            self.runs.append(run)
            return
        self._left_out += 1
        last = self.runs[-1]
        kept = last.missing[:-1] if self._left_out > 1 else last.missing
        self.runs[-1] = replace(last, missing=(*kept, f"{self._left_out:,} later starts of the job"))


TRAINING: Final = Reader(
    "training-log", "training logs: Megatron, DeepSpeed, torchtitan, NeMo, MaxText; NCCL time-outs", recognise, read
)
