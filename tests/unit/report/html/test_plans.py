"""The plan in the report: bars that add up, every number with its origin, every derivation once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.pages import Node, parse_page
from builders.proofs import assumed, catalogued, declared, example_plan, memory_of
from clusterwright.lib.figures import derive
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.plans import Plan
from clusterwright.plan.results.refusals import Misfit, Unplanned
from clusterwright.report.html.derivations import Derivations
from clusterwright.report.html.plans import render_plan


def shown(plan: Plan | None = None) -> Node:
    return parse_page(render_plan(plan or example_plan()))


def widths(strip: Node) -> list[float]:
    return [float(r.attributes["width"].rstrip("%")) for r in strip.all("rect") if "gap" in r.attributes["class"]]


def strips(page: Node, beginning: str) -> list[Node]:
    return [s for s in page.all("svg") if s.attributes.get("aria-label", "").startswith(beginning)]


def test_memory_bars_are_as_wide_as_their_parts() -> None:
    (bar,) = strips(shown(), "chat:")
    assert widths(bar) == pytest.approx([100 * v / 79.2 for v in (17.6, 4.9, 0.7, 12.3)], abs=0.01)
    (limit,) = bar.all("line", class_="limit")
    assert float(limit.attributes["x1"].rstrip("%")) == pytest.approx(90, abs=0.01)
    assert bar.attributes["aria-label"].endswith("total 35.5 GiB of 71.28 GiB usable; fits")


def test_memory_that_does_not_fit_says_so() -> None:
    plan = example_plan()
    chat, finetune = plan.workloads
    memory = memory_of("chat", (("weights", 141.1),), 0.9)
    page = shown(replace(plan, workloads=(replace(chat, memory=memory), finetune)))
    (bar,) = strips(page, "chat:")
    assert sum(widths(bar)) <= 100
    assert bar.attributes["aria-label"].endswith("does not fit")
    assert "free of what is usable none" in page.text


def test_memory_that_was_not_planned_is_not_drawn() -> None:
    plan = example_plan()
    missing = Unplanned("workloads.chat.memory", "the model is not in the catalogue")
    page = shown(
        replace(plan, workloads=tuple(replace(w, memory=missing) for w in plan.workloads), unplanned=(missing,))
    )
    assert "Memory per GPU" not in page.text
    assert "workloads.chat.memory : the model is not in the catalogue" in page.text


def test_our_bar_is_split_as_the_bill_and_beside_the_alternatives() -> None:
    page = shown()
    (ours,) = [s for s in page.all("svg") if "compute, useful" in s.attributes.get("aria-label", "")]
    (rental,) = strips(page, "on-demand")
    (api,) = strips(page, "api")
    longest = 0.8008
    assert sum(widths(ours)) == pytest.approx(100 * 0.7347 / longest, abs=0.05)
    assert float(rental.one("rect").attributes["width"].rstrip("%")) == pytest.approx(100)
    assert float(api.one("rect").attributes["width"].rstrip("%")) == pytest.approx(100 * 0.6 / longest, abs=0.05)
    assert "reserved: not comparable, no price is declared" in page.text


def test_the_binding_link_is_marked() -> None:
    page = shown()
    chain = next(page.all("ol", class_="chain"))
    (binding,) = chain.all(class_="binding")
    assert binding.text == "Source object 20 GB/s, 7.06 s binding"
    assert [s.one("b").text for s in chain.all(class_="stop")] == [
        "Source object",
        "Network storage",
        "Cache nvme",
        "Replicas",
    ]


def test_what_does_not_hold_comes_first() -> None:
    plan = replace(
        example_plan(), misfits=(Misfit("workloads.chat.memory", "workloads.chat.serve", "82 GiB of 71 GiB"),)
    )
    page = shown(plan)
    assert next(page.all("h3")).text == "What does not hold"
    assert page.one(class_="error").text.startswith("82 GiB of 71 GiB")


def test_every_line_has_value_and_origin() -> None:
    lines = [d for ledger in shown().all(class_="ledger") for d in ledger.children if isinstance(d, Node)]
    assert len(lines) > 40
    for line in lines:
        assert line.one("summary").one(class_="value").text
        assert next(line.one("summary").all(class_="origin")).text in (
            "assumed", "rehearsed", "catalogue", "declared", "measured",
        )  # fmt: skip
        assert next(line.all("ul", class_="tree")).text


def test_nothing_is_shown_without_a_plan() -> None:
    assert render_plan(None) == ""


def test_a_number_shows_the_weakest_origin_that_carries_it() -> None:
    carried = derive(
        "a", "s", "x ÷ y", lambda x, y: x / y, catalogued("x", 3, "GB"), assumed("y", 2, "GB/s", "default")
    )
    page = parse_page(Derivations().line("time", carried))
    assert page.one("summary").text == "time 1.5 s assumed"


def test_each_derivation_is_unfolded_once_and_then_linked() -> None:
    derivations = Derivations()
    rate = derive("rate", "GB/s", "a·b", lambda a, b: a * b, declared("a", 2, ""), declared("b", 3, "GB/s"))
    time = derive("time", "s", "size ÷ rate", lambda s, r: s / r, declared("size", 12, "GB"), rate)
    first = parse_page(derivations.line("time", time))
    again = parse_page(derivations.line("rate", rate))
    assert "= a·b" in first.text
    anchor = next(n for n in first.all("li") if n.text.startswith("rate = 6 GB/s")).attributes["id"]
    assert again.one("a").attributes["href"] == f"#{anchor}"
    assert "= a·b" not in again.text


def test_figures_of_one_name_and_other_value_are_not_taken_for_each_other() -> None:
    derivations = Derivations()
    for value in (2, 3):
        doubled = derive("x", "s", "2·a", lambda a: 2 * a, declared("a", value, "s"))
        assert f"a = {value} s" in parse_page(derivations.line("x", doubled)).text


def test_a_plan_of_nothing_shows_nothing() -> None:
    plan = replace(
        example_plan(),
        workloads=(),
        network=type(example_plan().network)(),
        payload_rate=None,
        economics=Unplanned("economics", "nothing is declared"),
        unplanned=(),
        limits=(),
    )
    assert render_plan(plan) == ""


def test_notes_of_the_budget_are_shown() -> None:
    memory = example_plan().workloads[0].memory
    assert isinstance(memory, MemoryPlan)
    assert memory.notes[0] in shown().text
