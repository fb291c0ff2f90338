"""gres.conf: which devices are the GPUs of which nodes.

Observations (subject: node where the line names one; without a NodeName a line holds for every node that uses the
file): `gpus_configured` (subject also type), `gres_configured` (subject also gres), `gpu_device` (subject also index:
position among the node's devices, in numeric order), `gpu_cores` (subject also device).
Conditions: `gpus_configured`, `gpus_potential` (dynamic nodes of ParallelCluster), `gpus_per_node` (lines without
NodeName), `autodetect`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from clusterwright.lib.hostlists import HostlistError, expand, fold
from clusterwright.model.observations import Lack, NoValue, Observation, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.memos import remembered
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused, shorten
from clusterwright.readers.slurm.amounts import read_count
from clusterwright.readers.slurm.conf_lines import ConfLine, key_share, read_conf
from clusterwright.readers.slurm.gres import Gres
from clusterwright.readers.slurm.hosts import Hosts
from clusterwright.readers.values import unreadable

_KEYS: Final = frozenset({"name", "autodetect", "file", "multiplefiles", "type"})
_MOST_DEVICES: Final = 4096
#: Most devices on nodes, in all.
_MOST_CLAIMS: Final = 500_000
#: AWS ParallelCluster names nodes queue-st-resource-N (static) and queue-dy-resource-N (started on demand).
_DYNAMIC: Final = re.compile(r".{1,200}-dy-.{1,200}-\d{1,6}")


_new: Final = tuple.__new__


class _Claim(NamedTuple):
    node: str
    devices: tuple[str, ...]
    resource: Gres
    cores: str
    line: int


def recognise(head: Head) -> int:
    """Lines with Name= and File= or AutoDetect=."""
    body = head.text.lower()
    hits, lines = key_share(head.text, _KEYS | {"nodename"})
    named = 5 * ("gres" in head.name)
    if lines and hits * 10 >= lines * 7 and re.search(r"^[^#\n]*\b(?:file|name|autodetect)\s*=", body, re.MULTILINE):
        strong = bool(re.search(r"^[^#\n]*\b(?:file\s*=\s*/dev|autodetect\s*=|name\s*=\s*gpu)", body, re.MULTILINE))
        return 90 + named if strong else 0
    only_includes = lines and not hits and all(
        line.strip().lower().startswith(("include ", "#")) or not line.strip() for line in head.text.split("\n")
    )  # fmt: skip
    return 80 if only_includes and ("gres" in body or "gres" in head.name) else 0


def read(source: Source) -> Sequence[Run]:
    """The run that one file holds."""
    run = RunBuilder("gres.conf")
    claims: list[_Claim] = []
    hosts = Hosts()
    seen = includes = held = 0
    for line in read_conf(source.lines(prefixes=False), run):
        if line.comment:
            continue
        seen += 1
        if line.include:
            includes += 1
            run.missing(f"included file {line.include}")
            run.notice(
                "include-not-read", f"{line.include} is included and not here: its devices are unknown, not none"
            )
        elif held > _MOST_CLAIMS:
            run.missing(f"lines from {line.line} on")
            break
        else:
            found = _read_line(line, run, hosts)
            held += sum(1 + len(claim.devices) for claim in found)
            claims += found
    if not seen:
        raise Refused("no line of gres.conf holds anything but comments")
    _conclude(run, claims, includes)
    return [run.build()]


def _read_line(line: ConfLine, run: RunBuilder, hosts: Hosts) -> list[_Claim]:
    detect = line.get("autodetect")
    if detect is not None and line.get("name") is None:
        run.condition("autodetect" if line.get("nodename") is None else f"autodetect of {line.get('nodename')}", detect)
        return []
    name = line.get("name")
    if name is None:
        run.reject(line.line, str(dict(line.pairs)), "neither Name= nor AutoDetect=")
        return []
    kind, text = line.get("type") or "", line.get("file") or line.get("multiplefiles") or ""
    try:
        devices = _devices(text)
        nodes = hosts.expand(line.get("nodename") or "") if line.get("nodename") else ("",)
    except HostlistError as error:
        run.reject(line.line, text, f"list: {error}")
        return []
    if len(nodes) * len(devices) > _MOST_CLAIMS:
        run.reject(line.line, text, f"more than {_MOST_CLAIMS:,} devices")
        return []
    count = read_count(line.get("count") or "")
    number = int(count) if isinstance(count, float) else len(devices)
    if isinstance(count, float) and devices and len(devices) not in (count, 1) and not line.get("multiplefiles"):
        run.notice("count-conflict", f"line {line.line}: Count={count:.0f}, but File names {len(devices)} devices")
    if isinstance(count, NoValue) and count.lack is Lack.UNREADABLE:
        run.observe("gpus_configured", unreadable(line.get("count") or "", "not a count"), (), line.line)
        return []
    if isinstance(count, NoValue) and not devices:
        number = 1
    resource = Gres(name.lower(), kind, number)
    cores = line.get("cores") or line.get("cpus") or ""
    if line.get("cpus") is not None:
        run.notice("old-key", "CPUs= is the old name of Cores= in gres.conf", Weight.INFO)
    return [_Claim(node, devices, resource, cores, line.line) for node in nodes]


@remembered
def _devices(text: str) -> tuple[str, ...]:
    """Paths of `/dev/nvidia[0-3],/dev/nvidia7`; HostlistError when it is no such list."""
    found: list[str] = []
    for part in _split_list(text):
        head, slash, tail = part.strip().rpartition("/")
        if not tail:
            continue
        found += [f"{head}{slash}{name}" for name in expand(tail)]
        if len(found) > _MOST_DEVICES:
            raise HostlistError(f"more than {_MOST_DEVICES} devices")
    return tuple(found)


def _split_list(text: str) -> list[str]:
    """Parts between commas outside brackets."""
    parts, depth, start = list[str](), 0, 0
    for place, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and depth <= 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _conclude(run: RunBuilder, claims: list[_Claim], includes: int) -> None:
    gpus = [claim for claim in claims if claim.resource.name == "gpu"]
    by_node: dict[str, list[_Claim]] = {}
    for claim in claims:
        _observe(run, claim)
        by_node.setdefault(claim.node, []).append(claim)
    alike: dict[tuple[str, str, Weight], list[str]] = {}
    for node, own in by_node.items():
        for said in _observe_devices(run, node, [claim for claim in own if claim.resource.is_gpu]):
            alike.setdefault(said, []).append(node)
    for (code, text, weight), nodes in alike.items():
        where = shorten(fold(nodes), 160) if any(nodes) else "every node"
        run.notice(code, f"{where}: {text}", weight)
    standing = sum(
        c.resource.count or 0 for c in gpus if c.node and c.resource.is_gpu and not _DYNAMIC.fullmatch(c.node)
    )
    potential = sum(c.resource.count or 0 for c in gpus if c.resource.is_gpu and _DYNAMIC.fullmatch(c.node))
    everywhere = sum(c.resource.count or 0 for c in gpus if not c.node and c.resource.is_gpu)
    if includes or not gpus:
        why = "included files are not here" if includes else "the file lists no GPU; nodes may detect their own"
        run.condition("gpus_configured", NoValue(Lack.ABSENT, "", why))
    elif everywhere:
        run.condition("gpus_per_node", float(everywhere))
        run.notice(
            "every-node",
            f"no NodeName: {everywhere} GPUs on each node that uses this file; how many nodes do is not said here",
            Weight.INFO,
        )
    if gpus and not includes and (standing or potential):
        run.condition("gpus_configured", float(standing))
    if potential:
        run.condition("gpus_potential", float(potential))
        run.notice(
            "potential-capacity",
            f"{potential} GPUs stand on dynamic nodes (-dy-) that are started on demand: potential, not installed, "
            f"capacity",
        )
    _check_detection(run, gpus)
    _check_claims(run, gpus)


def _observe(run: RunBuilder, claim: _Claim) -> None:
    subject = (("node", claim.node),) if claim.node else ()
    typed = (*subject, ("type", claim.resource.type)) if claim.resource.type else subject
    count = float(claim.resource.count or 0)
    if claim.resource.is_gpu:
        run.observe("gpus_configured", count, typed, claim.line)
    elif claim.resource.is_slice:
        run.observe("mig_slices_configured", count, typed, claim.line)
    else:
        run.observe("gres_configured", count, (*typed, ("gres", claim.resource.name)), claim.line)
    if claim.cores:
        run.extend(
            [
                _new(Observation, ("gpu_cores", claim.cores, (*subject, ("device", device)), claim.line))
                for device in claim.devices
            ]
        )


def _observe_devices(run: RunBuilder, node: str, claims: list[_Claim]) -> list[tuple[str, str, Weight]]:
    """Observe a node's devices in order; what is to be said about them: code, text, weight."""
    subject = (("node", node),) if node else ()
    listed = [(device, claim.line) for claim in claims for device in claim.devices]
    listed.sort(key=lambda item: _numeric(item[0]))
    run.extend(
        [
            _new(Observation, ("gpu_device", device, (*subject, ("index", str(index))), line))
            for index, (device, line) in enumerate(listed)
        ]
    )
    said = []
    times = Counter(device for device, _ in listed)
    if len(times) < len(listed):
        twice = sorted((device for device, count in times.items() if count > 1), key=_numeric)
        said.append(("device-twice", f"{shorten(', '.join(twice), 400)} listed twice", Weight.ERROR))
    runs = [claim.cores for claim in claims if claim.cores and claim.devices]
    changes = [cores for i, cores in enumerate(runs) if i == 0 or runs[i - 1] != cores]
    if len(changes) != len(set(changes)):
        ranges = [claim.cores for claim in claims for _ in claim.devices if claim.cores]
        said.append((
            "affinity-repeats",
            f"the ranges of cores come back after others ({shorten(', '.join(ranges), 120)}): GPUs far apart claim the "
            "same cores; check with nvidia-smi topo -m",
            Weight.WARNING,
        ))  # fmt: skip
    elif runs:
        sizes: Counter[str] = Counter()
        for claim in claims:
            sizes[claim.cores] += len(claim.devices) if claim.cores else 0
        shown = ", ".join(f"{sizes[cores]} on {cores}" for cores in changes[:8])
        said.append(("affinity", f"GPUs by cores: {shown}", Weight.INFO))
    return said


@remembered
def _numeric(device: str) -> tuple[str, int]:
    match = re.search(r"(\d{1,9})$", device)
    return (device[: match.start()], int(match[1])) if match else (device, -1)


def _check_detection(run: RunBuilder, gpus: list[_Claim]) -> None:
    detect = run.conditions().get("autodetect")
    if isinstance(detect, str) and detect.lower() not in ("off", "none") and gpus:
        run.notice(
            "autodetect-and-explicit",
            f"AutoDetect={detect} beside explicit lines: Slurm merges them, and a node whose explicit lines do not "
            f"match "
            "what is detected is drained",
        )


def _check_claims(run: RunBuilder, gpus: list[_Claim]) -> None:
    """Say where node names look like several names of one host: devices not from 0 on, and claimed twice."""
    owners: dict[str, dict[str, None]] = {}
    lowest: dict[str, int] = {}
    for claim in gpus:
        for device in claim.devices:
            number = _numeric(device)[1]
            if claim.node and number >= 0:
                owners.setdefault(device, {})[claim.node] = None
                lowest[claim.node] = min(lowest.get(claim.node, number), number)
    odd = [node for node, number in lowest.items() if number > 0]
    shared = {device: nodes for device, nodes in owners.items() if len(nodes) > 1 and any(n in nodes for n in odd)}
    if odd and (shared or len(odd) > 1):
        twice = {device: nodes for device, nodes in owners.items() if len(nodes) > 1}
        listed = "; ".join(
            f"{d} by {', '.join(list(n)[:4])}" for d, n in sorted(twice.items(), key=lambda i: _numeric(i[0]))
        )
        total = sum(claim.resource.count or 0 for claim in gpus)
        run.notice(
            "device-claimed-twice",
            f"{shorten(fold(odd), 100)} own devices that do not begin at 0, as several node names on one host do; "
            f"claimed more than once: {shorten(listed, 300) or 'none'}. Unless the hosts differ, the {total} "
            f"declared GPUs "
            f"are {len(owners)} devices counted twice",
            Weight.ERROR,
        )


READER: Final = Reader("slurm-gres-conf", "gres.conf: devices of the nodes", recognise, read)
