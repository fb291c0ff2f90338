"""Words of the field: found by any of their names, each with what it means and its source."""

from __future__ import annotations

import re

import pytest

from clusterwright.model.terms import TERMS, find_term, nearest_terms, terms_of_figure


def test_every_word_says_what_it_means_and_where_from() -> None:
    for term in TERMS:
        assert len(term.means) > 30, term.name
        assert term.means.endswith("."), term.name
        assert term.source, term.name


def test_no_name_stands_for_two_words() -> None:
    names = [(re.sub(r"[^a-z0-9]+", "", n.lower()), t.name) for t in TERMS for n in {*t.also, t.long, t.name} if n]
    owners: dict[str, set[str]] = {}
    for folded, owner in names:
        owners.setdefault(folded, set()).add(owner)
    assert {folded: found for folded, found in owners.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("ttft", "TTFT"),
        ("Time to First Token", "TTFT"),
        ("bus bandwidth", "busbw"),
        ("BusBW", "busbw"),
        ("fsdp", "ZeRO"),
        ("TP4", "TP"),
        ("vp10", "VP"),
        ("ATTENTION_DP32", "attention DP"),
        ("p95", "percentile"),
    ],
)
def test_words_are_found_by_any_spelling(said: str, name: str) -> None:
    found = find_term(said)
    assert found is not None
    assert found.name == name


def test_a_wrong_word_has_near_ones() -> None:
    assert find_term("ttfft") is None
    assert "TTFT" in nearest_terms("ttfft")
    assert "goodput" in nearest_terms("good-puts")


def test_figures_lead_to_their_words() -> None:
    assert [t.name for t in terms_of_figure("workloads.chat.service.ttft")] == ["TTFT"]
    assert terms_of_figure("workloads.chat.nothing") == ()


@pytest.mark.parametrize("part", ["XP4", "TP", "4TP", "TP4x"])
def test_only_parts_of_a_layout_lose_their_number(part: str) -> None:
    found = find_term(part)
    assert found is None or found.name == "TP" == part
