"""Simulated futures as one self-contained page: what was found, how sure it is, and what every node did over time."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Final

from clusterwright.ledger.lines import GPU_MS_PER_GPU_H, Line
from clusterwright.ledger.ratios import allocated_share, goodput_share
from clusterwright.lib.figures import format_amount
from clusterwright.report.html.elements import Html, h, markup, table
from clusterwright.report.html.simulations_drawn import render_curves, render_picture, render_sweep_plots
from clusterwright.report.html.simulations_style import LINE_STYLE, mark_of
from clusterwright.report.html.style import STYLE
from clusterwright.report.replications import (
    FIELDS,
    LEVELS,
    Simulated,
    estimate_level,
    estimate_of,
    group_names,
    pair,
)
from clusterwright.report.simulations import (
    comparisons,
    cost_per_hour,
    heading,
    not_saved_gpu_h,
    say_difference,
    say_money,
    say_percent,
    say_ratio,
    say_time,
    sums,
    verdict,
)

_SHEET: Final = STYLE + LINE_STYLE
#: Nothing from outside; only this style sheet, by its digest (Content Security Policy Level 3).
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_SHEET.encode()).digest()).decode()}'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
Section = tuple[str, str, Html]


def render_page(found: Sequence[Simulated], sweep: str = "") -> str:
    """Results as one HTML document that needs nothing else; of a sweep the values beside each other."""
    if not found:
        return _page("Simulation", "stopped before anything was simulated", [])
    first = found[0]
    if sweep:
        sections = [*_calibration(first), ("sweep", f"Results by {sweep}", _sweep(sweep, found)), *_basis(first)]
        return _page(f"{first.name}: {sweep}", f"{len(found)} values, {first.seeds} futures each", sections)
    return _page(
        f"{first.name}, simulated",
        "; ".join((heading(first)[0].partition(": ")[2], heading(first)[1])),
        _sections(first),
    )


def render_page_of_two(first: Simulated, second: Simulated, changes: Sequence[str]) -> str:
    """Two futures side by side as one HTML document."""
    rows = []
    for title, read, say in comparisons(first.currency):
        both = pair(first.replications, second.replications, read)
        if both is not None:
            rows.append((title, say(both.first.value), say(both.second.value), say_difference(both, say)))
    caption = "means over the futures; the difference is that of the pairs, with its 95 % interval"
    compared = table(("", "as it is", "changed", "difference"), rows, caption=caption, numeric=(1, 2, 3))
    sections: list[Section] = [*_calibration(first), ("difference", "What differs", compared)]
    sections += _pictures(first, "as it is", "a") + _pictures(second, "changed", "b")
    return _page(
        f"{first.name}: {', '.join(changes)}", "the same jobs, failures and repairs", [*sections, *_basis(second)]
    )


def _page(title: str, sentence: str, sections: Sequence[Section]) -> str:
    links = (h("li", h("a", name, href=f"#{key}")) for key, name, _ in sections)
    body = h(
        "div",
        h(
            "header",
            h("p", h("b", "Clusterwright"), h("span", "simulation"), cls="eyebrow"),
            h("h1", title),
            h("p", sentence, cls="sentence"),
            h("p", h("span", "simulated", cls="outcome virtual"), " every figure on this page; none is measured"),
            cls="top",
        ),
        h("nav", h("ul", links), cls="contents", aria_label="Contents"),
        h("main", (_section(*s) for s in sections), id="report", tabindex=-1),
        h("footer", "This file is complete: it loads nothing and sends nothing."),
        cls="frame",
    )
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", name="referrer", content="no-referrer"),
        h("link", rel="icon", href="data:,"),
        h("title", title),
        Html(f"<style>{_SHEET}</style>"),
    )
    skip = h("a", "Skip to the report", href="#report", cls="skip")
    return "<!DOCTYPE html>\n" + h("html", head, h("body", skip, body), lang="en") + "\n"


def _section(key: str, title: str, content: Html) -> Html:
    return h("section", h("h2", title, id=f"{key}-title"), content, id=key, aria_labelledby=f"{key}-title")


def _sections(found: Simulated) -> list[Section]:
    sections: list[Section] = [*_calibration(found)]
    doubts = [f"{n.jobs:,} jobs of {n.gpus:,} GPUs in queue {n.queue} never fit: {n.why}" for n in found.never_fit]
    doubts += [f"{count:,} rows of the trace are left out: {reason}" for reason, count in found.left_out.items()]
    doubts += found.remarks
    if doubts:
        sections.append(("notes", "What is not in it", h("ul", (h("li", d) for d in doubts))))
    sections.append(("waits", "Queue time", markup(_levels(found, "wait_s"), render_curves(found))))
    sections.append(("slowdown", "Slowdown", _levels(found, "slowdown")))
    sections.append(("use", "Where the GPU-hours went", markup(_tiles(found), _ledger(found))))
    return [*sections, *_pictures(found), *_failures(found), *_basis(found)]


def _calibration(found: Simulated) -> list[Section]:
    calibration = found.calibration
    if calibration is None:
        return []
    rows: list[tuple[Html | str | int, ...]] = []
    signs = {True: ("good", "✓ within"), False: ("bad", "✗ outside"), None: ("none", "– few jobs")}
    for row in calibration.compared:
        cls, word = signs[calibration.within(row)]
        cells = [say_time(s) for pair_ in zip(row.real_s, row.simulated_s, strict=True) for s in pair_]
        name = {"all": "all jobs", "size": f"{row.name} GPUs", "team": f"account {row.name or '-'}"}[row.field]
        rows.append((name, row.jobs, *cells, h("span", word, cls=f"outcome {cls}")))
    heads = ("jobs", "number", "median, real", "simulated", "p90, real", "simulated", "verdict")
    shown = table(heads, rows, caption="real waits of the trace against the replay", numeric=(1, 2, 3, 4, 5))
    return [("calibration", "Replay against reality", markup(h("p", " ".join(verdict(found))), shown))]


def _levels(found: Simulated, what: str) -> Html:
    say = say_time if what == "wait_s" else say_ratio
    rows = []
    for field in FIELDS:
        names = group_names(found.replications, field)
        if field in ("queue", "team") and len(names) < 2:
            continue
        for name in names:
            title = {"all": "all jobs", "size": f"{name} GPUs"}.get(field, f"{field} {name or '-'}")
            group = found.replications[0].group(field, name)
            cells = (say(estimate_level(found.replications, field, name, what, level)) for level in LEVELS)
            rows.append((title, f"{group.jobs:,}" if group else "-", *cells))
    captions = {
        "wait_s": "from submission to the first start, ± the 95 % interval over the futures; ≥ where jobs still wait",
        "slowdown": "from submission to the end ÷ work, of jobs that ended; work below 10 s counts as 10 s",
    }
    return table(("jobs", "number", *LEVELS), rows, caption=captions[what], numeric=range(1, 7))


def _tiles(found: Simulated) -> Html:
    rs = found.replications
    tiles = [
        (say_percent(estimate_of(rs, lambda r: goodput_share(r.lines))), "useful", "of the installed GPU time"),
        (say_percent(estimate_of(rs, lambda r: allocated_share(r.lines))), "allocated", "of the installed GPU time"),
        (say_ratio(estimate_of(rs, lambda r: r.ettr)), "ETTR", _ettr(found)),
        (say_ratio(estimate_of(rs, lambda r: r.fairness)), "fairness", "Jain, delivered ÷ entitled"),
        (say_money(cost_per_hour(found), found.currency), "cost", "per successful GPU-hour"),
    ]
    shown = (
        h("li", h("b", value), h("span", name, cls="name"), h("span", what), cls="tile virtual")
        for value, name, what in tiles
        if value != "-"
    )
    return h("ul", shown, cls="tiles")


def _ettr(found: Simulated) -> str:
    """What ETTR is, and how much of it a failure after the end could still take."""
    open_h = estimate_of(found.replications, not_saved_gpu_h)
    if open_h is None or not open_h.value:
        return "productive ÷ (held + queued)"
    saved = say_ratio(estimate_of(found.replications, lambda r: r.ettr_saved))
    return f"productive ÷ (held + queued); {saved} if work not saved at the end were lost"


def _ledger(found: Simulated) -> Html:
    rs = found.replications
    rows = []
    for line in Line:
        hours = estimate_of(rs, lambda r, x=line: r.lines.of(x) / GPU_MS_PER_GPU_H)  # type: ignore[misc]
        if hours is not None and hours.value:
            share = estimate_of(rs, lambda r, x=line: r.lines.share(x))  # type: ignore[misc]
            rows.append((markup(mark_of(line.value), " ", line.value), f"{hours.value:,.1f}", say_percent(share)))
    total, installed = sums(found)
    rows.append((h("b", "sum of the lines"), f"{total / GPU_MS_PER_GPU_H / len(rs):,.1f}", ""))
    same = "equals" if total == installed else "differs from"
    caption = f"GPU-hours, mean of the futures; their sum {same} installed GPUs × time ({installed:,} GPU-ms)"
    return table(("line", "GPU-h", "share"), rows, caption=caption, numeric=(1, 2))


def _pictures(found: Simulated, what: str = "", key: str = "") -> list[Section]:
    if found.picture is None:
        return []
    title = f"Nodes over time, {what}" if what else "Nodes over time"
    return [(f"nodes{key}", title, render_picture(found.picture, found.seed, key))]


def _failures(found: Simulated) -> list[Section]:
    rs = found.replications
    means = {c: sum(r.failures.get(c, 0) for r in rs) / len(rs) for r in rs for c in r.failures}
    if not means:
        return []
    rows = sorted(((c, f"{n:.3g}") for c, n in means.items()), key=lambda row: -means[row[0]])
    caption = "failures that struck a node in use or ready for use, mean of the futures"
    return [("failures", "Failures by cause", table(("cause", "failures"), rows, caption=caption, numeric=(1,)))]


def _basis(found: Simulated) -> list[Section]:
    rows = [
        (f.name, format_amount(f.value, f.unit), h("span", f.origin.word, cls=f"origin {f.origin.word}"), f.basis)
        for f in found.figures
    ]
    shown = table(("figure", "value", "origin", "basis"), rows, caption="what the result rests on, the weakest first")
    limits = h("ul", (h("li", limit) for limit in found.limits))
    return [("basis", "What carries the result", markup(shown, h("h3", "Limits"), limits))]


def _sweep(path: str, found: Sequence[Simulated]) -> Html:
    rows = [
        (
            one.label.partition("=")[2],
            say_time(estimate_level(one.replications, "all", "", "wait_s", "p95")),
            say_time(estimate_level(one.replications, "all", "", "wait_s", "median")),
            say_percent(estimate_of(one.replications, lambda r: goodput_share(r.lines))),
            say_percent(estimate_of(one.replications, lambda r: allocated_share(r.lines))),
            say_money(cost_per_hour(one), one.currency),
        )
        for one in found
    ]
    heads = (path, "p95 queue time", "median queue time", "useful", "allocated", "per successful GPU-h")
    caption = "the same seeds for every value; ± is the 95 % interval over the futures"
    return markup(render_sweep_plots(path, found), table(heads, rows, caption=caption, numeric=range(1, 6)))
