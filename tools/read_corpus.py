"""Read a folder of tool outputs (KIND/FILE) and print how many of each kind were read, read in part, refused.

usage: python tools/read_corpus.py [FOLDER] [--list]
FOLDER is $CLUSTERWRIGHT_CORPUS, else `shared/corpus` beside the clone, else the fixtures of the tests.
--list adds a line per file.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

from clusterwright.files.streams import stream_bytes
from clusterwright.model.observations import Outcome
from clusterwright.readers.reading import read_output

ROOT = Path(__file__).resolve().parents[1]


def default_folder() -> Path:
    """Where outputs are looked for when no folder is named."""
    named = os.environ.get("CLUSTERWRIGHT_CORPUS")
    beside = ROOT.parent / "shared" / "corpus"
    return Path(named) if named else beside if beside.is_dir() else ROOT / "tests" / "fixtures" / "readers"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=default_folder())
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    counts: dict[str, Counter[Outcome]] = {}
    lines = []
    for path in sorted(p for p in arguments.folder.glob("*/*") if p.is_file()):
        found = read_output(stream_bytes(str(path)), name=path.name)
        counts.setdefault(path.parent.name, Counter())[found.outcome] += 1
        why = str(found.refusal) if found.refusal else "; ".join(m for run in found.runs for m in run.missing[:2])
        lines.append(f"{path.parent.name}/{path.name}: {found.outcome.value} as {found.kind or '?'}: {why[:160]}")
    width = max((len(kind) for kind in counts), default=4)
    print(f"{'kind':<{width}}  files  read  partly  refused")
    total: Counter[Outcome] = Counter()
    for kind, outcomes in [*counts.items(), ("all", total)]:
        row = [outcomes[o] for o in (Outcome.READ, Outcome.PARTLY, Outcome.REFUSED)]
        print(f"{kind:<{width}}  {sum(row):>5}  {row[0]:>4}  {row[1]:>6}  {row[2]:>7}")
        if outcomes is not total:
            total.update(outcomes)
    if arguments.list:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
