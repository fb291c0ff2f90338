"""A plan that finds a bad node, or what its results say, as text and as plain values."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from clusterwright.judging.finding import Compared, Found, Table
from clusterwright.judging.outliers import Outlier
from clusterwright.judging.searching import FEWEST_PARTNERS, Slow, pair_rounds
from clusterwright.lib.hostlists import fold
from clusterwright.report.judgements import format_size
from clusterwright.report.transcripts import value_values


def render_finding(found: Found, width: int = 120) -> str:
    """What is suspect first, then what to run next; a plan when there are no results yet."""
    lines = list(_plan(found) if not found.records else _results(found))
    return "\n".join(wrapped for line in lines for wrapped in _wrap(line, max(60, width)))


def _wrap(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line, width, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False
    ) or [""]


def _plan(found: Found) -> Iterator[str]:
    yield from _not_used(found)
    count = len(found.nodes)
    if found.by == "halves":
        yield f"halves of {count} nodes, one step at a time; the first:"
        yield f"  {_tell_runs(found.runs)}"
        yield "what passes clears its nodes, what fails is split; the next step follows from the results"
    else:
        rounds = pair_rounds(found.nodes)
        yield f"pairs of {count} nodes: {len(rounds)} rounds, the runs of a round all at once, each over its 2 nodes"
        width = len(str(len(rounds)))
        yield from (f"  round {number:>{width}}: {_tell_runs(runs)}" for number, runs in enumerate(rounds, 1))
        if len(rounds) > FEWEST_PARTNERS:
            yield f"{FEWEST_PARTNERS} rounds find a bad node, all {len(rounds)} also a bad path between two good ones"
    yield (
        "run the same test in each, such as all_reduce_perf -b 8G -e 8G -g 8, which prints its hosts"
        if found.by == "halves"
        else "run the same test in each, such as all_reduce_perf -b 8G -e 8G -g 8 or ib_write_bw, and write its output "
        f"to a file whose path names its hosts, such as {'_'.join(found.runs[0])}.log"
    )
    bound = " --by halves --bound '45 GB/s'" if found.by == "halves" else ""
    yield f"then: cw find-node --nodes {_nodes(found.nodes)}{bound} DIRECTORY"


def _results(found: Found) -> Iterator[str]:
    if found.bad:
        yield f"suspect: {_nodes(found.bad)}"
    elif found.exit_code == 0:
        yield f"no node of {_nodes(found.nodes)} is suspect"
    else:
        yield f"no node of {_nodes(found.nodes)} is suspect so far"
    for compared in found.compared:
        yield f"{_usual(compared)}:"
        yield from (f"  {_tell_node(slow, compared)}" for slow in compared.findings.bad_nodes)
        yield from _standing(compared, len(found.nodes))
    for tried in found.tried:
        yield from (f"  {line}" for line in _tell_tried(tried.what, tried.results, tried.step.bad))
    yield from (f"  {_tell_alone(o)}" for o in found.alone)
    yield from (f"the fault of no single node: {conflict}" for conflict in found.conflicts)
    yield from (f"{t.what}: passed by {_nodes(t.step.cleared)}" for t in found.tried if t.step.cleared)
    yield from _not_used(found)
    yield from (f"no value from {_nodes(sorted(group))}: {why}" for group, why in found.lacking)
    if found.runs:
        yield f"run next, all at once: {_tell_runs(found.runs)}"


def _tell_node(slow: Slow, compared: Compared) -> str:
    table = compared.table
    partners = f"the median over {slow.pairs} partner{'s' * (slow.pairs != 1)}"
    return f"{slow.nodes[0]}: {table.quantity(slow.value)}, {partners}{_deviations(slow)}"


def _usual(compared: Compared) -> str:
    """What was compared, and the nodes that are not bad: their median and MAD."""
    table, usual = compared.table, compared.findings.usual
    size = table.size.removesuffix(" B")
    at = f" at {format_size(float(size)) if size.isdecimal() else table.size}" if table.size else ""
    conditions = "".join(f", {name.replace('_', ' ')} {text}" for name, text in table.conditions)
    spread = (
        "too few nodes to compare"
        if usual is None
        else f"median of the good nodes {table.quantity(usual.median)}, MAD {table.quantity(usual.mad)}"
    )
    return f"{table.metric}{at}{conditions}; {len(table.pairs)} pairs; {spread}"


def _deviations(slow: Slow) -> str:
    return "" if slow.score == float("inf") else f", {slow.score:.1f} deviations"


def _tell_tried(what: str, results: Any, bad: Sequence[str]) -> Iterator[str]:
    failed = [group for group, passed in results.items() if not passed]
    for node in bad:
        mine = [group for group in failed if node in group]
        partners = sorted({n for group in mine for n in group} - {node})
        yield f"{node}: not {what} in {len(mine)} runs with {_nodes(partners)}, which pass without it"
    rest = [group for group in failed if not group & set(bad)]
    if rest:
        yield f"not {what}: {'; '.join(_nodes(sorted(group)) for group in rest[:6])}" + (
            f" and {len(rest) - 6} more" if len(rest) > 6 else ""
        )


def _tell_alone(outlier: Outlier) -> str:
    score = "" if outlier.score == float("inf") else f", {outlier.score:.1f} deviations"
    under = "".join(f", {name.replace('_', ' ')} {text}" for name, text in outlier.conditions)
    return (
        f"{outlier.node} alone: {outlier.metric} {outlier.value}; {outlier.peers} peers {outlier.usual}{score}{under}"
    )


def _standing(compared: Compared, count: int) -> Iterator[str]:
    """Slow paths, which nodes are as fast as the others, and of which that is not known yet."""
    table, findings = compared.table, compared.findings
    for slow in findings.bad_pairs:
        value = f"{table.quantity(slow.value)}{_deviations(slow)}"
        yield f"  slow path {','.join(slow.nodes)}: {value}, though both are fast with others"
    if findings.cleared:
        yield f"  cleared: {_nodes(findings.cleared)}"
    if findings.open:
        yield f"  not known yet: {_nodes(findings.open)} met fewer than {FEWEST_PARTNERS} others, or no good one"
    tried, all_ = len(table.pairs), count * (count - 1) // 2
    if findings.cleared and tried < all_:
        yield f"  {tried} of {all_} pairs were run; the paths between the others are not covered"


def _not_used(found: Found) -> Iterator[str]:
    if found.unnamed:
        yield f"{found.unnamed} results name no hosts, nor do their paths: not used"
    if found.strangers:
        yield f"results on {_nodes(found.strangers)}, which --nodes does not name, were not used"


def _tell_runs(runs: Iterable[Sequence[str]]) -> str:
    return "  ".join(",".join(run) if len(run) < 5 else fold(run) for run in runs)


def _nodes(nodes: Iterable[str]) -> str:
    return fold(nodes)


def finding_values(found: Found) -> dict[str, Any]:
    """Everything that was found, as plain values; values of results in base units beside their text."""
    return {
        "exit_code": found.exit_code,
        "nodes": list(found.nodes),
        "by": found.by,
        "rounds": [[list(pair) for pair in runs] for runs in pair_rounds(found.nodes)] if found.by == "pairs" else None,
        "suspects": list(found.bad),
        "run_next": [list(run) for run in found.runs],
        "compared": [_compared_values(c) for c in found.compared],
        "tried": [
            {
                "what": t.what,
                "passed": [sorted(g) for g, ok in t.results.items() if ok],
                "failed": [sorted(g) for g, ok in t.results.items() if not ok],
                "bad": list(t.step.bad),
                "cleared": list(t.step.cleared),
                "open": list(t.step.open),
                "conflict": t.step.conflict or None,
            }
            for t in found.tried
        ],
        "alone": [
            {
                "node": o.node,
                "metric": o.metric,
                "value": value_values(o.value),
                "usual": value_values(o.usual),
                "deviations": None if o.score == float("inf") else o.score,
            }
            for o in found.alone
        ],
        "without_value": [{"nodes": sorted(group), "why": why} for group, why in found.lacking],
        "not_used": {"without_hosts": found.unnamed, "other_hosts": list(found.strangers)},
    }


def _compared_values(compared: Compared) -> dict[str, Any]:
    table, findings = compared.table, compared.findings
    usual = findings.usual
    return {
        "metric": table.metric,
        "message_size": table.size or None,
        "conditions": dict(table.conditions),
        "median": None if usual is None else value_values(table.quantity(usual.median)),
        "mad": None if usual is None else value_values(table.quantity(usual.mad)),
        "bad_nodes": [_slow_values(slow, table) for slow in findings.bad_nodes],
        "bad_paths": [_slow_values(slow, table) for slow in findings.bad_pairs],
        "cleared": list(findings.cleared),
        "open": list(findings.open),
        "pairs": [
            {"nodes": list(pair), "value": value_values(table.quantity(value))} for pair, value in table.pairs.items()
        ],
    }


def _slow_values(slow: Slow, table: Table) -> dict[str, Any]:
    return {
        "nodes": list(slow.nodes),
        "value": value_values(table.quantity(slow.value)),
        "deviations": None if slow.score == float("inf") else slow.score,
        "pairs": slow.pairs,
    }
