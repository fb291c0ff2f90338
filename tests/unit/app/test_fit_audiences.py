"""What a customer's answer never says, in any form: words, numbers, columns and keys that are the house's own."""

from __future__ import annotations

import csv
import datetime
import html
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterwright.app.exporting import ENDINGS, write_answers
from clusterwright.app.fitting import FitRequest, describe_fit, fit, markdown_of_fit
from clusterwright.app.fitting_batches import Row
from clusterwright.app.fitting_forms import csv_of_fit, more_of, values_of_fit
from clusterwright.model.profiles import parse_profile
from clusterwright.model.sources import Source
from clusterwright.plan.fitting.house import Audience, house_of
from clusterwright.report.fits_customers import WITHHELD

TODAY = datetime.date(2026, 11, 30)
PROFILE = """\
name: Secretive House
prices: {h100: $1.2345, h200: $1.3456}
margin: 37%
skus: {hidden-cost: {shape: dgx-h100, price: $4.44}}
assumptions: {survive: 1, pue: 1.1}
"""
#: Questions whose answers take every way through the pages: holding, missing a target, too big, a budget, training.
QUESTIONS: dict[str, tuple[str, list[str], dict[str, str], bool]] = {
    "holds": (
        "llama-3.1-8b", ["hidden-cost", "h200", "b200"],
        {"rate": "5", "in": "1000", "out": "200", "ttft": "1s", "tpot": "50ms"}, False,
    ),
    "capacity": ("llama-3.1-8b", ["h200", "hidden-cost"], {}, False),
    "late": ("llama-3.1-8b", ["hidden-cost"], {"rate": "5", "tpot": "1ms"}, False),
    "too big": ("llama-3.3-70b", ["h200"], {"gpus": "1", "context": "128k", "engine": "vllm 0.99"}, False),
    "edge": ("llama-3.1-8b", ["hidden-cost"], {"rate": "50", "tpot": "6ms", "in": "1000"}, False),
    "budget": ("llama-3.1-8b", ["hidden-cost"], {"budget": "$50k/month"}, False),
    "power": ("llama-3.1-8b", ["hidden-cost"], {"power": "100kW"}, False),
    "training": ("llama-3.1-8b", ["hidden-cost", "h200"], {"tokens": "20G", "gpus": "16"}, True),
}  # fmt: skip
#: The house's name, costs and margin; other sellers. $1.96 is the cost with the margin: a selling price.
HOUSE = (
    "Secretive", "1.2345", "1.23", "1.3456", "1.35", "margin", "37%", "37 %", "own cost", "profile", "sold at",
    "CoreWeave", "Lambda", "Oracle", "survey", "hyperscaler", "specialist", "marketplace", "on-demand", "API",
    "elsewhere", "shelf life", "What does a GPU-hour cost",
)  # fmt: skip
#: Of those, numbers so short that they may well be the beginning of another figure: they count alone.
_SHORT = ("1.23", "1.35")
#: What the house doubts: errors of its estimates, what they were held to, how sure an order is, what moves it.
DOUBTS = (
    "mean error", "error of", "held out", "held to", "start-up logs", "published runs", "calibrat", "Not sure",
    "nine of ten", "may be as good", "10 % less", "Assumptions by effect", "none was of this model",
    "nobody measured", "popular",
)  # fmt: skip


def request(question: str, audience: Audience) -> FitRequest:
    model, machines, options, train = QUESTIONS[question]
    house = house_of(parse_profile(Source("profile.yaml", PROFILE)))
    return FitRequest(model, machines, TODAY, options, train, house, audience)


def forms(question: str, audience: Audience, folder: Path) -> Iterator[tuple[str, str]]:
    """Every form that an answer leaves the house in, as text."""
    asked = request(question, audience)
    answer = fit(asked)
    more = more_of(answer, asked, bill=True, elsewhere=True, apart=True)
    yield "text", describe_fit(answer, 120, more.blocks)
    yield "narrow text", describe_fit(answer, 80, more.blocks)
    yield "Markdown", markdown_of_fit(answer, more.blocks)
    yield "JSON", json.dumps(values_of_fit(answer, more), ensure_ascii=False)
    yield "CSV", csv_of_fit(answer)
    for ending in ENDINGS:
        path = folder / f"answer{ending}"
        write_answers(path, [Row(2, "", answer, more=more)])
        yield f"file {ending}", workbook_text(path) if ending == ".xlsx" else path.read_text(encoding="utf-8")


def workbook_text(path: Path) -> str:
    """Everything that stands in a workbook, its parts' names and comments included."""
    with zipfile.ZipFile(path) as book:
        parts = [book.read(name).decode() for name in book.namelist() if name.endswith((".xml", ".rels"))]
    return html.unescape(re.sub(r"<[^>]*>", "\n", "\n".join(parts)))


@pytest.mark.parametrize("question", QUESTIONS)
def test_nothing_of_the_house_reaches_a_customer_in_any_form(question: str, tmp_path: Path) -> None:
    words = [word for word in HOUSE + DOUBTS if not (question == "training" and word in _SHORT)]
    for form, text in forms(question, "customer", tmp_path):
        assert not [word for word in words if stands(word, text)], form


def stands(word: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\d.]){re.escape(word)}(?!\d)", text)) if word in _SHORT else word in text


@pytest.mark.parametrize("question", ["holds", "capacity", "late"])
def test_the_same_words_do_stand_in_what_the_house_reads(question: str, tmp_path: Path) -> None:
    said = " ".join(" ".join(text.split()) for _, text in forms(question, "internal", tmp_path))
    for word in ("Secretive", "margin", "own cost", "start-up logs", "profile"):
        assert word in said, word


def test_most_words_that_are_looked_for_stand_on_some_page_of_the_house(tmp_path: Path) -> None:
    """A list of words that no page ever has would prove nothing."""
    texts = (text for question in QUESTIONS for _, text in forms(question, "internal", tmp_path / question))
    said = " ".join(" ".join(text.split()) for text in texts)
    unsaid = [word for word in HOUSE + DOUBTS if word not in said]
    assert len(unsaid) <= len(HOUSE + DOUBTS) // 4, unsaid


def keys(value: Any, path: str = "") -> Iterator[str]:
    """Paths of all keys, positions in lists left out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}{key}"
            yield from keys(inner, f"{path}{key}.")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, path)


#: Keys of a customer's JSON about inference. A new key fails until somebody decides who may see it.
SHOWN = {
    "question", "holds", "verdict", "model", "asked", "machines", "ask", "remedies", "basis", "bill", "disaggregated",
    "model.asked", "model.name", "model.parameters",
    *(f"asked.{name}" for name in (
        "rate", "concurrency", "mean_in", "mean_out", "p95_in", "p95_out", "reused_share", "ttft_s", "tpot_s",
        "quantile", "survive_nodes", "context", "engine", "version", "planned_instead", "weights", "kv", "stated",
    )),
    *(f"machines.{name}" for name in (
        "asked", "gpu", "node", "gpus_per_node", "verdict", "why_not", "price", "layout", "gpus_per_replica",
        "replicas_for_load", "replicas", "gpus", "nodes", "domain_gpus", "longest_request", "at_once", "in_flight",
        "ttft_s", "tpot_s", "requests_s_per_replica", "output_tokens_s_per_replica", "per_hour", "per_mtok_out",
        "per_mtok", "memory_gib", "reported_gib", "command", "before_command", "over_nodes", "extra_config", "sizes",
    )),
    *(f"machines.price.{name}" for name in ("per_gpu_hour", "currency", "basis")),
    *(f"machines.sizes.{name}" for name in (
        "layout", "gpus", "at_once", "requests_s", "ttft_s", "tpot_s", "gpu_h_per_mtok_out",
    )),
    *(f"ask.{name}" for name in ("question", "option", "why")),
    *(f"remedies.{name}" for name in ("what", "gpus", "layout")),
    *(f"disaggregated.{name}" for name in (
        "machine", "why_not", "split", "whole_gpus", "whole_per_hour", "currency",
    )),
    *(f"bill.{name}" for name in ("lines", "unknown", "lines.what", "lines.count", "lines.unit", "lines.reason")),
}  # fmt: skip
_BANDS = re.compile(r"\.(value|low|high)$|^machines\.memory_gib\.|^disaggregated\.split\.")


@pytest.mark.parametrize("question", [name for name in QUESTIONS if name != "training"])
def test_a_customers_json_has_no_key_that_was_not_meant_for_it(question: str) -> None:
    asked = request(question, "customer")
    answer = fit(asked)
    found = set(keys(values_of_fit(answer, more_of(answer, asked, bill=True, elsewhere=True, apart=True))))
    assert {key for key in found if not _BANDS.search(key)} <= SHOWN


@pytest.mark.parametrize("question", QUESTIONS)
def test_keys_that_are_withheld_are_not_there_at_all(question: str) -> None:
    asked = request(question, "customer")
    answer = fit(asked)
    values = values_of_fit(answer, more_of(answer, asked, bill=True, elsewhere=True, apart=True))
    assert not WITHHELD[""] & values.keys()
    assert not WITHHELD["asked"] & values["asked"].keys()
    for machine in values["machines"]:
        assert not WITHHELD["machines"] & machine.keys()
        assert not WITHHELD["price"] & (machine["price"] or {}).keys()
        assert not WITHHELD["interruptions"] & machine.get("interruptions", {}).keys()


def test_what_is_withheld_is_there_inside_the_house() -> None:
    asked = request("holds", "internal")
    answer = fit(asked)
    values = values_of_fit(answer, more_of(answer, asked, bill=True, elsewhere=True, apart=True))
    assert WITHHELD[""] <= values.keys()
    assert WITHHELD["asked"] <= values["asked"].keys()
    assert WITHHELD["machines"] <= values["machines"][0].keys()
    assert WITHHELD["price"] <= values["machines"][0]["price"].keys()


@pytest.mark.parametrize("audience", ["internal", "customer"])
def test_columns_are_the_same_for_both_but_money_is_what_each_may_see(audience: Audience) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of_fit(fit(request("holds", audience))))))
    assert {row["price, USD/GPU-h"] for row in rows if row["GPU"] == "hidden-cost"} == {
        "1.2345" if audience == "internal" else "4.44"
    }
    assert not [head for head in rows[0] if re.search("cost|margin|sold|basis|origin|error|profile", head)]


def test_money_of_a_customer_is_the_selling_price() -> None:
    inside, outside = (fit(request("holds", audience)) for audience in ("internal", "customer"))
    cost, sold = (next(f for f in answer.fits if f.machine.sku) for answer in (inside, outside))
    assert sold.price is not None
    assert cost.price is not None
    assert (sold.price.value, cost.price.value) == (4.44, 1.2345)
    assert next(f for f in outside.fits if f.machine.asked == "b200").price is None


HOSTILE = ("=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0", '=HYPERLINK("http://x","y")')


@pytest.mark.parametrize("label", HOSTILE)
@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_label_never_becomes_a_formula(label: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"answers{ending}"
    write_answers(path, [Row(2, label, fit(request("capacity", "customer"))), Row(3, label, None, (label,))])
    if ending == ".csv":
        for row in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))):
            assert row["label"] == f"'{label}"
            assert not row["why"].startswith(("=", "+", "-", "@", "\t"))
        return
    with zipfile.ZipFile(path) as book:
        sheet, parts = book.read("xl/worksheets/sheet1.xml").decode(), book.namelist()
    assert "<f>" not in sheet
    assert "hyperlink" not in sheet.lower()
    assert not [part for part in parts if "external" in part.lower()]
    assert label.strip() in workbook_text(path)
