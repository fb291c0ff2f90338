"""Answers as files: batches, forms, formulas, and what a customer's page never says."""

from __future__ import annotations

import csv
import datetime
import io
import json
import zipfile
from pathlib import Path

import pytest

from clusterwright.app.exporting import write_answers
from clusterwright.app.fitting import FitRequest, describe_fit, fit, markdown_of_fit
from clusterwright.app.fitting_batches import Row, fit_batch, read_batch
from clusterwright.app.fitting_forms import csv_of_fit, more_of, values_of_fit
from clusterwright.files.spreadsheets import workbook
from clusterwright.lib.errors import InvalidInput
from clusterwright.model.profiles import parse_profile
from clusterwright.model.sources import Source
from clusterwright.plan.fitting.house import Audience, house_of
from clusterwright.report.blocks import Grid, Lines, as_markdown
from clusterwright.report.tables_out import as_csv, table_of

TODAY = datetime.date(2026, 11, 30)
CHAT = {"rate": "5", "in": "1000", "out": "200", "ttft": "1s", "tpot": "50ms"}
PROFILE = """\
name: Secretive House
prices: {h100: $1.2345, h200: $1.3456}
margin: 37%
skus: {hidden-cost: {shape: dgx-h100, price: $4.44}}
assumptions: {survive: 1}
"""


def request(audience: Audience = "internal", **options: str) -> FitRequest:
    house = house_of(parse_profile(Source("profile.yaml", PROFILE)))
    return FitRequest(
        "llama-3.1-8b", ["hidden-cost", "h200", "b200"], TODAY, CHAT | options, profile=house, audience=audience
    )


def forms(audience: Audience) -> dict[str, str]:
    asked = request(audience)
    answer = fit(asked)
    more = more_of(answer, asked, bill=True, elsewhere=True)
    return {
        "text": describe_fit(answer, 120, more.blocks),
        "narrow": describe_fit(answer, 80, more.blocks),
        "markdown": markdown_of_fit(answer, more.blocks),
        "json": json.dumps(values_of_fit(answer, more)),
        "csv": csv_of_fit(answer),
    }


def test_inside_the_house_costs_margins_and_cheaper_apis_are_said() -> None:
    text = forms("internal")["text"]
    assert "own cost, profile Secretive House" in text
    assert "a margin of 72%" in text
    assert "An API is cheaper" in text
    assert "Assumptions by effect" in text


BATCH = """\
label,model,gpu,rate,in,out,ttft,tpot
one,llama-3.1-8b,h100,5,1000,200,1s,50ms
two,nonsense,h100,5,,,,
three,llama-3.1-8b,"h100,l40s",3,,,1s,50 ms
four,llama-3.1-8b,h100,fast,,,soon,
=cmd(),llama-3.1-8b,t4,,,,,
"""


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    path = tmp_path / "questions.csv"
    path.write_text(BATCH, encoding="utf-8")
    return path


def answered(path: Path) -> tuple[Row, ...]:
    return fit_batch(str(path), read_batch(str(path)), FitRequest("", [], TODAY))


def test_a_row_that_is_wrong_has_its_own_error_and_the_others_go_on(batch: Path) -> None:
    rows = answered(batch)
    assert [row.answer is not None for row in rows] == [True, False, True, False, True]
    assert "no model 'nonsense'" in rows[1].problems[0]
    assert [p.split(": ")[1] for p in rows[3].problems] == ["rate", "ttft"]
    assert f"{batch}:5: rate" in rows[3].problems[0]


def test_a_batch_without_models_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("gpu,rate\nh100,5\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="no column 'model'"):
        read_batch(str(path))


def test_a_batch_as_every_form(batch: Path, tmp_path: Path) -> None:
    rows = answered(batch)
    for ending in ("md", "csv", "xlsx", "json"):
        write_answers(tmp_path / f"out.{ending}", rows)
    table = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))
    assert len(table) == 6
    assert float(table[0]["TPOT, ms"]) > 0
    assert [row["verdict"] for row in table].count("invalid") == 2
    assert table[-1]["label"] == "'=cmd()"
    assert len(json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))) == 5
    with pytest.raises(InvalidInput, match="exists"):
        write_answers(tmp_path / "out.xlsx", rows)
    write_answers(tmp_path / "out.xlsx", rows, replace_file=True)
    with pytest.raises(InvalidInput, match="no form ends"):
        write_answers(tmp_path / "out.doc", rows)


def test_a_workbook_has_numbers_and_no_formula() -> None:
    data = workbook(("name", "=head"), [("=1+1", 2.5), ("+x", None), ("http://example.com", 3)])
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        strings = book.read("xl/sharedStrings.xml").decode()
    assert "<f>" not in sheet
    assert "hyperlink" not in sheet
    assert "<v>2.5</v>" in sheet
    assert "=1+1" in strings


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx"])
def test_text_in_csv_never_begins_a_formula(text: str) -> None:
    line = as_csv(table_of([{"a": text, "b": -1.5}])).splitlines()[1]
    assert next(csv.reader([line]))[0].startswith("'")
    assert line.endswith(",-1.5")


def test_text_in_markdown_is_shown_as_it_is() -> None:
    text = as_markdown([Grid(("a", "b"), (("x|y<b>", "`c`"),)), Lines(("[l](http://x) *s*",))], "# t")
    assert "x\\|y\\<b\\> | \\`c\\`" in text
    assert "\\[l\\](http://x) \\*s\\*" in text
    assert text.startswith("# \\# t")
