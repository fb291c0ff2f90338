"""topology.conf (switch trees and blocks), topology.yaml, and what `scontrol show topology` prints.

Observations: `leaf` (subject: node), `switch_nodes`, `node_list`, `child_switches`, `link_speed_declared` (subject:
switch), `block_nodes` (subject: block). Conditions: `topology` (tree, block, flat …), `switches` or `blocks`, `leaves`,
`nodes`, `block_sizes`, `name` (topology.yaml).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.documents import load_yaml
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.slurm.conf_lines import ConfLine, key_share, read_conf
from clusterwright.readers.slurm.topologies import Topology

_KEYS: Final = frozenset({"switchname", "blockname", "blocksizes"})
_COUNT: Final = re.compile(r"Number of Nodes in (\S{1,200}): (\d{1,9})", re.IGNORECASE)
_YAML: Final = re.compile(r"^- topology:|^\s{2,8}(?:tree|block|flat|torus3d|ring):", re.MULTILINE)
_MOST: Final = 100_000


def recognise(head: Head) -> int:
    """Lines that begin with SwitchName= or BlockName=, or the list of topology.yaml."""
    hits, lines = key_share(head.text, _KEYS)
    if hits and hits * 10 >= lines * 7:
        return 92
    return 85 if head.text.find("- topology:") >= 0 and len(_YAML.findall(head.text)) >= 2 else 0


def read(source: Source) -> Sequence[Run]:
    """The topologies that one file holds."""
    lines = source.lines(prefixes=False)
    held: list[Line] = []
    for line in lines:
        held.append(line)
        body = line.text.strip()
        if body and not body.startswith("#"):
            break
    if held and re.match(r"---|- ", held[-1].text):
        return _read_yaml("\n".join(line.text for line in chain(held, lines)))
    run = RunBuilder("topology.conf")
    topology = Topology(run)
    seen = 0
    for conf in read_conf(chain(held, lines), run):
        count = _COUNT.search(conf.comment)
        if count is not None:
            topology.comment_counts[count[1]] = (int(count[2]), conf.line)
        seen += _add(conf, topology)
    if not seen:
        raise Refused("no line declares a switch or a block")
    topology.finish()
    return [run.build()]


def _add(conf: ConfLine, topology: Topology) -> bool:
    if conf.comment:
        return False
    if conf.include:
        topology.run.missing(f"included file {conf.include}")
    elif conf.first == "switchname":
        topology.kind = topology.kind or "tree"
        # With Level= this is what scontrol prints: the nodes of a switch above the leaves are those of its children.
        level = conf.get("level")
        nodes = "" if level not in (None, "0") and conf.get("switches") else conf.get("nodes") or ""
        topology.add(
            conf.pairs[0][1], _given(nodes), _given(conf.get("switches") or ""), conf.line, conf.get("linkspeed") or ""
        )
    elif conf.first == "blockname":
        topology.kind = topology.kind or "block"
        topology.add(conf.pairs[0][1], _given(conf.get("nodes") or ""), "", conf.line)
    elif conf.first == "blocksizes":
        topology.kind = "block"
        topology.run.condition("block_sizes", conf.pairs[0][1])
    elif conf.pairs:
        topology.run.reject(conf.line, str(dict(conf.pairs)), "neither a switch nor a block")
        return False
    return bool(conf.pairs)


def _given(text: str) -> str:
    return "" if text in ("(null)", "N/A", "none") else text


def _read_yaml(text: str) -> Sequence[Run]:
    documents = load_yaml(text)
    listed = documents[0] if documents else None
    if not isinstance(listed, list) or not listed:
        raise Refused("not a list of topologies", found=text[:100])
    runs = [_read_topology(item) for item in listed[:1000] if isinstance(item, dict) and "topology" in item]
    if not runs:
        raise Refused("no entry of the list is a topology", found=text[:100])
    return runs


def _read_topology(item: dict[Any, Any]) -> Run:
    run = RunBuilder("topology.yaml")
    run.condition("name", str(item.get("topology"))[:200])
    if item.get("cluster_default") is True:
        run.condition("default", True)
    topology = Topology(run)
    for kind, key, name in (("tree", "switches", "switch"), ("block", "blocks", "block")):
        body = item.get(kind)
        if isinstance(body, dict):
            topology.kind = kind
            sizes = body.get("block_sizes")
            if isinstance(sizes, list):
                run.condition("block_sizes", ",".join(str(size) for size in sizes[:100]))
            entries = body.get(key)
            for entry in entries[:_MOST] if isinstance(entries, list) else ():
                _add_entry(entry, name, topology)
    if not topology.kind:
        kinds = [str(key) for key in item if key not in ("topology", "cluster_default")]
        run.condition("topology", kinds[0][:40] if kinds else "none")
        run.notice("topology-without-switches", "nothing here says which nodes are near each other", Weight.INFO)
        return run.build()
    topology.finish()
    return run.build()


def _add_entry(entry: Any, name: str, topology: Topology) -> None:
    if not isinstance(entry, dict) or not isinstance(entry.get(name), (str, int)):
        topology.run.reject(0, str(entry)[:100], f"no entry with {name}:")
        return
    nodes, children = (entry.get(key) if isinstance(entry.get(key), str) else "" for key in ("nodes", "children"))
    topology.add(str(entry[name]), nodes or "", children or "", 0)


READER: Final = Reader("slurm-topology", "topology.conf and topology.yaml: switches, blocks", recognise, read)
