"""Cold start of replicas: all bytes through every link of their way at once, then the engine's own start.

The slowest link binds (`physics/storage_chains.py`); reading and starting add up (`physics/serving/cold_starts.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from clusterwright.lib.figures import Figure
from clusterwright.model.workloads import Workload
from clusterwright.physics.serving.cold_starts import Loader, cold_start, needed_rate_bytes_s
from clusterwright.physics.storage_chains import (
    DEFAULT_LOADER,
    FASTEST_LOADER,
    LOADER_BYTES_S,
    Chain,
    Link,
    LinkName,
    follow_chain,
)
from clusterwright.plan.engines import read_engine
from clusterwright.plan.gathering import Sheet
from clusterwright.plan.results.payloads import LinkPlan

#: s of process and engine start where the file does not say.
STARTUP_S: Final = Loader().fixed_s + Loader().engine_s
#: How much faster the fastest published loader is than the one that engines take by themselves.
FASTEST_GAIN: Final = LOADER_BYTES_S[FASTEST_LOADER] / LOADER_BYTES_S[DEFAULT_LOADER]
#: Loader → flags of engines that are known to offer it (vLLM LoadConfig.load_format, docs.vllm.ai, 0.6.6 to 0.24).
_FLAGS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("vllm", "runai-streamer"): ("--load-format", "runai_streamer"),
    ("vllm", "tensorizer"): ("--load-format", "tensorizer"),
}
#: Links of a payload's way as the chain calls them.
_NAMES: Final[dict[str, LinkName]] = {
    "source": "server", "cache": "media", "network": "network", "nic": "nic", "pcie": "pcie", "memory": "memory",
    "loader": "loader",
}  # fmt: skip


def loading_flags(sheet: Sheet, workload: Workload) -> tuple[str, ...]:
    """Flags that make the engine load as the payload declares; a limit of the plan where none is known."""
    loader = workload.payload.loader if workload.payload else None
    if loader in (None, DEFAULT_LOADER) or workload.serve is None:
        return ()
    engine = read_engine(workload.serve.engine)
    flags = _FLAGS.get((engine.name, str(loader)), ())
    if not flags:
        sheet.limit(f"{engine} is not known to load weights with {loader}; the cold start counts on it")
    return flags


def follow(links: Sequence[LinkPlan], rates: Sequence[float], gbytes: float) -> Chain:
    """The chain of a way at these rates, GB/s of all readers together."""
    named = tuple(Link(_NAMES[link.kind], rate * 1e9) for link, rate in zip(links, rates, strict=True))
    return follow_chain(named, gbytes * 1e9)


def binding_link(links: Sequence[LinkPlan]) -> LinkPlan | None:
    """The slowest link of a way, None for one without links."""
    bound = follow(links, [link.rate.value for link in links], 0.0).binding
    return next((link for link in links if _NAMES[link.kind] == bound), None)


def plan_transfer(sheet: Sheet, name: str, links: Sequence[LinkPlan], size: Figure, readers: Figure) -> Figure:
    """s of all bytes through a way."""
    return sheet.derive(
        name,
        "s",
        f"bytes of all readers through {', '.join(link.words for link in links)}: the slowest binds",
        lambda s, n, *rates: follow(links, rates, s * n).time_s,
        size,
        readers,
        *(link.rate for link in links),
    )


def plan_start(
    sheet: Sheet, name: str, links: Sequence[LinkPlan], size: Figure, readers: Figure, startup: Figure
) -> Figure:
    """s until replicas that read over this way answer."""

    def seconds(gbytes: float, count: float, start: float, *rates: float) -> float:
        rate = follow(links, rates, 0.0).rate_bytes_s
        return cold_start(gbytes * count * 1e9, rate, loader=_after(start)).total_s if rate else math.inf

    inputs = (size, readers, startup, *(link.rate for link in links))
    values = [f.value for f in inputs]
    faster = [*values[:3], *_faster(links)]
    now, best = seconds(*values), seconds(*faster)
    return sheet.derive(
        name,
        "s",
        "bytes of all readers through the slowest link + process and engine start",
        seconds,
        *inputs,
        band=(round(best / now, 2), 1.0) if math.isfinite(now) and best < now * 0.995 else None,
    )


def _after(startup_s: float) -> Loader:
    """What comes beside the transfer; the loader itself is a link of the way."""
    return Loader(share=1.0, fixed_s=0.0, engine_s=startup_s)


def _faster(links: Sequence[LinkPlan]) -> list[float]:
    """Rates of the links with the fastest published loader where the loader is not stated."""
    assumed = {link.kind for link in links if any(name.endswith(".loader") for name in link.rate.leaves)}
    return [
        link.rate.value * (FASTEST_GAIN if link.kind == "loader" and "loader" in assumed else 1.0) for link in links
    ]


def rate_for(
    sheet: Sheet, name: str, wanted: Figure | None, size: Figure, readers: Figure, startup: Figure
) -> Figure | None:
    """GB/s that the way must give for a wanted cold start; None without one."""
    if wanted is None:
        return None
    return sheet.derive(
        name,
        "GB/s",
        "bytes of all readers ÷ (wanted cold start − process and engine start)",
        lambda w, s, n, t: needed_rate_bytes_s(s * n * 1e9, w, loader=_after(t)) / 1e9,
        wanted,
        size,
        readers,
        startup,
    )
