"""The acceptance plan as text, as Markdown for a ticket, and as plain values."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

from clusterwright.judging.acceptance_plans import AcceptancePlan, Interval, PlannedTest, Slot, Uncovered
from clusterwright.lib.hostlists import fold

#: Version of the JSON form; a change that removes or renames a key raises it.
SCHEMA: Final = "clusterwright/acceptance-plan/v1"
_NARROWEST: Final = 80
_WIDEST: Final = 160
_WHO: Final = {"renter": "you", "provider": "provider", "both": "you or provider"}
_HEADINGS: Final = ("begins", "lasts", "test", "nodes", "GPU-h", "alone", "rights", "by", "for")


def render_plan(plan: AcceptancePlan, width: int = 120) -> str:
    """The plan for people: when, what, where, at which cost, by whom; then what is not covered."""
    width = min(max(width, _NARROWEST), _WIDEST)
    blocks = [_wrap(headline(plan), width)]
    if plan.stale:
        blocks.append(_items("Only what must be run again:", [f"{c}: {why}" for c, why in plan.stale.items()], width))
    if plan.tests:
        blocks.append(_table(plan, width))
        blocks.append(_items("What each test runs, shows, and leaves open:", _meanings(plan.tests), width))
    blocks.append(_items("Not covered by any test:", _open(plan.uncovered), width))
    late = [i for i in plan.schedule if not i.fits]
    blocks.append(_items("Does not fit the window:", [_late(i) for i in late], width))
    blocks.append(_items("What the sustained run can say:", plan.statistics, width))
    notes = [f"{t.id}: {note}" for t in plan.tests for note in t.notes]
    blocks.append(_items("Assumed:", notes, width))
    if plan.tests:
        blocks.append(_wrap(_export_hint(plan), width))
    return "\n\n".join(b for b in blocks if b)


def headline(plan: AcceptancePlan) -> str:
    """One sentence: tests, hours, GPU-hours, the window."""
    if not plan.tests:
        return f"{plan.cluster}: no test is needed"
    count = len(plan.tests)
    window = f" of the {hours(plan.window_s)} declared" if plan.window_s is not None else "; no window is declared"
    claims = {c for t in plan.tests for c in t.claims}
    return (
        f"{plan.cluster}: {count} test{'s' * (count > 1)} for {len(claims)} claims in {hours(plan.ends_s)}{window}, "
        f"{plan.gpu_hours:,.0f} GPU-h kept from other work"
    )


def hours(seconds: float) -> str:
    """A time as `2 h 05 min`, `40 min`."""
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02d}"


def _row(test: PlannedTest, interval: Interval) -> tuple[str, ...]:
    nodes = fold(test.nodes) if test.nodes else "a client"
    rounds = f", {len(test.rounds)} rounds" if len(test.rounds) > 1 else ""
    return (
        f"+{_clock(interval.begins_s)}",
        _clock(test.seconds),
        test.id,
        f"{nodes}{rounds}",
        f"{test.gpu_hours:,.1f}" if test.gpu_hours else "-",
        "yes" if test.kind.exclusive else "no",
        test.rights,
        ", ".join(_WHO[p] for p in test.providers) or "you",
        ", ".join(test.claims) or (f"control of {test.control_of}" if test.control_of else "the others"),
    )


def _rows(plan: AcceptancePlan) -> list[tuple[str, ...]]:
    tests = {t.id: t for t in plan.tests}
    return [_row(tests[i.test], i) for i in plan.schedule if i.test in tests]


def _table(plan: AcceptancePlan, width: int) -> str:
    rows = [_HEADINGS, *_rows(plan)]
    sizes = [max(len(r[c]) for r in rows) for c in range(len(_HEADINGS) - 1)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(s) if c in (0, 1, 4) else cell.ljust(s)
            for c, (cell, s) in enumerate(zip(row, sizes, strict=False))
        ]
        head = "  ".join(cells) + "  "
        room = max(20, width - len(head))
        first, *rest = textwrap.wrap(row[-1], room, break_on_hyphens=False) or [""]
        lines += [head + first, *(" " * len(head) + r for r in rest)]
    return "\n".join(line.rstrip() for line in lines)


def command_of(test: PlannedTest) -> str:
    """The command with what only the machine knows in angle brackets; for people, not for a shell."""
    words = ("".join(f"<{p.name}>" if isinstance(p, Slot) else p for p in word) for word in test.argv)
    settings = "".join(f"{n}={v} " for n, v in test.kind.environment.items())
    return settings + " ".join(words)


def _meanings(tests: Sequence[PlannedTest]) -> list[str]:
    return [
        f"{t.id}: {command_of(t)} — shows {t.kind.shows}; leaves open {t.kind.leaves_open} ({t.kind.timing})"
        for t in tests
    ]


def _open(uncovered: Iterable[Uncovered]) -> list[str]:
    return [f"{u.claim}: {u.reason}{f'; instead: {u.how}' if u.how else ''}" for u in uncovered]


def _late(interval: Interval) -> str:
    return f"{interval.test}: would end {hours(interval.ends_s)} after the window opens"


def _export_hint(plan: AcceptancePlan) -> str:
    engine = {"kubernetes": "--kubernetes", "slurm": "--slurm"}.get(plan.engine, "--shell")
    return f"Next: cw accept export FILE {engine} DIR writes them as scripts that need nothing of ours in the cluster."


def _items(head: str, items: Sequence[str], width: int) -> str:
    if not items:
        return ""
    return "\n".join([head, *(_wrap(item, width, "  ") for item in items)])


def _wrap(text: str, width: int, indent: str = "") -> str:
    return "\n".join(
        textwrap.wrap(
            text,
            width,
            initial_indent=indent,
            subsequent_indent=indent and indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def plan_markdown(plan: AcceptancePlan) -> str:
    """The plan as Markdown."""
    lines = [f"# Acceptance of {_cell(plan.cluster)}", "", headline(plan) + ".", ""]
    if plan.stale:
        lines += ["## Only what must be run again", "", *(f"- {c}: {why}" for c, why in plan.stale.items()), ""]
    if plan.tests:
        lines += ["| " + " | ".join(_HEADINGS) + " |", "|" + "---|" * len(_HEADINGS)]
        lines += ["| " + " | ".join(_cell(c) for c in row) + " |" for row in _rows(plan)]
        lines += ["", "## Tests", ""]
    for test in plan.tests:
        lines += [
            f"### {test.id}: {_cell(test.title)}", "", f"    {_cell(command_of(test))}", "",
            f"Shows {test.kind.shows}. Leaves open {test.kind.leaves_open}. Time: {test.kind.timing}. Source: "
            f"{test.kind.source}.", "",
        ]  # fmt: skip
    for head, items in (
        ("Not covered by any test", _open(plan.uncovered)),
        ("Does not fit the window", [_late(i) for i in plan.schedule if not i.fits]),
        ("What the sustained run can say", plan.statistics),
        ("Assumed", [f"{t.id}: {note}" for t in plan.tests for note in t.notes]),
    ):
        if items:
            lines += [f"## {head}", "", *(f"- {item}" for item in items), ""]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def plan_values(plan: AcceptancePlan) -> dict[str, Any]:
    """The plan as plain values; times in seconds after the window opens."""
    intervals = {i.test: i for i in plan.schedule}
    return {
        "schema": SCHEMA,
        "cluster": plan.cluster,
        "engine": plan.engine,
        "window_s": plan.window_s,
        "ends_s": plan.ends_s,
        "gpu_hours": plan.gpu_hours,
        "fits": not plan.late,
        "again": dict(plan.stale),
        "tests": [_test_values(t, intervals[t.id]) for t in plan.tests],
        "uncovered": [{"claim": u.claim, "kind": u.kind, "reason": u.reason, "instead": u.how} for u in plan.uncovered],
        "statistics": list(plan.statistics),
    }


def _test_values(test: PlannedTest, interval: Interval) -> dict[str, Any]:
    kind = test.kind
    return {
        "id": test.id,
        "kind": kind.name,
        "suite": kind.suite,
        "stage": kind.stage,
        "title": test.title,
        "argv": ["".join(f"<{p.name}>" if isinstance(p, Slot) else p for p in word) for word in test.argv],
        "environment": dict(kind.environment),
        "reader": kind.reader,
        "rounds": [[list(group) for group in groups] for groups in test.rounds],
        "nodes": list(test.nodes),
        "begins_s": interval.begins_s,
        "seconds": test.seconds,
        "fits": interval.fits,
        "gpu_hours": test.gpu_hours,
        "exclusive": kind.exclusive,
        "blocking": kind.blocking,
        "rights": test.rights,
        "providers": list(test.providers),
        "image": test.image or None,
        "store": test.store or None,
        "workload": test.workload or None,
        "claims": list(test.claims),
        "control_of": test.control_of or None,
        "proves": list(kind.proves),
        "shows": kind.shows,
        "leaves_open": kind.leaves_open,
        "timing": kind.timing,
        "source": kind.source,
        "notes": list(test.notes),
    }
