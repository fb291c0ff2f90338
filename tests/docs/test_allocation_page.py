"""docs/allocation.md: its example runs, and its table names every policy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from clusterwright.queueing.preferring import POLICIES

PAGE = (Path(__file__).parents[2] / "docs" / "allocation.md").read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    block = PAGE[PAGE.index("    from clusterwright") :]
    code = "\n".join(line[4:] for line in block[: block.index("\n\nClusters of whole")].splitlines())
    scope: dict[str, object] = {"free": np.array([8, 7, 0]), "installed": np.array([8, 8, 8])}
    exec(code.replace("fragmentation(nodes, mix)", "measured = fragmentation(nodes, mix)"), scope)
    assert np.asarray(scope["measured"]).tolist() == [0.0, 0.75 * 7000, 0.0]


def test_every_policy_has_a_row() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert rows == sorted(rows, key=list(POLICIES).index)
    assert set(rows) == set(POLICIES)
