"""What every queue uses and may still take, kept up to date as jobs start and end.

The algebra of `quotas` holds for each flavor and resource by itself; a job fits when all that it needs fits.
GPUs are counted as given. Further resources (`cpu` in cores, `memory` in GiB) are counted in whole millionths, so that
sums are exact and what was added can be taken away without a trace.

Which resources are limited: GPUs always, where there are queues. A further resource is limited on a flavor for all
queues of a tree (of one root) once any of them names it there, and for nobody else. A queue may use only what it names.
Without any queue nothing is limited, and every queue name is accepted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from clusterwright.queueing.columns import INFINITE, Column, Outline
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import Queue, QueueTree, Quota

GPU: Final = "gpu"

#: (resource, amount) of a whole job.
Resources = Collection[tuple[str, float]]

_PARTS: Final = 1_000_000
_DEFAULTS: Final = Policy()


class Share(NamedTuple):
    """A dominant resource share; lower goes first. Infinite ones (weight 0, borrowing) are told apart by `unweighted`.

    Args:
        share: 1000 × borrowed ÷ lendable of the resource with the highest ratio, ÷ weight; 0 without borrowing.
        unweighted: the ratio before the weight where `share` is infinite, else 0.
    """

    share: float
    unweighted: float = 0.0


@dataclass(frozen=True, slots=True)
class Lack:
    """One resource of which a queue may not take what a job needs, in GPUs, cores or GiB."""

    resource: str
    needed: float
    available: float
    potential: float


class Usage:
    """The quota tree at its present use.

    Args:
        flavors: of the cluster, in order of declaration; flavors that only quotas name come after them.
    """

    def __init__(self, tree: QueueTree, policy: Policy = _DEFAULTS, flavors: Iterable[str] = ()) -> None:
        self.tree, self.policy = tree, policy
        self._limited, self._outline = bool(tree.queues), Outline(tree)
        self._index = self._outline.index
        self._slack = [q.name for q in tree.queues if q.slack]
        self._lending: dict[tuple[str, str], Quota] = {}
        self._withdrawn: dict[str, float] = {}
        self._lendable: dict[tuple[int, str], float] = {}
        self._gpus: dict[str, Column] = {}
        self._columns: dict[str, dict[str, Column]] = {GPU: self._gpus}
        self._limiting: set[tuple[str, str, int]] = set()
        for flavor in dict.fromkeys((*flavors, *(f for q in tree.queues for f in q.quotas))):
            self._column(flavor, GPU)
        for queue in tree.queues:
            for resource, flavor, quota in _quotas_of(queue):
                self.set_quota(queue.name, flavor, quota, resource)

    def fork(self) -> Usage:
        """A copy whose changes leave this one as it is."""
        twin = object.__new__(Usage)
        twin.__dict__.update(self.__dict__)
        twin._columns = {r: {f: c.fork() for f, c in by.items()} for r, by in self._columns.items()}
        twin._gpus = twin._columns[GPU]
        twin._lending, twin._withdrawn = self._lending.copy(), self._withdrawn.copy()
        twin._lendable, twin._limiting = self._lendable.copy(), self._limiting.copy()
        return twin

    @property
    def flavors(self) -> tuple[str, ...]:
        """All flavors that the cluster has or a queue names."""
        return tuple(self._columns[GPU])

    def path(self, queue: str) -> tuple[str, ...]:
        """From the root of its tree down to the queue; empty for a queue that the tree does not know."""
        number = self._index.get(queue)
        return () if number is None else tuple(self._outline.names[n] for n in self._outline.paths[number])

    def names(self, queue: str) -> tuple[str, ...]:
        """The flavors a queue may use GPUs of; all of them where there are no queues."""
        return tuple(flavor for flavor in self._columns[GPU] if self.named(queue, flavor))

    def named(self, queue: str, flavor: str, resource: str = GPU) -> bool:
        """Whether a queue may use any of this; a queue uses and borrows only what it names."""
        if not self._limited:
            return True
        number = self._index.get(queue)
        if number is None:
            return False
        return self._column(flavor, resource).named[number] or not self._limits(number, flavor, resource)

    def add(self, queue: str, flavor: str, gpus: float, resources: Resources = (), *, preemptible: bool = True) -> None:
        """Counts what a job takes. Nothing is checked; what a queue unknown to the tree uses counts nowhere."""
        number = self._index.get(queue)
        if number is None:
            return
        column = self._gpus.get(flavor) or self._column(flavor, GPU)
        column.add(number, gpus)
        if not preemptible:
            column.fixed[number] += gpus
        for resource, amount in resources:
            column, parts = self._column(flavor, resource), _parts(amount)
            column.add(number, parts)
            if not preemptible:
                column.fixed[number] += parts

    def remove(
        self, queue: str, flavor: str, gpus: float, resources: Resources = (), *, preemptible: bool = True
    ) -> None:
        """Takes away what was added."""
        less = [(resource, -amount) for resource, amount in resources] if resources else ()
        self.add(queue, flavor, -gpus, less, preemptible=preemptible)

    def raw_available(self, queue: str, flavor: str, resource: str = GPU) -> float:
        """What may still be admitted; negative when more is in use than there is, infinite without a limit."""
        number = self._index.get(queue)
        if number is None:
            return 0.0 if self._limited else INFINITE
        if resource == GPU:
            return self._column(flavor, GPU).available(number)
        if not self._limits(number, flavor, resource):
            return INFINITE
        return self._column(flavor, resource).available(number) / _PARTS

    def gpus(self, queue: str, flavor: str) -> float:
        """GPUs that the queue may still take, 0 or more; 0 of a flavor that it does not name."""
        number = self._index.get(queue)
        if number is None:
            return 0.0 if self._limited else INFINITE
        column = self._gpus.get(flavor)
        if column is None or not column.named[number]:
            return 0.0
        raw = column.available(number)
        return raw if raw > 0 else 0.0

    def available(self, queue: str, flavor: str, resource: str = GPU) -> float:
        """What may still be admitted, 0 or more; whether the queue names it is asked with `named`."""
        raw = self.raw_available(queue, flavor, resource)
        return raw if raw > 0 else 0.0

    def guaranteed_available(self, queue: str, flavor: str, resource: str = GPU) -> float:
        """What jobs that may not be preempted may still take of the queue's own guarantee, as far as it is free.

        The limit of such jobs under `Policy.guaranteed_only`: together they never use more than the guarantee, so what
        others lend can always be taken back. The queue's preemptible jobs do not count here, they may be evicted; but
        what these, or others who borrowed it, still hold is not free. A group's own guarantee is shared, and using it
        is borrowing.

        Source: Kueue KEP-4400 (proposed), quota constraints of non-preemptible workloads: nominal quota only, no
        borrowing; their use is counted apart.
        """
        number = self._index.get(queue)
        if number is None:
            return 0.0 if self._limited else INFINITE
        if not self._limits(number, flavor, resource):
            return INFINITE
        column = self._column(flavor, resource)
        own = column.guarantee[number] - column.fixed[number]
        return max(0.0, min(column.available(number), own) / _scale(resource))

    def potential(self, queue: str, flavor: str, resource: str = GPU) -> float:
        """The most the queue could ever use, if all others were idle."""
        number = self._index.get(queue)
        if number is None:
            return 0.0 if self._limited else INFINITE
        if not self._limits(number, flavor, resource):
            return INFINITE
        return self._column(flavor, resource).potential(number) / _scale(resource)

    def usage(self, queue: str, flavor: str, resource: str = GPU) -> float:
        """In use: of a queue its jobs', of a group what its children take beyond what they keep to themselves."""
        number = self._index.get(queue)
        return 0.0 if number is None else self._column(flavor, resource).used[number] / _scale(resource)

    def subtree(self, queue: str, flavor: str, resource: str = GPU) -> float:
        """Guarantee of the queue and of what its descendants share with it."""
        number = self._index.get(queue)
        return 0.0 if number is None else self._column(flavor, resource).subtree[number] / _scale(resource)

    def borrows(self, queue: str, flavor: str, gpus: float, resources: Resources = ()) -> bool:
        """Whether admitting this much more would take the queue over its own guarantee, in any limited resource."""
        number = self._index.get(queue)
        if number is None:
            return False
        column = self._gpus.get(flavor) or self._column(flavor, GPU)
        if column.used[number] + gpus > column.subtree[number]:
            return True
        for _, column, amount in self._needs(number, flavor, 0, resources) if resources else ():
            if column.used[number] + amount > column.subtree[number]:
                return True
        return False

    def fits(
        self, queue: str, flavor: str, gpus: float, resources: Resources = (), *, guaranteed: bool = False
    ) -> bool:
        """Whether quota admits all of this now; `guaranteed` keeps to what `guaranteed_available` says."""
        if not self._limited:
            return True
        number = self._index.get(queue)
        if number is None:
            return False
        for _, column, amount in self._needs(number, flavor, gpus, resources):
            if amount > 0 and not (column.named[number] and amount <= column.available(number)):
                return False
            if guaranteed and amount > 0 and column.fixed[number] + amount > column.guarantee[number]:
                return False
        return True

    def could_ever(self, queue: str, flavor: str, gpus: float, resources: Resources = ()) -> bool:
        """Whether quota would admit all of this if nothing were in use."""
        if not self._limited:
            return True
        number = self._index.get(queue)
        return number is not None and all(
            amount <= 0 or (column.named[number] and amount <= column.potential(number))
            for _, column, amount in self._needs(number, flavor, gpus, resources)
        )

    def lacking(self, queue: str, flavor: str, gpus: float, resources: Resources = ()) -> tuple[Lack, ...]:
        """The resources because of which quota does not admit this; none where `fits` holds or the queue is unknown."""
        number = self._index.get(queue)
        if number is None:
            return ()
        found = []
        for resource, column, amount in self._needs(number, flavor, gpus, resources):
            has, most = (column.available(number), column.potential(number)) if column.named[number] else (0.0, 0.0)
            if amount > max(0.0, has):
                scale = _scale(resource)
                found.append(Lack(resource, amount / scale, max(0.0, has) / scale, most / scale))
        return tuple(found)

    def share(self, queue: str, flavor: str = "", gpus: float = 0, resources: Resources = ()) -> float:
        """The queue's dominant resource share were this much more (less if negative) in use."""
        number = self._index.get(queue)
        if number is None or self._outline.parents[number] < 0:
            return 0.0
        return self._share(number, self._more(number, flavor, gpus, resources)).share

    def shares(self, queue: str, flavor: str = "", gpus: float = 0, resources: Resources = ()) -> tuple[Share, ...]:
        """The shares of the queue and of each group above it but the root, were this much more in use by the queue.

        All flavors count; the one given is that of the additional use.

        Returns: from the queue upwards; none for a queue without a parent, which has nobody to borrow from.
        Source: Kueue 0.19, pkg/cache/scheduler/fair_sharing.go (dominantResourceShare, CompareDRS).
        """
        number = self._index.get(queue)
        if number is None:
            return ()
        more = self._more(number, flavor, gpus, resources)
        found = []
        for n in reversed(self._outline.paths[number][1:]):
            found.append(self._share(n, more))
            more = {column: column.seen_above(n, amount) for column, amount in more.items()}
        return tuple(found)

    def set_quota(self, queue: str, flavor: str, quota: Quota, resource: str = GPU) -> None:
        """Gives a queue another quota. Lowering it evicts nobody, but nothing new is admitted beyond it.

        Raises:
            KeyError: if the tree has no such queue.
        """
        number = self._index[queue]
        self._limiting.add((flavor, resource, self._outline.paths[number][0]))
        self._column(flavor, resource).set(number, _in_parts(quota) if resource != GPU else quota)
        self._lendable.clear()
        if resource == GPU and queue in self._slack:
            self._lending[queue, flavor] = quota
            self.withdraw(flavor, self._withdrawn.get(flavor, 0))

    def withdraw(self, flavor: str, gpus: float) -> float:
        """Takes `gpus` that are unhealthy from what slack queues lend, so that guarantees of the others stay true.

        Slack queues give in order of declaration. The number is the total that is unhealthy now, not a change.

        Returns: the GPUs that no slack queue had to lend, by which guarantees are no longer covered.
        """
        self._withdrawn[flavor] = gpus
        self._lendable.clear()
        column = self._column(flavor, GPU)
        for queue in self._slack:
            quota = self._lending.get((queue, flavor))
            if quota is not None:
                number = self._index[queue]
                lent = column.subtree[number] if quota.lend is None else min(quota.lend, column.subtree[number])
                taken = min(lent, gpus)
                gpus -= taken
                column.set(number, quota if not taken else Quota(quota.guarantee, quota.borrow, lent - taken))
        return gpus

    def _column(self, flavor: str, resource: str) -> Column:
        try:
            return self._columns[resource][flavor]
        except KeyError:
            column = self._columns.setdefault(resource, {})[flavor] = Column(self._outline)
            return column

    def _limits(self, number: int, flavor: str, resource: str) -> bool:
        return resource == GPU or (flavor, resource, self._outline.paths[number][0]) in self._limiting

    def _needs(
        self, number: int, flavor: str, gpus: float, resources: Resources
    ) -> Sequence[tuple[str, Column, float]]:
        """(resource, column, amount in its unit) of what is limited."""
        needs: list[tuple[str, Column, float]] = [(GPU, self._column(flavor, GPU), gpus)]
        for resource, amount in resources:
            if self._limits(number, flavor, resource):
                needs.append((resource, self._column(flavor, resource), _parts(amount)))
        return needs

    def _more(self, number: int, flavor: str, gpus: float, resources: Resources) -> dict[Column, float]:
        if not flavor:
            return {}
        return {column: amount for _, column, amount in self._needs(number, flavor, gpus, resources)}

    def _share(self, number: int, more: dict[Column, float]) -> Share:
        highest, borrowing = 0.0, False
        for resource, columns in self._columns.items():
            borrowed = 0.0
            for flavor, column in columns.items():
                over = column.used[number] + more.get(column, 0) - column.subtree[number]
                if over > 0 and self._limits(number, flavor, resource):
                    borrowed += over
            if borrowed > 0:
                borrowing, lendable = True, self._lendable_to(number, resource)
                highest = max(highest, 1000 * borrowed / lendable if lendable > 0 else 0.0)
        weight = self.policy.weights.get(self._outline.names[number], 1.0)
        if weight == 0:
            return Share(INFINITE, highest) if borrowing else Share(0.0)
        return Share(highest / weight)

    def _lendable_to(self, number: int, resource: str) -> float:
        """All flavors of a resource that the parent of a node could ever use."""
        parent = self._outline.parents[number]
        known = self._lendable.get((parent, resource))
        if known is None:
            known = sum(column.potential(parent) for column in self._columns[resource].values())
            self._lendable[parent, resource] = known
        return known


def _quotas_of(queue: Queue) -> Iterator[tuple[str, str, Quota]]:
    for resource, quotas in ((GPU, queue.quotas), *queue.others.items()):
        for flavor, quota in quotas.items():
            yield resource, flavor, quota


def _scale(resource: str) -> int:
    return 1 if resource == GPU else _PARTS


def _parts(amount: float) -> int:
    return round(amount * _PARTS)


def _in_parts(quota: Quota) -> Quota:
    borrow, lend = (None if x is None else _parts(x) for x in (quota.borrow, quota.lend))
    return Quota(_parts(quota.guarantee), borrow, lend)
