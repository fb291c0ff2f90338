"""Bars of serving on published runs, with every group of rows predicted from the others."""

import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from validation.scoring import mean_error, median_error  # noqa: E402

from validation import serving  # noqa: E402

pytestmark = pytest.mark.skipif(
    not (CASES / "serving.csv").is_file(),
    reason="public measurements are missing: ../shared/cases/serving.csv beside the clone",
)


@pytest.fixture(scope="module")
def scores():
    return {s.name: s for s in serving.score(CASES, peer=lambda row: (None, row.tpot_s))}


def test_rows_that_were_not_fitted_meet_the_bars(scores):
    tpot, ttft = scores["serving TPOT by engine"], scores["serving TTFT by engine"]
    assert tpot.passes
    assert ttft.passes
    assert mean_error(tpot.rows) < 0.276
    assert median_error(tpot.rows) < 0.219
    assert mean_error(ttft.rows) < 0.585


def test_no_family_is_off_by_twice_the_median(scores):
    for name in ("serving TPOT by engine", "serving TTFT by engine"):
        assert not scores[name].outlying()


def test_every_system_is_within_the_band(scores):
    assert scores["serving TPOT by system"].passes
    assert scores["serving TTFT by system"].passes


def test_a_model_and_a_system_that_were_never_fitted(scores):
    assert median_error(scores["serving TPOT, new model"].rows) < 0.20
    assert median_error(scores["serving TPOT, new system"].rows) < 0.16
    assert median_error(scores["serving TTFT, new model"].rows) < 0.45
    assert median_error(scores["serving TTFT, new system"].rows) < 0.42


def test_every_row_is_either_scored_or_listed_and_bias_is_small(scores):
    scored, listed = scores["serving TPOT by engine"].rows, scores["serving TPOT, rows that tell too little"].rows
    assert len(scored) + len(listed) == len({r.id for r in (*scored, *listed)})
    assert len(scored) > 1700
    assert abs(median(r.signed for r in scored)) < 0.10


def test_another_planners_error_stands_beside_ours_on_the_rows_that_it_answers(scores):
    note = scores["serving TPOT by engine"].notes[-1]
    assert note.startswith("TPOT on 1")
    assert "mean 0.0% median 0.0% against mean" in note
