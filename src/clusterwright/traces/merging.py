"""Several imports of one kind → one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from clusterwright.traces.counting import SAMPLES, Finding, RowCounts, Sample
from clusterwright.traces.imports import Imported
from clusterwright.traces.tables import Counts, Trace, Words


def merge(imports: Sequence[Imported]) -> Imported:
    """One import with the jobs of all, in the order of submission; what one does not record, the gaps say."""
    if len(imports) == 1:
        return imports[0]
    first = max(imports, key=lambda found: len(found.trace))
    gaps = {gap: None for found in imports for gap in found.gaps}
    return replace(
        first,
        trace=_merge_traces([found.trace for found in imports]),
        counts=_merge_counts([found.counts for found in imports]),
        gaps=tuple(gaps),
        machines=tuple(machine for found in imports for machine in found.machines),
    )


def _merge_traces(traces: Sequence[Trace]) -> Trace:
    order = np.argsort(np.concatenate([trace.submit_s for trace in traces]), kind="stable")
    ids = [name for trace in traces for name in trace.ids]
    columns: dict[str, Any] = {}
    for column in fields(Trace):
        parts = [getattr(trace, column.name) for trace in traces]
        if isinstance(parts[0], Words):
            columns[column.name] = _merge_words(parts).take(order)
        elif column.name != "ids":
            columns[column.name] = np.concatenate(parts)[order]
    return Trace(ids=tuple(ids[place] for place in order.tolist()), **columns)


def _merge_words(parts: Sequence[Words]) -> Words:
    known = {word: code for code, word in enumerate(dict.fromkeys(word for part in parts for word in part.words))}
    recoded: list[Counts] = [
        np.array([known[word] for word in part.words], dtype=np.int32)[part.codes] for part in parts
    ]
    return Words(np.concatenate(recoded), tuple(known))


def _merge_counts(counts: Sequence[RowCounts]) -> RowCounts:
    return RowCounts(
        sum(count.rows for count in counts),
        sum(count.jobs for count in counts),
        _merge_findings([finding for count in counts for finding in count.parts]),
        _merge_findings([finding for count in counts for finding in count.rejected]),
        _merge_findings([finding for count in counts for finding in count.remarks]),
    )


def _merge_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    totals, rules = Counter[str](), dict[str, Finding]()
    samples: dict[str, tuple[Sample, ...]] = {}
    for finding in findings:
        totals[finding.code] += finding.count
        rules.setdefault(finding.code, finding)
        samples[finding.code] = (*samples.get(finding.code, ()), *finding.samples)[:SAMPLES]
    return tuple(Finding(code, found.rule, totals[code], samples[code]) for code, found in rules.items())
