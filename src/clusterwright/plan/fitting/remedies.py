"""What to change when nothing holds: every change is searched anew, those that hold first, cheapest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.searching.questions import ServingQuestion
from clusterwright.plan.searching.serving import ServingRow, search_serving

#: How far targets are loosened to say what would hold.
_LOOSER: Final = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Remedy:
    """One change with what it brings.

    Args:
        what: in words, with its option. cost: 0 for the same service, higher for what is given up.
    """

    what: str
    row: ServingRow
    cost: int


def remedies(fit: ServingFit) -> tuple[Remedy, ...]:
    """Changes after which the machine holds, the least that is given up first."""
    if fit.verdict == "holds" or fit.refused:
        return ()
    found = list(_found(fit))
    return tuple(sorted(found, key=lambda r: (r.cost, r.row.gpus, r.row.layout.gpus)))


def _found(fit: ServingFit) -> Iterator[Remedy]:
    for what, question, cost in _changes(fit):
        row = _searched(fit, question)
        if row is not None:
            yield Remedy(what, row, cost)
    if fit.verdict == "late":
        yield from _loosened(fit)


def _changes(fit: ServingFit) -> Iterator[tuple[str, ServingQuestion, int]]:
    question, pool = fit.question, fit.question.pool
    if pool.nodes is not None:
        yield "more GPUs (--gpus)", replace(question, pool=fit.machine.pool(None, pool.price_per_gpu_h)), 2
    if question.kv_format == "auto":
        yield "KV cache in fp8 (--kv fp8)", replace(question, kv_format="fp8"), 1
    if question.weights is None and _wide(fit):
        for name in ("fp8", "int4"):
            yield f"weights in {name} (--weights {name})", replace(question, weights=name), 1 if name == "fp8" else 3
    if question.max_model_len is not None:
        shorter = round(question.lengths.mean_in + question.lengths.mean_out)
        if shorter < question.max_model_len and fit.verdict == "too big":
            yield f"sequences of at most {shorter:,} tokens (--context)", replace(question, max_model_len=shorter), 4
    if question.survive_nodes and pool.nodes is not None:
        yield "no loss of a node covered (--survive 0)", replace(question, survive_nodes=0), 4


def _loosened(fit: ServingFit) -> Iterator[Remedy]:
    """The tightest targets that hold, each loosened alone, else both together."""
    question = fit.question
    names = [name for name in ("ttft_s", "tpot_s") if getattr(question, name) is not None]
    for group in [[name] for name in names] + ([names] if len(names) > 1 else []):
        row = None
        for factor in _LOOSER:
            looser = replace(question, **{name: getattr(question, name) * factor for name in group})
            row = _searched(fit, looser)
            if row is not None:
                yield Remedy(_targets(looser, group), row, 3)
                break
        if row is not None:
            return


def _targets(question: ServingQuestion, group: list[str]) -> str:
    told = {
        "ttft_s": f"TTFT {(question.ttft_s or 0) * 1e3:,.0f} ms (--ttft)",
        "tpot_s": f"TPOT {(question.tpot_s or 0) * 1e3:,.0f} ms (--tpot)",
    }
    return "a looser target: " + " and ".join(told[name] for name in group)


def _searched(fit: ServingFit, question: ServingQuestion) -> ServingRow | None:
    return search_serving(question, fit.constants).best


def _wide(fit: ServingFit) -> bool:
    stored: Iterable[str] = {part.stored for part, _ in fit.question.decoder.parts(towers=False)}
    return bool(set(stored) & {"bf16", "fp16", "fp32"})
