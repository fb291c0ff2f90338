"""Memory of many layouts of one model under one engine, each by the engine's own estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final

from clusterwright.model.decoders import Attention, Decoder, LatentAttention, StateMixer
from clusterwright.physics.engines.advice import Case
from clusterwright.physics.engines.results import EngineMemory
from clusterwright.physics.engines.settings import Settings
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import QUANTISATIONS, requantised
from clusterwright.plan.searching.machines import engine_gpu
from clusterwright.plan.searching.questions import ServingQuestion

#: Engines that memory is modelled for.
ENGINES: Final = ("vllm", "sglang", "tensorrt-llm")


def longest_sequence(question: ServingQuestion) -> int:
    """Tokens of the longest sequence that must fit: as stated, else the 95th percentiles, else the means."""
    if question.max_model_len is not None:
        return question.max_model_len
    held = question.lengths
    return int((held.p95_in or held.mean_in) + (held.p95_out or held.mean_out))


def served(question: ServingQuestion) -> Decoder:
    """The model with its linear layers in the format that is served.

    Raises:
        ValueError: if there is no such format.
    """
    if question.weights is None:
        return question.decoder
    if question.weights not in QUANTISATIONS:
        raise ValueError(f"weights in {question.weights} are not modelled; of {', '.join(QUANTISATIONS)}")
    return requantised(question.decoder, question.weights)


def settings(question: ServingQuestion, length: int) -> Settings:
    """The engine's settings for sequences of `length`.

    Raises:
        ValueError: if no such engine is modelled.
    """
    plain = _plain(question.engine)
    return replace(
        plain,
        version=question.version or plain.version,
        max_model_len=length,
        kv_format=question.kv_format,
        memory_share=question.memory_share,
        max_num_seqs=question.max_num_seqs,
        max_num_batched_tokens=question.max_num_batched_tokens,
    )


@cache
def _plain(engine: str) -> Settings:
    """An engine's settings as they come; its modules are imported when it is asked for."""
    if engine == "vllm":
        from clusterwright.physics.engines.vllm import VllmSettings

        return VllmSettings()
    if engine == "sglang":
        from clusterwright.physics.engines.sglang import SglangSettings

        return SglangSettings(serves_longest=True)
    if engine == "tensorrt-llm":
        from clusterwright.physics.engines.tensorrt_llm import TrtllmSettings

        return TrtllmSettings()
    raise ValueError(f"engine {engine} is not modelled; of {', '.join(ENGINES)}")


def plan(question: ServingQuestion, decoder: Decoder, layout: Layout, length: int, *, advise: bool) -> EngineMemory:
    """The engine's memory plan of one layout."""
    return plans(question, decoder, (layout,), length, advise=advise)[0]


def plans(
    question: ServingQuestion, decoder: Decoder, layouts: Sequence[Layout], length: int, *, advise: bool = False
) -> list[EngineMemory]:
    """The engine's memory plan of each layout."""
    planned, gpu = _planner(question.engine, settings(question, length)), engine_gpu(question.pool)
    return [planned(decoder, layout, gpu, advise=advise) for layout in layouts]


def _planner(engine: str, how: Settings) -> Callable[..., EngineMemory]:
    if engine == "vllm":
        from clusterwright.physics.engines import vllm

        assert isinstance(how, vllm.VllmSettings)
        return partial(vllm.plan_memory, settings=how)
    if engine == "sglang":
        from clusterwright.physics.engines import sglang

        assert isinstance(how, sglang.SglangSettings)
        return partial(sglang.plan_memory, settings=how)
    from clusterwright.physics.engines import tensorrt_llm

    assert isinstance(how, tensorrt_llm.TrtllmSettings)
    return partial(tensorrt_llm.plan_memory, settings=how)


def groups(layout: Layout) -> int:
    """Attention groups with a cache of their own."""
    return layout.dp * layout.attention_dp


def most_sequences(question: ServingQuestion, decoder: Decoder, layout: Layout, planned: EngineMemory) -> float:
    """Sequences that the engine runs at a time on all groups of a replica, whatever the cache holds.

    Args:
        planned: for the longest sequence.
    """
    if question.engine == "sglang" and any(isinstance(layer.mixer, StateMixer) for layer, _ in decoder.groups):
        return plan(question, decoder, layout, 1, advise=False).max_concurrency  # as many as have slots for states
    return groups(layout) * _most_of_group(question, decoder, planned.kv_tokens // groups(layout))


def _most_of_group(question: ServingQuestion, decoder: Decoder, tokens: int) -> int:
    how = settings(question, longest_sequence(question))
    if question.engine == "vllm":
        from clusterwright.physics.engines.vllm import step_of

        return step_of(Case(decoder, Layout(), engine_gpu(question.pool), how)).sequences
    if question.engine == "sglang":
        from clusterwright.physics.engines.sglang import default_requests

        return how.max_num_seqs or default_requests(tokens, longest_sequence(question))
    from clusterwright.physics.engines.tensorrt_llm import TrtllmSettings

    assert isinstance(how, TrtllmSettings)
    return how.max_num_seqs or how.constants.batch


def places(question: ServingQuestion, decoder: Decoder, layout: Layout, planned: EngineMemory) -> float:
    """Tokens of one group's cache, as sequences of mean length fill it.

    Blocks of windows and states make a token's share depend on the length: the pool is then planned for that length.

    Args:
        planned: for the longest sequence.
    """
    if keeps_every_token(decoder):
        return planned.kv_tokens / groups(layout)
    mean = max(1, round(question.lengths.mean_in + question.lengths.mean_out))
    held = plan(question, decoder, layout, min(mean, decoder.max_context), advise=False)
    return held.max_concurrency * mean / groups(layout)


def keeps_every_token(decoder: Decoder) -> bool:
    """Whether every layer with a cache keeps all tokens whole, so that a pool is a number of tokens."""
    return all(
        isinstance(mixer, LatentAttention)
        or (isinstance(mixer, Attention) and mixer.window is None and mixer.chunk is None)
        for mixer in (layer.mixer for layer, _ in decoder.groups)
        if mixer is not None
    )
