"""Times that options of `cw simulate` give."""

import pytest

from clusterwright.cli.simulate import time_of
from clusterwright.lib.errors import InvalidInput


def test_a_time_is_seconds_and_an_absent_one_none():
    assert (time_of("--warm-up", "2h"), time_of("--warm-up", "0s"), time_of("--warm-up", "")) == (7200.0, 0.0, None)


@pytest.mark.parametrize("text", ["-1d", "-1s", "soon"])
def test_what_is_no_time_or_negative_is_refused_by_the_options_name(text):
    with pytest.raises(InvalidInput, match="--warm-up"):
        time_of("--warm-up", text)
