"""Who waits in a queue, in order: jobs that are equally hard to start stand together and are tried once for all."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from clusterwright.model.jobs import JobId
from clusterwright.queueing.requests import Demand, Request

#: Age in the order: queued first, then the shorter and smaller id (ids are numbers as text: 9 before 10).
Age = tuple[float, int, JobId]
#: A job's place in a cycle: what its queue borrows with it, priority, usage over time, age; lower goes first.
Rank = tuple[float, int, float, Age]
#: What jobs of one bunch have in common: demand, priority, user (where it matters), preemptible, reservation.
BunchKey = tuple[Demand, int, str, bool, str]
#: By demand and queue, how many bunches wait.
Asking = dict[Demand, dict[str, int]]
#: Up to so many jobs with short limits are looked at by limit, more of them by age.
_FEW: Final = 64
#: Removed places at the front of a bunch before the list is rebuilt.
_SLACK: Final = 512
#: Older than no job.
_YOUNGEST: Final[Age] = (float("inf"), 0, JobId(""))


def age_of(request: Request) -> Age:
    """The place of a job among those of its priority."""
    return (request.queued_at_s, len(request.id), request.id)


class Bunch:
    """Waiting jobs of one queue that differ in nothing but age and time limit.

    Args:
        key: what they have in common.

    Attributes:
        front: age of the first job, None when there is none.
        tried: how many jobs at the front were found unable to start; the rest was not looked at.
    """

    __slots__ = ("_ages", "_first", "_jobs", "_limits", "demand", "front", "key", "priority", "tried")

    def __init__(self, key: BunchKey) -> None:
        self.key, self.demand, self.priority = key, key[0], key[1]
        self.front: Age | None = None
        self.tried = self._first = 0
        self._ages: list[Age] = []
        self._limits: list[tuple[float, Age]] | None = None
        self._jobs: list[Request] = []

    def __len__(self) -> int:
        return len(self._jobs) - self._first

    def __iter__(self) -> Iterator[Request]:
        return iter(self._jobs[self._first :])

    def __getitem__(self, place: int) -> Request:
        return self._jobs[self._first + place]

    def age(self, place: int) -> Age:
        """The age of the job at a place."""
        return self._ages[self._first + place]

    def next(self) -> Request | None:
        """The first job that was not looked at, None when all were."""
        at = self._first + self.tried
        return self._jobs[at] if at < len(self._jobs) else None

    def add(self, request: Request) -> bool:
        """Put a job in its place; whether it is the first now."""
        age = age_of(request)
        if self._limits is not None and request.limit_s is not None:
            insort(self._limits, (request.limit_s, age))
        ages, first = self._ages, self._first
        if not ages or age > ages[-1]:
            at = len(ages)
            ages.append(age)
            self._jobs.append(request)
        else:
            at = bisect_left(ages, age, lo=first)
            ages.insert(at, age)
            self._jobs.insert(at, request)
            self.tried = min(self.tried, at - first)
        if at > first:
            return False
        self.front = age
        return True

    def place_of(self, request: Request) -> int:
        """Where a job stands, 0 is the front."""
        return self.before(age_of(request))

    def before(self, age: Age) -> int:
        """How many jobs are older."""
        return bisect_left(self._ages, age, lo=self._first) - self._first

    def remove(self, place: int) -> Request:
        """Take a job out."""
        ages, jobs, at = self._ages, self._jobs, self._first + place
        request = jobs[at]
        if self._limits is not None and request.limit_s is not None:
            del self._limits[bisect_left(self._limits, (request.limit_s, ages[at]))]
        if self.tried > place:
            self.tried -= 1
        if place:
            del ages[at], jobs[at]
            return request
        first = at + 1
        self.front = ages[first] if first < len(ages) else None
        if first > _SLACK and first * 2 > len(jobs):
            del ages[:first], jobs[:first]
            first = 0
        self._first = first
        return request

    def next_within(self, place: int, limit_s: float) -> int:
        """The first place from `place` on whose job has a time limit of at most `limit_s`; the length if none."""
        if self._limits is None:  # kept from the first question on: only backfilling asks
            some = (
                (j.limit_s, a) for j, a in zip(self, self._ages[self._first :], strict=True) if j.limit_s is not None
            )
            self._limits = sorted(some)
        short = bisect_left(self._limits, (limit_s, _YOUNGEST))
        if not short or place >= len(self):
            return len(self)
        if short <= _FEW:
            age = self.age(place)
            first = min((a for _, a in self._limits[:short] if a >= age), default=None)
            return len(self) if first is None else self.before(first)
        for at in range(self._first + place, len(self._jobs)):
            limit = self._jobs[at].limit_s
            if limit is not None and limit <= limit_s:
                return at - self._first
        return len(self)

    def copy(self) -> Bunch:
        """A bunch of its own with the same jobs."""
        other = Bunch(self.key)
        other.tried, other.front = self.tried, self.front
        other._ages, other._jobs = self._ages[self._first :], self._jobs[self._first :]
        return other


class Line:
    """The waiting jobs of one queue.

    Args:
        by_user: whether usage over time orders the users of the queue.
        asking: by demand, how many bunches each queue has of it; this line keeps its part up to date.

    Attributes:
        fresh: bunches with jobs that were not looked at since `seen`.
        seen: the count of changes (`State.freed`) at which the bunches' `tried` hold.
        ranked: the rank of the first job, None once it may be another.
    """

    __slots__ = ("_asking", "_heads", "_number", "bunches", "by_user", "fresh", "queue", "ranked", "seen")

    def __init__(self, queue: str, asking: Asking, *, by_user: bool = False) -> None:
        self.queue, self.by_user, self._asking = queue, by_user, asking
        self.bunches: dict[BunchKey, Bunch] = {}
        self.fresh: dict[Bunch, None] = {}
        self.seen = -1
        self.ranked: Rank | None = None
        self._heads: list[tuple[int, Age, int, Bunch]] = []
        self._number = 0

    def add(self, request: Request) -> None:
        """Put a job in its place."""
        key = self._key(request)
        bunch = self.bunches.get(key)
        if bunch is None:
            bunch = self.bunches[key] = Bunch(key)
            self._count(request.demand, 1)
        self.fresh[bunch] = None
        if bunch.add(request):
            self._head(bunch)

    def bunch_of(self, request: Request) -> Bunch:
        """Where a waiting job stands."""
        return self.bunches[self._key(request)]

    def take(self, bunch: Bunch, place: int) -> Request:
        """Take a job out of its bunch; a bunch without jobs goes, too."""
        request = bunch.remove(place)
        if bunch.front is None:
            del self.bunches[bunch.key]
            self.fresh.pop(bunch, None)
            self._count(request.demand, -1)
            self.ranked = None
        elif not place:
            self._head(bunch)
        return request

    def remove(self, request: Request) -> None:
        """Take a job out."""
        bunch = self.bunch_of(request)
        self.take(bunch, bunch.place_of(request))

    def head(self) -> Bunch | None:
        """The bunch whose first job is the first of the queue, by priority and age; None when nobody waits."""
        heads = self._heads
        while heads:
            _, age, _, bunch = heads[0]
            if bunch.front is age:
                return bunch
            heappop(heads)
        return None

    def look_again(self, seen: int) -> None:
        """Nothing that was found before holds any more."""
        self.seen = seen
        for bunch in self.bunches.values():
            bunch.tried = 0
        self.fresh = dict.fromkeys(self.bunches.values())

    def position(self, request: Request) -> int:
        """How many jobs of the queue come before this one by priority and age, plus one."""
        age = age_of(request)
        return 1 + sum(
            len(b) if b.priority > request.priority else b.before(age)
            for b in self.bunches.values()
            if b.priority >= request.priority
        )

    def copy(self, asking: Asking) -> Line:
        """A line of its own with the same jobs, that counts its demands elsewhere."""
        other = Line(self.queue, asking, by_user=self.by_user)
        copies = {bunch: bunch.copy() for bunch in self.bunches.values()}
        other.bunches = {k: copies[b] for k, b in self.bunches.items()}
        other.seen, other.fresh = self.seen, {copies[b]: None for b in self.fresh}
        for bunch in copies.values():
            other._head(bunch)
            other._count(bunch.demand, 1)
        return other

    def _count(self, demand: Demand, change: int) -> None:
        queues = self._asking.setdefault(demand, {})
        count = queues.get(self.queue, 0) + change
        if count:
            queues[self.queue] = count
            return
        del queues[self.queue]
        if not queues:
            del self._asking[demand]

    def _head(self, bunch: Bunch) -> None:
        assert bunch.front is not None
        self._number += 1
        self.ranked = None
        heappush(self._heads, (-bunch.priority, bunch.front, self._number, bunch))

    def _key(self, request: Request) -> BunchKey:
        user = request.user if self.by_user else ""
        return (request.demand, request.priority, user, request.preemptible, request.reservation)
