"""Checkpoints that a training log begins and ends. One that was begun and not reported as saved is none."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.values import quantity

_BEGUN: Final = re.compile(r"\bsaving checkpoint at iteration\s+(\d{1,12}) to\b", re.IGNORECASE)
_SAVED: Final = re.compile(r"successfully saved checkpoint (?:at|from) iteration\s+(\d{1,12})\b", re.IGNORECASE)
_TITAN_BEGUN: Final = re.compile(r"Saving (?:the|a full) checkpoint\b(?:.{0,200}?\bstep (\d{1,12}))?")
_TITAN_SAVED: Final = re.compile(r"Finished saving the checkpoint .{0,200}?in ([\d.]+) seconds")
_TIME: Final = re.compile(r"\bsave-checkpoint(?: \.+)?\s*:\s*(?:\(([\d.]+), ([\d.]+)\)|([\d.]+))")
_LOADED: Final = re.compile(r"successfully loaded checkpoint from (\S{1,200}).{0,200}? at iteration\s+(\d{1,12})")
_NONE: Final = re.compile(r"will not load any checkpoints and will start from random")
_LIGHTNING: Final = re.compile(r"\bglobal step (\d{1,12}): .{0,300}?saving model to ")
_MOST: Final = 20_000


class Checkpoints:
    """Checkpoints of one run."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._count = 0
        self._last = ""

    def take(self, builder: RunBuilder, text: str, number: int, iteration: int) -> bool:
        """One more line; whether it was about a checkpoint.

        Args:
            iteration: of the last step, for lines that name none.
        """
        if "heckpoint" not in text and "saving model to" not in text:
            return False
        if found := _LIGHTNING.search(text):
            if self._keep(builder):
                builder.observe("checkpoint_begun", True, (("iteration", found[1]),), number)
            builder.notice("end-not-reported", "Lightning says when it begins a checkpoint, not when it is saved",
                           Weight.INFO)  # fmt: skip
            return True
        if found := _BEGUN.search(text):
            self._begin(builder, found[1], number)
        elif found := _SAVED.search(text):
            self._end(builder, found[1], number)
        elif found := _TITAN_SAVED.search(text):
            self._end(builder, self._last, number)
            self._time(builder, found[1], "s", number)
        elif found := _TITAN_BEGUN.search(text):
            self._begin(builder, found[1] or (str(iteration) if iteration >= 0 else ""), number)
        elif found := _TIME.search(text):
            self._time(builder, found[2] or found[3], "ms", number)
        elif found := _LOADED.search(text):
            builder.observe("checkpoint", "loaded", (("iteration", found[2]),), number)
        elif _NONE.search(text):
            builder.notice(
                "no-checkpoint-loaded", "no checkpoint was found: it starts from nothing", Weight.INFO, number
            )
        else:
            return False
        return True

    def _begin(self, builder: RunBuilder, iteration: str, number: int) -> None:
        self._last = iteration
        if iteration not in self._open and self._keep(builder):
            self._open[iteration] = number
            builder.observe("checkpoint", "started", (("iteration", iteration),), number)

    def _end(self, builder: RunBuilder, iteration: str, number: int) -> None:
        self._last = iteration
        self._open.pop(iteration, None)
        if self._keep(builder):
            builder.observe("checkpoint", "saved", (("iteration", iteration),), number)

    def _keep(self, builder: RunBuilder) -> bool:
        self._count += 1
        if self._count == _MOST + 1:
            builder.missing(f"checkpoints beyond the first {_MOST:,} events")
        return self._count <= _MOST

    def _time(self, builder: RunBuilder, text: str, unit: str, number: int) -> None:
        try:
            value = quantity(float(text), unit)
        except ValueError:
            return
        if self._keep(builder):
            builder.observe("checkpoint_write", value, (("iteration", self._last),), number)

    def finish(self, builder: RunBuilder, killed_line: int) -> None:
        """Say which were begun and not saved.

        Args:
            killed_line: at which the job was ended, 0 if it was not.
        """
        for iteration, number in list(self._open.items())[:100]:
            if killed_line > number:
                builder.observe("checkpoint", "failed", (("iteration", iteration),), killed_line)
                message = f"the checkpoint of iteration {iteration} was begun and the job then ended: there is none"
            else:
                message = f"the checkpoint of iteration {iteration} was begun and never reported as saved"
            builder.notice("checkpoint-not-saved", message, Weight.ERROR, number)
