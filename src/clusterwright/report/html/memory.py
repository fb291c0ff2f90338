"""Memory of the fullest GPU of each workload as stacked bars, with the line up to which it may be filled."""

from __future__ import annotations

import shlex
from typing import Final

from clusterwright.lib.figures import Figure, format_amount
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.plans import Plan, WorkloadPlan
from clusterwright.report.html.derivations import Derivations
from clusterwright.report.html.drawing import box, legend, line, share, strip
from clusterwright.report.html.elements import Child, Html, fold, h, markup
from clusterwright.report.html.words import origin_badge

#: Parts in the colours of the style sheet; a part that is named otherwise takes the next free one.
_COLOURS: Final = tuple(f"k{i}" for i in range(1, 11))


def render_memory(plan: Plan, derivations: Derivations) -> Html:
    """A bar per workload whose memory was planned; "" when there is none."""
    planned = [(w, w.memory) for w in plan.workloads if isinstance(w.memory, MemoryPlan)]
    if not planned:
        return Html("")
    widest = max(max(m.reported.value, m.total.value) for _, m in planned)
    colours: dict[str, str] = {}
    for _, memory in planned:
        for label, _ in memory.parts:
            colours.setdefault(label, _COLOURS[len(colours) % len(_COLOURS)])
    return markup(
        h("h3", "Memory per GPU"),
        h(
            "p",
            "Of the fullest GPU, in GiB. The dashed line is what the engine may fill; right of it nothing may lie.",
            cls="soft",
        ),
        h("div", (_bar(w, m, widest, colours) for w, m in planned), cls="bars"),
        (_numbers(w, m, derivations) for w, m in planned),
    )


def _bar(workload: WorkloadPlan, memory: MemoryPlan, widest: float, colours: dict[str, str]) -> Html:
    x = 0.0
    shapes: list[Child] = [
        box(0, 4, share(memory.reported.value / widest), 24, "free", tip=f"reported {memory.reported}")
    ]
    for label, figure in memory.parts:
        width = max(0.0, figure.value) / widest
        shapes.append(box(share(x), 4, share(width), 24, f"{colours[label]} gap", tip=f"{label} {figure}"))
        x += width
    limit = share(memory.usable.value / widest)
    shapes.append(line(limit, 0, limit, 32, "limit", width=2))
    parts = ", ".join(f"{label} {figure}" for label, figure in memory.parts)
    said = f"{parts}; total {memory.total} of {memory.usable} usable"
    state = "fits" if memory.fits else "does not fit"
    colour = "good" if memory.fits else "bad"
    return markup(
        h(
            "div",
            h("span", h("b", workload.name), f", {workload.gpu}, {memory.method}"),
            h(
                "span",
                f"{_gib(memory.total)} of {_gib(memory.usable)} usable, {_gib(memory.reported)} reported ",
                origin_badge(memory.total.origin),
                " ",
                h("span", state, cls=f"outcome {colour}"),
            ),
            cls="label",
        ),
        strip(32, *shapes, label=f"{workload.name}: {said}; {state}"),
        legend([*((colours[label], (f"{label} ", h("b", _gib(f)))) for label, f in memory.parts), _free(memory)]),
    )


def _free(memory: MemoryPlan) -> tuple[str, Child]:
    left = memory.usable.value - memory.total.value
    said = f"{format_amount(round(left, 1), memory.usable.unit)}" if left >= 0 else "none"
    return ("free", ("free of what is usable ", h("b", said)))


def _gib(figure: Figure) -> str:
    return format_amount(round(figure.value, 1), figure.unit)


def _numbers(workload: WorkloadPlan, memory: MemoryPlan, derivations: Derivations) -> Html:
    rows: list[tuple[Child, Figure | None]] = [
        *memory.parts,
        ("total", memory.total),
        ("usable", memory.usable),
        ("reported by the GPU", memory.reported),
        ("KV cache per token", memory.kv_bytes_per_token),
        ("KV pool, what is left", memory.kv_pool),
        ("tokens that one replica holds", memory.kv_tokens),
        ("requests of mean length that one replica holds", memory.max_concurrency),
        ("longest sequence that one replica holds", memory.max_context),
    ]
    said = (*memory.why, *memory.notes, *(f"would fit with {c.what}" for c in memory.changes if c.fits))
    notes = h("ul", (h("li", n) for n in said), cls="small") if said else None
    return fold(
        (f"Memory of {workload.name} ", h("span", "every number with its derivation", cls="soft")),
        derivations.ledger(rows),
        notes,
        h("p", "Run as ", h("code", shlex.join(memory.flags)), cls="small") if memory.flags else None,
        h("pre", memory.extra_config) if memory.extra_config else None,
        [h("p", text, cls="small") for text in memory.besides],
        cls="fold",
    )
