"""TTFT and TPOT of serving against published runs: constants fitted on some groups of rows, others scored.

A group is model × system × engine × mode. Groups are dealt into FOLDS folds; each fold is predicted with constants that
were fitted to the other folds (at most PER_GROUP rows of a group, so that large sweeps do not outvote the rest). Beside
it stand two harder splits: every model family, and every system, predicted without any of its rows. Rows that do not
tell what ran (no worker counts, speculation possible) are predicted and listed, not scored. `write_calibration` makes
the shipped constants from all rows.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from clusterwright.app.calibrating import device_finder, gpu_name
from clusterwright.calibrating.fitting import Fit, Rule, constants_of_rows, fit
from clusterwright.calibrating.measurements import Measured, Measurement, Worker
from clusterwright.calibrating.settings import Settings, predict, settings_of
from clusterwright.calibrating.tables import read_table
from clusterwright.files.catalogue import load_catalogue
from clusterwright.model.decoders import Decoder
from clusterwright.model.huggingface import parse_config
from clusterwright.physics.serving.constants import NAMES, Constants
from validation.scoring import Row, Scored, mean_error, median_error
from validation.serving_reasons import reason_of

FOLDS: Final = 5
PER_GROUP: Final = 20
RULE: Final = Rule(rounds=5)
#: Bars of the set: mean and median error of TPOT, mean error of TTFT, rows that were not fitted.
TPOT_MEAN, TPOT_MEDIAN, TTFT_MEAN = 0.276, 0.219, 0.585
#: Factor both ways that still counts as inside the band: 1 and twice the bar of the mean. The plan names none.
INSIDE: Final = {"TPOT": 1 + 2 * TPOT_MEAN, "TTFT": 1 + 2 * TTFT_MEAN}
#: Part of a model's name → family, config file.
MODELS: Final = (
    ("deepseek-r1", "DeepSeek-V3", "deepseek-ai--DeepSeek-R1"),
    ("deepseek-v3.2", "DeepSeek-V3.2", "deepseek-ai--DeepSeek-V3.2"),
    ("deepseek-v3", "DeepSeek-V3", "deepseek-ai--DeepSeek-V3"),
    ("deepseek-v4-flash", "DeepSeek-V4", "deepseek-ai--DeepSeek-V4-Flash"),
    ("deepseek-v4", "DeepSeek-V4", "deepseek-ai--DeepSeek-V4-Pro"),
    ("kimi-k2", "Kimi-K2", "moonshotai--Kimi-K2.5"),
    ("glm-5", "GLM-5", "zai-org--GLM-5"),
    ("minimax-m2", "MiniMax-M2", "MiniMaxAI--MiniMax-M2.5"),
    ("qwen3.5-397b", "Qwen3.5", "Qwen--Qwen3.5-397B-A17B"),
    ("qwen3-235b", "Qwen3 MoE", "Qwen--Qwen3-235B-A22B"),
    ("qwen3-30b", "Qwen3 MoE", "Qwen--Qwen3-30B-A3B"),
    ("qwen3-32b", "Qwen3 dense", "Qwen--Qwen3-32B"),
    ("qwen3-8b", "Qwen3 dense", "Qwen--Qwen3-8B"),
    ("gpt-oss-120b", "gpt-oss", "openai--gpt-oss-120b"),
    ("gpt-oss-20b", "gpt-oss", "openai--gpt-oss-20b"),
    ("3.1-405b", "Llama 405B", "meta-llama--Meta-Llama-3.1-405B"),
    ("3.1-70b", "Llama 70B", "meta-llama--Meta-Llama-3.1-70B"),
    ("3.3-70b", "Llama 70B", "meta-llama--Meta-Llama-3.1-70B"),
    ("3.1-8b", "Llama 8B", "meta-llama--Meta-Llama-3.1-8B"),
)
#: Tokens per step with one draft layer: a second token kept 85 to 90 times in 100 gives 1.8 times the tokens
#: (DeepSeek-V3 technical report, section 5.4.3).
DRAFT_ACCEPTED: Final = 1.8

Times = tuple[np.ndarray, np.ndarray]


def family(model: str) -> str:
    """Family of a model's name."""
    return next((name for part, name, _ in MODELS if part in model.lower()), model)


@cache
def score(cases: Path) -> tuple[Scored, ...]:
    """Scores by engine and system, with models left out, with systems left out, and of rows that tell too little."""
    told, untold = _settings(cases)
    groups = Counter(row.group for row in told.rows)
    order = {group: place % FOLDS for place, group in enumerate(sorted(groups, key=lambda g: (-groups[g], g)))}
    folds = _held_out(told, [order[row.group] for row in told.rows])
    models = _held_out(told, [family(row.model) for row in told.rows])
    systems = _held_out(told, [row.gpu for row in told.rows])
    whole = fit(told, _weights(told, np.ones(len(told.rows))), Constants(), RULE)
    words = f"groups of model × system × engine × mode in {FOLDS} folds, each predicted from the others"
    listed = predict(untold, constants_of_rows(whole, untold))
    assumed = "in sample: two decode workers and a draft layer are assumed in view of these rows"
    return (
        *_scored("serving {}", words, told, folds, notes=_whole_notes(told, folds, untold, listed)),
        *_scored("serving {}, new model", "every model family predicted without its rows", told, models),
        *_scored("serving {}, new system", "every system predicted without its rows", told, systems),
        *_scored("serving {}, rows that tell too little", assumed, untold, listed, judged=False),
    )


@cache
def _settings(cases: Path) -> tuple[Settings, Settings]:
    """(rows that tell what ran, rows that do not), each measurement once."""
    catalogue = load_catalogue()
    measured = read_table((cases / "serving.csv").read_text(encoding="utf-8"), "serving.csv")
    rows: dict[tuple[object, ...], Measurement] = {}
    for row in measured.rows:
        row = replace(row, gpu=gpu_name(catalogue, row.gpu))
        rows.setdefault((row.ttft_s, row.tpot_s, row.group[3], *_told(row)), row)
    split: tuple[list[Measurement], list[Measurement]] = ([], [])
    for row in rows.values():
        split[not row.counts_told].append(row)
    find = _finder(cases / "model_configs")
    parts = split[0], [_assumed(row, find) for row in split[1]]
    first, second = (settings_of(Measured(tuple(part)), find, device_finder(catalogue))[0] for part in parts)
    return first, second


def _assumed(row: Measurement, find: Callable[[str], Decoder | None]) -> Measurement:
    """A row that does not tell enough: two decode workers, and a model's own draft layer in use."""
    decoder = find(row.model)
    drafts = decoder is not None and bool(decoder.drafts)
    return replace(
        row,
        decode=Worker(row.decode.layout, 2),
        width=2.0 if drafts else 1.0,
        accepted=DRAFT_ACCEPTED if drafts else 1.0,
    )


def _told(row: Measurement) -> tuple[object, ...]:
    """What keeps two rows with the same times apart."""
    return row.engine, row.gpu, row.prompt, row.output, row.decode.layout.gpus, row.decode.count


def _finder(configs: Path) -> Callable[[str], Decoder | None]:
    @cache
    def find(model: str) -> Decoder | None:
        stem = next((file for part, _, file in MODELS if part in model.lower()), None)
        path = configs / f"{stem}_config.json"
        if stem is None or not path.is_file():
            return None
        return parse_config(json.loads(path.read_text(encoding="utf-8")), name=model)

    return find


def _weights(settings: Settings, use: np.ndarray) -> np.ndarray:
    """At most PER_GROUP rows of a group, evenly over its order."""
    places: dict[object, list[int]] = defaultdict(list)
    for place, row in enumerate(settings.rows):
        if use[place]:
            places[row.group].append(place)
    weights = np.zeros(len(settings.rows))
    for found in places.values():
        chosen = np.linspace(0, len(found) - 1, min(PER_GROUP, len(found))).round().astype(int)
        weights[[found[i] for i in chosen]] = 1.0
    return weights


def _held_out(settings: Settings, keys: Sequence[object]) -> Times:
    """(TTFT, TPOT) of every row with constants fitted to the rows of other keys."""
    labels = np.array([str(key) for key in keys])
    ttft, tpot = np.zeros(len(labels)), np.zeros(len(labels))
    for key in sorted(set(labels)):
        out = labels == key
        found = fit(settings, _weights(settings, ~out), Constants(), RULE)
        part = settings.chosen(out.astype(float))
        ttft[out], tpot[out] = predict(part, constants_of_rows(found, part))
    return ttft, tpot


def _scored(
    name: str,
    split: str,
    settings: Settings,
    predicted: Times,
    notes: Mapping[str, tuple[str, ...]] | None = None,
    *,
    judged: bool = True,
) -> Iterator[Scored]:
    """TPOT and TTFT of one split; bars and single systems count in the one that has notes, the main one."""
    main = notes is not None
    ratios = predicted[0] / settings.ttft_s, predicted[1] / settings.tpot_s
    for what, values, measured in (("TPOT", predicted[1], settings.tpot_s), ("TTFT", predicted[0], settings.ttft_s)):
        rows = tuple(
            _row(row, value * 1e3, true * 1e3, INSIDE[what], (float(ttft), float(tpot)), whole=not main)
            for row, value, true, ttft, tpot in zip(settings.rows, values, measured, *ratios, strict=True)
            if np.isfinite(true)
        )
        band = f"÷ or × {INSIDE[what]:.2f}" if judged else "none"
        bars = _bars(what, rows) if main else ()
        said = notes[what] if notes is not None else ()
        yield Scored(name.format(what), band, split, rows, bars, said, "ms", judged, listed=10 if main else 3)


def _row(
    row: Measurement, value: float, true: float, factor: float, ratios: tuple[float, float], *, whole: bool
) -> Row:
    inside = 1 / factor <= value / true <= factor
    return Row(
        id=row.id,
        group="all" if whole else row.engine,
        predicted=float(value),
        measured=float(true),
        inside=bool(inside),
        family="" if whole else family(row.model),
        reason="" if inside else reason_of(row, *ratios),
        system="" if whole else row.gpu,
    )


def _bars(what: str, rows: tuple[Row, ...]) -> tuple[tuple[str, float, float], ...]:
    if what == "TTFT":
        return (("mean error", mean_error(rows), TTFT_MEAN),)
    return (("mean error", mean_error(rows), TPOT_MEAN), ("median error", median_error(rows), TPOT_MEDIAN))


def _whole_notes(told: Settings, folds: Times, untold: Settings, listed: Times) -> dict[str, tuple[str, ...]]:
    """What the mean and median errors are with the rows that tell too little counted in."""
    notes = {}
    for what, place, measured in (
        ("TPOT", 1, (told.tpot_s, untold.tpot_s)),
        ("TTFT", 0, (told.ttft_s, untold.ttft_s)),
    ):
        ours = np.concatenate([folds[place], listed[place]])
        errors = np.abs(ours / np.concatenate(measured) - 1)
        notes[what] = (
            "measurements that the table repeats under another name count once",
            f"with the {len(untold.rows):,} rows that tell too little: mean {np.nanmean(errors) * 100:.1f} %, "
            f"median {np.nanmedian(errors) * 100:.1f} %",
        )
    return notes


@dataclass(frozen=True)
class _Entry:
    name: str
    engine: str
    gpu: str | None
    rows: tuple[int, ...]


def write_calibration(cases: Path, target: Path, date: str) -> None:
    """Write the shipped constants: fitted to all rows that tell what ran, errors from the folds."""
    told, _ = _settings(cases)
    groups = Counter(row.group for row in told.rows)
    order = {group: place % FOLDS for place, group in enumerate(sorted(groups, key=lambda g: (-groups[g], g)))}
    unseen = _held_out(told, [order[row.group] for row in told.rows])
    found = fit(told, _weights(told, np.ones(len(told.rows))), Constants(), RULE)
    lines = [
        "# Constants of serving engines (physics.serving.constants), fitted to published runs by",
        "# tools/validation/serving.py. Errors are of rows predicted with constants fitted without their group, see"
        " held_out.",
        "calibrations:",
    ]
    for entry in _entries(told):
        lines += _entry_lines(entry, told, found, unseen, date)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _entries(settings: Settings) -> list[_Entry]:
    """Every engine, and every engine on a system with at least 20 rows."""
    places: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for place, row in enumerate(settings.rows):
        places[row.engine, None].append(place)
        places[row.engine, row.gpu].append(place)
    return [
        _Entry(f"{engine}-{gpu or 'any'}", engine, gpu, tuple(rows))
        for (engine, gpu), rows in sorted(places.items(), key=lambda item: (item[0][0], item[0][1] or ""))
        if gpu is None or len(rows) >= 20
    ]


def _entry_lines(entry: _Entry, settings: Settings, found: Fit, unseen: Times, date: str) -> list[str]:
    rows = [settings.rows[i] for i in entry.rows]
    picked = list(entry.rows)
    version = Counter(row.version for row in rows if row.version).most_common(1)[0][0]
    constants = found.constants(entry.engine, version if entry.gpu else "", entry.gpu or "")
    ttft = np.abs(unseen[0][picked] / settings.ttft_s[picked] - 1)
    tpot = np.abs(unseen[1][picked] / settings.tpot_s[picked] - 1)
    errors = {
        "ttft_error": round(float(ttft.mean()), 3),
        "tpot_error": round(float(tpot.mean()), 3),
        "ttft_median": round(float(np.median(ttft)), 3),
        "tpot_median": round(float(np.median(tpot)), 3),
    }
    models = sorted({family(row.model) for row in rows})
    fitted = {"rows": len(rows), "models": models, **errors, "held_out": "model × system × engine × mode, five folds"}
    values = {
        "prompt": [row.prompt for row in rows],
        "output": [row.output for row in rows],
        "concurrency": [row.concurrency for row in rows],
        "gpus": [row.decode.layout.gpus for row in rows],
    }
    spans = {name: {"low": min(value), "high": max(value)} for name, value in values.items()}
    return [
        f"  {entry.name}:",
        '    source: "measured TTFT and TPOT (InferenceX and others) shipped in aiconfigurator-core (Apache-2.0)"',
        f"    date: {date}",
        f"    engine: {entry.engine}",
        f"    versions: {json.dumps(sorted({row.version for row in rows if row.version}))}",
        *([f"    gpu: {entry.gpu}"] if entry.gpu else []),
        f"    constants: {json.dumps({n: float(f'{getattr(constants, n):.4g}') for n in NAMES})}",
        f"    fit: {json.dumps(fitted, ensure_ascii=False)}",
        f"    spans: {json.dumps(spans)}",
    ]


if __name__ == "__main__":
    write_calibration(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
