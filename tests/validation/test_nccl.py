"""Bars of the collectives on public measurements."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from validation.scoring import mean_error  # noqa: E402

from clusterwright.physics.ceilings import COLLECTIVES  # noqa: E402
from clusterwright.physics.collective_fits import FITS, IN_SWITCH, SPREADS  # noqa: E402
from clusterwright.physics.hierarchies import NODES_SPREAD, band_between  # noqa: E402
from validation import nccl, nccl_fitting  # noqa: E402

pytestmark = pytest.mark.skipif(
    not (CASES / "nccl").is_dir(), reason="public measurements are missing: ../shared/cases/nccl beside the clone"
)


@pytest.fixture(scope="module")
def scores():
    return {s.name: s for s in nccl.score(CASES)}


@pytest.mark.parametrize(
    "name",
    ["collectives in a node", "collectives, fitted files", "sums of integers", "sums of integers, fitted files"],
)
def test_measured_rank_counts_meet_the_bar_on_every_system(scores, name):
    assert scores[name].passes


def test_other_files_are_closer_than_three_terms_for_all_sizes_were(scores):
    found = scores["collectives in a node"]
    assert len(found.rows) == 3342
    assert mean_error(found.rows) < 0.073
    assert mean_error(scores["sums of integers"].rows) < 0.079


def test_a_rank_count_left_out_meets_the_bar_on_every_system(scores):
    found = scores["collectives, rank count left out"]
    assert found.passes
    assert len(found.bars) == 5


def test_the_spread_of_the_fitted_file_holds_most_rows_of_other_files(scores):
    rows = scores["collectives in a node"].rows
    for gpu, spread in SPREADS.items():
        held = [r.error <= spread for r in rows if r.group == gpu]
        assert not held or sum(held) / len(held) >= 0.80


def test_results_over_nodes(scores):
    found = scores["collectives over nodes"]
    assert sum(r.inside for r in found.rows) >= 14
    assert max(abs(r.signed) for r in found.rows if "72×20" not in r.id) < 0.20


def test_expert_exchange_over_nodes_is_not_fitted_and_close():
    found = nccl.expert_exchanges()
    assert found.passes
    assert max(r.error for r in found.rows) < 0.10


def test_the_band_between_nodes_is_that_of_results_left_out():
    errors = sorted(r.error for r in nccl.nodes_left_out().rows)
    assert errors[-2] == pytest.approx(NODES_SPREAD, abs=0.005)
    assert band_between(20)[0] == pytest.approx(1 / (1 + errors[-1]), abs=0.02)


@pytest.mark.parametrize("gpu", nccl.FITTED)
def test_the_shipped_laws_and_spreads_are_the_fit(gpu):
    rows = nccl.read_rows(CASES / "nccl" / f"{nccl.FITTED[gpu]}.csv")
    for operation in COLLECTIVES:
        these = [r for r in rows if r.operation == operation]
        kept = nccl_fitting.rows_of_law(gpu, these)
        _same_times(nccl_fitting.fit_law(gpu, kept), FITS[gpu][operation], kept)
        switched = [r for r in these if nccl_fitting.in_switch(gpu, r)]
        assert bool(switched) == (gpu in IN_SWITCH and operation == "all-reduce")
        if switched:
            _same_times(nccl_fitting.fit_law(gpu, switched), IN_SWITCH[gpu], switched)
    assert nccl_fitting.spread(nccl_fitting.left_out_errors(gpu, rows)) == pytest.approx(SPREADS[gpu], abs=0.003)


def _same_times(fitted, shipped, rows):
    """To a hundredth of a percent: the last digit of a coefficient may differ between machines."""
    assert nccl_fitting.times_us(fitted, rows) == pytest.approx(nccl_fitting.times_us(shipped, rows), rel=1e-4)


def test_published_results_of_one_node_are_not_fitted_and_close():
    found = nccl.one_node()
    assert found.passes
    assert len(found.rows) == 5
    assert max(r.error for r in found.rows) < 0.10
