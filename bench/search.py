"""The placement search: CPU seconds of a whole search for a 671B model on 1,024 GPUs, and evaluations per second.

Serving and training are searched as a question would (all layouts judged, the winner with its terms); then the array
forms of cache and memory alone. Bars: each search under 2 s of CPU, a million evaluations a second.

    python bench/search.py              a few seconds
    python bench/search.py --repeat 5   the best of five
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from builders.decoders import DEEPSEEK_V3, decoder
from builders.searches import pool, serving, training
from clusterwright.physics.engines.arrays import CacheTable, VllmTable
from clusterwright.physics.engines.vllm import VllmSettings
from clusterwright.physics.layouts import Layout
from clusterwright.plan.searching.machines import engine_gpu
from clusterwright.plan.searching.questions import ServingQuestion, TrainingQuestion
from clusterwright.plan.searching.serving import ServingRow, ServingSearch, search_serving
from clusterwright.plan.searching.training import TrainingRow, TrainingSearch, search_training

T = TypeVar("T")
MODEL = decoder(DEEPSEEK_V3, "DeepSeek-V3")
POOL = pool(nodes=128)
ROWS = 1_000_000


def best_of(repeat: int, work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of the fastest of `repeat` runs, and what the last returned."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return min(times), result


def searches(repeat: int) -> None:
    """One line per search; the winner with its terms is part of it."""
    print(f"{'search':34} {'CPU s':>6} {'layouts':>8} {'possible':>8}  best")
    for engine in ("vllm", "sglang", "tensorrt-llm"):
        asked = serving(MODEL, POOL, engine=engine, rate=50.0, survive_nodes=1)
        seconds, (found, best) = best_of(repeat, partial(_served, asked))
        print_row(f"serving, {engine}", seconds, found, best)
    recipe = {"precision": "fp8", "fp8_weights": True, "sequence": 4096, "global_batch": 8192}
    job = training(MODEL, POOL, gpus=1024, recipe=recipe)
    seconds, trained = best_of(repeat, partial(_trained, job))
    print_row("training, 1,024 GPUs", seconds, *trained)


def _served(asked: ServingQuestion) -> tuple[ServingSearch, ServingRow | None]:
    found = search_serving(asked)
    return found, found.best


def _trained(asked: TrainingQuestion) -> tuple[TrainingSearch, TrainingRow | None]:
    found = search_training(asked)
    return found, found.best


def print_row(
    name: str, seconds: float, found: ServingSearch | TrainingSearch, best: ServingRow | TrainingRow | None
) -> None:
    """One search."""
    tried, possible = len(found.judged.reason), len(found.ranked)
    print(f"{name:34} {seconds:6.2f} {tried:8,} {possible:8,}  {best.layout if best else 'none'}")


def arrays(repeat: int) -> None:
    """Evaluations per second of cache sizes and of whole memory budgets."""
    rng = np.random.default_rng(1)
    tp, pp = 2 ** rng.integers(0, 6, ROWS), 2 ** rng.integers(0, 5, ROWS)
    table = CacheTable(MODEL)
    seconds, _ = best_of(repeat, lambda: table.kv_bytes_per_token(tp, pp))
    print(f"{'KV bytes per token':34} {ROWS / seconds / 1e6:6.1f} million a second")
    layouts = [Layout(tp=t, pp=p) for t in (8, 16) for p in (1, 2, 4)]
    plans = VllmTable(MODEL, layouts, engine_gpu(POOL), VllmSettings())
    which = rng.integers(0, len(layouts), ROWS)
    gib, share = rng.uniform(130, 180, ROWS), rng.uniform(0.8, 0.95, ROWS)
    length, batch, step = (rng.integers(low, high, ROWS) for low, high in ((1024, 131072), (1, 1024), (2048, 16384)))
    seconds, _ = best_of(repeat, lambda: plans.evaluate(which, gib, share, length, batch, step))
    print(f"{'vLLM memory budgets':34} {ROWS / seconds / 1e6:6.1f} million a second")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the fastest counts")
    repeat = parser.parse_args().repeat
    searches(repeat)
    arrays(repeat)


if __name__ == "__main__":
    main()
