"""TTFT and TPOT of serving against published runs: constants fitted on some groups of rows, others scored.

A group is model × system × engine × mode. Groups are dealt into FOLDS folds; each fold is predicted with constants that
were fitted to the other folds (at most PER_GROUP rows of a group, so that large sweeps do not outvote the rest). Beside
it stand two harder splits: every model family, and every system, predicted without any of its rows.

The band of a row is set without its fold (family, system): each other fold is predicted from the rest of the others,
and the errors made there say how far the estimate may be off (`calibrating.bands`). Whether the row lies within is then
a question that nothing of its fold has answered.

Rows that do not tell what ran (no worker counts, speculation possible, a tensor size that the heads do not divide over)
are predicted and listed, not scored. `write_calibration` makes the shipped constants from all others:
`PYTHONPATH=tools python tools/validation/serving.py ../shared/cases src/clusterwright/catalogue/data/calibration.yaml
DATE`, then `write_compiled` of `clusterwright.files.catalogue`.
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
from clusterwright.calibrating.bands import Bands, Found, Mode, mode_of
from clusterwright.calibrating.fitting import Fit, Rule, constants_of_rows, fit
from clusterwright.calibrating.measurements import Measured, Measurement, Worker
from clusterwright.calibrating.settings import Settings, predict, settings_of
from clusterwright.calibrating.tables import read_table
from clusterwright.files.catalogue import load_catalogue
from clusterwright.model.decoders import Decoder
from clusterwright.model.huggingface import parse_config
from clusterwright.physics.serving.constants import NAMES, Constants
from clusterwright.physics.serving.traffic import traffic
from validation.scoring import Row, Scored, mean_error, median_error
from validation.serving_reasons import reason_of

FOLDS: Final = 5
PER_GROUP: Final = 20
RULE: Final = Rule(rounds=5)
#: Rows of a calibration of one engine on one system.
LEAST: Final = 20
#: Bars of the set: mean and median error of TPOT, mean error of TTFT, rows that were not fitted.
TPOT_MEAN, TPOT_MEDIAN, TTFT_MEAN = 0.276, 0.219, 0.585
#: Factors both ways, 1 and twice the bar of the mean, for the note that says how many rows lie within a fixed one.
FIXED: Final = {"TPOT": 1 + 2 * TPOT_MEAN, "TTFT": 1 + 2 * TTFT_MEAN}
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
#: Errors of a split in words, by its key.
WORDS: Final = {
    "group": f"groups of model × system × engine × mode in {FOLDS} folds, each predicted from the others",
    "model": "every model family predicted without its rows",
    "system": "every system predicted without its rows",
}


def family(model: str) -> str:
    """Family of a model's name."""
    return next((name for part, name, _ in MODELS if part in model.lower()), model)


@dataclass(frozen=True)
class Held:
    """Rows predicted without their fold.

    Args:
        times: (TTFT, TPOT) in s of every row.
        bands: of each row, (TTFT, TPOT), from the errors of the other folds.
    """

    times: Times
    bands: tuple[tuple[Found, Found], ...]


@cache
def score(cases: Path) -> tuple[Scored, ...]:
    """Scores by engine and system, with models left out, with systems left out, and of rows that tell too little."""
    told, untold = _settings(cases)
    splits = {name: _held_out(told, keys) for name, keys in _splits(told).items()}
    whole = fit(told, _weights(told, np.ones(len(told.rows))), Constants(), RULE)
    listed = predict(untold, constants_of_rows(whole, untold))
    assumed = "in sample: two decode workers and a draft layer are assumed in view of these rows"
    return (
        *_scored(
            "serving {}", "group", told, splits["group"], _whole_notes(told, splits["group"].times, untold, listed)
        ),
        *_scored("serving {}, new model", "model", told, splits["model"]),
        *_scored("serving {}, new system", "system", told, splits["system"]),
        *_listed("serving {}, rows that tell too little", assumed, untold, listed),
    )


def _splits(settings: Settings) -> dict[str, list[str]]:
    """Split → label of each row; rows of one label are left out together."""
    groups = Counter(row.group for row in settings.rows)
    order = {group: place % FOLDS for place, group in enumerate(sorted(groups, key=lambda g: (-groups[g], g)))}
    return {
        "group": [str(order[row.group]) for row in settings.rows],
        "model": [family(row.model) for row in settings.rows],
        "system": [row.gpu for row in settings.rows],
    }


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
    find = _finder(cases / "model_configs")
    for row in rows.values():
        split[not (row.counts_told and _divides(row, find))].append(row)
    parts = split[0], [row if row.counts_told else _assumed(row, find) for row in split[1]]
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


def _divides(row: Measurement, find: Callable[[str], Decoder | None]) -> bool:
    """Whether attention heads divide over the tensor ranks as told.

    Where they do not, the row gives the GPUs of several workers as one: SGLang's runs of DeepSeek-R1 on 72 GPUs had
    prefill and decode on workers of their own (LMSYS, NVIDIA and SGLang: InferenceMAX and GB200, 2025-10-14).
    """
    decoder = find(row.model)
    if decoder is None:
        return True
    heads = traffic(decoder).heads
    return all(heads % w.layout.attention_tp == 0 for w in (row.decode, row.prefill) if w is not None)


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


class _Without:
    """Predictions with constants that were fitted without some labels; each fit is made once."""

    def __init__(self, settings: Settings, keys: Sequence[str]) -> None:
        self.settings, self.labels = settings, np.array(keys)
        self._fits: dict[frozenset[str], Fit] = {}

    def fit(self, left: frozenset[str]) -> Fit:
        """The fit to all rows of other labels."""
        if left not in self._fits:
            use = ~np.isin(self.labels, list(left))
            self._fits[left] = fit(self.settings, _weights(self.settings, use), Constants(), RULE)
        return self._fits[left]

    def times(self, but: str = "") -> Times:
        """(TTFT, TPOT) of every row without its label, and without those of `but`, whose own rows are nan."""
        ttft, tpot = np.full((2, len(self.labels)), np.nan)
        for key in sorted(set(self.labels) - {but}):
            out = self.labels == key
            part = self.settings.chosen(out.astype(float))
            found = self.fit(frozenset({key, but} - {""}))
            ttft[out], tpot[out] = predict(part, constants_of_rows(found, part))
        return ttft, tpot


def _held_out(settings: Settings, keys: Sequence[str]) -> Held:
    """Every row predicted, and its band set, without the rows of its key."""
    without = _Without(settings, keys)
    bands: dict[int, tuple[Found, Found]] = {}
    for key in sorted(set(keys)):
        of = _bands(settings, without.times(but=key))
        for place in np.flatnonzero(without.labels == key):
            bands[int(place)] = _of_row(of, settings.rows[place])
    return Held(without.times(), tuple(bands[i] for i in range(len(keys))))


def _bands(settings: Settings, times: Times) -> tuple[Bands, Bands]:
    """Bands of TTFT and TPOT from rows that were held out; those with nan are left out."""
    return Bands(settings.rows, settings.ttft_s / times[0]), Bands(settings.rows, settings.tpot_s / times[1])


def _of_row(bands: tuple[Bands, Bands], row: Measurement) -> tuple[Found, Found]:
    first, second = (each.of(row.engine, row.gpu, mode_of(row)) for each in bands)
    if first is None or second is None:
        raise ValueError("too few rows for any band")
    return first, second


def _scored(
    name: str, split: str, settings: Settings, held: Held, notes: Mapping[str, tuple[str, ...]] | None = None
) -> Iterator[Scored]:
    """TPOT and TTFT of one split; bars and single systems count in the one that has notes, the main one."""
    main = notes is not None
    ratios = held.times[0] / settings.ttft_s, held.times[1] / settings.tpot_s
    for what, place, measured in (("TPOT", 1, settings.tpot_s), ("TTFT", 0, settings.ttft_s)):
        rows = tuple(
            _row(row, held.times[place][i] * 1e3, measured[i] * 1e3, held.bands[i][place], ratios, i, whole=not main)
            for i, row in enumerate(settings.rows)
            if np.isfinite(measured[i])
        )
        band = "factors on the estimate, by engine, system and mode, from errors of rows of other folds"
        bars = _bars(what, rows) if main else ()
        said = (*(notes[what] if notes is not None else ()), _fixed_note(what, rows))
        yield Scored(name.format(what), band, WORDS[split], rows, bars, said, "ms", listed=10 if main else 3)


def _listed(name: str, split: str, settings: Settings, times: Times) -> Iterator[Scored]:
    """TPOT and TTFT of rows that are not judged."""
    ratios = times[0] / settings.ttft_s, times[1] / settings.tpot_s
    for what, place, measured in (("TPOT", 1, settings.tpot_s), ("TTFT", 0, settings.ttft_s)):
        rows = tuple(
            _row(row, times[place][i] * 1e3, measured[i] * 1e3, None, ratios, i, whole=True)
            for i, row in enumerate(settings.rows)
            if np.isfinite(measured[i])
        )
        yield Scored(name.format(what), "none", split, rows, unit="ms", judged=False, listed=3)


def _row(
    row: Measurement, value: float, true: float, band: Found | None, ratios: Times, place: int, *, whole: bool
) -> Row:
    inside = band is not None and band.low <= true / value <= band.high
    return Row(
        id=row.id,
        group="all" if whole else row.engine,
        predicted=float(value),
        measured=float(true),
        inside=bool(inside),
        family="" if whole else family(row.model),
        reason="" if inside else reason_of(row, float(ratios[0][place]), float(ratios[1][place])),
        system="" if whole else row.gpu,
        factors=None if band is None else (band.low, band.high),
    )


def _fixed_note(what: str, rows: tuple[Row, ...]) -> str:
    factor = FIXED[what]
    inside = [1 / factor <= r.measured / r.predicted <= factor for r in rows if r.predicted]
    return f"within one fixed band, ÷ or × {factor:.2f}: {np.mean(inside) * 100:.1f} % of the rows"


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
    """Write the shipped constants: fitted to all rows that tell what ran, errors and bands from the splits."""
    told, _ = _settings(cases)
    times = {name: _Without(told, keys).times() for name, keys in _splits(told).items()}
    found = fit(told, _weights(told, np.ones(len(told.rows))), Constants(), RULE)
    lines = [
        "# Constants of serving engines (physics.serving.constants), fitted to published runs by",
        "# tools/validation/serving.py. GPUs differ by their peaks; errors, bands and spans are of a GPU's own rows.",
        "# Errors and bands are of rows predicted with constants that were fitted without their group (see held_out),",
        "# without their model's family (a band's model: new), without their GPU (entries of no GPU).",
        "calibrations:",
    ]
    for entry in _entries(told):
        lines += _entry_lines(entry, told, found, times, date)
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
        if gpu is None or len(rows) >= LEAST
    ]


def _entry_lines(entry: _Entry, settings: Settings, found: Fit, times: Mapping[str, Times], date: str) -> list[str]:
    rows = [settings.rows[i] for i in entry.rows]
    picked, unseen = list(entry.rows), times["group"]
    constants = found.constants(entry.engine)
    ttft = np.abs(unseen[0][picked] / settings.ttft_s[picked] - 1)
    tpot = np.abs(unseen[1][picked] / settings.tpot_s[picked] - 1)
    errors = {
        "ttft_error": round(float(ttft.mean()), 3),
        "tpot_error": round(float(tpot.mean()), 3),
        "ttft_median": round(float(np.median(ttft)), 3),
        "tpot_median": round(float(np.median(tpot)), 3),
    }
    models = sorted({family(row.model) for row in rows})
    fitted = {
        "rows": len(rows),
        "models": models,
        **errors,
        "held_out": "model × system × engine × mode, five folds",
        "bands": _entry_bands(entry, settings, times),
    }
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


def _entry_bands(entry: _Entry, settings: Settings, times: Mapping[str, Times]) -> list[dict[str, object]]:
    """Bands of an engine on a system; those of an engine on other GPUs are of systems that were left out."""
    splits = (("fitted", "group" if entry.gpu else "system"), ("new", "model"))
    known: dict[str, tuple[Bands, Bands]] = {split: _bands(settings, times[split]) for _, split in splits}
    found: list[dict[str, object]] = []
    modes: tuple[Mode, ...] = ("aggregated", "disaggregated")
    for mode in modes:
        for model, split in splits:
            each: dict[str, object] = {"mode": mode, "model": model}
            for name, bands in zip(("ttft", "tpot"), known[split], strict=True):
                band = bands.of(entry.engine, entry.gpu or "", mode)
                if band is not None:
                    low, high = (float(f"{end:.3g}") for end in (band.low, band.high))
                    each[name] = {"low": low, "high": high, "rows": band.rows, "of": band.of}
            found.append(each)
    return found


if __name__ == "__main__":
    write_calibration(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
