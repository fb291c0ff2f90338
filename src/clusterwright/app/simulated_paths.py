"""Paths of `--set` and of sweeps: names that must exist, and pools given a number of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.spelling import nearest
from clusterwright.model.documents import Document

#: Most nodes of a pool, as of the host lists that a file may hold.
_MOST_NODES: Final = 100_000
_NODES: Final = re.compile(r"pools\.(?P<pool>.+)\.nodes")
_RANGE: Final = re.compile(r"(?P<first>-?\d+(?:\.\d+)?)\.\.(?P<last>-?\d+(?:\.\d+)?)(?:/(?P<step>\d+(?:\.\d+)?))?")
_MOST_VALUES: Final = 100


def check_paths(document: Document, overrides: Iterable[str]) -> None:
    """Refuse paths that name a pool, queue or workload that the file does not have.

    Raises:
        InvalidInput: with the nearest path that exists.
    """
    architecture = document.architecture
    queues = architecture.scheduling.queues if architecture.scheduling else {}
    named: dict[tuple[str, ...], Mapping[str, object]] = {
        ("pools",): architecture.pools,
        ("workloads",): architecture.workloads,
        ("scheduling", "queues"): queues,
    }
    problems = []
    for override in overrides:
        path = override.partition("=")[0].strip()
        for prefix, names in named.items():
            begin = ".".join(prefix) + "."
            rest = path.removeprefix(begin)
            if rest == path or any(rest == n or rest.startswith(f"{n}.") for n in names):
                continue
            wrong = rest.partition(".")[0]
            near = nearest(wrong, names)
            hint = (
                f"did you mean {begin}{near}{rest.removeprefix(wrong)}?" if near else f"there are: {', '.join(names)}"
            )
            problems.append(Problem(Place("--set"), path, f"the file has no {begin}{wrong}", hint))
    if problems:
        raise InvalidInput(*problems)


def expand_nodes(document: Document, overrides: Sequence[str]) -> list[str]:
    """Overrides in which a number for the nodes of a pool stands for as many hosts: the declared first, then others.

    Raises:
        InvalidInput: for no nodes, or more than a file may hold.
    """
    return [_expand(document, override) for override in overrides]


def _expand(document: Document, override: str) -> str:
    path, equals, value = override.partition("=")
    found = _NODES.fullmatch(path.strip())
    if found is None or not equals or not value.strip().isdecimal():
        return override
    name, count = found["pool"], int(value)
    pool = document.architecture.pools.get(name)
    if not 1 <= count <= _MOST_NODES:
        raise InvalidInput(Problem(Place("--set"), path, f"{count} nodes", f"from 1 to {_MOST_NODES:,}"))
    hosts = list(pool.nodes) if pool is not None else []
    taken = set(hosts)
    number = 0
    while len(hosts) < count:
        number += 1
        host = f"{name}-more-{number}"
        if host not in taken:
            hosts.append(host)
    return f"{path}={','.join(hosts[:count])}"


def parse_sweep(text: str) -> tuple[str, list[str]]:
    """(path, values) of `path=v1,v2,v3` or `path=a..b/step`.

    Raises:
        InvalidInput: when it is neither, or has no or too many values.
    """
    path, equals, values = text.partition("=")
    path = path.strip()
    if not equals or not path:
        raise InvalidInput(
            f"--sweep is '{text}', must be path=v1,v2,v3 or path=a..b/step, such as pools.gpu.nodes=8..32/8"
        )
    found = _RANGE.fullmatch(values.strip())
    listed = _steps(found, text) if found else [v.strip() for v in values.split(",") if v.strip()]
    if not 1 <= len(listed) <= _MOST_VALUES:
        raise InvalidInput(f"--sweep {path} has {len(listed)} values, must be from 1 to {_MOST_VALUES}")
    return path, listed


def _steps(found: re.Match[str], text: str) -> list[str]:
    first, last, step = float(found["first"]), float(found["last"]), float(found["step"] or 1)
    if step <= 0 or last < first:
        raise InvalidInput(f"--sweep is '{text}'; a range goes up, by a step above 0")
    count = int((last - first) / step + 1e-9) + 1
    if count > _MOST_VALUES:
        raise InvalidInput(f"--sweep has {count:,} values, must be from 1 to {_MOST_VALUES}")
    return [f"{first + n * step:g}" for n in range(count)]
