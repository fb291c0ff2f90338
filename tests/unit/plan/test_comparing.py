"""Designs side by side: what differs, what may be relied on, and which input makes how much of it."""

from __future__ import annotations

import math

import pytest

from builders.plans import BASE, CATALOGUE, document, planned
from clusterwright.lib.figures import Figure, Origin, derive, leaf
from clusterwright.plan.comparing import MOST_ALONE, Comparison, Row, Side, compare_designs, ratio_of, trust_of
from clusterwright.plan.headlines import headlines_of, power_kw
from clusterwright.report.comparisons import comparison_values, render_comparison, render_comparison_markdown, together

PRICE = "pools.gpu.price=$3/GPU-h"
TP = "workloads.chat.serve.parallel.tp=8"


def side(*overrides: str) -> Side:
    return Side(", ".join(overrides) or "as it is", document(BASE, *overrides), planned(*overrides))


def compared(*overrides: str) -> Comparison:
    return compare_designs([side(), side(*overrides)], CATALOGUE)


def row(found: Comparison, subject: str, label: str) -> Row:
    return next(r for r in found.rows if r.key == (subject, label))


def estimate(name: str, value: float, band: tuple[float, float] | None) -> Figure:
    start = leaf(f"{name}.input", value, "s", Origin.CATALOGUE, "a paper")
    return derive(name, "s", "as it is", lambda v: v, start, band=band)


def test_a_design_compared_with_itself_has_no_difference() -> None:
    found = compare_designs([side(), side()], CATALOGUE)
    assert not any(r.differs for r in found.rows)
    assert found.inputs == ((),)
    assert found.alone == ((),)


def test_a_price_moves_money_alone_and_follows_from_the_inputs() -> None:
    found = compared(PRICE)
    moved = {r.key for r in found.rows if r.differs}
    assert moved
    assert all("cost" in label or "month" in label for _, label in moved)
    assert {r.cells[1].trust for r in found.rows if r.differs} == {"formula"}
    assert row(found, "cluster", "cost of a month").cells[1].ratio == pytest.approx(
        planned(PRICE).economics.total.value / planned().economics.total.value  # type: ignore[union-attr]
    )


def test_what_each_input_does_alone_is_what_a_plan_with_it_says() -> None:
    found = compared(PRICE, TP)
    assert {alone.name for alone in found.alone[0]} == {"pools.gpu.price", "workloads.chat.serve.parallel.tp"}
    first = {h.key: h.value for h in headlines_of(document(), CATALOGUE, planned())}
    with_tp = {h.key: h.value for h in headlines_of(document(BASE, TP), CATALOGUE, planned(TP))}
    alone = next(a for a in found.alone[0] if a.name.endswith("tp"))
    for key, ratio in alone.effects.items():
        one, two = first[key], with_tp[key]
        assert isinstance(one, Figure)
        assert isinstance(two, Figure)
        assert ratio == pytest.approx(two.value / one.value)
    assert alone.words[("chat", "layout")] == "TP8"


def test_single_effects_and_their_interaction_make_the_whole_difference() -> None:
    found = compared(PRICE, TP)
    for key, rest in together(found, 0):
        singles = math.prod(a.effects.get(key, 1.0) for a in found.alone[0])
        whole = row(found, *key).cells[1].ratio
        assert whole == pytest.approx(singles * rest)


def test_many_inputs_are_taken_together_by_section() -> None:
    many = [f"economics.costs.{name}=$1/month" for name in ("network", "storage", "support", "operations")]
    many += [f"economics.shares.{name}=1%" for name in ("retries", "failed")]
    many += [
        "workloads.chat.serve.rate=9 req/s",
        "workloads.chat.serve.in=900 tokens",
        "workloads.chat.serve.out=99 tokens",
    ]
    many += ["workloads.finetune.train.tokens=100 Mtok", "workloads.finetune.train.deadline=9 days", PRICE]
    many += ["storage.stores.object.read=10 GB/s", "storage.stores.nvme.read=9 GB/s"]
    found = compared(*many)
    assert len(found.inputs[0]) == len(many) > MOST_ALONE
    assert len(found.alone[0]) <= MOST_ALONE
    assert sum(len(a.inputs) for a in found.alone[0]) == len(many)
    assert "economics.costs" in {a.name for a in found.alone[0]}


def test_bands_decide_whether_a_difference_is_relied_on() -> None:
    one = estimate("step", 10, (0.8, 1.25))
    assert trust_of(one, estimate("step", 12, (0.8, 1.25))) == "inside"
    assert trust_of(one, estimate("step", 40, (0.8, 1.25))) == "beyond"
    assert trust_of(one, one) == "same"
    assert trust_of(estimate("step", 10, None), estimate("step", 10.5, None)) == "formula"


def test_an_estimate_that_is_the_same_in_both_errs_in_both() -> None:
    step = estimate("step", 10, (0.5, 2))
    prices = [leaf("price", p, "$/GPU-h", Origin.DECLARED, "line 1") for p in (2.0, 2.1)]
    one, two = (derive("cost", "$", "step × price", lambda s, p: s * p, step, price) for price in prices)
    assert trust_of(one, two) == "formula"
    other = derive("cost", "$", "step × price", lambda s, p: s * p, estimate("step", 11, (0.5, 2)), prices[0])
    assert trust_of(one, other) == "inside"


def test_ratios_that_say_nothing_are_left_out() -> None:
    assert ratio_of(0, 0) == 1
    assert ratio_of(0, 1) is None
    assert ratio_of(math.inf, 1) is None
    assert ratio_of(2, 3) == 1.5


def test_power_is_declared_or_of_the_shape_or_unknown() -> None:
    assert power_kw(document(), CATALOGUE) is None
    declared = power_kw(document(BASE, "pools.gpu.hardware.power=10.2 kW"), CATALOGUE)
    assert declared is not None
    assert declared.value == pytest.approx(20.4)
    assert declared.origin is Origin.DECLARED


def test_text_names_differences_inputs_and_what_each_does() -> None:
    text = render_comparison(compared(PRICE, TP), 120)
    assert "TP4" in text
    assert "TP8" in text
    assert "pools.gpu.price" in text
    assert "$2.40/GPU-h" in text
    assert "follows from the inputs" in text
    assert "what each does alone" in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_workload_of_one_design_is_said_once() -> None:
    text = render_comparison(compared("workloads.finetune="), 120)
    assert "finetune is only in A" in text
    assert "tokens per second" not in text


def test_markdown_escapes_what_would_break_a_table() -> None:
    found = compare_designs([side(), Side("a|b\nc", document(BASE, PRICE), planned(PRICE))], CATALOGUE)
    page = render_comparison_markdown(found)
    assert "a\\|b c" in page
    assert all(line.count(" | ") >= 2 for line in page.splitlines() if line.startswith("| "))


def test_values_are_plain_and_whole() -> None:
    found = compared(PRICE, TP)
    values = comparison_values(found)
    assert len(values["rows"]) == len(found.rows)
    assert {a["name"] for a in values["alone"][0]} == {"pools.gpu.price", "workloads.chat.serve.parallel.tp"}
    assert values["designs"][1]["name"] == f"{PRICE}, {TP}"
