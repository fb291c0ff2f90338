"""What outputs prove, as one page of text."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.judging.advising import Advised
from clusterwright.judging.causes import Chain
from clusterwright.judging.meaning import Meaning
from clusterwright.judging.outliers import Group, Outlier
from clusterwright.judging.outputs import Judged, JudgedOutput, Kept
from clusterwright.judging.yardsticks import Yardstick
from clusterwright.lib.hostlists import fold
from clusterwright.lib.quantities import Quantity
from clusterwright.lib.scales import DAY_S
from clusterwright.model.evidence import Evidence, Outcome, Reading, Verdict
from clusterwright.model.observations import Weight

#: Lines under a heading before the rest is counted; --all shows them.
_SHOWN: Final = 6
_INDENT: Final = "  "


def render_judgement(judged: Judged, *, whole: bool = False, width: int = 120) -> str:
    """The verdicts first, then what is wrong, then what each output proves.

    Args:
        whole: nothing is folded.
        width: columns of the terminal.
    """
    page = _Page(width, whole)
    names = _short_names(judged.outputs)
    _add_coverage(page, judged)
    _add_verdicts(page, judged, names, Outcome.NOT_MET)
    _add_causes(page, judged, names)
    _add_errors(page, judged, names)
    _add_advice(page, judged.outputs, names)
    _add_outliers(page, judged.groups)
    _add_unmeasured(page, judged)
    _add_verdicts(page, judged, names, Outcome.MET)
    _add_verdicts(page, judged, names, Outcome.NOT_APPLICABLE)
    _add_yardsticks(page, judged.outputs, names)
    if judged.coverage is None:
        told: set[Meaning] = set()
        for output in judged.outputs:
            _add_output(page, output, told, {c.root.path for c in judged.causes})
        for kept in judged.kept:
            _add_kept(page, kept)
    else:
        _add_sources(page, judged, names)
    return "\n".join(page.lines).strip("\n")


_Names = dict[str, str]


def _short_names(outputs: Sequence[JudgedOutput]) -> _Names:
    """path → as many of its last parts as tell it from all others."""
    parts = {o.path: o.path.rstrip("/").split("/") for o in outputs}
    names: _Names = {}
    length = 0
    while len(names) < len(parts):
        length += 1
        ends = {path: "/".join(split[-length:]) for path, split in parts.items()}
        counts = Counter(ends.values())
        names |= {p: end for p, end in ends.items() if p not in names and (counts[end] == 1 or length >= len(parts[p]))}
    return names


class _Page:
    """Lines of at most `width` columns under headings."""

    def __init__(self, width: int, whole: bool) -> None:
        self.lines: list[str] = []
        self._width = max(60, width)
        self.whole = whole

    def head(self, text: str) -> None:
        self.lines += ["", *textwrap.wrap(text, self._width)]

    def items(self, items: Sequence[str], hint: str = "--all shows them") -> None:
        shown = items if self.whole else items[:_SHOWN]
        for item in shown:
            self.item(item)
        if len(shown) < len(items):
            self.lines.append(f"{_INDENT}and {len(items) - len(shown):,} more; {hint}")

    def item(self, text: str, depth: int = 1) -> None:
        indent = _INDENT * depth
        self.lines += textwrap.wrap(
            text,
            self._width,
            initial_indent=indent,
            subsequent_indent=indent + _INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _add_coverage(page: _Page, judged: Judged) -> None:
    coverage = judged.coverage
    if coverage is None:
        for remark in judged.remarks:
            page.item(remark, 0)
        return
    total = coverage.met + coverage.not_met + coverage.not_measured + coverage.not_applicable
    age = f"; the oldest evidence is {coverage.oldest_age_s / DAY_S:.1f} days old" if coverage.oldest_age_s else ""
    page.lines.append(
        f"{judged.name}: {coverage.met} of {total} required claims met, {coverage.not_met} not met, "
        f"{coverage.not_measured} not measured{age}"
    )
    for remark in judged.remarks:
        page.item(remark)


def _add_verdicts(page: _Page, judged: Judged, names: _Names, outcome: Outcome) -> None:
    verdicts = [v for v in judged.verdicts if v.outcome is outcome]
    if verdicts:
        page.head(f"{outcome.value}:")
        page.items(list(_tell_verdicts(verdicts, judged, names)))


def _add_unmeasured(page: _Page, judged: Judged) -> None:
    """Never folded: each has a next step."""
    verdicts = [v for v in judged.verdicts if v.outcome is Outcome.NOT_MEASURED]
    if verdicts:
        page.head(f"{Outcome.NOT_MEASURED.value}:")
        for text in _tell_unmeasured(verdicts):
            page.item(text)


def _tell_verdicts(verdicts: Sequence[Verdict], judged: Judged, names: _Names) -> Iterator[str]:
    sources = {o.evidence.id: f" [{names[o.path]}, {o.timed}]" for o in judged.outputs}
    for kept in judged.kept:
        sources |= {e.id: f" [{kept.source}, {_tell_record(e)}]" for e in kept.evidence}
    for verdict in verdicts:
        yield f"{_name(verdict)}: {verdict.reason}{sources.get(verdict.evidence_id, '')}"


def _tell_record(record: Evidence) -> str:
    """A kept record by tool, time and the beginning of its id."""
    return f"{record.tool} of {record.ended:%Y-%m-%d %H:%M} UTC, {record.id.removeprefix('sha256:')[:12]}"


def _tell_unmeasured(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Claims with the same reason and the same next step together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.reason, verdict.next_step), []).append(_name(verdict))
    for (reason, step), claims in groups.items():
        yield f"{', '.join(claims)}: {reason}" + (f" → {step}" if step else "")


def _name(verdict: Verdict) -> str:
    return verdict.id if verdict.requirement.required else f"{verdict.id} (informational)"


def _add_causes(page: _Page, judged: Judged, names: _Names) -> None:
    """Root causes with what follows from them."""
    if judged.causes:
        page.head("root causes, before their consequences:")
        page.items([_tell_chain(chain, names) for chain in judged.causes])


def _tell_chain(chain: Chain, names: _Names) -> str:
    root = chain.root
    where = f"{root.where}: " if root.where else ""
    at = f" at {root.first.text}" if root.first is not None else ""
    told = [f"{where}{root.name}{at} ({names[root.path]}:{root.line})"]
    for consequence in chain.consequences:
        event = consequence.event
        on = f" on {event.where}" if event.where and event.where != root.where else ""
        after = f", {consequence.after_s:.6g} s later" if consequence.after_s is not None else ""
        doubt = f", {consequence.doubt}" if consequence.doubt else ""
        told.append(f"{event.name}{on}{after}{doubt} ({names[event.path]}:{event.line})")
    return " → ".join(told)


def _add_errors(page: _Page, judged: Judged, names: _Names) -> None:
    """What outputs show to be wrong; what kept records show counts only as the verdicts say, where there are any."""
    items = [f"{', '.join(names[path] for path in twice.paths)}: {twice}" for twice in judged.twice]
    items += dict.fromkeys(_errors(judged.outputs, names))
    if judged.coverage is None:
        items += [
            f"{kept.source}, {_tell_record(record)}: {_tell_reading(reading)}"
            for kept in judged.kept
            for record, reading in kept.failures
        ]
    if items:
        page.head("wrong:")
        page.items(items)


def _errors(outputs: Sequence[JudgedOutput], names: _Names) -> Iterator[str]:
    for output in outputs:
        name = names[output.path]
        for notice in output.errors:
            yield f"{name}{f':{notice.line}' if notice.line else ''}: {notice.message}"
        if not output.errors:
            for reading in output.failures:
                yield f"{name}: {_tell_reading(reading)}"
        for yardstick in output.yardsticks:
            if yardstick.impossible:
                yield f"{name}: {_tell_yardstick(yardstick)}"


def _add_advice(page: _Page, outputs: Sequence[JudgedOutput], names: _Names) -> None:
    """What to do, hardware first; of what concerns the jobs only how often it stands there."""
    serious = [(output, a) for output in outputs for a in output.advice if not a.harmless]
    harmless = [a for output in outputs for a in output.advice if a.harmless]
    if not serious and not harmless:
        return
    page.head("what to do:")
    page.items([f"{names[output.path]}{f':{a.line}' if a.line else ''}: {_tell_advice(a)}" for output, a in serious])
    if harmless and not page.whole:
        codes = ", ".join(dict.fromkeys(a.what for a in harmless))
        page.item(f"nothing about the hardware for {codes}; --all shows what they say about jobs")
    elif harmless:
        page.items([_tell_advice(a) for a in harmless])


def _tell_advice(advised: Advised) -> str:
    why = f" ({advised.why})" if advised.why else ""
    others = "".join(f"; {source}: {what}" for source, what in advised.others)
    at = f" at {advised.where}" if advised.where else ""
    return f"{advised.what}{at}: {advised.do}{why} [{advised.source}{others}]"


def _add_outliers(page: _Page, groups: Sequence[Group]) -> None:
    odd = [o for group in groups for o in group.outliers]
    if odd:
        page.head("differ from their peers:")
        page.items([_tell_outlier(o) for o in odd])


def _tell_outlier(outlier: Outlier) -> str:
    side = "worse" if outlier.worse else "better, look at it again"
    score = "" if outlier.score == float("inf") else f", {outlier.score:.1f} deviations"
    return (
        f"{outlier.node}: {outlier.metric} {_say(outlier.value)}{_under(outlier.conditions)}; "
        f"{outlier.peers} peers {_say(outlier.usual)}{score} ({side})"
    )


def _add_yardsticks(page: _Page, outputs: Sequence[JudgedOutput], names: _Names) -> None:
    items = [
        f"{names[output.path]}: {_tell_yardstick(y)}"
        for output in outputs
        for y in output.yardsticks
        if y.ceiling is not None
    ]
    if items:
        page.head("beside what the system can reach:")
        page.items(items)


def _tell_yardstick(y: Yardstick) -> str:
    size = format_size(y.size)
    if y.ceiling is None:
        return f"{y.operation} at {size}: {y.busbw:.4g} GB/s busbw; no ceiling: {y.lacks}"
    expected = y.ceiling.expected
    against = (
        f"{y.ceiling.published.busbw:g} published ({y.ceiling.published.source})"
        if y.ceiling.published is not None
        else f"{expected:.4g} of a flat ring"
    )
    verdict = f"{100 * y.busbw / expected:.0f}% of {against}"
    if y.ceiling.bound < y.busbw:
        verdict = "above the bound: it measured something else, or the system is not the assumed one"
    assumed = f"; assumed: {y.assumed}" if y.assumed else ""
    return (
        f"{y.operation} at {size} on {y.system}: {y.busbw:.4g} GB/s busbw, bound {y.ceiling.bound:.4g}, "
        f"{verdict}{assumed}"
    )


def format_size(size: float) -> str:
    """Bytes in binary units when they are whole there."""
    for unit, scale in (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)):
        if size >= scale and (size / scale).is_integer():
            return f"{size / scale:g} {unit}"
    return f"{size:,.0f} B"


def _add_output(page: _Page, output: JudgedOutput, told: set[Meaning], rooted: set[str]) -> None:
    """One output; what its kind proves is told at the first one of that kind.

    Args:
        rooted: outputs whose root causes were told already.
    """
    kind = output.transcript.kind or "unknown kind"
    page.head(f"{output.path}: {kind}, {output.transcript.outcome.value}")
    if output.transcript.refusal is not None:
        page.item(f"refused: {output.transcript.refusal}")
    if output.named:
        page.item(f"on {output.named}; {output.timed}: {output.evidence.ended:%Y-%m-%d %H:%M} UTC")
    if output.meaning not in told:
        page.item(f"proves: {output.meaning.proves}")
        page.item(f"does not prove: {output.meaning.does_not}")
        told.add(output.meaning)
    again = {"root-cause"} if output.path in rooted else set()
    warnings = [n for n in output.notices if n.weight is Weight.WARNING and n.code not in again]
    page.items([f"warning: {n.message}" + (f" (line {n.line})" if n.line else "") for n in warnings])
    readings = output.evidence.readings if page.whole else _fold_rows(output.evidence.readings)
    page.items(list(_tell_values(readings)))
    page.items(list(_tell_gaps(output.evidence.readings)))


def _add_kept(page: _Page, kept: Kept) -> None:
    """The records of a store or bundle with their values."""
    page.head(f"{kept.source}: {len(kept.evidence)} records")
    told = []
    for record in kept.evidence:
        on = f" on {fold(record.nodes)}" if record.nodes else ""
        readings = record.readings if page.whole else _fold_rows(record.readings)
        values = [*_tell_values(readings, on_nodes=False), *_tell_gaps(record.readings)]
        told.append(f"{_tell_record(record)}{on}: {'; '.join(values) or 'no value'}")
    page.items(told)


def _fold_rows(readings: Sequence[Reading]) -> list[Reading]:
    """Of a table over message sizes the rows of the largest size; bus bandwidth stands for algorithm bandwidth."""
    largest: dict[tuple[str, str], float] = {}
    sized: list[tuple[Reading, tuple[str, str], float]] = []
    metrics = {reading.metric for reading in readings if reading.value is not None}
    for reading in readings:
        if reading.metric == "algbw" and "busbw" in metrics:
            continue
        seen = dict(reading.conditions)
        size = seen.get("message_size", "").removesuffix(" B")
        key = (reading.metric, seen.get("operation", ""))
        number = float(size) if size.isdecimal() else 0.0
        sized.append((reading, key, number))
        largest[key] = max(largest.get(key, 0.0), number)
    return [reading for reading, key, number in sized if number == largest[key]]


def _tell_values(readings: Sequence[Reading], *, on_nodes: bool = True) -> Iterator[str]:
    """One item for values that differ in nothing but the buffers (in or out of place)."""
    groups: dict[Reading, list[str]] = {}
    for reading in readings:
        if reading.value is None:
            continue
        bare = tuple(c for c in reading.conditions if c[0] != "in_place")
        place = {"true": " in place", "false": " out of place"}.get(dict(reading.conditions).get("in_place", ""), "")
        key = Reading(reading.metric, None, bare, reading.nodes)
        groups.setdefault(key, []).append(f"{_say(reading.value)}{place}")
    for key, values in groups.items():
        nodes = f" on {fold(key.nodes)}" if key.nodes and on_nodes else ""
        yield f"{key.metric} {', '.join(values)}{_under(key.conditions)}{nodes}"


def _tell_gaps(readings: Sequence[Reading]) -> Iterator[str]:
    """One item per reason why something has no value."""
    by_reason: dict[str, dict[str, None]] = {}
    for reading in readings:
        if reading.value is None:
            by_reason.setdefault(reading.unreadable, {})[reading.metric] = None
    for reason, metrics in by_reason.items():
        yield f"not measured: {', '.join(metrics)}: {reason}"


def _tell_reading(reading: Reading) -> str:
    nodes = f" on {fold(reading.nodes)}" if reading.nodes else ""
    return f"{reading.metric} {_say(reading.value)}{_under(reading.conditions)}{nodes}"


def _under(conditions: Sequence[tuple[str, str]]) -> str:
    return "".join(f", {name.replace('_', ' ')} {_size(name, text)}" for name, text in conditions)


def _size(name: str, text: str) -> str:
    number = text.removesuffix(" B")
    return format_size(float(number)) if name == "message_size" and number.isdecimal() else text


def _add_sources(page: _Page, judged: Judged, names: _Names) -> None:
    page.head("evidence:")
    page.items([_tell_kept(kept) for kept in judged.kept])
    page.items(
        [
            f"{names[o.path]}: {o.transcript.kind or 'unknown kind'}, {o.transcript.outcome.value}"
            + (f": {o.transcript.refusal}" if o.transcript.refusal else "")
            + (f"; on {o.named}" if o.named else "; hosts not known")
            + f"; {o.evidence.ended:%Y-%m-%d %H:%M} UTC ({o.timed})"
            for o in judged.outputs
        ]
    )


def _tell_kept(kept: Kept) -> str:
    times = [record.ended for record in kept.evidence]
    when = f", taken {min(times):%Y-%m-%d} to {max(times):%Y-%m-%d}" if times else ""
    return f"{kept.source}: {len(kept.evidence)} records{when}"


def _say(value: Quantity | float | bool | str | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
