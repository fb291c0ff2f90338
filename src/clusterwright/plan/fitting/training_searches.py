"""Training on one machine: what the search is asked, and which of its layouts is taken."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from clusterwright.lib.scales import DAY_S
from clusterwright.model.decoders import Decoder
from clusterwright.physics.failures import RSC1_PER_1000_NODE_DAYS
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.physics.training.memory import BAND
from clusterwright.physics.training.recipes import Recipe, Sharding
from clusterwright.plan.fitting.interruptions import interruptions_of
from clusterwright.plan.fitting.inverses import limit_of
from clusterwright.plan.fitting.machines import Machine
from clusterwright.plan.fitting.prices import HourPrice
from clusterwright.plan.fitting.training_fits import TrainingFit, TrainingVerdict
from clusterwright.plan.fitting.wants import Money, TrainingWants, Wants
from clusterwright.plan.searching.machines import reported_gib
from clusterwright.plan.searching.questions import Losses, TrainingQuestion
from clusterwright.plan.searching.reasons import WORDS, Reason
from clusterwright.plan.searching.training import TrainingRow, TrainingSearch, search_training
from clusterwright.plan.searching.training_reasons import host_words

#: Tokens of a global batch where none is stated. All weights: what models of 7B to 70B were trained with (Llama 2 and
#: 3: 4 M). Adapters: 32 sequences of 4,096 (Megatron-Bridge's LoRA recipes of Llama 3 70B, release 26.06).
BATCH_TOKENS: Final = 2**22
ADAPTER_BATCH_TOKENS: Final = 2**17
#: B/s of storage per node that checkpoints are written at (DGX reference node, "good").
WRITE_BYTES_S: Final = 2e9
#: How many batches are tried, each twice the one before.
_BATCHES: Final = 3
#: Goodput below which a job is not said to run.
_NOTHING_DONE: Final = 1e-3
#: Numbers of GPUs below a limit that are tried.
_TRIES: Final = 5
#: Precision → field of `DenseRates` that must be there.
UNITS: Final = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
_SHARDING: Final[dict[str, Sharding]] = {"megatron": "distributed", "torchtitan": "fsdp", "deepspeed": "zero3"}


def fit_training(decoder: Decoder, machine: Machine, wants: Wants, price: HourPrice | None) -> TrainingFit:
    """Search one machine; a budget becomes GPUs (per month, or once until a deadline) or tokens (once)."""
    own = wants.training or TrainingWants()
    plain = TrainingFit(machine, "unknown", price, wanted=own.tokens)
    lacking = _lacking(machine, own)
    if lacking:
        return replace(plain, verdict="impossible", missed=lacking)
    gpus = _allowed(machine, wants, price)
    if isinstance(gpus, str):
        return replace(plain, missed=gpus)
    if gpus == 0:
        given = "budget buys" if wants.budget is not None else "power feeds"
        return replace(plain, verdict="too big", missed=f"the {given} no node of {machine.gpus_per_node} GPUs")
    sizes = _sizes(gpus, machine) if wants.inverse else [gpus]
    try:
        search = _largest(question_of(decoder, machine, wants, size, price) for size in sizes)
    except ValueError as error:
        return replace(plain, missed=str(error))
    if not search.judged.possible.any() and wants.origin("batch-size") == "assumed":
        search = _divided(search)
    search = _stored(search, own)
    best = roomy(search)
    if best is None:
        return replace(plain, verdict=_verdict(search), search=search, missed=_missed(search))
    lost = interruptions_of(search.question, best, wants)
    if lost.goodput.value < _NOTHING_DONE:
        often = f"a failure every {lost.mttf_h.value:.2g} h, {own.restart_s / 3600:.2g} h until work goes on"
        often += "" if lost.spares is None else f", nodes missing {1 - lost.covered:.1%} of the time"
        return replace(plain, verdict="late", search=search, missed=f"nothing gets done: {often}")
    found = replace(plain, verdict="holds", search=search, best=best, losses=lost)
    return _in_budget(_in_time(found, own), wants)


def _divided(search: TrainingSearch) -> TrainingSearch:
    """The search with a batch that the GPUs divide, where only that stood in the way; else as it is."""
    question = search.question
    if max(search.reasons()) != Reason.BATCH:
        return search
    for batch in dividing_batches(question.recipe.global_batch, search.gpus):
        found = search_training(replace(question, recipe=replace(question.recipe, global_batch=batch)))
        if found.judged.possible.any():
            return found
    return search


def dividing_batches(batch: int, gpus: int) -> Iterator[int]:
    """The next larger batch that the odd part of a number of GPUs divides, then twice as many again and again."""
    size = gpus // (gpus & -gpus)
    while size <= batch:
        size *= 2
    yield from (size << i for i in range(_BATCHES))


def _stored(search: TrainingSearch, own: TrainingWants) -> TrainingSearch:
    """The search with storage that grows with the nodes that were found, unless its rate was stated."""
    losses, nodes = search.question.losses, -(-search.gpus // search.question.pool.gpus_per_node)
    if losses is None or own.store_bytes_s is not None:
        return search
    losses = replace(losses, write_bytes_s=WRITE_BYTES_S * nodes)
    return replace(search, question=replace(search.question, losses=losses))


def _lacking(machine: Machine, own: TrainingWants) -> str:
    """Why the GPU cannot run such a job at all, or ""."""
    dense = machine.gpu.dense
    if getattr(dense, UNITS[own.precision]) is not None:
        return ""
    known = [name for name, unit in UNITS.items() if getattr(dense, unit) is not None]
    return f"{machine.gpu.name} has no unit for {own.precision}; it has {', '.join(known) or 'none of those known'}"


def _allowed(machine: Machine, wants: Wants, price: HourPrice | None) -> int | str | None:
    """GPUs of the job at most, beside spare nodes; 0 for none, None without a limit; or what is missing."""
    gpus, node, budget = wants.gpus, machine.gpus_per_node, wants.budget
    spare = wants.serving.survive_nodes
    if budget is not None:
        if price is None or price.currency != budget.currency:
            return f"no price in {budget.currency} of {machine.asked}; give --price"
        if budget.monthly:
            hours: float | None = HOURS_PER_MONTH
        else:
            hours = _open_hours(wants)
        if hours is not None:
            nodes = math.floor(budget.value / hours / price.value / node + 1e-9)
            gpus = max(nodes - spare, 0) * node
    if wants.power_w is not None:
        limit = limit_of(machine, replace(wants, budget=None), price)
        if limit.nodes is None:
            return limit.missing
        fed = limit.nodes * node  # spare nodes are fed beside them
        gpus = fed if gpus is None else min(gpus, fed)
    return gpus


def _open_hours(wants: Wants) -> float | None:
    """Hours that money once is to last, where neither tokens nor GPUs say how much of it is spent by then."""
    own = wants.training or TrainingWants()
    if own.deadline_s is None or own.tokens is not None or wants.gpus is not None:
        return None
    return own.deadline_s / 3600


def _sizes(gpus: int | None, machine: Machine) -> list[int | None]:
    """Numbers of GPUs to try under a limit: the limit itself, then 1 or 3 times a power of two nodes, largest first."""
    if gpus is None:
        return [None]
    node = machine.gpus_per_node
    nodes = {base << i for base in (1, 3) for i in range(gpus.bit_length()) if (base << i) * node <= gpus}
    return [gpus, *sorted((node * count for count in nodes if node * count < gpus), reverse=True)[:_TRIES]]


def _largest(questions: Iterable[TrainingQuestion]) -> TrainingSearch:
    """The first question that has an answer, else the last."""
    search = None
    for question in questions:
        search = search_training(question)
        if search.best is not None:
            return search
    assert search is not None
    return search


def roomy(search: TrainingSearch, factor: float = 1.0) -> TrainingRow | None:
    """The best layout that fits at the upper end of the memory's band, too; else the best there is.

    Args:
        factor: on the memory that every layout is estimated to need.
    """
    rows = search.ranked
    have = reported_gib(search.question.pool.gpu) / factor
    need = search.judged.memory_gib
    for most in (have / BAND[1], have):
        fitting = rows[need[rows] <= most]
        if len(fitting):
            return search.row(int(fitting[0]))
    return None


def _in_time(fit: TrainingFit, own: TrainingWants) -> TrainingFit:
    """The fit, late where waiting for missing nodes makes it miss the deadline."""
    days = fit.days
    if days is None or own.deadline_s is None or days.value * DAY_S <= own.deadline_s * (1 + 1e-9):
        return fit
    asked, needed = fit.lost.spares or 0, fit.lost.needed
    missed = f"with {asked} spare nodes it waits {1 - fit.lost.covered:.0%} of the time and takes {days.value:.3g} days"
    if needed is not None:
        missed += f"; --survive {needed}"
    return replace(fit, verdict="late", best=None, losses=None, missed=missed)


def _in_budget(fit: TrainingFit, wants: Wants) -> TrainingFit:
    """The fit with the tokens that a budget buys; late where it does not pay for those that were asked for."""
    budget = wants.budget
    if budget is None or fit.best is None:
        return fit
    paid = _paid(fit, budget)
    if paid is not None and fit.wanted is not None and fit.wanted > paid * (1 + 1e-9):
        cost = budget.value * fit.wanted / paid
        missed = (
            f"{fit.wanted / 1e9:,.6g} B tokens cost {budget.currency} {cost:,.0f}; the budget of {budget.value:,.0f}"
            f" buys {paid / 1e9:,.4g} B"
        )
        return replace(fit, verdict="late", best=None, losses=None, missed=missed)
    return replace(fit, tokens=_bought(fit, wants, budget, paid))


def _paid(fit: TrainingFit, budget: Money) -> float | None:
    """Tokens that money given once pays for."""
    each = fit.per_mtok
    return None if budget.monthly or each is None or not each.value else budget.value / each.value * 1e6


def _bought(fit: TrainingFit, wants: Wants, budget: Money, paid: float | None) -> float | None:
    """Tokens of one month, or of the whole budget, as far as a deadline lets it be spent."""
    tokens_s = fit.chosen.tokens_s * fit.lost.goodput.value
    if budget.monthly:
        return tokens_s * HOURS_PER_MONTH * 3600
    deadline_s = None if wants.training is None else wants.training.deadline_s
    return paid if paid is None or deadline_s is None else min(paid, tokens_s * deadline_s)


def question_of(
    decoder: Decoder, machine: Machine, wants: Wants, gpus: int | None, price: HourPrice | None
) -> TrainingQuestion:
    """The search's question with what is assumed."""
    own = wants.training or TrainingWants()
    currency = "USD" if price is None else price.currency
    nodes = max((gpus or machine.gpus_per_node) // machine.gpus_per_node, 1)
    return TrainingQuestion(
        decoder,
        machine.pool(gpus, None if price is None else price.value, currency),
        recipe_of(own),
        gpus,
        own.tokens,
        own.deadline_s,
        Losses(
            RSC1_PER_1000_NODE_DAYS if own.failures is None else own.failures,
            own.restart_s,
            own.store_bytes_s or WRITE_BYTES_S * nodes,
            asynchronous=True,
        ),
    )


def recipe_of(own: TrainingWants) -> Recipe:
    """How it is trained; micro-batch and recomputation are left to the search."""
    batch = ADAPTER_BATCH_TOKENS if own.adapters else BATCH_TOKENS
    return Recipe(
        framework=own.trainer,
        sharding=_SHARDING[own.trainer],
        precision=own.precision,  # type: ignore[arg-type]
        sequence=own.sequence,
        global_batch=own.global_batch or max(batch // own.sequence, 1),
        logits="fused",
        expandable=True,
        offload=own.offload,
        adapter_rank=own.rank if own.adapters else None,
        base="nf4" if own.method == "qlora" else "bf16",
    )


def _verdict(search: TrainingSearch) -> TrainingVerdict:
    reasons = search.reasons()
    if Reason.DEADLINE in reasons:
        return "late"
    return "too big" if {Reason.MEMORY, Reason.HOST} & set(reasons) else "impossible"


def _missed(search: TrainingSearch) -> str:
    reasons = search.reasons()
    closest = Reason(max(int(reason) for reason in reasons))
    have, count = reported_gib(search.question.pool.gpu), f"{search.gpus:,} GPU{'s' * (search.gpus != 1)}"
    if closest == Reason.MEMORY:
        return f"no layout of {count} fits {have:.1f} GiB, whatever is recomputed"
    if closest == Reason.HOST:
        return f"{count}: {host_words(search.question, search.gpus)}"
    return f"{count}: {WORDS[closest]}"
