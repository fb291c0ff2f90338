"""Importing an acceptance: a directory that came back → the verdict on every claim."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from clusterwright.app.accepting import derive
from clusterwright.app.judging import judge_document
from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.files.manifests import Protection, read_protection
from clusterwright.files.streams import find_outputs, stream_bytes
from clusterwright.files.times import written_at
from clusterwright.judging.acceptance_evidence import RunOutput
from clusterwright.judging.acceptance_plans import AcceptancePlan
from clusterwright.judging.acceptance_pod_logs import files_in_log
from clusterwright.judging.acceptance_pods import PodState, parse_pod
from clusterwright.judging.acceptance_runs import RunRecord, parse_run
from clusterwright.judging.acceptance_sites import pool_facts
from clusterwright.judging.acceptance_verdicts import (
    Findings,
    Imported,
    ReturnedRun,
    explain_verdicts,
    gather_findings,
)
from clusterwright.judging.ceilings import limits_of
from clusterwright.judging.deriving import derive as derive_readings
from clusterwright.judging.placing_outputs import hosts_in_path, read_moment
from clusterwright.judging.recording import record
from clusterwright.judging.requirements import collect_claims
from clusterwright.judging.sites import site_of
from clusterwright.judging.verdicts import judge
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Evidence, Verdict
from clusterwright.model.evidence import Outcome as Judged
from clusterwright.model.observations import Outcome, Transcript
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.plans import Plan
from clusterwright.readers.reading import KINDS, read_output
from clusterwright.render.scripts import FORMAT, shell_command
from clusterwright.report.acceptance_results import render_results, results_markdown, results_values

_RESULTS: Final = "clusterwright-results/1"
_LARGEST: Final = 64 * 2**20
#: Files of ours that are no output of a test.
_OURS: Final = frozenset({"run.json", "manifest.json", "plan.json", "pod.txt"})


@dataclass(frozen=True)
class ImportRequest:
    """What is imported.

    Args:
        directory: the results, or the exported directory that holds them.
        engine: that ran outputs which have no record of their run, "" when nobody says.
    """

    files: Sequence[str]
    directory: str
    overrides: Sequence[str] = ()
    catalogues: Sequence[str] = ()
    engine: str = ""


def import_acceptance(request: ImportRequest, *, now: datetime | None = None) -> Imported:
    """Judge everything that came back.

    Args:
        now: aware time of the judgement; the clock's when absent.

    Raises:
        InvalidInput: when the architecture or the directory cannot be read.
    """
    document = load_document(request.files, request.overrides)
    root = _root(Path(request.directory))
    remarks: list[str] = []
    exported = _load_object(root / "plan.json", FORMAT, remarks)
    plan = derive(document, catalogues=request.catalogues, derived_with=_derived_with(exported))
    _refuse_other_plan(root, exported, document)
    remarks += _differences(plan, exported)
    collected = _load_object(root / "manifest.json", _RESULTS, remarks)
    paths = find_outputs([str(root)]) if any(root.iterdir()) else []
    names = [Path(p).relative_to(root).as_posix() for p in paths]
    runs = any(Path(n).name == "run.json" for n in names)
    protection = read_protection(collected, there=(root / "manifest.json").exists(), runs=runs)
    remarks += [f"{name} is in the manifest and not here" for name in protection.digests if name not in names][:20]
    if protection.absent:
        remarks.append("there is no manifest, so nothing shows whether files were lost or altered on the way")
    if protection.broken:
        remarks.append(f"no file is protected by the manifest: {protection.broken}; nothing here counts")
    pods = _pods(root)
    returned, used = _returned(root, protection, pods, remarks)
    returned += _printed(root, protection, returned, remarks)
    catalogue = load_catalogue(request.catalogues)
    findings = gather_findings(plan, returned, pool_facts(document.architecture, catalogue))
    rest = [n for n in names if n not in used and Path(n).name not in _OURS and not n.startswith("pods/")]
    others, evidence = _others(root, rest, document, request, protection)
    remarks += _dead_pods(pods, plan, findings)
    now = now or datetime.now(UTC)
    everything = (*findings.evidence, *evidence)
    planned = plan_architecture(document, catalogue)
    verdicts, coverage = judge_document(document, planned, (), everything, now=now)
    commands = {t.id: f"sh {_starter(exported)} {t.id}" for t in plan.tests}
    own = _own_reasons(document, planned, verdicts, everything, now)
    explained = explain_verdicts(verdicts, plan, findings, commands, own)
    return Imported(plan, findings, explained, coverage, tuple(others), tuple(remarks))


def _own_reasons(
    document: Document, planned: Plan, verdicts: Sequence[Verdict], evidence: Sequence[Evidence], now: datetime
) -> dict[str, str]:
    """Claim that is open → why the tests that were planned for it leave it so, whatever others happened to measure."""
    claims = collect_claims(document.architecture)
    site, limits = site_of(document.architecture), limits_of(claims, planned)
    found = {}
    for claim, verdict in zip(claims, verdicts, strict=True):
        if verdict.outcome is Judged.NOT_MEASURED:
            meant = [e for e in evidence if claim.id in e.requirements]
            own = judge((claim,), meant, (), now=now, site=site, limits=limits)[0]
            found[claim.id] = own.reason if own.outcome is Judged.NOT_MEASURED else verdict.reason
    return found


def describe_import(imported: Imported, width: int = 120) -> str:
    """The verdict as text for a terminal of that many columns."""
    return render_results(imported, width)


def markdown_of_import(imported: Imported) -> str:
    """The verdict as Markdown."""
    return results_markdown(imported)


def values_of_import(imported: Imported) -> dict[str, Any]:
    """The verdict as plain values."""
    return results_values(imported)


def _root(directory: Path) -> Path:
    """The directory of the results, also where that of the export is named."""
    try:
        if not directory.is_dir():
            hint = "unpack the archive and name its directory" if directory.is_file() else ""
            raise InvalidInput(Problem(Place(str(directory)), "", "no such directory", hint))
        inside = directory / "results"
        root = inside if (directory / "tests").is_dir() and (directory / "plan.json").is_file() else directory
        if root is inside and not root.is_dir():
            raise InvalidInput(
                Problem(Place(str(directory)), "", "nothing was run here yet", "run its tests, then collect.sh")
            )
    except (OSError, ValueError) as error:
        raise InvalidInput(Problem(Place(str(directory)), "", f"cannot be read: {error}")) from None
    return root


def _load_object(path: Path, form: str, remarks: list[str]) -> dict[str, Any] | None:
    """A JSON object of ours, None when it is not there; one that cannot be read is a remark."""
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("too large")
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        remarks.append(f"{path.name} cannot be read: {error}")
        return None
    if not isinstance(value, dict) or value.get("format") != form:
        remarks.append(f"{path.name} is not of the format {form}")
        return None
    return value


def _derived_with(exported: Mapping[str, Any] | None) -> dict[str, Any]:
    """How the exported plan was derived, as far as it can be trusted to be that."""
    given = exported.get("derived_with") if exported else None
    found: dict[str, Any] = {}
    if not isinstance(given, dict):
        return found
    if given.get("dcgm_level") in (1, 2, 3, 4):
        found["dcgm_level"] = given["dcgm_level"]
    only, nodes = given.get("only"), given.get("only_nodes")
    if isinstance(only, dict) and isinstance(nodes, list) and all(isinstance(n, str) for n in (*only, *nodes)):
        found |= {"only": {k: str(v) for k, v in only.items()}, "only_nodes": nodes}
    return found


def _differences(plan: AcceptancePlan, exported: Mapping[str, Any] | None) -> Iterator[str]:
    """Tests whose command the file asks for in another form than was exported."""
    if exported is None:
        return
    tests = exported.get("tests")
    then = {str(t.get("id")): t.get("command") for t in tests if isinstance(t, dict)} if isinstance(tests, list) else {}
    now = {t.id: shell_command(t.argv) for t in plan.tests}
    changed = [i for i, command in now.items() if i in then and then[i] != command]
    for id_ in changed[:10]:
        yield f"{id_} was exported from another version of the file: it ran {then[id_]}, the file now asks {now[id_]}"
    new = [i for i in now if i not in then]
    if new:
        yield f"the file now asks for tests that were not exported: {', '.join(new[:10])}"


def _starter(exported: Mapping[str, Any] | None) -> str:
    return "submit.sh" if exported and exported.get("engine") in ("kubernetes", "slurm") else "run.sh"


def _refuse_other_plan(root: Path, exported: Mapping[str, Any] | None, document: Document) -> None:
    """Refuse results of a plan for another cluster, or for claims that the file does not make."""
    if exported is None:
        return
    place, ours = Place(str(root / "plan.json")), document.architecture.cluster.name
    theirs = exported.get("cluster")
    if theirs != ours:
        raise InvalidInput(
            Problem(place, "", f"these are results of the cluster {str(theirs)[:60]!r}, the file describes {ours!r}")
        )
    tests = exported.get("tests")
    named = [c for t in (tests if isinstance(tests, list) else ()) if isinstance(t, dict) for c in _list(t, "claims")]
    known = {c.id for c in collect_claims(document.architecture)}
    if strange := [str(c)[:60] for c in dict.fromkeys(map(str, named)) if c not in known]:
        more = f" and {len(strange) - 10} more" if len(strange) > 10 else ""
        raise InvalidInput(
            Problem(
                place,
                "",
                f"it was exported for claims that the file does not make: {', '.join(strange[:10])}{more}",
                "name the file that it was exported from",
            )
        )


def _list(values: Mapping[str, Any], key: str) -> list[Any]:
    found = values.get(key)
    return found if isinstance(found, list) else []


def _pods(root: Path) -> dict[str, PodState]:
    """Pod → what Kubernetes said about it."""
    found = {}
    for path in sorted((root / "pods").glob("*.json")) if (root / "pods").is_dir() else ():
        try:
            text = path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= _LARGEST else ""
        except OSError:
            continue
        state = parse_pod(text)
        if state is not None:
            found[path.stem] = state
    return found


def _returned(
    root: Path, protection: Protection, pods: Mapping[str, PodState], remarks: list[str]
) -> tuple[list[ReturnedRun], set[str]]:
    """Every run with a record, and the files that belong to one."""
    returned: list[ReturnedRun] = []
    used: set[str] = set()
    for path in sorted(root.rglob("run.json")):
        folder = path.parent.relative_to(root).as_posix()
        used |= {f"{folder}/{p.name}" for p in path.parent.iterdir()}
        text = path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= _LARGEST else "{}"
        run = parse_run(text)
        if isinstance(run, str):
            remarks.append(f"{folder}/run.json was not used: {run}")
            continue
        if why := protection.why_unusable(root, f"{folder}/run.json"):
            if not protection.broken:
                remarks.append(f"{folder}/run.json was not used: {why}")
            returned.append(ReturnedRun(run, (), f"run.json {why}"))
            continue
        image = _image_of(path.parent, pods)
        outputs, problem = _outputs(root, folder, run, protection, image)
        returned.append(ReturnedRun(run, tuple(outputs), problem))
    return returned, used


def _outputs(
    root: Path, folder: str, run: RunRecord, protection: Protection, image: str
) -> tuple[list[RunOutput], str]:
    """(outputs of a run, why they cannot be used or "")."""
    outputs = []
    for name in run.files:
        place = f"{folder}/{name}"
        if not (root / place).is_file():
            continue
        if why := protection.why_unusable(root, place):
            return [], f"{name} {why}"
        transcript, digest = read_whole(str(root / place), run.reader)
        outputs.append(RunOutput(run, place, transcript, digest, image))
    return outputs, ""


def _printed(
    root: Path, protection: Protection, returned: Sequence[ReturnedRun], remarks: list[str]
) -> list[ReturnedRun]:
    """Attempts that only the logs of pods hold: every pod of a test is an attempt, and each one counts."""
    known = {_same_run(r.run) for r in returned}
    found: list[ReturnedRun] = []
    for path in sorted((root / "pods").glob("*.log")) if (root / "pods").is_dir() else ():
        name = f"pods/{path.name}"
        if why := protection.why_unusable(root, name):
            if not protection.broken:
                remarks.append(f"{name} was not used: {why}")
            continue
        if path.stat().st_size > _LARGEST:
            remarks.append(f"{name} was not used: too large")
            continue
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        for folder, files in files_in_log(text).items():
            run = parse_run(files.get("run.json", b"").decode("utf-8", "replace"))
            if isinstance(run, str) or _same_run(run) in known:
                continue
            known.add(_same_run(run))
            earlier = [r.run.attempt for r in (*returned, *found) if (r.run.test, r.run.unit) == (run.test, run.unit)]
            run = replace(run, attempt=max(earlier, default=0) + 1)
            outputs = [_printed_output(run, f"{name}:{folder}/{n}", files[n]) for n in run.files if n in files]
            found.append(ReturnedRun(run, tuple(outputs)))
    return found


def _same_run(run: RunRecord) -> tuple[object, ...]:
    return (run.test, run.unit, run.role, run.node, run.started, run.ended)


def _printed_output(run: RunRecord, path: str, content: bytes) -> RunOutput:
    transcript = read_output([content], name=path)
    if transcript.outcome is Outcome.REFUSED and not transcript.kind and run.reader in KINDS:
        transcript = read_output([content], name=path, kind=run.reader)
    return RunOutput(run, path, transcript, f"sha256:{sha256(content).hexdigest()}")


def read_whole(path: str, reader: str = "") -> tuple[Transcript, str]:
    """(what an output says, its digest). Its kind is found out; where nothing knows it, the expected reader says why.

    Args:
        reader: kind that is expected, "" for none.
    """
    digest = sha256()

    def noted() -> Iterator[bytes]:
        for piece in stream_bytes(path):
            digest.update(piece)
            yield piece

    pieces = noted()
    transcript = read_output(pieces, name=path)
    for _ in pieces:  # a reader that refuses leaves a rest, which belongs to the digest
        pass
    if transcript.outcome is Outcome.REFUSED and not transcript.kind and reader in KINDS:
        transcript = read_output(stream_bytes(path), name=path, kind=reader)
    return transcript, f"sha256:{digest.hexdigest()}"


def _image_of(folder: Path, pods: Mapping[str, PodState]) -> str:
    try:
        name = (folder / "pod.txt").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return pods[name].image if name in pods else ""


def _dead_pods(pods: Mapping[str, PodState], plan: AcceptancePlan, findings: Findings) -> Iterator[str]:
    """Pods that ended without printing a run, with what Kubernetes says about them."""
    for name, pod in pods.items():
        if pod.problem and pod.test in {t.id for t in plan.tests}:
            yield f"pod {name} of {pod.test} on {pod.node or 'no node'}: {pod.problem}"


def _others(
    root: Path, names: Sequence[str], document: Document, request: ImportRequest, protection: Protection
) -> tuple[list[tuple[str, str]], list[Evidence]]:
    """(what was made of files beside the runs, their evidence)."""
    site = site_of(document.architecture)
    hosts = tuple(h for pool in site.hosts.values() for h in pool)
    told, evidence = [], []
    for name in names:
        if why := protection.why_unusable(root, name):
            told.append((name, f"not used: {why}"))
            continue
        transcript, digest = read_whole(str(root / name))
        if transcript.outcome is Outcome.REFUSED:
            told.append((name, f"not read: {transcript.refusal or 'no run in it'}"))
            continue
        nodes = hosts_in_path(name, hosts)
        derivation = derive_readings(transcript, nodes=nodes)
        moments = [m for t in (derivation.started, derivation.ended) if (m := read_moment(t)) is not None]
        written = written_at(str(root / name))
        if not moments and written is None:
            told.append((name, f"{transcript.kind}, without a time: not used"))
            continue
        started, ended = (moments[0][0], moments[-1][0]) if moments else (written, written)
        if started is None or ended is None:
            continue
        evidence.append(record(derivation, raw_digest=digest, started=started, ended=ended, engine=request.engine))
        when = "its printed time" if moments else "the time of the file"
        ran = f"engine {request.engine}" if request.engine else "no engine is said to have run it (--engine)"
        told.append((name, f"{transcript.kind}, {len(derivation.readings)} readings; {when}; {ran}"))
    return told, evidence
