"""Prefill and decode on workers of their own, in a file."""

from __future__ import annotations

from functools import cache

import pytest

from builders.plans import document
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.files.catalogue import load_catalogue
from clusterwright.judging.expecting import expect_jobs
from clusterwright.plan.headlines import headlines_of
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.report.html.plans import render_plan as render_page
from clusterwright.report.plan_figures import plan_values
from clusterwright.report.plans import render_plan

TEXT = """
apiVersion: clusterwright/v1alpha1
cluster: c
pools: {gpu: {nodes: "n-[1-8]", shape: hgx-h200-sxm-8, price: $3.40/GPU-h}}
fabric: {networks: {ib: {kind: infiniband, roles: [compute], rate: 400 Gb/s, ports: 8, oversubscription: 1}}}
workloads:
  chat:
    model: meta-llama/Llama-3.3-70B-Instruct
    serve: {engine: vllm 0.11, precision: fp8, in: 4000 tokens, out: 300 tokens, in_p95: 9000 tokens, rate: 12 req/s,
      disaggregated: {prefill: {parallel: {tp: 4}}, decode: {parallel: {tp: 2}}}}
    target: {ttft_p95: 2 s, tpot_p95: 30 ms, survive: 1 node}
economics: {utilisation: 50%, utilisation_means: useful, denominator: Mtok}
"""
SPLIT = "workloads.chat.serve.disaggregated"


@cache
def shipped() -> Catalogue:
    """The catalogue that every installation has."""
    return load_catalogue()


@cache
def planned(*changes: str):
    return plan_architecture(document(TEXT, *changes), shipped())


def service(*changes: str):
    return planned(*changes).workload("chat").service


def test_both_halves_carry_the_load_within_their_targets():
    found = service()
    assert planned().misfits == ()
    assert str(found.split.prefill.layout) == "TP4"
    assert str(found.split.decode.layout) == "TP2"
    for half in (found.split.prefill, found.split.decode):
        assert half.needed == -(-12 // half.rate.value)
        assert half.placed == half.wanted >= half.needed
    assert found.ttft.value <= 2.0
    assert found.tpot.value <= 30.0
    assert found.capacity.value >= 12.0


def test_all_workers_have_gpus_of_their_own_and_are_paid_for():
    plan = planned()
    chat, split = plan.workload("chat"), service().split
    taken = [(a.node, gpu) for a in chat.placement for gpu in a.gpus]
    assert len(taken) == len(set(taken)) == split.gpus
    assert (
        len({a.replica for a in chat.placement}) == chat.replicas_wanted == split.prefill.wanted + split.decode.wanted
    )
    assert split.gpus == 4 * split.prefill.wanted + 2 * split.decode.wanted
    assert split.per_h.value == pytest.approx(3.40 * split.gpus)
    assert split.per_mtok.value == pytest.approx(3.40 * split.gpus / (12 * 300 * 3600 / 1e6))
    share = split.decode.rate.value / split.prefill.rate.value
    assert service().rate_gpus == pytest.approx(2 + 4 * share)
    assert plan.figures["workloads.chat.busy_gpus"].value == pytest.approx(
        12 / split.decode.rate.value * service().rate_gpus
    )


def test_the_handover_is_the_cache_of_a_prompt_over_a_nic():
    plan = planned()
    each = 2 * 80 * 8 * 128 * 2 / 2  # keys and values, layers, heads, width, 16 bit, over two decode ranks
    assert plan.figures["workloads.chat.service.handed"].value == pytest.approx(4000 * each / 1e6)
    slow = planned("fabric.networks.ib.rate=100 Gb/s")
    beside = next(f.value for name, f in plan.figures.items() if name.endswith("handover_ms")) / 1e3
    fast_s, slow_s = (p.workload("chat").service.split.handover.value for p in (plan, slow))
    assert slow_s - beside == pytest.approx(4 * (fast_s - beside))
    six = f"{SPLIT}.prefill.workers=6"
    assert service("fabric.networks.ib.rate=100 Gb/s", six).ttft.value > service(six).ttft.value


def test_what_the_file_leaves_open_is_searched():
    open_ = service(f"{SPLIT}=true")
    half = service(f"{SPLIT}={{decode: {{parallel: {{tp: 8}}}}}}")
    assert str(half.split.decode.layout) == "TP8"
    assert open_.split.gpus <= min(service().split.gpus, half.split.gpus)
    assert service(f"{SPLIT}=false").split is None


def test_fewer_workers_than_the_load_needs_do_not_hold():
    few = planned(f"{SPLIT}.prefill.workers=1")
    assert few.workload("chat").service.capacity.value < 12
    assert any(m.path == f"{SPLIT}" and "workers carry" in m.message for m in few.misfits)


def test_losses_are_those_of_each_half():
    reasons = [loss.reason for loss in service().losses]
    assert any(r.startswith("prefill workers without") for r in reasons)
    assert any(r.startswith("decode workers without") for r in reasons)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("fabric=", "no network hands caches"),
        (f"{SPLIT}.prefill.parallel={{tp: 16}}", "leaves the domain"),
        ("workloads.chat.target.ttft_p95=1 ms", "at no rate"),
    ],
)
def test_what_cannot_be_is_said(change, reason):
    plan = planned(change)
    said = [m.message for m in plan.misfits] + [u.reason for u in plan.unplanned]
    assert any(reason in text for text in said)
    if "network" in reason:
        assert isinstance(plan.workload("chat").service, Unplanned)


def test_a_layout_of_whole_replicas_beside_it_does_not_hold():
    plan = planned("workloads.chat.serve.parallel={tp: 4}")
    assert any("under disaggregated" in m.message for m in plan.misfits)


def test_the_curve_is_of_all_workers_and_reports_say_all():
    curve = service().curve
    assert curve.gpus == service().split.gpus
    assert curve.points[0].ttft_s < curve.points[-1].ttft_s
    text = " ".join(render_plan(planned()).split())
    assert "prefill TP4, decode TP2 on n-1" in text
    assert "workers of TP4, each carries" in text
    assert "of a mean prompt's cache" in text
    values = plan_values(planned())["workloads"][0]["service"]["split"]
    assert values["prefill"]["layout"]["tp"] == 4


def test_with_speculation_only_decode_workers_draft():
    changes = (
        "workloads.chat.model=deepseek-ai/DeepSeek-V3", f"{SPLIT}={{prefill: {{parallel: {{tp: 8}}}}, decode: "
        "{parallel: {tp: 8}}}", "workloads.chat.serve.speculation={method: mtp, tokens: 1, acceptance: 80%}",
    )  # fmt: skip
    drafted, plain = service(*changes), service(*changes[:2])
    assert drafted.split.prefill.rate.value == pytest.approx(plain.split.prefill.rate.value, rel=0.05)
    assert drafted.split.decode.rate.value > plain.split.decode.rate.value


def test_what_is_expected_to_run_counts_both_halves():
    plan = planned("pools.gpu.nodes=n-[1-3]")
    chat = plan.workload("chat")
    assert chat.wanted_gpus == chat.service.split.gpus > 24
    expected = expect_jobs(document(TEXT, "pools.gpu.nodes=n-[1-3]").architecture, plan)
    (missing,) = expected.missing
    assert missing.ranks == chat.wanted_gpus - sum(len(a.gpus) for a in chat.placement)
    whole = planned()
    assert len(expect_jobs(document(TEXT).architecture, whole).jobs) == whole.workload("chat").replicas_wanted


def test_the_page_of_a_split_shows_both_halves_and_their_curve():
    page = str(render_page(planned()))
    assert "decode workers carries (TP2)" in page
    assert "all prefill and decode workers" in page


def test_a_decode_worker_is_not_compared_with_a_whole_replica():
    whole = (f"{SPLIT}=", "workloads.chat.serve.parallel={tp: 4}")

    def rows(*changes: str) -> dict[str, object]:
        found = headlines_of(document(TEXT, *changes), shipped(), planned(*changes))
        return {h.key[1]: h.value for h in found if h.key[0] == "chat"}

    apart, together = rows(), rows(*whole)
    assert "rate of a decode worker" in set(apart) - set(together)
    assert "rate of a replica" in set(together) - set(apart)
    assert apart["decode workers for the load"].unit == "workers"
    assert apart["layout"] == "prefill TP4, decode TP2"
