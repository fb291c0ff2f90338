"""Figures: origins, what carries a value, computing again with other leaves."""

from __future__ import annotations

import math

import pytest

from clusterwright.lib.figures import Origin, derive, evaluate, explain_lines, format_value, leaf

MEASURED = leaf("read", 20.0, "GB/s", Origin.MEASURED, "evidence 7")
DECLARED = leaf("size", 120.0, "GB", Origin.DECLARED, "cluster.yaml:9:5")
ASSUMED = leaf("efficiency", 0.8, "", Origin.ASSUMED, "our default")


def test_a_computed_figure_inherits_its_weakest_carrying_leaf() -> None:
    time = derive("time", "s", "size ÷ read", lambda s, r: s / r, DECLARED, MEASURED)
    assert time.value == 6.0
    assert time.origin is Origin.DECLARED
    slower = derive("slower", "s", "time ÷ efficiency", lambda t, e: t / e, time, ASSUMED)
    assert slower.origin is Origin.ASSUMED


def test_a_leaf_that_changes_nothing_does_not_weaken() -> None:
    floor = leaf("floor", 1.0, "s", Origin.ASSUMED, "our default")
    time = derive("time", "s", "max", max, leaf("t", 6.0, "s", Origin.MEASURED, "evidence"), floor)
    assert time.origin is Origin.MEASURED
    assert time.effects[0][0].name == "t"
    assert time.effects[-1][1] == 0.0


def test_a_threshold_inside_the_swing_is_found() -> None:
    whole = derive("nodes", "", "⌈g ÷ 8⌉", lambda g: math.ceil(g / 8), leaf("g", 16.0, "", Origin.ASSUMED, "guess"))
    assert whole.origin is Origin.ASSUMED
    assert whole.effects[0][1] == 0.5


def test_evaluating_again_replaces_leaves_by_name() -> None:
    time = derive("time", "s", "size ÷ read", lambda s, r: s / r, DECLARED, MEASURED)
    assert evaluate(time, {"read": 40.0}) == 3.0
    assert evaluate(time, {}) == time.value


def test_only_what_depends_on_a_replaced_leaf_is_computed_and_once() -> None:
    calls = []

    def count(value: float) -> float:
        calls.append(value)
        return value

    shared = derive("shared", "", "x", count, ASSUMED)
    both = derive("both", "", "a + b", lambda a, b: a + b, shared, shared)
    calls.clear()
    assert evaluate(both, {"efficiency": 0.5}) == 1.0
    assert calls == [0.5]
    assert evaluate(both, {"another": 7.0}) == 1.6
    assert calls == [0.5]


def test_the_origin_needs_no_evaluation_beyond_the_first_carrying_leaf() -> None:
    calls = []

    def count(a: float, b: float) -> float:
        calls.append((a, b))
        return a * b

    figure = derive("product", "", "a × b", count, DECLARED, ASSUMED)
    calls.clear()
    assert figure.origin is Origin.ASSUMED
    assert all(a == DECLARED.value for a, _ in calls)


def test_an_effect_that_breaks_the_formula_is_infinite() -> None:
    margin = leaf("margin", 1.0, "", Origin.ASSUMED, "guess")
    figure = derive("f", "", "√(1.05 − m)", lambda m: math.sqrt(1.05 - m), margin)
    assert figure.effects == ((margin, math.inf),)


def test_no_figure_is_nan_and_none_lacks_inputs() -> None:
    with pytest.raises(ValueError, match="not a number"):
        leaf("x", math.nan, "", Origin.ASSUMED, "")
    with pytest.raises(ValueError, match="no inputs"):
        derive("x", "", "", lambda: 1.0)


def test_the_explanation_names_value_origin_and_source_once() -> None:
    time = derive("time", "s", "size ÷ read", lambda s, r: s / r, DECLARED, MEASURED, band=(0.8, 1.25))
    both = derive("both", "s", "a + b", lambda a, b: a + b, time, time)
    lines = explain_lines(both)
    assert lines[0] == "both = 12 s [declared] = a + b"
    assert lines[1] == "  time = 6 s [declared] = size ÷ read  band ×0.8 to ×1.25"
    assert lines[2] == "    size = 120 GB [declared] cluster.yaml:9:5"
    assert lines[4].endswith("(see above)")
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234.5, "1,234"),
        (0.12345, "0.1235"),
        (99.99, "99.99"),
        (0.000123, "0.000123"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (2e15, "2.000e+15"),
    ],
)
def test_four_significant_digits(value: float, text: str) -> None:
    assert format_value(value) == text
