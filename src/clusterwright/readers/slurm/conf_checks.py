"""What a careful reader of a slurm.conf says: capacity that accounting misses, nodes that contradict themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from clusterwright.lib.hostlists import fold
from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.refusing import shorten
from clusterwright.readers.slurm.conf_keys import OLD
from clusterwright.readers.slurm.declared import Declared, DeclaredNode

_SHOWN: Final = 160


def check(run: RunBuilder, declared: Declared, settings: Mapping[str, str]) -> None:
    """Write notices about the whole file into the run."""
    _check_old_keys(run, declared, settings)
    _check_gpus(run, declared, settings)
    _check_partitions(run, declared)
    _check_processors(run, declared)
    if "maxnodecount" in settings or any(not nodes for nodes in declared.sets.values()):
        run.notice(
            "dynamic-nodes",
            "nodes register themselves here (MaxNodeCount or node sets by feature): the file does not name them all",
        )


def _check_old_keys(run: RunBuilder, declared: Declared, settings: Mapping[str, str]) -> None:
    old = [key for key in settings if key in OLD] + list(declared.old_keys)
    for key in old:
        run.notice("old-key", f"{key} is an old key: {OLD[key]}", Weight.INFO)
    if settings.get("selecttype", "").endswith("cons_res"):
        run.notice(
            "old-plugin", "select/cons_res was removed in 23.11; select/cons_tres counts GPUs per job", Weight.INFO
        )


def _check_gpus(run: RunBuilder, declared: Declared, settings: Mapping[str, str]) -> None:
    gpus = sum(node.gpus for node in declared.nodes.values())
    tracked = settings.get("accountingstoragetres", "")
    stored = settings.get("accountingstoragetype", "accounting_storage/none")
    types = {part.strip() for part in settings.get("grestypes", "").split(",")}
    whole_file = bool({"clustername", "slurmctldhost", "controlmachine", "accountingstoragetype"} & settings.keys())
    if gpus and "gres/gpu" not in tracked and whole_file:
        run.notice(
            "gpu-hours-not-recorded",
            f"{gpus} GPUs are configured but AccountingStorageTRES has no gres/gpu: GPU hours are not recorded",
        )
    elif gpus and whole_file and stored.endswith("/none"):
        run.notice("nothing-recorded", f"{gpus} GPUs are configured and accounting is off: no usage is recorded")
    if gpus and settings.get("grestypes") is not None and "gpu" not in types:
        run.notice("gres-type-missing", "nodes have Gres=gpu but GresTypes does not name gpu", Weight.ERROR)
    if not gpus and whole_file and not declared.unknown:
        whole = settings.get("selecttype", "").endswith("linear")
        run.notice(
            "no-gpus-declared",
            f"no node has Gres=gpu: Slurm counts no GPU here ({len(declared.nodes)} nodes), whatever hardware they have"
            + ("; whole nodes are allocated (select/linear), so usage can only be charged by node" if whole else ""),
        )
        if "gres/gpu" in tracked:
            run.notice(
                "gpu-tracked-without-gres", "AccountingStorageTRES tracks gres/gpu, which no node has: GPU use stays 0"
            )
    if "shard" in types or "gres/shard" in tracked or "mps" in types:
        run.notice(
            "gpu-fractions", "shards (or MPS) are fractions of the same GPUs and are never added to them", Weight.INFO
        )
    kinds: dict[str, int] = {}
    for node in declared.nodes.values():
        for gres in node.resources or ():
            if gres.is_gpu and not node.potential:
                kinds[gres.type or "untyped"] = kinds.get(gres.type or "untyped", 0) + (gres.count or 0)
    if kinds:
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        run.notice(
            "gpu-kinds", f"{sum(kinds.values())} GPUs of {len(kinds)} kinds: {shorten(listed, _SHOWN)}", Weight.INFO
        )


def _check_partitions(run: RunBuilder, declared: Declared) -> None:
    used: dict[str, int] = {}
    for partition in declared.partitions.values():
        unknown = [name for name in partition.nodes or () if name not in declared.nodes]
        if unknown and declared.nodes:
            run.notice(
                "unknown-node",
                f"partition {partition.name} names nodes that no NodeName line declares: "
                f"{shorten(fold(unknown), _SHOWN)}",
                Weight.ERROR,
                partition.line,
            )
        for name in partition.nodes or ():
            used[name] = used.get(name, 0) + 1
        text = partition.keys.get("oversubscribe") or partition.keys.get("shared") or ""
        times = re.fullmatch(r"(?:YES|FORCE)(?::(\d{1,4}))?", text, re.IGNORECASE)
        if times is not None:
            run.notice(
                "oversubscribed",
                f"partition {partition.name}: up to {times[1] or 4} jobs may share a resource ({text}); what is "
                "allocated may exceed what is installed",
                line=partition.line,
            )
    several = [name for name, count in used.items() if count > 1]
    if several:
        run.notice(
            "node-in-several-partitions",
            f"{len(several)} nodes stand in several partitions; each is counted once: {shorten(fold(several), _SHOWN)}",
            Weight.INFO,
        )
    alone = [name for name in declared.nodes if name not in used]
    if alone and declared.partitions and all(p.nodes is not None for p in declared.partitions.values()):
        run.notice("node-in-no-partition", f"no partition holds {shorten(fold(alone), _SHOWN)}: no job can use them")


def _check_processors(run: RunBuilder, declared: Declared) -> None:
    found: dict[str, list[str]] = {}
    for node in declared.nodes.values():
        wrong = _contradiction(node)
        if wrong:
            found.setdefault(wrong, []).append(node.name)
    for wrong, names in found.items():
        run.notice("cpus-inconsistent", f"{shorten(fold(names), _SHOWN)}: {wrong}")


def _contradiction(node: DeclaredNode) -> str:
    """What is wrong with the numbers of processors; "" if nothing."""
    numbers = {
        key: int(value) for key, value in node.keys.items() if value.isascii() and value.isdigit() and len(value) < 8
    }
    cpus = numbers.get("cpus")
    cores, threads = numbers.get("corespersocket", 1), numbers.get("threadspercore", 1)
    if cpus is None:
        return ""
    if numbers.get("procs", cpus) != cpus:
        return f"CPUs={cpus} and Procs={numbers['procs']}, its old name, disagree"
    sockets = numbers.get("sockets") or numbers.get("socketsperboard", 0) * numbers.get("boards", 1)
    if not sockets:
        if cores * threads > cpus or cpus % max(cores * threads, 1):
            return f"CPUs={cpus} is no multiple of CoresPerSocket={cores} × ThreadsPerCore={threads}"
        return ""
    if cpus not in (sockets * cores, sockets * cores * threads, sockets):
        return f"CPUs={cpus}, but {sockets} sockets × {cores} cores × {threads} threads = {sockets * cores * threads}"
    return ""
