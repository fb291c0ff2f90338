"""What must hold of every engine's memory plan, whatever the model, layout and settings."""

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.decoders import deepseek_sparse, deepseek_v3, gpt_oss, llama, llama_70b, mixtral, qwen3_moe, windowed
from clusterwright.model.decoders import Attention, Decoder, Layer, Mlp, StateMixer
from clusterwright.physics.caches_by_layer import bytes_per_token
from clusterwright.physics.engines import sglang, tensorrt_llm, vllm
from clusterwright.physics.engines.results import EngineMemory, Gpu
from clusterwright.physics.engines.settings import Settings
from clusterwright.physics.layouts import Layout


def hybrid() -> Decoder:
    """Recurrent states in three of four layers, sizes of Qwen3.5-9B."""
    state = StateMixer("gated-delta", 32, 32 * 128 * 128, 3 * 8192)
    full = Attention(16, 4, 256, 256)
    base = llama()
    mixed = (replace(x, mixer=full if i % 4 == 3 else state) for i, x in enumerate(base.layers))
    return replace(base, name="hybrid", layers=tuple(Layer(x.mixer, Mlp(12288), x.parts) for x in mixed))


DECODERS = st.sampled_from(
    [llama(), llama_70b(), windowed(), qwen3_moe(), mixtral(), deepseek_v3(), deepseek_sparse(), gpt_oss(), hybrid()]
)
LAYOUTS = st.builds(Layout, tp=st.sampled_from([1, 2, 4, 8, 16]), pp=st.sampled_from([1, 2, 3]))
TOTALS = st.floats(14.0, 290.0)
VERSIONS = {"vllm": ((0, 6), (0, 9), (0, 11), (0, 22)), "sglang": ((0, 4), (0, 5)), "tensorrt-llm": ((0, 16), (1, 0))}


@st.composite
def cases(draw: st.DrawFn, engines: tuple[str, ...] = tuple(VERSIONS)) -> tuple[Decoder, Layout, float, Settings]:
    """A model under an engine with settings."""
    engine = draw(st.sampled_from(engines))
    kind = {"vllm": vllm.VllmSettings, "sglang": sglang.SglangSettings, "tensorrt-llm": tensorrt_llm.TrtllmSettings}
    chosen = kind[engine](
        version=draw(st.sampled_from(VERSIONS[engine])),
        memory_share=draw(st.floats(0.3, 0.97)),
        max_model_len=draw(st.integers(1, 131072)),
        kv_format=draw(st.sampled_from(["auto", "bf16", "fp8"])),
        max_num_seqs=draw(st.integers(1, 1024)),
        max_num_batched_tokens=draw(st.integers(256, 16384)),
        eager=draw(st.booleans()),
        speculative_tokens=draw(st.integers(0, 2)),
    )
    return draw(DECODERS), draw(LAYOUTS), draw(TOTALS), chosen


def plan(decoder: Decoder, layout: Layout, total: float, chosen: Settings) -> EngineMemory:
    """The plan of the engine that the settings belong to."""
    gpu = Gpu("x", total)
    if isinstance(chosen, vllm.VllmSettings):
        return vllm.plan_memory(decoder, layout, gpu, chosen)
    if isinstance(chosen, sglang.SglangSettings):
        return sglang.plan_memory(decoder, layout, gpu, chosen)
    assert isinstance(chosen, tensorrt_llm.TrtllmSettings)
    return tensorrt_llm.plan_memory(decoder, layout, gpu, chosen)


@given(cases())
@settings(max_examples=150, deadline=None)
def test_terms_sum_to_the_gpu_exactly(case: tuple[Decoder, Layout, float, Settings]) -> None:
    found = plan(*case)
    assert math.fsum(gib for _, gib in found.terms) == found.reported_gib


@given(cases(("vllm", "tensorrt-llm")), st.floats(0.0, 200.0))
@settings(max_examples=150, deadline=None)
def test_more_memory_never_fits_less(case: tuple[Decoder, Layout, float, Settings], extra: float) -> None:
    decoder, layout, total, chosen = case
    before, after = plan(*case), plan(decoder, layout, total + extra, chosen)
    assert after.kv_tokens >= before.kv_tokens
    assert after.max_context >= before.max_context
    assert after.fits or not before.fits


@given(cases(("sglang",)), st.floats(0.0, 200.0))
@settings(max_examples=80, deadline=None)
def test_more_memory_never_holds_fewer_tokens_in_sglang(
    case: tuple[Decoder, Layout, float, Settings], extra: float
) -> None:
    """Its reserve is a share: graphs of larger batches, a default of larger GPUs, may still not fit in it."""
    decoder, layout, total, chosen = case
    assert plan(decoder, layout, total + extra, chosen).kv_tokens >= plan(*case).kv_tokens


@given(cases(), st.integers(1, 131072))
@settings(max_examples=150, deadline=None)
def test_more_context_never_allows_more_concurrency(case: tuple[Decoder, Layout, float, Settings], other: int) -> None:
    decoder, layout, total, chosen = case
    assert chosen.max_model_len is not None
    short, long = sorted((chosen.max_model_len, other))
    less, more = (plan(decoder, layout, total, replace(chosen, max_model_len=n)) for n in (long, short))
    assert less.max_concurrency <= more.max_concurrency


@given(cases())
@settings(max_examples=150, deadline=None)
def test_halving_bytes_of_the_cache_never_reduces_tokens(case: tuple[Decoder, Layout, float, Settings]) -> None:
    decoder, layout, total, chosen = case
    whole, half = (plan(decoder, layout, total, replace(chosen, kv_format=f)) for f in ("bf16", "fp8"))
    assert half.kv_bytes_per_token <= whole.kv_bytes_per_token
    assert half.max_concurrency >= whole.max_concurrency or has_states(decoder)
    assert half.kv_tokens >= whole.kv_tokens or has_states(decoder)


def has_states(decoder: Decoder) -> bool:
    """Blocks of hybrids hold one state whatever the format: rounding to them may cost a block."""
    return any(isinstance(layer.mixer, StateMixer) for layer in decoder.layers)


@given(DECODERS, st.sampled_from([1, 2, 4, 8, 16, 32]), st.sampled_from(["bf16", "fp8"]))
@settings(max_examples=100, deadline=None)
def test_ranks_beyond_kv_heads_never_help_the_cache(decoder: Decoder, tp: int, kv_format: str) -> None:
    heads = max((m.kv_heads for x in decoder.layers if isinstance(m := x.mixer, Attention)), default=1)
    per_token = bytes_per_token(decoder, Layout(tp=tp), kv_format)
    assert bytes_per_token(decoder, Layout(tp=2 * tp), kv_format) <= per_token
    if tp >= heads:
        assert bytes_per_token(decoder, Layout(tp=2 * tp), kv_format) == per_token


@given(cases(("vllm",)))
@settings(max_examples=60, deadline=None)
def test_the_longest_context_fits_and_one_more_token_does_not(
    case: tuple[Decoder, Layout, float, Settings],
) -> None:
    decoder, layout, total, chosen = case
    longest = plan(*case).max_context
    if longest:
        assert plan(decoder, layout, total, replace(chosen, max_model_len=longest)).max_concurrency >= 1
    if longest < decoder.max_context:
        assert plan(decoder, layout, total, replace(chosen, max_model_len=longest + 1)).max_concurrency < 1
