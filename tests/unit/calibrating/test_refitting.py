"""Constants are found again from rows that they made, and few rows are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builders.decoders import llama_70b, qwen3_moe
from builders.serving import H100
from clusterwright.calibrating.documents import catalogue_text, text_of, values_of
from clusterwright.calibrating.fitting import Fit, Rule, fit
from clusterwright.calibrating.measurements import Measured, Measurement, Worker
from clusterwright.calibrating.refitting import LEAST, refit_all
from clusterwright.calibrating.settings import possible, predict, settings_of
from clusterwright.catalogue.calibrations import closest, outside
from clusterwright.catalogue.parsing import parse_catalogue
from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.layouts import Layout
from clusterwright.physics.serving.constants import NAMES, Constants
from clusterwright.physics.serving.traffic import traffic

MODELS = {"dense": llama_70b(), "experts": qwen3_moe()}
TRUE = replace(Constants(), weight_share=0.62, layer_us=34.0, first_ms=90.0, math_share=0.38)


def row(name: str, model: str, prompt: float, output: float, concurrency: float, engine: str = "vllm") -> Measurement:
    layout = Worker(Layout(tp=8))
    return Measurement(
        name, engine, "1.0", model, "h100", "fp8", "bf16", prompt, output, concurrency, layout, None, 1.0, 1.0
    )


def device(name: str):
    return H100 if name == "h100" else None


def made(constants: Constants, rows: list[Measurement]) -> Measured:
    """Rows with the times that `constants` give."""
    settings, left = settings_of(Measured(tuple(rows)), MODELS.get, device)
    assert not left
    ttft, tpot = predict(settings, {n: np.full(len(rows), getattr(constants, n)) for n in NAMES})
    times = {r.id: (float(a), float(b)) for r, a, b in zip(settings.rows, ttft, tpot, strict=True)}
    return Measured(tuple(replace(r, ttft_s=times[r.id][0], tpot_s=times[r.id][1]) for r in rows))


def sweep(engine: str = "vllm") -> list[Measurement]:
    points = [(m, p, o, c) for m in MODELS for p in (512.0, 4096.0) for o in (128.0, 1024.0) for c in (1.0, 8.0, 64.0)]
    return [row(f"{engine}{i}", *point, engine=engine) for i, point in enumerate(points)]


def outcome(measured: Measured, prior: Constants | None = None):
    settings, left = settings_of(measured, MODELS.get, device)
    return refit_all(settings, left, lambda key: prior or Constants())


def test_rows_that_constants_made_are_predicted_after_the_fit():
    (refit,) = outcome(made(TRUE, sweep())).refits
    assert refit.before.tpot is not None
    assert refit.after.tpot is not None
    assert refit.held.ttft is not None
    assert refit.before.tpot.mean > 0.10
    assert refit.after.tpot.mean < 0.02
    assert refit.held.ttft.mean < 0.05
    assert refit.held.ttft.rows == refit.rows
    assert refit.better
    assert {"first_ms", "math_share"} <= {m.name for m in refit.moved}
    assert refit.spans["concurrency"] == (1.0, 64.0)


def test_nothing_moves_where_the_constants_are_right():
    (refit,) = outcome(made(Constants(), sweep())).refits
    assert not refit.moved


def test_one_wild_row_does_not_pull_the_others():
    measured = made(Constants(), sweep())
    wild = replace(measured.rows[0], tpot_s=(measured.rows[0].tpot_s or 0) * 30)
    (refit,) = outcome(Measured((wild, *measured.rows[1:]))).refits
    assert refit.after.tpot is not None
    assert refit.after.tpot.median < 0.05


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([row(f"a{i}", "dense", 512, 128, float(i + 1)) for i in range(LEAST - 1)], "a fit needs"),
        ([row(f"a{i}", "dense", 512 * (i + 1), 128, 8.0) for i in range(LEAST)], "one concurrency only"),
    ],
)
def test_too_few_rows_are_refused(rows, reason):
    found = outcome(Measured(tuple(rows)))
    assert not found.refits
    assert reason in found.refused[0].reason
    assert reason in text_of(found)


def test_unknown_models_and_gpus_are_left_out_by_name():
    rows = (row("a", "nobody", 512, 128, 8.0), replace(row("b", "dense", 512, 128, 8.0), gpu="abacus"))
    found = outcome(Measured(rows))
    assert [each.reason for each in found.left] == [
        "model nobody is not known layer by layer",
        "GPU abacus is not in the catalogue",
    ]


def test_an_engine_without_rows_keeps_the_common_constants_and_others_differ():
    both = made(TRUE, sweep("vllm")).rows + made(Constants(), sweep("sglang")).rows
    settings, _ = settings_of(Measured(both), MODELS.get, device)
    found = fit(settings, np.ones(len(both)), Constants(), Rule(scatter=0.1))
    first = {e: found.constants(e).first_ms for e in ("vllm", "sglang", "tensorrt-llm")}
    assert first["sglang"] < first["tensorrt-llm"] < first["vllm"]


def test_bounds_hold_whatever_is_asked():
    far = Fit(Constants(), {"all": {"": dict.fromkeys(NAMES, 50.0)}})
    assert far.constants("vllm").weight_share == 0.95


def test_a_tensor_size_that_heads_do_not_divide_over_means_attention_data_parallel():
    model = traffic(llama_70b())
    assert possible(Layout(tp=8), model) == Layout(tp=8)
    assert possible(Layout(tp=72), model) == Layout(tp=72, attention_dp=72, ep=72)


def test_what_is_written_is_what_the_catalogue_reads_and_prefers():
    found = outcome(made(TRUE, sweep()))
    found = replace(found, refits=tuple(replace(r, key=("vllm", "1.0", "h100-sxm-80")) for r in found.refits))
    text = catalogue_text(found, 'tests: "quoted"', "2026-11-30")
    catalogue = parse_catalogue({"own.yaml": text}, load_catalogue())
    entry = closest(catalogue.calibrations(), "vllm", "1.0", "h100-sxm-80")
    assert entry is not None
    assert entry.constants["first_ms"] == pytest.approx(found.refits[0].constants.first_ms, rel=1e-3)
    assert outside(entry, prompt=512, concurrency=65, gpus=8) == ("concurrency 65 outside 1 to 64",)


def test_values_hold_every_constant_and_every_error():
    values = values_of(outcome(made(TRUE, sweep())))["refits"][0]
    assert set(values["constants"]) == set(NAMES)
    assert values["held_out"]["after"]["tpot"]["rows"] == 24


def test_the_shipped_calibrations_give_every_constant_within_its_bounds():
    for entry in load_catalogue().calibrations():
        Constants(**entry.constants)
        assert set(entry.constants) == set(NAMES)
        assert entry.fit.rows >= 20


def test_the_closest_calibration_is_by_gpu_then_by_engine():
    known = load_catalogue().calibrations()
    assert closest(known, "vllm", "0.18.0", "h100-sxm-80").gpu == "h100-sxm-80"
    assert closest(known, "vllm", "", "mi300x").gpu is None
    assert closest(known, "elsewhere") is None
