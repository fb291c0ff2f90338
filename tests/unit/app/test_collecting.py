"""Python's collector is rare within a block and as it was after it."""

import gc

import pytest

from clusterwright.app.collecting import rare_collections


@pytest.fixture(autouse=True)
def as_before():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_until_the_end_of_the_block():
    gc.set_threshold(700, 10, 10)
    with rare_collections():
        assert gc.get_threshold()[0] > 100_000
    assert gc.get_threshold() == (700, 10, 10)
    with pytest.raises(KeyError), rare_collections():
        {}["missing"]
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("threshold", [(0, 10, 10), (10_000_000, 5, 5)])
def test_who_collects_less_or_never_is_left_alone(threshold):
    gc.set_threshold(*threshold)
    with rare_collections():
        assert gc.get_threshold() == threshold
    assert gc.get_threshold() == threshold
