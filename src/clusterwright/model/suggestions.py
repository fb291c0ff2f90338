"""Suggestions: what may stand at a place of the file, and which of it the author most likely meant."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, Final, Union, get_args, get_origin

from clusterwright.lib.spelling import nearest
from clusterwright.model.architecture import Architecture
from clusterwright.model.section import Section

#: Other tools' words → ours, tried where our word is valid.
_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "backfill": ("strategy",),
    "bandwidth": ("rate", "read"),
    "batch_size": ("global_batch",),
    "completion": ("out",),
    "concurrent_requests": ("concurrency",),
    "context_parallel": ("cp",),
    "context_parallel_size": ("cp",),
    "cost": ("price",),
    "count": ("nodes", "gpus", "replicas"),
    "data_parallel": ("dp",),
    "data_parallel_size": ("dp",),
    "dcp_size": ("dcp",),
    "decode_context_parallel": ("dcp",),
    "decode_context_parallel_size": ("dcp",),
    "dp_size": ("dp",),
    "dtype": ("precision",),
    "ep_size": ("ep",),
    "expert_parallel": ("ep",),
    "expert_parallel_size": ("ep",),
    "fairshare": ("weight",),
    "gpu_count": ("gpus",),
    "gpu_memory_utilization": ("memory_share",),
    "gpu_type": ("gpu", "shape"),
    "hostlist": ("nodes",),
    "hosts": ("nodes",),
    "input": ("in",),
    "input_len": ("in",),
    "instance_type": ("shape",),
    "interval": ("every",),
    "isl": ("in",),
    "itl": ("tpot",),
    "kv_cache_dtype": ("kv_precision",),
    "nominal": ("guarantee",),
    "nominal_quota": ("guarantee",),
    "num_gpus": ("gpus",),
    "num_nodes": ("nodes",),
    "osl": ("out",),
    "output": ("out",),
    "output_len": ("out",),
    "pipeline_parallel": ("pp",),
    "pipeline_parallel_size": ("pp",),
    "prompt": ("in",),
    "qps": ("rate",),
    "quantization": ("precision",),
    "quota": ("guarantee",),
    "rps": ("rate",),
    "seq_len": ("sequence",),
    "sequence_length": ("sequence",),
    "size": ("capacity", "nodes"),
    "speed": ("rate",),
    "tensor_parallel": ("tp",),
    "tensor_parallel_size": ("tp",),
    "tp_size": ("tp",),
    "throughput": ("rate",),
    "type": ("kind", "shape"),
}
_CREDENTIALS: Final = re.compile(
    r"(?i)passw(or)?d|passphrase|(api|access|private|secret)_?key|token|credentials?$|secret$"
)
#: Likeness from which a word here beats the same word in another section.
_SURE: Final = 0.84


def explain_unknown_key(key: str, path: Sequence[str]) -> str:
    """What to write instead of an unknown key in the mapping at `path`."""
    section = type_at(path)
    choices = keys_of(section) if _is_section(section) else ()
    if _CREDENTIALS.search(key):
        return "secrets are references only: say in access.secrets where they live"
    meant = meant_key(key, path)
    if meant is not None:
        return f"did you mean '{meant}'?"
    homes = _homes().get(key, ())
    if 0 < len(homes) <= 3:
        return f"'{key}' belongs in {' or '.join(homes)}"
    return f"valid here: {', '.join(choices)}"


def meant_key(key: str, path: Sequence[str]) -> str | None:
    """The key of the section at `path` that an unknown key most likely stands for, None when it is unclear."""
    section = type_at(path)
    if not _is_section(section):
        return None
    choices = keys_of(section)
    sure = nearest(key, choices, _SURE)
    if sure is not None:
        return sure
    synonym = next((s for s in _SYNONYMS.get(_snake(key), ()) if s in choices), None)
    if synonym is not None:
        return synonym
    return None if key in _homes() else nearest(key, choices)


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()


def keys_of(section: type[Section]) -> tuple[str, ...]:
    """Keys of a section as they stand in the file."""
    return tuple(info.alias or name for name, info in section.model_fields.items())


def type_at(path: Sequence[str]) -> Any:
    """The type of the value at a path: a Section class, `dict[str, X]`, `tuple[X, ...]` or a scalar's.

    None when nothing of the file's format stands there.
    """
    found: Any = Architecture
    for part in path:
        if _is_section(found):
            info = next((i for n, i in found.model_fields.items() if (i.alias or n) == part), None)
            found = None if info is None else bare_type(info.annotation)
        elif get_origin(found) is dict:
            found = bare_type(get_args(found)[1])
        elif get_origin(found) is tuple:
            found = bare_type(get_args(found)[0])
        else:
            return None
    return found


def bare_type(annotation: Any) -> Any:
    """An annotation without Annotated and without `| None`."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, types.UnionType):
            annotation = next(a for a in get_args(annotation) if a is not type(None))
        else:
            return annotation


def _is_section(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Section)


@cache
def _homes() -> dict[str, tuple[str, ...]]:
    """Key → the sections that know it, as paths with <name> for a free key."""
    homes: dict[str, list[str]] = {}
    for path, section in sections(Architecture):
        for key in keys_of(section):
            homes.setdefault(key, []).append(path or "the top level")
    return {key: tuple(found) for key, found in homes.items()}


def sections(root: type[Section], path: str = "") -> Iterator[tuple[str, type[Section]]]:
    """Every section below `root` with its path, `root` first; a free key is written <name>."""
    yield path, root
    for name, info in root.model_fields.items():
        below = ".".join(p for p in (path, info.alias or name) if p)
        found = bare_type(info.annotation)
        if get_origin(found) is dict:
            found, below = bare_type(get_args(found)[1]), f"{below}.<name>"
        elif get_origin(found) is tuple:
            found, below = bare_type(get_args(found)[0]), f"{below}.<number>"
        if _is_section(found):
            yield from sections(found, below)
