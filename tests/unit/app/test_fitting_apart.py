"""`cw fit --disaggregated`: prefill and decode on workers of their own beside whole replicas."""

from __future__ import annotations

import datetime

from clusterwright.app.fitting import FitRequest, describe_fit, fit
from clusterwright.app.fitting_forms import more_of, values_of_fit

CHAT = {"rate": "50", "in": "4000", "out": "300", "ttft": "2s", "tpot": "30ms", "price": "$2.40"}


def asked(*machines, **changed):
    options = {name: text for name, text in {**CHAT, **changed}.items() if text is not None}
    request = FitRequest("meta-llama/Llama-3.3-70B-Instruct", machines, datetime.date(2026, 11, 30), options)
    answer = fit(request)
    return answer, more_of(answer, request, bill=False, elsewhere=False, apart=True)


def test_every_machine_has_a_row_or_a_reason():
    answer, more = asked("h100", "l40s")
    by_name = {each.machine: each for each in more.apart}
    split = by_name["h100"].split
    assert split.ttft_s <= 2.0
    assert split.tpot_s <= 0.030
    assert split.gpus == split.prefill_workers * split.prefill.gpus + split.decode_workers * split.decode.gpus
    assert by_name["h100"].gpus_ratio == split.charged_gpus / by_name["h100"].whole_gpus
    assert "--nic" in by_name["l40s"].why
    page = describe_fit(answer, 160, more.blocks)
    assert "Prefill and decode on workers of their own" in page
    assert "l40s: no network hands caches over" in page
    values = values_of_fit(answer, more)["disaggregated"]
    assert values[0]["split"]["requests_s"] == 50.0


def test_a_number_in_flight_is_not_split():
    _, more = asked("h100", rate=None, concurrency="64")
    assert "state --rate" in more.apart[0].why


def test_a_slower_network_hands_over_later():
    fast, slow = (asked("h100", nic=nic)[1].apart[0].split for nic in ("400Gb/s", "100Gb/s"))
    assert slow.handover_s > fast.handover_s
