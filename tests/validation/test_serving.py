"""Bars of serving on published runs, with every group of rows predicted from the others."""

import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from validation.scoring import SHARE, mean_error, median_error, share  # noqa: E402
from validation.serving_reasons import reason_of  # noqa: E402

from clusterwright.calibrating.measurements import Measurement, Worker  # noqa: E402
from clusterwright.physics.layouts import Layout  # noqa: E402
from validation import serving  # noqa: E402

pytestmark = [
    pytest.mark.timeout(1200),  # 21 fits: a minute of CPU, on a busy machine far more
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


def test_only_first_tokens_on_rack_scale_systems_miss_the_band(scores):
    """Mostly disaggregated runs, in which a small shortfall of prefill workers is a long queue."""
    missed = {name for name, rows in scores["serving TTFT"].scored().items() if share(rows) < SHARE}
    assert missed == {"gb200-186", "gb300-279"}
    assert all(share(rows) >= SHARE for rows in scores["serving TPOT"].scored().values())


def test_a_model_and_a_system_that_were_never_fitted(scores):
    assert median_error(scores["serving TPOT, new model"].rows) < 0.20
    assert median_error(scores["serving TPOT, new system"].rows) < 0.16
    assert median_error(scores["serving TTFT, new model"].rows) < 0.45
    assert median_error(scores["serving TTFT, new system"].rows) < 0.42


def test_every_row_is_either_scored_or_listed_and_bias_is_small(scores):
    scored, listed = scores["serving TPOT"].rows, scores["serving TPOT, rows that tell too little"].rows
    assert len(scored) + len(listed) == len({r.id for r in (*scored, *listed)})
    assert len(scored) > 1700
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
