"""The report as a whole: complete, self-contained, escaped, and without an empty section."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from builders.pages import Node, parse_page
from builders.proofs import EXAMPLE, EXAMPLES, example_document, example_proof, finding, planned_proof
from clusterwright.model.evidence import Coverage, Moment, Outcome, Rehearsal, RehearsalOutcome
from clusterwright.model.findings import Severity
from clusterwright.report.html import render_proof
from clusterwright.report.proofs import Proof, Step

HOSTILE = "</style></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&\n\u202eevil"
SHOWN = "</style></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`& ⟨U+202E⟩evil"


def nothing_known(proof: Proof) -> Proof:
    return replace(
        proof, document=None, review=None, plan=None, rehearsals=(), verdicts=(), coverage=Coverage(), assumptions=(),
        steps=(Step("load", "failed", "cluster.yaml:3:1: unknown key"),), exit_code=2,
    )  # fmt: skip


def failed(rehearsal: Rehearsal) -> Rehearsal:
    return replace(rehearsal, outcome=RehearsalOutcome.FAILED)


def hostile_proof() -> Proof:
    """The example with hostile text in names, messages, readings and values."""
    quoted = '"' + HOSTILE.replace('"', '\\"').replace("\n", "\\n").replace("\u202e", "\\u202e") + '"'
    text = EXAMPLE.read_text()
    text = text.replace("\n  name: two-workers", f"\n  name: {quoted}")
    text = text.replace("site: ams1", f"site: {quoted}").replace("\n    oob:", f"\n    {quoted}:")
    text = text.replace("source: order form", f"source: {quoted}").replace("\n    no-xid:", f"\n    {quoted}:")
    document = example_document(text)
    proof = example_proof(document)
    assert proof.review
    assert proof.plan
    said = finding(HOSTILE, Severity.ERROR, "network", "pools.gpu", HOSTILE, document, action=HOSTILE, owner=HOSTILE)
    chat, finetune = proof.plan.workloads
    return replace(
        proof,
        review=replace(proof.review, findings=(said, *proof.review.findings)),
        plan=replace(proof.plan, workloads=(replace(chat, name=HOSTILE, model=HOSTILE), finetune), limits=(HOSTILE,)),
        rehearsals=tuple(
            replace(r, reason=HOSTILE, timeline=(Moment(1.0, HOSTILE),), log_directory=HOSTILE)
            for r in proof.rehearsals
        ),
        verdicts=tuple(replace(v, reason=HOSTILE, next_step=HOSTILE, rehearsed=HOSTILE) for v in proof.verdicts),
        steps=(Step(HOSTILE, "not run", HOSTILE),),
        version=HOSTILE,
        inputs=((HOSTILE, HOSTILE),),
        interrupted=HOSTILE,
    )


VARIANTS = {
    "example": example_proof,
    "hostile": hostile_proof,
    **{f"planned {f.parent.name}": partial(planned_proof, f) for f in sorted(EXAMPLES.glob("*/cluster.yaml"))},
    "nothing known": lambda: nothing_known(example_proof()),
    "no plan": lambda: replace(example_proof(), plan=None, assumptions=()),
    "no rehearsal": lambda: replace(example_proof(), rehearsals=()),
    "no review": lambda: replace(example_proof(), review=None),
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys(), scope="module")
def page(request: pytest.FixtureRequest) -> Node:
    return parse_page(render_proof(request.param()))


def test_the_same_proof_gives_the_same_bytes() -> None:
    assert render_proof(example_proof()) == render_proof(example_proof())


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/cluster.yaml")), ids=lambda f: f.parent.name)
def test_it_stays_small(file: Path) -> None:
    assert len(render_proof(planned_proof(file)).encode()) < 400_000


def test_sections_of_the_example_in_order() -> None:
    page = parse_page(render_proof(example_proof()))
    assert [n.text for n in page.all("h2")] == [
        "Steps",
        "What changes most",
        "Topology",
        "Plan",
        "Rehearsals",
        "Verdict per claim",
        "Load-bearing assumptions",
        "Not run, and limits",
    ]
    assert [n.text for n in page.all("h3")] == [
        "! warning chat and finetune loading together need 5.1 GB/s of 20 GB/s; on the surviving path 10 GB/s are left",
        "! warning 25 % of paid GPU time is declared idle, which is $0.94 of every useful GPU-hour",
        "? undecided the support matrix does not say whether kernel 6.8.0-88 carries driver 595.91.07",
        "i note no spare node: a failed server is away for up to 24 h",
        "i note one switch carries all out-of-band access",
        "The rest, by area",
        "Waived: accepted knowingly, until a date",
        "Memory per GPU",
        "Placement of chat",
        "Placement of finetune",
        "After a loss of nodes",
        "chat serving",
        "finetune training",
        "All workloads loading at once",
        "Collectives, bus bandwidth",
        "Cost of a unit of accepted work",
        "A month",
        "Not planned",
        "What this plan does not model",
        "Scheduled execution ✓ passed",
        "Worker loss ✓ passed",
        "Not run",
        "What this report does not show",
        "Before you sign",
    ]


def test_no_section_heading_or_fold_is_empty(page: Node) -> None:
    for section in page.all("section"):
        heading = section.one("h2").text
        assert section.text != heading, f"section {heading} is empty"
    for parent in page.all():
        inside = [c for c in parent.children if isinstance(c, Node) or c.strip()]
        for child, after in zip(inside, [*inside, None][1:], strict=True):
            if isinstance(child, Node) and child.tag in ("h2", "h3", "h4"):
                rank = after.tag if isinstance(after, Node) else ""
                level = child.tag
                assert after is not None or parent.tag == "article", f"{child.text} heads nothing"
                assert not (rank in ("h2", "h3", "h4") and rank <= level), f"{child.text} heads nothing"
    for part in page.all("details"):
        assert len([c for c in part.children if isinstance(c, Node)]) > 1
    for empty in ("ul", "ol", "dl", "tbody", "table", "main"):
        for node in page.all(empty):
            assert node.text, f"an empty <{empty}>"


def test_nothing_is_asked_from_outside(page: Node) -> None:
    for node in page.all():
        for name, value in node.attributes.items():
            assert name != "style"
            assert not name.startswith("on")
            if name in ("href", "src", "action", "data", "poster", "srcset", "formaction", "xlink:href"):
                assert value.startswith("#") or value == "data:,", f"{node.tag} {name}={value}"
    style = page.one("style").children[0]
    assert isinstance(style, str)
    assert "@import" not in style
    assert "url(" not in style


def test_the_policy_allows_only_this_style_and_this_script(page: Node) -> None:
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        body = page.one(tag).children[0]
        assert isinstance(body, str)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_ids_are_unique_and_links_lead_somewhere(page: Node) -> None:
    ids = [n.attributes["id"] for n in page.all() if "id" in n.attributes]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        assert link.attributes["href"][1:] in ids, link.attributes["href"]
    for node in page.all():
        for name in node.attributes.get("aria-labelledby", "").split():
            assert name in ids


def test_it_can_be_read_without_seeing_it(page: Node) -> None:
    assert page.one("html").attributes["lang"] == "en"
    for landmark in ("header", "nav", "main", "footer"):
        page.one(landmark)
    assert [n.tag for n in page.all() if n.tag == "h1"] == ["h1"]
    for table in page.all("table"):
        assert table.one("caption").text
        assert all(t.attributes.get("scope") for t in table.all("th"))
    for drawing in page.all("svg"):
        named = drawing.attributes.get("aria-label") or drawing.attributes.get("aria-labelledby")
        assert named or drawing.attributes.get("aria-hidden") == "true"


def test_hostile_text_is_shown_and_never_becomes_markup() -> None:
    written = render_proof(hostile_proof())
    page = parse_page(written)
    assert len(list(page.all("script"))) == 1
    assert not list(page.all("img"))
    assert "\u202e" not in written
    assert page.one("h1").text == SHOWN
    claim = [r.one("th").text for r in page.all("tr") if "data-outcome" in r.attributes]
    assert SHOWN in claim


def test_every_verdict_has_a_row_with_all_it_says() -> None:
    proof = example_proof()
    page = parse_page(render_proof(proof))
    rows = {r.one("th").text: r for r in page.all("tr") if "data-outcome" in r.attributes}
    assert set(rows) == {v.id for v in proof.verdicts}
    for verdict in proof.verdicts:
        said = rows[verdict.id].text
        for part in (verdict.outcome.value, verdict.reason, verdict.next_step, verdict.rehearsed):
            assert " ".join(part.split()) in said
    busbw = rows["all-reduce-in-node"].text
    assert "busbw ≥ 430 GB/s declared" in busbw
    assert "each of 2 nodes of pool gpu; all-reduce, 16 GiB, float; evidence at most 90 days old" in busbw
    assert re.search(r"cluster\.yaml:\d+", busbw)
    assert "by the provider as root" in rows["dcgm-level-3"].text


def test_verdicts_are_grouped_by_claim_class_and_counted() -> None:
    page = parse_page(render_proof(example_proof()))
    groups = [g.text.split(" · ")[0] for g in page.all("tr", class_="group")]
    assert groups == ["Hardware health", "Data path", "Scheduled execution", "Workload and recovery"]
    total = len(example_proof().verdicts)
    assert [b.text for b in page.all("button")] == [f"all {total}", f"not measured {total}"]


def test_a_rehearsal_is_never_shown_as_met() -> None:
    page = parse_page(render_proof(example_proof()))
    section = page.one("section", id="rehearsals")
    assert "VIRTUAL" in section.text
    assert not list(section.all(class_="good"))
    assert "0 of 24 required claims are met" in page.one("p", class_="sentence").text


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            lambda p: p,
            "0 of 24 required claims are met: nothing was measured on real hardware; both rehearsals passed; no review "
            "error.",
        ),
        (
            lambda p: replace(p, rehearsals=()),
            "0 of 24 required claims are met: nothing was measured on real hardware; no rehearsal was run; no review "
            "error.",
        ),
        (
            lambda p: replace(p, rehearsals=(p.rehearsals[0], failed(p.rehearsals[1]))),
            "0 of 24 required claims are met: nothing was measured on real hardware; rehearsal worker-loss failed; no "
            "review error.",
        ),
        (
            lambda p: replace(p, coverage=Coverage(20, 1, 2, 1), exit_code=1),
            "20 of 24 required claims are met: 1 not met, 2 not measured; 1 not applicable, so not proven either; both "
            "rehearsals passed; no review error.",
        ),
        (
            nothing_known,
            "Nothing was judged: no rehearsal was run; the review did not run.",
        ),
        (
            lambda p: replace(p, coverage=Coverage(), interrupted="a person pressed Ctrl-C"),
            "Stopped early: a person pressed Ctrl-C. No claim is required of this cluster, so nothing can be proven: "
            "both rehearsals passed; no review error.",
        ),
    ],
)  # fmt: skip
def test_the_sentence_says_what_is_proven(changed, sentence: str) -> None:
    page = parse_page(render_proof(changed(example_proof())))
    assert page.one("p", class_="sentence").text == sentence


def test_review_errors_are_counted_and_undecided_ones_are_no_pass() -> None:
    proof = example_proof()
    assert proof.review
    assert proof.document
    error = finding("x", Severity.ERROR, "compute", "pools.gpu", "wrong", proof.document)
    wrong = replace(proof, review=replace(proof.review, findings=(error,)))
    assert "1 review error." in parse_page(render_proof(wrong)).one("p", class_="sentence").text
    open_ = replace(proof, review=replace(proof.review, findings=(replace(error, undecided=True),)))
    said = parse_page(render_proof(open_)).one("p", class_="sentence").text
    assert said.endswith("no review error, but 1 rule not decided.")


def test_only_a_met_claim_is_green() -> None:
    proof = example_proof()
    one = replace(proof.verdicts[0], outcome=Outcome.MET, reason="8 on both")
    page = parse_page(render_proof(replace(proof, verdicts=(one, *proof.verdicts[1:]))))
    rows = [r for r in page.all("tr") if list(r.all(class_="good")) and "data-outcome" in r.attributes]
    assert [r.attributes["data-outcome"] for r in rows] == ["met"]


def test_whoever_signs_is_told_what_a_signature_takes_on() -> None:
    page = parse_page(render_proof(example_proof()))
    said = page.one("section", id="limits").text
    assert "Accepts: head-of-platform@example.com. A signature under this report would take on:" in said
    assert "24 required claims that nobody measured 1 waived finding 2 assumed numbers that a result rests on" in said
