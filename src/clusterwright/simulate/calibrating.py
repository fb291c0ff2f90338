"""When a replay may be believed: its waits against the real ones.

A replay decides by the declared policy, the site decided by its own, with priorities and holds that a trace does not
tell. Before anything is changed on a replay, its waits are therefore compared with those that the trace recorded.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far replayed waits may be from real ones: within either bound is good enough.

    The defaults are a choice: half of the real wait, or ten minutes, below which a wait is seldom planned for.

    Args:
        share: of the real value.
        least_s: that is always tolerated, s.
        fewest_jobs: a class with fewer jobs is shown and not judged.
    """

    share: float = 0.5
    least_s: float = 600.0
    fewest_jobs: int = 30

    def admits(self, real_s: float, replayed_s: float) -> bool:
        """Whether a replayed wait is near enough to the real one."""
        return abs(replayed_s - real_s) <= max(self.least_s, self.share * real_s)
