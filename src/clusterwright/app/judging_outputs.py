"""Judging outputs: files → what they prove → a verdict on every claim of the architecture, where one is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from clusterwright.app.judging import judge_document
from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.files.inputs import DEFAULT_NAME, STANDARD_INPUT
from clusterwright.files.streams import find_outputs, stream_bytes
from clusterwright.files.times import written_at
from clusterwright.judging.advising import advise
from clusterwright.judging.causes import find_causes
from clusterwright.judging.combining import combine
from clusterwright.judging.conditions import magnitude
from clusterwright.judging.deriving import Derivation, derive
from clusterwright.judging.happenings import Log, happenings_of
from clusterwright.judging.identities import doubt_twins, find_twice
from clusterwright.judging.meaning import meaning_of
from clusterwright.judging.outliers import find_outliers
from clusterwright.judging.outputs import Judged, JudgedOutput, Kept, Timed
from clusterwright.judging.placing_outputs import place, read_moment
from clusterwright.judging.recording import record
from clusterwright.judging.sites import site_of
from clusterwright.judging.yardsticks import measure, refuse_impossible
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.hostlists import HostlistError, expand, fold
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Evidence
from clusterwright.plan.planning import plan_architecture
from clusterwright.readers.reading import read_output
from clusterwright.report.judgement_values import judgement_values
from clusterwright.report.judgements import render_judgement

ENGINES: Final = ("slurm", "kubernetes", "local")
_HEAD: Final = 64 * 1024
#: What a directory holds that is a store of evidence.
_INDEX: Final = "index.sqlite"


@dataclass(frozen=True)
class OutputRequest:
    """What is judged.

    Args:
        paths: architecture files (recognised by their apiVersion) and outputs or directories of them, in any order.
        nodes: host list on which they were taken, "" when the outputs or their paths say it.
        known: host list of names that a path may hold, where neither `nodes` nor an architecture says them.
        engine: that ran them, "" when the caller does not say.
        workload: declared workload that they are about.
        taken: ISO day or time for outputs that print none.
        kind: the reader for all of them; "" finds out.
    """

    paths: Sequence[str]
    nodes: str = ""
    engine: str = ""
    workload: str = ""
    taken: str = ""
    kind: str = ""
    overrides: Sequence[str] = ()
    catalogues: Sequence[str] = ()
    known: str = ""


def judge_outputs(request: OutputRequest, *, kept: Sequence[Kept] = (), now: datetime | None = None) -> Judged:
    """Judge outputs and kept evidence, against the claims of an architecture where one is among the paths.

    Args:
        kept: evidence that counts beside the outputs.
        now: aware time of the judgement; the clock's when absent.

    Raises:
        InvalidInput: when a path, option or the architecture cannot be read, or there is nothing to judge.
    """
    now = now or datetime.now(UTC)
    _check(request)
    files, outputs = _sort(request.paths)
    if not outputs and not kept:
        raise InvalidInput(
            "no output is named: give at least one file that a tool wrote, - for standard input, or --evidence"
        )
    catalogue = load_catalogue(request.catalogues)
    document = load_document(files, request.overrides) if files else None
    given = _expand(request.nodes)
    known = given or _expand(request.known) or _hosts_of(document)
    paths = _outside_stores(find_outputs(outputs))
    judged = tuple(judge_output(path, request, given, known, document, catalogue, now) for path in paths)
    kept = [_without_repeats(k, [output.evidence for output in judged]) for k in kept]
    read = [(o.path, o.transcript, o.evidence) for o in judged]
    twice = find_twice(read)
    evidence = combine([*doubt_twins(read, twice), *(e for k in kept for e in k.evidence)])
    groups = tuple(g for g in find_outliers(evidence) if not g.why_not)
    causes = find_causes(happenings_of(Log(o.path, o.transcript, o.evidence.nodes) for o in judged))
    if document is None:
        return Judged(judged, groups=groups, remarks=_remarks_on(kept), kept=tuple(kept), causes=causes, twice=twice)
    plan = plan_architecture(document, catalogue)
    verdicts, coverage = judge_document(document, plan, (), evidence, now=now)
    name = document.architecture.cluster.name
    remarks = (*_remarks(request, document, judged), *_remarks_on(kept))
    return Judged(judged, name, verdicts, coverage, groups, remarks, tuple(kept), causes, twice)


def _without_repeats(kept: Kept, fresh: Sequence[Evidence]) -> Kept:
    """Kept evidence without what the outputs say again: the same bytes, read as the same, from the same engine."""
    said = {(e.raw_digest, e.readings, e.nodes, e.engine) for e in fresh}
    rest = (e for e in kept.evidence if (e.raw_digest, e.readings, e.nodes, e.engine) not in said)
    return replace(kept, evidence=tuple(rest))


def describe_judgement(judged: Judged, *, whole: bool = False, width: int = 120) -> str:
    """The judgement as text, for a terminal of `width` columns."""
    return render_judgement(judged, whole=whole, width=width)


def values_of_judgement(judged: Judged) -> dict[str, Any]:
    """The judgement as plain values."""
    return judgement_values(judged)


def _check(request: OutputRequest) -> None:
    if request.engine and request.engine not in ENGINES:
        raise InvalidInput(f"no engine '{request.engine}'; choose one of {', '.join(ENGINES)}")
    if request.taken and read_moment(request.taken) is None:
        raise InvalidInput(f"--taken '{request.taken}' is no time; write 2026-11-30 or 2026-11-30T14:05:00Z")
    if request.kind:
        try:
            read_output([], kind=request.kind)
        except ValueError as error:
            raise InvalidInput(str(error)) from None


def _expand(nodes: str) -> tuple[str, ...]:
    try:
        return expand(nodes) if nodes.strip() else ()
    except HostlistError as error:
        raise InvalidInput(f'--nodes: {error}; write for example "gpu-[001-008]"') from None


def _outside_stores(paths: Sequence[str]) -> list[str]:
    """The paths that do not lie in a store of evidence: its files lack what their records say."""
    folders = {folder for path in paths for folder in Path(path).parents}
    stores = {folder for folder in folders if (folder / _INDEX).is_file()}
    return [path for path in paths if not stores.intersection(Path(path).parents)]


def _sort(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """(architecture files, outputs)."""
    files, outputs = list[str](), list[str]()
    for path in paths:
        if path != STANDARD_INPUT and (Path(path) / _INDEX).is_file():
            raise InvalidInput(Problem(Place(path), "", "is a store of evidence", f"--evidence {path}"))
        (files if _is_architecture(path) else outputs).append(path)
    return files, outputs


def _is_architecture(path: str) -> bool:
    """Whether the path is a file of ours, or a directory that holds one under its usual name."""
    if path == STANDARD_INPUT:
        return False
    file = Path(path)
    try:
        if file.is_dir():
            file = file / DEFAULT_NAME
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
    except (OSError, ValueError):
        return False
    lines = (line.strip() for line in head.split(b"\n"))
    return any(line.startswith(b"apiVersion:") and b"clusterwright/" in line for line in lines)


def _hosts_of(document: Document | None) -> tuple[str, ...]:
    if document is None:
        return ()
    return tuple(h for hosts in site_of(document.architecture).hosts.values() for h in hosts)


def judge_output(
    path: str,
    request: OutputRequest,
    given: Sequence[str],
    known: Sequence[str],
    document: Document | None,
    catalogue: Catalogue,
    now: datetime,
) -> JudgedOutput:
    """Read one output and say what it proves.

    Args:
        given: hosts that the caller says it was taken on; known: those that a path may name.
        document: architecture whose workloads it may be about, if there is one.

    Raises:
        InvalidInput: when it cannot be read, or an architecture needs a time and nothing gives one.
    """
    digest = sha256()

    def noted() -> Iterator[bytes]:
        for piece in stream_bytes(path):
            digest.update(piece)
            yield piece

    pieces = noted()
    transcript = read_output(pieces, name=path, kind=request.kind)
    for _ in pieces:  # a reader that refuses leaves a rest, which belongs to the digest
        pass
    found = () if path == STANDARD_INPUT else place(path, transcript, known)
    derivation = derive(transcript, nodes=found or given, workload=request.workload)
    if document is not None and not request.workload:
        derivation = _with_workload(derivation, document)
    yardsticks = measure(transcript, derivation, catalogue)
    derivation = refuse_impossible(derivation, yardsticks)
    started, ended, timed = _times(path, derivation, request, now, needed=document is not None)
    evidence = record(
        derivation,
        raw_digest=f"sha256:{digest.hexdigest()}",
        started=started,
        ended=ended,
        engine=request.engine,
    )
    named = _describe_hosts(evidence.nodes, found, given)
    meaning = meaning_of(transcript.kind)
    return JudgedOutput(
        path, transcript, evidence, timed, named, meaning, derivation.notices, yardsticks, advise(transcript)
    )


def _describe_hosts(nodes: Sequence[str], found: Sequence[str], given: Sequence[str]) -> str:
    if not nodes:
        return ""
    if found:
        return f"{fold(nodes)}, named by the path"
    return f"{fold(nodes)}, named by --nodes" if set(nodes) <= set(given) else f"{fold(nodes)}, named by the output"


def _with_workload(derivation: Derivation, document: Document) -> Derivation:
    """Readings of a benchmark belong to the one declared workload that serves the model it names."""
    model = dict(derivation.environment).get("model", "")
    fitting = [
        name
        for name, workload in document.architecture.workloads.items()
        if model and workload.model is not None and _last(str(workload.model)) == _last(model)
    ]
    if len(fitting) != 1:
        return derivation
    label = ("workload", fitting[0])
    readings = tuple(replace(r, conditions=(*r.conditions, label)) for r in derivation.readings)
    return replace(derivation, readings=readings)


def _last(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2].lower()


def _times(
    path: str, derivation: Derivation, request: OutputRequest, now: datetime, *, needed: bool
) -> tuple[datetime, datetime, Timed]:
    """(started, ended, where they come from)."""
    printed = [m for text in (derivation.started, derivation.ended) if text and (m := read_moment(text)) is not None]
    if not derivation.started and len(printed) == 1:
        printed.insert(0, (printed[0][0] - timedelta(seconds=_longest(derivation)), printed[0][1]))
    if printed and all(zoned for _, zoned in printed):
        return printed[0][0], printed[-1][0], "printed"
    if request.taken and (moment := read_moment(request.taken)) is not None:
        return moment[0], moment[0], "given"
    if printed:
        return printed[0][0], printed[-1][0], "printed without a time zone, counted at its oldest"
    written = None if path == STANDARD_INPUT else written_at(path)
    if written is not None:
        return written, written, "time of the file"
    if needed:
        raise InvalidInput("standard input prints no time; say with --taken when it was measured")
    return now, now, "given"


def _longest(derivation: Derivation) -> float:
    """Seconds of the longest duration that a reading prints, 0 when none does."""
    texts = (text for r in derivation.readings for name, text in r.conditions if name == "duration")
    return max((magnitude(text, "duration") or 0.0 for text in texts), default=0.0)


def _remarks_on(kept: Sequence[Kept]) -> tuple[str, ...]:
    return tuple(k.remark for k in kept if k.remark)


def _remarks(request: OutputRequest, document: Document, judged: Sequence[JudgedOutput]) -> Iterator[str]:
    engines = sorted({name for name in site_of(document.architecture).engines.values() if name})
    if judged and not request.engine and engines:
        yield f"no output counts as measured before it is said which engine ran it: --engine {' or '.join(engines)}"
    unnamed = [o.path for o in judged if not o.evidence.nodes and o.evidence.readings]
    if unnamed:
        more = f" and {len(unnamed) - 1} more" if len(unnamed) > 1 else ""
        yield f"on which hosts {unnamed[0]}{more} was taken is not known: --nodes HOSTS, or a path that names them"
