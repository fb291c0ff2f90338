"""Pages of simulations opened from disk in Chromium: no error, no request, readable on a desk, a phone and paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from builders.simulated import a_pair, a_simulation, a_sweep, hostile, many_nodes
from clusterwright.report.html.simulations import render_page, render_page_of_two

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run")
DESK, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
PAGES = {
    "one": lambda: render_page([a_simulation()]),
    "sweep": lambda: render_page(a_sweep(), "pools.gpu.nodes"),
    "two": lambda: render_page_of_two(*a_pair(), ["pools.gpu.nodes=4"]),
    "hostile": lambda: render_page([hostile()]),
    "1,000 nodes": lambda: render_page([many_nodes()]),
    "nothing": lambda: render_page([]),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: install Debian's chromium package")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield opened
        opened.close()


def opened(browser: Browser, path: Path, page: str, scheme: str, size: dict[str, int]) -> tuple[Page, list[str]]:
    """The page, and everything that went wrong in it or was asked for by it."""
    report = path / "page.html"
    report.write_text(page, encoding="utf-8")
    found: list[str] = []
    shown = browser.new_page(viewport=size, color_scheme=scheme)
    shown.on("console", lambda m: found.append(f"console {m.type}: {m.text}"))
    shown.on("pageerror", lambda e: found.append(f"error: {e}"))
    shown.on("request", lambda r: found.append(r.url) if r.url != report.as_uri() else None)
    shown.goto(report.as_uri(), wait_until="load")
    return shown, found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES.keys())
def test_it_opens_without_error_or_request_and_never_scrolls_sideways(browser, tmp_path, make, size, scheme):
    page, found = opened(browser, tmp_path, make(), scheme, size)
    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    page.close()


def test_cells_say_in_words_what_their_colour_says(browser, tmp_path):
    page, _ = opened(browser, tmp_path, render_page([a_simulation()]), "light", DESK)
    tips = page.locator("#nodes figure g > title").all_text_contents()
    assert tips
    assert all("day 0.00" in t or "day " in t for t in tips)
    assert any("productive" in tip and tip.startswith("g-01") for tip in tips)
    drawn = page.locator("#nodes figure svg g rect").evaluate_all(
        "all => all.filter(r => r.getBBox().width > 0).length"
    )
    assert drawn >= len(tips)
    page.locator("#nodes summary").click()
    assert page.locator("#nodes table tbody tr").count() == 8
    page.close()


def test_colours_of_the_lines_differ_in_both_schemes(browser, tmp_path):
    for scheme in ("light", "dark"):
        page, _ = opened(browser, tmp_path, render_page([a_simulation()]), scheme, DESK)
        fills = page.evaluate(
            "Array.from(document.querySelectorAll('#nodes ul.legend svg.swatch')).map("
            "s => getComputedStyle(s.querySelector('g > rect')).fill)"
        )
        assert len(fills) == len(set(fills)) >= 3
        page.close()
