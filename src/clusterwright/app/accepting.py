"""The acceptance plan: files → the tests that the claims need, as text or as a directory for an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.files.directories import write_tree
from clusterwright.files.scripts_of_tests import load_scripts
from clusterwright.files.suites import load_tests
from clusterwright.judging.acceptance_deriving import Request, derive_plan
from clusterwright.judging.acceptance_plans import AcceptancePlan
from clusterwright.judging.acceptance_sites import pool_facts
from clusterwright.judging.acceptance_stale import stale_after_replacement
from clusterwright.judging.ceilings import limits_of
from clusterwright.judging.requirements import collect_claims
from clusterwright.judging.sites import site_of
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.hostlists import HostlistError, expand
from clusterwright.lib.spelling import did_you_mean
from clusterwright.model.architecture import Architecture
from clusterwright.model.documents import Document
from clusterwright.model.evidence import Evidence
from clusterwright.model.evidence_values import parse_evidence
from clusterwright.plan.planning import plan_architecture
from clusterwright.render.exports import Export, Files, Options, Rails
from clusterwright.render.kubernetes.exporting import render_kubernetes
from clusterwright.render.kubernetes.jobs import image_of
from clusterwright.render.scripts import services_of, stores_of
from clusterwright.render.shell.exporting import render_shell
from clusterwright.render.slurm.exporting import render_slurm
from clusterwright.report.acceptance import plan_markdown, plan_values, render_plan

Engine = Literal["kubernetes", "slurm", "shell"]
#: Network → link layer of its devices as Linux writes it (sysfs-class-infiniband, ports/N/link_layer).
_LAYERS: Final = {"infiniband": "InfiniBand", "roce": "Ethernet", "efa": ""}
_RENDER: Final = {"kubernetes": render_kubernetes, "slurm": render_slurm, "shell": render_shell}


@dataclass(frozen=True)
class AcceptanceRequest:
    """What is planned.

    Args:
        replaced: host list of nodes that were replaced; only what they make stale is planned.
        evidence: what was measured before; with it only claims that were met and are not any more are planned.
        dcgm_level: of the DCGM diagnostics, 1 to 4.
    """

    files: Sequence[str]
    overrides: Sequence[str] = ()
    catalogues: Sequence[str] = ()
    replaced: str = ""
    evidence: Sequence[Evidence] | None = None
    dcgm_level: int = 3


@dataclass(frozen=True)
class Planned:
    """A plan with the document it belongs to, and how it is derived again."""

    document: Document
    plan: AcceptancePlan
    derived_with: Mapping[str, Any] = field(default_factory=dict)


def plan_acceptance(request: AcceptanceRequest, *, now: datetime | None = None) -> Planned:
    """The tests that the claims of the files need.

    Raises:
        InvalidInput: when a file cannot be read, or a replaced node is not declared.
    """
    if request.dcgm_level not in (1, 2, 3, 4):
        raise InvalidInput(f"DCGM diagnostics have the levels 1 to 4, not {request.dcgm_level}")
    document = load_document(request.files, request.overrides)
    catalogue = load_catalogue(request.catalogues)
    architecture = document.architecture
    site, claims = site_of(architecture), collect_claims(architecture)
    plan = plan_architecture(document, catalogue)
    only: Mapping[str, str] | None = None
    replaced: tuple[str, ...] = ()
    if request.replaced:
        replaced = _replaced(request.replaced, tuple(h for hosts in site.hosts.values() for h in hosts))
        moment = now or datetime.now(UTC)
        limits = limits_of(claims, plan)
        only = stale_after_replacement(claims, request.evidence, replaced, now=moment, site=site, limits=limits)
    derived_with: dict[str, Any] = {"dcgm_level": request.dcgm_level}
    if only is not None:
        derived_with |= {"only": dict(only), "only_nodes": list(replaced)}
    return Planned(document, derive(document, catalogues=request.catalogues, derived_with=derived_with), derived_with)


def derive(
    document: Document, *, catalogues: Sequence[str] = (), derived_with: Mapping[str, Any] | None = None
) -> AcceptancePlan:
    """The plan of a document.

    Args:
        derived_with: `dcgm_level`, and `only` (claim → reason) with `only_nodes` where not everything is run.
    """
    chosen = derived_with or {}
    catalogue = load_catalogue(catalogues)
    architecture = document.architecture
    return derive_plan(
        Request(
            architecture=architecture,
            site=site_of(architecture),
            pools=pool_facts(architecture, catalogue),
            claims=collect_claims(architecture),
            tests=load_tests(),
            plan=plan_architecture(document, catalogue),
            only=chosen.get("only"),
            only_nodes=frozenset(chosen.get("only_nodes", ())),
            dcgm_level=chosen.get("dcgm_level", 3),
        )
    )


def _replaced(text: str, known: Sequence[str]) -> tuple[str, ...]:
    try:
        names = expand(text)
    except HostlistError as error:
        raise InvalidInput(f'--replaced: {error}; write for example "gpu-[001-002]"') from None
    strange = [n for n in names if n not in known]
    if strange:
        raise InvalidInput(f"--replaced: no worker node '{strange[0]}'; {did_you_mean(strange[0], known)}".rstrip("; "))
    return names


def describe_acceptance(planned: Planned, width: int = 120) -> str:
    """The plan as text for a terminal of that many columns."""
    return render_plan(planned.plan, width)


def markdown_of_acceptance(planned: Planned) -> str:
    """The plan as Markdown, to be pasted into a ticket."""
    return plan_markdown(planned.plan)


def values_of_acceptance(planned: Planned) -> dict[str, Any]:
    """The plan as plain values."""
    return plan_values(planned.plan)


def evidence_of_bundle(path: Path) -> tuple[Evidence, ...]:
    """The evidence in a bundle that verifies.

    Raises:
        InvalidInput: when it is no bundle, does not verify, or holds a record that is no evidence.
    """
    from clusterwright.app.verifying import open_records  # needs the extra for signatures; no other command here does

    found = []
    for record in open_records(path):
        try:
            found.append(parse_evidence(record.content.get("evidence"), record.id))
        except (ValueError, AttributeError) as error:
            raise InvalidInput(f"{path}: record {record.sequence}: {error}") from None
    return tuple(found)


def acceptance_code(plan: AcceptancePlan) -> int:
    """1 when the tests do not fit the window, 3 when a claim has no test, 0 otherwise."""
    if plan.late:
        return 1
    return 3 if any(u.kind != "out" for u in plan.uncovered) else 0


def export_acceptance(planned: Planned, engine: Engine, options: Options) -> Files:
    """The files of an export, path → text.

    Raises:
        InvalidInput: when an option names nothing of the plan, or Kubernetes has no image to run.
    """
    plan = planned.plan
    for given, known, what in (
        (options.stores, stores_of(plan), "store"),
        (options.endpoints, services_of(plan), "service"),
    ):
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known) or f"tests use {', '.join(filter(None, known)) or 'none'}"
                raise InvalidInput(f"no test uses a {what} '{name}'; {hint}")
    if engine == "kubernetes":
        tests = Export(plan, engine, {}, options).tests
        bare = [t.id for t in tests if t.kind.runs != "client" and not image_of(t, options, plan.image)]
        if bare:
            raise InvalidInput(
                f"no image for {', '.join(bare[:3])}{' ...' if len(bare) > 3 else ''}: declare acceptance.image, or "
                "give --image"
            )
    return _RENDER[engine](
        Export(
            plan,
            engine,
            load_scripts(),
            options,
            rails_of(planned.document.architecture),
            foreign_engine(planned, engine),
            planned.derived_with,
        )
    )


def foreign_engine(planned: Planned, engine: Engine) -> str:
    """Why results of an export for that engine will not count, "" when they do."""
    declared = [e for e in planned.plan.engine.split(" and ") if e]
    runs_as = "local" if engine == "shell" else engine
    if not declared or declared == [runs_as]:
        return ""
    some = "for pools of another engine " if runs_as in declared else ""
    return (
        f"The file declares the engine {' and '.join(declared)}, and these tests run under {runs_as}: {some}claims "
        "stay not measured, as only what ran under the declared engine counts."
    )


def rails_of(architecture: Architecture) -> dict[str, Rails]:
    """Pool → the ports of its only compute network with RDMA; pools with none, or with several, are left out."""
    networks = architecture.fabric.networks.values() if architecture.fabric else ()
    found = {}
    for name in architecture.pools:
        reach = [n for n in networks if "compute" in n.roles and n.kind in _LAYERS and (not n.pools or name in n.pools)]
        if len(reach) == 1:
            found[name] = Rails(_LAYERS[reach[0].kind], reach[0].rate.to("Gb/s"), reach[0].ports)
    return found


def write_acceptance(files: Files, directory: Path, *, replace: bool = False) -> None:
    """Write an export; a directory that holds something is only written to when it may be replaced.

    Raises:
        InvalidInput: when the directory holds something.
    """
    write_tree(directory, files, replace=replace)


__all__ = [
    "AcceptanceRequest",
    "Engine",
    "Options",
    "Planned",
    "acceptance_code",
    "derive",
    "describe_acceptance",
    "evidence_of_bundle",
    "export_acceptance",
    "foreign_engine",
    "markdown_of_acceptance",
    "plan_acceptance",
    "values_of_acceptance",
    "write_acceptance",
]
