"""Prove: load → plan → review → rehearse → judge → report, each step kept even where a later one is cut short."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from clusterwright import __version__
from clusterwright.app.interrupting import Stop
from clusterwright.app.judging import judge_document
from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.app.rehearsing import NAMES, clear, not_run, rehearse
from clusterwright.files.inputs import read_source
from clusterwright.files.locks import owned_directory
from clusterwright.files.outputs import write_text
from clusterwright.judging.combining import combine
from clusterwright.judging.outputs import Kept
from clusterwright.judging.verdicts import exit_code
from clusterwright.lib.errors import Interrupted
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Coverage, Evidence, Outcome, Rehearsal, RehearsalOutcome, Verdict
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.plans import Plan
from clusterwright.report.html import render_proof
from clusterwright.report.proof_records import proof_json, proof_record
from clusterwright.report.proof_texts import proof_summary
from clusterwright.report.proofs import ACCEPT, LATER_STEPS, Proof, Step, StepState, rank_assumptions
from clusterwright.review.reviewing import review_document
from clusterwright.review.reviews import Review

#: Exit code of a run that a person or a signal ended (128 + SIGINT, as shells report it).
INTERRUPTED: Final = 130
HTML: Final = "report.html"
JSON: Final = "report.json"
#: Title of the step for each rehearsal.
REHEARSAL_STEPS: Final = {name: f"rehearse {name.replace('-', ' ')}" for name in NAMES}

T = TypeVar("T")


class Progress(Protocol):
    """Told what is being done, while it is done."""

    def begin(self, step: str) -> None:
        """A step begins."""
        ...

    def note(self, text: str) -> None:
        """Something happened within it."""
        ...

    def end(self, step: Step) -> None:
        """It has ended, or does not take place."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What to prove and where the report goes.

    Args:
        out: directory for the report; `proof/<cluster>` below the working directory if None.
        evidence: what was measured on the cluster; without any no claim can be met.
    """

    files: Sequence[str]
    overrides: Sequence[str] = ()
    catalogues: Sequence[str] = ()
    out: Path | None = None
    skip_rehearsal: bool = False
    evidence: Sequence[Kept] = ()


@dataclass(frozen=True, slots=True)
class Proven:
    """The proof and the directory that holds its report."""

    proof: Proof
    out: Path


@dataclass(slots=True)
class _Run:
    """What has been found so far; a report can be made of it at any moment."""

    document: Document
    inputs: tuple[tuple[str, str], ...]
    started: datetime
    began_s: float
    progress: Progress
    stop: Stop
    evidence: tuple[Evidence, ...] = ()
    plan: Plan | None = None
    review: Review | None = None
    rehearsals: list[Rehearsal] = field(default_factory=list)
    verdicts: tuple[Verdict, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    steps: list[Step] = field(default_factory=list)
    interrupted: str = ""

    def take(self, name: str, work: Callable[[], T], describe: Callable[[T], tuple[StepState, str]]) -> T:
        """Do one step and record how it ended."""
        began_s = time.monotonic()
        self.progress.begin(name)
        found = work()
        if not self.interrupted:
            self.stop.check()
        state, reason = describe(found)
        self.add(Step(name, state, reason, time.monotonic() - began_s))
        return found

    def add(self, step: Step) -> None:
        self.steps.append(step)
        self.progress.end(step)


def prove(request: Request, progress: Progress) -> Proven:
    """Prove one architecture and write its report.

    An interruption (SIGINT, SIGTERM) ends the rehearsal that runs, leaves no process behind, and still gives a report
    of what was done, which says that it was interrupted.

    Raises:
        InvalidInput: when the files cannot be read as an architecture; nothing is written then.
        Unavailable: when another run owns the directory, or the report cannot be written.
        Interrupted: when that happened before there was anything to report.
    """
    with Stop() as stop:
        started, began_s = datetime.now(UTC), time.monotonic()
        progress.begin("load")
        document = load_document(request.files, request.overrides)
        measured = combine([record for kept in request.evidence for record in kept.evidence])
        run = _Run(document, _digest_inputs(document, request), started, began_s, progress, stop, measured)
        run.add(Step("load", "done", _describe_document(document), time.monotonic() - began_s))
        name = document.architecture.cluster.name
        # Ranks run in other directories than this process: every path they are given is absolute.
        where = (request.out or Path("proof") / safe_name(name)).absolute()
        with owned_directory(where) as out:
            try:
                _take_steps(run, request, out)
            except (Interrupted, KeyboardInterrupt) as interruption:
                run.interrupted = str(interruption) or "interrupted"
            stop.ignore_more()
            _finish(run)
            proof = _proof_of(run)
            write_text(out / JSON, proof_json(proof), replace=True)
            write_text(out / HTML, render_proof(proof), replace=True)
            return Proven(proof, request.out or Path("proof") / safe_name(name))


def describe_proof(proof: Proof, where: str) -> str:
    """The proof on one screen; `where` is the report that has all of it."""
    return proof_summary(proof, where)


def proof_values(proof: Proof) -> dict[str, Any]:
    """The proof as plain values, as report.json holds them."""
    return proof_record(proof)


def safe_name(name: str) -> str:
    """A cluster's name as one directory name: whatever is not a letter, digit, dot, dash or underscore becomes `_`."""
    plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".")
    return plain[:100] or "cluster"


def _digest_inputs(document: Document, request: Request) -> tuple[tuple[str, str], ...]:
    """What the result follows from: the merged file, the program with its catalogue, own catalogues, evidence."""
    own = [(f"catalogue {path}", _digest(read_source(path).text)) for path in request.catalogues]
    kept = [(f"evidence {k.source}", _digest("\n".join(e.id for e in k.evidence))) for k in request.evidence]
    return (("architecture", document.digest), ("clusterwright with its catalogue", __version__), *own, *kept)


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _describe_document(document: Document) -> str:
    architecture = document.architecture
    nodes = sum(p.node_count for p in architecture.pools.values())
    return f"{architecture.cluster.name}: {_count(len(architecture.workloads), 'workload')}, {_count(nodes, 'node')}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _take_steps(run: _Run, request: Request, out: Path) -> None:
    catalogue = load_catalogue(request.catalogues)
    plan = run.plan = run.take("plan", lambda: plan_architecture(run.document, catalogue), _describe_plan)
    run.review = run.take(
        "review",
        lambda: review_document(run.document, catalogue, plan, today=run.started.date()),
        _describe_review,
    )
    for name in NAMES:
        directory = out / "rehearsals" / name
        if request.skip_rehearsal:
            clear(directory)
            run.rehearsals.append(not_run(name, "left out on request (--skip-rehearsal)"))
            run.add(Step(REHEARSAL_STEPS[name], "not run", run.rehearsals[-1].reason))
            continue
        found = run.take(
            REHEARSAL_STEPS[name],
            lambda name=name, directory=directory: rehearse(  # type: ignore[misc]
                name, run.document.architecture, plan, directory, run.progress.note
            ),
            _describe_rehearsal,
        )
        where = directory.relative_to(out).as_posix() if found.log_directory else ""
        run.rehearsals.append(replace(found, log_directory=where))


def _describe_plan(plan: Plan) -> tuple[StepState, str]:
    rest = f"; {_count(len(plan.unplanned), 'part')} could not be planned" if plan.unplanned else ""
    if plan.misfits:
        first = plan.misfits[0].message
        more = f" (and {len(plan.misfits) - 1} more)" if len(plan.misfits) > 1 else ""
        return "failed", f"does not hold: {first}{more}{rest}"
    used, gpus = sum(p.used for p in plan.pools), sum(p.gpus for p in plan.pools)
    return "done", f"{_count(len(plan.workloads), 'workload')} on {used} of {gpus} GPUs{rest}"


def _describe_review(review: Review) -> tuple[StepState, str]:
    found = ((review.errors, "error"), (review.warnings, "warning"), (review.notes, "note"))
    counts = ", ".join(_count(len(findings), word) for findings, word in found)
    undecided = f", {len(review.undecided)} undecided" if review.undecided else ""
    return ("failed" if review.errors else "done"), f"{review.state}: {counts}{undecided}"


def _describe_rehearsal(found: Rehearsal) -> tuple[StepState, str]:
    states: dict[RehearsalOutcome, StepState] = {
        RehearsalOutcome.PASSED: "done",
        RehearsalOutcome.FAILED: "failed",
        RehearsalOutcome.NOT_RUN: "not run",
    }
    return states[found.outcome], found.reason


def _finish(run: _Run) -> None:
    """Judge what there is, and say of every step that did not take place why."""
    taken = {s.name for s in run.steps}
    why = f"{run.interrupted} before it ended"
    for name in ("plan", "review"):
        if name not in taken:
            run.add(Step(name, "not run", why))
    for name in NAMES:
        if REHEARSAL_STEPS[name] not in taken:
            run.rehearsals.append(not_run(name, why))
            run.add(Step(REHEARSAL_STEPS[name], "not run", why))
    run.verdicts, run.coverage = run.take(
        "judge",
        lambda: judge_document(run.document, run.plan, run.rehearsals, run.evidence, now=datetime.now(UTC)),
        _describe_verdicts,
    )
    for name, reason in LATER_STEPS:
        if name == ACCEPT and run.evidence:
            run.add(Step(name, "done", f"{_count(len(run.evidence), 'record')} of evidence judged"))
        else:
            run.add(Step(name, "not run", reason))


def _describe_verdicts(found: tuple[tuple[Verdict, ...], Coverage]) -> tuple[StepState, str]:
    coverage = found[1]
    counts = (coverage.met, coverage.not_met, coverage.not_measured, coverage.not_applicable)
    text = ", ".join(f"{n} {o.value}" for n, o in zip(counts, Outcome, strict=True))
    return ("failed" if coverage.not_met else "done"), f"of {sum(counts)} required claims: {text}"


def _proof_of(run: _Run) -> Proof:
    return Proof(
        cluster=run.document.architecture.cluster.name,
        document=run.document,
        review=run.review,
        plan=run.plan,
        rehearsals=tuple(run.rehearsals),
        verdicts=run.verdicts,
        coverage=run.coverage,
        steps=tuple(run.steps),
        assumptions=rank_assumptions(run.plan) if run.plan is not None else (),
        started=run.started,
        seconds=time.monotonic() - run.began_s,
        version=__version__,
        inputs=run.inputs,
        exit_code=_exit_code(run),
        interrupted=run.interrupted,
    )


def _exit_code(run: _Run) -> int:
    """130 interrupted; 1 where a step failed; else what the verdicts cover, 0 only if the review is complete, too."""
    if run.interrupted:
        return INTERRUPTED
    if any(s.state == "failed" for s in run.steps):
        return 1
    code = exit_code(run.coverage)
    incomplete = run.review is None or run.review.state != "ready" or run.plan is None
    return 3 if code == 0 and incomplete else code
