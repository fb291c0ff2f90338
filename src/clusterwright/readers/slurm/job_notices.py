"""What is said about jobs in accounting: which ends are failures, and how many jobs are named one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten

#: Jobs of which a notice each is written; of the others one says how many they are.
_MOST_NAMED: Final = 100
_LISTED: Final = 5
#: Ends that say something about cluster or job → what.
FAILURES: Final = {
    "NODE_FAIL": ("a node failed under them: caused by the infrastructure, not by the job", Weight.ERROR),
    "BOOT_FAIL": ("their nodes did not boot: caused by the infrastructure, not by the job", Weight.ERROR),
    "LAUNCH_FAILED": ("they could not be started on their nodes", Weight.ERROR),
    "OUT_OF_MEMORY": ("they exceeded the memory that they had asked for", Weight.WARNING),
    "TIMEOUT": ("they reached their time limit and did not finish", Weight.WARNING),
    "FAILED": ("the program ended with an error; exit code and the job's own log say why", Weight.WARNING),
}


class LimitedNotices:
    """Notices about single jobs: so many of a kind, and how many more there are."""

    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._said: dict[str, int] = {}
        self._weights: dict[str, Weight] = {}

    def notice(self, code: str, message: str, weight: Weight = Weight.WARNING, line: int = 0) -> None:
        """Say it about one more job."""
        self._said[code] = self._said.get(code, 0) + 1
        self._weights[code] = weight
        if self._said[code] <= _MOST_NAMED:
            self._run.notice(code, message, weight, line)

    def finish(self) -> None:
        """Say how many jobs were not named."""
        for code, count in self._said.items():
            if count > _MOST_NAMED:
                self._run.notice(code, f"{count - _MOST_NAMED:,} more jobs like these", self._weights[code])


def listed(names: Iterable[str]) -> str:
    """The first names, each once, and how many more there are."""
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - _LISTED} more" if len(unique) > _LISTED else ""
    return shorten(", ".join(unique[:_LISTED])) + more
