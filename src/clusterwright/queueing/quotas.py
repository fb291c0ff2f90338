"""The quota tree: guarantee, borrow and lend, for one resource flavor at a time.

The algebra is Kueue's (pkg/cache/scheduler/resource_node.go and clusterqueue_test.go of v0.11 and later):

    subtree(n)   = guarantee(n) + Σ children c ( subtree(c) − local(c) )
    local(n)     = 0 if lend unset else max(0, subtree(n) − lend(n))            never visible above n
    usage(queue) = what its admitted jobs use;  usage(group) = Σ children max(0, usage(c) − local(c))
    available(root) = subtree − usage                                           may be negative after a cut
    available(n) = max(0, local(n) − usage(n)) + P,  P = available(parent) if borrow unset, else
                   min( available(parent), (subtree(n) − local(n)) − max(0, usage(n) − local(n)) + borrow(n) )
    potential(root) = subtree;  potential(n) = min( subtree(n) + borrow(n), local(n) + potential(parent) )
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from clusterwright.lib.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Quota:
    """What a queue is guaranteed of one flavor; `borrow` unset is unlimited, `lend` unset is everything."""

    guarantee: float = 0.0
    borrow: float | None = None
    lend: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("guarantee", self.guarantee), ("borrow", self.borrow), ("lend", self.lend)):
            if value is not None and not 0 <= value < float("inf"):
                raise InvalidInput(f"{name} is {value}, must be a finite number, 0 or more")


@dataclass(frozen=True, slots=True)
class Queue:
    """A node of the tree: a leaf takes jobs, a group shares among its children.

    Args:
        quotas: of GPUs by flavor (GPU model). A leaf may only use flavors it names; a group names none to add nothing.
        strict: the queue's first job that cannot start blocks those behind it; else it is set aside (best effort).
        others: quotas of further resources (`cpu` in cores, `memory` in GiB) by resource, then by flavor.
        slack: holds spare capacity and has no users; what is unhealthy is taken from what it lends first.
    """

    name: str
    parent: str | None = None
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    strict: bool = False
    others: Mapping[str, Mapping[str, Quota]] = field(default_factory=dict)
    slack: bool = False


@dataclass(frozen=True)
class QueueTree:
    """All queues of a cluster. Without any queue there is no quota and every queue name is accepted.

    Raises:
        InvalidInput: on repeated names, unknown parents, and cycles.
    """

    queues: tuple[Queue, ...] = ()

    def __post_init__(self) -> None:
        names = [q.name for q in self.queues]
        known = ", ".join(names)
        problems = [f"queue '{n}' is declared twice" for n in sorted({n for n in names if names.count(n) > 1})]
        for queue in self.queues:
            if queue.parent is not None and queue.parent not in names:
                problems.append(f"queue '{queue.name}': parent '{queue.parent}' does not exist (queues: {known})")
        if not problems:
            problems = [f"queue '{q.name}' is its own ancestor" for q in self.queues if self._in_cycle(q)]
        if problems:
            raise InvalidInput(*problems)

    def _in_cycle(self, queue: Queue) -> bool:
        seen, parent = {queue.name}, queue.parent
        while parent is not None:
            if parent in seen:
                return True
            seen.add(parent)
            parent = self.by_name[parent].parent
        return False

    @cached_property
    def by_name(self) -> dict[str, Queue]:
        """Queues by name."""
        return {q.name: q for q in self.queues}

    @cached_property
    def leaves(self) -> frozenset[str]:
        """Names of the queues that take jobs: those below which there is none, without the slack queues."""
        return frozenset(q.name for q in self.queues if not q.slack) - {q.parent for q in self.queues if q.parent}

    def root_of(self, name: str) -> str:
        """The topmost ancestor."""
        queue = self.by_name[name]
        while queue.parent is not None:
            queue = self.by_name[queue.parent]
        return queue.name

    def strict(self, name: str) -> bool:
        """Whether a queue blocks behind its first job; undeclared queues do not."""
        queue = self.by_name.get(name)
        return queue is not None and queue.strict


class Balance:
    """The tree's figures for one flavor at one usage.

    Args:
        tree: the queues.
        flavor: GPU model.
        used: GPUs in use by leaf.
    """

    def __init__(self, tree: QueueTree, flavor: str, used: Mapping[str, float]) -> None:
        self._tree, self._flavor, self._used = tree, flavor, used
        self._children: dict[str, list[str]] = {q.name: [] for q in tree.queues}
        for queue in tree.queues:
            if queue.parent is not None:
                self._children[queue.parent].append(queue.name)
        self._subtree: dict[str, float] = {}
        self._usage: dict[str, float] = {}

    def quota(self, name: str) -> Quota:
        """What the queue declares for this flavor; nothing declared is a guarantee of 0."""
        return self._tree.by_name[name].quotas.get(self._flavor, Quota())

    def named(self, name: str) -> bool:
        """Whether the queue names this flavor at all; a queue borrows only what it names."""
        return self._flavor in self._tree.by_name[name].quotas

    def subtree(self, name: str) -> float:
        """Guarantee of the queue and of what its descendants share with it."""
        if name not in self._subtree:
            shared = sum(self.subtree(c) - self.local(c) for c in self._children[name])
            self._subtree[name] = self.quota(name).guarantee + shared
        return self._subtree[name]

    def local(self, name: str) -> float:
        """The part that is never visible above the queue."""
        lend = self.quota(name).lend
        return 0.0 if lend is None else max(0.0, self.subtree(name) - lend)

    def usage(self, name: str) -> float:
        """GPUs in use: of a leaf its jobs', of a group what its children take beyond their local part."""
        if name not in self._usage:
            own = self._used.get(name, 0.0)
            self._usage[name] = own + sum(max(0.0, self.usage(c) - self.local(c)) for c in self._children[name])
        return self._usage[name]

    def raw_available(self, name: str) -> float:
        """What may still be admitted, negative when more is in use than there is (after a cut)."""
        parent, borrow = self._tree.by_name[name].parent, self.quota(name).borrow
        if parent is None:
            return self.subtree(name) - self.usage(name)
        above, local = self.raw_available(parent), self.local(name)
        if borrow is not None:
            shared_use = max(0.0, self.usage(name) - local)
            above = min(above, (self.subtree(name) - local) - shared_use + borrow)
        return max(0.0, local - self.usage(name)) + above

    def available(self, name: str) -> float:
        """What may still be admitted, 0 or more."""
        return max(0.0, self.raw_available(name))

    def potential(self, name: str) -> float:
        """The most the queue could ever use, if all others were idle."""
        borrow, reach = self.quota(name).borrow, self.reach(name)
        return reach if borrow is None else min(self.subtree(name) + borrow, reach)

    def reach(self, name: str) -> float:
        """The potential that the queue would have without a borrowing limit of its own."""
        parent = self._tree.by_name[name].parent
        return self.subtree(name) if parent is None else self.local(name) + self.potential(parent)

    def borrows(self, name: str, gpus: float) -> bool:
        """Whether admitting `gpus` more would take the queue over its own guarantee."""
        return self.usage(name) + gpus > self.subtree(name)
