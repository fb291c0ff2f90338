"""Everything that came back of an acceptance → verdicts, with the reason and the next command for what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from clusterwright.judging.acceptance_contradictions import (
    find_copies,
    why_output_contradicts,
    why_record_contradicts,
)
from clusterwright.judging.acceptance_evidence import (
    ControlResult,
    RunOutput,
    combine_ranks,
    compare_control,
    evidence_of,
    image_evidence,
)
from clusterwright.judging.acceptance_loads import Load, load_of
from clusterwright.judging.acceptance_plans import AcceptancePlan, Group, PlannedTest
from clusterwright.judging.acceptance_rails import of_the_network, why_rails_missing
from clusterwright.judging.acceptance_runs import RunRecord, State, UnitResult, describe_results
from clusterwright.judging.acceptance_sites import PoolFacts
from clusterwright.judging.combining import combine
from clusterwright.judging.verdicts import exit_code
from clusterwright.lib.hostlists import fold
from clusterwright.model.evidence import Coverage, Evidence, Outcome, Verdict
from clusterwright.model.observations import Outcome as Reads


@dataclass(frozen=True, slots=True)
class ReturnedRun:
    """A run that came back.

    Args:
        outputs: those that could be opened; empty when it wrote none.
        problem: why its files cannot be used (altered since they were collected, too large), "" otherwise.
    """

    run: RunRecord
    outputs: tuple[RunOutput, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the runs give before claims are judged.

    Args:
        evidence: of all runs.
        units: one result per run that the plan expects, in its order.
        controls: one per negative control.
        unplanned: runs that the plan does not know, in words.
        sources: evidence id → id of the test that gave it.
        without_load: (test, nodes, why) of logs that were to cover a load which was none.
        reported: nodes of which a record came back, whatever it says.
    """

    evidence: tuple[Evidence, ...]
    units: tuple[UnitResult, ...]
    controls: tuple[ControlResult, ...]
    unplanned: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    without_load: tuple[tuple[str, Group, str], ...] = ()
    reported: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Imported:
    """The verdict on an acceptance.

    Args:
        others: outputs beside the runs of the plan, with what was made of each.
        remarks: what to know about the whole.
    """

    plan: AcceptancePlan
    findings: Findings
    verdicts: tuple[Verdict, ...]
    coverage: Coverage
    others: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def silent(self) -> tuple[str, ...]:
        """Nodes of which no run came back at all, though one was expected."""
        expected = dict.fromkeys(n for u in self.findings.units for n in u.nodes)
        seen = {n for u in self.findings.units if u.state not in (State.ABSENT, State.LACKING) for n in u.nodes}
        seen |= self.findings.reported
        return tuple(n for n in expected if n not in seen)

    @property
    def exit_code(self) -> int:
        """As for verdicts; 3 also when a negative control shows that a met number may mean something else."""
        code = exit_code(self.coverage)
        return 3 if code == 0 and any(c.held is False for c in self.findings.controls) else code


def gather_findings(plan: AcceptancePlan, returned: Sequence[ReturnedRun], pools: Sequence[PoolFacts] = ()) -> Findings:
    """Evidence of everything that came back, and what did not.

    Args:
        pools: of the file; without them neither rails nor GPU products are compared with what it declares.
    """
    facts = {p.name: p for p in pools}
    by_unit: dict[tuple[str, str], list[ReturnedRun]] = {}
    for run in examine_runs(plan, returned, facts):
        if run.run.role in ("", "client"):
            by_unit.setdefault((run.run.test, run.run.unit), []).append(run)
    servers = {(r.run.test, r.run.unit): r.run for r in returned if r.run.role not in ("", "client")}
    evidence: dict[str, list[Evidence]] = {t.id: [] for t in plan.tests}
    units: list[UnitResult] = []
    loads = _loads(plan, by_unit)
    without_load: list[tuple[str, Group, str]] = []
    for test in plan.tests:
        attempts: dict[int, dict[Group, RunOutput]] = {}
        parts: list[Evidence] = []
        for unit, nodes in test.units:
            runs = sorted(by_unit.pop((test.id, unit), []), key=lambda r: r.run.attempt)
            units.append(_unit_result(test, unit, nodes, runs, servers.get((test.id, unit))))
            load = loads.get((test.kind.follows, nodes))
            if load is not None and load.why_none and runs:
                without_load.append((test.id, nodes, load.why_none))
            for run in runs:
                found = _evidence(test, nodes, run, load, facts.get(test.pool))
                evidence[test.id] += found
                parts += found
                if run.outputs and not run.problem and not run.run.lacking:
                    attempts.setdefault(run.run.attempt, {})[nodes] = run.outputs[0]
        if test.kind.launch == "ranks":
            absent = {u.nodes[0]: u.reason for u in units if u.test == test.id and u.state is not State.READ}
            jobs = (combine_ranks(outputs, test, absent) for outputs in attempts.values())
            evidence[test.id] += [job for job in jobs if job is not None]
        elif test.kind.runs == "together":
            evidence[test.id] += combine(parts)[len(parts) :]
    controls = tuple(
        _with_reason(compare_control(t, evidence[t.id], evidence[t.control_of]), units)
        for t in plan.tests
        if t.control_of and t.control_of in evidence
    )
    claimed = [e for t in plan.tests if not t.control_of for e in evidence[t.id]]
    strange = tuple(f"{test} on {unit}" for test, unit in by_unit)
    return Findings(
        evidence=tuple(claimed),
        units=tuple(units),
        controls=controls,
        unplanned=strange,
        sources={e.id: t.id for t in plan.tests if not t.control_of for e in evidence[t.id]},
        without_load=tuple(without_load),
        reported=frozenset(r.run.node for r in returned if r.run.node),
    )


def examine_runs(
    plan: AcceptancePlan, returned: Sequence[ReturnedRun], pools: Mapping[str, PoolFacts]
) -> list[ReturnedRun]:
    """The runs, each with what speaks against it: nothing that contradicts its record or the file counts."""
    declared = tuple(dict.fromkeys(n for t in plan.tests for n in t.nodes))
    nodes_of = {(t.id, unit): (t, nodes) for t in plan.tests for unit, nodes in t.units}
    ordered = sorted(returned, key=lambda r: (r.run.started, r.run.attempt))
    seen = [(r, nodes_of.get((r.run.test, r.run.unit))) for r in ordered if r.run.role in ("", "client")]
    copies = find_copies((known[1], o) for r, known in seen if known and not r.problem for o in r.outputs)

    def problem(run: ReturnedRun) -> str:
        known = nodes_of.get((run.run.test, run.run.unit))
        if run.problem or known is None:
            return run.problem
        test, nodes = known
        reasons = [why_record_contradicts(test, nodes, run.run)]
        for o in run.outputs:
            reasons.append(why_output_contradicts(o, nodes, declared, pools.get(test.pool)))
            reasons.append(copies.get(o.path, ""))
        return next(filter(None, reasons), "")

    return [replace(run, problem=problem(run)) for run in returned]


def _with_reason(control: ControlResult, units: Sequence[UnitResult]) -> ControlResult:
    """An open control with what happened to its runs."""
    if control.held is not None:
        return control
    happened = describe_results([u for u in units if u.test in (control.test, control.of)])
    return replace(control, text=f"{control.text}; {happened}" if happened else control.text)


def _loads(
    plan: AcceptancePlan, by_unit: Mapping[tuple[str, str], Sequence[ReturnedRun]]
) -> dict[tuple[str, Group], Load]:
    """(kind of test, nodes) → the longest load that a run of it put on them to its end."""
    none = Load(datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC), "it did not report")
    return {
        (test.kind.name, nodes): max(
            (load_of(r.run, r.outputs, r.problem, test) for r in by_unit.get((test.id, unit), ())),
            key=lambda load: load.seconds,
            default=none,
        )
        for test in plan.tests
        if test.kind.sustained
        for unit, nodes in test.units
    }


def _unit_result(
    test: PlannedTest, unit: str, nodes: Group, runs: Sequence[ReturnedRun], server: RunRecord | None
) -> UnitResult:
    """What came back of a unit; of a pair, the other side may be all that says why there is nothing."""
    if not runs and server is not None and server.lacking:
        return UnitResult(test.id, unit, nodes, State.LACKING, f"{server.lacking}, as {server.node} says", 1)
    if not runs:
        return UnitResult(test.id, unit, nodes, State.ABSENT, "did not report", 0)
    last = max(runs, key=lambda r: r.run.attempt)
    count = len(runs)
    if last.run.lacking:
        return UnitResult(test.id, unit, nodes, State.LACKING, last.run.lacking, count)
    if last.problem:
        return UnitResult(test.id, unit, nodes, State.UNREAD, last.problem, count)
    if not last.outputs:
        return UnitResult(test.id, unit, nodes, State.UNREAD, "it brought no output back", count)
    refused = [o for o in last.outputs if o.transcript.outcome is Reads.REFUSED]
    if last.run.failed:
        return UnitResult(test.id, unit, nodes, State.FAILED, last.run.failed, count)
    if refused:
        reason = f"unreadable: {refused[0].transcript.refusal or 'no run in it'}"
        return UnitResult(test.id, unit, nodes, State.UNREAD, reason, count)
    return UnitResult(test.id, unit, nodes, State.READ, "", count)


def _evidence(
    test: PlannedTest, nodes: Group, run: ReturnedRun, load: Load | None, pool: PoolFacts | None
) -> list[Evidence]:
    if run.run.lacking or run.problem:
        return []
    outputs, lost = run.outputs, ""
    if test.kind.per_rail and pool is not None:
        outputs = of_the_network(outputs, pool.layer)
        lost = why_rails_missing(outputs, pool.rails)
    one_job = test.kind.launch == "ranks"  # judged as a whole, from the outputs of all nodes
    found = [evidence_of(o, test, nodes, load=load, lost=lost) for o in outputs if not one_job]
    image = image_evidence(run.outputs[0], test, nodes) if run.outputs and "image_digest" in test.kind.proves else None
    return [*found, *([image] if image else [])]


def explain_verdicts(
    verdicts: Sequence[Verdict],
    plan: AcceptancePlan,
    findings: Findings,
    commands: Mapping[str, str],
    own: Mapping[str, str] | None = None,
) -> tuple[Verdict, ...]:
    """The verdicts, those that are open with what happened to their tests and the command that comes next.

    Args:
        commands: test → command that runs it (again).
        own: claim → why the tests that were planned for it leave it open; where it is missing, the verdict's reason.
    """
    results: dict[str, list[UnitResult]] = {}
    for unit in findings.units:
        results.setdefault(unit.test, []).append(unit)
    return tuple(_explain(v, plan, findings, results, commands, (own or {}).get(v.id, v.reason)) for v in verdicts)


def _explain(
    verdict: Verdict,
    plan: AcceptancePlan,
    findings: Findings,
    results: Mapping[str, list[UnitResult]],
    commands: Mapping[str, str],
    own: str,
) -> Verdict:
    tests = [t for t in plan.tests if verdict.id in t.claims]
    if verdict.outcome is Outcome.NOT_MET:
        source = findings.sources.get(verdict.evidence_id, "")
        strange = source and source not in {t.id for t in tests}
        return replace(verdict, reason=f"{verdict.reason} (seen by {source})") if strange else verdict
    if verdict.outcome is not Outcome.NOT_MEASURED or not tests:
        return verdict
    found = [u for t in tests for u in results.get(t.id, ())]
    happened = describe_results(found)
    if happened:  # the sizes of a sweep that no claim asks for are no cause
        own = own.partition("; other conditions: ")[0]
    bare = own == "not run" or all(u.state is not State.READ for u in found)
    reason = happened if bare and happened else "; ".join(filter(None, (own, happened)))
    if verdict.requirement.conditions.duration is not None and (why := _no_load(findings, tests)):
        reason = f"{why}; {reason}"
    if reason == "not run":
        reason = verdict.reason
    open_tests = [t for t in tests if any(u.state is not State.READ for u in results.get(t.id, ()))] or tests
    return replace(verdict, reason=reason, next_step="; ".join(_next(t, results, commands) for t in open_tests))


def _no_load(findings: Findings, tests: Sequence[PlannedTest]) -> str:
    """Why what came before a log was no load, by reason, with the nodes."""
    ids = {t.id for t in tests}
    by_why: dict[str, list[str]] = {}
    for test, nodes, why in findings.without_load:
        if test in ids:
            by_why.setdefault(why, []).extend(nodes)
    return "; ".join(f"no load came before it: {why} ({fold(nodes)})" for why, nodes in by_why.items())


def _next(test: PlannedTest, results: Mapping[str, list[UnitResult]], commands: Mapping[str, str]) -> str:
    left = [u for u in results.get(test.id, ()) if u.state is not State.READ]
    nodes = tuple(dict.fromkeys(n for u in left or results.get(test.id, []) for n in u.nodes))
    where = f" on {fold(nodes)}" if nodes else ""
    reasons = {u.reason for u in left if u.state is State.LACKING}
    settle = f"first settle: {'; '.join(sorted(reasons))}; then " if reasons else ""
    who = {"user": "an ordinary user", "admin": "an administrator of the engine", "root": "root"}[test.rights]
    return f"{settle}{commands.get(test.id, test.id)}{where}, as {who}"
