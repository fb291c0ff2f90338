"""Options as text."""

from __future__ import annotations

import pytest

from clusterwright.lib.errors import InvalidInput
from clusterwright.plan.fitting.amounts import context as read_context
from clusterwright.plan.fitting.amounts import hour_price, money, prices, rate, tokens, trained
from clusterwright.plan.fitting.reading import quantile, read_wants


def test_values_are_read_with_their_units() -> None:
    wants = read_wants(
        {"rate": "50", "in": "2k", "out": "300", "ttft": "1s", "tpot": "50ms", "context": "32k", "engine": "vllm 0.11"}
    )
    own = wants.serving
    assert (own.rate, own.mean_in, own.mean_out, own.ttft_s, own.tpot_s) == (50, 2000, 300, 1, 0.05)
    assert (own.context, own.engine, own.version, own.quantile) == (32768, "vllm", (0, 11), 0.95)
    assert wants.origin("rate") == "stated"
    assert wants.origin("survive") == "assumed"


def test_numbers_as_people_write_them() -> None:
    assert rate("3000/min") == 50
    assert rate("20 req/s") == 20
    assert (tokens("2k"), trained("1T")) == (2000, 1e12)
    assert read_context("128k") == 131072
    assert quantile("p99") == 0.99
    assert quantile("mean") is None
    assert hour_price("$2.40") == (2.4, "USD")
    assert hour_price("€2.40/GPU-h") == (pytest.approx(2.4), "EUR")
    assert (money("$50k/month").value, money("$50k/month").monthly) == (50000, True)
    assert money("€600000/year").value == pytest.approx(50000)
    assert not money("$2M").monthly
    assert dict(prices("h100=2.4,h200=$3.1").values) == {"h100": (2.4, "USD"), "h200": (3.1, "USD")}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ttft": "1"}, "--ttft: '1' has no unit"),
        ({"rate": "0"}, "from 0.000001 to"),
        ({"rate": "fast"}, "not a number"),
        ({"rate": "5", "concurrency": "5"}, "at once"),
        ({"in": "2000", "in-p95": "1000"}, "below the mean"),
        ({"engine": "vlm"}, "did you mean"),
        ({"engine": "vllm new"}, "no version"),
        ({"engine": "vllm 0." + "9" * 5000}, "no version"),
        ({"engine": "vllm ٠.١١"}, "no version"),
        ({"weights": "fp9"}, "none of bf16"),
        ({"at": "p5"}, "no percentile from p50 to p99.9"),
        ({"survive": "1.5"}, "not a whole number"),
        ({"price": "=3"}, "names no GPU"),
        ({"price": "$2.40/MWh"}, "GPU-h"),
        ({"budget": "50k"}, "no amount of money"),
        ({"budget": "$50k/fortnight"}, "no period"),
        ({"budget": "$50k/month", "rate": "5"}, "a load at once"),
        ({"tokens": "1T"}, "add --train"),
        ({"rats": "5"}, "no option 'rats'"),
        ({"in": "9e99"}, "out of range"),
    ],
)
def test_what_is_wrong_is_named_with_its_option(options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_wants(options)
    assert says in str(caught.value)


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_wants({"rate": "x", "ttft": "1", "kv": "fp3"})
    assert len(caught.value.problems) == 3


def test_a_profile_gives_what_options_do_not_say() -> None:
    wants = read_wants({"engine": "sglang"}, defaults={"engine": "vllm 0.11", "survive": "1"})
    assert (wants.serving.engine, wants.serving.version, wants.serving.survive_nodes) == ("sglang", None, 1)
    assert (wants.origin("engine"), wants.origin("survive")) == ("stated", "profile")


def test_assumptions_about_inference_do_not_reach_training() -> None:
    wants = read_wants({"tokens": "1T"}, train=True, defaults={"engine": "vllm 0.11", "pue": "1.4"})
    assert wants.training is not None
    assert (wants.pue, wants.training.tokens, wants.profiled) == (1.4, 1e12, frozenset({"pue"}))
