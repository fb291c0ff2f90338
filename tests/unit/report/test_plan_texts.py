import datetime
import json

import pytest

from builders.plans import planned
from clusterwright.lib.figures import Figure, Origin, leaf
from clusterwright.plan.ages import Aged
from clusterwright.report.plan_figures import ALIASES, derivation_values, find_figure, plan_values, render_derivation
from clusterwright.report.plan_words import show
from clusterwright.report.plans import render_plan

PLAN = planned()


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (32 / 3, "GB/s", "10.7 GB/sᵈ"),
        (71.19, "GiB", "71.2 GiBᵈ"),
        (636688, "tokens", "636,688 tokensᵈ"),
        (0.45, "share", "45 %ᵈ"),
        (0.9996, "share", "99.96 %ᵈ"),
        (0.05, "s", "50 msᵈ"),
        (90, "s", "90 sᵈ"),
        (1800, "s", "30 minᵈ"),
        (float("inf"), "s", "∞ sᵈ"),
        (44746.2, "$/month", "$44,746/monthᵈ"),
    ],
)
def test_numbers_as_people_say_them(value, unit, said):
    assert show(leaf("x", value, unit, Origin.DECLARED, "a file")) == said


def test_what_holds_is_said_first_and_every_number_carries_its_origin():
    text = render_plan(PLAN)
    assert text.splitlines()[0] == "test: everything planned holds"
    carried = PLAN.workload("chat").service.replica_rate
    assert f"8 req/sᵈ; one replica carries {show(carried)} (×0.8 to ×1.25)" in " ".join(text.split())
    assert "without gpu-1 1 replica runs on, 1 carries the load" in text
    assert text.rstrip().endswith("--explain NAME shows any tree.")


def test_what_a_collective_is_expected_to_reach_is_said_with_its_band():
    found = next(c for c in PLAN.network.collectives if (c.operation, c.nodes) == ("all-reduce", 1))
    low, high = found.expected.band
    said = f"{show(found.expected)} (×{low:.3g} to ×{high:.3g}) expected of 1 GiB"
    assert said in " ".join(render_plan(PLAN).split())


def test_a_misfit_stands_before_everything_else():
    lines = render_plan(planned("workloads.chat.serve.rate=16 req/s")).splitlines()
    assert lines[0].startswith("test: 1 thing does not hold")
    assert lines[2] == "does not hold"
    assert "workloads.chat.service.losses" in lines[3]


@pytest.mark.parametrize(
    ("changed", "slowest"),
    [((), "store"), (("fabric.networks.eth.rate=10 Gb/s", "fabric.networks.eth.ports=1"), "network")],
)
def test_a_checkpoint_names_the_link_that_is_slowest(changed, slowest):
    plan = planned(*changed)
    found = plan.workload("finetune").checkpoint
    assert found.write_binding == slowest
    text = " ".join(render_plan(plan).split())
    assert f"write {show(found.write_time)} (slowest: {slowest})" in text


def test_gaps_name_what_to_state():
    text = render_plan(planned("storage.stores.object.read="))
    assert "(state storage.stores.object.read)" in " ".join(text.split())


def test_no_line_is_wider_than_a_terminal():
    assert max(map(len, render_plan(PLAN).splitlines())) <= 120


def test_what_a_latency_is_and_proves_is_said():
    text = render_plan(PLAN)
    assert "TTFT p95 " in text
    assert "(ttft_p95)" in text
    assert "of 50 msᵈ (tpot_p95)" in text
    missed = render_plan(planned("workloads.chat.target.ttft_p95=100 ms"))
    assert "of 0.1 sᵈ (ttft_p95) MISSED" in missed
    assert "at no rate does one replica meet its latency targets" in missed
    assert "carries 0 req/s" not in missed


def test_both_unit_costs_stand_side_by_side():
    text = " ".join(render_plan(PLAN).split())
    assert "at the declared useful share" in text
    assert "at the useful share of the declared load compared at the useful share of the declared load (" in text


def test_a_share_above_one_is_never_even():
    text = render_plan(
        planned("economics.alternatives.api={kind: model-api, input_price: $0.1/Mtok, output_price: $0.1/Mtok}")
    )
    assert "(ours never costs less, at " in " ".join(text.split())


def test_bands_are_not_rounded_to_better_ones():
    assert "(×0.67 to ×1.5)" in render_plan(PLAN)
    assert "(×0.278 to ×1)" in render_plan(PLAN)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_lines_keep_to_the_terminal(width):
    lines = render_plan(PLAN, width).splitlines()
    assert not [line for line in lines if len(line) > width and len(line.split()) > 1]
    assert render_plan(PLAN, 10) == render_plan(PLAN, 60)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("busbw", "network.gpu.2_nodes.all-reduce.bound"),
        ("kv", "workloads.chat.memory.kv_pool"),
        ("latency", "workloads.chat.service.ttft"),
        ("speed", "workloads.finetune.training.tokens_per_s"),
        ("loss", "workloads.chat.service.capacity_after_1_lost"),
    ],
)
def test_words_that_the_plan_prints_lead_to_figures(said, meant):
    found = find_figure(PLAN, said)
    assert meant in found
    assert len(found) <= 6


def test_every_alias_leads_somewhere():
    assert all(find_figure(PLAN, word) for word in ALIASES)


def test_a_derivation_as_values():
    values = json.loads(json.dumps(derivation_values(PLAN.figures["workloads.chat.service.replica_rate"])))
    assert values["name"] == "workloads.chat.service.replica_rate"
    assert values["band"] == [0.8, 1.25]
    batch = next(i for i in values["inputs"] if i["name"] == "workloads.chat.service.batch")
    assert batch["inputs"]
    step = next(i for i in values["inputs"] if i["name"] == "workloads.chat.service.step")
    again = next(i for i in step["inputs"][0]["inputs"] if i["name"] == "workloads.chat.service.batch")
    assert again["see_above"]
    assert again["inputs"] == []
    assert values["changes_with_10_percent"][0]["effect"] > 0


def test_the_tree_begins_with_what_the_figure_is_made_of():
    lines = render_derivation(PLAN.figures["workloads.chat.service.replica_rate"]).splitlines()
    assert lines[1].startswith("  from batch ")
    assert "; step " in lines[1]


def test_a_figure_is_found_by_name_or_unique_ending():
    exact = find_figure(PLAN, "workloads.chat.service.tpot")
    assert find_figure(PLAN, "service.tpot") is exact
    assert isinstance(exact, Figure)


def test_a_wrong_name_gives_the_nearest():
    assert find_figure(PLAN, "workloads.chat.service.tpott")[0] == "workloads.chat.service.tpot"
    many = find_figure(PLAN, "cold_start")
    assert {"workloads.chat.payload_plan.cold_start", "workloads.chat.target.cold_start"} <= set(many)
    assert find_figure(PLAN, "zzzzzz") == ()


def test_a_derivation_shows_formula_source_and_what_moves_it():
    text = render_derivation(PLAN.figures["workloads.chat.payload_plan.required_rate"])
    assert "bytes of all concurrent readers ÷ allowed time" in text
    assert "cluster.yaml:" in text
    assert "changes most with" in text
    assert "workloads.chat.payload.within" in text.partition("changes most with")[2]


def test_json_is_plain_and_complete():
    values = json.loads(json.dumps(plan_values(PLAN), allow_nan=False))
    assert values["fits"] is True
    assert values["workloads"][0]["service"]["rate"] == {
        "name": "workloads.chat.serve.rate",
        "value": 8.0,
        "unit": "req/s",
        "origin": "declared",
    }
    figure = values["figures"]["workloads.chat.service.tpot"]
    assert figure["band"] == [0.8, 1.25]
    assert "workloads.chat.service.places" in figure["inputs"]


def test_what_is_older_than_its_shelf_life_is_told():
    old = Aged("published.mfu.x", "calibration", datetime.date(2024, 12, 28), 702, 365, "a release moves it")
    text = " ".join(render_plan(PLAN, aged=(old,)).split())
    assert "older than its shelf life published.mfu.x: 702 days old (2024-12-28), a calibration is good for 365" in text
    assert "older than its shelf life" not in render_plan(PLAN)


def test_what_moves_a_unit_cost_is_in_the_text_and_the_values():
    assert "moved most by: " in " ".join(render_plan(PLAN).split())
    (chat,) = [u for u in plan_values(PLAN)["economics"]["units"] if u["workload"] == "chat"]
    assert chat["swings"][0].keys() == {"name", "low_input", "high_input", "low", "high"}


def test_published_prices_and_spares_stand_with_their_days_and_probabilities():
    text = " ".join(render_plan(PLAN).split())
    assert "at published prices, compute alone: rental " in text
    assert "needed with a node back after 1 dayᵃ: 0ᵃ at 95.0%, 1ᵃ at 99.0%" in text
