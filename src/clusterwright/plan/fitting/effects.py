"""Which doubtful input moves the answer how far: each alone by ten per cent, and the questions worth asking back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from clusterwright.plan.fitting.carrying import carried
from clusterwright.plan.fitting.serving import ServingFit, again
from clusterwright.plan.fitting.wants import Wants
from clusterwright.plan.searching.questions import ServingQuestion

#: Each input is moved by so much, down and up.
STEP: Final = 0.1
#: Parts of a step's time by what one may doubt of them.
_PARTS: Final = {
    "products": "time of matrix products",
    "weights": "time of reading weights",
    "experts": "time of reading experts",
    "cache": "time of reading the KV cache",
    "attention": "time of attention over prompts",
    "exchange": "time of bytes between GPUs",
    "latency": "latency of exchanges between GPUs",
    "layers": "launches and small kernels per layer",
    "places": "tokens that the KV cache holds",
}


@dataclass(frozen=True)
class Effect:
    """One assumption.

    Args:
        name: in words. origin: stated, profile, assumed, or calibrated.
        low, high: the result at 10 % less and more, as a factor on the GPUs needed; infinite where nothing holds then.
    """

    name: str
    origin: str
    low: float
    high: float

    @property
    def size(self) -> float:
        """The larger of both changes, as a share."""
        return max(abs(self.low - 1), abs(self.high - 1))


@dataclass(frozen=True)
class Asked:
    """A question to ask back.

    Args:
        option: that answers it. why: what the answer would change, in numbers where one was tried.
        effect: change of the GPUs needed as a factor, by which questions are ranked; 0 where not counted.
    """

    question: str
    option: str
    why: str
    effect: float


def effects(fit: ServingFit, wants: Wants) -> tuple[Effect, ...]:
    """Assumptions of the best layout by effect on the GPUs needed, largest first; below 0.5 % they are left out."""
    if fit.best is None:
        return ()
    cases = [{}, *({part: factor} for part in _PARTS for factor in (1 - STEP, 1 + STEP))]
    base, *moved = carried(fit.question, fit.constants, fit.best.layout, cases)
    found = [
        _effect(_PARTS[part], "calibrated" if fit.basis.date else "assumed", base, moved[2 * i], moved[2 * i + 1])
        for i, part in enumerate(_PARTS)
    ]
    own = fit.question.lengths
    for name, option, value in (("prompts", "in", own.mean_in), ("outputs", "out", own.mean_out)):
        ends = [_carried(fit, _longer(fit.question, option, factor)) for factor in (1 - STEP, 1 + STEP)]
        words = f"mean of {name}, {value:,.0f} tokens"
        found.append(_effect(words, wants.origin(option), base, *ends))
    return tuple(sorted((e for e in found if e.size >= 0.005), key=lambda e: -e.size))


def _effect(name: str, origin: str, base: float, low: float, high: float) -> Effect:
    return Effect(name, origin, base / low if low else math.inf, base / high if high else math.inf)


def _longer(question: ServingQuestion, side: str, factor: float) -> ServingQuestion:
    own = question.lengths
    if side == "in":
        lengths = replace(own, mean_in=own.mean_in * factor, p95_in=own.p95_in and own.p95_in * factor)
    else:
        lengths = replace(own, mean_out=own.mean_out * factor, p95_out=own.p95_out and own.p95_out * factor)
    return replace(question, lengths=lengths)


def _carried(fit: ServingFit, question: ServingQuestion) -> float:
    assert fit.best is not None
    return carried(question, fit.constants, fit.best.layout, [{}])[0]


def questions(fit: ServingFit, wants: Wants) -> tuple[Asked, ...]:
    """What to ask back, the answer that would change most first."""
    found = [
        ask(fit, wants) for ask in (_lengths, _reuse, _cache, _targets, _load, _price, _measure, _losses, _network)
    ]
    return tuple(sorted((a for a in found if a is not None), key=lambda a: -a.effect))


def _tried(fit: ServingFit, question: ServingQuestion) -> float:
    """GPUs needed under another question as a factor; infinite where the layout then holds nothing."""
    then = _carried(fit, question)
    return fit.chosen.requests_s / then if then else math.inf


def _worth(factor: float) -> float:
    return 10.0 if math.isinf(factor) else abs(math.log(factor))


def _said(factor: float) -> str:
    if math.isinf(factor):
        return "then this layout misses a target"
    return f"then {factor:.2f} × the GPUs"


def _lengths(fit: ServingFit, wants: Wants) -> Asked | None:
    own = fit.question.lengths
    if fit.best is None or own.p95_in is not None:
        return None
    longer = replace(fit.question, lengths=replace(own, p95_in=3 * own.mean_in, p95_out=3 * own.mean_out))
    if longer.max_model_len is not None and longer.max_model_len < 3 * (own.mean_in + own.mean_out):
        longer = replace(longer, max_model_len=round(3 * (own.mean_in + own.mean_out)))
    factor = _tried(fit, longer)
    why = f"all prompts are taken as equally long; if the 95th percentile is 3 × the mean, {_said(factor)}"
    return Asked("How long are prompts and outputs at p95?", "--in-p95 --out-p95, or --trace", why, _worth(factor))


def _reuse(fit: ServingFit, wants: Wants) -> Asked | None:
    own = fit.question.lengths
    if fit.best is None or "reuse" in wants.stated:
        return None
    factor = _tried(fit, replace(fit.question, lengths=replace(own, reused_share=0.5)))
    why = f"none is taken; if half of the prompt tokens are found in the prefix cache, {_said(factor)}"
    return Asked(
        "How much of a prompt was seen before (system prompts, turns of a chat)?", "--reuse", why, _worth(factor)
    )


def _cache(fit: ServingFit, wants: Wants) -> Asked | None:
    if fit.best is None or fit.question.weights is not None or not _wide(fit):
        return None
    factor = _tried(fit, replace(fit.question, weights="fp8"))
    why = f"weights are served as stored; in fp8, {_said(factor)} (of the same layout)"
    return Asked(
        "May weights be served in fp8, as far as your quality tests allow?", "--weights fp8", why, _worth(factor)
    )


def _wide(fit: ServingFit) -> bool:
    stored = {part.stored for part, _ in fit.question.decoder.parts(towers=False)}
    return not stored & {"fp8", "nvfp4", "mxfp4", "int4", "int8"}


def _targets(fit: ServingFit, wants: Wants) -> Asked | None:
    own = wants.serving
    if own.ttft_s is not None or own.tpot_s is not None:
        return None
    why = "without targets one replica is filled as far as its cache goes; with them fewer run at once"
    return Asked("Which TTFT and TPOT must requests meet, at which percentile?", "--ttft --tpot --at", why, 1.0)


def _load(fit: ServingFit, wants: Wants) -> Asked | None:
    own = wants.serving
    if own.rate is not None or own.concurrency is not None or wants.budget or wants.power_w:
        return None
    return Asked("How many requests per second at the peak?", "--rate", "decides how many replicas there must be", 2.0)


def _price(fit: ServingFit, wants: Wants) -> Asked | None:
    if fit.price is not None and fit.price.origin != "catalogue":
        return None
    if fit.price is None:
        return Asked("What does a GPU-hour cost you?", "--price", "no price is known: nothing is counted in money", 0.5)
    spread = fit.price.high / fit.price.low
    old = f", {fit.price.age_days} days old" if fit.price.age_days else ""
    why = f"a published rental price stands for yours ({fit.price.basis}{old}); money scales with it"
    return Asked("What does a GPU-hour cost you?", "--price", why, max(_worth(spread), 0.3))


def _measure(fit: ServingFit, wants: Wants) -> Asked | None:
    low, high = fit.basis.tpot
    spread = f"steps may take ×{low:.2f} to ×{high:.2f} as long"
    why = f"{spread}; a benchmark of one replica, read by `cw calibrate`, narrows that"
    return Asked("Can one replica be measured?", "cw calibrate", why, math.log1p(fit.basis.tpot_error))


def _losses(fit: ServingFit, wants: Wants) -> Asked | None:
    if wants.origin("survive") != "assumed" or fit.best is None or fit.question.rate is None:
        return None
    more = replace(fit.question, survive_nodes=1, pool=replace(fit.question.pool, nodes=None))
    row = again(fit.search, fit.best.layout, more)
    if row is None or row.gpus <= fit.best.gpus:  # replicas that fill a limit for latency are more than losses take
        return None
    factor = row.gpus / fit.best.gpus
    taken = row.gpus - fit.best.gpus
    why = f"none is taken; one takes {taken} GPU{'s' * (taken != 1)} more"
    return Asked("How many nodes may fail with the load still carried?", "--survive", why, _worth(factor))


def _network(fit: ServingFit, wants: Wants) -> Asked | None:
    if fit.machine.nic_gbytes_s is not None:
        return None
    why = "no network between nodes is known: replicas wider than a node are left out"
    return Asked(f"Which NICs do nodes of {fit.machine.gpu.name} have?", "--nic", why, 0.1)
