"""What happened in a rehearsal and when: numbered marks on a line, spans from the loss, and the same as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Moment, MomentKind, Rehearsal
from clusterwright.report.html.drawing import box, line, moved, share, strip, words
from clusterwright.report.html.elements import Child, Html, h
from clusterwright.report.html.words import metric_words, value_words

#: Marks nearer to each other than this share of the line are drawn as one.
NEAR: Final = 0.05
#: Spans that begin with the loss: metric of a reading → class of its colour.
_SPANS: Final = {"detection_time": "found", "recovery_time": "virtual"}


def render_timeline(rehearsal: Rehearsal) -> Html:
    """The timeline as a drawing that stretches, and as a list; "" when nothing was recorded."""
    events = sorted(rehearsal.timeline, key=lambda m: m.at_s)
    if not events:
        return Html("")
    began, ended = events[0].at_s, events[-1].at_s
    scale = _Scale(began, max(ended - began, 1e-3))
    spans = _spans(rehearsal, events)
    base = 34.0
    shapes: list[Child] = [line(share(scale.at(began)), base, share(scale.at(ended)), base, "axis", width=2)]
    shapes += [_mark(first, last, scale, base, events) for first, last in _near(events, scale)]
    for index, span in enumerate(spans):
        shapes += _span(span, scale, base + 12 + 22 * index)
    height = base + 34 + 22 * len(spans)
    for tick in range(5):
        anchor = "" if tick == 0 else " end" if tick == 4 else " mid"
        moment = began + scale.length * tick / 4
        shapes.append(words(share(scale.at(moment)), height - 6, f"{moment:.1f} s", f"s11 t-soft{anchor}"))
    said = "; ".join(f"{m.at_s:.2f} s {m.what}" for m in events)
    listed = (h("li", h("b", f"{m.at_s:.2f} s "), m.what) for m in events)
    drawn = h("div", strip(height, *shapes, label=f"Timeline: {said}"), cls="line")
    return h("figure", drawn, h("ol", listed), cls="timeline")


class _Scale:
    """Seconds → share of the width, with room for a mark at both ends."""

    def __init__(self, began: float, length: float) -> None:
        self.began, self.length = began, length

    def at(self, moment: float) -> float:
        return 0.04 + 0.92 * min(1.0, max(0.0, (moment - self.began) / self.length))


def _near(events: Sequence[Moment], scale: _Scale) -> list[tuple[int, int]]:
    """(first, last) number of each run of events that share a mark; numbers count from 1."""
    runs: list[tuple[int, int]] = []
    for number, moment in enumerate(events, 1):
        if runs and scale.at(moment.at_s) - scale.at(events[runs[-1][0] - 1].at_s) < NEAR:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _mark(first: int, last: int, scale: _Scale, base: float, events: Sequence[Moment]) -> Child:
    """A mark with its numbers, red where a loss is among them."""
    x = share(scale.at(events[first - 1].at_s))
    run = events[first - 1 : last]
    label = str(first) if first == last else f"{first}–{last}"
    tip = "; ".join(f"{m.at_s:.2f} s: {m.what}" for m in run)
    colour = "lost" if any(m.kind is MomentKind.LOSS for m in run) else "virtual"
    width = 18.0 if len(label) < 3 else 8.0 + 7.0 * len(label)
    return (
        line(x, base, x, base - 12, "axis"),
        moved(
            x,
            box(-width / 2, base - 30, width, 18, colour, radius=9, tip=tip),
            words(0, base - 17, label, "s11 mid t-on t-bold"),
        ),
    )


def _spans(rehearsal: Rehearsal, events: Sequence[Moment]) -> list[tuple[str, str, float, float]]:
    """(words, class, from, to) of each time that a reading gives, from the loss on."""
    loss = next((m.at_s for m in events if m.kind is MomentKind.LOSS), None)
    if loss is None:
        return []
    return [
        (f"{metric_words(r.metric)} {value_words(r.value)}", _SPANS[r.metric], loss, loss + r.value.value)
        for r in rehearsal.readings
        if r.metric in _SPANS and isinstance(r.value, Quantity)
    ]


def _span(span: tuple[str, str, float, float], scale: _Scale, y: float) -> list[Child]:
    said, colour, start, end = span
    left, right = scale.at(start), scale.at(end)
    late = right > 0.6
    label = words(-8 if late else 8, y + 11, said, "s12 end" if late else "s12")
    bar = box(share(left), y, share(max(right - left, 0.004)), 14, colour, radius=3)
    return [bar, moved(share(left if late else max(right, left + 0.004)), label)]
