"""Commitments: openings verify, changes show, withheld fields leave the digest as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.lib.commitments import (
    canonical,
    flatten,
    line_salt,
    open_field,
    root_of_lines,
    unflatten,
    withhold,
)

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(PLAIN)
def test_leaves_give_the_value_back(value):
    assert unflatten(flatten(value)) == value


def test_leaves_that_do_not_fit_together_are_refused():
    for leaves in (
        [("/.a", 1), ("/.a/.b", 2)],
        [("/#0", 1), ("/#2", 2)],
        [("/#0", 1), ("/.a", 2)],
        [("/.a", 1), ("/.a", 1)],
    ):
        with pytest.raises(ValueError):
            unflatten(leaves)


def test_a_changed_value_salt_or_place_does_not_fit_the_commitment():
    field = open_field("/.node", "gpu-1", "00" * 16)
    assert field.holds
    assert not type(field)(field.place, field.commitment, field.salt, "gpu-2").holds
    assert not type(field)(field.place, field.commitment, "11" * 16, "gpu-1").holds
    assert not type(field)("/.other", field.commitment, field.salt, "gpu-1").holds


def test_a_withheld_field_keeps_its_commitment_and_shows_a_stand_in():
    field = open_field("/.node", "gpu-1", "00" * 16)
    hidden = withhold(field, "node-1")
    assert hidden.withheld
    assert hidden.holds
    assert (hidden.commitment, hidden.value) == (field.commitment, "node-1")


def test_canonical_text_has_no_not_a_number():
    assert canonical({"b": 1, "a": [1.5, None]}) == b'{"a":[1.5,null],"b":1}'
    with pytest.raises(ValueError):
        canonical(float("nan"))


def test_line_salts_differ_and_the_root_depends_on_the_order():
    assert len({line_salt("ab" * 16, n) for n in range(50)}) == 50
    assert root_of_lines(["a", "b"]) != root_of_lines(["b", "a"])
