"""Take the picture of a report that the README shows: its head, the drawing, and the beginning of the plan.

Usage: python tools/picture_report.py proof/two-workers/report.html docs/report.png
Needs Chromium (Debian: chromium).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1200, 1560
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run")
#: Sections left out of the picture, which is too small for all of them.
LEFT_OUT = "#steps, #findings, nav.contents"


def main(report: str, picture: str) -> int:
    """Write the picture; 1 where Chromium is missing."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("Chromium is missing: install Debian's chromium package", file=sys.stderr)
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(Path(report).resolve().as_uri())
        page.evaluate(f"for (const part of document.querySelectorAll('{LEFT_OUT}')) part.hidden = true")
        page.screenshot(path=picture)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
