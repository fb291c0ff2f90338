"""aiconfigurator's estimate of each row of a serving table, from its own Python interface; runs in its own environment.

    python peer_aiconfigurator.py ROWS.csv OUT.json

ROWS has the columns of the public serving table. OUT lists, per row, id, ttft_ms and tpot_ms or why there is none, and
the CPU seconds of the estimate that answered. A row is asked with its own parallel sizes, precision, batch and release
of the engine; where the database has no such release, with the default one, then with the model's default formats.
"""

from __future__ import annotations

import csv
import json
import logging
import re
import sys
import time
from importlib.metadata import version
from typing import Any

#: Names under which the peer ships the same models.
NAMES = {
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "zhipuai/GLM-5": "zai-org/GLM-5",
}

logging.disable(logging.CRITICAL)


def number(text: str) -> int | None:
    """An integer, None for an empty cell."""
    return int(float(text)) if text else None


def concurrency(row: dict[str, str]) -> int:
    """Requests in flight over all workers, as the row's source says."""
    said = re.search(r"silicon_concurrency=(\d+)", row["silicon_data_source"])
    return int(said[1]) if said else number(row["batch_size"]) or 1


def aggregated(row: dict[str, str]) -> dict[str, Any]:
    """Arguments of an aggregated estimate."""
    return {
        "mode": "agg",
        "batch_size": max(1, (number(row["batch_size"]) or 1) // (number(row["attention_dp_size"]) or 1)),
        "tp_size": number(row["tp_size"]),
        "pp_size": number(row["pp_size"]),
        "attention_dp_size": number(row["attention_dp_size"]),
        "moe_tp_size": number(row["moe_tp_size"]),
        "moe_ep_size": number(row["moe_ep_size"]),
    }


def disaggregated(row: dict[str, str]) -> dict[str, Any]:
    """Arguments of a disaggregated estimate."""
    asked: dict[str, Any] = {"mode": "disagg"}
    workers = (number(row["decode_num_workers"]) or 1) * (number(row["decode_attention_dp_size"]) or 1)
    fallback = {"prefill": 1, "decode": max(1, concurrency(row) // workers)}
    for role in ("prefill", "decode"):
        for size in ("batch", "tp", "pp", "attention_dp", "moe_tp", "moe_ep"):
            asked[f"{role}_{size}_size"] = number(row[f"{role}_{size}_size"])
        asked[f"{role}_num_workers"] = number(row[f"{role}_num_workers"]) or 1
        asked[f"{role}_batch_size"] = asked[f"{role}_batch_size"] or fallback[role]
    return asked


def estimate(row: dict[str, str]) -> dict[str, Any]:
    """One row's estimate, or the error's text."""
    from aiconfigurator.cli.api import cli_estimate

    asked = {
        "backend_name": row["backend"],
        "isl": number(row["isl"]),
        "osl": number(row["osl"]),
        "gemm_quant_mode": row["gemm_quant_mode"] or None,
        "moe_quant_mode": row["moe_quant_mode"] or None,
        **(aggregated(row) if row["mode"] == "agg" else disaggregated(row)),
    }
    asked = {key: value for key, value in asked.items() if value is not None}
    plain = {key: value for key, value in asked.items() if not key.endswith("quant_mode")}
    own = {"backend_version": row["backend_version"]} if row["backend_version"] else {}
    model = NAMES.get(row["model_path"], row["model_path"])
    wrong = ""
    for kind, extra in (("own release", asked | own), ("default release", asked), ("default formats", plain)):
        begun = time.process_time()
        try:
            found = cli_estimate(model, row["system"], **extra)
        except Exception as error:  # noqa: BLE001  the peer raises of every kind; each is an answer: it has none
            wrong = f"{type(error).__name__}: {error}"
            continue
        used = time.process_time() - begun
        return {
            "id": row["id"],
            "ttft_ms": float(found.ttft),
            "tpot_ms": float(found.tpot),
            "asked": kind,
            "cpu_s": used,
        }
    return {"id": row["id"], "why": wrong.splitlines()[0][:200]}


def main() -> None:
    """Estimate every row."""
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    estimate(rows[0])
    found = [estimate(row) for row in rows]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump({"version": version("aiconfigurator"), "rows": found}, file)


if __name__ == "__main__":
    main()
