"""Weights as engines load them, against sizes printed at start-up."""

import pytest

from builders.decoders import deepseek_v3, gpt_oss, llama, llama_70b, qwen3_moe
from clusterwright.model.decoders import Decoder
from clusterwright.physics.layouts import Layout
from clusterwright.physics.loading import Loading, expert_share, load_weights, requantised

GIB = 2**30


ONE = Layout()
PLAIN = Loading()


def loaded_gib(decoder: Decoder, layout: Layout = ONE, loading: Loading = PLAIN) -> float:
    return load_weights(decoder, layout, loading).largest / GIB


@pytest.mark.parametrize(
    ("gib", "printed"),
    [  # "Model loading took …" of vLLM in its issue tracker
        (loaded_gib(llama()), 14.9888),  # vllm-project/vllm#10517
        (loaded_gib(llama_70b(), Layout(tp=8)), 16.4605),  # vllm-project/vllm#10702
        (loaded_gib(deepseek_v3(), Layout(tp=16)), 40.3174),  # vllm-project/vllm#16692, DeepSeek-R1
        (loaded_gib(requantised(llama(max_position_embeddings=8192), "fp8")), 8.4596),  # vllm-project/vllm#8009
    ],
)
def test_weights_match_what_vllm_printed(gib: float, printed: float) -> None:
    assert gib == pytest.approx(printed, rel=5e-4)


def test_padded_experts_of_gpt_oss_exceed_the_checkpoint() -> None:
    """vLLM logs print 64.4 to 66.0 GiB for a checkpoint of 60.8."""
    decoder = gpt_oss()
    assert decoder.checkpoint_bytes / GIB == pytest.approx(60.8, abs=0.1)
    assert 64.4 <= loaded_gib(decoder) <= 66.0


def test_first_stage_has_the_embedding_and_last_the_head() -> None:
    weights = load_weights(llama(), Layout(pp=2))
    names = [dict(stage) for stage in weights.stages]
    assert "embedding" in names[0]
    assert "head" not in names[0]
    assert "head" in names[1]
    assert "embedding" not in names[1]
    assert weights.smallest <= weights.largest


def test_a_tied_table_is_on_both_end_stages() -> None:
    weights = load_weights(llama(tie_word_embeddings=True), Layout(pp=2))
    assert all("embedding" in dict(stage) for stage in weights.stages)


def test_experts_that_do_not_divide_leave_one_rank_with_more() -> None:
    assert expert_share(128, Layout(tp=8, ep=8)) == 1 / 8
    assert expert_share(60, Layout(tp=8, ep=8)) == 8 / 60
    assert expert_share(128, Layout(tp=8, ep=4)) == 1 / 4 / 2
    assert expert_share(256, Layout(tp=1, dp=8, ep=8)) == 1 / 8


def test_kv_projections_are_copied_beyond_their_heads() -> None:
    by_rank = [dict(load_weights(qwen3_moe(), Layout(tp=tp)).stages[0])["attention"] for tp in (4, 8)]
    assert by_rank[1] > by_rank[0] / 2


def test_attention_groups_hold_whole_attention_layers() -> None:
    decoder = deepseek_v3()
    groups = dict(load_weights(decoder, Layout(tp=8, attention_dp=8, ep=8)).stages[0])
    one = dict(load_weights(decoder, Layout()).stages[0])
    assert groups["attention"] == one["attention"]
    assert groups["experts"] * 8 == pytest.approx(one["experts"], rel=1e-6)


def test_the_vocabulary_is_padded_to_64() -> None:
    padded = dict(load_weights(llama(vocab_size=32001), Layout()).stages[0])["embedding"]
    assert padded == 32064 * 4096 * 2


def test_draft_layers_load_only_with_speculation_and_share_tables() -> None:
    """DeepSeek-V3's draft layer: 11.5 billion parameters in fp8 divided, a projection of 2 · 7,168² in bf16 copied."""
    decoder = deepseek_v3()
    extra = loaded_gib(decoder, Layout(tp=8), Loading(drafts=True)) - loaded_gib(decoder, Layout(tp=8))
    assert extra == pytest.approx((11.5e9 / 8 + 2 * 2 * 7168**2) / GIB, rel=0.02)


def test_a_draft_layer_on_the_last_stage_brings_the_embedding_there() -> None:
    decoder, layout = deepseek_v3(), Layout(pp=2)
    plain, drafting = (dict(load_weights(decoder, layout, Loading(drafts=d)).stages[1]) for d in (False, True))
    assert "embedding" not in plain
    assert drafting["embedding"] == 129280 * 7168 * 2


def test_requantising_leaves_tables_norms_and_routers() -> None:
    four = requantised(qwen3_moe(), "int4")
    kept = {part.role for part, _ in four.parts() if part.stored == "bf16"}
    assert kept == {"embedding", "head", "norm", "router"}
    assert four.parameters == qwen3_moe().parameters


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(KeyError):
        requantised(llama(), "int3")
