"""The proof on one screen: what is proven, rehearsed, assumed, not measured, and what fails."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.lib.figures import SWING
from clusterwright.lib.scales import DAY_S
from clusterwright.model.evidence import Outcome, Verdict
from clusterwright.report.proofs import Proof

#: Lines per heading before the rest is folded into a count; the report has all of it.
SHOWN: Final = 4
_WIDTH: Final = 112
_LABEL: Final = 14


def proof_summary(proof: Proof, report: str) -> str:
    """At most a screen of text; `report` is where everything is."""
    lines = [_headline(proof), ""]
    for label, items in (
        ("proven", _proven(proof)),
        ("fails", _fails(proof)),
        ("rehearsed", _rehearsed(proof)),
        ("not measured", _not_measured(proof)),
        ("assumed", _assumed(proof)),
        ("not run", _not_run(proof)),
        ("report", iter([report])),
    ):
        lines += _block(label, list(items))
    return "\n".join(lines)


def _headline(proof: Proof) -> str:
    if proof.interrupted:
        return f"{proof.cluster}: {proof.interrupted}; what was done until then is below and in the report."
    verdicts = {
        0: "proven: every required claim is met by fresh measurements on the declared cluster.",
        1: "something required fails; see `fails`.",
        3: "nothing fails, and what is required is not all measured: there is no proof yet.",
    }
    return f"{proof.cluster}: {verdicts.get(proof.exit_code, 'ended without a verdict.')}"


def _proven(proof: Proof) -> Iterator[str]:
    coverage = proof.coverage
    total = coverage.met + coverage.not_met + coverage.not_measured + coverage.not_applicable
    age = f"; the oldest evidence is {coverage.oldest_age_s / DAY_S:.1f} days old" if coverage.oldest_age_s else ""
    yield f"{coverage.met} of {total} required claims met by measurement{age}"
    yield from _folded([f"{v.id}: {v.reason}" for v in proof.of_outcome(Outcome.MET, required=True)])


def _fails(proof: Proof) -> Iterator[str]:
    lines = [f"{v.id}: {v.reason}" for v in proof.of_outcome(Outcome.NOT_MET, required=True)]
    steps = [s for s in proof.steps if s.state == "failed" and s.name not in ("judge", "review")]
    lines += [s.name if s.name.startswith("rehearse") else f"{s.name}: {s.reason}" for s in steps]
    if proof.review is not None:
        lines += [f"{f.place}: {f.rule}: {f.message}" for f in proof.review.errors]
    yield from _folded(lines) if lines else iter(["nothing"])


def _rehearsed(proof: Proof) -> Iterator[str]:
    for rehearsal in proof.rehearsals:
        yield f"{rehearsal.name.replace('-', ' ')} {rehearsal.outcome.value}: {rehearsal.reason}"
    if any(r.devices == "virtual" for r in proof.rehearsals_that_ran()):
        yield "on virtual nodes of this machine: that proves nothing about the declared cluster"


def _not_measured(proof: Proof) -> Iterator[str]:
    unmeasured = proof.of_outcome(Outcome.NOT_MEASURED, required=True)
    yield f"{len(unmeasured)} required claims; what to run next:" if unmeasured else "nothing"
    steps: dict[str, list[Verdict]] = {}
    for verdict in unmeasured:
        steps.setdefault(verdict.next_step, []).append(verdict)
    ranked = sorted(steps.items(), key=lambda item: -len(item[1]))
    yield from _folded([f"{_names(verdicts)}: {step}" for step, verdicts in ranked])
    undecided = dict.fromkeys(f.rule for f in proof.review.undecided) if proof.review is not None else {}
    if undecided:
        yield f"{len(undecided)} review rules could not be decided: {', '.join(undecided)}"


def _names(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(v.id for v in verdicts[:3]) + (f" + {len(verdicts) - 3}" if len(verdicts) > 3 else "")


def _assumed(proof: Proof) -> Iterator[str]:
    if not proof.assumptions:
        yield "nothing" if proof.plan is not None else "unknown: there is no plan"
        return
    yield f"{len(proof.assumptions)} numbers carry the plan and are assumed; those that move most:"
    yield from _folded(
        [
            f"{a.leaf.name} = {a.leaf}; ±{SWING:.0%} moves {a.moves.name} by {_percent(a.effect)} ({a.leaf.basis})"
            for a in proof.assumptions
        ]
    )


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 10 else "more than ten times"


def _not_run(proof: Proof) -> Iterator[str]:
    yield from (f"{s.name}: {s.reason}" for s in proof.steps if s.state == "not run")


def _folded(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"… and {len(lines) - SHOWN} more in the report"


def _block(label: str, items: Sequence[str]) -> list[str]:
    """Items under one label, each cut to two lines."""
    lines: list[str] = []
    for item in items:
        wrapped = textwrap.wrap(" ".join(item.split()), _WIDTH - _LABEL, max_lines=2, placeholder=" …") or [""]
        for number, line in enumerate(wrapped):
            head = label if not lines else ""
            lines.append(f"{head:<{_LABEL}}{'  ' if number else ''}{line}")
    return lines
