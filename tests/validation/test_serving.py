"""Bars of serving on published runs, with every group of rows predicted from the others."""

import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from validation.scoring import SHARE, band_of, mean_error, median_error, share  # noqa: E402
from validation.serving_reasons import reason_of  # noqa: E402

from clusterwright.calibrating.bands import HELD  # noqa: E402
from clusterwright.calibrating.measurements import Measurement, Worker  # noqa: E402
from clusterwright.physics.layouts import Layout  # noqa: E402
from validation import lines, serving  # noqa: E402

pytestmark = [
    pytest.mark.timeout(1200),  # some 130 fits: a minute of CPU, on a busy machine far more
    pytest.mark.skipif(
        not (CASES / "serving.csv").is_file(),
        reason="public measurements are missing: ../shared/cases/serving.csv beside the clone",
    ),
]


@pytest.fixture(scope="module")
def scores():
    return {s.name: s for s in serving.score(CASES)}


def test_rows_that_were_not_fitted_meet_the_bars(scores):
    tpot, ttft = scores["serving TPOT"], scores["serving TTFT"]
    assert tpot.passes
    assert mean_error(tpot.rows) < 0.276
    assert median_error(tpot.rows) < 0.219
    assert mean_error(ttft.rows) < 0.585


def test_no_family_is_off_by_twice_the_median(scores):
    for name in ("serving TPOT", "serving TTFT"):
        assert not scores[name].outlying()


@pytest.mark.parametrize("what", ["TPOT", "TTFT"])
def test_bands_hold_what_they_say_of_rows_that_did_not_set_them(scores, what):
    for name in (f"serving {what}", f"serving {what}, new model", f"serving {what}, new system"):
        assert all(share(rows) >= SHARE for rows in scores[name].scored().values())
        assert abs(share(scores[name].rows) - HELD) < 0.05


def test_bands_are_no_wider_than_what_they_hold_asks_for(scores):
    """Half as wide, in logarithms, they hold far less: their width is the rows' and not a way to pass."""
    for what in ("TPOT", "TTFT"):
        rows = scores[f"serving {what}"].rows
        inside = [low**0.5 <= r.measured / r.predicted <= high**0.5 for r in rows for low, high in [r.factors]]
        assert sum(inside) / len(rows) < SHARE


def test_first_tokens_with_prefill_apart_are_said_to_be_wide(scores):
    low, high = band_of(scores["serving TTFT"].systems()["gb300-279"])
    assert high / low > 10
    assert any(
        "gb300-279" in text and "as wide as" in text for text in lines.weaknesses([scores["serving TTFT"]])[-1][1]
    )


def test_a_model_and_a_system_that_were_never_fitted(scores):
    assert median_error(scores["serving TPOT, new model"].rows) < 0.20
    assert median_error(scores["serving TPOT, new system"].rows) < 0.16
    assert median_error(scores["serving TTFT, new model"].rows) < 0.42
    assert median_error(scores["serving TTFT, new system"].rows) < 0.42
    assert mean_error(scores["serving TTFT, new model"].rows) < 0.55


def test_every_row_is_either_scored_or_listed_and_bias_is_small(scores):
    scored, listed = scores["serving TPOT"].rows, scores["serving TPOT, rows that tell too little"].rows
    assert len(scored) + len(listed) == len({r.id for r in (*scored, *listed)})
    assert len(scored) >= 1700
    assert abs(median(r.signed for r in scored)) < 0.10


def test_the_errors_with_listed_rows_counted_in_are_said(scores):
    for name in ("serving TPOT", "serving TTFT"):
        assert any("rows that tell too little: mean" in note for note in scores[name].notes)


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ((2.0, 2.0), "fewer requests in flight"),
        ((0.5, 2.0), "prompts went first"),
        ((2.0, 0.5), "prompts went between tokens"),
        ((2.0, 1.0), "how the run fed requests"),
        ((0.5, 1.0), "prompts queued in the run"),
        ((1.0, 2.0), "steps were faster"),
        ((1.0, 0.5), "steps were slower"),
    ],
)
def test_the_two_times_together_say_why_a_row_is_off(ratios, words):
    row = Measurement("x", "vllm", "", "m", "h100", None, "bf16", 1e3, 1e3, 8, Worker(Layout()), None, 1.0, 1.0)
    assert words in reason_of(row, *ratios)


def test_prefill_workers_short_of_the_load_are_named():
    split = Measurement(
        "x", "vllm", "", "m", "gb200", None, "bf16", 1e3, 1e3, 512, Worker(Layout()), Worker(Layout()), 1.0, 1.0
    )
    assert "short of the load" in reason_of(split, 3.0, 1.0)
    assert "overloaded" in reason_of(split, 1.0, 0.5)
