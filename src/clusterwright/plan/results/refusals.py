"""What is not in a plan and why, and what in it does not hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unplanned:
    """Something that could not be planned.

    Args:
        subject: dotted name of what is missing from the plan (`workloads.chat.memory`).
        reason: one sentence.
        missing: paths in the file, or catalogue entries, that would allow it.
    """

    subject: str
    reason: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Misfit:
    """Something that was planned and does not hold.

    Args:
        subject: dotted name (`workloads.chat.memory`).
        path: path in the file whose change would help most.
        message: what does not hold, with the numbers.
    """

    subject: str
    path: str
    message: str
