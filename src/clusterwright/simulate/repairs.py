"""What happens to a node after it failed: noticed, rebooted, repaired by people, tested, returned, or replaced.

The stages follow Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
arXiv:2410.21680: health checks take a node out, automation or people remedy it, it returns once checks pass, and nodes
that keep failing (lemons) are evicted on the history of their failures.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass

from numpy.random import Generator

from clusterwright.simulate.durations import NOTHING, Duration


@dataclass(frozen=True, slots=True)
class Care:
    """What is done about a cause of failures.

    Args:
        detection: from the failure until somebody knows of it; of a silent failure, until the wrong work is found.
        reboot: of the automatic attempt; None when there is none.
        heals: share of the failures that the reboot ends, 0 to 1.
        repair: work of people on what is left, from when they begin.
        retest: tests before the node returns, after either.
        drain_at_most_s: how long a node that has to be drained is left to the jobs on it.
    """

    detection: Duration = NOTHING
    reboot: Duration | None = None
    heals: float = 0.0
    repair: Duration = NOTHING
    retest: Duration = NOTHING
    drain_at_most_s: float = math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.heals <= 1 or (self.heals and self.reboot is None):
            raise ValueError("a reboot heals a share of 0 to 1 of the failures, and none without a reboot")
        if not self.drain_at_most_s >= 0:
            raise ValueError("a drain takes at least 0 s")


@dataclass(frozen=True, slots=True)
class Course:
    """How long each stage of one outage takes, s.

    Args:
        repair_s: work of people; None when the reboot was enough.
    """

    detection_s: float
    reboot_s: float
    repair_s: float | None
    retest_s: float


def draw_course(care: Care, generator: Generator) -> Course:
    """The course of one outage. Every stage is drawn, needed or not: a changed `heals` moves no later draw."""
    detection_s = care.detection.draw(generator)
    reboot_s = care.reboot.draw(generator) if care.reboot else 0.0
    healed = generator.random() < care.heals
    repair_s = care.repair.draw(generator)
    return Course(detection_s, reboot_s, None if healed else repair_s, care.retest.draw(generator))


class Crew:
    """People who repair, first come first served.

    Args:
        hands: repairs at the same time; None is without limit.
    """

    def __init__(self, hands: int | None = None) -> None:
        if hands is not None and hands < 1:
            raise ValueError("a crew has at least one pair of hands")
        self._free_s = None if hands is None else [0.0] * hands

    def take(self, at_s: float, work_s: float) -> float:
        """When a repair that is wanted from `at_s` on is done; calls come in order of `at_s`."""
        if self._free_s is None:
            return at_s + work_s
        done_s = max(at_s, self._free_s[0]) + work_s
        heapq.heapreplace(self._free_s, done_s)
        return done_s


def return_s(course: Course, out_s: float, crew: Crew) -> float:
    """When a node is back.

    Args:
        out_s: when work on it can begin: noticed and, if it was drained, free of jobs. Calls come in order of
            `out_s` plus the reboot, the instant at which people are asked.
    """
    rebooted_s = out_s + course.reboot_s
    done_s = rebooted_s if course.repair_s is None else crew.take(rebooted_s, course.repair_s)
    return done_s + course.retest_s


@dataclass(frozen=True, slots=True)
class Eviction:
    """When a node is a lemon: so many failures within so long.

    Args:
        failures: at least 1.
        replacement: from the decision until a new node stands in its place.
    """

    failures: int
    within_s: float
    replacement: Duration

    def __post_init__(self) -> None:
        if self.failures < 1 or not self.within_s > 0:
            raise ValueError("a lemon has at least one failure within more than 0 s")


class Histories:
    """The recent failures of every node, kept only as long as the eviction policy looks back."""

    def __init__(self, eviction: Eviction) -> None:
        self._eviction = eviction
        self._seen: dict[int, deque[float]] = {}

    def fail(self, node: int, at_s: float) -> bool:
        """Note a failure; whether the node is to be evicted for it. A node that is evicted begins anew."""
        seen = self._seen.setdefault(node, deque(maxlen=self._eviction.failures))
        seen.append(at_s)
        lemon = len(seen) == self._eviction.failures and at_s - seen[0] <= self._eviction.within_s
        if lemon:
            del self._seen[node]
        return lemon
