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
from statistics import fmean, median
from typing import Final, TypeVar

from clusterwright.judging.outliers import CUT, FEWEST, Spread, spread_of

Pair = tuple[str, str]
_Key = TypeVar("_Key")
#: Others that a node must have met: the median of three results stands when one of them was with a bad node.
FEWEST_PARTNERS: Final = 3
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
class Slow:
    """Nodes (one, or a pair) that differ from the others to the bad side.

    Args:
        value: the median of a node's pairs with nodes that are not bad, or the value of a pair.
        score: standard deviations from the median of the others; infinite where these are all the same.
        pairs: that the value rests on.
    """

    nodes: tuple[str, ...]
    value: float
    score: float
    pairs: int


@dataclass(frozen=True, slots=True)
class PairFindings:
    """What the results of pairs say.

    Args:
        bad_nodes: whose pairs are slow with whomever they meet, worst first.
        bad_pairs: slow though both nodes are fast with others: the path between them.
        cleared: nodes that met enough others and are fast with one of them: a bad node is slow with all.
        open: the other nodes that are not bad.
        usual: of the nodes that are not bad; None where too few of them can be compared.
    """

    bad_nodes: tuple[Slow, ...] = ()
    bad_pairs: tuple[Slow, ...] = ()
    cleared: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    usual: Spread | None = None


def read_pairs(nodes: Sequence[str], results: Mapping[Pair, float], *, better: str = "more") -> PairFindings:
    """Nodes and pairs that differ from the others.

    The worst node is taken out with all its pairs before the next is looked at, so that the pairs of a bad node do not
    count against those that it met.

    Args:
        nodes: all that are to be told apart.
        results: pair → measured value.
        better: "more" or "less".
    """
    rest, bad = dict(results), list[str]()
    while (worst := _worst_node(results, rest, better)) is not None:
        bad.append(worst)
        rest = {pair: value for pair, value in rest.items() if worst not in pair}
    met = _met(results)
    slow = dict(_worse(rest, better)) if len(rest) >= FEWEST else {}
    fast = {node for pair in rest if pair not in slow for node in pair}
    each = {node: median(values) for node, values in _met(rest).items()}
    usual = spread_of(each.values()) if len(each) >= FEWEST else None
    enough = {node for node, values in met.items() if usual is not None and len(values) >= FEWEST_PARTNERS}
    cleared = tuple(node for node in nodes if node in fast & enough)
    paths = sorted((pair for pair in slow if set(pair) <= set(cleared)), key=lambda pair: -slow[pair])
    return PairFindings(
        tuple(_slow_node(node, bad, results, usual) for node in bad),
        tuple(Slow(pair, results[pair], slow[pair], 1) for pair in paths),
        cleared,
        tuple(node for node in nodes if node not in cleared and node not in bad),
        usual,
    )


def _met(results: Mapping[Pair, float]) -> dict[str, list[float]]:
    met: dict[str, list[float]] = {}
    for pair, value in results.items():
        for node in pair:
            met.setdefault(node, []).append(value)
    return met


def _worst_node(results: Mapping[Pair, float], rest: Mapping[Pair, float], better: str) -> str | None:
    """The node that differs most to the bad side over the pairs that are left.

    Nodes of which only two pairs are left are looked at when no other differs; of two alike the one whose pairs are
    worse on average is taken.
    """
    sign = -1.0 if better == "more" else 1.0
    partners = {node: len(values) for node, values in _met(results).items()}
    met = {node: values for node, values in _met(rest).items() if partners[node] >= FEWEST_PARTNERS}
    for least in (FEWEST_PARTNERS, FEWEST_PARTNERS - 1):
        each = {node: median(values) for node, values in met.items() if len(values) >= least}
        worse = _worse(each, better) if len(each) >= FEWEST else []
        if worse:
            return max(worse, key=lambda found: (found[1], sign * fmean(met[found[0]])))[0]
    return None


def _slow_node(node: str, bad: Sequence[str], results: Mapping[Pair, float], usual: Spread | None) -> Slow:
    mine = {pair: value for pair, value in results.items() if node in pair}
    clean = [value for pair, value in mine.items() if not set(pair) & (set(bad) - {node})]
    values = clean or list(mine.values())
    value = median(values)
    return Slow((node,), value, usual.score(value) if usual is not None else float("inf"), len(values))


def _worse(values: Mapping[_Key, float], better: str) -> list[tuple[_Key, float]]:
    """(key, score) of those that differ to the bad side."""
    usual = spread_of(values.values())
    scored = ((key, usual.score(value)) for key, value in values.items())
    return [(key, score) for key, score in scored if score > CUT and (values[key] < usual.median) == (better == "more")]


def next_pairs(nodes: Sequence[str], tried: Iterable[frozenset[str]], wanted: Sequence[str]) -> tuple[Pair, ...]:
    """A round of disjoint pairs that were not tried yet, in which as many of the wanted nodes as possible take part."""
    done = set(tried)
    used: set[str] = set()
    found: list[Pair] = []
    partners = [*wanted, *(node for node in nodes if node not in wanted)]
    for node in wanted:
        if node in used:
            continue
        fresh = (p for p in partners if p != node and p not in used and frozenset((node, p)) not in done)
        if (partner := next(fresh, None)) is not None:
            found.append((node, partner))
            used |= {node, partner}
    return tuple(found)


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
