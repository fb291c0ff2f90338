"""Markup is built so that no text can become markup."""

import pytest

from builders.pages import parse_page
from clusterwright.report.html.elements import Html, h, markup, plain, table, text, visible


@pytest.mark.parametrize(
    "hostile",
    ["<script>alert(1)</script>", '" onload="alert(1)', "' x='", "a & b &amp; c", "]]>", "<!--", "</title>", "a\nb"],
)
def test_text_stays_text_in_content_and_attributes(hostile: str) -> None:
    page = parse_page(h("p", hostile, title=hostile))
    paragraph = page.one("p")
    assert paragraph.attributes == {"title": hostile}
    assert paragraph.children == [hostile]


def test_what_would_mislead_a_reader_is_shown_by_number() -> None:
    assert visible("gpu\u202e100-\u2066x") == "gpu⟨U+202E⟩100-⟨U+2066⟩x"
    assert visible("a\x00b\x1b[31m\x7f\u200b") == "a⟨U+0000⟩b⟨U+001B⟩[31m⟨U+007F⟩⟨U+200B⟩"
    assert visible("line\r\nnext\tcell") == "line\nnext\tcell"
    assert visible("Größe, 東京, عربي") == "Größe, 東京, عربي"


def test_a_lone_surrogate_does_not_keep_the_report_from_being_written() -> None:
    assert text("\ud800").encode() == "⟨U+D800⟩".encode()


@pytest.mark.parametrize("name", ["style", "onclick", "onload"])
def test_attributes_that_the_policy_forbids_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="content policy"):
        h("p", **{name: "x"})


def test_html_passes_once_and_numbers_and_lists_are_children() -> None:
    assert markup(h("b", 1), None, [2.5, ("<", Html("<i></i>"))]) == "<b>1</b>2.5&lt;<i></i>"


def test_true_is_a_bare_attribute_and_false_is_none() -> None:
    assert h("details", "x", open=True, hidden=False, id=None) == "<details open>x</details>"


def test_plain_gives_the_words_back() -> None:
    assert plain(h("p", "a < b ", h("b", "& c"))) == "a < b & c"


def test_a_table_names_its_columns_and_rows() -> None:
    page = parse_page(table(("Name", "GiB"), [("chat", 3)], caption="Memory", numeric=(1,)))
    assert [t.attributes["scope"] for t in page.all("th")] == ["col", "col", "row"]
    assert page.one("td").attributes == {"class": "num", "data-label": "GiB"}
    assert page.one("caption").text == "Memory"
