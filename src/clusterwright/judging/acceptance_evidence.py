"""Outputs of a run → evidence. A command that failed gives no pass, but what it measured on the wrong side counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterwright.judging.acceptance_loads import Load, why_log_leaves_gaps
from clusterwright.judging.acceptance_plans import PlannedTest
from clusterwright.judging.acceptance_runs import RunRecord
from clusterwright.judging.deriving import Derivation, derive
from clusterwright.judging.recording import record
from clusterwright.lib.hostlists import fold
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Evidence, Reading
from clusterwright.model.observations import Run, Transcript


@dataclass(frozen=True, slots=True)
class RunOutput:
    """One output of a run.

    Args:
        digest: of its bytes, `sha256:...`.
        image: the image with its digest as the engine says it, "" when it does not.
    """

    run: RunRecord
    path: str
    transcript: Transcript
    digest: str
    image: str = ""


def evidence_of(
    output: RunOutput, test: PlannedTest, nodes: Sequence[str], *, load: Load | None = None, lost: str = ""
) -> Evidence:
    """The evidence of one output.

    Args:
        nodes: hosts that the run was planned on.
        load: before a log was taken, None when none was planned: a log of quiet days says nothing about hours of load.
        lost: what of the whole run did not come back, "" for nothing; keeps the values from passing, not from failing.
    """
    derivation = derive(output.transcript, nodes=nodes, workload=test.workload)
    gaps = why_log_leaves_gaps(output, load) if load is not None and load.seconds else ""
    readings = [_completed(r, output.image, load, gaps) for r in derivation.readings]
    if lost:
        spoiled = dict.fromkeys((*(r.metric for r in readings), *test.kind.proves))
        readings += [Reading(m, None, (), tuple(nodes), f"incomplete: {lost}") for m in spoiled]
    if why := output.run.failed:
        spoiled = dict.fromkeys((*(r.metric for r in readings), *(m for m in test.kind.proves)))
        hosts = tuple(nodes)
        readings += [Reading(m, None, (), hosts, f"invalid: {why}") for m in spoiled]
    return _record(output, test, replace(derivation, readings=tuple(readings)), nodes)


def _completed(reading: Reading, image: str, load: Load | None, gaps: str) -> Reading:
    """The reading with conditions that the output does not print and the engine or the order of tests tells.

    Args:
        gaps: why silence says nothing; what was seen counts all the same.
    """
    said = dict(reading.conditions)
    if image:
        said.setdefault("image", image)
    if load is not None:
        said["duration"] = f"{load.seconds:.0f} s"
    if gaps and not reading.value:
        return replace(reading, value=None, conditions=tuple(said.items()), unreadable=reading.unreadable or gaps)
    return replace(reading, conditions=tuple(said.items()))


def _record(output: RunOutput, test: PlannedTest, derivation: Derivation, nodes: Sequence[str]) -> Evidence:
    environment = dict(derivation.environment)
    run = output.run
    for name, value in (("driver", run.driver), ("kernel", run.kernel), ("image", output.image or run.image)):
        if value:
            environment.setdefault(name, value)
    known = tuple(dict.fromkeys((*derivation.nodes, *nodes)))
    return record(
        replace(derivation, nodes=known, environment=tuple(environment.items())),
        raw_digest=output.digest,
        started=run.started,
        ended=run.ended,
        engine=run.engine,
        requirements=test.claims,
    )


def image_evidence(output: RunOutput, test: PlannedTest, nodes: Sequence[str]) -> Evidence | None:
    """What the engine says about the image that ran, None when it says nothing."""
    if not output.image:
        return None
    conditions = (("workload", test.workload),) if test.workload else ()
    reading = Reading("image_digest", output.image, conditions, tuple(nodes))
    derivation = Derivation("", "status of the pod", (reading,), tuple(nodes))
    return _record(output, test, derivation, nodes)


def combine_ranks(
    outputs: Mapping[tuple[str, ...], RunOutput], test: PlannedTest, absent: Mapping[str, str] | None = None
) -> Evidence | None:
    """Evidence of a job whose ranks wrote one output per node, None when none came back.

    A node without an output leaves the job without a verdict: what its ranks did is not known.

    Args:
        absent: node → why it has no output, where it says so itself.
    """
    if not outputs:
        return None
    first = next(iter(outputs.values()))
    nodes = test.nodes
    runs = [run for o in outputs.values() for run in o.transcript.runs]
    merged = Run(
        tool=runs[0].tool if runs else first.transcript.kind,
        version=runs[0].version if runs else "",
        conditions=runs[0].conditions if runs else (),
        observations=tuple(o for run in runs for o in run.observations),
        notices=tuple(dict.fromkeys(n for run in runs for n in run.notices)),
        missing=tuple(dict.fromkeys(m for run in runs for m in run.missing)),
        rejected=sum(run.rejected for run in runs),
        unread=tuple(u for run in runs for u in run.unread),
    )
    transcript = Transcript(first.transcript.kind, (merged,))
    times = [o.run for o in outputs.values()]
    spoilt = next((r for r in times if r.failed), first.run)
    run = replace(spoilt, started=min(r.started for r in times), ended=max(r.ended for r in times))
    whole = RunOutput(run, first.path, transcript, first.digest, first.image)
    found = evidence_of(whole, test, nodes)
    why = _why_no_job(outputs, test, absent or {})
    if not why:
        return found
    kept = tuple(replace(r, value=None, unreadable=why) for r in found.readings)
    return _record(whole, test, replace(derive(transcript), readings=kept), nodes)


def _why_no_job(outputs: Mapping[tuple[str, ...], RunOutput], test: PlannedTest, absent: Mapping[str, str]) -> str:
    by_why: dict[str, list[str]] = {}
    for node in test.nodes:
        if (node,) not in outputs:
            by_why.setdefault(absent.get(node, "did not report"), []).append(node)
    if by_why:
        return f"incomplete: {'; '.join(f'{fold(nodes)}: {why}' for why, nodes in by_why.items())}"
    seen = (o for output in outputs.values() for run in output.transcript.runs for o in run.observations)
    worlds = {o.value for o in seen if o.name == "world_size" and isinstance(o.value, float)}
    if worlds and worlds != {float(test.ranks)}:
        sizes = ", ".join(f"{w:.0f}" for w in sorted(worlds))
        return f"other scope: a job of {sizes} ranks, planned are {test.ranks}"
    return ""


@dataclass(frozen=True, slots=True)
class ControlResult:
    """Whether a number changed when a feature was switched off.

    Args:
        held: None when one of the two was not measured.
    """

    test: str
    of: str
    held: bool | None
    text: str


def compare_control(control: PlannedTest, evidence: Iterable[Evidence], measured: Iterable[Evidence]) -> ControlResult:
    """Compare a negative control with the test that it belongs to, node by node, at the same size.

    Args:
        evidence: of the control.
        measured: of the test.
    """
    spec = control.kind.control
    limit = spec.at_most_share if spec else 1.0
    off, on = _bandwidths(evidence), _bandwidths(measured)
    pairs = [(key, on[key], off[key]) for key in off if key in on and on[key] > 0]
    if not pairs:
        missing = "the control" if not off else "the test itself" if not on else "both at one size"
        return ControlResult(control.id, control.control_of, None, f"not measured: {missing}")
    key, before, after = max(pairs, key=lambda p: p[2] / p[1])
    where = ",".join(key[0]) if len(key[0]) <= 2 else f"{len(key[0])} nodes"
    share = after / before
    text = f"{before / 1e9:.1f} → {after / 1e9:.1f} GB/s ({share - 1:+.0%}) on {where}"
    if share <= limit:
        return ControlResult(control.id, control.control_of, True, text)
    why = "the measured number did not use what was switched off, or the setting did not reach the processes"
    return ControlResult(
        control.id, control.control_of, False, f"{text}; it should fall to {limit:.0%} or below: {why}"
    )


def _bandwidths(evidence: Iterable[Evidence]) -> dict[tuple[tuple[str, ...], str, str], float]:
    """(nodes, size, in place) → bus bandwidth in bytes per second, the worst of several."""
    found: dict[tuple[tuple[str, ...], str, str], float] = {}
    for item in evidence:
        for reading in item.readings:
            said = dict(reading.conditions)
            if reading.metric == "busbw" and isinstance(reading.value, Quantity):
                key = (reading.nodes or item.nodes, said.get("message_size", ""), said.get("in_place", ""))
                found[key] = min(found.get(key, reading.value.value), reading.value.value)
    return found
