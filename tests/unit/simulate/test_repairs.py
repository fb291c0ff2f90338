import pytest

from clusterwright.simulate.durations import Duration, exponential
from clusterwright.simulate.repairs import (
    Care,
    Course,
    Crew,
    Eviction,
    Histories,
    draw_course,
    return_s,
)
from clusterwright.simulate.spares import Spares
from clusterwright.simulate.streams import Streams

HOUR = 3600.0


def test_a_reboot_heals_the_declared_share_and_people_repair_the_rest() -> None:
    care = Care(Duration(60), reboot=Duration(600), heals=0.7, repair=exponential(24 * HOUR), retest=Duration(1200))
    generator = Streams(1).of("repairs", "gpu")
    courses = [draw_course(care, generator) for _ in range(20_000)]
    assert {(c.detection_s, c.reboot_s, c.retest_s) for c in courses} == {(60, 600, 1200)}
    people = [c.repair_s for c in courses if c.repair_s is not None]
    assert len(people) / len(courses) == pytest.approx(0.3, abs=0.015)
    assert sum(people) / len(people) == pytest.approx(24 * HOUR, rel=0.05)


def test_a_better_reboot_moves_no_other_draw() -> None:
    courses = []
    for heals in (0.0, 0.9):
        care = Care(exponential(60), reboot=exponential(600), heals=heals, repair=exponential(HOUR))
        generator = Streams(1).of("repairs", "gpu")
        courses.append([draw_course(care, generator) for _ in range(100)])
    for none, most in zip(*courses, strict=True):
        assert (none.detection_s, none.reboot_s) == (most.detection_s, most.reboot_s)
        assert most.repair_s in (None, none.repair_s)


def test_a_node_is_back_after_all_stages() -> None:
    crew = Crew()
    assert return_s(Course(60, 600, None, 1200), 1000, crew) == 2800
    assert return_s(Course(60, 600, 5000, 1200), 1000, crew) == 7800


def test_few_hands_repair_one_after_the_other() -> None:
    crew = Crew(hands=2)
    assert [crew.take(at, 100) for at in (0, 10, 20, 30, 500)] == [100, 110, 200, 210, 600]
    assert [Crew().take(at, 100) for at in (0, 10, 20)] == [100, 110, 120]


def test_a_lemon_is_evicted_at_its_third_failure_within_a_week() -> None:
    histories = Histories(Eviction(3, 7 * 24 * HOUR, Duration(0)))
    day = 24 * HOUR
    assert [histories.fail(4, t * day) for t in (0, 1, 8, 14, 15)] == [False, False, False, False, True]
    assert [histories.fail(4, t * day) for t in (16, 17, 18)] == [False, False, True]
    assert [histories.fail(5, 15 * day), histories.fail(6, 15 * day)] == [False, False]


def test_a_policy_of_one_failure_evicts_at_once() -> None:
    assert Histories(Eviction(1, HOUR, Duration(0))).fail(1, 5.0)


def test_a_spare_of_the_same_domain_goes_first() -> None:
    spares = Spares([9, 3, 7], domains=[0] * 5 + [1] * 5)
    assert (spares.take(lost=6), spares.take(lost=6), spares.take(lost=6), spares.take(lost=6)) == (7, 9, 3, None)
    spares.give(6)
    assert 6 in spares
    spares.lose(6)
    spares.lose(6)
    assert len(spares) == 0


def test_any_spare_is_as_good_without_domains() -> None:
    assert Spares([9, 3, 7]).take(lost=8) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: Care(heals=0.5),
        lambda: Care(reboot=Duration(1), heals=1.5),
        lambda: Care(drain_at_most_s=-1),
        lambda: Crew(0),
        lambda: Eviction(0, 1, Duration(0)),
        lambda: Eviction(1, 0, Duration(0)),
    ],
)
def test_care_that_cannot_be_is_refused(make: object) -> None:
    with pytest.raises(ValueError):
        make()  # type: ignore[operator]
