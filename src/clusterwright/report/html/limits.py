"""What was not run, what the report does not show, and what a signature under it would take on."""

from __future__ import annotations

from clusterwright.model.evidence import Outcome
from clusterwright.report.html.elements import Child, Html, h, markup
from clusterwright.report.html.words import count_words
from clusterwright.report.proofs import Proof


def render_limits(proof: Proof) -> Html:
    """What was not run, and what this report does not show."""
    not_run = [s for s in proof.steps if s.state == "not run"]
    unmeasured = len(proof.of_outcome(Outcome.NOT_MEASURED))
    virtual = any(r.devices == "virtual" for r in proof.rehearsals)
    limits = [
        "No claim on the declared cluster is proven by a plan or by a rehearsal; only evidence from it can do that.",
        f"{count_words(unmeasured, 'claim')} not measured: the cluster may or may not hold them." if unmeasured else "",
        "Virtual nodes have no GPU, no fabric and no storage path: their times say nothing about speed on hardware."
        if virtual
        else "",
        "Catalogue and declared numbers are taken at their word; nothing here checked that the hardware is what the "
        "file says.",
        "Clusterwright does not isolate users from each other and does not stop anyone outside it from using a GPU.",
    ]
    return markup(
        h("h3", "Not run") if not_run else None,
        h("ul", (h("li", h("b", s.name), f": {s.reason}") for s in not_run)) if not_run else None,
        h("h3", "What this report does not show"),
        h("ul", (h("li", said) for said in limits if said)),
        _signature(proof),
    )


def _signature(proof: Proof) -> Html:
    """What whoever accepts the cluster takes on by signing now, with room to sign on paper."""
    acceptance = proof.document.architecture.acceptance if proof.document else None
    if acceptance is None or not proof.verdicts:
        return Html("")
    coverage, waived = proof.coverage, proof.review.waived if proof.review else ()
    errors = proof.review.errors if proof.review else ()
    risks = (
        (coverage.not_met, count_words(coverage.not_met, "required claim is", "required claims are") + " not met"),
        (coverage.not_measured, count_words(coverage.not_measured, "required claim") + " that nobody measured"),
        (len(errors), count_words(len(errors), "review error") + " left open"),
        (len(waived), count_words(len(waived), "waived finding")),
        (len(proof.assumptions), count_words(len(proof.assumptions), "assumed number") + " that a result rests on"),
    )
    taken: list[Child] = [h("li", said) for count, said in risks if count]
    who = acceptance.accepted_by or "nobody is named (acceptance.accepted_by)"
    return markup(
        h("h3", "Before you sign"),
        h("p", f"Accepts: {who}. A signature under this report would take on:")
        if taken
        else h("p", f"Accepts: {who}."),
        h("ul", taken) if taken else None,
        h("p", "Name, date, signature", cls="sign"),
    )
