"""The head of the report: what it is about, and the verdict in one sentence and a few counts."""

from __future__ import annotations

from clusterwright.model.evidence import Outcome, Rehearsal, RehearsalOutcome
from clusterwright.model.findings import Finding
from clusterwright.report.html.elements import Child, Html, h, markup
from clusterwright.report.html.words import EXITS, count_words, duration_words, time_words
from clusterwright.report.proofs import Proof


def render_head(proof: Proof) -> Html:
    """Cluster, verdict sentence, exit code, counts, and the inputs that all of it follows from."""
    colour = {0: "good", 1: "bad", 2: "bad", 3: "open"}.get(proof.exit_code, "none")
    return h(
        "header",
        h(
            "div",
            h("span", h("b", "Clusterwright"), f" {proof.version} · proof of a cluster"),
            h("span", h("time", time_words(proof.started), datetime=proof.started.isoformat())),
            cls="eyebrow",
        ),
        h("h1", proof.cluster),
        h("p", sentence(proof), cls="sentence"),
        h(
            "p",
            h("span", f"exit {proof.exit_code}", cls=f"exit outcome {colour}"),
            EXITS.get(proof.exit_code, "ended with an error"),
        ),
        _tiles(proof),
        _facts(proof),
        cls="top",
    )


def sentence(proof: Proof) -> str:
    """The verdict in plain words.

    Example: `0 of 21 required claims are met: nothing was measured on real hardware; both rehearsals passed; no review
    error.`
    """
    coverage = proof.coverage
    required = coverage.met + coverage.not_met + coverage.not_measured + coverage.not_applicable
    parts = []
    if required and coverage.not_met:
        parts.append(f"{coverage.not_met} not met, {coverage.not_measured} not measured")
    elif required and not any(v.reading is not None for v in proof.verdicts):
        parts.append("nothing was measured on real hardware")
    elif coverage.not_measured:
        parts.append(f"{coverage.not_measured} not measured")
    if coverage.not_applicable:
        parts.append(f"{coverage.not_applicable} not applicable, so not proven either")
    parts += [said for said in (_rehearsal_words(proof.rehearsals), _review_words(proof)) if said]
    if proof.verdicts:
        verb = "is" if required == 1 else "are"
        head = f"{coverage.met} of {count_words(required, 'required claim')} {verb} met"
        head = head if required else "No claim is required of this cluster, so nothing can be proven"
    else:
        head = "Nothing was judged"
    stopped = f"Stopped early: {proof.interrupted.rstrip('.')}. " if proof.interrupted else ""
    return f"{stopped}{head}: {'; '.join(parts)}." if parts else f"{stopped}{head}."


def _rehearsal_words(rehearsals: tuple[Rehearsal, ...]) -> str:
    by_outcome = {o: [r.name for r in rehearsals if r.outcome is o] for o in RehearsalOutcome}
    passed, failed, not_run = (by_outcome[o] for o in RehearsalOutcome)
    if not rehearsals or len(not_run) == len(rehearsals):
        return "no rehearsal was run"
    if len(passed) == len(rehearsals):
        return {1: "the rehearsal passed", 2: "both rehearsals passed"}.get(
            len(passed), f"all {len(passed)} rehearsals passed"
        )
    parts = [f"rehearsal {name} failed" for name in failed] + [f"rehearsal {name} was not run" for name in not_run]
    return ", ".join(parts)


def errors(proof: Proof) -> tuple[Finding, ...]:
    """Findings that are errors, decided and not waived."""
    return proof.review.errors if proof.review else ()


def _review_words(proof: Proof) -> str:
    if proof.review is None:
        return "the review did not run"
    if errors(proof):
        return count_words(len(errors(proof)), "review error")
    undecided = len(proof.review.blocking_undecided)
    return f"no review error, but {count_words(undecided, 'rule')} not decided" if undecided else "no review error"


def _tiles(proof: Proof) -> Html:
    coverage = proof.coverage
    required = coverage.met + coverage.not_met + coverage.not_measured + coverage.not_applicable
    tiles: list[Html] = []
    if proof.verdicts:
        proven = "good" if required and coverage.met == required else ""
        left = "open" if coverage.not_measured else ""
        tiles += [
            _tile("Proven", f"{coverage.met} of {required}", "required claims met by evidence", proven, "#verdict"),
            _tile("Not measured", coverage.not_measured, "required claims; never counted as met", left, "#verdict"),
        ]
    tiles.append(_failing(proof))
    if proof.plan is not None:
        count = len(proof.assumptions)
        href = "#assumptions" if count else "#plan"
        tiles.append(
            _tile("Only assumed", count, "numbers that carry a result of the plan", "open" if count else "", href)
        )
    if proof.rehearsals:
        passed = f"{len(proof.rehearsals_that(RehearsalOutcome.PASSED))} of {len(proof.rehearsals)}"
        about = "rehearsals passed; proof of nothing on hardware"
        tiles.append(_tile("Rehearsed", passed, about, "virtual", "#rehearsals"))
    return h("ul", tiles, cls="tiles")


def _failing(proof: Proof) -> Html:
    """Everything that is known to be wrong: claims, rules, steps."""
    counted = ("review", "judge")  # steps whose failures are the claims and errors themselves
    failed = [s for s in proof.steps if s.state == "failed" and s.name not in counted]
    wrong, not_met = len(errors(proof)), proof.coverage.not_met
    count = not_met + wrong + len(failed)
    said = [count_words(not_met, "claim") + " not met", count_words(wrong, "review error")]
    said += [count_words(len(failed), "step") + " failed"] if failed else []
    about = ", ".join(said) if count else "nothing that was looked at fails"
    href = "#verdict" if not_met else "#findings" if wrong else "#steps"
    return _tile("Fails", count, about, "bad" if count else "", href)


def _tile(name: str, value: Child, about: str, colour: str, href: str) -> Html:
    return h("li", h("a", name, href=href, cls="name"), h("b", value), h("span", about), cls=f"tile {colour}".strip())


def _facts(proof: Proof) -> Html:
    architecture = proof.document.architecture if proof.document else None
    facts: list[tuple[str, Child]] = []
    if architecture:
        where = [architecture.cluster.site or "", architecture.cluster.delivery or ""]
        if any(where):
            facts.append(("Site", ", ".join(w for w in where if w)))
        if architecture.scheduling:
            facts.append(("Declared engine", architecture.scheduling.engine))
        if architecture.acceptance and architecture.acceptance.accepted_by:
            facts.append(("Signs", architecture.acceptance.accepted_by))
    facts.append(("Took", duration_words(proof.seconds)))
    digests = (h("div", h("dt", what), h("dd", h("code", digest)), cls="long") for what, digest in proof.inputs)
    return h("dl", (h("div", h("dt", what), h("dd", value)) for what, value in facts), digests, cls="facts")


def coverage_line(proof: Proof) -> Html:
    """How many claims are in each state, as words."""
    counts = [(o, len(proof.of_outcome(o))) for o in Outcome]
    said = ", ".join(f"{n} {o.value}" for o, n in counts if n)
    informational = sum(1 for v in proof.verdicts if not v.requirement.required)
    more = f" {count_words(informational, 'claim is', 'claims are')} informational." if informational else ""
    age = proof.coverage.oldest_age_s
    oldest = f" The oldest evidence is {duration_words(age)} old." if age is not None else ""
    return markup(f"{count_words(len(proof.verdicts), 'claim')}: {said}.{more}{oldest}")
