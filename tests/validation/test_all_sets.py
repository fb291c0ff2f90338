"""The one table, the page and what they say about rows that are made here; the page in step with the code."""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

import validate  # noqa: E402
from validation.scoring import LEAST, Failures, Row, Scored  # noqa: E402

from validation import lines, writing  # noqa: E402

needs_cases = pytest.mark.skipif(
    not (CASES / "memory.jsonl").is_file(), reason="public measurements are missing: ../shared/cases beside the clone"
)
#: All sets take a minute of CPU, on a busy machine far more.
pytestmark = pytest.mark.timeout(1200)
NUMBER = re.compile(r"\d[\d,]*\.?\d*")


def rows(count: int, *, off: int = 0, group: str = "vllm", family: str = "", by: float = 1.0) -> tuple[Row, ...]:
    """`count` rows of 100, the last `off` of them predicted `by` too high and outside."""
    good = [Row(f"{group}{i}", group, 101.0, 100.0, True, family) for i in range(count - off)]
    bad = [Row(f"{group}-bad{i}", group, 100.0 * (1 + by), 100.0, False, family, "cause") for i in range(off)]
    return (*good, *bad)


def made(found: tuple[Row, ...], **more: object) -> Scored:
    return replace(Scored("a set", "10 %", "not fitted", found), **more)


def test_a_group_of_twenty_rows_with_four_outside_holds_and_with_five_misses():
    assert made(rows(20, off=4)).passes
    assert not made(rows(20, off=5)).passes
    assert lines.group_lines(made(rows(20, off=5)))[0][-1] == lines.MISSED


def test_smaller_groups_are_shown_and_not_judged():
    few = made(rows(LEAST - 1, off=10))
    assert few.passes
    assert lines.group_lines(few)[0][-1] == "too few"
    assert (
        "Not judged, for want of rows or of a bar",
        [f"a set: no group has {LEAST} rows, so nothing is judged."],
    ) in (lines.weaknesses([few]))


def test_systems_are_judged_beside_groups():
    found = tuple(replace(row, system="h100" if row.inside else "l40s") for row in rows(200, off=20))
    assert made(rows(200, off=20)).passes
    assert not made(found).passes
    assert [line[1] for line in lines.group_lines(made(found))] == ["vllm", "h100", "l40s"]


def test_a_listed_set_claims_nothing():
    listed = made(rows(40, off=40), judged=False)
    (line,) = lines.group_lines(listed)
    assert line[-2:] == ("–", "listed")
    assert listed.passes
    ((_, sentences),) = lines.weaknesses([listed])
    assert sentences == ["a set: 40 rows are listed, not judged; mean error 100.0 %."]


def test_a_row_without_an_answer_is_outside_and_counted():
    refused = Row("x", "vllm", None, 1.0, False, reason="unknown architecture")
    found = made((*rows(3), refused))
    assert lines.group_lines(found)[0][3] == "1"
    assert lines.worst_lines(found) == [("x", "vllm", "–", "1", "–", "unknown architecture")]


def test_a_large_family_far_from_the_rest_misses_the_bar():
    found = made((*rows(60, family="dense"), *rows(20, off=0, group="vllm", family="dense")))
    assert found.passes
    off = tuple(Row(f"m{i}", "vllm", 105.0, 100.0, True, "MoE") for i in range(20))
    assert not made((*rows(60, family="dense"), *off)).passes
    assert ("family", "MoE", "20", "+5.0 %", "5.0 %", "FAR OFF") in lines.bias_lines(
        made((*rows(60, family="dense"), *off))
    )


def test_the_worst_rows_come_first_with_their_reason_and_at_most_ten():
    found = lines.worst_lines(made(rows(40, off=12)))
    assert len(found) == 10
    assert {line[-1] for line in found} == {"cause"}


def test_failures_are_k_of_n_and_what_ran_must_fit():
    found = Failures("start-up failures", ("a",), (("b", "estimate 3 of 4 GiB"),), fits=94, ran=100)
    assert not found.passes
    first, missed, ran = lines.failure_lines(found)
    assert first == "start-up failures: 1 of 2 foreseen (a)"
    assert missed == "missed b: estimate 3 of 4 GiB"
    assert ran.endswith("94 of the 100 that ran are predicted to fit (94.0 %; at least 95% wanted): MISSED")


def test_the_page_names_every_set_and_what_it_was_fitted_on():
    scores = [made(rows(20, off=5), name=name) for name in ("one", "two")]
    page = writing.as_page(scores)
    for name in ("one", "two"):
        assert f"| {name} | 20 | not fitted |" in page
        assert f"- {name}, vllm: 75.0 % of 20 rows in the band, 80% wanted." in page


def test_without_measurements_nothing_is_scored(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["validate.py", str(tmp_path)])
    assert validate.main() == 2
    assert "CLUSTERWRIGHT_CASES" in capsys.readouterr().err


@pytest.mark.parametrize("name", validate.SETS)
def test_every_set_can_be_scored(name):
    assert callable(importlib.import_module(f"validation.{name}").score)


@pytest.fixture(scope="module")
def scores():
    return validate.score(CASES)


@needs_cases
def test_every_row_far_off_has_a_reason(scores):
    for scored in scores:
        if isinstance(scored, Scored) and scored.judged:
            assert [line for line in lines.worst_lines(scored) if line[-1] == "not explained"] == [], scored.name


@needs_cases
def test_bands_are_short_and_names_differ(scores):
    sets = [s for s in scores if isinstance(s, Scored)]
    assert max(len(line[7]) for s in sets for line in lines.group_lines(s)) <= 28
    assert len({s.name for s in sets}) == len(sets)


@needs_cases
def test_the_page_is_in_step_with_the_code(scores):
    """Words are the same and numbers within 2 %, or 0.3 of a percent: the last digits depend on the processor."""
    written, now = (apart(text) for text in (validate.PAGE.read_text(encoding="utf-8"), writing.as_page(scores)))
    assert written[0] == now[0]
    far = [(a, b) for a, b in zip(written[1], now[1], strict=True) if abs(a - b) > max(0.02 * abs(b), 0.3)]
    assert len(far) <= 0.01 * len(now[1]), far[:20]


def apart(page: str) -> tuple[str, list[float]]:
    """(words, numbers) of the page without the rows that are worst, whose order hangs on the last digits."""
    kept, worst = [], False
    for line in page.splitlines():
        worst = line.startswith("| worst") or (worst and line.startswith("|"))
        if not worst:
            kept.append(line)
    text = "\n".join(kept)
    return NUMBER.sub("#", text), [float(found.replace(",", "").rstrip(".")) for found in NUMBER.findall(text)]
