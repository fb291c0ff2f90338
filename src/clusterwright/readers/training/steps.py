"""Steps of a training run, kept in bounded memory: beyond a number of them every second one is left out.

Names: `step_time`, `sample_rate`, `training_rate` (tokens/s of the whole job), `training_rate_per_gpu`,
`tflops_per_gpu`, `loss`, `grad_norm`, `skipped_iterations` (since the step printed before), subject `iteration`, and
`phase` = `start` for the first step after a start, which also compiles, allocates and warms up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Labels, Lack, NoValue, Value, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import quantity, unreadable

#: Most steps of a run that are kept one by one.
MOST_STEPS: Final = 20_000
#: A step this much slower than the median of its run is named; our default.
SLOW: Final = 1.10
#: A loss this many times the lowest of the steps before it is a jump; our default.
JUMP: Final = 1.4
_BEFORE: Final = 5
_NAMED: Final = 5
_UNIT_MIXED: Final = 100.0
_RATE_AGREES: Final = 0.1


@dataclass(slots=True)
class Step:
    """What one line says about a step (or about the steps since the line before)."""

    iteration: int
    line: int
    values: dict[str, Value] = field(default_factory=dict)
    batch: float | None = None
    sequence: float | None = None
    starting: bool = False

    def number(self, name: str) -> float | None:
        """Magnitude in base units, None without a value."""
        value = self.values.get(name)
        if isinstance(value, Quantity):
            return value.value
        return value if isinstance(value, float) else None


class Steps:
    """The steps of one run."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._kept: list[Step] = []
        self._stride = 1
        self.count = 0
        self.last = -1
        self._last_step: Step | None = None
        self._skipped = self._nans = 0.0
        self._idle = 0
        self._first_skipped = 0
        self._losses: list[float] = []
        self._jumps: list[str] = []
        self._jump_count = 0
        self._contradictions = 0
        self._numberless = 0
        self._first_numberless = ""

    @property
    def current(self) -> Step | None:
        """The step of the last line."""
        return self._last_step

    def add(self, step: Step) -> None:
        """One more step; a line that another rank printed about the same step is counted once."""
        if self._last_step is not None and step.iteration == self._last_step.iteration:
            return
        window = step.iteration - self.last if self.last >= 0 else step.iteration
        self._watch(step, window)
        self._correct_rate(step)
        if self.count % self._stride == 0:
            self._kept.append(step)
            if len(self._kept) > MOST_STEPS:
                self._kept = self._kept[::2]
                self._stride *= 2
        self.count += 1
        self.last = step.iteration
        self._last_step = step

    def _watch(self, step: Step, window: int) -> None:
        skipped = step.number("skipped_iterations") or 0.0
        if skipped:
            self._first_skipped = self._first_skipped or step.iteration
            self._skipped += skipped
            self._idle += skipped >= max(window, 1)
        self._nans += step.number("nan_iterations") or 0.0
        loss = step.number("loss")
        if loss is None:
            if isinstance(value := step.values.get("loss"), NoValue) and value.lack is Lack.UNREADABLE:
                self._numberless += 1
                self._first_numberless = self._first_numberless or f"{step.iteration} ({value.text})"
            return
        lowest = min(self._losses, default=loss)
        if self._losses and lowest > 0 and loss > JUMP * lowest:
            self._jump_count += 1
            if len(self._jumps) < _NAMED:
                self._jumps.append(f"{lowest:.4g} to {loss:.4g} at iteration {step.iteration}")
        self._losses = [*self._losses[-_BEFORE + 1 :], loss]

    def _correct_rate(self, step: Step) -> None:
        """Samples per second from the batch and the time; a printed rate that contradicts them is not kept."""
        seconds = step.number("step_time")
        if seconds is None or not step.batch or seconds <= 0:
            return
        computed, printed = step.batch / seconds, step.number("sample_rate")
        if printed is None or abs(printed - computed) > _RATE_AGREES * computed:
            if printed is not None:
                message = f"samples per second: {printed:g} contradicts {step.batch:g} samples in {seconds:.4g} s"
                if printed * _UNIT_MIXED < computed:
                    message += "; it counts per millisecond"
                message += f": {computed:.3g} samples/s"
                self._contradictions += 1
                if self._contradictions == 1:
                    self._builder.notice("rate-contradicts", message, Weight.ERROR, step.line)
            step.values["sample_rate"] = quantity(computed, "sample/s")
        if step.sequence and "training_rate" not in step.values:
            step.values["training_rate"] = quantity(computed * step.sequence, "tokens/s")

    def finish(self) -> None:
        """Keep the observations and say what the steps show."""
        for step in self._kept:
            labels: Labels = (("iteration", str(step.iteration)), *((("phase", "start"),) if step.starting else ()))
            for name, value in step.values.items():
                self._builder.observe(name, value, labels, step.line)
        if self._stride > 1:
            self._builder.missing(f"steps: {len(self._kept):,} of {self.count:,} are kept one by one")
        self._say_slow()
        self._say_skipped()
        if self._jump_count:
            message = f"the loss jumps {self._jump_count} times: {'; '.join(self._jumps)}; first look at data and rate"
            self._builder.notice("loss-jump", message, Weight.WARNING)
        if self._contradictions > 1:
            message = f"samples per second contradict batch and time in {self._contradictions} of {self.count} steps"
            self._builder.notice("rates-contradict", message, Weight.ERROR)
        if self._numberless:
            message = f"the loss is no number in {self._numberless} of {self.count} steps, first at iteration"
            self._builder.notice("loss-not-a-number", f"{message} {self._first_numberless}", Weight.ERROR)
        if self._nans:
            self._builder.notice("nan-iterations", f"{self._nans:.0f} iterations gave NaN", Weight.ERROR)

    def _say_slow(self) -> None:
        timed = [(s, t) for s in self._kept if (t := s.number("step_time")) is not None]
        steady = [t for s, t in timed if not s.starting]
        if len(steady) < 3:
            return
        middle = median(steady)
        self._builder.observe("step_time_median", quantity(middle, "s"), (("steps", str(len(steady))),))
        slow = [(s, t) for s, t in timed if t > SLOW * middle]
        for step, seconds in slow[:_NAMED]:
            kind = "slow-start" if step.starting else "slow-step"
            message = f"iteration {step.iteration} took {seconds:.4g} s, {seconds / middle - 1:.0%} above the median"
            weight = Weight.INFO if step.starting else Weight.WARNING
            self._builder.notice(kind, f"{message} of {middle:.4g} s", weight, step.line)
        if len(slow) > _NAMED:
            self._builder.notice("slow-steps", f"{len(slow)} of {len(timed)} steps are slow", Weight.WARNING)

    def _say_skipped(self) -> None:
        if not self._skipped:
            return
        message = f"{self._skipped:.0f} iterations were skipped (loss scale), first at iteration {self._first_skipped}"
        self._builder.notice("skipped-iterations", message, Weight.WARNING)
        if self._idle and self._idle == self.count:
            message = "every iteration was skipped: time passed and no useful work was done"
            self._builder.notice("no-useful-work", message, Weight.ERROR)


def read_loss(text: str, value: float | NoValue) -> Value:
    """A loss; NaN and Inf are unreadable, with what they mean."""
    if text.strip().lower() in ("nan", "inf", "-inf", "-nan"):
        return unreadable(text, "the loss is no number any more")
    return value
