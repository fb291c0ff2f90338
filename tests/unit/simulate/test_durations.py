import numpy as np
import pytest

from clusterwright.simulate.durations import Duration, exponential, lognormal, weibull
from clusterwright.simulate.streams import Streams


@pytest.mark.parametrize(
    ("duration", "median_s"),
    [
        (exponential(3600), 3600 * np.log(2)),
        (lognormal(3600, 900), 900),
        (weibull(3600, 0.7), 3600 / 1.26582 * np.log(2) ** (1 / 0.7)),
        (Duration(3600), 3600),
    ],
)
def test_a_duration_has_its_mean_and_its_median(duration: Duration, median_s: float) -> None:
    drawn = duration.draw_many(Streams(1).of("test"), 400_000)
    assert drawn.mean() == pytest.approx(3600, rel=0.03)
    assert np.median(drawn) == pytest.approx(median_s, rel=0.02)


def test_one_draw_is_the_first_of_many() -> None:
    for duration in (lognormal(10, 5), exponential(4), weibull(4, 2)):
        assert duration.draw(Streams(4).of("a")) == duration.draw_many(Streams(4).of("a"), 3)[0]


def test_a_fixed_duration_takes_no_random_number() -> None:
    generator = Streams(4).of("a")
    assert Duration(7.0).draw(generator) == 7.0
    assert generator.random() == Streams(4).of("a").random()


def test_durations_that_cannot_be_are_refused() -> None:
    for make in (lambda: Duration(-1), lambda: Duration(float("inf")), lambda: weibull(1, 0), lambda: lognormal(5, 9)):
        with pytest.raises(ValueError):
            make()


def test_streams_differ_by_purpose_seed_and_replication() -> None:
    generators = [
        Streams(1).of("failures", "gpu"),
        Streams(1).of("failures", "nic"),
        Streams(1).of("failuresgpu"),
        Streams(2).of("failures", "gpu"),
        Streams(1, 1).of("failures", "gpu"),
    ]
    assert len({g.random() for g in generators}) == 5
    assert Streams(1).of("a").random() == Streams(1).of("a").random()
