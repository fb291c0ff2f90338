"""The incremental quota tree gives the figures of the plain one, whatever the tree and whatever happens on it."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.queueing.fairness import Take, may_evict
from clusterwright.queueing.quotas import Balance, Queue, QueueTree, Quota
from clusterwright.queueing.usages import Usage

FLAVORS = ("h100", "b200")
amounts = st.integers(0, 64).map(lambda x: x / 4)
limits = st.none() | amounts
quotas = st.builds(Quota, amounts, limits, limits)


@st.composite
def trees(draw: st.DrawFn) -> QueueTree:
    """Up to eight queues; each one's parent was declared before or after it, or it is a root."""
    names = [f"q{i}" for i in range(draw(st.integers(1, 8)))]
    queues = []
    for i, name in enumerate(names):
        parent = draw(st.none() | st.sampled_from(names[:i])) if i else None
        named = draw(st.sets(st.sampled_from(FLAVORS)))
        queues.append(Queue(name, parent, {f: draw(quotas) for f in FLAVORS if f in named}))
    return QueueTree(tuple(draw(st.permutations(queues))))


@st.composite
def histories(draw: st.DrawFn) -> tuple[QueueTree, list[tuple[str, str, float | Quota]]]:
    """A tree, and what happens: use that comes and goes, quotas that change."""
    tree = draw(trees())
    names = st.sampled_from([q.name for q in tree.queues])
    return tree, draw(st.lists(st.tuples(names, st.sampled_from(FLAVORS), amounts | quotas), max_size=12))


def requoted(tree: QueueTree, name: str, flavor: str, quota: Quota) -> QueueTree:
    return QueueTree(
        tuple(Queue(q.name, q.parent, {**q.quotas, flavor: quota}) if q.name == name else q for q in tree.queues)
    )


def agree(usage: Usage, tree: QueueTree, used: dict[str, dict[str, float]]) -> None:
    for flavor in FLAVORS:
        plain = Balance(tree, flavor, used[flavor])
        for queue in tree.queues:
            name = queue.name
            assert usage.usage(name, flavor) == plain.usage(name)
            assert usage.subtree(name, flavor) == plain.subtree(name)
            assert usage.raw_available(name, flavor) == plain.raw_available(name)
            assert usage.available(name, flavor) == plain.available(name)
            assert usage.potential(name, flavor) == plain.potential(name)
            assert usage.named(name, flavor) == plain.named(name)
            assert usage.borrows(name, flavor, 0.25) == plain.borrows(name, 0.25)


@settings(deadline=None, max_examples=80)
@given(histories())
def test_figures_are_those_of_the_plain_algebra_after_any_history(
    history: tuple[QueueTree, list[tuple[str, str, float | Quota]]],
) -> None:
    tree, events = history
    usage, used = Usage(tree, flavors=FLAVORS), defaultdict[str, dict[str, float]](lambda: defaultdict(float))
    agree(usage, tree, used)
    for name, flavor, change in events:
        if isinstance(change, Quota):
            usage.set_quota(name, flavor, change)
            tree = requoted(tree, name, flavor, change)
        elif used[flavor][name] >= change:  # as long as it can, use also goes
            usage.remove(name, flavor, change)
            used[flavor][name] -= change
        else:
            usage.add(name, flavor, change)
            used[flavor][name] += change
        agree(usage, tree, used)


@settings(deadline=None, max_examples=40)
@given(histories(), histories())
def test_a_fork_and_its_origin_do_not_see_each_others_changes(
    history: tuple[QueueTree, list[tuple[str, str, float | Quota]]],
    other: tuple[QueueTree, list[tuple[str, str, float | Quota]]],
) -> None:
    tree, events = history
    origin = Usage(tree, flavors=FLAVORS)
    fork = origin.fork()
    used = defaultdict[str, dict[str, float]](lambda: defaultdict(float))
    for name, flavor, change in events:
        if isinstance(change, Quota):
            fork.set_quota(name, flavor, change)
        else:
            fork.add(name, flavor, change)
    agree(origin, tree, used)
    twin = fork.fork()
    for name, flavor, change in other[1]:
        if name in tree.by_name:
            if isinstance(change, Quota):
                origin.set_quota(name, flavor, change)
            else:
                origin.add(name, flavor, change)
    for flavor in FLAVORS:
        for name in tree.by_name:
            assert fork.available(name, flavor) == twin.available(name, flavor)


@settings(deadline=None, max_examples=60)
@given(trees(), st.lists(st.tuples(st.integers(0, 7), st.sampled_from(FLAVORS), st.integers(1, 30)), max_size=40))
def test_admitting_only_what_is_available_never_uses_more_than_there_is(
    tree: QueueTree, asks: list[tuple[int, str, int]]
) -> None:
    usage, leaves = Usage(tree, flavors=FLAVORS), sorted(tree.leaves)
    for number, flavor, gpus in asks:
        leaf = leaves[number % len(leaves)]
        if usage.fits(leaf, flavor, gpus / 4):
            usage.add(leaf, flavor, gpus / 4)
    for flavor in FLAVORS:
        plain = Balance(tree, flavor, {leaf: usage.usage(leaf, flavor) for leaf in leaves})
        for queue in tree.queues:
            if queue.parent is None:
                assert plain.usage(queue.name) <= plain.subtree(queue.name)
        for leaf in leaves:
            assert plain.usage(leaf) <= plain.potential(leaf)
            assert plain.named(leaf) or not plain.usage(leaf)


@settings(deadline=None, max_examples=60)
@given(histories(), st.sampled_from(FLAVORS), amounts)
def test_shares_are_those_of_the_plain_algebra_with_the_job_in_use(
    history: tuple[QueueTree, list[tuple[str, str, float | Quota]]], flavor: str, gpus: float
) -> None:
    tree, events = history
    usage, used = Usage(tree, flavors=FLAVORS), defaultdict[str, dict[str, float]](lambda: defaultdict(float))
    for name, of, change in events:
        if not isinstance(change, Quota):
            usage.add(name, of, change)
            used[of][name] += change
    for queue in tree.queues:
        with_job = {f: dict(used[f]) for f in FLAVORS}
        with_job[flavor][queue.name] = with_job[flavor].get(queue.name, 0.0) + gpus
        plain = [Balance(tree, f, with_job[f]) for f in FLAVORS]
        expected, node = [], queue
        while node.parent is not None:
            borrowed = sum(max(0.0, b.usage(node.name) - b.subtree(node.name)) for b in plain)
            lendable = sum(b.potential(node.parent) for b in plain)
            expected.append(1000 * borrowed / lendable if borrowed and lendable else 0.0)
            node = tree.by_name[node.parent]
        assert [s.share for s in usage.shares(queue.name, flavor, gpus)] == expected
        assert usage.share(queue.name, flavor, gpus) == (expected[0] if expected else 0.0)


@settings(deadline=None, max_examples=60)
@given(trees(), st.lists(st.tuples(st.integers(0, 7), st.integers(1, 40)), min_size=2, max_size=10))
def test_no_two_jobs_may_evict_each_other_in_turn(tree: QueueTree, jobs: list[tuple[int, int]]) -> None:
    leaves = sorted(tree.leaves)
    takes = [Take(leaves[number % len(leaves)], FLAVORS[0], gpus / 4) for number, gpus in jobs]
    usage = Usage(tree, flavors=FLAVORS)
    for take in takes[1:]:
        usage.add(take.queue, take.flavor, take.gpus)
    taker = takes[0]
    for victim in takes[1:]:
        if victim.queue == taker.queue or not may_evict(usage, taker, victim):
            continue
        branch = -len({*usage.path(taker.queue)} & {*usage.path(victim.queue)})
        before = usage.shares(victim.queue)[branch]
        usage.remove(victim.queue, victim.flavor, victim.gpus)
        usage.add(taker.queue, taker.flavor, taker.gpus)
        # Unless the branches see nothing of either job, which then is no matter between them.
        assert not may_evict(usage, victim, taker) or usage.shares(victim.queue)[branch] == before
        usage.remove(taker.queue, taker.flavor, taker.gpus)
        usage.add(victim.queue, victim.flavor, victim.gpus)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 16), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 8), st.none() | st.integers(0, 8)), max_size=3),
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), max_size=20),
)
def test_guarantees_hold_on_what_is_healthy_as_long_as_slack_covers_the_rest(
    guarantees: list[int], slack: list[tuple[int, int | None]], unhealthy: int, asks: list[tuple[int, int]]
) -> None:
    flavor = FLAVORS[0]
    leaves = [Queue(f"q{i}", "all", {flavor: Quota(g)}) for i, g in enumerate(guarantees)]
    spares = [Queue(f"s{i}", "all", {flavor: Quota(g, lend=lend)}, slack=True) for i, (g, lend) in enumerate(slack)]
    usage = Usage(QueueTree((Queue("all"), *leaves, *spares)))
    lent = sum(g if lend is None else min(g, lend) for g, lend in slack)
    uncovered = usage.withdraw(flavor, unhealthy)
    assert uncovered == max(0, unhealthy - lent)
    for number, gpus in asks:
        name = f"q{number % len(leaves)}"
        if usage.fits(name, flavor, gpus):
            usage.add(name, flavor, gpus)
    used = sum(usage.usage(q.name, flavor) for q in leaves)
    # What is admitted never needs the unhealthy ones that slack covers, nor what slack does not lend.
    assert used <= sum(guarantees) + lent - (unhealthy - uncovered)
    if all(usage.usage(q.name, flavor) <= g for q, g in zip(leaves, guarantees, strict=True)):
        for queue, guarantee in zip(leaves, guarantees, strict=True):
            assert usage.available(queue.name, flavor) >= guarantee - usage.usage(queue.name, flavor)


@settings(deadline=None, max_examples=60)
@given(trees(), st.lists(st.tuples(st.integers(0, 7), st.integers(1, 20), st.booleans()), max_size=30))
def test_jobs_that_may_not_be_preempted_never_hold_more_than_the_guarantee(
    tree: QueueTree, asks: list[tuple[int, int, bool]]
) -> None:
    """So whatever else their queue uses can be taken back, and with it all that it borrowed."""
    flavor, usage, leaves = FLAVORS[0], Usage(tree, flavors=FLAVORS), sorted(tree.leaves)
    fixed = dict.fromkeys(leaves, 0.0)
    for number, quarters, preemptible in asks:
        name, gpus = leaves[number % len(leaves)], quarters / 4
        assert usage.fits(name, flavor, gpus, guaranteed=True) == (
            usage.named(name, flavor) and gpus <= usage.guaranteed_available(name, flavor)
        )
        if usage.fits(name, flavor, gpus, guaranteed=not preemptible):
            usage.add(name, flavor, gpus, preemptible=preemptible)
            fixed[name] += 0 if preemptible else gpus
    for name in leaves:
        assert fixed[name] <= usage.subtree(name, flavor)
