"""The answer about training as a page: verdict, machines side by side, the best in detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clusterwright.lib.scales import DAY_S
from clusterwright.plan.fitting.training_fits import TrainingFit
from clusterwright.plan.fitting.training_searches import recipe_of
from clusterwright.plan.fitting.training_settings import beside_settings, place_of, settings_of
from clusterwright.plan.fitting.trainings import TrainingAnswer, calibration_words
from clusterwright.plan.searching.machines import reported_gib
from clusterwright.plan.searching.training_columns import HOST_SHARE
from clusterwright.report.blocks import Bars, Block, Code, Grid, Heading, Lines
from clusterwright.report.fits_interruptions import interruption_lines
from clusterwright.report.fits_words import (
    amount,
    banded,
    counted_tokens,
    lasting,
    money,
    number,
    price_words,
    sellers_words,
    share_words,
    span,
)

_NO = {"late": "misses target", "too big": "no: memory", "impossible": "no", "unknown": "not known"}
#: Terms of a step that take less than this share are not shown.
_LEAST = 0.005
_EFFECTS = 12
#: Share of a budget from which on all of it is said to be spent.
_SPENT = 0.995
#: Smaller changes are shown with a digit more.
_FINE, _NOTHING = 0.001, 5e-5
_METHODS = {"lora": "adapters (LoRA)", "qlora": "adapters over 4-bit weights (QLoRA)"}
_OFFLOADS = {"optimizer": "optimizer on the host", "parameters": "parameters and optimizer on the host"}


def training_page(answer: TrainingAnswer) -> tuple[Block, ...]:
    """Blocks of the page, the verdict first."""
    return tuple(_page(answer))


def _page(answer: TrainingAnswer) -> Iterator[Block]:
    internal = answer.audience == "internal"
    yield Lines((training_verdict(answer),))
    yield Lines((_asked(answer),))
    yield _machines(answer)
    others = [f"{f.machine.asked}: {f.missed}" for f in answer.fits[1:] if f.best is None]
    if others:
        yield Heading("Why not")
        yield Lines(tuple(others), bullet=True)
    first = answer.first
    if first.best is not None:
        yield from _best(answer, first)
    else:
        yield from _remedies(answer)
    if internal:
        yield from _effects(answer)
    if answer.asked:
        yield Heading("Worth asking, the answer that changes most first")
        asked = (f"{a.question} ({a.option}) {a.why[0].upper()}{a.why[1:]}." for a in answer.asked)
        yield Lines(tuple(asked), bullet=True)
    yield Heading("How good these numbers are")
    yield Lines(tuple(training_basis(answer, internal)), bullet=True)


def training_verdict(answer: TrainingAnswer) -> str:
    """The answer in one sentence."""
    fit, name, own = answer.first, answer.name, answer.wants.training
    how = f" with {_METHODS[own.method]}" if own is not None and own.adapters else ""
    if fit.best is None:
        many = "none of the machines holds: " if len(answer.fits) > 1 else ""
        return f"No: {many}{name} on {fit.machine.asked}: {fit.missed}."
    best, price = fit.chosen, fit.price
    hardware = fit.machine.counted(best.gpus, best.nodes)
    text = f"Yes: {hardware} train {name}{how} at {banded(fit.tokens_s)} tokens/s as {best.layout}"
    if fit.spare_gpus:
        text += f", {_counted(fit.lost.spares or 0, 'spare node')} beside them"
    if fit.days is not None and fit.wanted:
        text += f"; {counted_tokens(fit.wanted)} tokens take {lasting(fit.days)}"
    if price is not None and fit.cost is not None:
        text += f" and {amount(fit.cost, price.currency)}"
    elif price is not None and fit.per_mtok is not None:
        text += f"; {amount(fit.per_mtok, price.currency)} per Mtok"
    return text + _bought(answer) + "."


def _bought(answer: TrainingAnswer) -> str:
    """What a budget buys, and how much of it a deadline leaves."""
    fit, budget, each = answer.first, answer.wants.budget, answer.first.per_mtok
    if fit.tokens is None or budget is None:
        return ""
    period = " a month" if budget.monthly else f" in {span((fit.bought_days or 0.0) * DAY_S)}"
    text = f"; the budget buys {counted_tokens(fit.tokens)} tokens{period}"
    spent = budget.value if budget.monthly or each is None else each.value * fit.tokens / 1e6
    return text if spent > _SPENT * budget.value else f"{text}, for {money(spent, budget.currency)} of it"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def marked(answer: TrainingAnswer, text: str, option: str) -> str:
    """Words of an option with where they come from, unless it was stated."""
    origin = answer.wants.origin(option)
    if answer.audience == "customer" and origin == "profile":
        origin = "assumed"
    return text if origin == "stated" else f"{text} [{origin}]"


def _asked(answer: TrainingAnswer) -> str:
    own, decoder = answer.wants.training, answer.decoder
    assert own is not None
    trained = f"{decoder.name}, {decoder.parameters / 1e9:.4g} B parameters"
    told = [trained, marked(answer, "all trained", "method") if not own.adapters else _METHODS[own.method]]
    if own.adapters:
        told.append(marked(answer, f"rank {own.rank}", "rank"))
    if own.offload != "none":
        told.append(_OFFLOADS[own.offload])
    told += [
        marked(answer, f"sequences of {own.sequence:,}", "sequence"),
        marked(answer, f"{global_batch(answer):,} of them a step", "batch-size"),
        marked(answer, own.precision, "precision"),
        marked(answer, own.trainer, "framework"),
    ]
    return "Asked: " + ", ".join(told) + "."


def global_batch(answer: TrainingAnswer) -> int:
    """Sequences of a step, as the first machine was searched with."""
    own, search = answer.wants.training, answer.first.search
    assert own is not None
    return recipe_of(own).global_batch if search is None else search.question.recipe.global_batch


def _machines(answer: TrainingAnswer) -> Grid:
    fits = answer.fits
    table: list[tuple[str, ...]] = []

    def row(label: str, cell: Callable[[TrainingFit], str]) -> None:
        cells = [cell(fit) if fit.best is not None else "-" for fit in fits]
        if any(text != "-" for text in cells):
            table.append((label, *cells))

    table.append(("fits and holds", *("yes" if fit.best is not None else _NO[fit.verdict] for fit in fits)))
    row("layout", lambda f: str(f.chosen.layout))
    row("GPUs", lambda f: f"{f.chosen.gpus:,}")
    row("nodes", lambda f: f"{f.chosen.nodes:,}")
    row("spare nodes", lambda f: f"{f.lost.spares:,}" if f.lost.spares else "-")
    row("micro-batch", lambda f: str(f.chosen.recipe.micro_batch))
    row("recomputation", lambda f: f.chosen.recipe.recompute)
    row("GiB of the fullest GPU", lambda f: banded(f.memory_gib))
    row("GiB on a node's host", lambda f: number(_host_gib(f)) if f.chosen.memory.host_gib else "-")
    row("seconds a step", lambda f: number(f.chosen.step_s))
    row("tokens/s", lambda f: banded(f.tokens_s))
    row("tokens/s and GPU", lambda f: number(f.chosen.tokens_s_per_gpu))
    row("MFU", lambda f: f"{f.chosen.mfu:.1%}")
    row("goodput", lambda f: share_words(f.lost.goodput))
    row("takes without losses", lambda f: lasting(f.ideal_days))
    row("takes", lambda f: lasting(f.days))
    row("per GPU-hour", _price)
    row("per Mtok", lambda f: amount(f.per_mtok, f.price.currency) if f.price else "-")
    row("whole run", lambda f: amount(f.cost, f.price.currency) if f.price and f.cost else "-")
    return Grid(("", *(f"{place}. {fit.machine.asked}" for place, fit in enumerate(fits, 1))), tuple(table))


def _host_gib(fit: TrainingFit) -> float:
    return fit.chosen.memory.host_gib * min(fit.chosen.gpus, fit.machine.gpus_per_node)


def _price(fit: TrainingFit) -> str:
    if fit.price is None:
        return "-"
    return money(fit.price.value, fit.price.currency) + ("*" if fit.price.origin == "catalogue" else "")


def _best(answer: TrainingAnswer, fit: TrainingFit) -> Iterator[Block]:
    best = fit.chosen
    have = reported_gib(fit.machine.gpu)
    peak = best.memory.peak
    stage = f" (stage {peak.stage + 1} of {best.layout.pp})" if best.layout.pp > 1 else ""
    yield Heading(f"Memory of the fullest GPU of {fit.machine.asked}, {best.layout}{stage}")
    used = tuple((name, gib) for name, gib in peak.terms if gib > 0.05)
    left = have - sum(gib for _, gib in peak.terms)
    yield Bars((*used, ("not used", left)), have, "GiB")
    yield from _room(fit, have)
    yield Heading(f"Set in {place_of(fit)}")
    yield Code(" ".join(settings_of(fit)) if place_of(fit).startswith("Mega") else "\n".join(settings_of(fit)))
    yield Lines(beside_settings(fit), bullet=True)
    yield Heading("Where a step's time goes")
    terms = [(name, s) for name, s in best.step.terms if s > _LEAST * best.step_s]
    rows = tuple((name, number(s), f"{s / best.step_s:.1%}") for name, s in sorted(terms, key=lambda t: -t[1]))
    yield Grid(("", "s", "share"), rows)
    yield Heading("What checkpoints and failures take")
    yield Lines(tuple(interruption_lines(answer, fit)), bullet=True)
    lost = [f"{w.name} ({w.layout}): {w.text}" for w in answer.lost]
    if lost:
        yield Heading("Why popular layouts lost")
        yield Lines(tuple(lost), bullet=True)


def _room(fit: TrainingFit, have: float) -> Iterator[Block]:
    """How sure it is that it fits."""
    best, faster = fit.chosen, fit.tighter
    if not best.fits_surely:
        yield Lines(("At the upper end of the memory's band this does not fit: try it on one node group first.",))
    elif faster is not None:
        yield Lines(
            (
                f"{faster.layout} is {best.step_s / faster.step_s - 1:.1%} faster, with {faster.memory_gib:.1f} of "
                f"{have:.1f} GiB: it fits only if memory is not above its estimate.",
            )
        )


def _remedies(answer: TrainingAnswer) -> Iterator[Block]:
    if not answer.remedies:
        yield Lines(("No change of options that was tried makes it hold; other GPUs may.",))
        return
    yield Heading(f"What to change on {answer.first.machine.asked}, the least that is given up first")
    lines = []
    for r in answer.remedies:
        row = r.row
        line = f"{r.what}: then {_counted(row.gpus, 'GPU')} hold{'s' * (row.gpus == 1)} as {row.layout}"
        line += f" with {row.memory_gib:.1f} GiB, {number(row.tokens_s)} tokens/s"
        line += f", {span(r.days * DAY_S)}" if r.days is not None else ""
        lines.append(line + ("" if row.fits_surely else " (not surely: memory at the upper end of its band does not)"))
    yield Lines(tuple(lines), bullet=True)


def _effects(answer: TrainingAnswer) -> Iterator[Block]:
    if not answer.effects:
        return
    what = "money" if answer.first.price is not None else "GPU-hours"
    yield Heading(f"Assumptions by effect: each 10 % less and more moves the {what} by")
    rows = tuple((e.name, e.origin, _change(e.low), _change(e.high)) for e in answer.effects[:_EFFECTS])
    yield Grid(("", "origin", "10 % less", "10 % more"), rows)


def _change(factor: float) -> str:
    if factor > 1e6:
        return "does not fit"
    if abs(factor - 1) < _NOTHING:
        return "none"
    return f"{factor - 1:+.1%}" if abs(factor - 1) >= _FINE else f"{factor - 1:+.2%}"


def _hosts(fit: TrainingFit) -> Iterator[str]:
    """What the host must have."""
    need, have = fit.chosen.memory.host_gib, fit.machine.host_gib
    if not need:
        return
    if have is None:
        wanted = f"offload takes {number(_host_gib(fit))} GiB of a node"
        yield f"host memory of {fit.machine.asked} is not known: {wanted}"
    else:
        yield f"host memory: {number(need)} of {number(have)} GiB for each GPU; up to {HOST_SHARE:.0%} are taken"


def training_basis(answer: TrainingAnswer, internal: bool) -> Iterator[str]:
    """Basis and band of each kind of number."""
    fit = answer.first
    if fit.best is not None:
        low, high = fit.best.step.band
        yield f"tokens per second: {1 - low:.0%} less to {high - 1:.0%} more" + (
            f"; {calibration_words()}" if internal else ""
        )
        if not fit.measured:
            yield f"no run on {fit.machine.gpu.name} was among them: constants of other GPUs stand for its own"
        low, high = fit.best.memory.band
        yield f"memory: factors {low:g} to {high:g} on the peak" + (", as published runs were off" if internal else "")
        recipe = fit.best.recipe
        if recipe.adapter_rank is not None and internal:
            yield "adapters: speed was held to five published LoRA runs of Llama 3 70B in fp8 (Megatron-Bridge, 26.06)"
        if recipe.base == "nf4":
            yield "4-bit weights: what widening them costs comes from one published pair of runs (8B on an RTX 4090)"
        if recipe.offload != "none":
            yield "offload: one published run was held against it; nothing of the transfers is taken to be hidden"
            yield from _hosts(fit)
    for each in answer.fits:
        if each.price is not None and (internal or each.price.for_sale):
            star = "* " if each.price.origin == "catalogue" else ""
            yield f"{star}{each.machine.asked}: {price_words(each.price)}"
        elif each.price is None and internal:
            yield f"{each.machine.asked}: no price is known; give --price"
        yield from (f"taken: {text} ({each.machine.described})" for text in each.machine.taken)
    if internal and (told := sellers_words(each.price for each in answer.fits)):
        yield told
