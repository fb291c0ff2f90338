"""Memory of many layouts, batches and lengths at once: the scalar forms of `vllm` over numpy arrays.

What depends on model and layout alone is worked out once per layout (`VllmTable`); every evaluation after that is
arithmetic on arrays. Results equal those of `vllm.plan_memory` exactly: operations and their order are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clusterwright.lib.scales import GIB
from clusterwright.model.decoders import Decoder
from clusterwright.physics.caches_by_layer import bytes_per_token
from clusterwright.physics.engines.activations import captured_sizes, forward_widths, graphs_gib, peak_gib
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.engines.blocks import Group, Pool
from clusterwright.physics.engines.results import Gpu
from clusterwright.physics.engines.settings import layout_refusal
from clusterwright.physics.engines.vllm import LACKS, VllmSettings, pool_of, token_bytes
from clusterwright.physics.engines.vllm_versions import GRAPHS_INSIDE_SINCE, TOKENS_BY_CONCURRENCY_SINCE
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import Loading, load_weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Widest tensor parallelism and longest pipeline that tables of bytes per token are made for.
_MOST: Final = 1024
#: Rows worked on at once: their arrays stay in the processor's cache.
_CHUNK: Final = 1 << 14


@dataclass(frozen=True)
class CacheTable:
    """Bytes per token of a model by attention ranks and stages, each pair worked out when it is first asked for.

    Args:
        windows: count windowed layers as if they kept every token.
    """

    decoder: Decoder
    kv_format: str = "bf16"
    windows: bool = False

    @cached_property
    def _known(self) -> dict[int, float]:
        return {}

    def kv_bytes_per_token(self, tp: Ints, pp: Ints) -> Floats:
        """B of one more token of a long sequence on the GPU of the fullest stage.

        Args:
            tp, pp: (n,) int64; ranks that attention is divided over, pipeline stages.

        Returns:
            (n,) float64, equal to `caches_by_layer.bytes_per_token`.
        """
        codes = np.asarray(tp, dtype=np.int64) * _MOST + np.asarray(pp, dtype=np.int64)
        top = int(codes.max(initial=0)) + 1
        present = np.flatnonzero(np.bincount(codes, minlength=top))
        lookup = np.zeros(top)
        lookup[present] = [self._one(int(code)) for code in present]
        return lookup[codes]

    def _one(self, code: int) -> float:
        if code not in self._known:
            layout = Layout(tp=code // _MOST, pp=code % _MOST)
            self._known[code] = bytes_per_token(self.decoder, layout, self.kv_format, windows=self.windows)
        return self._known[code]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Answers of one evaluation, (n,) each; see `EngineMemory`.

    Args:
        kv_pool_gib: on the binding stage; not positive where the engine cannot start.
        fits: the engine has the layout and one sequence of the wanted length fits; free memory at start and graphs
            outside the share are not asked.
    """

    kv_pool_gib: Floats
    blocks: Ints
    kv_tokens: Ints
    max_concurrency: Floats
    fits: NDArray[np.bool_]


def _empty(rows: int) -> tuple[Floats, Ints, Ints, Floats, NDArray[np.bool_]]:
    return (
        np.empty(rows),
        np.empty(rows, dtype=np.int64),
        np.empty(rows, dtype=np.int64),
        np.empty(rows),
        np.empty(rows, dtype=np.bool_),
    )


class VllmTable:
    """What vLLM's budget needs of a model under each of some layouts.

    Args:
        settings: version, formats and constants; batch, length and share come with each evaluation.
    """

    def __init__(self, decoder: Decoder, layouts: Sequence[Layout], gpu: Gpu, settings: VllmSettings) -> None:
        self.layouts = tuple(layouts)
        self._settings = settings
        self._decoder = decoder
        cases = [Case(decoder, layout, gpu, settings) for layout in layouts]
        self._pools = [pool_of(case) for case in cases]
        self._entries = [self._entry(case) for case in cases]
        self.kv_bytes_per_token: Floats = np.array([token_bytes(case) for case in cases])

    def _entry(self, case: Case) -> dict[str, Any]:
        settings = self._settings
        loading = Loading(drafts=settings.speculative_tokens > 0, towers=not settings.text_only)
        weights = load_weights(case.decoder, case.layout, loading)
        ranks = case.layout.tp * (2 if case.layout.pp > 1 else 1)
        return {
            "refused": layout_refusal(case.decoder, case.layout, without=LACKS),
            "weights": [weights.stage_bytes(i) / GIB for i in range(case.layout.pp)],
            "widths": forward_widths(
                case.decoder, case.layout, settings.constants.residuals(case.layout.tp, v0=settings.is_v0)
            ),
            "non_torch": settings.constants.non_torch(ranks, case.gpu.vendor, settings.version, v0=settings.is_v0),
        }

    def evaluate(
        self, layout: Ints, reported_gib: Floats, share: Floats, length: Ints, sequences: Ints, tokens: Ints
    ) -> Evaluated:
        """Pools of n combinations.

        Args:
            layout: (n,) positions in `layouts`. reported_gib, share: (n,) float64.
            length: (n,) longest sequence. sequences, tokens: (n,) of one step; at least 1.
        """
        narrow = np.asarray(layout).astype(np.int16 if len(self.layouts) < 2**15 else np.int64)
        order = np.argsort(narrow, kind="stable")
        ends = np.cumsum(np.bincount(narrow, minlength=len(self.layouts)))
        floats: list[Floats] = [np.asarray(c, dtype=np.float64)[order] for c in (reported_gib, share)]
        ints: list[Ints] = [np.asarray(c, dtype=np.int64)[order] for c in (length, sequences, tokens)]
        out = _empty(len(order))
        first = 0
        for index, end in enumerate(ends):
            for start in range(first, end, _CHUNK):
                part = slice(start, min(start + _CHUNK, end))
                reported, used = (c[part] for c in floats)
                longest, batch, step = (c[part] for c in ints)
                answers = self._evaluate_one(index, reported, used, longest, batch, step)
                for column, answer in zip(out, answers, strict=True):
                    column[order[part]] = answer
            first = end
        return Evaluated(*out)

    def _evaluate_one(
        self, index: int, reported: Floats, share: Floats, length: Ints, sequences: Ints, tokens: Ints
    ) -> tuple[Floats, Ints, Ints, Floats, NDArray[np.bool_]]:
        entry, pool, layout = self._entries[index], self._pools[index], self.layouts[index]
        sequences = np.minimum(sequences, tokens)
        graphs = self._graphs(layout, sequences) if self._settings.version >= GRAPHS_INSIDE_SINCE else 0.0
        forward = peak_gib(entry["widths"], tokens)
        sampled = self._sampled(forward, sequences, tokens)
        budget = reported * share
        best: Floats | None = None
        blocks: Ints | None = None
        binding: Floats | None = None
        for stage, weights in enumerate(entry["weights"]):
            activation = sampled if stage == len(entry["weights"]) - 1 else self._unsampled(forward)
            gib = budget - weights - activation - entry["non_torch"] - graphs
            width = pool.block_bytes[stage]
            if not width:
                continue
            own = (np.maximum(0.0, gib) * GIB // width).astype(np.int64)
            per_block = gib / width
            if best is None or blocks is None or binding is None:
                best, blocks, binding = per_block, own, gib
                continue
            binding = np.where(per_block < best, gib, binding)
            best, blocks = np.minimum(best, per_block), np.minimum(blocks, own)
        assert blocks is not None
        assert binding is not None
        needed = _request_blocks(pool, length, tokens, layout.dcp)
        concurrency = blocks / needed
        if pool.uniform:
            held = blocks * pool.block_tokens * layout.dcp * layout.dp
        elif self._settings.version >= TOKENS_BY_CONCURRENCY_SINCE:
            held = (concurrency * length).astype(np.int64) * layout.dp
        else:
            held = blocks // sum(group.count for group in pool.groups) * pool.block_tokens * layout.dp
        fits = (binding > 0) & (needed <= blocks) & (not entry["refused"])
        return binding, blocks, held, concurrency * layout.dp, fits

    def _graphs(self, layout: Layout, sequences: Ints) -> Any:
        settings = self._settings
        if settings.eager:
            return 0.0
        count = captured_sizes(np.minimum(2 * sequences, 512)) + captured_sizes(np.minimum(sequences, 512))
        return graphs_gib(self._decoder, layout, count, settings.constants.graph(settings.version, v0=False))

    def _sampled(self, forward: Any, sequences: Ints, tokens: Ints) -> Any:
        copies = self._settings.constants.copies(self._settings.version)
        sampler = copies * sequences * self._decoder.vocab * 4 / GIB + 2 * tokens * self._decoder.hidden / GIB
        return np.maximum(self._unsampled(forward), sampler)

    def _unsampled(self, forward: Any) -> Any:
        if self._decoder.towers and not self._settings.text_only:
            return np.maximum(forward, self._settings.constants.encoder_gib)
        return forward


def _request_blocks(pool: Pool, length: Ints, in_flight: Ints, dcp: int) -> Any:
    return sum(_group_blocks(group, length, in_flight, dcp) for group in pool.groups)


def _group_blocks(group: Group, length: Ints, in_flight: Ints, dcp: int) -> Any:
    if group.kind == "state":
        return group.count * group.fixed
    if group.kind == "full":
        local = length if dcp == 1 else -(-length // dcp)
        return group.count * -(-local // group.block_tokens)
    if group.kind == "window":
        kept = np.minimum(group.span - 1 + in_flight, length)
        return group.count * (-(-kept // group.block_tokens) + 1)
    return group.count * -(-np.minimum(group.span + in_flight, length) // group.block_tokens)
