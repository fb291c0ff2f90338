"""Reviews as text and JSON: source lines, folding, waivers, stable keys."""

from __future__ import annotations

import json
import re

from builders.reviews import document, review
from clusterwright.report.reviews import (
    FIRST,
    SCHEMA,
    _cut,
    render_review,
    render_rule,
    render_rules_page,
    review_values,
    rule_values,
)
from clusterwright.review.rulebook import BY_ID, RULES

WAIVER = "waivers=[{rule: owner-missing, reason: known, owner: cto@example.com, expires: 2027-01-31}]"


def text(*changes: str, whole: bool = False, colour: bool = False) -> str:
    return render_review(review(*changes), document(*changes).places, name="two-workers", whole=whole, colour=colour)


def headings(page: str) -> list[str]:
    return re.findall(r"^(?:undecided )?(?:error|warning|note) ([a-z0-9-]+)", page, re.MULTILINE)


def test_a_finding_shows_place_line_caret_action_and_owner() -> None:
    page = text("fabric.networks.ib.subnet_managers=")
    block = page.split("\n\n")[1].splitlines()
    assert block[0] == "error subnet-manager-missing  (network, owner network@example.com)"
    place, line, caret, action = block[1:5]
    said = "InfiniBand network ib declares no subnet manager [fabric.networks.ib.subnet_managers]"
    number = re.match(rf"  cluster\.yaml:(\d+):(\d+): {re.escape(said)}$", place)
    assert number is not None
    assert line == f"  {number[1]} |     ib:"
    assert caret.index("^") - caret.index("| ") - 2 == int(number[2]) - 1
    assert line[caret.index("^")] == "i"
    assert action.startswith("  do: run subnet managers on two hosts")


def test_the_five_rules_that_change_most_come_first_and_the_rest_is_folded() -> None:
    changes = ("access=", "observability=")
    found, page = review(*changes), text(*changes)
    shown = headings(page)
    assert len(shown) == FIRST
    assert shown == list(dict.fromkeys(f.rule for f in found.findings))[:FIRST]
    folded = page[page.index("more findings by area") :]
    hidden = {f.rule for f in found.findings} - set(shown)
    assert hidden
    assert all(rule in folded for rule in hidden)


def test_all_unfolds_everything() -> None:
    changes = ("access=", "observability=")
    page = text(*changes, whole=True)
    assert "more findings by area" not in page
    assert set(headings(page)) == {f.rule for f in review(*changes).findings}
    assert all(f.message.split(";")[0] in " ".join(page.split()) for f in review(*changes).findings)


def test_many_places_of_one_rule_are_counted() -> None:
    page = text("owners={workload: ml@example.com}")
    assert "owner-missing ×8" in page
    assert "and 5 more places (--all)" in page
    assert "(--all)" not in text("owners={workload: ml@example.com}", whole=True)


def test_waivers_are_listed_with_what_they_cover() -> None:
    page = " ".join(text("owners.network=", WAIVER).split())
    assert "owner-missing, applied to 1 finding; known (cto@example.com, until 2027-01-31)" in page
    assert "waived error owner-missing at" in page


def test_counts_and_state_are_said() -> None:
    page = text("owners.network=")
    assert page.startswith("two-workers: review for stage build, 2026-11-30: not ready\n")
    assert re.search(r"1 error, \d+ warnings, \d+ note", page)
    assert "cw explain owner-missing" in page


def test_an_undecided_finding_is_called_so() -> None:
    assert "undecided error vbios-below-driver" in text("pools.gpu.hardware.vbios=", whole=True)


def test_lines_fit_whether_or_not_they_quote_the_file() -> None:
    page = text("access=", whole=True)
    assert all(len(line) <= 120 for line in page.splitlines())


def test_findings_at_one_place_quote_its_line_once() -> None:
    page = text("workloads.chat.serve.in_p95=", "workloads.chat.serve.out_p95=", whole=True)
    block = page[page.index("error lengths-without-distribution ×2") :].split("\n\n")[0].splitlines()
    assert [line.strip()[0] for line in block[1:]] == ["c", "c", "4", "|", "d"]


def test_a_cut_line_keeps_its_caret_under_the_same_character() -> None:
    source = "abcdefghij" * 20
    for column in (1, 40, 100, 199, 200):
        part, at = _cut(source, column, 50)
        assert len(part) <= 50
        assert part[at - 1] in (source[column - 1], "…")


def test_a_long_source_line_is_cut_around_its_place() -> None:
    long = "registry.example.com/" + "a" * 300
    places = document().places
    finding = review(f"workloads.chat.image={long}").errors[0]
    page = render_review(review(f"workloads.chat.image={long}"), places, name="x")
    assert finding.rule == "image-without-digest"
    assert all(len(line) <= 125 for line in page.splitlines() if "|" in line)


def test_colour_only_when_asked() -> None:
    assert "\x1b[31merror\x1b[0m" in text("owners.network=", colour=True)
    assert "\x1b" not in text("owners.network=")


def test_json_keys_are_stable() -> None:
    values = review_values(review("owners.network=", "owners.storage=", WAIVER), document().places, name="two-workers")
    assert json.loads(json.dumps(values)) == values
    assert list(values) == [
        "schema",
        "cluster",
        "stage",
        "today",
        "document",
        "state",
        "counts",
        "findings",
        "waived",
        "waivers",
        "rules",
    ]
    assert values["schema"] == SCHEMA == "clusterwright/review/v1"
    assert set(values["waived"][0]) == {
        "rule",
        "severity",
        "undecided",
        "area",
        "path",
        "place",
        "line",
        "message",
        "action",
        "owner",
        "weight",
        "waived",
    }
    assert values["waivers"][0]["state"] == "applied"
    assert values["counts"]["waived"] == 2
    assert values["document"].startswith("sha256:")


def test_a_rule_is_explained() -> None:
    page = render_rule(BY_ID["cache-only-copy"])
    for part in ("cache-only-copy  (error, storage, every stage)", "Why: ", "Do: ", "Example:", "Source: "):
        assert part in page
    assert set(rule_values(BY_ID["cache-only-copy"])) == {
        "id",
        "severity",
        "area",
        "stages",
        "weight",
        "catches",
        "why",
        "satisfy",
        "example",
        "source",
    }


def test_the_page_of_rules_holds_each_rule_once() -> None:
    page = render_rules_page(RULES)
    for rule in RULES:
        assert page.count(f"\n### {rule.id}\n") == 1
        assert rule.why in page
        assert rule.satisfy in page
        assert rule.source in page


def test_a_name_cannot_command_the_terminal() -> None:
    hostile = 'pools.gpu.software="x\\e[31m\\n\\a"'
    page = text(hostile, whole=True)
    assert "x�[31m" in page
    assert not [c for c in page if not c.isprintable() and c != "\n"]


def test_what_is_missing_altogether_names_its_path_and_quotes_no_line() -> None:
    page = text("fabric=", whole=True)
    block = page[page.index("error network-missing") :].splitlines()[1:3]
    assert block[0].startswith("  cluster.yaml:1:1: the file declares no network, and nothing about addresses")
    assert block[0].endswith("[fabric]")
    assert block[1].startswith("  do: ")
