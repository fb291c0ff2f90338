"""The one tree of exceptions.

    ClusterwrightError
    ├── InvalidInput        the user can fix it: bad file, flag, unit, name (exit code 2)
    ├── Unavailable         the world said no, a retry may help: port, engine, permission (exit code 2)
    └── Interrupted         stopped by a person or a signal, state is kept (exit code 130)

Expected outcomes (no placement found, requirement not measured) are values, never exceptions. Anything
outside this tree is a bug of ours.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's input something stands.

    Lines and columns count from 1; 0 means that the input has none (a flag, standard input's end).
    """

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: place, path in the document, what is wrong, what would be right."""

    place: Place
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.place}: {self.path}: " if self.path else f"{self.place}: "
        return where + self.message + (f" ({self.hint})" if self.hint else "")


class ClusterwrightError(Exception):
    """Root of everything raised on purpose."""


class InvalidInput(ClusterwrightError):
    """Input that its author can fix; carries every problem found, not only the first."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems: tuple[Problem, ...] = tuple(
            p if isinstance(p, Problem) else Problem(Place("input"), "", p) for p in problems
        )
        super().__init__("\n".join(str(p) for p in self.problems))


class Unavailable(ClusterwrightError):
    """Something outside (engine, file system, port) did not do its part; says what to try."""


class Interrupted(ClusterwrightError):
    """A person or a signal stopped the work; what was done so far is kept."""
