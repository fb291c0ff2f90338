"""Speeds of jobs on pools: declared factors, ratios of the catalogue, and what is said where nothing is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.simulated import CLUSTER
from builders.traces import trace_of
from clusterwright.app.loading import load_catalogue, load_document
from clusterwright.app.simulated_jobs import Habits, jobs_of_trace
from clusterwright.app.simulated_sites import Site, site_of
from clusterwright.app.simulated_speeds import Paces, parse_speeds
from clusterwright.app.simulated_workloads import jobs_of_workloads
from clusterwright.lib.errors import InvalidInput

TWO = ("pools.other.nodes=x-[1-4]", "pools.other.shape=hgx-h200-sxm-8")
EXAMPLE = str(Path(__file__).parents[3] / "examples" / "training-1024" / "cluster.yaml")


def site(*overrides: str, path: str = CLUSTER) -> Site:
    return site_of(load_document([path], overrides), load_catalogue())


def paces(where: Site, *entries: str, measured_on: str = "") -> Paces:
    return Paces(where, load_catalogue(), parse_speeds(entries), measured_on)


def test_a_declared_factor_is_of_a_pool_or_a_gpu_and_everything_else_is_one():
    two = site(*TWO)
    for name in ("other", "h200", "H200-SXM"):
        found = paces(two, f"{name}=1.3")
        assert found.of("") == (("other", 1.3),)
        assert found.of("h100") == (("other", 1.3),)
        assert found.pool_of("nvidia_h100_80gb_hbm3").name == "gpu"
        assert found.of("nvidia_h200") == (("gpu", pytest.approx(1 / 1.3)),)
        assert {f.origin.word for f in found.figures} == {"declared"}


def test_a_factor_of_the_gpu_on_which_a_trace_was_measured_needs_no_pool():
    found = paces(site(), "a100=0.4")
    assert found.of("a100") == (("gpu", 2.5),)
    assert found.of("") == ()
    found.check(["a100"])


def test_the_catalogue_gives_ratios_of_peaks_that_are_assumed_and_say_what_they_are():
    two = site(*TWO)
    training, serving = paces(two, "catalogue"), paces(two, "catalogue")
    # dense 16 bit: 989 TFLOP/s on both (NVIDIA data sheets); HBM 4.8 against 3.35 TB/s
    assert training.of("h100") == ()
    assert serving.of("h100", serving=True) == (("other", pytest.approx(4.8 / 3.35)),)
    (figure,) = [f for f in serving.figures if f.value != 1]
    assert figure.origin.word == "assumed"
    assert "memory bandwidths" in figure.basis
    assert "upper bound" in figure.basis
    older = paces(site(), "catalogue")
    # 989 against 312 TFLOP/s
    assert older.of("a100") == (("gpu", pytest.approx(989 / 312, rel=2e-3)),)
    assert paces(site(), "catalogue=a100").of("") == older.of("a100")
    assert paces(site(), "catalogue", measured_on="a100-sxm-80").of("") == older.of("a100")


def test_where_gpus_differ_and_no_ratio_is_known_equal_speed_is_said_to_be_assumed():
    for found, word in (
        (paces(site(*TWO)), ""),
        (paces(site(*TWO)), "h100"),
        (paces(site(), measured_on="a100-sxm-80"), ""),
        (paces(site(), "catalogue"), "moon"),
    ):
        assert found.of(word) == ()
        (figure,) = found.figures
        assert (figure.name, figure.value, figure.origin.word) == ("speeds.equal", 1.0, "assumed")
        assert "--speed POOL=FACTOR" in figure.basis


def test_of_a_pool_that_a_job_never_gets_nothing_is_said_unless_somebody_asked():
    found = paces(site(*TWO))
    assert (found.of("h100", ("gpu",)), found.figures) == ((), ())
    found.of("h100", ("gpu", "other"))
    assert [f.name for f in found.figures] == ["speeds.equal"]
    asked = paces(site("pools.other.nodes=x-1", "pools.other.hardware.gpus=8"), "catalogue")
    asked.of("h100", ("gpu",))
    assert [f.name for f in asked.figures] == ["speeds.equal"]


def test_nothing_is_said_where_there_is_one_gpu():
    for found in (paces(site()), paces(site(), measured_on="h100-sxm-80"), paces(site(), "catalogue")):
        assert (found.of(""), found.of("h100"), found.figures) == ((), (), ())


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (("h200",), "how many times as fast"),
        (("h200=fast",), "how many times as fast"),
        (("h200=0",), "from 0.001"),
        (("=2",), "how many times as fast"),
        (("h200=nan",), "how many times as fast"),
        (("h200=1.3", "catalogue"), "not both"),
    ],
)
def test_what_is_no_speed_is_refused(entries, said):
    with pytest.raises(InvalidInput, match=said):
        parse_speeds(entries)


def test_a_factor_of_nothing_that_there_is_is_refused():
    with pytest.raises(InvalidInput, match=r"no pool, no GPU .* pools: gpu \(h100-sxm-80\)"):
        paces(site(), "hxyz=2").check(["a100"])
    with pytest.raises(InvalidInput, match="b2oo"):
        paces(site(), "catalogue=b2oo").check([])


def test_jobs_of_a_trace_have_the_speeds_of_their_type_and_limits_that_allow_them():
    two = site(*TWO)
    rows = [
        {"submit_s": float(n), "run_s": 100.0, "gpus": 8, "account": "research", "flavor": flavor, "limit_s": 120.0}
        for n, flavor in enumerate(("h100", "h200", ""))
    ]
    stream = jobs_of_trace(trace_of(*rows), two, Habits(), paces(two, "h200=0.5"))
    speeds = [stream.jobs.kinds[k].speeds for k in stream.jobs.kind]
    assert speeds == [(("other", 0.5),), (("gpu", 2.0),), (("other", 0.5),)]
    assert stream.jobs.limit_ms.tolist() == [120_000, 120_000, 240_000], "only the third may get the slower one"
    assert any("time limits are stretched" in remark for remark in stream.remarks)


def test_a_declared_training_is_measured_on_its_own_pool():
    found = site(path=EXAMPLE)
    (kind,) = jobs_of_workloads(found, 86400.0, paces(found, "catalogue")).jobs.kinds
    assert kind.speeds == ()
