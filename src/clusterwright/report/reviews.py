"""A review as text, the findings that change most first with their source line, and as plain values for JSON."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from clusterwright.lib.errors import Place
from clusterwright.model.documents import Places
from clusterwright.model.findings import AREAS, Finding, Severity
from clusterwright.review.reviews import Review, WaiverUse
from clusterwright.review.rules import Rule

#: Version of the JSON form; a change that removes or renames a key raises it.
SCHEMA: Final = "clusterwright/review/v1"
RULES_SCHEMA: Final = "clusterwright/rules/v1"
#: Rules that are shown whole before the rest is folded.
FIRST: Final = 5
#: Places of one rule that are shown whole.
PLACES: Final = 3
#: Columns that text is wrapped to: those of the terminal, within these bounds.
NARROWEST: Final = 60
WIDTH: Final = 120
_COLOURS: Final = {Severity.ERROR: "\x1b[31m", Severity.WARNING: "\x1b[33m", Severity.NOTE: "\x1b[36m"}


def render_review(
    review: Review, places: Places, *, name: str, whole: bool = False, colour: bool = False, width: int = WIDTH
) -> str:
    """The review for people.

    Args:
        name: of the cluster.
        width: columns of the terminal; NARROWEST to WIDTH of them are used.
        whole: show every finding; else the FIRST rules that change most, the rest folded by area.
        colour: with ANSI colours.
    """
    width = _columns(width)
    groups = _by_rule(review.findings)
    shown = groups if whole else groups[:FIRST]
    rest = [finding for group in groups[len(shown) :] for finding in group]
    blocks = [[_headline(review, name)]]
    blocks += [_group(group, places, whole, width) for group in shown]
    blocks += [_folded(rest), _waived(review, places), _counts(review)]
    text = "\n\n".join(_block(block, width) for block in blocks if block)
    return _paint(text) if colour else text


def _columns(width: int) -> int:
    return min(max(width, NARROWEST), WIDTH)


def _block(lines: Iterable[str], width: int) -> str:
    return "\n".join(_shown(line) for text in lines for line in _wrapped(text, width))


def _by_rule(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings of one rule and kind together, in the order of the first of each."""
    groups: dict[tuple[str, bool, int], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.undecided, finding.severity), []).append(finding)
    return list(groups.values())


def _headline(review: Review, name: str) -> str:
    return f"{name}: review for stage {review.stage}, {review.today}: {review.state}"


def _group(group: Sequence[Finding], places: Places, whole: bool, width: int) -> list[str]:
    first = group[0]
    owners = ", ".join(dict.fromkeys(f.owner for f in group if f.owner)) or "nobody"
    count = f" ×{len(group)}" if len(group) > 1 else ""
    lines = [f"{_word(first)} {first.rule}{count}  ({first.area}, owner {owners})"]
    limit = len(group) if whole else PLACES
    shown = group[:limit]
    for finding, following in zip(shown, [*shown[1:], None], strict=True):
        lines.append(_said(finding, places))
        if following is None or following.place != finding.place:  # findings at one place share its source line
            lines += _quoted(finding, places, width)
    if len(group) > limit:
        lines.append(f"  and {_many(len(group) - limit, 'more place')} (--all)")
    return lines + [f"  do: {action}" for action in dict.fromkeys(f.action for f in shown)]


def _word(finding: Finding) -> str:
    return f"undecided {finding.severity.word}" if finding.undecided else finding.severity.word


def _shown(line: str) -> str:
    """A line without control characters: names come from the file, and a terminal would obey them."""
    return "".join(c if c.isprintable() else "�" for c in line)


def _paint(text: str) -> str:
    """The text with the word that begins a finding coloured by its severity."""
    for severity, colour in _COLOURS.items():
        word = severity.word
        text = re.sub(rf"(?m)^(undecided )?{word}(?= [a-z0-9-]+.*\()", f"{colour}\\g<0>\x1b[0m", text)
    return text


def _absent(finding: Finding, places: Places) -> bool:
    return bool(places.values) and not places.has(finding.path)


def _said(finding: Finding, places: Places) -> str:
    return f"  {finding.place}: {finding.message}" + (f" [{finding.path}]" if _absent(finding, places) else "")


def _quoted(finding: Finding, places: Places, width: int) -> Iterator[str]:
    source = places.line_of(finding.place)
    if source and not (_absent(finding, places) and finding.place == places.of("")):  # the file's start shows nothing
        number = str(finding.place.line)
        text, column = _cut(source, finding.place.column, width - len(f"  {number} | "))
        yield f"  {number} | {text}"
        yield f"  {' ' * len(number)} | {' ' * (column - 1)}^"


def _cut(line: str, column: int, room: int) -> tuple[str, int]:
    """The part of a source line around a column that fits in `room` columns, and the column in that part."""
    line = line.replace("\t", " ").rstrip()
    if len(line) <= room:
        return line, max(1, column)
    start = max(0, min(column - 1 - room // 3, len(line) - room))
    part = ("…" if start else line[0]) + line[start + 1 : start + room]
    if start + room < len(line):
        part = part[:-1] + "…"
    return part, max(1, column - start)


def _wrapped(text: str, width: int) -> list[str]:
    """Long messages over several lines; source lines and carets stay as they are."""
    if " | " in text[:12] or len(text) <= width:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _folded(rest: Sequence[Finding]) -> list[str]:
    if not rest:
        return []
    lines = [f"{_many(len(rest), 'more finding')} by area; --all shows each:"]
    for area in AREAS:
        here = [f for f in rest if f.area == area]
        if here:
            names = Counter(f"{f.rule} (undecided)" if f.undecided else f.rule for f in here)
            rules = ", ".join(f"{rule} ×{n}" if n > 1 else rule for rule, n in names.items())
            lines.append(f"  {area:<13} {_tally(here)}: {rules}")
    return lines


def _tally(findings: Iterable[Finding]) -> str:
    counts = Counter("undecided" if f.undecided else f.severity.word for f in findings)
    words = [_many(counts[w], w) for w in ("error", "warning", "note") if counts[w]]
    return ", ".join(words + ([f"{counts['undecided']} undecided"] if counts["undecided"] else []))


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _waived(review: Review, places: Places) -> list[str]:
    if not review.waivers:
        return []
    lines = ["Waivers:"]
    for use in review.waivers:
        covers = (
            f"applied to {_many(use.findings, 'finding')}" if use.state == "applied" else f"{use.state}: covers nothing"
        )
        place = places.of(use.path)
        lines.append(f"  {place}: {use.rule}, {covers}; {use.reason} ({use.owner}, until {use.expires})")
    for finding in review.waived:
        lines.append(f"  waived {finding.severity.word} {finding.rule} at {finding.place}: {finding.message}")
    return lines


def _counts(review: Review) -> list[str]:
    found = [
        _many(len(review.errors), "error"),
        _many(len(review.warnings), "warning"),
        _many(len(review.notes), "note"),
        f"{len(review.undecided)} undecided",
        f"{len(review.waived)} waived",
    ]
    asked = f"{len(review.evaluated)} rules asked at stage {review.stage}"
    later = f", {len(review.not_required)} only at later stages" if review.not_required else ""
    lines = [f"{', '.join(found)}; {asked}{later}."]
    if review.findings:
        lines.append(f"cw explain {review.findings[0].rule} says why it matters and how to satisfy it.")
    return lines


def review_values(review: Review, places: Places, *, name: str) -> dict[str, Any]:
    """The review as plain values; keys are stable within SCHEMA."""
    return {
        "schema": SCHEMA,
        "cluster": name,
        "stage": review.stage,
        "today": review.today.isoformat(),
        "document": review.digest,
        "state": review.state,
        "counts": {
            "errors": len(review.errors),
            "warnings": len(review.warnings),
            "notes": len(review.notes),
            "undecided": len(review.undecided),
            "waived": len(review.waived),
        },
        "findings": [_finding_values(f, places) for f in review.findings],
        "waived": [_finding_values(f, places) for f in review.waived],
        "waivers": [_waiver_values(w, places) for w in review.waivers],
        "rules": {"evaluated": list(review.evaluated), "not_required": list(review.not_required)},
    }


def _finding_values(finding: Finding, places: Places) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.word,
        "undecided": finding.undecided,
        "area": finding.area,
        "path": finding.path,
        "place": _place_values(finding.place),
        "line": places.line_of(finding.place),
        "message": finding.message,
        "action": finding.action,
        "owner": finding.owner,
        "weight": finding.weight,
        "waived": finding.waived,
    }


def _place_values(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}


def _waiver_values(use: WaiverUse, places: Places) -> dict[str, Any]:
    return {
        "rule": use.rule,
        "place": _place_values(places.of(use.path)),
        "reason": use.reason,
        "owner": use.owner,
        "expires": use.expires.isoformat(),
        "state": use.state,
        "findings": use.findings,
    }


def render_rule(rule: Rule, width: int = WIDTH) -> str:
    """One rule for people: what it catches, why it matters, how to satisfy it, an example, where it comes from."""
    width = _columns(width)
    stages = "every stage" if len(rule.stages) == 3 else f"stage {' and '.join(rule.stages)}"
    lines = [f"{rule.id}  ({rule.severity.word}, {rule.area}, {stages})", ""]
    lines += [*textwrap.wrap(rule.catches, width), ""]
    for label, text in (("Why", rule.why), ("Do", rule.satisfy)):
        lines += textwrap.wrap(f"{label}: {text}", width, subsequent_indent="  ")
    lines += ["", "Example:", *(f"  {line}" for line in rule.example.splitlines()), ""]
    return "\n".join([*lines, *textwrap.wrap(f"Source: {rule.source}", width, subsequent_indent="  ")])


def rule_values(rule: Rule) -> dict[str, Any]:
    """One rule as plain values."""
    return {
        "id": rule.id,
        "severity": rule.severity.word,
        "area": rule.area,
        "stages": list(rule.stages),
        "weight": rule.weight,
        "catches": rule.catches,
        "why": rule.why,
        "satisfy": rule.satisfy,
        "example": rule.example,
        "source": rule.source,
    }


def rules_values(rules: Sequence[Rule]) -> dict[str, Any]:
    """Every rule as plain values; keys are stable within RULES_SCHEMA."""
    return {"schema": RULES_SCHEMA, "rules": [rule_values(rule) for rule in rules]}


def render_rules_page(rules: Sequence[Rule]) -> str:
    """The page docs/rules.md: every rule by area."""
    head = [
        "# Review rules",
        "",
        "Written by `make docs` from `src/clusterwright/review`; do not edit.",
        "",
        f"{len(rules)} rules. An *error* means not ready, a *warning* a risk taken knowingly, a *note* something "
        "worth knowing. A rule that lacks an input is *undecided*: it never passes. Where a rule says so, single "
        "places weigh less or more than the rule. `cw explain RULE` prints one of them; `waivers` in the file accept a "
        "finding until a day.",
        "",
    ]
    for area in AREAS:
        here = [rule for rule in rules if rule.area == area]
        head += [f"- [{area}](#{area}): {len(here)}"]
    body = [line for area in AREAS for line in _area_page(area, [r for r in rules if r.area == area])]
    return "\n".join(head + body) + "\n"


def _area_page(area: str, rules: Sequence[Rule]) -> Iterator[str]:
    yield from ("", f"## {area}")
    for rule in rules:
        stages = "every stage" if len(rule.stages) == 3 else " and ".join(rule.stages)
        yield from (
            "",
            f"### {rule.id}",
            "",
            f"{rule.severity.word} · {stages} · weight {rule.weight}",
            "",
            rule.catches,
        )
        yield from ("", f"*Why:* {rule.why}", "", f"*Do:* {rule.satisfy}", "", "```yaml", rule.example, "```")
        yield from ("", f"*Source:* {rule.source}")
