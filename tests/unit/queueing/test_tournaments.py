"""Whose job is next under fair share, against the tournament played out in full."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.queueing.fairness import Take
from clusterwright.queueing.policies import Policy
from clusterwright.queueing.quotas import Queue, QueueTree
from clusterwright.queueing.tournaments import Tournament
from clusterwright.queueing.usages import Share, Usage

from .quota_table import FLAVOR, queue


def usage(*queues: Queue, used: dict[str, float], weights: dict[str, float] | None = None) -> Usage:
    tree = Usage(QueueTree(queues), Policy(weights=weights or {}), (FLAVOR,))
    for name, gpus in used.items():
        tree.add(name, FLAVOR, gpus)
    return tree


BRANCHES = (
    queue("root", 40, None),
    queue("left", 0, "root"),
    queue("right", 0, "root"),
    queue("a", 0, "left"),
    queue("b", 0, "left"),
    queue("c", 0, "right"),
)


def order(tree: Usage, offers: dict[str, float], ties: dict[str, int] | None = None) -> list[str]:
    """Queues in the order in which their one job each is started."""
    tournament, found = Tournament(tree), []
    for name, gpus in offers.items():
        tournament.offer(Take(name, FLAVOR, gpus), (ties or {}).get(name, 0))
    while (first := tournament.first()) is not None:
        tree.add(first, FLAVOR, offers[first])
        tournament.withdraw(first)
        found.append(first)
    return found


def test_the_lowest_share_with_the_job_goes_first() -> None:
    tree = usage(queue("group", 40, None), *(queue(q, 0) for q in "abc"), used={"a": 4, "b": 2})
    assert order(tree, {"a": 1, "b": 4, "c": 7}) == ["a", "b", "c"]


def test_of_equal_shares_the_tie_break_decides_then_the_name() -> None:
    tree = usage(queue("group", 40, None), *(queue(q, 10) for q in "abc"), used={})
    assert order(tree, {"a": 1, "b": 2, "c": 3}, {"a": 5, "b": 4, "c": 4}) == ["b", "c", "a"]


def test_a_branch_with_little_goes_first_even_if_its_queue_has_more_than_any_other() -> None:
    tree = usage(*BRANCHES, used={"a": 6, "b": 6, "c": 8})
    # c has more than a or b, but its branch takes 8 + 1 where theirs takes 12 + 1.
    assert order(tree, {"a": 1, "b": 1, "c": 1}) == ["c", "a", "b"]


def test_a_group_nominates_by_its_own_order_not_by_what_helps_it_most() -> None:
    tree = usage(*BRANCHES, used={"a": 0, "b": 8, "c": 9})
    # Within left, a (0 + 6) is before b (8 + 1), although b's job would leave left with the lower share.
    assert order(tree, {"a": 6, "b": 1, "c": 4}) == ["c", "a", "b"]


def test_what_is_started_changes_who_is_next() -> None:
    tree = usage(*BRANCHES, used={})
    tournament, found = Tournament(tree), []
    for name in "abc":
        tournament.offer(Take(name, FLAVOR, 4), 0)
    for _ in range(6):
        first = tournament.first()
        assert first is not None
        found.append(first)
        tree.add(first, FLAVOR, 4)
        tournament.offer(Take(first, FLAVOR, 4), 0)
    assert found == ["a", "c", "b", "c", "a", "c"]


def test_roots_share_nothing_so_the_tie_break_decides_between_them() -> None:
    tree = usage(queue("one", 4, None), queue("two", 4, None), queue("a", 0, "two"), used={"a": 4})
    assert order(tree, {"one": 1, "a": 1}, {"one": 1, "a": 0}) == ["a", "one"]
    free = usage(used={})
    assert order(free, {"x": 1, "y": 1}, {"x": 1}) == ["y", "x"]


def played(tree: Usage, offers: dict[str, tuple[float, int]]) -> str | None:
    """The tournament as Kueue runs it: every level compared in full, nothing kept."""

    def best(names: list[str], depth: int) -> str:
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(tree.path(name)[depth], []).append(name)
        nominees = [
            members[0] if len(tree.path(members[0])) == depth + 1 else best(members, depth + 1)
            for members in groups.values()
        ]
        return min(nominees, key=lambda name: (share(name, depth), offers[name][1], name))

    def share(name: str, depth: int) -> Share:
        return tree.shares(name, FLAVOR, offers[name][0])[-depth] if depth else Share(0.0)

    return best(list(offers), 0) if offers else None


@st.composite
def contests(draw: st.DrawFn) -> tuple[Usage, list[tuple[str, float, int]]]:
    names = [f"q{i}" for i in range(draw(st.integers(2, 9)))]
    small = st.integers(0, 6)
    limit = st.none() | small
    queues = [
        queue(
            name,
            draw(small),
            draw(st.none() | st.sampled_from(names[:i])) if i else None,
            borrow=draw(limit),
            lend=draw(limit),
        )
        for i, name in enumerate(names)
    ]
    weights = {name: draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])) for name in names}
    tree = QueueTree(tuple(queues))
    leaves = sorted(tree.leaves)
    steps = st.tuples(st.sampled_from(leaves), st.integers(1, 8).map(float), st.integers(0, 2))
    return Usage(tree, Policy(weights=weights), (FLAVOR,)), draw(st.lists(steps, max_size=14))


@settings(deadline=None, max_examples=120)
@given(contests())
def test_the_first_is_the_winner_of_the_tournament_played_in_full(
    contest: tuple[Usage, list[tuple[str, float, int]]],
) -> None:
    """Offers come; after each, the winner starts, and its queue has nothing to offer until it offers again."""
    tree, steps = contest
    tournament, offers = Tournament(tree), dict[str, tuple[float, int]]()
    for name, gpus, tie in steps:
        offers[name] = gpus, tie
        tournament.offer(Take(name, FLAVOR, gpus), tie)
        assert tournament.first() == played(tree, offers)
        if tie == 0:
            first = tournament.first()
            assert first is not None
            tree.add(first, FLAVOR, offers.pop(first)[0])
            tournament.withdraw(first)
            assert tournament.first() == played(tree, offers)
