"""Claims × shipped tests → the acceptance plan.

Every claim gets the tests that give its metric on its scope; claims that one run can serve share it. Tests that every
reading leans on (which hardware is there) come on top, and so do negative controls. What no test covers is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.catalogue.acceptance_tests import AcceptanceTest
from clusterwright.judging.acceptance_arguments import Purpose, values_for
from clusterwright.judging.acceptance_plans import RIGHTS, AcceptancePlan, Group, PlannedTest, Uncovered
from clusterwright.judging.acceptance_sites import PoolFacts
from clusterwright.judging.acceptance_statistics import describe_sustained
from clusterwright.judging.acceptance_units import fill, fill_title, size_family, wishes_of
from clusterwright.judging.acceptance_windows import order_tests
from clusterwright.judging.matching import counts_by_node
from clusterwright.judging.requirements import Claim
from clusterwright.judging.sites import Site, why_not_applicable, why_undecidable
from clusterwright.model.architecture import Architecture
from clusterwright.plan.results.plans import Plan

#: Seconds that a batch system or cluster takes to start one test. Assumed.
_START_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    """What the plan is derived from.

    Args:
        plan: gives sizes of payloads and checkpoints that the file leaves to be computed; None without one.
        only: claims to measure again with the reason, None for all of them.
        only_nodes: with `only`, nodes that tests on single nodes are limited to; empty for all.
        dcgm_level: level of DCGM diagnostics, 1 to 4.
    """

    architecture: Architecture
    site: Site
    pools: tuple[PoolFacts, ...]
    claims: tuple[Claim, ...]
    tests: tuple[AcceptanceTest, ...]
    plan: Plan | None = None
    only: Mapping[str, str] | None = None
    only_nodes: frozenset[str] = frozenset()
    dcgm_level: int = 3


def derive_plan(request: Request) -> AcceptancePlan:
    """The tests that the claims need, in the order in which they should run."""
    claims = [c for c in request.claims if request.only is None or c.id in request.only]
    purposes, uncovered = _purposes(request, claims)
    tests: list[PlannedTest] = []
    for purpose in purposes:
        planned = _plan_test(request, purpose)
        if isinstance(planned, str):
            uncovered += [Uncovered(c.id, planned, c.requirement.about.next_step, "cannot") for c in purpose.claims]
        elif planned.rounds:
            tests.append(planned)
    tests = [_named(t, tests) for t in tests]
    tests += _controls(request, tests, purposes)
    covered = {c for t in tests for c in t.claims}
    uncovered = [u for u in uncovered if u.claim not in covered]
    acceptance = request.architecture.acceptance
    window = acceptance.window.value if acceptance and acceptance.window is not None else None
    schedule = order_tests(tests, window)
    order = {interval.test: n for n, interval in enumerate(schedule)}
    engines = dict.fromkeys(p.engine for p in request.pools if p.engine)
    return AcceptancePlan(
        cluster=request.architecture.cluster.name,
        engine=" and ".join(engines),
        tests=tuple(sorted(tests, key=lambda t: order[t.id])),
        schedule=schedule,
        uncovered=tuple(uncovered),
        image=(acceptance.image if acceptance else None) or "",
        window_s=window,
        stale=dict(request.only or {}),
        statistics=describe_sustained(tests),
    )


def _purposes(request: Request, claims: Sequence[Claim]) -> tuple[list[Purpose], list[Uncovered]]:
    """(test, pool, claims that one run serves) in the order of the tests, and claims that get none."""
    found: dict[tuple[str, str, tuple[object, ...]], Purpose] = {}
    uncovered: list[Uncovered] = []
    for claim in claims:
        if out := _why_out(request, claim):
            uncovered.append(out)
            continue
        fitting = list(_fitting(request, claim))
        for test, pool in fitting:
            key = (test.name, pool.name if pool else "", _family(claim, test))
            known = found.get(key) or Purpose(test, pool, ())
            found[key] = replace(known, claims=(*known.claims, claim))
        if not fitting:
            uncovered.append(_why_no_test(request, claim))
    purposes = _merged(found)
    asked = {(p.test.name, p.pool) for p in purposes}
    unasked = [Purpose(t, pool, ()) for t, pool in _unasked(request, [p.test for p in purposes])]
    purposes += [p for p in unasked if (p.test.name, p.pool) not in asked]
    rank = {t.name: n for n, t in enumerate(request.tests)}
    return sorted(purposes, key=lambda p: rank[p.test.name]), uncovered


def _merged(found: Mapping[tuple[str, str, tuple[object, ...]], Purpose]) -> list[Purpose]:
    """Purposes, with claims that leave something open joined to one that settles it."""
    kept: dict[tuple[str, str, tuple[object, ...]], Purpose] = {}
    for key in sorted(found, key=lambda k: sum(v is None for v in k[2])):
        host = next((k for k in kept if k[:2] == key[:2] and _settles(k[2], key[2])), None)
        if host is None:
            kept[key] = found[key]
        else:
            kept[host] = replace(kept[host], claims=(*kept[host].claims, *found[key].claims))
    return [kept[key] for key in found if key in kept]


def _settles(settled: tuple[object, ...], open_: tuple[object, ...]) -> bool:
    return all(b is None or a == b for a, b in zip(settled, open_, strict=True))


def _why_out(request: Request, claim: Claim) -> Uncovered | None:
    if why := why_not_applicable(claim.requirement, request.site):
        return Uncovered(claim.id, f"not applicable: {why}", "", "out")
    if why := why_undecidable(claim.requirement, request.site):
        return Uncovered(claim.id, why, f"correct {claim.path} in the file", "out")
    return None


def _family(claim: Claim, test: AcceptanceTest) -> tuple[object, ...]:
    """What one run must have in common with another claim to serve both; None where the claim leaves it open."""
    scope, conditions = claim.requirement.scope, claim.requirement.conditions
    names = set(test.placeholders)
    return (
        conditions.operation if "binary" in names else None,
        conditions.data_type if "data_type" in names else None,
        scope.workload if {"workload", "model", "bytes_per_node"} & names else None,
        conditions.concurrency if {"processes", "concurrency"} & names else None,
        (scope.nodes, scope.of == "node") if test.runs in ("all-nodes", "together") else None,
        size_family(claim) or None if {"max_size", "size"} & names else None,
        conditions.transport if "transport" in names else None,
    )


def _fitting(request: Request, claim: Claim) -> Iterator[tuple[AcceptanceTest, PoolFacts | None]]:
    requirement = claim.requirement
    pools = [p for p in request.pools if requirement.scope.pool in (None, p.name)]
    for test in request.tests:
        if requirement.metric not in test.proves or not _is_wanted(request, test):
            continue
        if test.scopes and requirement.scope.of not in test.scopes:
            continue
        alone = test.runs in ("each-node", "each-pair")
        if alone and not counts_by_node(requirement):
            continue
        usable = [p for p in pools if not p.lacks(test)]
        if alone:
            yield from ((test, p) for p in usable)
        elif len(usable) == 1 or (usable and test.runs in ("client", "once")):
            yield test, usable[0]
        elif usable and len({p.gpus for p in usable}) == 1:
            yield test, None


def _is_wanted(request: Request, test: AcceptanceTest) -> bool:
    return test.control is None and test.dcgm_level in (None, request.dcgm_level)


def _why_no_test(request: Request, claim: Claim) -> Uncovered:
    metric = claim.requirement.metric
    able = [t for t in request.tests if metric in t.proves and _is_wanted(request, t)]
    how = claim.requirement.about.next_step
    if not able:
        return Uncovered(claim.id, f"no shipped test gives {metric}", how)
    pools = [p for p in request.pools if claim.requirement.scope.pool in (None, p.name)]
    lacking = {p.lacks(t) for p in pools for t in able} - {""}
    if lacking:
        reason = f"the file declares no {' and no '.join(sorted(lacking))} for it"
    elif claim.requirement.scope.of not in {s for t in able for s in t.scopes or (claim.requirement.scope.of,)}:
        reason = f"no shipped test gives {metric} for a scope of {claim.requirement.scope.of}"
    else:
        reason = f"no shipped test gives {metric} for all of its scope at once"
    return Uncovered(claim.id, reason, how, "cannot")


def _unasked(request: Request, asked: Iterable[AcceptanceTest]) -> Iterator[tuple[AcceptanceTest, PoolFacts]]:
    """Tests that no claim names and the others lean on."""
    acceptance = request.architecture.acceptance
    asked = list(asked)
    for test in request.tests:
        wanted = (
            test.always
            or (test.log_export and acceptance is not None and acceptance.log_export is not None)
            or (test.dcgm_level == 1 and any(t.dcgm_level for t in asked))
            or (test.sustained and any(t.follows == test.name for t in asked) and _asks_for_hours(request, test))
            or test.without_gpus
        )
        for pool in request.pools if wanted else ():
            if not pool.lacks(test) and not (test.without_gpus and pool.gpus):
                yield test, pool


def _asks_for_hours(request: Request, test: AcceptanceTest) -> bool:
    return _hours_after(request, test) > 0


def _hours_after(request: Request, test: AcceptanceTest) -> float:
    """Longest duration that claims of the tests after this one ask for, seconds."""
    metrics = {m for t in request.tests if t.follows == test.name for m in t.proves}
    claims = [c for c in request.claims if request.only is None or c.id in request.only]
    return wishes_of(c for c in claims if c.requirement.metric in metrics).duration_s


def _plan_test(request: Request, purpose: Purpose) -> PlannedTest | str:
    test = purpose.test
    wanted = wishes_of(purpose.claims).duration_s if "seconds" in test.placeholders or test.runs == "once" else 0.0
    if test.sustained:
        wanted = max(wanted, _hours_after(request, test))
    duration = wanted or test.default_seconds
    rounds = _rounds(request, purpose)
    values = values_for(request.architecture, request.plan, purpose, rounds, duration)
    if isinstance(values, str):
        return values
    argv = fill(test, values.texts)
    if isinstance(argv, str):
        return f"the file does not say the {argv.replace('_', ' ')}"
    timed = duration if (wanted or test.default_seconds) else 0.0
    per_round = max(test.minutes * 60, timed + min(test.minutes * 60, 300)) + _START_S
    claims = purpose.claims
    rights = max((test.rights, *(c.requirement.rights for c in claims)), key=RIGHTS.index)
    return PlannedTest(
        id=test.name,
        occupies=_occupied(request, test, values.workload),
        kind=test,
        title=fill_title(test.title, values.texts),
        argv=argv,
        pool=purpose.pool.name if purpose.pool else "",
        rounds=rounds,
        claims=tuple(c.id for c in claims),
        store=values.store,
        workload=values.workload,
        image=_image(request, test, values.workload),
        gpus_per_node=_gpus(request, purpose),
        seconds=per_round * max(1, len(rounds)),
        duration=timed,
        rights=rights,
        providers=tuple(dict.fromkeys(c.requirement.provider for c in claims)),
        conditions=values.conditions,
        notes=values.notes,
    )


def _rounds(request: Request, purpose: Purpose) -> tuple[tuple[Group, ...], ...]:
    test, only = purpose.test, request.only_nodes
    pools = (purpose.pool,) if purpose.pool else tuple(p for p in request.pools if not p.lacks(test))
    nodes = tuple(n for p in pools for n in p.nodes)
    working = tuple(n for p in pools for n in p.working)
    if test.runs in ("client", "once"):
        return (((),),)
    if test.runs == "each-node":
        chosen = [n for n in nodes if not only or n in only]
        return (tuple((n,) for n in chosen),) if chosen else ()
    if test.runs == "each-pair":
        return _pair_up(nodes, only)
    wanted = next((c.requirement.scope.nodes for c in purpose.claims if c.requirement.scope.nodes), None)
    taken = (working if wanted is None or wanted <= len(working) else nodes)[:wanted]
    if wanted is None and any(len(taken) < len(nodes) for _ in purpose.claims):
        taken = nodes  # a claim without a number is about every declared node
    if test.runs == "together":
        return (tuple((n,) for n in taken),)
    return ((taken,),)


def _occupied(request: Request, test: AcceptanceTest, workload: str) -> tuple[str, ...]:
    """Nodes that serve while a client beside them measures."""
    if test.runs != "once" or not test.exclusive:
        return ()
    brief = request.architecture.workloads.get(workload)
    names = brief.pools if brief and brief.pools else tuple(p.name for p in request.pools if p.gpus)
    return tuple(n for p in request.pools if p.name in names for n in p.working)


def _pair_up(nodes: Sequence[str], only: frozenset[str]) -> tuple[tuple[Group, ...], ...]:
    """Rounds of disjoint pairs that cover every node; an odd one out meets the first in a round of its own."""
    if len(nodes) < 2:
        return ()
    pairs = [(nodes[i], nodes[i + 1]) for i in range(0, len(nodes) - 1, 2)]
    extra = [(nodes[0], nodes[-1])] if len(nodes) % 2 else []
    if only:
        pairs = [p for p in pairs if set(p) & only]
        extra = [p for p in extra if p[1] in only]
    return tuple(tuple(r) for r in (pairs, extra) if r)


def _gpus(request: Request, purpose: Purpose) -> int:
    pools = (purpose.pool,) if purpose.pool else request.pools
    return max((p.gpus for p in pools), default=0)


def _image(request: Request, test: AcceptanceTest, workload: str) -> str:
    """Reference of the production image: of the workload, else of acceptance; "" for a test that brings tools."""
    if test.image != "production":
        return ""
    brief = request.architecture.workloads.get(workload)
    acceptance = request.architecture.acceptance
    return (brief.image if brief and brief.image else None) or (acceptance.image if acceptance else None) or ""


def _named(test: PlannedTest, tests: Sequence[PlannedTest]) -> PlannedTest:
    """The test with an id of its own: its pool, operation or workload where a name occurs more than once."""
    twins = [t for t in tests if t.kind.name == test.kind.name]
    if len(twins) == 1:
        return test
    marks = [_mark(t) for t in twins]
    mark = _mark(test)
    if marks.count(mark) > 1 or not mark:
        mark = f"{mark}-{[id(t) for t in twins].index(id(test)) + 1}".lstrip("-")
    return replace(test, id=f"{test.kind.name}-{mark}")


def _mark(test: PlannedTest) -> str:
    pieces = (test.pool, dict(test.conditions).get("operation", ""), test.workload)
    kept = "-".join("".join(c if c.isalnum() else "-" for c in p.lower()) for p in pieces if p)
    return "-".join(p for p in kept.encode("ascii", "ignore").decode().split("-") if p)[:48]


def _controls(request: Request, tests: Sequence[PlannedTest], purposes: Sequence[Purpose]) -> list[PlannedTest]:
    """Negative controls of the planned tests, on the pools that have the feature which they switch off."""
    pools = {p.name: p for p in request.pools}
    found = []
    for kind in request.tests:
        control = kind.control
        for test in tests if control else ():
            operation = dict(test.conditions).get("operation", "")
            if control is None or test.kind.name != control.of:
                continue
            if control.operations and operation not in control.operations:
                continue
            members = [pools[test.pool]] if test.pool in pools else list(pools.values())
            if control.needs and not all(getattr(p, control.needs) for p in members):
                continue
            if test.kind.runs == "all-nodes" and len(test.nodes) < 2:
                continue
            values = dict(test.conditions)
            argv = fill(kind, values)
            if isinstance(argv, str):
                continue
            found.append(
                replace(
                    test,
                    id=f"{kind.name}{test.id.removeprefix(test.kind.name)}",
                    kind=kind,
                    title=fill_title(kind.title, values),
                    argv=argv,
                    claims=(),
                    seconds=kind.minutes * 60 + _START_S,
                    duration=0.0,
                    control_of=test.id,
                    notes=(),
                )
            )
    return found
