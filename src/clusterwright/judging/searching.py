"""Finding a bad node with few tests: a round-robin of pairs, and a search by halves that adapts to what it saw.

Pairs: every node meets every other, all pairs of a round at once on nodes of their own: n − 1 rounds for an even
number of nodes, n for an odd one. It finds any number of bad nodes and bad links between two good ones.
Halves: a group that passes clears all its nodes; one that fails is split. It finds one bad node among n in about
log2(n) rounds, and several in more. What passes alone and fails together is a fault of no single node.

Source: round-robin by the circle method; adaptive group testing by binary splitting (Du and Hwang, Combinatorial
Group Testing, 2000).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final, TypeVar

from clusterwright.judging.outliers import CUT, FEWEST, score_nodes

Pair = tuple[str, str]
_Key = TypeVar("_Key")
#: Fewest nodes of a test over the network.
SMALLEST_GROUP: Final = 2


def pair_rounds(nodes: Sequence[str]) -> tuple[tuple[Pair, ...], ...]:
    """Rounds in which every node meets every other exactly once; within a round no node is used twice."""
    ring: list[str | None] = list(dict.fromkeys(nodes))
    if len(ring) < 2:
        return ()
    if len(ring) % 2:
        ring.append(None)
    rounds = []
    for _ in range(len(ring) - 1):
        half = len(ring) // 2
        met = zip(ring[:half], reversed(ring[half:]), strict=True)
        rounds.append(tuple((a, b) for a, b in met if a is not None and b is not None))
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return tuple(rounds)


@dataclass(frozen=True, slots=True)
class PairFindings:
    """What the results of pairs say.

    Args:
        bad_nodes: whose pairs are slow with whomever they meet, with the median of their pairs.
        bad_pairs: slow though both nodes are fast with others: the path between them.
        why_not: why nothing can be said, or "".
    """

    bad_nodes: tuple[tuple[str, float], ...] = ()
    bad_pairs: tuple[Pair, ...] = ()
    why_not: str = ""


def read_pairs(results: Mapping[Pair, float], *, better: str = "more") -> PairFindings:
    """Nodes and pairs that differ from the others.

    Args:
        results: pair → measured value.
        better: "more" or "less".
    """
    met: dict[str, list[float]] = {}
    for pair, value in results.items():
        for node in pair:
            met.setdefault(node, []).append(value)
    if len(met) < FEWEST:
        return PairFindings(why_not=f"{len(met)} nodes: fewer than {FEWEST} cannot be compared")
    if few := sorted(node for node, values in met.items() if len(values) < 2):
        return PairFindings(why_not=f"{', '.join(few[:4])} met fewer than 2 others: node and path cannot be told apart")
    each = {node: median(values) for node, values in met.items()}
    nodes = _worse(each, better)
    rest = {pair: value for pair, value in results.items() if not set(pair) & set(nodes)}
    pairs = _worse(rest, better) if len(rest) >= FEWEST else []
    return PairFindings(tuple((node, each[node]) for node in nodes), tuple(pairs))


def _worse(values: Mapping[_Key, float], better: str) -> list[_Key]:
    """Keys that differ to the bad side, worst first."""
    keys = list(values)
    scores = score_nodes({str(i): values[key] for i, key in enumerate(keys)})
    centre = median(values.values())
    found = [(score, keys[int(i)]) for i, (value, score) in scores.items() if score > CUT and value != centre]
    bad = [(s, key) for s, key in found if (values[key] < centre) == (better == "more")]
    return [key for _, key in sorted(bad, key=lambda p: -p[0])]


@dataclass(frozen=True, slots=True)
class Step:
    """Where a search by halves stands.

    Args:
        tests: groups to test next, on disjoint nodes, all at once; () when the search is over.
        bad: nodes that are shown to be bad.
        cleared: nodes that took part in a test that passed.
        open: nodes about which nothing is known yet.
        conflict: what cannot be the fault of single nodes, or "".
    """

    tests: tuple[tuple[str, ...], ...]
    bad: tuple[str, ...]
    cleared: tuple[str, ...]
    open: tuple[str, ...]
    conflict: str = ""


def next_step(nodes: Sequence[str], results: Mapping[frozenset[str], bool], *, smallest: int = SMALLEST_GROUP) -> Step:
    """What to test next, given what passed and failed so far.

    Args:
        results: group → whether it passed.
        smallest: nodes that a test needs at least; a single suspect is tested together with cleared nodes.
    """
    known = list(dict.fromkeys(nodes))
    cleared = {n for group, passed in results.items() if passed for n in group}
    suspects = [group - cleared for group, passed in results.items() if not passed]
    bad = {n for group in suspects if len(group) == 1 for n in group}
    unknown = [n for n in known if n not in cleared and n not in bad]
    done = Step((), _in_order(known, bad), _in_order(known, cleared), tuple(unknown))
    if any(not group for group in suspects):
        return _with_conflict(done, "a group failed whose nodes all passed in other groups: the path, or a rare fault")
    if not unknown:
        return done
    if len(known) < smallest:
        return _with_conflict(done, f"{len(known)} node: a test needs {smallest}")
    if not results:
        return _with_tests(done, [tuple(known)])
    groups = _groups_to_split(unknown, suspects, bad)
    tests = [half for group in groups for half in _split(group, already_failed=group in suspects)]
    return _fit(done, tests, results, smallest)


def _groups_to_split(unknown: Sequence[str], suspects: Sequence[frozenset[str]], bad: set[str]) -> list[frozenset[str]]:
    """The smallest failed groups that no known bad node explains, then all nodes of which nothing is known."""
    unexplained = sorted((g for g in suspects if not g & bad), key=len)
    chosen: list[frozenset[str]] = []
    for group in unexplained:
        if not any(group & other for other in chosen):
            chosen.append(group)
    rest = frozenset(unknown) - {n for group in chosen for n in group}
    return [*chosen, *([rest] if rest else [])]


def _split(group: frozenset[str], *, already_failed: bool) -> list[tuple[str, ...]]:
    members = sorted(group)
    if not already_failed or len(members) < 2:
        return [tuple(members)]
    half = len(members) // 2
    return [tuple(members[:half]), tuple(members[half:])]


def _fit(done: Step, tests: Sequence[tuple[str, ...]], results: Mapping[frozenset[str], bool], smallest: int) -> Step:
    """Tests on disjoint nodes of at least `smallest`, filled up with cleared nodes; pairs where none is cleared."""
    helpers = list(done.cleared)
    fitted: list[tuple[str, ...]] = []
    waiting = False
    for test in tests:
        lacking = max(0, smallest - len(test))
        if lacking > len(helpers):
            waiting = True
            continue
        fitted.append((*test, *helpers[:lacking]))
        del helpers[:lacking]
    fresh = [t for t in fitted if frozenset(t) not in results]
    if fresh:
        return _with_tests(done, fresh)
    if not waiting:
        return _with_conflict(done, "the same groups would have to be tested again: results do not agree")
    pairs = _untried_pairs(done.open, results)
    if pairs:
        return _with_tests(done, pairs)
    return _with_conflict(done, "every pair fails: nothing passed, so no node can be told from its partner")


def _untried_pairs(nodes: Iterable[str], results: Mapping[frozenset[str], bool]) -> list[tuple[str, ...]]:
    """Pairs that were not tested yet, on disjoint nodes."""
    used: set[str] = set()
    found: list[tuple[str, ...]] = []
    for pair in combinations(nodes, 2):
        if frozenset(pair) not in results and not used & set(pair):
            found.append(pair)
            used |= set(pair)
    return found


def _in_order(known: Sequence[str], chosen: set[str]) -> tuple[str, ...]:
    return tuple(n for n in known if n in chosen)


def _with_tests(step: Step, tests: Sequence[tuple[str, ...]]) -> Step:
    return Step(tuple(tests), step.bad, step.cleared, step.open)


def _with_conflict(step: Step, conflict: str) -> Step:
    return Step((), step.bad, step.cleared, step.open, conflict)
