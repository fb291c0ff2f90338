"""Machines in the order in which they answer a question, best first."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar


class Judged(Protocol):
    """A machine with a verdict: holds, late, too big, impossible or unknown."""

    @property
    def verdict(self) -> str:
        """One word."""


Fit = TypeVar("Fit", bound=Judged)


class Ranked(Generic[Fit]):
    """An answer over several machines, of which the first is the best."""

    fits: tuple[Fit, ...]

    @property
    def first(self) -> Fit:
        """The best machine."""
        return self.fits[0]

    @property
    def holds(self) -> bool:
        """Whether any machine holds."""
        return self.first.verdict == "holds"

    @property
    def unknown(self) -> bool:
        """Whether of the best machine nothing can be said."""
        return self.first.verdict == "unknown"
