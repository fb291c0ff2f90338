"""Bars of inference memory on public start-up logs."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from validation.memory_shapes import decoder_of, shape_decoder  # noqa: E402
from validation.scoring import Scored, share  # noqa: E402

from clusterwright.model.decoders import Attention, LatentAttention, StateMixer  # noqa: E402
from validation import inference_memory  # noqa: E402

needs_cases = pytest.mark.skipif(
    not (CASES / "memory.jsonl").is_file(),
    reason="public measurements are missing: ../shared/cases/memory.jsonl beside the clone",
)

#: One row as the set has them (vllm-project/vllm#10517), for clones without the set.
ROW = {
    "id": "a", "kind": "inference", "source": "https://github.com/vllm-project/vllm/issues/10517", "engine": "vllm",
    "version": None, "model": "a model", "gpu": "RTX 3090", "gpu_mem_total_gib": 23.58, "tp": 1, "pp": 1,
    "ep": None, "dp": 1,
    "weight_dtype": "bf16", "kv_dtype": None, "max_model_len": 20000, "mem_fraction": 0.9, "block_size": 16,
    "enforce_eager": None, "other": None, "outcome": "ok", "note": None,
    "cluster": "a", "calc": {"check_kind": "independent"},
    "shape": {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "intermediate": 14336,
              "vocab": 128256, "attn": "gqa", "params_b": 8.03, "tied": False},
    "measured": {"weights": 14.9888, "peak_torch": 17.06, "non_torch": 0.35, "kv_avail": 3.81, "gpu_blocks": 1952},
}  # fmt: skip


@pytest.fixture(scope="module")
def scores() -> dict[str, Scored]:
    return {s.name.split(": ", 1)[1]: s for s in inference_memory.score(CASES) if isinstance(s, Scored)}


def test_a_row_without_a_config_is_planned_from_its_shape(tmp_path: Path) -> None:
    (tmp_path / "memory.jsonl").write_text(json.dumps(ROW) + "\n")
    *scored, found = inference_memory.score(tmp_path)
    assert [len(s.rows) for s in scored] == [1, 1, 0, 0, 1]
    assert all(row.inside for s in scored for row in s.rows)
    assert (found.fits, found.ran, found.missed) == (1, 1, ())


def test_shapes_become_the_attention_they_name() -> None:
    sizes = {"layers": 8, "hidden": 1024, "heads": 16, "kv_heads": 4, "head_dim": 64, "intermediate": 4096}
    windowed = shape_decoder("m", sizes | {"attn": "gqa, SWA(128) 5:1", "sliding_window": 128})
    assert [isinstance(x.mixer, Attention) and x.mixer.window for x in windowed.layers][4:7] == [128, None, 128]
    hybrid = shape_decoder("m", sizes | {"attn": "hybrid GDN 3:1"})
    assert sum(isinstance(x.mixer, StateMixer) for x in hybrid.layers) == 6
    latent = shape_decoder("m", sizes | {"attn": "mla", "kv_lora_rank": 512, "qk_rope_head_dim": 64})
    assert isinstance(latent.layers[0].mixer, LatentAttention)


def test_mlp_matrices_follow_from_the_published_size() -> None:
    """starcoder2-15b has two matrices per MLP, Llama three."""
    star = {"layers": 40, "hidden": 6144, "heads": 48, "kv_heads": 4, "head_dim": 128, "intermediate": 24576}
    assert shape_decoder("m", star | {"attn": "gqa", "params_b": 16.0}).layers[0].feed.matrices == 2
    assert decoder_of(ROW, Path("none")).layers[0].feed.matrices == 3


def test_failures_that_can_be_known_and_those_that_cannot_are_apart() -> None:
    assert not set(inference_memory.KNOWABLE) & set(inference_memory.UNKNOWABLE)


@needs_cases
def test_every_failure_of_the_set_is_listed() -> None:
    failed = {row["id"] for row in inference_memory.read_rows(CASES) if row["outcome"] != "ok"}
    assert failed == set(inference_memory.KNOWABLE) | set(inference_memory.UNKNOWABLE)


@needs_cases
@pytest.mark.parametrize("name", ["KV bytes per token", "pool, weights as logged", "requests in the pool"])
def test_bars(scores: dict[str, Scored], name: str) -> None:
    found = scores[name]
    assert found.passes
    assert all(share(rows) >= 0.8 for rows in found.groups().values())


@needs_cases
def test_end_to_end_misses_only_unified_memory(scores: dict[str, Scored]) -> None:
    found = scores["end to end, vLLM ≥ 0.11"]
    assert {row.id for row in found.rows if not row.inside} == {"v112"}


@needs_cases
def test_knowable_failures_are_foreseen_and_what_ran_fits() -> None:
    found = inference_memory.failures(CASES)
    assert found.missed == ()
    assert len(found.foreseen) == 8
    assert found.fits / found.ran >= 0.95
