"""torchtitan's published runs (Llama 3.1 on H100 96 GB at 500 W, on H200) with memory and tokens per second.

What a caption says of a table stands in `_CAPTIONS`; parallel sizes of a row in its first cell. Pipelines run as many
micro-batches as stages (torchtitan's default of the time). Losses are compiled, which fuses them, from 2025 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clusterwright.physics.layouts import Layout
from clusterwright.physics.training.recipes import Recipe

_FSDP_8B: Final[dict[str, Any]] = {"model": "LLAMA3_8B", "batch": 2, "sequence": 8192, "recompute": "selective"}
_CP_8B: Final[dict[str, Any]] = {"model": "LLAMA3_8B", "batch": 1, "recompute": "full", "precision": "fp8"}
_405B: Final[dict[str, Any]] = {
    "model": "LLAMA3.1_405B", "tp": 8, "pp": 8, "recompute": "full", "precision": "fp8", "sequence": 8192,
}  # fmt: skip
#: Table of the report of December 2024 → what its caption says.
_CAPTIONS: Final[dict[int, dict[str, Any]]] = {
    1: _FSDP_8B | {"dp": 8},
    2: _CP_8B,
    3: _FSDP_8B | {"dp": 128},
    4: {
        "model": "LLAMA3_70B",
        "dp": 32,
        "tp": 8,
        "batch": 16,
        "recompute": "full",
        "precision": "fp8",
        "sequence": 8192,
    },
    5: _405B | {"dp": 8, "batch": 32},
    6: _405B | {"batch": 8},
}


@dataclass(frozen=True, slots=True)
class TitanRun:
    """One run; `model` as in training_tables.CONFIGS, `memory_gib` the largest reserved of any rank."""

    id: str
    model: str
    system: str
    layout: Layout
    recipe: Recipe
    tokens_per_s: float
    memory_gib: float


def torchtitan(cases: Path) -> list[TitanRun]:
    """Runs of the report of December 2024 and of the H200 report of June 2025."""
    folder = cases / "training_throughput"
    first = (folder / "torchtitan_llama3_h100_202412_torchtitan.md").read_text()
    second = (folder / "torchtitan_llama3-8b_h200_202506_trainy-whitefiber.md").read_text()
    return [*_december(first), *_h200(second)]


def _december(text: str) -> Iterator[TitanRun]:
    table = 0
    for line in text.splitlines():
        if found := re.match(r"\*\*Table (\d)\*\*", line):
            table = int(found[1])
        cells = [c.strip() for c in line.strip("| ").split("|")]
        if not table or not line.startswith("|") or not re.fullmatch(r"[\d,]+", cells[-2]):
            continue
        yield _run(f"titan-2024-12:{table}:{cells[0]} {cells[1]}", _CAPTIONS[table], cells, "H100-500W", "unfused")


def _h200(text: str) -> Iterator[TitanRun]:
    for nodes, rate, memory in re.findall(r"^\| (\d+) \| (\d+) \| ([\d.]+) \|", text, re.MULTILINE):
        caption = _FSDP_8B | {"dp": 8 * int(nodes), "precision": "fp8"}
        yield _run(f"titan-h200:{nodes} nodes", caption, [f"{nodes} nodes", rate, memory], "DGX-H200", "fused")


def _run(name: str, caption: dict[str, Any], cells: list[str], system: str, logits: str) -> TitanRun:
    said = dict(caption)
    if found := re.fullmatch(r"FSDP (\d+), CP (\d+)", cells[0]):
        said |= {"dp": int(found[1]), "cp": int(found[2]), "sequence": int(cells[1])}
    if "Float8" in cells[0]:
        said["precision"] = "fp8"
    layout = Layout(
        tp=said.get("tp", 1), pp=said.get("pp", 1), dp=said["dp"], cp=said.get("cp", 1),
        vp=2 if cells[0].startswith("Interleaved") else 1,
    )  # fmt: skip
    recipe = Recipe(
        framework="torchtitan",
        sharding="fsdp",
        precision=said.get("precision", "bf16"),
        sequence=said["sequence"],
        micro_batch=said["batch"] // layout.pp if layout.pp > 1 else said["batch"],
        global_batch=said["batch"] * said["dp"],
        recompute=said["recompute"],
        logits=logits,  # type: ignore[arg-type]  # unfused or fused
    )
    rate = float(cells[-2].replace(",", ""))
    return TitanRun(name, said["model"], system, layout, recipe, rate, float(cells[-1]))
