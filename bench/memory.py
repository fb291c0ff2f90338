"""Memory plans a second: the array form of vLLM's budget, bytes per token, and one plan by the scalar form.

python bench/memory.py                    a million combinations of layout, batch, length, share and GPU per model
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from builders.decoders import deepseek_v3, gpt_oss, llama_70b
from clusterwright import plan
from clusterwright.model.decoders import Decoder
from clusterwright.physics.engines.arrays import CacheTable, VllmTable
from clusterwright.physics.engines.results import Gpu
from clusterwright.physics.engines.vllm import VllmSettings, plan_memory
from clusterwright.physics.layouts import Layout

ROWS = 1_000_000
GPU = Gpu("H200", 139.72)
LAYOUTS = tuple(Layout(tp=tp, pp=pp) for tp in (1, 2, 4, 8) for pp in (1, 2, 4))


def seconds(work: Callable[[], object]) -> float:
    """Best of three."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def report(decoder: Decoder) -> None:
    """One line: table of layouts, plans a second, bytes per token a second, one scalar plan."""
    rng = np.random.default_rng(0)
    rows = {
        "layout": rng.integers(0, len(LAYOUTS), ROWS),
        "reported_gib": rng.choice([79.1, 139.72, 191.45], ROWS),
        "share": rng.choice([0.85, 0.9, 0.92], ROWS),
        "length": rng.integers(128, 131072, ROWS),
        "sequences": rng.integers(1, 1025, ROWS),
        "tokens": rng.integers(256, 16385, ROWS),
    }
    settings = VllmSettings(version=(0, 22))
    table = VllmTable(decoder, LAYOUTS, GPU, settings)
    cache = CacheTable(decoder)
    tp, pp = rng.integers(1, 17, ROWS), rng.integers(1, 17, ROWS)
    made = seconds(lambda: VllmTable(decoder, LAYOUTS, GPU, settings))
    plans = ROWS / seconds(lambda: table.evaluate(**rows))
    tokens = ROWS / seconds(lambda: cache.kv_bytes_per_token(tp, pp))
    one = seconds(lambda: plan_memory(decoder, Layout(tp=8), GPU, settings))
    chosen = {size: np.array([getattr(layout, size) for layout in LAYOUTS])[rows["layout"]] for size in ("tp", "pp")}
    asked = {"max_model_len": rows["length"], "max_num_seqs": rows["sequences"], "memory_share": rows["share"]}
    asked |= {"max_num_batched_tokens": rows["tokens"], "reported_gib_per_gpu": rows["reported_gib"]}
    api = ROWS / seconds(lambda: plan.engine_memory_arrays(decoder, GPU, version=(0, 22), **chosen, **asked))
    api_tokens = ROWS / seconds(lambda: plan.kv_bytes_per_token(decoder, tp, pp))
    print(
        f"{decoder.name:12} {1000 * made / len(LAYOUTS):6.2f} ms per layout   {plans / 1e6:6.2f} M plans/s   "
        f"{tokens / 1e6:6.1f} M bytes-per-token/s   {1000 * one:6.2f} ms per scalar plan   "
        f"clusterwright.plan: {api / 1e6:6.2f} M plans/s, {api_tokens / 1e6:6.1f} M bytes-per-token/s"
    )


if __name__ == "__main__":
    for model in (llama_70b(), deepseek_v3(), gpt_oss()):
        report(model)
