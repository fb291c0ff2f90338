"""slurm.conf: nodes, partitions and settings as declared; every node counted once.

Observations of nodes (subject: node): `gpus_configured` (subject also type), `gres_configured` (subject also gres),
`cpus_configured`, `memory_configured`, `features`, `node_declared_state`. Of partitions (subject: partition):
`node_list`, `partition_nodes`, `gpus_configured`, `partition_setting` (subject also key), `time_limit`. All else:
`setting` (subject: key), unknown keys included, as text.
Conditions: `cluster`, `controllers`, `select_type`, `gres_types`, `accounting_tres`, `accounting_type`,
`nodes_configured`, `gpus_configured`, `gpus_potential` (nodes in state CLOUD or FUTURE), `mig_slices_configured`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.conf_checks import check
from clusterwright.readers.slurm.conf_keys import OWN
from clusterwright.readers.slurm.conf_lines import ConfLine, key_share, read_conf
from clusterwright.readers.slurm.declared import Declared

_CONDITIONS: Final = {
    "clustername": "cluster", "selecttype": "select_type", "grestypes": "gres_types",
    "accountingstoragetres": "accounting_tres", "accountingstoragetype": "accounting_type",
    "topologyplugin": "topology", "slurmctldhost": "controllers", "controlmachine": "controllers",
}  # fmt: skip
_REPEATABLE: Final = frozenset({"slurmctldhost", "downnodes", "nodeset", "frontendname", "prolog", "epilog",
                                "taskprolog", "taskepilog", "prologslurmctld", "epilogslurmctld"})  # fmt: skip


def recognise(head: Head) -> int:
    """Lines that begin with the keys of slurm.conf."""
    hits, lines = key_share(head.text, OWN)
    named = 5 * ("slurm" in head.name and head.name.endswith((".conf", ".cfg")))
    body = head.text.lower()
    if "alloctres=" in body or "totalnodes=" in body or "cputot=" in body:
        return 0
    if hits >= 3 and hits * 10 >= lines * 4 and _distinct(head.text) > 1:
        return 88 + named
    nodes = "nodename=" in body and ("partitionname=" in body or "realmemory=" in body or "sockets=" in body)
    gres = "file=/dev" in body or "autodetect=" in body
    return 70 + named if nodes and not gres and hits * 10 >= lines * 6 else 0


def _distinct(text: str) -> int:
    """How many different keys of slurm.conf begin a line."""
    return len({line.partition("=")[0].strip().lower() for line in text.split("\n")} & OWN)


def read(source: Source) -> Sequence[Run]:
    """The run that one file holds."""
    run = RunBuilder("slurm.conf")
    declared = Declared(run)
    settings: dict[str, tuple[str, int]] = {}
    seen = 0
    for line in read_conf(source.lines(prefixes=False), run):
        if line.comment:
            continue
        seen += 1
        if line.include:
            run.missing(f"included file {line.include}")
            declared.unknown = declared.unknown or "included files are not here"
            run.notice("include-not-read", f"{line.include} is included and not here: what it declares is unknown")
        elif line.first == "nodename":
            declared.add_nodes(line)
        elif line.first == "partitionname":
            declared.add_partition(line)
        elif line.first in ("nodeset", "downnodes", "frontendname"):
            declared.add_other(line)
        else:
            _keep_settings(line, run, settings)
    if not seen:
        raise Refused("no line of slurm.conf holds anything but comments")
    gpus = "gpu" in settings.get("grestypes", ("", 0))[0]
    if gpus and ("maxnodecount" in settings or any(not nodes for nodes in declared.sets.values())):
        declared.unknown = declared.unknown or "nodes register themselves with their GPUs"
    declared.finish()
    check(run, declared, {key: value for key, (value, _) in settings.items()})
    return [run.build()]


def _keep_settings(line: ConfLine, run: RunBuilder, settings: dict[str, tuple[str, int]]) -> None:
    for key, value in line.pairs:
        lower = key.lower()
        run.observe("setting", value, (("key", key),), line.line)
        if lower in settings and lower not in _REPEATABLE:
            before, at = settings[lower]
            if before != value:
                run.notice(
                    "key-twice",
                    f"{key} is {before} in line {at} and {value} in line {line.line}; Slurm takes the last one",
                    line=line.line,
                )
        settings[lower] = (value, line.line)
        if lower in _CONDITIONS and not (lower == "slurmctldhost" and "controllers" in run.conditions()):
            run.condition(_CONDITIONS[lower], value)


READER: Final = Reader("slurm-conf", "slurm.conf: what a cluster is declared to be", recognise, read)
