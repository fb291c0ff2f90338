"""Fits find what drew the data, say how far they are off, and draw jobs like those they were fitted to."""

from __future__ import annotations

import json
import math
from datetime import UTC

import numpy as np
import pytest

from builders.traces import trace_of
from clusterwright.lib.errors import InvalidInput
from clusterwright.traces.distributions import FAR, Fitted, choose, distance, fit_all, weigh
from clusterwright.traces.fit_documents import fit_text, is_fit, parse_fit
from clusterwright.traces.fits import Arrivals
from clusterwright.traces.fitting import fit_trace
from clusterwright.traces.sampling import draw_arrivals, sample
from clusterwright.traces.special import digamma, lower_gamma, normal_cdf, trigamma

NONE = Fitted("exponential", (1.0,), 0.0)
DRAWN = {
    "lognormal": Fitted("lognormal", (7.0, 1.5), 0.0),
    "gamma": Fitted("gamma", (0.6, 5000.0), 0.0),
    "weibull": Fitted("weibull", (0.7, 4000.0), 0.0),
}


def drawn(fitted: Fitted, count: int = 20_000, seed: int = 1):
    return fitted.draw(np.random.default_rng(seed), count)


def uncensored(values):
    return weigh(values, np.zeros(len(values), dtype=bool))


@pytest.mark.parametrize("family", DRAWN)
def test_the_family_and_parameters_that_drew_the_data_are_found(family):
    found = choose(fit_all(uncensored(drawn(DRAWN[family]))))
    assert found.family == family
    assert found.parameters == pytest.approx(DRAWN[family].parameters, rel=0.05)
    assert found.distance < 0.01


def test_exponential_data_is_exponential_though_gamma_and_weibull_fit_it_too():
    found = choose(fit_all(uncensored(drawn(Fitted("exponential", (500.0,), 0.0)))))
    assert (found.family, found.parameters[0]) == ("exponential", pytest.approx(500.0, rel=0.03))


def test_data_of_no_family_is_kept_as_its_quantiles_with_its_mean():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(100.0, 5.0, 5000), rng.normal(90_000.0, 500.0, 5000)])
    fits = fit_all(uncensored(values))
    found = choose(fits)
    assert found.family == "empirical"
    assert min(other.distance for other in fits if other.family != "empirical") > FAR
    assert found.distance < 0.02
    assert found.mean == pytest.approx(values.mean(), rel=0.01)
    assert drawn(found, 50_000).mean() == pytest.approx(values.mean(), rel=0.02)


def test_jobs_that_still_ran_do_not_make_run_times_shorter():
    values = drawn(DRAWN["weibull"], 40_000)
    cut = np.random.default_rng(3).uniform(0.0, 60_000.0, len(values))
    observed = np.minimum(values, cut)
    honest = next(f for f in fit_all(weigh(observed, values > cut)) if f.family == "weibull")
    naive = next(f for f in fit_all(uncensored(observed[values <= cut])) if f.family == "weibull")
    assert honest.mean == pytest.approx(DRAWN["weibull"].mean, rel=0.1)
    assert naive.mean < 0.9 * DRAWN["weibull"].mean


def test_weights_are_those_of_kaplan_and_meier():
    # Classic small case: 1, 2+, 3, 4+, 5: steps at 1 (1/5), 3 (4/5 × 1/3), 5 (the rest).
    found = weigh(np.array([3.0, 1.0, 5.0, 2.0, 4.0]), np.array([False, False, False, True, True]))
    assert found.values.tolist() == [1.0, 3.0, 5.0]
    assert found.weights == pytest.approx([0.2, 4 / 15, 8 / 15])
    unreached = weigh(np.array([1.0, 2.0]), np.array([False, True]))
    assert (unreached.values.tolist(), unreached.weights.tolist()) == ([1.0], [1.0])


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    data = uncensored(np.array([0.1, 0.2, 0.9]))
    assert distance(lambda x: x, data) == pytest.approx(2 / 3 - 0.2)
    ties = uncensored(np.array([0.5, 0.5, 0.5, 0.5]))
    assert distance(lambda x: x, ties) == pytest.approx(0.5)


def test_equal_values_have_no_spread_and_are_kept_as_they_are():
    found = choose(fit_all(uncensored(np.full(50, 60.0))))
    assert (found.family, found.mean) == ("empirical", pytest.approx(60.0))
    assert set(drawn(found, 100).tolist()) == {60.0}


@pytest.mark.parametrize("family", DRAWN)
def test_quantiles_turn_the_cdf_around(family):
    fitted = DRAWN[family]
    for probability in (0.01, 0.5, 0.99):
        assert fitted.cdf(np.array([fitted.quantile(probability)]))[0] == pytest.approx(probability, rel=1e-6)


def test_special_functions_have_their_tabulated_values():
    assert digamma(1.0) == pytest.approx(-0.5772156649015329, rel=1e-12)  # −γ
    assert trigamma(1.0) == pytest.approx(math.pi**2 / 6, rel=1e-12)
    assert digamma(0.5) == pytest.approx(-1.9635100260214235, rel=1e-12)
    x = np.array([0.0, 0.5, 1.0, 5.0, 50.0])
    assert lower_gamma(1.0, x) == pytest.approx(1 - np.exp(-x), rel=1e-10)
    assert lower_gamma(0.5, x) == pytest.approx([math.erf(math.sqrt(each)) for each in x], rel=1e-9)
    assert normal_cdf(np.array([-1.96, 0.0, 1.96])) == pytest.approx([0.0249979, 0.5, 0.9750021], abs=1e-7)


def month(seed=4, jobs=8_000, **more):
    """A month with busy days and quiet nights: small lognormal jobs in one queue, large Weibull ones in another."""
    rng = np.random.default_rng(seed)
    day = np.arange(28 * 24) % 24
    rates = np.where((day >= 9) & (day < 18), 5.0, 1.0)
    hours = rng.choice(len(rates), jobs, p=rates / rates.sum())
    submit_s = 4 * 86400.0 + 3600.0 * (hours + rng.random(jobs))
    large = rng.random(jobs) < 0.1
    run_s = np.where(large, 20_000.0 * rng.weibull(0.5, jobs), rng.lognormal(6.0, 1.0, jobs))
    ratio = rng.uniform(0.1, 0.9, jobs)
    rows = zip(submit_s.tolist(), run_s.tolist(), ratio.tolist(), large.tolist(), strict=True)
    return trace_of(
        *(
            {"submit_s": at, "run_s": run, "limit_s": run / used, "gpus": 64 if big else 1,
             "queue": "train" if big else "dev", "flavor": "h100" if big else "", **more}
            for at, run, used, big in rows
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    return fit_trace(month(), UTC, source="month")


def test_a_fit_tells_sizes_and_queues_and_run_times_apart(fitted):
    kinds = {(kind.queue, kind.gpus): kind.share for kind in fitted.kinds}
    assert kinds == {("dev", 1): pytest.approx(0.9, abs=0.01), ("train", 64): pytest.approx(0.1, abs=0.01)}
    assert [(r.gpus, r.chosen.family) for r in fitted.run_times] == [((0, 1), "lognormal"), ((2, -1), "weibull")]


def test_arrivals_are_poisson_once_the_hours_are_taken_out(fitted):
    arrivals = fitted.arrivals
    assert (arrivals.chosen.family, arrivals.cv) == ("exponential", pytest.approx(1.0, abs=0.03))
    assert np.mean(arrivals.hourly[9:18]) / np.mean(arrivals.hourly[0:9]) == pytest.approx(5.0, rel=0.15)


def test_jobs_drawn_from_a_fit_are_like_those_it_was_fitted_to(fitted):
    original, drawn_jobs = month(), sample(fitted, np.random.default_rng(5), 28 * 10)
    assert len(drawn_jobs) == pytest.approx(10 * len(original), rel=0.02)
    for gpus in (1, 64):
        one, other = original.run_s[original.gpus == gpus], drawn_jobs.run_s[drawn_jobs.gpus == gpus]
        assert np.log(other).mean() == pytest.approx(np.log(one).mean(), rel=0.01)
        assert other.mean() == pytest.approx(one.mean(), rel=0.05)
        assert len(other) / len(drawn_jobs) == pytest.approx(len(one) / len(original), rel=0.05)
    assert np.median(drawn_jobs.run_s / drawn_jobs.limit_s) == pytest.approx(0.5, abs=0.01)
    by_day = np.bincount((drawn_jobs.submit_s // 3600 % 24).astype(int), minlength=24)
    assert by_day[9:18].mean() / by_day[:9].mean() == pytest.approx(5.0, rel=0.1)
    assert [drawn_jobs.queue[k] == "train" for k in range(200)] == (drawn_jobs.gpus[:200] == 64).tolist()
    assert drawn_jobs.submit_s.tolist() == sorted(drawn_jobs.submit_s)


def test_the_same_seed_draws_the_same_jobs(fitted):
    one, other = (sample(fitted, np.random.default_rng(6), 3.5) for _ in range(2))
    np.testing.assert_array_equal(one.submit_s, other.submit_s)
    np.testing.assert_array_equal(one.run_s, other.run_s)
    assert one.submit_s[-1] < 3.5 * 86400


@pytest.mark.parametrize("gaps", [Fitted("gamma", (0.05, 20.0), 0.0), Fitted("weibull", (0.4, 1.0), 0.0), NONE])
def test_bursty_arrivals_keep_their_rate_also_over_a_short_time(gaps):
    arrivals = Arrivals((100.0,), 1.0, 0.3, gaps, ())
    counts = [len(draw_arrivals(arrivals, np.random.default_rng(seed), 0.5)) for seed in range(400)]
    expected, error = 1200.0, np.std(counts) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - expected) < 4 * error


def test_hours_without_jobs_stay_without():
    arrivals = Arrivals(tuple(20.0 if hour == 10 else 0.0 for hour in range(168)), 1.0, 0.0, NONE, ())
    submit_s = draw_arrivals(arrivals, np.random.default_rng(7), 7 * 50)
    assert set((submit_s // 3600 % 168).astype(int)) == {10}
    assert len(submit_s) == pytest.approx(1000, rel=0.15)


def test_limits_that_are_not_recorded_or_infinite_stay_so():
    found = fit_trace(month(jobs=2000, limit_s=math.inf), UTC)
    drawn_jobs = sample(found, np.random.default_rng(8), 7)
    assert np.isinf(drawn_jobs.limit_s).all()
    found = fit_trace(month(jobs=2000, limit_s=math.nan), UTC)
    assert np.isnan(sample(found, np.random.default_rng(8), 7).limit_s).all()


def test_jobs_without_run_time_or_gpus_are_left_out_and_counted():
    found = fit_trace(month(jobs=200), UTC)
    assert found.left_out == 0
    with pytest.raises(InvalidInput, match="only 0 jobs of 200"):
        fit_trace(month(jobs=200, gpus=-1), UTC)


def test_all_at_once_cannot_be_fitted():
    with pytest.raises(InvalidInput, match="same time"):
        fit_trace(trace_of(*({"submit_s": 5.0, "run_s": 5.0, "gpus": 1} for _ in range(40))), UTC)


def test_zero_run_times_are_drawn_as_often_as_they_were_there():
    jobs = [{"submit_s": 60.0 * k, "run_s": 0.0 if k % 4 == 0 else 30.0 + k % 50, "gpus": 1} for k in range(4000)]
    found = fit_trace(trace_of(*jobs), UTC, dated=False)
    drawn_jobs = sample(found, np.random.default_rng(9), 10)
    assert np.mean(drawn_jobs.run_s == 0) == pytest.approx(0.25, abs=0.02)
    assert len(found.arrivals.hourly) == 1


def test_a_fit_survives_being_written(fitted):
    text = fit_text(fitted)
    assert parse_fit(text) == fitted
    assert is_fit(text)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("form",), "x", "form is 'x'"), (("jobs",), "many", "jobs is 'many'"),
        (("kinds",), [], "kinds must be a list"),
        (("kinds", 0, "share"), -1, "share is -1"), (("kinds", 0, "gpus"), None, "gpus is None"),
        (("arrivals", "hourly"), [0.0], "must not be 0 throughout"),
        (("arrivals", "hourly"), [1, 2], "1 or 168 numbers"),
        (("run_times", 0, "chosen", "family"), "cauchy", "no family 'cauchy'"),
        (("run_times", 0, "chosen", "parameters"), [1.0], "2 numbers"),
        (("run_times", 0, "gpus"), [99, 100], "no class holds jobs with 1 GPUs"),
        (("limits",), 5, "must be an object"),
    ],
)  # fmt: skip
def test_a_spoiled_fit_is_refused_with_its_place(fitted, path, value, said):
    values = json.loads(fit_text(fitted))
    inside = values
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    with pytest.raises(InvalidInput, match=said.replace("(", r"\(")):
        parse_fit(json.dumps(values))


def test_a_value_that_is_missing_is_named(fitted):
    values = json.loads(fit_text(fitted))
    del values["arrivals"]["cv"]
    with pytest.raises(InvalidInput, match="fit: arrivals: cv is missing"):
        parse_fit(json.dumps(values))


def test_too_much_at_once_is_refused(fitted):
    with pytest.raises(InvalidInput, match="at most"):
        sample(fitted, np.random.default_rng(1), 36_500.0)
    with pytest.raises(InvalidInput, match="more than 0"):
        sample(fitted, np.random.default_rng(1), 0.0)
    with pytest.raises(InvalidInput, match="at most 36,525"):
        sample(fitted, np.random.default_rng(1), 1e9)
