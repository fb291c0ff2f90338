"""Every rule speaks where it should and is silent where it should not."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Final

import pytest

from builders.reviews import findings, review
from clusterwright.app.reviewing import review_files
from clusterwright.model.findings import AREAS, Severity
from clusterwright.review.rulebook import BY_ID, RULES

from .cases import GIVES, SPARES, Changes

REQUIRED: Final = Path(__file__).parents[2] / "cases" / "required_lines.txt"


def rules_of_lines() -> set[str]:
    return {line.split()[1] for line in REQUIRED.read_text(encoding="utf-8").splitlines()}


@pytest.mark.parametrize(("rule", "changes"), [(r, c) for r, cases in GIVES.items() for c in cases])
def test_given(rule: str, changes: Changes) -> None:
    found = findings(rule, *changes)
    assert found, f"{rule} is silent on {changes}"
    for finding in found:
        assert finding.message
        assert finding.action
        assert finding.path


@pytest.mark.parametrize(("rule", "changes"), [(r, c) for r, cases in SPARES.items() for c in cases])
def test_not_given(rule: str, changes: Changes) -> None:
    said = [f.message for f in findings(rule, *changes)]
    assert not said


def test_what_is_given_by_a_change_is_not_given_without_it() -> None:
    """The unchanged example is the counterexample of every rule but those that SPARES names one for."""
    plain = {finding.rule for finding in review().findings}
    assert plain <= set(SPARES), "a rule that the example itself gives needs a change that does not"


def test_every_rule_has_a_case() -> None:
    at_acceptance = {"contract-missing"}  # test_required_lines
    without = set(BY_ID) - set(GIVES) - rules_of_lines() - at_acceptance
    assert without == set()
    unknown = (set(GIVES) | set(SPARES)) - set(BY_ID)
    assert unknown == set()


def test_ids_are_unique_and_kebab_case() -> None:
    assert len(BY_ID) == len(RULES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", rule.id) for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_every_rule_explains_itself(rule) -> None:
    assert rule.area in AREAS
    assert 0 <= rule.weight <= 100
    assert rule.stages
    assert isinstance(rule.severity, Severity)
    assert rule.catches.endswith("."), "a sentence"
    for text in (rule.why, rule.satisfy, rule.example, rule.source):
        assert len(text) > 5
        assert "TODO" not in text


# The numbers that the issue of this product names, word by word.


def test_eight_readers_of_120_gb_in_90_s_need_10_7_gb_s() -> None:
    changes = (
        "workloads.chat.payload={size: 120 GB, readers: 8, source: object, cache: nvme, within: 90 s, startup: 60 s}",
        "storage.stores.object.read=10 GB/s",
    )
    (found,) = [f for f in findings("payload-above-source", *changes) if "chat" in f.message]
    assert "8 readers × 120 GB in 90 s = 10.67 GB/s" in found.message
    assert not findings("payload-above-source", *changes[:1], "storage.stores.object.read=11 GB/s")


def test_another_fabric_manager_version_is_an_error_on_nvswitch_nodes() -> None:
    (found,) = findings("fabric-manager-mismatch", "software.profiles.gpu-node.fabric_manager=595.71.05")
    assert (found.severity, found.undecided) == (Severity.ERROR, False)


def test_hopper_subrevision_3_with_old_vbios_is_an_error() -> None:
    (found,) = findings("vbios-below-driver", "pools.gpu.hardware.vbios=96.00.67.00.01")
    assert (found.severity, found.undecided) == (Severity.ERROR, False)
    assert "96.00.68.00" in found.message


@pytest.mark.parametrize("version", ["1.32.0", "1.38.1"])
def test_kubernetes_outside_the_operators_range_is_a_finding(version: str) -> None:
    (found,) = findings("operator-kubernetes-unsupported", f"software.kubernetes={version}")
    assert (found.severity, found.undecided) == (Severity.ERROR, False)


def test_two_replicas_that_both_need_their_full_capacity_fail() -> None:
    (found,) = findings("no-failure-capacity", "workloads.chat.serve.replica_rate=4 req/s")
    assert found.severity is Severity.ERROR
    assert "keeps 1 of 2 replicas" in found.message


@pytest.mark.parametrize("area", AREAS)
def test_a_missing_owner_is_named_per_area(area: str) -> None:
    (found,) = findings("owner-missing", f"owners.{area}=")
    assert found.area == area
    assert area in found.message
    assert found.owner == ""


def test_a_minor_out_of_support_weighs_more_from_the_day_after_its_end() -> None:
    last_day = datetime.date(2027, 6, 28)
    (before,) = findings("kubernetes-out-of-support", "economics.term=1 year", today=last_day)
    assert "goes out of support" in before.message
    (after,) = findings("kubernetes-out-of-support", today=last_day + datetime.timedelta(days=1))
    assert "went out of support" in after.message
    assert after.weight > before.weight


@pytest.mark.parametrize("year", [2027, 2030, 2040])
def test_time_alone_makes_no_error_of_the_examples(year: int) -> None:
    """A risk that came with age is a warning: what could be built yesterday is not refused today."""
    for name in ("two-workers", "single-server", "training-1024"):
        path = Path(__file__).parents[3] / "examples" / name / "cluster.yaml"
        assert not review_files([path], today=datetime.date(year, 7, 1)).review.errors
