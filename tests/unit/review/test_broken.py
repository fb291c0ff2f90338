"""examples/broken: each file gives exactly the errors that it names, and every error has a file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from builders.reviews import TODAY
from clusterwright.app.reviewing import review_files
from clusterwright.model.findings import Severity
from clusterwright.review.rulebook import RULES

ROOT: Final = Path(__file__).parents[3]
FILES: Final = sorted((ROOT / "examples" / "broken").glob("*.yaml"))
REQUIRED: Final = ROOT / "tests" / "cases" / "required_lines.txt"

#: Errors that no file here can give, with the reason.
WITHOUT_FILE: Final = {
    "contract-missing": "asked for at stage accept only",
    "intra-node-topology-missing": "needs hardware without a catalogue shape: tests/unit/review/cases.py",
    "multi-node-nvlink-undeclared": "needs a rack-scale shape: tests/unit/review/cases.py",
    "mig-unsupported": "needs a GPU without MIG: tests/unit/review/cases.py",
    "operator-containerd-unsupported": "no published containerd range in the catalogue yet",
}


def head_of(path: Path) -> tuple[str, list[str]]:
    """(the class of mistake, the rule ids) that a file begins with."""
    title, gives = path.read_text(encoding="utf-8").splitlines()[:2]
    ids = re.fullmatch(r"# gives: (.+)", gives)
    assert ids, f"{path.name}: the second line is not '# gives: ...'"
    assert title.startswith("# ")
    return title, [] if ids[1] == "nothing" else ids[1].split(", ")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_each_file_gives_exactly_its_errors(path: Path) -> None:
    _, ids = head_of(path)
    review = review_files([path], today=TODAY).review
    assert sorted({finding.rule for finding in review.errors}) == sorted(ids)
    assert review.exit_code() == (1 if ids else 0)
    for finding in review.errors:
        assert finding.place.file == str(path)
        assert finding.place.line > 0


def test_only_the_sound_file_gives_nothing() -> None:
    assert [path.stem for path in FILES if not head_of(path)[1]] == ["sound"]


def test_every_error_has_a_file_or_a_required_line() -> None:
    given = {rule for path in FILES for rule in head_of(path)[1]}
    lines = {line.split()[1] for line in REQUIRED.read_text(encoding="utf-8").splitlines()}
    errors = {rule.id for rule in RULES if rule.severity is Severity.ERROR}
    assert errors - given - lines == set(WITHOUT_FILE)


def test_the_files_are_what_the_tool_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    import write_broken

    assert {path.stem for path in FILES} == {"sound", *write_broken.MISTAKES}
    given = dict[str, str]()
    for path in FILES:
        if path.stem != "sound":
            given[path.stem] = ", ".join(head_of(path)[1])
            text = write_broken.render_broken(path.stem).replace("{gives}", given[path.stem], 1)
            assert path.read_text(encoding="utf-8") == text, "run tools/write_broken.py"
    readme = (ROOT / "examples" / "broken" / "README.md").read_text(encoding="utf-8")
    assert readme == write_broken.render_readme(given)
