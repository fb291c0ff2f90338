"""What speaks against a run that came back: its record, its hosts, its GPUs, its bytes. Such a run measured nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from clusterwright.judging.acceptance_plans import Group, PlannedTest
from clusterwright.judging.acceptance_runs import RunRecord
from clusterwright.judging.derivations.facts import Facts, short_name
from clusterwright.judging.deriving import families_of
from clusterwright.lib.hostlists import fold
from clusterwright.model.observations import Run

if TYPE_CHECKING:
    from clusterwright.judging.acceptance_evidence import RunOutput
    from clusterwright.judging.acceptance_sites import PoolFacts

#: Tests of which the plan does not say where they run.
_ANYWHERE: Final = frozenset({"client", "once"})
#: Kinds of which the output names every host that took part.
_NAMING: Final = ("nccl-", "rccl-")
_SHOWN: Final = 4


def why_record_contradicts(test: PlannedTest, nodes: Group, run: RunRecord) -> str:
    """How a record contradicts the run that was planned, or itself; "" when it does not."""
    if run.ended < run.started:
        return "record contradicts itself: it ended before it began"
    if run.lacking or run.exit_code is None:
        return ""
    if nodes and run.nodes and test.kind.runs not in _ANYWHERE:
        allowed = [set(nodes), set(test.nodes)] if test.kind.launch == "ranks" else [set(nodes)]
        if set(run.nodes) not in allowed:
            return f"record contradicts itself: it ran on {fold(run.nodes)}, the run {run.unit} is of {fold(nodes)}"
    if run.node and run.nodes and run.node not in run.nodes and test.kind.runs not in _ANYWHERE:
        return f"record contradicts itself: written on {run.node}, which is none of {fold(run.nodes)}"
    takes_time = test.kind.sustained or any(f.benchmark for f in families_of(test.kind.reader))
    if takes_time and run.started == run.ended and not run.failed:
        return "record contradicts itself: it began and ended at the same moment"
    return ""


def why_output_contradicts(output: RunOutput, nodes: Group, declared: Sequence[str], pool: PoolFacts | None) -> str:
    """How an output contradicts the record beside it, or the pool that it should be of; "" when it does not.

    Args:
        declared: every node of the plan.
        pool: that the test is of, None when unknown.
    """
    for run in output.transcript.runs:
        facts = Facts(output.transcript.kind, run)
        if why := _why_other_hosts(output, facts, nodes, declared):
            return f"output contradicts its record: {why}"
        if why := _why_other_gpu(run, pool):
            return f"output contradicts the file: {why}"
    return ""


def _why_other_hosts(output: RunOutput, facts: Facts, nodes: Group, declared: Sequence[str]) -> str:
    named = isinstance(facts.run.condition("nodes"), str) or isinstance(facts.run.condition("node"), str)
    printed = facts.node_names() if named else ()
    if not nodes or not printed:
        return ""
    ours, all_ours = {short_name(n) for n in nodes}, {short_name(n) for n in declared}
    names_all = output.transcript.kind.startswith(_NAMING)
    pods = f"cw-{output.run.test[:40]}"  # as the exported manifests name them

    def strange(host: str) -> bool:
        short = short_name(host)
        if short in ours:
            return False
        if short in all_ours:
            return True
        return names_all and not (output.run.engine == "kubernetes" and host.startswith(pods))

    others = [h for h in printed if strange(h)]
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        return f"it names {', '.join(others[:_SHOWN])}{more}, the run was on {fold(nodes)}"
    whole = names_all and facts.run.condition("ranks_listed") is None
    if whole and len({short_name(h) for h in printed}) != len(nodes):
        return f"it names {len(printed)} hosts, the run was on {fold(nodes)}"
    return ""


def _why_other_gpu(run: Run, pool: PoolFacts | None) -> str:
    if pool is None or not pool.is_product:
        return ""
    products = (run.condition("gpu"), *(o.value for o in run.observations if o.name == "gpu"))
    for product in dict.fromkeys(p for p in products if isinstance(p, str) and p):
        if not pool.is_product(product):
            return f"it was taken on {product[:60]}, the pool {pool.name} has {pool.gpu}"
    return ""


def product_test(gpu: str, resolve: Callable[[str], str]) -> Callable[[str], bool]:
    """Whether a product as tools print it may be the GPU of that name.

    Args:
        resolve: the name of a product in the catalogue, "" where that does not know it.
    """
    word = gpu.lower().split("-")[0]

    def fits(product: str) -> bool:
        known = resolve(product)
        if known:
            return known == gpu
        words = re.split(r"[^a-z0-9]+", product.lower())
        models = [w for w in words if re.fullmatch(r"[a-z]{1,3}\d{2,4}[a-z]{0,2}", w) and not w.startswith("hbm")]
        return word in words or not models

    return fits


def find_copies(outputs: Iterable[tuple[Group, RunOutput]]) -> dict[str, str]:
    """Path of an output → why it is a copy: the same bytes as the output of other nodes, which came first."""
    first: dict[str, tuple[Group, str]] = {}
    found = {}
    for nodes, output in outputs:
        if not output.digest or not any(run.observations for run in output.transcript.runs):
            continue
        if any(f.name == "support" for f in families_of(output.transcript.kind)):
            continue  # a check of settings that are the same on every node
        owner, path = first.setdefault(output.digest, (nodes, output.path))
        if owner != nodes:
            found[output.path] = f"output contradicts its record: the same bytes as {path}"
    return found
