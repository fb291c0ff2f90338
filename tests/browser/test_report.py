"""The report opened from disk in Chromium: no error, no request, readable on a desk, a phone and paper."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from builders.proofs import EXAMPLE, example_document, example_proof, planned_proof
from clusterwright.model.evidence import Moment, Outcome
from clusterwright.report.html import render_proof
from clusterwright.report.proofs import Proof

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
DESK, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
HOSTILE = "</script><script>document.title='broken'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: install Debian's chromium package")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield opened
        opened.close()


class Opened:
    """A page with everything that went wrong in it."""

    def __init__(self, browser: Browser, report: Path, *, scheme: str = "light", size: dict[str, int] = DESK) -> None:
        self.wrong: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(viewport=size, color_scheme=scheme)
        self.page.on("console", lambda m: self.wrong.append(f"console {m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.wrong.append(f"error: {e}"))
        self.page.on("requestfailed", lambda r: self.wrong.append(f"failed: {r.url}"))
        self.page.on("dialog", lambda d: (self.wrong.append(f"dialog: {d.message}"), d.dismiss()))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(report.as_uri(), wait_until="load")

    def width(self) -> int:
        """Width in pixels that the page's content takes."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))


def written(folder: Path, proof: Proof) -> Path:
    path = folder / "report.html"
    path.write_text(render_proof(proof), encoding="utf-8")
    return path


def hostile_proof() -> Proof:
    proof = example_proof()
    assert proof.plan
    return replace(
        proof,
        cluster=HOSTILE,
        verdicts=tuple(replace(v, reason=HOSTILE) for v in proof.verdicts),
        rehearsals=tuple(replace(r, reason=HOSTILE, timeline=(Moment(0.0, HOSTILE),)) for r in proof.rehearsals),
        plan=replace(proof.plan, limits=(HOSTILE,)),
    )


def large_proof() -> Proof:
    text = EXAMPLE.read_text().replace("gpu-[001-002]", "gpu-[001-128]")
    proof = example_proof(example_document(text))
    assert proof.document
    assert proof.plan
    nodes = proof.document.architecture.pools["gpu"].nodes
    return replace(proof, plan=replace(proof.plan, pools=(replace(proof.plan.pools[0], nodes=nodes),)))


PROOFS = {"example": example_proof, "hostile": hostile_proof, "128 nodes": large_proof, "planned": planned_proof}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE, {"width": 320, "height": 640}], ids=["desk", "phone", "small phone"])
@pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS.keys())
def test_it_opens_without_error_or_request_and_never_scrolls_sideways(
    browser: Browser, tmp_path: Path, proof, size: dict[str, int], scheme: str
) -> None:
    report = written(tmp_path, proof())
    opened = Opened(browser, report, scheme=scheme, size=size)
    assert opened.wrong == []
    assert opened.requests == [report.as_uri()]
    assert opened.width() <= size["width"]
    opened.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert opened.width() <= size["width"], "an unfolded part makes the page scroll sideways"
    assert opened.page.title() == f"Proof of {proof().cluster}"
    opened.page.close()


def test_the_policy_stops_what_escaping_would_have_missed(browser: Browser, tmp_path: Path) -> None:
    report = written(tmp_path, example_proof())
    broken = report.read_text().replace("<main", "<script>document.title='broken'</script><main", 1)
    report.write_text(broken)
    opened = Opened(browser, report)
    assert opened.page.title() == "Proof of two-workers"
    assert any("Content Security Policy" in w for w in opened.wrong)
    opened.page.close()


def test_the_buttons_filter_the_claims(browser: Browser, tmp_path: Path) -> None:
    proof = example_proof()
    met = tuple(
        replace(v, outcome=Outcome.MET) if v.requirement.claim == "hardware-health" else v for v in proof.verdicts
    )
    count = sum(v.outcome is Outcome.MET for v in met)
    opened = Opened(browser, written(tmp_path, replace(proof, verdicts=met)))
    page = opened.page
    rows = page.locator("#claims tr[data-outcome]")
    assert rows.count() == len(met)
    page.get_by_role("button", name=f"met {count}", exact=True).click()
    assert page.locator("#claims tr[data-outcome]:visible").count() == count
    assert page.locator("#claims tr.group:visible").count() == 1
    assert page.locator("#claims-shown").inner_text() == f"{count} of {len(met)} claims shown"
    page.emulate_media(media="print")
    assert page.locator("#claims tr[data-outcome]:visible").count() == len(met), "paper shows every claim"
    page.emulate_media(media="screen")
    page.get_by_role("button", name=f"all {len(met)}").click()
    assert page.locator("#claims tr[data-outcome]:visible").count() == len(met)
    assert opened.wrong == []
    page.close()


def test_a_number_unfolds_its_derivation_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, written(tmp_path, example_proof()))
    page = opened.page
    line = page.locator(".ledger summary", has_text="what one replica carries").first
    tree = line.locator("xpath=..").locator("ul.tree").first
    assert not tree.is_visible()
    line.focus()
    page.keyboard.press("Enter")
    assert tree.is_visible()
    assert "gpus.h100-sxm-80gb.bandwidth" in tree.inner_text()
    assert opened.wrong == []
    page.close()


def test_a_link_to_a_derivation_unfolds_what_hides_it(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, written(tmp_path, example_proof()))
    page = opened.page
    page.evaluate("for (const part of document.querySelectorAll('#plan details')) part.open = true")
    link = page.locator("#plan a", has_text="derived elsewhere").first
    target = page.locator(str(link.get_attribute("href")))
    page.evaluate("for (const part of document.querySelectorAll('#plan details')) part.open = false")
    assert not target.is_visible()
    link.evaluate("a => a.click()")
    target.wait_for(state="visible", timeout=5000)
    assert opened.wrong == []
    page.close()


def test_paper_unfolds_everything(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, written(tmp_path, example_proof()), size=PHONE, scheme="dark")
    page = opened.page
    folded = page.locator("details ul.tree, details article, details table")
    assert folded.count() > 20
    page.emulate_media(media="print", color_scheme="light")
    hidden = folded.evaluate_all("all => all.filter(e => !e.checkVisibility({contentVisibilityAuto: true})).length")
    assert hidden == 0
    paper = page.pdf(format="A4", print_background=True)
    assert paper.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 8
    assert page.locator("details[open]").count() == 0, "what was closed is closed again after printing"
    assert opened.wrong == []
    page.close()


def test_text_stands_out_from_its_ground(browser: Browser, tmp_path: Path) -> None:
    """WCAG 2.2, 1.4.3: 4.5 : 1 for text, in both schemes, with the formula of 'contrast ratio' there."""
    for scheme in ("light", "dark"):
        opened = Opened(browser, written(tmp_path, example_proof()), scheme=scheme)
        faint = opened.page.evaluate(_FAINT)
        assert faint == [], f"{scheme}: {faint[:5]}"
        opened.page.close()


_FAINT = """() => {
  const channel = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const e of document.querySelectorAll("body *:not(svg *):not(script)")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faint.push(e.tagName + "." + e.className + " " + ratio.toFixed(2));
  }
  return faint;
}"""


@pytest.mark.parametrize(("size", "cls"), [(DESK, "wide"), (PHONE, "narrow")], ids=["desk", "phone"])
def test_one_drawing_of_the_layouts_is_seen_and_its_text_stays_inside(
    browser: Browser, tmp_path: Path, size: dict[str, int], cls: str
) -> None:
    opened = Opened(browser, written(tmp_path, planned_proof()), size=size)
    drawings = opened.page.locator("svg[id^=front], svg:has(> title[id^=front])")
    seen = [drawing for drawing in drawings.all() if drawing.is_visible()]
    assert [drawing.get_attribute("class") for drawing in seen] == [cls]
    frame = seen[0].bounding_box()
    assert frame
    for text in seen[0].locator("text").all():
        box = text.bounding_box()
        assert box
        assert box["x"] >= frame["x"] - 0.5
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 0.5
    opened.page.close()
