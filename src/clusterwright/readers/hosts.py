"""Outputs of several hosts in one file: a host that printed nothing of the kind must not vanish from the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from clusterwright.model.observations import Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Reader


def of_every_host(reader: Reader) -> Reader:
    """The reader, with a run for each host of the file of which it gives none, such as one where the tool failed."""
    return replace(reader, read=_completed(reader.read))


def _completed(read: Callable[[Source], Sequence[Run]]) -> Callable[[Source], Sequence[Run]]:
    def read_all(source: Source) -> Sequence[Run]:
        runs = read(source)
        named = {node for run in runs for node in _nodes_of(run)}
        if named.isdisjoint(source.hosts):
            return runs
        lost = [host for host in source.hosts if host not in named]
        return [*runs, *(silent_host(runs[0].tool, host, *source.hosts[host]) for host in lost)]

    return read_all


def _nodes_of(run: Run) -> set[str]:
    node = run.condition("node")
    subjects = {value for o in run.observations for key, value in o.subject if key == "node"}
    return subjects | ({node} if isinstance(node, str) else set())


def silent_host(tool: str, host: str, line: int, text: str) -> Run:
    """The run of a host that printed nothing of the kind.

    Args:
        host: its name.
        text: what it printed instead.
    """
    run = RunBuilder(tool)
    run.condition("node", host)
    run.notice("host-not-read", f"{host} printed nothing of the kind: {text}", Weight.ERROR, line)
    run.missing(f"the output of {host}")
    return run.build()
