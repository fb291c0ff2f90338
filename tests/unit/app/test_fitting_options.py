"""Options of a question beside those that hold where it says nothing."""

import pytest

from clusterwright.app.fitting import options_over


def test_what_the_question_does_not_say_holds_from_below():
    assert options_over({"rate": "5", "in": "2000"}, {"out": "10"}) == {"rate": "5", "in": "2000", "out": "10"}


@pytest.mark.parametrize("load", ["concurrency", "budget", "power", "rate"])
def test_a_load_of_the_question_replaces_every_load_from_below(load):
    below = {"rate": "5", "concurrency": "7", "in": "2000"}
    assert options_over(below, {load: "1"}) == {"in": "2000", load: "1"}
