"""What must hold of every plan, whatever its file declares: monotone answers, figures that explain themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.plans import BASE, CATALOGUE, document
from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.catalogue.catalogues import Catalogue
from clusterwright.lib.figures import evaluate
from clusterwright.plan.planning import plan_architecture
from clusterwright.plan.results.memories import MemoryPlan
from clusterwright.plan.results.money import EconomicsPlan
from clusterwright.plan.results.plans import Plan

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/cluster.yaml"))
MODELS = ("llama-70b", "llama-8b", "qwen-235b", "deepseek-like")
ENGINES = ("vllm 0.6", "vllm 0.11", "vllm 0.22", "sglang 0.5", "tensorrt-llm 1.0")
#: Plans take a good part of a second each; examples differ from run to run.
BUILDS = settings(max_examples=6, deadline=None)


@st.composite
def overrides(draw: st.DrawFn) -> tuple[str, ...]:
    """What a file may say of one service and one job, its pool and its money."""
    chat, serve = "workloads.chat", "workloads.chat.serve"
    said = [
        f"{chat}.model={draw(st.sampled_from(MODELS))}",
        f"{serve}.engine={draw(st.sampled_from(ENGINES))}",
        f"{serve}.precision={draw(st.sampled_from(['bf16', 'fp8']))}",
        f"{serve}.in={draw(st.integers(1, 4000))} tokens",
        f"{serve}.out={draw(st.integers(1, 2000))} tokens",
        f"{serve}.in_p95=",
        f"{serve}.rate={draw(st.integers(1, 200))} req/s",
        f"{serve}.replicas={draw(st.integers(1, 3))}",
        f"{serve}.parallel.tp={draw(st.sampled_from([1, 2, 4, 8]))}",
        f"pools.gpu.nodes=gpu-[1-{draw(st.integers(1, 6))}]",
        f"pools.gpu.price=${draw(st.integers(1, 9))}/GPU-h",
        f"economics.utilisation={draw(st.integers(1, 100))}%",
        f"workloads.finetune.train.micro_batch={draw(st.sampled_from([1, 2]))}",
    ]
    return tuple(said)


def plan_of(*said: str, catalogue: Catalogue = CATALOGUE) -> Plan:
    return plan_architecture(document(BASE, *said), catalogue)


def with_memory(gib: float) -> Catalogue:
    """The catalogue with H100s of which CUDA reports so much."""
    raw: dict[str, Any] = {kind: dict(entries) for kind, entries in CATALOGUE.raw.items()}
    reported = {"total": f"{gib:.3f} GiB", "source": "a log"}
    raw["gpus"]["h100-sxm-80"] = {**raw["gpus"]["h100-sxm-80"], "memory": f"{gib + 1:.3f} GiB", "reported": reported}
    return Catalogue(raw)


def memory_of(plan: Plan, name: str = "chat") -> MemoryPlan | None:
    workload = plan.workload(name)
    assert workload is not None
    return workload.memory if isinstance(workload.memory, MemoryPlan) else None


#: A fixed batch: engines choose theirs by the GPU's memory, and a larger one takes more of it.
BATCH = ("workloads.chat.serve.max_num_seqs=256", "workloads.chat.serve.max_num_batched_tokens=4096")
#: The service alone.
ALONE = (*BATCH, "workloads.finetune=", "economics=", "workloads.chat.payload=", "fabric=")


@BUILDS
@given(overrides(), st.floats(20, 200), st.floats(0.1, 100))
def test_more_memory_never_fits_less(said: tuple[str, ...], gib: float, more: float) -> None:
    small = memory_of(plan_of(*said, *ALONE, catalogue=with_memory(gib)))
    large = memory_of(plan_of(*said, *ALONE, catalogue=with_memory(gib + more)))
    if small is None or large is None:
        return
    assert large.fits or not small.fits
    if small.kv_tokens is not None and large.kv_tokens is not None:
        assert large.kv_tokens.value >= small.kv_tokens.value


@BUILDS
@given(overrides(), st.integers(1, 4000))
def test_longer_requests_never_allow_more_of_them(said: tuple[str, ...], more: int) -> None:
    short = memory_of(plan_of(*said, *ALONE, "workloads.chat.serve.in=500 tokens"))
    long = memory_of(plan_of(*said, *ALONE, f"workloads.chat.serve.in={500 + more} tokens"))
    if (
        short is not None
        and long is not None
        and short.max_concurrency is not None
        and long.max_concurrency is not None
    ):
        assert long.max_concurrency.value <= short.max_concurrency.value


@BUILDS
@given(overrides())
def test_halving_the_bytes_of_the_cache_never_reduces_its_tokens(said: tuple[str, ...]) -> None:
    whole = memory_of(plan_of(*said, *ALONE, "workloads.chat.serve.kv_precision=bf16"))
    half = memory_of(plan_of(*said, *ALONE, "workloads.chat.serve.kv_precision=fp8"))
    if whole is not None and half is not None and whole.kv_tokens is not None and half.kv_tokens is not None:
        assert half.kv_tokens.value >= whole.kv_tokens.value


@BUILDS
@given(overrides())
def test_ranks_beyond_the_kv_heads_never_help_the_cache(said: tuple[str, ...]) -> None:
    model = "workloads.chat.model=qwen-235b"
    four = memory_of(plan_of(*said, *ALONE, model, "workloads.chat.serve.parallel.tp=4"))
    eight = memory_of(plan_of(*said, *ALONE, model, "workloads.chat.serve.parallel.tp=8"))
    if four is not None and eight is not None and four.kv_bytes_per_token and eight.kv_bytes_per_token:
        assert eight.kv_bytes_per_token.value >= four.kv_bytes_per_token.value


def unexplained(plan: Plan) -> Iterator[str]:
    """Figures that do not follow from what they say they follow from."""
    for name, figure in plan.figures.items():
        if figure.function is None:
            continue
        if not figure.inputs:
            yield f"{name}: computed from nothing"
        again = figure.function(*(i.value for i in figure.inputs))
        if not same(again, figure.value):
            yield f"{name}: its inputs give {again}, it says {figure.value}"
        if not same(evaluate(figure, {n: leaf.value for n, leaf in figure.leaves.items()}), figure.value):
            yield f"{name}: its leaves give another value"
        if figure.basis.startswith(("sum of", "sum over")) and not same(
            math.fsum(i.value for i in figure.inputs), figure.value
        ):
            yield f"{name}: {figure.basis}, but they sum to {math.fsum(i.value for i in figure.inputs)}"


def same(one: float, two: float) -> bool:
    return one == two or math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-12)


def bars_do_not_sum(plan: Plan) -> Iterator[str]:
    """Bars whose parts make another total."""
    for workload in plan.workloads:
        if isinstance(workload.memory, MemoryPlan):
            parts = math.fsum(figure.value for _, figure in workload.memory.parts)
            if not same(parts, workload.memory.total.value):
                yield f"{workload.name}: {parts} of {workload.memory.total.value} GiB"
    if isinstance(plan.economics, EconomicsPlan):
        lines = math.fsum(figure.value for _, figure in plan.economics.lines)
        if not same(lines, plan.economics.total.value):
            yield f"month: {lines} of {plan.economics.total.value}"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_figure_of_an_example_follows_from_its_inputs(file: Path) -> None:
    plan = plan_architecture(load_document([file]), load_catalogue())
    assert plan.figures
    assert list(unexplained(plan)) == []
    assert list(bars_do_not_sum(plan)) == []


@BUILDS
@given(overrides())
def test_every_figure_of_any_plan_follows_from_its_inputs(said: tuple[str, ...]) -> None:
    plan = plan_of(*said)
    assert list(unexplained(plan)) == []
    assert list(bars_do_not_sum(plan)) == []


@BUILDS
@given(overrides())
def test_a_leaf_that_stands_in_a_figure_moves_it_as_its_tree_says(said: tuple[str, ...]) -> None:
    """A figure computed again with a declared price doubled is the figure of the file that says so."""
    price = next(text for text in said if text.startswith("pools.gpu.price=$"))
    dollars = int(price.partition("$")[2].partition("/")[0])
    one, two = plan_of(*said), plan_of(*said, f"pools.gpu.price=${2 * dollars}/GPU-h")
    if isinstance(one.economics, EconomicsPlan) and isinstance(two.economics, EconomicsPlan):
        again = evaluate(one.economics.total, {"pools.gpu.price": 2.0 * dollars})
        assert again == pytest.approx(two.economics.total.value)


def test_a_figure_that_does_not_follow_is_found() -> None:
    plan = plan_architecture(load_document([EXAMPLES[0]]), load_catalogue())
    wrong = next(f for f in plan.figures.values() if f.function is not None and f.value)
    broken = replace(wrong, value=wrong.value * 2)
    assert list(unexplained(replace(plan, figures={broken.name: broken})))
