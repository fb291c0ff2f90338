import numpy as np
import pytest

from clusterwright.simulate.durations import Duration, lognormal
from clusterwright.simulate.expansions import Delivery, draw_arrivals
from clusterwright.simulate.maintaining import Maintenance, Window, plan_windows
from clusterwright.simulate.streams import Streams

DAY = 86400.0


def test_a_rolling_maintenance_takes_a_batch_after_the_other() -> None:
    rolling = Maintenance("firmware", (0, 1, 2, 3, 4), 100, 10, every_s=50, batches=2)
    assert plan_windows(rolling, 165) == (
        Window("firmware", 100, 110, (0, 1, 2)),
        Window("firmware", 110, 120, (3, 4)),
        Window("firmware", 150, 160, (0, 1, 2)),
        Window("firmware", 160, 170, (3, 4)),
    )


def test_a_single_round_comes_once() -> None:
    assert plan_windows(Maintenance("power", (7,), 5, 1), 1000) == (Window("power", 5, 6, (7,)),)
    assert plan_windows(Maintenance("power", (7,), 5, 1, batches=3), 1000) == (Window("power", 5, 6, (7,)),)
    assert plan_windows(Maintenance("power", (7,), 5, 1), 5) == ()


def test_maintenance_that_cannot_be_is_refused() -> None:
    for make in (
        lambda: Maintenance("a", (1,), 0, 10, every_s=15, batches=2),
        lambda: Maintenance("a", (1,), 0, 0),
        lambda: Maintenance("a", (1,), 0, 10, batches=0),
    ):
        with pytest.raises(ValueError, match="maintenance a"):
            make()


def test_capacity_comes_late_by_its_distribution() -> None:
    late = Delivery("phase 2", (8, 9), 60 * DAY, lognormal(30 * DAY, 20 * DAY), acceptance=Duration(7 * DAY))
    on_time = Delivery("phase 1", (6, 7), 30 * DAY)
    drawn = [draw_arrivals([late, on_time], Streams(s)) for s in range(4000)]
    assert all([a.at_s for a in arrivals] == sorted(a.at_s for a in arrivals) for arrivals in drawn)
    assert {arrivals[0] for arrivals in drawn if arrivals[0].delivery == on_time} == {drawn[0][0]}
    assert drawn[0][0].at_s == 30 * DAY
    lates = [a.late_s / DAY for arrivals in drawn for a in arrivals if a.delivery == late]
    assert np.mean(lates) == pytest.approx(37, rel=0.05)
    assert np.median(lates) == pytest.approx(27, rel=0.05)


def test_another_delivery_moves_none() -> None:
    first = Delivery("first", (1,), 0, lognormal(10, 5))
    alone = draw_arrivals([first], Streams(3))[0]
    assert alone in draw_arrivals([Delivery("other", (2,), 0, lognormal(10, 5)), first], Streams(3))


def test_a_node_is_delivered_once() -> None:
    with pytest.raises(ValueError, match="share"):
        draw_arrivals([Delivery("a", (1,), 0), Delivery("b", (1,), 0)], Streams(3))
    with pytest.raises(ValueError, match="share"):
        draw_arrivals([Delivery("a", (1,), 0), Delivery("a", (2,), 0)], Streams(3))
