"""What holds for every decoder, whatever its sizes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import decoders
from clusterwright.model.decoders import Decoder, stored_bytes
from clusterwright.model.huggingface.facts import typed

sizes = st.fixed_dictionaries(
    {
        "num_hidden_layers": st.integers(1, 12),
        "hidden_size": st.integers(1, 8).map(lambda n: n * 128),
        "vocab_size": st.integers(1, 5000),
        "num_key_value_heads": st.sampled_from([1, 2, 4]),
        "num_attention_heads": st.sampled_from([4, 8]),
        "tie_word_embeddings": st.booleans(),
    }
)
experts = st.fixed_dictionaries({"experts": st.integers(1, 16), "chosen": st.integers(1, 16)})


def check(decoder: Decoder) -> None:
    parts = list(decoder.parts(drafts=True))
    assert sum(p.parameters * n for p, n in decoder.parts()) == decoder.parameters
    assert decoder.text_parameters == decoder.parameters - sum(p.parameters for p in decoder.towers)
    assert decoder.multiplied <= decoder.active <= decoder.text_parameters
    assert decoder.checkpoint_bytes == sum(stored_bytes(p) * n for p, n in parts)
    assert all(0 <= p.active <= p.parameters and p.scale_bytes >= 0 and p.copies >= 1 for p, _ in parts)
    assert sum(count for _, count in decoder.groups) == len(decoder.layers)
    assert sum(count for _, count in decoder.runs) == len(decoder.layers)


@settings(deadline=None, max_examples=60)
@given(sizes, st.sampled_from(["llama", "windowed"]), st.booleans())
def test_dense_models(facts: dict[str, Any], maker: str, quantised: bool) -> None:
    extra = {"quantization_config": decoders.FP8_BLOCKS} if quantised else {}
    check(getattr(decoders, maker)(**facts, **extra))


@settings(deadline=None, max_examples=60)
@given(sizes, experts, st.booleans())
def test_mixtures(facts: dict[str, Any], routed: dict[str, int], quantised: bool) -> None:
    chosen = min(routed["chosen"], routed["experts"])
    extra = {"quantization_config": decoders.FP8_BLOCKS} if quantised else {}
    check(decoders.qwen3_moe(**facts, num_experts=routed["experts"], num_experts_per_tok=chosen, **extra))


@settings(deadline=None, max_examples=40)
@given(sizes, experts, st.integers(0, 2))
def test_latent_attention_with_draft_layers(facts: dict[str, Any], routed: dict[str, int], drafts: int) -> None:
    chosen = min(routed["chosen"], routed["experts"])
    decoder = decoders.deepseek_sparse(
        **facts, n_routed_experts=routed["experts"], num_experts_per_tok=chosen, num_nextn_predict_layers=drafts
    )
    check(decoder)
    assert len(decoder.drafts) == drafts
    without = decoders.deepseek_sparse(
        **facts, n_routed_experts=routed["experts"], num_experts_per_tok=chosen, num_nextn_predict_layers=None
    )
    assert without.parameters == decoder.parameters


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_facts_survive_being_text(value: Any) -> None:
    def text(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {key: text(item) for key, item in inner.items()}
        if isinstance(inner, list):
            return [text(item) for item in inner]
        return {None: "null", True: "true", False: "false"}.get(inner, str(inner)) if not _number(inner) else str(inner)

    assert typed(text(value)) == value


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
