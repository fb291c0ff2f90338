"""Who has had the most: shares of what is borrowed now decide whom to evict, decayed usage decides who goes first.

*Now.* The share of a queue or group is its dominant resource share (`usages.Usage.shares`). Two queues are compared
where their branches part: at the children of their lowest common ancestor, each with the use of its whole branch. A job
may evict one of another queue only while

    share of its branch with the job  ≤  share of the victim's branch without the victim

which is Kueue's strategy LessThanOrEqualToFinalShare (rule S2-a): no eviction turns the order around, so two queues
never evict each other in turn. Kueue's second strategy, LessThanInitialShare (S2-b: the share with the job is below the
victim's as it is), is tried there when the first frees too little; it overshoots to free more, and is not offered.
Nobody is a victim who does not borrow, at any level below the common ancestor.

*Over time.* GPU-seconds count half as much after each half-life. They order jobs and evict nobody.

Source: Kueue 0.19, KEP-1714 (fair sharing), pkg/scheduler/preemption/fairsharing (least_common_ancestor.go,
ordering.go, strategy.go); Slurm priority/multifactor, PriorityDecayHalfLife; Kueue AdmissionFairSharing,
usageHalfLifeTime.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from clusterwright.queueing.usages import Resources, Usage

#: Rebase after this many half-lives: 2^64 of the oldest still leaves most of a float's range.
_REBASE_AFTER: Final = 64


class Take(NamedTuple):
    """What a job takes, or holds, of a queue's quota; resources are those of the whole job."""

    queue: str
    flavor: str
    gpus: float
    resources: Resources = ()


def may_evict(usage: Usage, taker: Take, victim: Take) -> bool:
    """Whether fair share lets `taker` have the GPUs of `victim`; `usage` counts the victim and not the taker.

    Within one queue shares do not differ, and other rules decide: always true. Queues of different trees share nothing.
    """
    if taker.queue == victim.queue:
        return True
    depth = _common(usage.path(taker.queue), usage.path(victim.queue))
    if not depth:
        return False
    before = usage.shares(victim.queue)
    if any(share.share == 0 for share in before[: len(usage.path(victim.queue)) - depth]):
        return False
    less = tuple((resource, -amount) for resource, amount in victim.resources)
    after = usage.shares(victim.queue, victim.flavor, -victim.gpus, less)
    mine = usage.shares(taker.queue, taker.flavor, taker.gpus, taker.resources)
    return mine[-depth] <= after[-depth]


def heaviest(usage: Usage, taker: str, queues: Collection[str]) -> str | None:
    """The queue to evict from first: down from the root, always into the branch with the highest share.

    Args:
        taker: the queue of the job that needs room; it and the groups above it are entered even if they do not borrow.
        queues: that have victims; those of other trees are left out.

    Returns: None when none of them borrows. Of equal shares a group goes before a queue, then the first by name.
    """
    own = usage.path(taker)
    branch, depth = [q for q in sorted(queues) if usage.path(q)[:1] == own[:1]], 1
    while branch:
        if len(usage.path(branch[0])) == depth:
            return branch[0]
        nodes = defaultdict[str, list[str]](list)
        for queue in branch:
            nodes[usage.path(queue)[depth]].append(queue)
        shares = {node: usage.shares(members[0])[-depth] for node, members in nodes.items()}
        open_ones = [n for n in nodes if shares[n].share > 0 or n in own]
        if not open_ones:
            return None
        is_group = {n: len(usage.path(nodes[n][0])) > depth + 1 for n in open_ones}
        branch = nodes[max(open_ones, key=lambda n: (shares[n], is_group[n]))]
        depth += 1
    return None


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many ancestors two paths from the root share."""
    depth = 0
    while depth < min(len(one), len(other)) and one[depth] == other[depth]:
        depth += 1
    return depth


class DecayedUsage:
    """GPU-seconds by key (a queue, or a user), halved every `half_life_s`.

    Exact at any time: a job that holds g GPUs from a to b weighs ∫ g · 2^((x − t) / half-life) dx at time t. So a
    running job counts from its first second, and never reaches more than g · half-life ÷ ln 2. Every change is O(1):
    values are kept as of one fixed time, not decayed one by one.

    Slurm decays in steps of PriorityCalcPeriod (5 minutes) by the factor 1 − 0.693 ÷ half-life per second, and does not
    decay within a step; the difference is below one step. Kueue keeps the same value × ln 2 ÷ half-life, a moving mean
    of GPUs in use, sampled every usageSamplingInterval.

    Args:
        half_life_s: above 0.
        weights: by key, 1 unless given; usage is divided by it, and weight 0 puts whatever was used last.
    """

    def __init__(self, half_life_s: float, weights: Mapping[str, float] | None = None) -> None:
        if not 0 < half_life_s < math.inf:
            raise ValueError(f"half_life_s is {half_life_s}, must be finite and above 0")
        self.half_life_s, self.weights = half_life_s, weights or {}
        self._full = half_life_s / math.log(2)
        self._origin: float | None = None
        self._latest = 0.0
        self._sums: dict[str, float] = {}
        self._rates: dict[str, float] = {}

    def begin(self, key: str, gpus: float, at_s: float) -> None:
        """GPUs are held from now on."""
        weight = self._full * self._growth(at_s)
        self._sums[key] = self._sums.get(key, 0.0) - gpus * weight
        self._rates[key] = self._rates.get(key, 0.0) + gpus

    def end(self, key: str, gpus: float, at_s: float) -> None:
        """GPUs that were begun are held no longer."""
        self.begin(key, -gpus, at_s)
        if not self._rates[key]:
            del self._rates[key]

    def charge(self, key: str, gpus: float, from_s: float, to_s: float) -> None:
        """Counts GPUs that were held over an interval, once it is over."""
        weight = self._full * self._growth(to_s) * -math.expm1((from_s - to_s) / self._full)
        self._sums[key] = self._sums.get(key, 0.0) + gpus * weight

    def value(self, key: str, now_s: float | None = None) -> float:
        """GPU-seconds ÷ weight as they count at `now_s`, by default the latest time that was told."""
        now = self._latest if now_s is None else now_s
        growth = self._growth(now)
        left = self._sums.get(key, 0.0) / growth + self._rates.get(key, 0.0) * self._full
        weight = self.weights.get(key, 1.0)
        if weight == 0:
            return math.inf if left > 0 else 0.0
        return max(0.0, left / weight)

    def fork(self) -> DecayedUsage:
        """A copy whose changes leave this one as it is."""
        twin = object.__new__(DecayedUsage)
        twin.__dict__.update(self.__dict__)
        twin._sums, twin._rates = self._sums.copy(), self._rates.copy()
        return twin

    def _growth(self, at_s: float) -> float:
        """What one GPU-second of `at_s` weighs in the kept sums; the later the more."""
        if self._origin is None:
            self._origin = self._latest = at_s
        self._latest = max(self._latest, at_s)
        lives = (at_s - self._origin) / self.half_life_s
        if lives > _REBASE_AFTER:
            shrink = 2.0**-lives
            self._sums = {key: value * shrink for key, value in self._sums.items()}
            self._origin, lives = at_s, 0.0
        return float(2.0**lives)
