"""Write the golden files anew: `make golden`. Read the diff before committing it.

Each golden file is what the program says today about an example; a test compares and never writes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from clusterwright.app.judging import judge_document
from clusterwright.app.loading import load_document
from clusterwright.model.evidence import Outcome

ROOT = Path(__file__).resolve().parents[1]
NOT_MEASURED = ROOT / "tests" / "golden" / "two-workers-not-measured.txt"
EXAMPLE = ROOT / "examples" / "two-workers" / "cluster.yaml"


def not_measured() -> str:
    """The required claims of the example that no measurement covers, one a line."""
    verdicts, _ = judge_document(load_document([EXAMPLE]), None, (), now=datetime.now(UTC))
    lines = [v.id for v in verdicts if v.requirement.required and v.outcome is Outcome.NOT_MEASURED]
    return "".join(f"{line}\n" for line in lines)


GOLDEN: dict[Path, Callable[[], str]] = {NOT_MEASURED: not_measured}


def main() -> int:
    """Write every file and say which changed."""
    for path, make in GOLDEN.items():
        new, old = make(), path.read_text(encoding="utf-8") if path.exists() else ""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(new, encoding="utf-8")
        state = "unchanged" if new == old else f"changed, {len(new.splitlines())} lines"
        print(f"{path.relative_to(ROOT)}: {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
