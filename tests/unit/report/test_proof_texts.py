"""The proof as a screen of text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from clusterwright.judging.verdicts import cover
from clusterwright.lib.figures import Origin, derive, leaf
from clusterwright.model.acceptance import Requirement
from clusterwright.model.evidence import (
    Check,
    Moment,
    MomentKind,
    Outcome,
    Reading,
    Rehearsal,
    RehearsalOutcome,
    Verdict,
)
from clusterwright.report.proof_records import FORMAT, proof_json
from clusterwright.report.proof_texts import proof_summary
from clusterwright.report.proofs import LATER_STEPS, Assumption, Proof, Step

MFU = leaf("plan.mfu", 0.4, "", Origin.ASSUMED, "our default")
RATE = derive("workloads.tune.rate", "tokens/s", "mfu × 1000", lambda m: m * 1000, MFU)


def verdict(name: str, outcome: Outcome, **fields: Any) -> Verdict:
    requirement = Requirement.model_validate({"metric": "cold_start", "at_most": "5 min"})
    return Verdict(name, requirement, outcome, fields.pop("reason", "not run"), **fields)


def proof(*verdicts: Verdict, **fields: Any) -> Proof:
    body: dict[str, Any] = {
        "cluster": "small",
        "document": None,
        "review": None,
        "plan": None,
        "rehearsals": (Rehearsal("worker-loss", RehearsalOutcome.PASSED, "noticed in 2 ms"),),
        "verdicts": verdicts,
        "coverage": cover(verdicts),
        "steps": (Step("load", "done", "small", 0.1), *(Step(n, "not run", why) for n, why in LATER_STEPS)),
        "assumptions": (Assumption(MFU, RATE, 0.1),),
        "started": datetime(2026, 11, 30, tzinfo=UTC),
        "seconds": 1.5,
        "version": "0.1.0",
        "inputs": (("architecture", "sha256:a"),),
        "exit_code": 3,
    }
    return Proof(**(body | fields))


def test_the_summary_says_what_is_what() -> None:
    text = proof_summary(
        proof(
            verdict("cold", Outcome.NOT_MEASURED, next_step="start every replica; by you"),
            verdict("bus", Outcome.MET, age_s=86400.0, reason="382 GB/s"),
            verdict("tpot", Outcome.NOT_MET, reason="80 ms"),
        ),
        "out/report.html",
    )
    for expected in (
        "there is no proof yet",
        "1 of 3 required claims met by measurement; the oldest evidence is 1.0 days old",
        "tpot: 80 ms",
        "worker loss passed: noticed in 2 ms",
        "proves nothing about the declared cluster",
        "cold: start every replica; by you",
        "plan.mfu = 0.4; ±10% moves workloads.tune.rate by 10 % (our default)",
        "accept on hardware: no evidence from the real cluster was given (--evidence)",
        "simulate: no part of a proof yet; cw simulate plays weeks of queueing and failure",
        "operate: nothing observes a running cluster in this version",
        "out/report.html",
    ):
        assert expected in text


def test_the_summary_stays_on_one_screen_whatever_is_unproven() -> None:
    many = [verdict(f"claim-{n}", Outcome.NOT_MEASURED, next_step=f"run test {n} " * 40) for n in range(300)]
    text = proof_summary(proof(*many), "out/report.html")
    assert len(text.splitlines()) < 45
    assert max(map(len, text.splitlines())) <= 120
    assert "… and 296 more in the report" in text


@pytest.mark.parametrize(("code", "words"), [(0, "proven: every required claim"), (1, "something required fails")])
def test_the_headline_follows_the_exit_code(code: int, words: str) -> None:
    assert words in proof_summary(proof(exit_code=code), "r").splitlines()[0]


def test_an_interrupted_run_says_so_first() -> None:
    text = proof_summary(proof(interrupted="stopped by SIGINT", exit_code=130), "r")
    assert "stopped by SIGINT" in text.splitlines()[0]


def test_the_json_is_whole_and_the_same_every_time() -> None:
    rehearsal = Rehearsal(
        "worker-loss",
        RehearsalOutcome.FAILED,
        "no",
        checks=(Check("fencing", "a", "b", False),),
        readings=(Reading("lost_work", None, unreadable="boom"),),
        timeline=(Moment(0.5, "killed", MomentKind.LOSS),),
    )
    infinite = replace(MFU, value=float("inf"))
    made = proof(
        verdict("cold", Outcome.NOT_MEASURED),
        rehearsals=(rehearsal,),
        assumptions=(Assumption(infinite, RATE, float("inf")),),
    )
    text = proof_json(made)
    assert text == proof_json(made)
    found = json.loads(text)
    assert found["format"] == FORMAT
    assert found["exit_code"] == 3
    assert found["verdicts"][0]["requirement"]["at_most"] == "5 min"
    assert found["verdicts"][0]["outcome"] == "not measured"
    assert found["rehearsals"][0]["checks"][0]["holds"] is False
    assert found["rehearsals"][0]["readings"][0]["unreadable"] == "boom"
    assert found["rehearsals"][0]["timeline"] == [{"at_s": 0.5, "what": "killed", "kind": "loss"}]
    assert found["assumptions"][0]["leaf"]["value"] == "inf"
    assert found["assumptions"][0]["moves"]["formula"] == "mfu × 1000"
    assert found["assumptions"][0]["moves"]["origin"] == "assumed"
    assert found["inputs"] == {"architecture": "sha256:a"}
