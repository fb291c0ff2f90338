"""Bars of training memory and throughput on public measurements, and published recipes in their search space."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from validation.scoring import LEAST, SHARE, median_error, share  # noqa: E402
from validation.training_systems import SYSTEMS  # noqa: E402
from validation.training_tables import megatron_bridge  # noqa: E402

from clusterwright.physics.training.calibration import CALIBRATED  # noqa: E402
from clusterwright.physics.training.memory import training_memory_arrays  # noqa: E402
from clusterwright.physics.training.recipes import Recipe  # noqa: E402
from clusterwright.physics.training.speed import step_time_arrays  # noqa: E402
from validation import training_memory as memory_set  # noqa: E402
from validation import training_throughput as speed_set  # noqa: E402

pytestmark = pytest.mark.skipif(
    not (CASES / "training_throughput").is_dir(),
    reason="public measurements are missing: ../shared/cases beside the clone",
)


def test_memory_is_within_the_band_for_every_engine_with_enough_rows():
    scored = memory_set.score_peaks(CASES)
    large = {name: share(rows) for name, rows in scored.groups().items() if len(rows) >= LEAST}
    assert set(large) == {"megatron-deepspeed", "torchtitan (in sample)"}
    assert all(reached >= SHARE for reached in large.values()), large
    assert scored.passes


def test_runs_that_ran_are_predicted_to_fit_and_failures_are_listed():
    found = memory_set.failures(CASES)
    assert len(found.foreseen) + len(found.missed) == len(memory_set.OUT_OF_MEMORY)
    assert len(found.foreseen) >= 5
    assert found.fits >= 0.95 * found.ran


def test_published_runs_fit_at_least_when_they_recompute():
    found = memory_set.recipes(CASES)
    assert found.ran >= 250
    assert found.fits >= 0.95 * found.ran


def test_throughput_on_a_system_never_seen_stays_near_the_bars():
    scored = speed_set.score_systems(CASES)
    known = tuple(row for row in scored.rows if row.predicted is not None)
    assert median_error(known) < 0.137
    assert all(share(rows) >= SHARE for rows in replace(scored, rows=known).groups().values())


def test_throughput_meets_its_bars_with_the_model_left_out():
    scored = speed_set.score_megatron_bridge(CASES)
    assert all(reached <= bar for _, reached, bar in scored.bars), scored.bars
    known = tuple(row for row in scored.rows if row.predicted is not None)
    assert replace(scored, rows=known).outlying() == ()
    assert len(known) >= 0.75 * len(scored.rows)
    assert median_error(known) < 0.137


def test_shipped_constants_are_those_of_the_fit():
    fitted = speed_set.fit_on(megatron_bridge(CASES), speed_set.read_decoders(CASES))
    for name in ("base", "compute", "host", "formats", "software"):
        shipped, found = getattr(CALIBRATED, name), getattr(fitted, name)
        assert shipped == pytest.approx(found, rel=1e-2), name
    assert fitted.fitted_on == CALIBRATED.fitted_on


def test_flop_per_token_agree_with_published_tflops():
    ratios = np.array([ratio for _, ratio in speed_set.score_work(CASES)])
    assert np.median(np.abs(ratios - 1)) < 0.003


#: Model, GPUs, GiB as CUDA reports them, system, recipe, and the published tp, pp, dp, cp, vp, ep and micro-batch.
RECIPES = [
    (
        "LLAMA3.1_405B", 1024, 79.1, "DGX-H100", Recipe(precision="fp8", sequence=8192, global_batch=1536),
        (8, 8, 8, 2, 8, 1, 1),
    ),
    (
        "LLAMA3_70B", 64, 79.1, "DGX-H100", Recipe(precision="fp8", sequence=8192, global_batch=256),
        (4, 8, 2, 1, 5, 1, 1),
    ),
    (
        "DeepSeekV3", 256, 276.5, "DGX-GB300", Recipe(precision="mxfp8", sequence=4096, global_batch=4096),
        (1, 2, 128, 1, 8, 32, 1),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "gpus", "gib", "system", "recipe", "published"), RECIPES)
def test_published_recipes_fit_and_rank_in_the_top_tenth(model, gpus, gib, system, recipe, published):
    decoder = speed_set.read_decoders(CASES)[model]
    space = search_space(decoder, gpus, recipe.global_batch)
    layouts = dict(zip(("tp", "pp", "dp", "cp", "vp", "ep"), space.T[:6], strict=True))
    ours = (space == published).all(axis=1)
    assert ours.sum() == 1
    best = np.full(len(space), np.inf)
    plain = replace(recipe, fp8_weights=True, logits="fused", expandable=True)
    for how in ("none", "full"):
        tried = replace(plain, recompute=how)
        fits = training_memory_arrays(decoder, layouts, tried, micro_batch=space[:, 6]) <= gib
        seconds = step_time_arrays(decoder, layouts, tried, SYSTEMS[system], micro_batch=space[:, 6])
        best = np.where(fits, np.minimum(best, seconds), best)
    feasible = best[np.isfinite(best)]
    assert np.isfinite(best[ours]).all()
    rank = int((feasible < best[ours]).sum())
    assert rank <= 0.1 * len(feasible), f"{rank} of {len(feasible)}"


def search_space(decoder, gpus, batch):
    """(n, 7) layouts that Megatron accepts: tp, pp, dp, cp, vp, ep, micro-batch."""
    experts = next((layer.feed.experts for layer, _ in decoder.groups if hasattr(layer.feed, "experts")), 1)
    found = []
    for tp in (1, 2, 4, 8):
        for cp in (1, 2, 4, 8):
            for pp in (1, 2, 4, 8, 16, 32):
                if gpus % (tp * cp * pp):
                    continue
                dp = gpus // (tp * cp * pp)
                for micro in (1, 2, 4):
                    if batch % (dp * micro):
                        continue
                    for vp in range(1, 21):
                        if vp > 1 and (pp == 1 or pp * vp > len(decoder.layers) + 3 or batch // (dp * micro) % pp):
                            continue
                        widths = [e for e in (1, 2, 4, 8, 16, 32, 64) if experts % e == 0 and (tp * cp * dp) % e == 0]
                        found += [(tp, pp, dp, cp, vp, ep, micro) for ep in widths]
    return np.array(found)


def test_hyper_connections_are_read_and_cost_memory_and_time():
    """DeepSeek-V4 mixes four residual streams around every block; with one it would keep and pass less."""
    decoder = speed_set.read_decoders(CASES)["DeepSeekV4 Flash"]
    assert {layer.streams for layer in (*decoder.layers, *decoder.drafts)} == {4}
    plain = replace(decoder, layers=tuple(replace(layer, streams=1) for layer in decoder.layers))
    sizes = {name: np.array([value]) for name, value in (("tp", 1), ("pp", 1), ("dp", 128), ("ep", 64))}
    recipe = Recipe(precision="mxfp8", fp8_weights=True, global_batch=2048)
    for estimate in (
        lambda model: training_memory_arrays(model, sizes, recipe),
        lambda model: step_time_arrays(model, sizes, recipe, SYSTEMS["DGX-GB300"]),
    ):
        assert estimate(decoder)[0] > 1.02 * estimate(plain)[0]
