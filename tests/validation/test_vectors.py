"""Every formula vector, exact; each with all arguments in `tools/validation/vectors.py`."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases"
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

from validation import vectors  # noqa: E402

#: What planning documents round these values to: they hold in a clone without the file of vectors.
ROUNDED = {
    "weights_GiB.llama70_bf16": 131.42,
    "weights_GiB.llama70_fp8": 65.71,
    "weights_GiB.llama70_nvfp4_g16": 36.96,
    "kv_GiB_131072.gptoss120_bf16_hybrid": 4.504,
    "allreduce_us_1GiB_8xH100": 3987,
    "hier_allreduce_us_1GiB_16x8_H100_400G": 10976,
    "ettr.rsc1_16k_60min_ckpt": 0.6821,
    "ettr.rsc1_16384_5min": 0.9006,
    "mttf_job_h.rsc1_131072": 0.2254,
    "ckpt.young_60s_2.34h": 1005.4,
    "ckpt.waste_R0": 0.1194,
    "tco_gpu_h_capex437k_5y_10pct_PUE1.25_8c": 1.7725,
    "usd_per_Mtok.8xH100_3usd_2500tps_per_gpu_util60": 0.5556,
    "spares.N2048_mtbf153.8d_mttr7d_0.999": 125,
    "queue.mmc": 174.7,
}


@pytest.mark.parametrize(("name", "value"), ROUNDED.items())
def test_published_values_are_met(name, value):
    assert vectors.values()[name] == pytest.approx(value, rel=4e-4)


@pytest.mark.skipif(
    not (CASES / "formula_vectors.json").is_file(),
    reason="the file of vectors is missing: ../shared/cases/formula_vectors.json beside the clone",
)
def test_every_vector_is_exact():
    scored = vectors.score(CASES)
    assert len(scored.rows) == 52
    assert [r.id for r in scored.rows if not r.inside] == []
    assert vectors.render(scored).count(" ok") == 52
