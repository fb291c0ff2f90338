"""Finding a bad node: a plan of tests over pairs or halves, and what their results say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.app.judging_outputs import OutputRequest, judge_outputs
from clusterwright.judging.finding import RIGHT, SPEEDS, Bound, By, Found, find_bad_nodes, plan_search
from clusterwright.judging.outputs import Kept
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.hostlists import HostlistError, expand
from clusterwright.lib.quantities import UnitError, parse_kind
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.metrics import METRICS
from clusterwright.report.finding import finding_values, render_finding


@dataclass(frozen=True)
class FindRequest:
    """Among which nodes, by which tests.

    Args:
        paths: outputs of tests over the nodes; none for a plan.
        metric: that is compared, "" for whatever was measured.
        bound: that every test must meet, such as `45 GB/s`; "" compares the pairs with each other.
    """

    nodes: str
    paths: Sequence[str] = ()
    by: By = "pairs"
    metric: str = ""
    bound: str = ""


def find_node(request: FindRequest, *, kept: Sequence[Kept] = ()) -> Found:
    """The plan, or what results say.

    Raises:
        InvalidInput: when an option or an output cannot be read, or halves have results and no bound.
    """
    nodes = _expand(request.nodes)
    bound = _bound(request)
    if not request.paths and not kept:
        return plan_search(nodes, request.by)
    if request.by == "halves" and bound is None:
        raise InvalidInput(
            "halves are of different sizes and not compared with each other: say with --bound what passes"
        )
    judged = judge_outputs(OutputRequest(request.paths, known=request.nodes), kept=kept)
    evidence = [*(o.evidence for o in judged.outputs), *(e for k in judged.kept for e in k.evidence)]
    found = find_bad_nodes(nodes, evidence, by=request.by, metric=request.metric, bound=bound)
    if bound is not None and found.records and not any(t.what != RIGHT for t in found.tried):
        raise InvalidInput(f"no result over several nodes can be compared with {request.bound}")
    return found


def describe_finding(found: Found, width: int = 120) -> str:
    """What was found as text for a terminal of that many columns."""
    return render_finding(found, width)


def values_of_finding(found: Found) -> dict[str, Any]:
    """What was found as plain values."""
    return finding_values(found)


def _expand(text: str) -> tuple[str, ...]:
    try:
        nodes = tuple(dict.fromkeys(expand(text)))
    except HostlistError as error:
        raise InvalidInput(f'--nodes: {error}; write for example "gpu-[001-008]"') from None
    if len(nodes) < 2:
        raise InvalidInput(f"--nodes {text}: at least two nodes are needed to test one against another")
    return nodes


def _bound(request: FindRequest) -> Bound | None:
    if request.metric and request.metric not in SPEEDS:
        hint = did_you_mean(request.metric, SPEEDS) or f"choose one of {', '.join(SPEEDS)}"
        raise InvalidInput(f"no metric '{request.metric}' is measured over several nodes; {hint}")
    if not request.bound:
        return None
    kinds = dict.fromkeys(METRICS[name].kind for name in ((request.metric,) if request.metric else SPEEDS))
    for kind in kinds:
        try:
            return Bound(parse_kind(request.bound, kind), request.bound)
        except UnitError:
            continue
    raise InvalidInput(f"--bound '{request.bound}' measures none of {', '.join(kinds)}; write for example '45 GB/s'")
