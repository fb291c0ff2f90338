"""Order, waivers, stages, undecided rules and exit codes of a review."""

from __future__ import annotations

import datetime

import pytest

from builders.reviews import TODAY, catalogue, document, findings, review
from clusterwright.model.findings import Severity
from clusterwright.plan.planning import plan_architecture
from clusterwright.review.reviewing import review_document
from clusterwright.review.rulebook import RULES, find_rule, nearest_rules

WAIVED = "waivers=[{{rule: {rule}, path: {path}, reason: known, owner: cto@example.com, expires: {expires}}}]"


def waiver(rule: str, path: str = "''", expires: str = "2027-01-31") -> str:
    text = WAIVED.format(rule=rule, path=path, expires=expires)
    return text.replace("path: '', ", "")


def test_the_example_is_ready_to_quote_build_and_accept() -> None:
    for stage in ("quote", "build", "accept"):
        found = review(stage=stage)
        assert found.errors == ()
        assert found.state == "ready"
        assert found.exit_code() == 0


def test_findings_come_by_severity_then_decided_then_weight() -> None:
    found = review("owners=", "pools.gpu.hardware.vbios=", "fabric.networks.oob=", "workloads.chat.needs=").findings
    keys = [(-f.severity, f.undecided, -f.weight) for f in found]
    assert keys == sorted(keys)
    assert {f.severity for f in found} == set(Severity)


def test_the_same_input_gives_the_same_review() -> None:
    assert review("owners=") == review("owners=")


def test_each_stage_asks_for_what_the_one_before_asks() -> None:
    quote, build, accept = (set(review(stage=s).evaluated) for s in ("quote", "build", "accept"))
    assert quote < build < accept
    assert accept == {rule.id for rule in RULES}
    assert review(stage="quote").not_required
    assert "version-not-exact" in build - quote
    assert "contract-missing" in accept - build


def test_a_stage_does_not_ask_for_later_inputs() -> None:
    changes = ("observability=", "access=", "software.lifecycle=")
    assert review(*changes, stage="quote").errors == ()
    assert review(*changes, stage="build").errors


def test_an_undecided_rule_never_passes_and_is_no_error() -> None:
    found = review("pools.gpu.hardware.vbios=")
    assert found.errors == ()
    (undecided,) = found.blocking_undecided
    assert undecided.rule == "vbios-below-driver"
    assert (found.state, found.exit_code()) == ("incomplete", 3)


def test_an_error_outranks_an_undecided_rule() -> None:
    found = review("pools.gpu.hardware.vbios=", "owners.network=")
    assert (found.state, found.exit_code()) == ("not ready", 1)


def test_what_the_catalogue_lacks_does_not_block() -> None:
    found = review()
    assert found.undecided
    assert not found.blocking_undecided


def test_warnings_fail_only_when_asked() -> None:
    found = review()
    assert found.warnings
    assert found.exit_code() == 0
    assert found.exit_code(Severity.WARNING) == 1


def test_a_waiver_hides_its_finding_and_is_listed() -> None:
    found = review("owners.network=", waiver("owner-missing"))
    assert not [f for f in found.findings if f.rule == "owner-missing"]
    (waived,) = found.waived
    assert (waived.rule, waived.waived) == ("owner-missing", "known")
    (use,) = found.waivers
    assert (use.state, use.findings, use.owner) == ("applied", 1, "cto@example.com")
    assert found.exit_code() == 0


def test_a_waiver_with_a_path_covers_that_path_only() -> None:
    found = review("owners.network=", "owners.storage=", waiver("owner-missing", "owners.network"))
    assert [f.path for f in found.errors if f.rule == "owner-missing"] == ["owners.storage"]
    assert [f.path for f in found.waived] == ["owners.network"]


def test_a_waiver_of_a_section_covers_what_is_below_it() -> None:
    found = review("owners.duties.images=", "owners.duties.access=", waiver("duty-unowned", "owners.duties"))
    assert len(found.waived) == 2


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (waiver("owner-missing", expires="2026-11-29"), "expired"),
        (waiver("owner-mising"), "unknown rule"),
        (waiver("cache-only-copy"), "unused"),
    ],
)
def test_a_waiver_that_does_not_hold_hides_nothing(text: str, state: str) -> None:
    found = review("owners.network=", text)
    assert [f.path for f in found.errors if f.rule == "owner-missing"] == ["owners.network"]
    assert [use.state for use in found.waivers] == [state]
    assert found.waived == ()


def test_a_waiver_holds_on_its_last_day() -> None:
    text = waiver("owner-missing", expires="2026-11-30")
    assert not review("owners.network=", text).errors
    assert review("owners.network=", text, today=TODAY + datetime.timedelta(days=1)).errors


def test_a_waiver_cannot_silence_the_rule_about_waivers() -> None:
    expired = "{rule: owner-missing, reason: known, owner: cto@example.com, expires: 2026-01-01}"
    silencer = "{rule: waiver-expired, reason: known, owner: cto@example.com, expires: 2027-01-01}"
    found = review(f"waivers=[{expired}, {silencer}]")
    assert [f.rule for f in found.errors] == ["waiver-expired"]


def test_a_waived_undecided_rule_does_not_block() -> None:
    found = review("pools.gpu.hardware.vbios=", waiver("vbios-below-driver"))
    assert (found.state, found.exit_code()) == ("ready", 0)
    assert found.waived[0].undecided


def test_a_finding_stands_at_its_value_or_the_nearest_present_parent() -> None:
    (present,) = findings("subnet-manager-not-redundant", "fabric.networks.ib.subnet_managers=1")
    assert present.place.file == "--set"
    (absent,) = findings("subnet-manager-missing", "fabric.networks.ib.subnet_managers=")
    source = document().places
    assert absent.place == source.of("fabric.networks.ib")
    assert source.line_of(absent.place).strip() == "ib:"


def test_a_finding_names_the_owner_of_its_area() -> None:
    (found,) = findings("no-out-of-band-path", "fabric.networks.oob=")
    assert found.owner == "network@example.com"
    (found,) = findings(
        "no-out-of-band-path", "fabric.networks.oob=", "owners.network=", "owners.default=all@example.com"
    )
    assert found.owner == "all@example.com"


def test_the_shortest_file_is_reviewed() -> None:
    from clusterwright.model.parsing import parse_architecture
    from clusterwright.model.sources import Source

    least = parse_architecture(Source("a.yaml", "apiVersion: clusterwright/v1alpha1\ncluster: a\n"))
    found = review_document(least, catalogue(), plan_architecture(least, catalogue()), today=TODAY)
    assert found.state == "not ready"
    assert {"workload-missing", "gpu-pool-missing", "network-missing", "durable-store-missing"} <= {
        f.rule for f in found.errors
    }
    assert len([f for f in found.errors if f.rule == "owner-missing"]) == 1


def test_wrong_rule_ids_find_their_nearest() -> None:
    assert find_rule("cache-only-copy") is not None
    assert find_rule("cache-only") is None
    assert nearest_rules("cache_only_coppy")[0] == "cache-only-copy"
    assert "vbios-below-driver" in nearest_rules("vbios")
    assert nearest_rules("zzzzzzzz") == ()
