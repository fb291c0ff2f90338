"""The answer about inference as a page: verdict, machines side by side, the best in detail."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from clusterwright.physics.engines.releases import instead
from clusterwright.physics.money import HOURS_PER_MONTH
from clusterwright.plan.fitting.answers import ServingAnswer, by_money
from clusterwright.plan.fitting.bands import Band
from clusterwright.plan.fitting.commands import before, command_of
from clusterwright.plan.fitting.serving import ServingFit
from clusterwright.plan.fitting.spanning import over_nodes
from clusterwright.plan.searching.serving import ServingRow
from clusterwright.report.blocks import Bars, Block, Code, Grid, Heading, Lines
from clusterwright.report.fits_words import (
    amount,
    banded,
    money,
    number,
    one_time,
    price_words,
    sellers_words,
    tokens_short,
    whole,
)

#: Sizes of replicas that the table of sizes shows.
_SIZES = 6
_EFFECTS = 6
#: What stands under a machine on which nothing holds.
_NO = {"late": "fits, misses target", "too big": "no: memory", "impossible": "no", "unknown": "not known"}


def serving_page(answer: ServingAnswer) -> tuple[Block, ...]:
    """Blocks of the page, the verdict first."""
    return tuple(_page(answer))


def _page(answer: ServingAnswer) -> Iterator[Block]:
    internal = answer.audience == "internal"
    yield Lines((verdict(answer),))
    if answer.close and internal:
        near = " and ".join(", ".join(answer.close).rsplit(", ", 1))
        yield Lines((f"Not sure: {near} may be as good; the bands of the estimates overlap.",))
    yield Lines((asked_words(answer),))
    if told_instead(answer):
        yield Lines((f"{told_instead(answer)}.",))
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
    yield from _questions(answer)
    yield from _basis(answer)


def verdict(answer: ServingAnswer) -> str:
    """The answer in one sentence."""
    fit, question = answer.first, answer.first.question
    where, name = fit.machine.asked, answer.name
    if fit.best is None:
        kind = {
            "late": f"{name} fits {where}, but misses what was asked",
            "too big": f"{name} does not fit {where}",
            "impossible": f"{question.engine} does not serve {name} on {where}",
            "unknown": f"{name} on {where} is not known",
        }[fit.verdict]
        if answer.wants.inverse and fit.said:
            kind = f"{name} on {where}"
        many = "none of the machines holds: " if len(answer.fits) > 1 else ""
        return f"No: {many}{kind}: {fit.missed}."
    best, price = fit.best, fit.price
    size = _size(best)
    targets = target_words(fit)
    within = f" within {targets}" if targets else ""
    if question.rate is None and question.concurrency is None:
        text = f"Yes: {name} fits {where} ({size}); one replica carries {banded(fit.requests_s)} req/s"
        text += f"{within}, {banded(fit.tokens_s)} output tok/s"
        if price is not None and fit.per_mtok_out is not None:
            text += f"; {amount(fit.per_mtok_out, price.currency)} per Mtok out"
        smallest = fit.sizes[0]
        if smallest.layout.gpus < best.layout.gpus:
            text += (
                f". The smallest replica that fits takes {_counted(smallest.layout.gpus, 'GPU')}, as {smallest.layout}"
            )
        return text + "."
    if answer.wants.inverse:
        return _bought(answer, fit)
    load = (
        f"{number(question.rate)} req/s" if question.rate else f"{number(question.concurrency or 0)} requests in flight"
    )
    replicas = "1 replica" if best.replicas == 1 else f"{best.replicas:,} replicas"
    text = f"Yes: {fit.machine.counted(best.gpus, best.nodes)} serve {name} at {load}{within}: {replicas} of"
    text += f" {size}"
    per_h, out = fit.per_h, fit.per_mtok_out
    if per_h is not None and out is not None and price is not None:
        text += f"; {money(per_h.value, price.currency)}/h, {money(out.value, price.currency)} per Mtok out"
    return f"{text}. {_range(fit, answer.audience == 'internal')}"


def _bought(answer: ServingAnswer, fit: ServingFit) -> str:
    """What a budget or a power gives, in one sentence."""
    best, wants = fit.chosen, answer.wants
    given = []
    if wants.budget is not None:
        given.append(f"{money(wants.budget.value, wants.budget.currency)} a month")
    if wants.power_w is not None:
        given.append(f"{number(wants.power_w / 1e3)} kW")
    targets = target_words(fit)
    text = f"{' and '.join(given)} carry {banded(fit.carried_s)} req/s of {answer.name}"
    text += f" on {fit.machine.counted(best.gpus, best.nodes)}"
    text += f" within {targets}" if targets else ""
    text += f": {_counted(best.replicas, 'replica')} of {_size(best)}"
    if best.cost_per_h is not None and fit.price is not None:
        text += f"; {money(best.cost_per_h * HOURS_PER_MONTH, fit.price.currency)} a month are spent"
    return text + "."


def _size(row: ServingRow) -> str:
    return "one GPU" if row.layout.gpus == 1 else f"{row.layout.gpus} GPUs as {row.layout}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _range(fit: ServingFit, internal: bool) -> str:
    """What the band of the estimates leaves open; how wide the error of times is stays in the house."""
    gpus = fit.gpus
    if gpus.high is None:
        if not internal:
            return "At the slow end of its range this layout misses a target."
        return f"If steps take as long as they may (×{fit.basis.tpot[1]:.2f}), this layout misses a target."
    low, high = whole(gpus.low or 0), whole(gpus.high)
    within = "Within the error of the estimates" if internal else "Within the range of the estimate"
    if low == high:
        text = f"{within} it stays at {_counted(fit.chosen.gpus, 'GPU')}"
    else:
        text = f"{within}: {low} to {high} GPUs"
    per_h = fit.per_h
    if per_h is not None and per_h.low is not None and per_h.high is not None and fit.price is not None:
        currency = fit.price.currency
        cheap, dear = money(per_h.low, currency), money(per_h.high, currency)
        text += f", {cheap}/h" if cheap == dear else f", {cheap} to {dear}/h"
    return text + "."


def target_words(fit: ServingFit) -> str:
    """The targets in words, "" where there are none."""
    question = fit.question
    told = [f"TTFT {one_time(question.ttft_s)}"] if question.ttft_s is not None else []
    told += [f"TPOT {one_time(question.tpot_s)}"] if question.tpot_s is not None else []
    return f"{' and '.join(told)} ({quantile_words(fit)})" if told else ""


def quantile_words(fit: ServingFit) -> str:
    """Which share of requests targets and times hold for."""
    quantile = fit.question.quantile
    return "mean" if quantile is None else f"p{quantile * 100:g}"


def asked_words(answer: ServingAnswer) -> str:
    """Model, load and engine as they were understood; what was assumed is marked."""
    question, wants = answer.first.question, answer.wants
    decoder = question.decoder
    lengths = question.lengths

    def marked(text: str, option: str) -> str:
        origin = wants.origin(option)
        if answer.audience == "customer" and origin == "profile":
            origin = "assumed"
        return text if origin == "stated" else f"{text} [{origin}]"

    told = [
        f"{decoder.name}, {decoder.parameters / 1e9:.4g} B parameters",
        marked(f"{number(lengths.mean_in)} tokens in", "in"),
        marked(f"{number(lengths.mean_out)} out", "out"),
        marked(f"sequences up to {tokens_short(question.max_model_len or decoder.max_context)}", "context"),
        marked(_engine(answer), "engine"),
        marked(f"{_counted(question.survive_nodes, 'node')} to lose", "survive"),
    ]
    if wants.serving.utilisation < 1:
        told.append(marked(f"on average {wants.serving.utilisation:.0%} of the load", "utilisation"))
    if question.weights:
        told.insert(1, f"served in {question.weights}")
    return "Asked: " + ", ".join(told) + "."


def told_instead(answer: ServingAnswer) -> str:
    """Which release is planned instead of the one that was asked for, "" where it is that one."""
    own = answer.wants.serving
    return instead(own.engine, own.asked_version) if own.asked_version is not None else ""


def _engine(answer: ServingAnswer) -> str:
    """The engine with the version whose memory is modelled."""
    fit = answer.first
    row = fit.best or fit.nearest
    return fit.question.engine if row is None else row.memory.engine


def _machines(answer: ServingAnswer) -> Grid:
    fits = answer.fits
    head = ("", *(f"{place}. {fit.machine.asked}" for place, fit in enumerate(fits, 1)))
    table: list[tuple[str, ...]] = []

    def row(label: str, cells: list[str]) -> None:
        if any(cell != "-" for cell in cells):
            table.append((label, *cells))

    def of(cell: Callable[[ServingFit], str]) -> list[str]:
        return [cell(fit) if fit.best is not None else "-" for fit in fits]

    own = answer.wants
    loaded = own.inverse or own.serving.rate is not None or own.serving.concurrency is not None
    survive = answer.first.question.survive_nodes
    at = quantile_words(answer.first)
    row("fits and holds", ["yes" if fit.best is not None else _NO[fit.verdict] for fit in fits])
    row("layout of a replica", of(lambda f: str(f.chosen.layout)))
    row("GPUs per replica", of(lambda f: str(f.chosen.layout.gpus)))
    if loaded:
        if own.inverse:
            row("req/s of all", of(lambda f: banded(f.carried_s)))
        shown = _plain if own.inverse else _with_band
        row("replicas for load", of(lambda f: shown(f.needed)))
        if survive:
            row(f"… with {survive} node{'s' * (survive > 1)} lost", of(lambda f: shown(f.replicas)))
        row("GPUs", of(lambda f: shown(f.gpus)))
        row("nodes", of(lambda f: shown(f.nodes)))
    row("longest request", of(lambda f: banded(f.context, lambda v: f"{v:,.0f}")))
    length = tokens_short(answer.first.question.max_model_len or 0)
    row(f"at once, {length} each", of(lambda f: banded(f.places)))
    row("in flight at load" if loaded else "in flight", of(lambda f: number(f.chosen.concurrency)))
    row(f"TTFT {at}, ms", of(lambda f: banded(f.ttft_s.times(1e3))))
    row(f"TPOT {at}, ms", of(lambda f: banded(f.tpot_s.times(1e3))))
    row("req/s of a replica", of(lambda f: banded(f.requests_s)))
    row("output tok/s of it", of(lambda f: banded(f.tokens_s)))
    row("per GPU-hour", of(_price))
    row("per hour", of(lambda f: amount(f.per_h, f.price.currency) if f.price else "-"))
    row("per Mtok out", of(lambda f: amount(f.per_mtok_out, f.price.currency) if f.price else "-"))
    row("per Mtok in and out", of(lambda f: amount(f.per_mtok, f.price.currency) if f.price else "-"))
    return Grid(head, tuple(table))


def _plain(band: Band) -> str:
    return whole(band.value)


def _with_band(band: Band) -> str:
    return banded(band, whole)


def _price(fit: ServingFit) -> str:
    if fit.price is None:
        return "-"
    return money(fit.price.value, fit.price.currency) + ("*" if fit.price.origin == "catalogue" else "")


def _best(answer: ServingAnswer, fit: ServingFit) -> Iterator[Block]:
    best = fit.chosen
    memory = best.memory
    yield Heading(f"Memory of the fullest GPU of {fit.machine.asked}, {best.layout}")
    yield Bars(memory.terms, memory.reported_gib, "GiB")
    yield Heading("Start each replica with")
    yield Code(command(fit))
    if memory.extra_config:
        yield Lines((f"with {memory.flags[-1]}:",))
        yield Code(memory.extra_config.rstrip())
    yield from (Lines((text,)) for text in (before(fit), over_nodes(fit)) if text)
    yield Heading("What binds, what a failure takes")
    yield Lines((_binds(fit), _domain(fit)), bullet=True)
    if len(fit.sizes) > 1:
        yield Heading(f"Other sizes of a replica on {fit.machine.asked}")
        yield _sizes(fit)
    lost = [f"{w.name} ({w.layout}): {w.text}" for w in answer.lost]
    if lost:
        yield Heading("Why popular layouts lost")
        yield Lines(tuple(lost), bullet=True)


def command(fit: ServingFit) -> str:
    """The engine's command line, quoted for a shell."""
    return shlex.join(command_of(fit))


def _binds(fit: ServingFit) -> str:
    """How near each limit is at the load."""
    best, question = fit.chosen, fit.question
    used = []
    if question.ttft_s is not None:
        used.append((best.ttft_s / question.ttft_s, "TTFT"))
    if question.tpot_s is not None:
        used.append((best.tpot_s / question.tpot_s, "TPOT"))
    held = best.concurrency * (question.lengths.mean_in + question.lengths.mean_out) / max(best.kv_tokens, 1)
    used.append((held, "KV cache"))
    used.sort(reverse=True)
    told = ", ".join(f"{name} at {share:.0%}" for share, name in used)
    return f"nearest its limit at the load: {told} of what is allowed"


def _domain(fit: ServingFit) -> str:
    best = fit.chosen
    lost = max(best.domain_gpus // best.layout.gpus, 1)
    share = min(lost / best.replicas, 1.0)
    nodes = f", which spans {best.domain_nodes} nodes" if best.domain_nodes > 1 else ""
    stopped = f"{min(lost, best.replicas)} of {_counted(best.replicas, 'replica')}"
    text = f"a failing node stops {_counted(best.domain_gpus, 'GPU')}: {stopped}"
    spare = best.replicas - best.needed
    covered = f"; {spare} more than the load needs are there for it" if spare else "; none is there in reserve"
    return f"{text}{nodes} ({share:.0%} of the service){covered}"


def _sizes(fit: ServingFit) -> Grid:
    head = ("GPUs", "layout", "at once", "req/s", "tok/s/GPU", "TTFT", "TPOT", "GPU-h/Mtok")
    own = fit.question.lengths.mean_out
    rows = tuple(
        (
            str(row.layout.gpus),
            str(row.layout),
            number(row.memory.max_concurrency),
            number(row.requests_s),
            number(row.requests_s * own / row.layout.gpus),
            one_time(row.ttft_s),
            one_time(row.tpot_s),
            number(row.gpu_h_per_mtok),
        )
        for row in fit.sizes[:_SIZES]
    )
    return Grid(head, rows)


def _remedies(answer: ServingAnswer) -> Iterator[Block]:
    if not answer.remedies:
        yield Lines(("No change of options that was tried makes it hold; other GPUs may.",))
        return
    yield Heading(f"What to change on {answer.first.machine.asked}, the least that is given up first")
    yield Lines(
        tuple(f"{r.what}: then {r.row.gpus} GPUs hold, as {r.row.layout}" for r in answer.remedies), bullet=True
    )


def _effects(answer: ServingAnswer) -> Iterator[Block]:
    if not answer.effects:
        return
    yield Heading("Assumptions by effect: each 10 % less and more moves the GPUs needed by")
    rows = tuple((e.name, e.origin, _change(e.low), _change(e.high)) for e in answer.effects[:_EFFECTS])
    yield Grid(("", "origin", "10 % less", "10 % more"), rows)


def _change(factor: float) -> str:
    return f"{factor - 1:+.1%}" if factor < 1e6 else "misses"


def _questions(answer: ServingAnswer) -> Iterator[Block]:
    if not answer.asked:
        return
    yield Heading("Worth asking, the answer that changes most first")
    yield Lines(tuple(f"{a.question} ({a.option}) {a.why[0].upper()}{a.why[1:]}." for a in answer.asked), bullet=True)


def _basis(answer: ServingAnswer) -> Iterator[Block]:
    internal = answer.audience == "internal"
    yield Heading("How good these numbers are")
    yield Lines(tuple(basis_lines(answer, internal)), bullet=True)


def basis_lines(answer: ServingAnswer, internal: bool) -> Iterator[str]:
    """Basis and band of each kind of number."""
    fit = answer.first
    yield "weights: counted from the model's config, exact"
    row = fit.best or fit.nearest
    if row is not None:
        held = f"; {row.memory.band.validated_on}" if internal else ""
        yield f"KV cache, context, sequences at once: ±{row.memory.band.share:.0%}{held}"
        yield from (f"memory: {note}" for note in row.memory.notes)
    for each in answer.fits if internal else ():
        basis = each.basis
        where = each.machine.asked
        yield f"times on {where}: {basis.said}" + (f"; {basis.basis}" if internal else "")
        if internal and basis.beyond:
            yield f"times on {where} go beyond what was measured: {'; '.join(basis.beyond)}"
    if internal:
        yield "replicas, GPUs, money: the same search, steps as slow and fast as the band of TPOT and the peaks allow"
    else:
        yield "times, replicas, GPUs, money: the range in which each is expected stands in brackets"
    if fit.question.lengths.p95_in is None:
        yield "lengths: every request is taken as average; percentiles come from queueing alone"
    for each in answer.fits:
        if each.price is not None and (internal or each.price.for_sale):
            star = "* " if each.price.origin == "catalogue" else ""
            yield f"{star}{each.machine.asked}: {price_words(each.price)}"
            yield from _shared(each)
        elif each.price is None and internal:
            yield f"{each.machine.asked}: no price is known; give --price"
    if internal and (told := sellers_words(each.price for each in answer.fits)):
        yield told
    for each in answer.fits:
        yield from (f"taken: {text} ({each.machine.described})" for text in each.machine.taken)
    if len(answer.fits) > 1:
        yield (
            "ranked by money per output token" if by_money(answer.fits) else "ranked by GPUs, since a price is missing"
        )


def _shared(fit: ServingFit) -> Iterator[str]:
    """Nodes that replicas do not fill: money counts the part that they do."""
    if fit.best is None or fit.price is None:
        return
    counted, whole_nodes = fit.best.charged_gpus, fit.best.nodes * fit.question.pool.gpus_per_node
    if whole_nodes > counted * (1 + 1e-9):
        cost = money(whole_nodes * fit.price.value, fit.price.currency)
        yield (
            f"{fit.machine.asked}: money counts {number(counted)} of the {whole_nodes:,} GPUs of the nodes; all of them"
            f" cost {cost}/h"
        )
