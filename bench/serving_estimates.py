"""TTFT and TPOT of public runs as estimated here and by aiconfigurator, on the rows that both answer: errors and time.

    python bench/serving_estimates.py [CASES] [--rows 120]      needs ../shared/cases and the package index

The sample is drawn with a fixed seed, in turn from every model × system × engine × mode of the rows that `make
validate` scores. Estimates here are those of `make validate`: constants fitted without the row's group. The peer lives
in `.peers/aiconfigurator` and is asked through its own Python interface (`peer_aiconfigurator.py`); its wheel ships the
measurements that these rows come from, so it may have seen them. CPU seconds are per estimate, after start-up.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import numpy as np
from peers import install
from validate import default_folder
from validation.scoring import Row

from clusterwright.app.calibrating import decoder_finder, device_finder, gpu_name, known_constants
from clusterwright.calibrating.measurements import Measured
from clusterwright.calibrating.settings import predict, settings_of
from clusterwright.calibrating.tables import read_table
from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.serving.constants import NAMES
from validation import serving

HERE = Path(__file__).resolve().parent
PEER, VERSION = "aiconfigurator", "0.12.0"
SEED = 20_261_130
PEER_RUN_S = 3600.0


@dataclass(frozen=True)
class Answer:
    """Milliseconds estimated for one row."""

    ttft_ms: float
    tpot_ms: float


def sample(rows: Sequence[dict[str, str]], count: int) -> list[dict[str, str]]:
    """`count` rows, one after the other from every stratum in random order."""
    dice = random.Random(SEED)
    strata: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: r["id"]):
        strata[row["model_path"], row["system"], row["backend"], row["mode"]].append(row)
    order = sorted(strata)
    dice.shuffle(order)
    for key in order:
        dice.shuffle(strata[key])
    chosen: list[dict[str, str]] = []
    while len(chosen) < min(count, len(rows)):
        chosen += [strata[key].pop() for key in order if strata[key]]
    return chosen[:count]


def ask_peer(rows: Sequence[dict[str, str]]) -> tuple[dict[str, Answer], list[float], dict[str, str]]:
    """The peer's answers by row, its CPU seconds per answer, and why it has none for others."""
    python = install(PEER, VERSION)
    if isinstance(python, str):
        raise SystemExit(python)
    with tempfile.TemporaryDirectory() as folder:
        asked, found = Path(folder) / "rows.csv", Path(folder) / "found.json"
        with asked.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
        argv = [python, "-W", "ignore", HERE / "peer_aiconfigurator.py", asked, found]
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, timeout=PEER_RUN_S)
        if done.returncode:
            raise SystemExit(f"{PEER} failed: {done.stderr.decode(errors='replace')[-500:]}")
        said = json.loads(found.read_text(encoding="utf-8"))["rows"]
    answers = {r["id"]: Answer(r["ttft_ms"], r["tpot_ms"]) for r in said if "why" not in r}
    return answers, [r["cpu_s"] for r in said if "why" not in r], {r["id"]: r["why"] for r in said if "why" in r}


def ask_here(scored: Mapping[str, tuple[Row, Row]]) -> dict[str, Answer]:
    """Estimates of `make validate`, each with constants fitted without the row's group."""
    return {
        name: Answer(ttft.predicted, tpot.predicted)
        for name, (ttft, tpot) in scored.items()
        if ttft.predicted is not None and tpot.predicted is not None
    }


def scored_rows(cases: Path) -> dict[str, tuple[Row, Row]]:
    """(TTFT, TPOT) of the rows that have both, by id."""
    found = {s.name: {row.id: row for row in s.rows} for s in serving.score(cases)}
    first, rest = found["serving TTFT"], found["serving TPOT"]
    return {name: (first[name], rest[name]) for name in first if name in rest}


def seconds_here(rows: Sequence[dict[str, str]]) -> list[float]:
    """CPU seconds of each estimate, from the text of a row to both times, with the shipped constants."""
    catalogue = load_catalogue()
    find, device, known = decoder_finder(catalogue), device_finder(catalogue), known_constants(catalogue)
    times = []
    for row in rows:
        text = io.StringIO()
        writer = csv.DictWriter(text, row.keys())
        writer.writeheader()
        writer.writerow(row)
        begun = time.process_time()
        measured = read_table(text.getvalue()).rows
        settings, _ = settings_of(
            Measured(tuple(replace(m, gpu=gpu_name(catalogue, m.gpu)) for m in measured)), find, device
        )
        constants = [known((m.engine, m.version, m.gpu)) for m in settings.rows]
        predict(settings, {name: np.array([getattr(c, name) for c in constants]) for name in NAMES})
        if settings.rows:
            times.append(time.process_time() - begun)
    return times


def error(estimated: float, measured: float) -> float:
    """|estimated ÷ measured − 1|."""
    return abs(estimated / measured - 1)


def line(name: str, answers: Mapping[str, Answer], both: Sequence[str], scored: Mapping[str, tuple[Row, Row]]) -> str:
    """One tool's errors on the rows that both answer."""
    tpot = [error(answers[i].tpot_ms, scored[i][1].measured) for i in both]
    ttft = [error(answers[i].ttft_ms, scored[i][0].measured) for i in both]
    parts = [statistics.fmean(tpot), statistics.median(tpot), statistics.fmean(ttft), statistics.median(ttft)]
    return f"{name:<22} {len(answers):>8} " + " ".join(f"{part:>11.1%}" for part in parts)


def main() -> None:
    """Print both tools' errors, how many rows each answers and seconds per estimate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="?", type=Path, default=default_folder())
    parser.add_argument("--rows", type=int, default=120)
    asked = parser.parse_args()
    if not (asked.cases / "serving.csv").is_file():
        raise SystemExit(f"no public runs at {asked.cases}; set CLUSTERWRIGHT_CASES")
    scored = scored_rows(asked.cases)
    with (asked.cases / "serving.csv").open(encoding="utf-8") as file:
        rows = sample([row for row in csv.DictReader(file) if row["id"] in scored], asked.rows)
    names = [row["id"] for row in rows]
    theirs, their_s, refused = ask_peer(rows)
    ours = {name: answer for name, answer in ask_here(scored).items() if name in set(names)}
    both = [name for name in names if name in ours and name in theirs]
    print(f"{len(rows)} rows drawn, {len(both)} that both answer")
    print(f"{'tool':<22} {'answers':>8} {'TPOT mean':>11} {'TPOT median':>11} {'TTFT mean':>11} {'TTFT median':>11}")
    print(line("clusterwright", ours, both, scored))
    print(line(f"{PEER} {VERSION}", theirs, both, scored))
    here_s = seconds_here([row for row in rows if row["id"] in theirs])
    print(f"CPU s per estimate, median: {statistics.median(here_s):.4f} here, {statistics.median(their_s):.4f} there")
    for why in sorted(set(refused.values())):
        print(f"no answer there ({sum(w == why for w in refused.values())}): {why}")


if __name__ == "__main__":
    main()
