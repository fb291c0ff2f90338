"""Published training tables as rows: Megatron-Bridge's summary and archive, torchtitan's three reports.

Cells that hold two layouts or two rates, "64 (0)", become two rows. Where a table has no precision column the page's
footnote says that the first figure is FP8 with current scaling and the one in parentheses MXFP8 (Blackwell).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Model names of the tables → configs in model_configs.
CONFIGS: Final = {
    "LLAMA3_8B": "meta-llama--Meta-Llama-3.1-8B",
    "LLAMA3_70B": "meta-llama--Meta-Llama-3.1-70B",
    "LLAMA3.1_405B": "meta-llama--Meta-Llama-3.1-405B",
    "DeepSeekV3": "deepseek-ai--DeepSeek-V3",
    "DeepSeekV4 Flash": "deepseek-ai--DeepSeek-V4-Flash",
    "GPT OSS 120B": "openai--gpt-oss-120b",
    "Qwen3_30B_a3B": "Qwen--Qwen3-30B-A3B",
    "Qwen3_235B_a22B": "Qwen--Qwen3-235B-A22B",
    "Kimi_K2": "moonshotai--Kimi-K2-Instruct",
    "Nemotron_3_Nano": "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "Nemotron_3_5_Lightning": "nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4",
    "Nemotron_3_Super": "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    "Nemotron_3_Ultra": "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
}
_PRECISIONS: Final = {
    "BF16": "bf16", "FP8": "fp8", "FP8-CS": "fp8", "MXFP8": "mxfp8", "FP8-MX": "mxfp8", "NVFP4": "nvfp4",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One published run.

    Args:
        kind: pretraining, sft or lora; fsdp: weights sharded.
        marked: the page notes a known regression.
        tflops: model TFLOP/s per GPU as printed, 0 where not.
    """

    id: str
    release: str
    system: str
    model: str
    kind: str
    gpus: int
    precision: str
    gbs: int
    mbs: int
    sequence: int
    fsdp: bool
    tp: int
    pp: int
    cp: int
    vp: int
    ep: int
    tokens_per_s: float
    tflops: float = 0.0
    mtp: bool = True
    marked: bool = False

    @property
    def dp(self) -> int:
        """Data-parallel ranks."""
        return self.gpus // (self.tp * self.pp * self.cp)


def megatron_bridge(cases: Path) -> list[Run]:
    """All rows of both pages, newest release first."""
    folder = cases / "training_throughput"
    runs: list[Run] = []
    for name in ("megatron-bridge_performance-summary.md", "megatron-bridge_performance-summary-archive.md"):
        runs += _page((folder / name).read_text())
    return runs


def _page(text: str) -> Iterator[Run]:
    release = kind = model = system = ""
    columns: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"## (\S+) NeMo Container", line):
            release = ".".join(found[1].split(".")[:2])
        elif found := re.match(r"### (\S+) Performance", line):
            kind = found[1].lower().replace("pre-training", "pretraining")
        elif found := re.match(r"#### Model: (.+)", line):
            model = found[1].strip()
        elif found := re.match(r"#### System: (.+)", line):
            system = found[1].strip()
        elif line.startswith(("| System", "| Model")):
            columns = [c.strip() for c in line.strip("| \n").split("|")]
        elif line.startswith("|") and "---" not in line:
            cells = dict(zip(columns, (c.strip() for c in line.strip().strip("|").split("|")), strict=True))
            cells.setdefault("Model", model)
            cells.setdefault("System", system)
            yield from _runs(f"{release}:{number}", release, kind, cells)


def _runs(where: str, release: str, kind: str, cells: dict[str, str]) -> Iterator[Run]:
    """One run, and another where a rate is given in parentheses."""
    name = re.sub(r"\s*\(.*", "", cells["Model"])
    rates = _pair(cells["Tokens / sec / GPU"])
    for at, rate in enumerate(rates):
        first = cells.get("Precision", "FP8-CS (FP8-MX)")
        formats = re.findall(r"[A-Z0-9-]+", first)
        precision = _PRECISIONS[formats[min(at, len(formats) - 1)]]
        if at and precision == "mxfp8" and cells["System"] == "DGX-H100":
            precision = "fp8"

        def number(column: str, default: str = "1", at: int = at) -> int:
            pair = _pair(cells.get(column, default).replace("n/a", "1"))
            return int(pair[min(at, len(pair) - 1)])

        flops = _pair(cells["Model TFLOP / sec / GPU"])
        yield Run(
            f"{where}{'b' if at else ''}", release, cells["System"], name, kind, number("#-GPUs"), precision,
            number("GBS"), number("MBS"), number("Sequence Length"), number("FSDP", "0") > 0, number("TP"),
            number("PP"), number("CP"), number("VP"), number("EP"), float(rate), float(flops[min(at, len(flops) - 1)]),
            "w/o MTP" not in cells["Model"], "gpt-oss-note" in cells["Model TFLOP / sec / GPU"],
        )  # fmt: skip


def _pair(cell: str) -> list[str]:
    return re.findall(r"\d+", re.sub(r"\[\^.*?\]", "", cell))
