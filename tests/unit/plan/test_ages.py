"""Prices and constants that outlived their shelf lives."""

import datetime

import pytest

from builders.plans import CATALOGUE, planned
from clusterwright.catalogue.shelf_lives import SHELF_LIVES
from clusterwright.plan.ages import aged_inputs

TODAY = datetime.date(2026, 11, 30)


def aged(*changes, today=TODAY):
    return {a.name: a for a in aged_inputs(planned(*changes), CATALOGUE, today)}


def test_a_calibration_of_two_years_ago_is_too_old_and_one_of_today_is_not():
    assert aged() == {}
    later = aged(today=datetime.date(2028, 1, 1))
    assert later["published.training.DGX-H100.bf16.torchtitan.products"].days > 365
    assert "published.all_reduce.h100-sxm-80.8_gpus.latency" in later
    assert "published.node_failures" in later


def test_what_is_not_used_is_not_too_old():
    late = datetime.date(2028, 1, 1)
    names = aged("workloads.finetune.train.mfu=45%", today=late)
    assert not any(name.startswith("published.training.DGX") for name in names)


def test_a_rent_is_good_for_a_quarter_and_only_where_the_catalogue_prices_the_pool():
    late = datetime.date(2027, 6, 1)

    def rents(*changes, today):
        return [a for a in aged(*changes, today=today).values() if a.kind == "rental price"]

    assert rents(today=late) == []
    (rent,) = rents("pools.gpu.price=", today=late)
    assert rent.life == 90
    assert rent.days == (late - rent.dated).days > 90
    assert rents("pools.gpu.price=", today=rent.dated + datetime.timedelta(days=90)) == []


@pytest.mark.parametrize(
    ("kind", "days"),
    [("rental price", 90), ("API price", 90), ("purchase price", 365), ("calibration", 365), ("datasheet", None)],
)
def test_shelf_lives(kind, days):
    assert SHELF_LIVES[kind].days == days
    assert len(SHELF_LIVES[kind].reason) > 20
