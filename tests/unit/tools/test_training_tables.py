"""Published training tables read as runs."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from validation.torchtitan_tables import torchtitan  # noqa: E402
from validation.training_tables import megatron_bridge  # noqa: E402

BY_MODEL = """\
## 26.06.01 NeMo Container
### Pre-Training Performance
#### Model: GPT OSS 120B
| System | #-GPUs | Precision | GBS | MBS | Sequence Length | TP | PP | CP | VP | EP | Tokens / sec / GPU | Model TFLOP / sec / GPU |
|--------|--------|-----------|-----|-----|-----------------|----|----|----|----|----|------|------|
| DGX-GB300 | 64 | MXFP8 | 1280 | 4 | 4096 | 1 | 1 | 1 | n/a | 16 | 20288 | 661[^gpt-oss-note] |
"""  # noqa: E501 - a table as published
BY_SYSTEM = """\
## 25.09 NeMo Container
### Pre-Training Performance
#### System: DGX-GB200
| Model | #-GPUs | GBS | MBS | Sequence Length | FSDP | TP | PP | CP | VP | EP | GA | Tokens / sec / GPU | Model TFLOP / sec / GPU |
|-------|--------|-----|-----|-----------------|------|----|----|----|----|----|----|------|------|
| LLAMA3_70B | 64 | 128 | 2 | 8192 | 64 (0) | 1 (2) | 1 (4) | 1 | 1 (5) | 1 | 1 (16) | 3986 (3546) | 1791 (1593) |
| DeepSeekV3 (w/o MTP) | 256 | 4096 | 1 | 4096 | 0 | 1 | 4 | 1 | 4 | 64 | 64 | 3139 | 782 |
"""  # noqa: E501 - a table as published
TITAN = """\
**Table 2** FSDP + CP. Llama 3.1 8B model. 8 GPUs.

| Parallelism | Sequence Length | TPS/GPU | Memory(GiB) |
| ----- | ----: | ----: | ----: |
| FSDP 4, CP 2 | 65536 | 2,540 | 84.2 |
"""


@pytest.fixture
def cases(tmp_path):
    folder = tmp_path / "training_throughput"
    folder.mkdir()
    (folder / "megatron-bridge_performance-summary.md").write_text(BY_MODEL)
    (folder / "megatron-bridge_performance-summary-archive.md").write_text(BY_SYSTEM)
    (folder / "torchtitan_llama3_h100_202412_torchtitan.md").write_text(TITAN)
    (folder / "torchtitan_llama3-8b_h200_202506_trainy-whitefiber.md").write_text("| 4 | 10938 | 47.96 |\n")
    return tmp_path


def test_a_point_release_counts_as_its_release_and_a_noted_regression_is_marked(cases):
    run = megatron_bridge(cases)[0]
    assert (run.release, run.kind, run.model, run.system) == ("26.06", "pretraining", "GPT OSS 120B", "DGX-GB300")
    assert (run.precision, run.vp, run.ep, run.dp, run.tokens_per_s, run.tflops) == ("mxfp8", 1, 16, 64, 20288, 661)
    assert run.marked


def test_cells_with_two_layouts_become_two_runs(cases):
    _, first, second, deep = megatron_bridge(cases)
    assert (first.precision, first.fsdp, first.tp, first.pp, first.vp, first.dp) == ("fp8", True, 1, 1, 1, 64)
    assert (second.precision, second.fsdp, second.tp, second.pp, second.vp, second.dp) == ("mxfp8", False, 2, 4, 5, 8)
    assert (second.tokens_per_s, second.tflops) == (3546, 1593)
    assert (deep.model, deep.mtp) == ("DeepSeekV3", False)


def test_torchtitan_rows_carry_their_captions(cases):
    first, second = torchtitan(cases)
    assert (first.layout.dp, first.layout.cp, first.recipe.sequence, first.recipe.recompute) == (4, 2, 65536, "full")
    assert (first.tokens_per_s, first.memory_gib, first.recipe.global_batch) == (2540, 84.2, 4)
    assert (second.layout.dp, second.recipe.logits, second.memory_gib) == (32, "fused", 47.96)
