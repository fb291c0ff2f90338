"""Prove examples/two-workers and say in plain words whether the result is the right one: `make prove`.

There is no such hardware here, so the right result is *incomplete* (exit code 3): nothing fails, both rehearsals pass,
and exactly the claims of tests/golden/two-workers-not-measured.txt are not measured. A run that ended with 0 would mean
that something was taken for proven which was not measured: that is a failure, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = Path("examples") / "two-workers" / "cluster.yaml"
OUT = Path("proof") / "two-workers"
GOLDEN = ROOT / "tests" / "golden" / "two-workers-not-measured.txt"
INCOMPLETE = 3


def main() -> int:
    """Run the proof, compare, explain; 0 only when everything is as it must be."""
    report = ROOT / OUT / "report.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "clusterwright.cli.main", "prove", str(EXAMPLE), "--out", str(OUT)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    print()
    if not report.exists():
        print(f"make prove: FAILED: cw prove ended with {code} and left no report")
        return 1
    proof = json.loads(report.read_text(encoding="utf-8"))
    problems = find_problems(code, proof, GOLDEN.read_text(encoding="utf-8").split())
    if problems:
        print("make prove: FAILED")
        for problem in problems:
            print(f"  - {problem}")
        return 1
    print(explain(proof))
    return 0


def find_problems(code: int, proof: dict[str, Any], golden: list[str]) -> list[str]:
    """Everything that is not as it must be on a machine without the declared cluster."""
    problems = []
    if code == 0:
        problems.append("exit code 0: something was taken for proven although there is no such hardware here")
    elif code != INCOMPLETE:
        problems.append(f"exit code {code} instead of {INCOMPLETE} (incomplete)")
    if proof["exit_code"] != code:
        problems.append(f"the report says exit code {proof['exit_code']}, the command ended with {code}")
    if proof["interrupted"]:
        problems.append(f"the run was interrupted: {proof['interrupted']}")
    problems += _rehearsal_problems(proof) + _review_problems(proof)
    found = [v["id"] for v in proof["verdicts"] if v["requirement"]["required"] and v["outcome"] == "not measured"]
    if found != golden:
        gone, new = sorted(set(golden) - set(found)), sorted(set(found) - set(golden))
        problems.append(
            "the claims that are not measured differ from the golden list"
            + (f"; no longer: {', '.join(gone)}" if gone else "")
            + (f"; new: {', '.join(new)}" if new else "")
            + ("; only their order" if not gone and not new else "")
        )
    met = [v["id"] for v in proof["verdicts"] if v["outcome"] == "met"]
    if met:
        problems.append(f"met without a measurement: {', '.join(met)}")
    return problems


def _rehearsal_problems(proof: dict[str, Any]) -> list[str]:
    outcomes = {r["name"]: r for r in proof["rehearsals"]}
    problems = []
    for name in ("scheduled-execution", "worker-loss"):
        rehearsal = outcomes.get(name)
        if rehearsal is None:
            problems.append(f"rehearsal {name} is missing")
        elif rehearsal["outcome"] != "passed" or not all(c["holds"] for c in rehearsal["checks"]):
            problems.append(f"rehearsal {name} {rehearsal['outcome']}: {rehearsal['reason']}")
        elif not rehearsal["checks"]:
            problems.append(f"rehearsal {name} passed without a single check")
    return problems


def _review_problems(proof: dict[str, Any]) -> list[str]:
    if proof["review"] is None:
        return ["there was no review"]
    errors = [f for f in proof["review"]["findings"] if f["severity"] == "error" and not f["undecided"]]
    return [f"review error {e['rule']} at {e['place']}: {e['message']}" for e in errors]


def explain(proof: dict[str, Any]) -> str:
    """What was shown and what was not."""
    count = sum(v["requirement"]["required"] and v["outcome"] == "not measured" for v in proof["verdicts"])
    return (
        "make prove: OK\n"
        "  The design has no review error, and its jobs were scheduled and recovered from the loss of a worker on the\n"
        f"  embedded engine in {proof['seconds']:.0f} s. All {count} required claims are still *not measured*, because "
        "there is no such\n"
        "  hardware here; so cw prove ended with 3 (incomplete), and that is the right answer.\n"
        f"  Look at {OUT / 'report.html'}"
    )


if __name__ == "__main__":
    sys.exit(main())
