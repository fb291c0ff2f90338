"""What a budget or a power gives."""

from __future__ import annotations

import datetime

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.plan.fitting.answers import ServingAnswer, answer_serving
from clusterwright.plan.fitting.inverses import nodes_of_power
from clusterwright.plan.fitting.machines import find_machine
from clusterwright.plan.fitting.reading import read_wants
from clusterwright.plan.fitting.trainings import TrainingAnswer, answer_training
from clusterwright.plan.materials import Options, count_materials

TODAY = datetime.date(2026, 6, 30)
TARGETS = {"ttft": "1s", "tpot": "50ms", "in": "1000", "out": "200"}


def serve(machine: str, **options: str) -> ServingAnswer:
    catalogue = load_catalogue()
    decoder = catalogue.find_decoder("llama-3.1-8b")
    assert decoder is not None
    wants = read_wants(TARGETS | options)
    return answer_serving("m", decoder, [find_machine(catalogue, machine)], wants, catalogue, TODAY)


def train(machine: str, **options: str) -> TrainingAnswer:
    catalogue = load_catalogue()
    decoder = catalogue.find_decoder("llama-3.1-8b")
    assert decoder is not None
    wants = read_wants(options, train=True)
    return answer_training("m", decoder, [find_machine(catalogue, machine)], wants, catalogue, TODAY)


@pytest.mark.parametrize("budget", [5_000, 12_345, 60_000])
@pytest.mark.parametrize("survive", ["0", "1"])
def test_a_budget_is_kept_and_one_replica_more_would_not_keep_it(budget: int, survive: str) -> None:
    fit = serve("h100", budget=f"${budget}/month", price="2.5", survive=survive).first
    if fit.best is None:
        assert fit.missed
        return
    monthly = 2.5 * HOURS_PER_MONTH
    each = fit.chosen.charged_gpus / fit.chosen.replicas
    assert fit.chosen.charged_gpus * monthly <= budget * (1 + 1e-9)
    assert (fit.chosen.charged_gpus + each) * monthly > budget


def test_a_larger_budget_never_carries_less() -> None:
    carried = [
        serve("h100", budget=f"${budget}/month", price="2").first.carried_s.value for budget in (10_000, 30_000, 90_000)
    ]
    assert carried == sorted(carried)


def test_a_power_beyond_what_one_fabric_joins_is_said_to_be() -> None:
    within, beyond = (serve("dgx-h100", power=power).first for power in ("50MW", "100GW"))
    assert not [text for text in within.machine.taken if "fabric" in text]
    (told,) = [text for text in beyond.machine.taken if "fabric" in text]
    assert told.startswith(f"{nodes_of_power(beyond.machine, 1e8, read_wants({'power': '100GW'})):,} nodes")


def test_a_power_feeds_working_nodes_spares_and_cooling() -> None:
    machine, wants = find_machine(load_catalogue(), "dgx-h100"), read_wants({"power": "300kW"})
    nodes = nodes_of_power(machine, 300.0, wants)
    assert machine.shape is not None
    bills = [count_materials(machine.shape, nodes=n, options=Options(pue=1.25)).facility_kw for n in (nodes, nodes + 1)]
    assert bills[0] is not None
    assert bills[1] is not None
    assert bills[0] <= 300 < bills[1]
    assert serve("dgx-h100", power="300kW").first.chosen.nodes <= nodes


def test_what_is_missing_for_the_inverse_is_named() -> None:
    assert "--price" in serve("mi300x", budget="$50k/month").first.missed
    assert "power" in serve("mi300x", power="100kW").first.missed
    assert "per month" in serve("h100", budget="$50k").first.missed
    assert not serve("h100", budget="$100/month").holds


def test_a_budget_of_training_buys_tokens() -> None:
    month = train("h100", budget="$40k/month", price="2").first
    assert month.chosen.gpus * 2 * HOURS_PER_MONTH <= 40_000
    once = train("h100", budget="$1M", price="2", gpus="16").first
    assert once.tokens is not None
    assert once.per_mtok is not None
    assert once.tokens / 1e6 * once.per_mtok.value == pytest.approx(1e6)


def test_a_deadline_takes_the_fewest_gpus_that_keep_it() -> None:
    answer = train("h100", tokens="200G", deadline="20d")
    days = answer.first.days
    assert days is not None
    assert days.value <= 20
    assert not train("h100", tokens="1000T", deadline="1d", gpus="8").holds


def test_training_keeps_memory_free_for_the_band() -> None:
    fit = train("h100", gpus="8").first
    assert fit.chosen.fits_surely
