"""`make prove` accepts exactly one result and explains every other."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load("prove_example")
GOLDEN = ["cold", "bus"]


def proof(**fields: Any) -> dict[str, Any]:
    rehearsals = [
        {"name": name, "outcome": "passed", "reason": "ok", "checks": [{"holds": True}]}
        for name in ("scheduled-execution", "worker-loss")
    ]
    verdicts = [{"id": i, "outcome": "not measured", "requirement": {"required": True}} for i in GOLDEN]
    body = {
        "exit_code": 3,
        "interrupted": "",
        "rehearsals": rehearsals,
        "verdicts": verdicts,
        "review": {"findings": []},
        "seconds": 20.0,
    }
    return body | fields


def test_the_one_right_result_is_accepted_and_explained() -> None:
    assert TOOL.find_problems(3, proof(), GOLDEN) == []
    assert "not measured" in TOOL.explain(proof())


def test_zero_is_a_failure() -> None:
    (problem,) = TOOL.find_problems(0, proof(exit_code=0), GOLDEN)
    assert "taken for proven" in problem


@pytest.mark.parametrize(
    ("code", "fields", "words"),
    [
        (1, {"exit_code": 1}, "exit code 1 instead of 3"),
        (3, {"exit_code": 0}, "the report says exit code 0"),
        (3, {"interrupted": "stopped"}, "interrupted"),
        (3, {"rehearsals": []}, "scheduled-execution is missing"),
        (3, {"review": None}, "there was no review"),
        (3, {"verdicts": []}, "no longer: bus, cold"),
    ],
)
def test_every_other_result_is_explained(code: int, fields: dict[str, Any], words: str) -> None:
    assert any(words in p for p in TOOL.find_problems(code, proof(**fields), GOLDEN))


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "failed"},
        {"outcome": "not run"},
        {"checks": []},
        {"checks": [{"holds": False}]},
    ],
)
def test_a_rehearsal_must_have_passed_with_checks_that_hold(change: dict[str, Any]) -> None:
    rehearsals = proof()["rehearsals"]
    rehearsals[0] |= change
    assert TOOL.find_problems(3, proof(rehearsals=rehearsals), GOLDEN)


def test_a_claim_that_is_met_without_hardware_is_a_failure() -> None:
    verdicts = proof()["verdicts"]
    verdicts[0] |= {"outcome": "met"}
    problems = TOOL.find_problems(3, proof(verdicts=verdicts), GOLDEN)
    assert any("met without a measurement: cold" in p for p in problems)


def test_a_review_error_is_named() -> None:
    found = {"severity": "error", "undecided": False, "rule": "owner", "place": "f:1:1", "message": "nobody"}
    (problem,) = TOOL.find_problems(3, proof(review={"findings": [found]}), GOLDEN)
    assert "owner at f:1:1: nobody" in problem


def test_the_golden_list_is_what_the_example_gives() -> None:
    golden = load("write_golden")
    for path, make in golden.GOLDEN.items():
        assert path.read_text() == make(), f"{path.name} differs; look why, then make golden"
