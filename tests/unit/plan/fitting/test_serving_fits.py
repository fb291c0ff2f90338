"""Answers about inference: bands, ranks, effects, what to change."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.serving.constants import NAMES
from clusterwright.plan.fitting.alternatives import alternatives
from clusterwright.plan.fitting.answers import ServingAnswer, answer_serving
from clusterwright.plan.fitting.bands import speed_basis
from clusterwright.plan.fitting.bills import bill_of
from clusterwright.plan.fitting.carrying import all_parts, all_parts_at_peak, carried
from clusterwright.plan.fitting.commands import before, command_of, stored_format
from clusterwright.plan.fitting.machines import find_machine
from clusterwright.plan.fitting.reading import read_wants
from clusterwright.plan.fitting.serving import context_of
from clusterwright.report.fits import basis_lines

CHAT = {"rate": "5", "in": "1000", "out": "200", "ttft": "1s", "tpot": "50ms"}
TODAY = datetime.date(2026, 6, 30)


def ask(model: str, machines: str, **options: str) -> ServingAnswer:
    catalogue = load_catalogue()
    decoder = catalogue.find_decoder(model)
    assert decoder is not None
    found = [find_machine(catalogue, name) for name in machines.split(",")]
    wants = read_wants({name.replace("_", "-"): text for name, text in options.items()})
    return answer_serving(model, decoder, found, wants, catalogue, TODAY)


def test_machines_that_hold_come_first_and_cheapest_first() -> None:
    answer = ask("llama-3.1-8b", "t4,h100,l4", **CHAT, price="t4=0.2,h100=2,l4=0.6")
    holding = [fit for fit in answer.fits if fit.verdict == "holds"]
    costs = [fit.per_mtok_out.value for fit in holding if fit.per_mtok_out]
    assert answer.holds
    assert costs == sorted(costs)
    assert [fit.verdict == "holds" for fit in answer.fits] == sorted(
        (fit.verdict == "holds" for fit in answer.fits), reverse=True
    )


def test_bands_hold_the_figure_and_open_with_the_error() -> None:
    fit = ask("llama-3.1-8b", "h100", **CHAT, price="2").first
    for band in (fit.ttft_s, fit.tpot_s, fit.requests_s, fit.replicas, fit.gpus, fit.nodes, fit.context, fit.places):
        assert band.low is None or band.low <= band.value
        assert band.high is None or band.high >= band.value
    assert fit.fast > 1 > fit.slow


def test_the_band_is_that_of_measurements_held_out_and_of_a_new_model_where_none_was_fitted() -> None:
    catalogue = load_catalogue()
    (found,) = (c for c in catalogue.calibrations() if (c.engine, c.gpu) == ("vllm", "h100-sxm-80"))
    fitted, new = found.fit.band("fitted"), found.fit.band("new")
    assert fitted is not None
    assert new is not None
    for model, bands in (("qwen3-32b", fitted), ("llama-3.1-8b", new)):
        fit = ask(model, "h100", **CHAT).first
        assert bands.ttft is not None
        assert bands.tpot is not None
        assert (fit.basis.ttft, fit.basis.tpot) == (
            (bands.ttft.low, bands.ttft.high),
            (bands.tpot.low, bands.tpot.high),
        )
        assert fit.ttft_s.low == pytest.approx(fit.chosen.ttft_s * bands.ttft.low)
        assert fit.ttft_s.high == pytest.approx(fit.chosen.ttft_s * bands.ttft.high)
        assert "nine of ten measurements" in fit.basis.said


def test_a_replica_is_never_said_to_carry_more_than_the_peaks_allow() -> None:
    fit = ask("llama-3.1-8b", "h100", **CHAT).first
    held, question, layout = fit.constants, fit.question, fit.chosen.layout
    peaks = {name: 1.0 for name in NAMES if name.endswith("_share")}
    at_peak = carried(question, replace(held, **peaks), layout, [all_parts(1.0)])[0]
    impossible, bounded = carried(question, held, layout, [all_parts(0.05), all_parts_at_peak(0.05, held)])
    assert impossible > at_peak
    assert fit.chosen.requests_s < bounded
    slowest = carried(question, held, layout, [all_parts_at_peak(0.99, held)])[0]
    assert slowest == pytest.approx(carried(question, held, layout, [all_parts(0.99)])[0])


def test_a_calibration_without_bands_has_its_mean_error_both_ways() -> None:
    (found,) = (c for c in load_catalogue().calibrations() if (c.engine, c.gpu) == ("vllm", "h100-sxm-80"))
    bare = replace(found, fit=replace(found.fit, bands=(), ttft_error=0.5, tpot_error=0.25))
    basis = speed_basis(bare, None, "vllm", "h100-sxm-80", "Qwen/Qwen3-32B", {})
    assert basis.ttft == (1 / 1.5, 1.5)
    assert basis.tpot == (0.8, 1.25)
    assert basis.said == "mean error 50% of TTFT, 25% of TPOT"


def test_the_figure_is_what_the_search_found() -> None:
    fit = ask("llama-3.1-8b", "h100", **CHAT).first
    assert carried(fit.question, fit.constants, fit.chosen.layout, [{}])[0] == pytest.approx(fit.chosen.requests_s)


def test_a_replica_lost_with_its_node_is_replaced() -> None:
    plain, safe = (ask("llama-3.1-8b", "h100", **CHAT, survive=n).first.chosen for n in ("0", "1"))
    assert safe.needed == plain.needed
    assert (safe.replicas, safe.nodes) == (2, 2)  # one on each of two nodes, not a second node full of them


def test_money_per_token_counts_the_declared_utilisation() -> None:
    full = ask("llama-3.1-8b", "h100", **CHAT, price="2").first.per_mtok_out
    half = ask("llama-3.1-8b", "h100", **CHAT, price="2", utilisation="50%").first.per_mtok_out
    assert full is not None
    assert half is not None
    assert half.value == pytest.approx(2 * full.value)


def test_effects_are_ranked_and_move_the_right_way() -> None:
    found = ask("llama-3.1-8b", "h100", **CHAT).effects
    assert [e.size for e in found] == sorted((e.size for e in found), reverse=True)
    assert all(e.low < 1 < e.high for e in found if e.name != "tokens that the KV cache holds")


def test_a_model_that_is_too_big_says_by_how_much_and_what_helps() -> None:
    answer = ask("llama-3.3-70b", "2xh100", gpus="2", **CHAT)
    assert not answer.holds
    assert answer.first.missed
    assert any("fp8" in remedy.what or "int4" in remedy.what for remedy in answer.remedies)


def test_the_widest_layout_of_a_model_that_fits_nowhere_says_what_is_missing() -> None:
    for machines, count in (("2xl40s", "2 GPUs: "), ("1xl40s", "1 GPU: ")):
        answer = ask("llama-3.3-70b", machines, gpus=machines[0], **CHAT)
        assert answer.first.verdict == "too big"
        assert answer.first.missed.startswith(count)


def test_a_target_that_is_out_of_reach_names_the_one_that_is_not() -> None:
    answer = ask("llama-3.3-70b", "h100", **{**CHAT, "tpot": "2ms"})
    assert answer.first.verdict == "late"
    assert "per token with no other load" in answer.first.missed
    assert any("looser" in remedy.what for remedy in answer.remedies)


def test_questions_that_were_answered_are_not_asked() -> None:
    asked = {a.option for a in ask("llama-3.1-8b", "h100", **CHAT).asked}
    told = {
        a.option
        for a in ask(
            "llama-3.1-8b", "h100", **CHAT, in_p95="3000", out_p95="500", price="2", survive="1", reuse="10%"
        ).asked
    }
    assert {"--in-p95 --out-p95, or --trace", "--price", "--survive", "--reuse"} <= asked
    assert not {"--in-p95 --out-p95, or --trace", "--price", "--survive", "--reuse"} & told


def test_a_lost_node_is_not_asked_about_where_a_limit_is_filled_for_latency() -> None:
    first, filled = (
        {a.option: a.why for a in ask("llama-3.1-8b", "h100", **{**CHAT, **more}).asked}
        for more in ({}, {"gpus": "64", "goal": "latency"})
    )
    assert "one takes" in first["--survive"]
    assert "--survive" not in filled


def test_an_old_price_is_marked_and_a_missing_one_is_no_money() -> None:
    fits = {fit.machine.asked: fit for fit in ask("llama-3.1-8b", "h100,mi300x", **CHAT).fits}
    price = fits["h100"].price
    assert price is not None
    assert (price.origin, price.stale, price.age_days) == ("catalogue", False, 30)
    assert fits["mi300x"].price is None
    assert fits["mi300x"].per_h is None


def test_the_context_leaves_room_for_requests_that_are_not_average() -> None:
    decoder = load_catalogue().find_decoder("llama-3.1-8b")
    assert decoder is not None
    assert context_of(decoder, read_wants({"in": "2000", "out": "300"}).serving) == 8192
    assert context_of(decoder, read_wants({"in": "20k", "out": "1k"}).serving) == 65536
    assert context_of(decoder, read_wants({"context": "4k"}).serving) == 4096
    assert context_of(decoder, read_wants({"in": "120k", "out": "1k"}).serving) == decoder.max_context


@pytest.mark.parametrize("machine", ["h100", "l40s"])
def test_more_load_and_tighter_targets_never_take_fewer_gpus(machine: str) -> None:
    loads = [ask("llama-3.1-8b", machine, **{**CHAT, "rate": rate}).first for rate in ("5", "50", "500")]
    tight = [ask("llama-3.1-8b", machine, **{**CHAT, "tpot": tpot}).first for tpot in ("80ms", "40ms", "20ms")]
    for fits in (loads, tight):
        costs = [fit.chosen.charged_gpus if fit.best else float("inf") for fit in fits]
        assert costs == sorted(costs)


def test_a_shorter_context_never_holds_fewer_at_once() -> None:
    fits = [ask("llama-3.1-8b", "h100", **CHAT, context=size).first for size in ("4k", "16k", "64k")]
    places = [fit.places.value for fit in fits if fit.chosen.layout == fits[0].chosen.layout]
    assert places == sorted(places, reverse=True)


def test_a_customer_is_told_no_published_price_and_no_doubts() -> None:
    catalogue = load_catalogue()
    decoder = catalogue.find_decoder("llama-3.1-8b")
    assert decoder is not None
    machines = [find_machine(catalogue, name) for name in ("h100", "h200")]
    answer = answer_serving("m", decoder, machines, read_wants(CHAT), catalogue, TODAY, "customer")
    assert all(fit.price is None for fit in answer.fits)
    assert (answer.effects, answer.lost, answer.close) == ((), (), ())
    assert not {"--price", "cw calibrate"} & {a.option for a in answer.asked}


@pytest.mark.parametrize(
    ("weights", "flag", "first"), [("fp8", True, False), ("int4", False, True), ("bf16", False, False)]
)
def test_the_command_realises_the_format_or_says_what_must_come_first(weights: str, flag: bool, first: bool) -> None:
    fit = ask("llama-3.1-8b", "h100", **CHAT, weights=weights).first
    assert stored_format(fit.question.decoder) == "bf16"
    assert (command_of(fit)[-2:] == ("--quantization", "fp8")) is flag
    assert bool(before(fit)) is first


def test_the_bill_counts_the_nodes_of_the_answer_and_whole_racks_of_a_domain() -> None:
    answer = ask("llama-3.1-8b", "dgx-h100", **{**CHAT, "rate": "500"})
    bill = bill_of(answer.first, answer.wants)
    assert bill is not None
    assert bill.nodes == answer.first.chosen.nodes
    assert bill.spares > 0
    racks = ask("llama-3.1-8b", "gb200-nvl72", **CHAT)
    rack = bill_of(racks.first, racks.wants)
    assert rack is not None
    assert (rack.nodes, rack.gpus, rack.node_racks, rack.spares) == (18, 72, 1, 0)
    nothing = ask("llama-3.3-70b", "2xh100", gpus="1", **CHAT)
    assert bill_of(nothing.first, nothing.wants) is None


def test_alternatives_are_dated_and_compared_at_the_same_work() -> None:
    fit = ask("llama-3.3-70b", "h100", **CHAT, price="3").first
    found = alternatives(fit, load_catalogue(), datetime.date(2026, 11, 30), fit.question.decoder.name)
    assert [a.low + a.high for a in found] == sorted(a.low + a.high for a in found)
    rents = [a for a in found if a.what.startswith("rent")]
    apis = [a for a in found if a.what.startswith("API")]
    assert all(a.stale and a.dated < "2026-09-01" for a in rents)
    assert apis
    assert fit.per_h is not None
    assert all(a.ratio == pytest.approx((a.low + a.high) / 2 / fit.per_h.value) for a in found)


def test_what_lies_outside_the_runs_is_said_in_numbers_that_people_read() -> None:
    beyond = ask("deepseek-v3", "gb200-nvl72", rate="50", ttft="2s", tpot="50ms").first.basis.beyond
    assert beyond
    assert all(not re.search(r"\d\.\d{3}|e\+", text) for text in beyond)


def test_nodes_that_replicas_do_not_fill_are_said_with_what_whole_nodes_cost() -> None:
    answer = ask("llama-3.3-70b", "h100", rate="50", ttft="1s", tpot="50ms", price="3")
    fit = answer.first
    assert fit.chosen.charged_gpus < fit.chosen.nodes * 8
    (said,) = [line for line in basis_lines(answer, internal=True) if "money counts" in line]
    assert f"{fit.chosen.charged_gpus:.0f} of the {fit.chosen.nodes * 8}" in said
    assert f"${fit.chosen.nodes * 24}/h" in said
    full = ask("llama-3.1-405b", "h100", rate="1", price="3")
    assert full.first.chosen.charged_gpus == full.first.chosen.nodes * 8
    assert not [line for line in basis_lines(full, internal=True) if "money counts" in line]


def test_an_engine_of_one_vendor_is_refused_on_gpus_of_another_and_nothing_is_advised() -> None:
    answer = ask("llama-3.1-8b", "mi300x", engine="tensorrt-llm", rate="5")
    assert answer.first.verdict == "impossible"
    assert "NVIDIA alone" in answer.first.missed
    assert not answer.remedies
    mixed = ask("llama-3.1-8b", "mi300x,h100", engine="tensorrt-llm", rate="5")
    assert [(fit.machine.asked, fit.verdict) for fit in mixed.fits] == [("h100", "holds"), ("mi300x", "impossible")]
    power = ask("llama-3.1-8b", "mi300x", engine="tensorrt-llm", budget="$50k/month", price="2")
    assert power.first.verdict == "impossible"
    assert ask("llama-3.1-8b", "mi300x", engine="vllm", rate="5").holds


def test_a_gpu_that_builds_of_an_engine_left_out_is_refused_with_the_release_that_still_runs_there() -> None:
    refused = ask("qwen3-8b", "v100")
    assert refused.first.verdict == "impossible"
    assert "vllm 0.19 runs on it" in refused.first.missed
    assert not refused.remedies
    assert ask("qwen3-8b", "v100", engine="vllm 0.19").holds
    assert ask("qwen3-8b", "t4").holds
