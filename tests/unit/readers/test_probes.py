"""Output of the exported scripts: values with units, and everything that makes a report worthless."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterwright.judging.deriving import derive
from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import NoValue, Outcome, Transcript
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers"
CHECKPOINT = (FIXTURES / "clusterwright-checkpoint" / "two-processes.json").read_text(encoding="utf-8")
PLACEMENT = (FIXTURES / "clusterwright-placement" / "four-ranks.jsonl").read_text(encoding="utf-8")
PROCESSORS = (FIXTURES / "clusterwright-cpu-collective" / "gloo.json").read_text(encoding="utf-8")


def read(text, kind=""):
    return read_output([text.encode()], name="stdout.txt", kind=kind)


def values(transcript: Transcript, name: str):
    return [o.value for run in transcript.runs for o in run.observations if o.name == name]


def changed(**changes):
    report = json.loads(CHECKPOINT)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = report
        for parent in parents:
            place = place[parent]
        place[last] = value
    return json.dumps(report)


def proven(text, metric):
    found = [r for r in derive(read(text), nodes=("gpu-004",)).readings if r.metric == metric]
    return [r.value for r in found], [r.unreadable for r in found]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (CHECKPOINT, "clusterwright-checkpoint"),
        (PLACEMENT, "clusterwright-placement"),
        (PROCESSORS, "clusterwright-cpu-collective"),
    ],
)
def test_each_kind_is_recognised_and_read_whole(text, kind):
    found = read(text)
    assert (found.kind, found.outcome) == (kind, Outcome.READ)


def test_checkpoint_times_and_rates_have_units():
    found = read(CHECKPOINT)
    (write,), (restore,) = values(found, "write_time"), values(found, "restore_time")
    assert (write.to("s"), restore.to("s")) == (16.0, 8.0)
    assert values(found, "checkpoint_write_rate")[0].to("GB/s") == pytest.approx(4.0)
    assert found.runs[0].condition("write_started") == "2026-09-21T14:13:20+00:00"


def test_noise_around_the_report_does_not_matter():
    found = read("module loaded\nWARNING: x\n" + CHECKPOINT + "done\n")
    assert values(found, "write_time")[0].to("s") == 16.0


@pytest.mark.parametrize("value", [0, -3, None, "fast", True, float("1e300")])
def test_an_impossible_time_is_no_value(value):
    found = read(changed(write__seconds=value))
    assert all(isinstance(v, NoValue) for v in values(found, "write_time"))


def test_a_restore_from_the_page_cache_proves_nothing():
    seen, why = proven(changed(restore__direct=False), "checkpoint_restore")
    assert not any(isinstance(v, Quantity) for v in seen)
    assert any("page cache" in w for w in why)


@pytest.mark.parametrize(
    "text",
    [changed(restore__verified=False), changed(filesystem="tmpfs"), changed(error="OSError: No space left on device")],
)
def test_damage_memory_and_errors_spoil_both_times(text):
    for metric in ("checkpoint_write", "checkpoint_restore"):
        _, why = proven(text, metric)
        assert any(w for w in why), metric


def test_a_missing_rank_makes_the_report_incomplete():
    report = json.loads(CHECKPOINT)
    del report["write"]["ranks"][1]
    assert read(json.dumps(report)).outcome is Outcome.PARTLY


@pytest.mark.parametrize("cut", [40, 200, 600])
def test_a_cut_report_is_never_read(cut):
    assert read(CHECKPOINT[:cut]).outcome is Outcome.REFUSED


def test_another_version_is_refused_by_name():
    found = read(CHECKPOINT.replace("checkpoint/1", "checkpoint/2"))
    assert found.refusal is not None
    assert "clusterwright-checkpoint/2" in str(found.refusal)


def test_a_key_that_stands_twice_is_no_report():
    assert read(CHECKPOINT.replace('"bytes": 64000000000', '"bytes": 1, "bytes": 2')).outcome is Outcome.REFUSED


def test_all_ranks_as_expected_are_100_percent():
    seen, _ = proven(PLACEMENT, "tasks_as_expected")
    assert [v.value for v in seen if v is not None] == [1.0]


def test_two_ranks_on_one_gpu_are_both_wrong():
    text = PLACEMENT.replace('"device": "GPU-bb"', '"device": "GPU-ba"')
    seen, _ = proven(text, "tasks_as_expected")
    assert [v.value for v in seen if v is not None] == [0.5]


def test_a_rank_that_is_missing_counts_as_wrong():
    seen, _ = proven("".join(PLACEMENT.splitlines(keepends=True)[:3]), "tasks_as_expected")
    assert [v.value for v in seen if v is not None] == [0.75]


def test_a_rank_without_gpu_has_an_absent_device():
    found = read(PLACEMENT.replace('"device": "GPU-aa"', '"device": ""'))
    assert [isinstance(v, NoValue) for v in values(found, "device")] == [True, False, False, False]


def test_cpu_collectives_never_prove_anything_about_gpus():
    found = read(PROCESSORS)
    assert values(found, "cpu_algbw")[0].to("GB/s") == pytest.approx(1048576 / 0.0005 / 1e9)
    assert not derive(found, nodes=("n1",)).readings
