"""Disaggregated serving of a file: prefill and decode workers, each with layout, memory, rate and count.

Prefill workers queue prompts within the target of the first token and hand the cache over the NICs; decode workers hold
the sequences within the target per later token. Source of the split: DistServe, OSDI 2024; Splitwise, ISCA 2024.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Serve, WorkerGroup, Workload
from clusterwright.plan.collectives import fabric_rate, nic_rate
from clusterwright.plan.drafts import Draft, count_replicas, find_site, request_of
from clusterwright.plan.engines import engine_unknown, read_engine
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.layouts import declared_layout, why_impossible
from clusterwright.plan.models import PlannedModel, find_model
from clusterwright.plan.results.layouts import Layout
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.services import Load, read_load, replica_rate
from clusterwright.plan.serving_memory import lengths, plan_serving_memory
from clusterwright.plan.sites import Site
from clusterwright.plan.split_searches import searched_halves

#: Engines that hand caches over between workers with the same speculation only: the prefill workers then hold the
#: drafter too (vLLM documentation, NixlConnector Compatibility Matrix, note 1).
_DRAFTERS_ALIKE: Final = ("vllm",)


class _Half(NamedTuple):
    """One half before its rate is known."""

    layout: Layout
    memory: MemoryPlan
    load: Load


def draft_split(sheet: Sheet, name: str, workload: Workload, serve: Serve, sites: tuple[Site, ...]) -> Draft:
    """The decode workers of a service, with its prefill workers in `first`."""
    site = find_site(sheet, name, workload, sites)
    model = find_model(sheet, name, workload)
    if isinstance(site, Unplanned):
        return Draft(name, workload, None, model, None, site)
    found = _halves(sheet, name, workload, serve, site, model)
    if isinstance(found, Unplanned):
        return Draft(name, workload, site, model, None, found, lengths=lengths(sheet, f"workloads.{name}.serve", serve))
    return _counted(sheet, name, workload, serve, site, model, found)


def _halves(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, site: Site, model: PlannedModel | Unplanned
) -> tuple[_Half, _Half] | Unplanned:
    """(prefill, decode), or why they cannot be planned."""
    prefix, path = f"workloads.{name}", f"workloads.{name}.serve"
    if serve.parallel is not None or serve.replicas is not None:
        what = "parallel" if serve.parallel is not None else "replicas"
        sheet.misfit(
            f"{prefix}.placement", f"{path}.{what}",
            f"{what} is of replicas that prefill and decode; say under disaggregated what each half is",
        )  # fmt: skip
    if isinstance(model, Unplanned):
        return Unplanned(f"{prefix}.memory", model.reason, model.missing)
    unknown = engine_unknown(sheet, f"{prefix}.memory", path, serve)
    if unknown is not None:
        return unknown
    if isinstance(nic_rate(sheet, site), Unplanned):
        return sheet.miss(
            f"{prefix}.memory", "no network hands caches from prefill to decode workers", "fabric.networks"
        )
    layouts = _layouts(sheet, name, workload, serve, site, model)
    if isinstance(layouts, Unplanned):
        return layouts
    halves = []
    for half, layout in zip(("prefill", "decode"), layouts, strict=True):
        found = _half(sheet, name, workload, serve, site, model, half, layout)
        if isinstance(found, Unplanned):
            return found
        halves.append(found)
    return halves[0], halves[1]


def _layouts(
    sheet: Sheet, name: str, workload: Workload, serve: Serve, site: Site, model: PlannedModel
) -> tuple[Layout, Layout] | Unplanned:
    groups = [_group(serve, half) for half in ("prefill", "decode")]
    stated = [declared_layout(group.parallel) if group.parallel else None for group in groups]
    if stated[0] is not None and stated[1] is not None:
        return stated[0], stated[1]
    found = searched_halves(sheet, name, workload, serve, site, model)
    if isinstance(found, Unplanned):
        return found
    return stated[0] or found[0], stated[1] or found[1]


def _group(serve: Serve, half: str) -> WorkerGroup:
    found: WorkerGroup | None = getattr(serve.disaggregated, half)
    return found or WorkerGroup()


def _half(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    site: Site,
    model: PlannedModel,
    half: str,
    layout: Layout,
) -> _Half | Unplanned:
    path, own = f"workloads.{name}.serve", f"workloads.{name}{'.prefill' if half == 'prefill' else ''}"
    plain = serve.model_copy(update={"speculation": None})
    against = why_impossible(layout, site, model.decoder)
    if against:
        sheet.misfit(f"{own}.placement", f"{path}.disaggregated.{half}", against)
        return Unplanned(f"{own}.memory", f"{half} workers: {against}")
    drafting = half == "decode" or read_engine(serve.engine).name in _DRAFTERS_ALIKE
    holding = serve if drafting else plain
    memory = plan_serving_memory(sheet, f"{own}.memory", path, holding, model, site, layout)
    if isinstance(memory, Unplanned):
        return memory
    running = serve if half == "decode" else plain  # nothing is drafted before the first token
    load = read_load(
        sheet, name, workload, running, model, site, layout, memory, f"{own}.service", decodes=half == "decode"
    )
    return load if isinstance(load, Unplanned) else _Half(layout, memory, load)


def _counted(
    sheet: Sheet,
    name: str,
    workload: Workload,
    serve: Serve,
    site: Site,
    model: PlannedModel | Unplanned,
    halves: tuple[_Half, _Half],
) -> Draft:
    prefill, decode = halves
    both = lengths(sheet, f"workloads.{name}.serve", serve)
    prefix, path, nodes = f"workloads.{name}.service", f"workloads.{name}.serve", len(site.nodes)
    rate = replica_rate(sheet, prefix, path, serve.model_copy(update={"replica_rate": None}), decode.load, nodes)
    handover = _handover(sheet, name, site, decode.load)
    prefilled = sheet.derive(
        f"workloads.{name}.prefill.service.replica_rate",
        "req/s",
        "most prompts of a prefill worker within the target of the first token: wait as M/G/1 + prefill + handover + "
        f"half a decode step; {prefill.load.said}",
        lambda step, handed, *v: prefill.load.build(*v).prefilled(step / 1e3, handed),
        sheet.figures[f"{prefix}.step"],
        handover,
        *prefill.load.inputs,
    )
    drafts = []
    for half, own, found, each in (("prefill", f"{name}.prefill", prefill, prefilled), ("decode", name, decode, rate)):
        for_load, needed, for_failures = count_replicas(
            sheet, own, workload, serve, site, found.layout, each, found.load
        )
        wanted = _group(serve, half).workers or for_failures or needed
        request = request_of(sheet, own, workload, site, found.layout, wanted) if found.memory.fits else None
        draft = Draft(own, workload, site, model, found.layout, found.memory, load=found.load, rate=each, wanted=wanted)
        draft = replace(draft, needed=needed, for_load=for_load, for_failures=for_failures)
        drafts.append(replace(draft, request=request, lengths=both))
    return replace(drafts[1], first=drafts[0], handover=handover)


def _handover(sheet: Sheet, name: str, site: Site, decode: Load) -> Figure:
    """s until the cache of a prompt of mean length is with its decode worker."""
    nic = nic_rate(sheet, site)
    assert isinstance(nic, Figure)
    assert decode.handover is not None
    through, _ = fabric_rate(sheet, site, nic)
    setting = decode.replica.setting
    each, share = setting.decode.hand_bytes / 1e6, setting.constants.link_share
    size = sheet.derive(
        f"workloads.{name}.service.handed",
        "MB",
        "cache of a prompt of mean length that one GPU hands over",
        lambda tokens: tokens * each,
        decode.prompt,
    )
    return sheet.derive(
        f"workloads.{name}.service.handover",
        "s",
        f"what a handover takes beside its bytes + bytes ÷ NIC of a GPU ÷ {share:.2f}, the share of its rate that is "
        "reached",
        lambda ms, mb, rate: ms / 1e3 + mb / 1e3 / rate / share,
        decode.handover,
        size,
        through,
    )
