"""Score the planner against public measurements and print one table; write docs/accuracy.md with --docs.

usage: python tools/validate.py [CASES] [--docs] [--set NAME]
CASES is $CLUSTERWRIGHT_CASES, else `shared/cases` beside the clone. Exits 1 when a bar is missed, 2 without cases.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from validation.scoring import Failures, Scored

from validation import writing

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "accuracy.md"
#: Modules with `score(cases)`; each gives Scored values, and Failures where engines refused to start.
SETS = ("inference_memory", "training_memory", "serving", "training_throughput", "nccl", "shapes", "vectors")


def default_folder() -> Path:
    """Where the measurements are looked for when no folder is named."""
    named = os.environ.get("CLUSTERWRIGHT_CASES")
    return Path(named) if named else ROOT.parent / "shared" / "cases"


def score(cases: Path, names: tuple[str, ...] = SETS) -> list[Scored | Failures]:
    """Every set's scores, in the order of the names."""
    found: list[Scored | Failures] = []
    for name in names:
        module = importlib.import_module(f"validation.{name}")
        scored = module.score(cases)
        found += scored if isinstance(scored, list | tuple) else [scored]
    return found


def main() -> int:
    """Print the table, write the page, say whether every bar holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", type=Path, default=default_folder())
    parser.add_argument("--docs", action="store_true", help="write docs/accuracy.md anew, from all sets")
    parser.add_argument("--set", choices=SETS, action="append", help="only this set")
    asked = parser.parse_args()
    if asked.docs and asked.set:
        parser.error("--docs needs all sets")
    if not (asked.cases / "memory.jsonl").is_file():
        print(f"no measurements at {asked.cases}; set CLUSTERWRIGHT_CASES", file=sys.stderr)
        return 2
    scores = score(asked.cases, tuple(asked.set or SETS))
    print(writing.as_text(scores))
    if asked.docs:
        PAGE.write_text(writing.as_page(scores), encoding="utf-8")
    return 0 if all(scored.passes for scored in scores) else 1


if __name__ == "__main__":
    sys.exit(main())
