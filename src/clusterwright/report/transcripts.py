"""What was read from an output, as text and as plain values."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Observation, Outcome, Run, Transcript, Value, Weight

_ROWS: Final = 12
_COLUMNS: Final = 8
_NOTICES: Final = 8
_WEIGHTS: Final = (Weight.ERROR, Weight.WARNING, Weight.INFO)


def render_transcript(path: str, transcript: Transcript, *, whole: bool = False, width: int = 120) -> str:
    """What was read, notices first, then values, then what was not read and what was cleaned away.

    Args:
        whole: every row; without it a long table shows its first and last rows.
        width: columns of the terminal.
    """
    lines = [f"{path}: {transcript.kind or 'unknown kind'}: {_headline(transcript)}"]
    if transcript.refusal is not None:
        lines += _folded(f"refused: {transcript.refusal}", width, "  ")
    for number, run in enumerate(transcript.runs, 1):
        if len(transcript.runs) > 1:
            lines.append(f"  run {number} of {len(transcript.runs)}")
        lines += _render_run(run, whole, width)
    if transcript.cleaned:
        lines += _folded("cleaned: " + ", ".join(f"{what} {n:,}" for what, n in transcript.cleaned), width, "  ")
    return "\n".join(lines)


def transcript_values(transcript: Transcript) -> dict[str, Any]:
    """A transcript as plain values; every value says what it is."""
    return {
        "kind": transcript.kind,
        "outcome": transcript.outcome.value,
        "refusal": None
        if transcript.refusal is None
        else {
            "reason": transcript.refusal.reason,
            "line": transcript.refusal.line,
            "found": transcript.refusal.found,
        },
        "cleaned": dict(transcript.cleaned),
        "runs": [_run_values(run) for run in transcript.runs],
    }


def value_values(value: Value) -> Any:
    """A number, flag or text as itself, a quantity with its unit, and what is no value with its reason."""
    if isinstance(value, NoValue):
        return {"lack": value.lack.value, "text": value.text, "why": value.why}
    if isinstance(value, Quantity):
        return {"quantity": str(value), "base": value.value, "powers": dict(value.powers)}
    return value


def _run_values(run: Run) -> dict[str, Any]:
    return {
        "tool": run.tool,
        "version": run.version,
        "complete": run.complete,
        "missing": list(run.missing),
        "rejected": run.rejected,
        "unread": [{"line": u.line, "text": u.text, "why": u.why} for u in run.unread],
        "conditions": {name: value_values(value) for name, value in run.conditions},
        "notices": [
            {"code": n.code, "weight": n.weight.value, "message": n.message, "line": n.line} for n in run.notices
        ],
        "observations": [
            {"name": o.name, "value": value_values(o.value), "subject": dict(o.subject), "line": o.line}
            for o in run.observations
        ],
    }


def _headline(transcript: Transcript) -> str:
    count = sum(len(run.observations) for run in transcript.runs)
    rejected = sum(run.rejected for run in transcript.runs)
    said = {Outcome.READ: "read", Outcome.PARTLY: "read in part", Outcome.REFUSED: "not read"}[transcript.outcome]
    if transcript.outcome is Outcome.REFUSED:
        return said
    return f"{said}, {count:,} value{'s' if count != 1 else ''}" + (
        f", {rejected:,} row{'s' if rejected != 1 else ''} rejected" if rejected else ""
    )


def _render_run(run: Run, whole: bool, width: int) -> list[str]:
    lines = [f"  {run.tool}" + (f" {run.version}" if run.version else "")]
    if run.conditions:
        lines += _folded("; ".join(f"{name} {_say(value)}" for name, value in run.conditions), width, "    ")
    notices = sorted(run.notices, key=lambda n: _WEIGHTS.index(n.weight))
    shown = notices if whole else notices[:_NOTICES]
    for notice in shown:
        place = f" (line {notice.line})" if notice.line else ""
        lines += _folded(f"{notice.weight.value}: {notice.message}{place} [{notice.code}]", width, "  ")
    if len(shown) < len(notices):
        lines.append(f"  {len(notices) - len(shown)} more notices; --all shows them")
    for part in run.missing:
        lines += _folded(f"incomplete: {part}", width, "  ")
    lines += _table(run.observations, whole, width)
    if run.rejected:
        lines.append(f"  not read, {run.rejected:,} in all:")
        lines += [f"    line {u.line}: {u.why}: {u.text}"[:width] for u in run.unread]
    return lines


def _table(observations: Sequence[Observation], whole: bool, width: int) -> list[str]:
    """Rows are subjects, columns names; what has no common columns becomes one line each."""
    blocks: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, str]]] = {}
    for o in observations:
        keys = tuple(k for k, _ in o.subject)
        row = blocks.setdefault(keys, {}).setdefault(tuple(v for _, v in o.subject), {})
        name = o.name
        while name in row:
            name += "′"
        row[name] = _say(o.value)
    lines: list[str] = []
    for keys, rows in blocks.items():
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        if len(names) > _COLUMNS:
            lines += _long_rows(keys, rows, whole, width)
        else:
            lines += _wide_rows(keys, rows, names, whole, width)
    return lines


def _wide_rows(
    keys: tuple[str, ...], rows: dict[tuple[str, ...], dict[str, str]], names: list[str], whole: bool, width: int
) -> list[str]:
    head = [*keys, *names]
    body = [[*subject, *(row.get(name, "") for name in names)] for subject, row in rows.items()]
    shown = body if whole or len(body) <= _ROWS else [*body[: _ROWS // 2], *body[-_ROWS // 2 :]]
    sizes = [max(len(row[i]) for row in [head, *shown]) for i in range(len(head))]
    lines = ["    " + "  ".join(c.ljust(s) for c, s in zip(row, sizes, strict=True)).rstrip() for row in [head, *shown]]
    if len(shown) < len(body):
        lines.insert(1 + _ROWS // 2, f"    … {len(body) - len(shown):,} more rows; --all shows them")
    return [line if whole or len(line) <= width else line[: width - 1] + "…" for line in lines]


def _long_rows(
    keys: tuple[str, ...], rows: dict[tuple[str, ...], dict[str, str]], whole: bool, width: int
) -> list[str]:
    lines: list[str] = []
    items = list(rows.items())
    for subject, row in items if whole else items[:_ROWS]:
        named = ", ".join(f"{k} {v}" for k, v in zip(keys, subject, strict=True))
        lines += _folded((f"{named}: " if named else "") + "; ".join(f"{n} {v}" for n, v in row.items()), width, "    ")
    if not whole and len(items) > _ROWS:
        lines.append(f"    … {len(items) - _ROWS:,} more; --all shows them")
    return lines


def _say(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | int):
        return f"{value:.10g}"
    return " ".join(str(value).split())


def _folded(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        max(60, width),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [indent]
