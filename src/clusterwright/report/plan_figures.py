"""Figures of a plan by name, their derivations as text and values, and the whole plan as plain values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final

from clusterwright.lib.figures import Figure, explain_lines
from clusterwright.plan.results.money import UnitCost
from clusterwright.plan.results.plans import Plan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.report.plan_words import percent

#: Words that the plan prints → last parts of the names of the figures that they stand for.
ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "busbw": ("bound", "reference"),
    "kv": ("kv_pool", "kv_tokens", "kv_per_token", "cache"),
    "load": ("replica_rate", "rate"),
    "latency": ("ttft", "tpot"),
    "loss": ("capacity_after_1_lost",),
    "month": ("total", "compute"),
    "useful": ("utilisation", "implied_utilisation", "useful_gpu_hour"),
    "speed": ("tokens_per_s", "network_time"),
    "failures": ("mttf", "goodput"),
    "memory": ("memory.total", "memory.usable"),
    "payload": ("required_rate", "payload_rate"),
    "cold start": ("cold_start", "cold_start_cached"),
    "checkpoint": ("checkpoint_plan.size", "checkpoint_plan.stall", "checkpoint_plan.best"),
    "capacity": ("gpu_months", "useful_per_gpu_month"),
    "unit cost": ("unit_cost", "unit_cost_at_load"),
    "placement": ("nodes",),
    "even": ("break_even",),
    "step": ("step_time", "service.step"),
    "network": ("network_time", "nic_rate", "node_rate"),
}
_NEAREST: Final = 6


def figure_names(plan: Plan, *, computed: bool = False) -> tuple[str, ...]:
    """Names that `--explain` knows, without those of choices that were not taken; only of computed figures if asked."""
    names = (n for n, f in plan.figures.items() if ".choices." not in n and not (computed and f.is_leaf))
    return tuple(sorted(names))


def find_figure(plan: Plan, name: str) -> Figure | tuple[str, ...]:
    """The figure of that name or unique ending; else the few names most likely meant, nearest first."""
    if name in plan.figures:
        return plan.figures[name]
    names = figure_names(plan)
    ending = _ending(names, name)
    words = [n for meant in ALIASES.get(name.lower().replace("_", " "), ()) for n in _ending(names, meant)]
    if len({id(plan.figures[n]) for n in ending}) == 1 and not (words and plan.figures[ending[0]].is_leaf):
        return plan.figures[ending[0]]
    near = [*words, *ending]
    near += [n for n in names if name and name.lower() in n.lower()]
    last = {n.rpartition(".")[2]: n for n in names}
    near += [last[n] for n in get_close_matches(name.rpartition(".")[2], last, n=3, cutoff=0.6)]
    near += get_close_matches(name, names, n=5, cutoff=0.6)
    return tuple(dict.fromkeys(near))[:_NEAREST]


def _ending(names: tuple[str, ...], name: str) -> list[str]:
    return [n for n in names if n == name or n.endswith("." + name)]


def render_derivation(figure: Figure) -> str:
    """The tree of a figure: every number with unit, origin, source or formula, band; leaves by effect after it."""
    lines = explain_lines(figure)
    if figure.is_leaf:
        return "\n".join(lines)
    if any(not i.is_leaf for i in figure.inputs):
        told = "; ".join(f"{i.name.rpartition('.')[2]} {i}" for i in figure.inputs)
        lines.insert(1, f"  from {told}")
    moved = [(leaf, effect) for leaf, effect in figure.effects if effect >= 1e-3]
    lines += ["", "changes most with (for a 10 % change of each):"] if moved else []
    width = max((len(leaf.name) for leaf, _ in moved), default=0)
    lines += [f"  {leaf.name:{width}}  {percent(effect):>7}  [{leaf.origin.word}]" for leaf, effect in moved[:10]]
    return "\n".join(lines)


def derivation_values(figure: Figure) -> dict[str, Any]:
    """The tree of a figure as plain values; a computed figure that occurs again stands there without its inputs."""
    seen = set[str]()

    def tree(node: Figure) -> dict[str, Any]:
        values: dict[str, Any] = {"name": node.name} | _full(node)
        again = node.name in seen and not node.is_leaf
        seen.add(node.name)
        values["inputs"] = [] if again else [tree(i) for i in node.inputs]
        return values | ({"see_above": True} if again else {})

    effects = [
        {"name": leaf.name, "origin": leaf.origin.word, "effect": _number(effect)}
        for leaf, effect in ([] if figure.is_leaf else figure.effects)
        if effect >= 1e-3
    ]
    return tree(figure) | {"changes_with_10_percent": effects}


def plan_values(plan: Plan) -> dict[str, Any]:
    """The plan as plain values. Figures stand in `figures` in full; elsewhere as name, value, unit, origin."""
    values: dict[str, Any] = _plain(plan)
    values["fits"] = plan.fits
    values["figures"] = {name: _full(figure) for name, figure in plan.figures.items()}
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Figure):
        return {"name": value.name, "value": _number(value.value), "unit": value.unit, "origin": value.origin.word}
    if isinstance(value, Unplanned):
        return {"unplanned": value.subject, "reason": value.reason, "missing": list(value.missing)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        plain = {f.name: _plain(getattr(value, f.name)) for f in fields if f.name != "figures"}
        return plain | {"swings": _plain(value.swings)} if isinstance(value, UnitCost) else plain
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value.value if isinstance(value, Enum) else _number(value) if isinstance(value, float) else value


def _full(figure: Figure) -> dict[str, Any]:
    return {
        "value": _number(figure.value),
        "unit": figure.unit,
        "origin": figure.origin.word,
        "basis": figure.basis,
        "inputs": [i.name for i in figure.inputs],
        "band": list(figure.band) if figure.band else None,
    }


def _number(value: float) -> float | str:
    """JSON has no infinity: it is written as text."""
    return value if math.isfinite(value) else ("infinite" if value > 0 else "-infinite")
