"""The software support matrix: versions compare as their owners compare them, ranges say what they say."""

from __future__ import annotations

import pytest

from clusterwright.files.catalogue import load_catalogue
from clusterwright.model.support import minor_of, vbios_key, version_key

SUPPORT = load_catalogue().support


@pytest.mark.parametrize(
    ("older", "newer"),
    [("595.91.07", "620"), ("1.9", "1.36"), ("2.3.6", "2.10.0"), ("595.91.07", "595.112.07"), ("v1.36.1", "1.36.2")],
)
def test_versions_compare_by_number(older: str, newer: str) -> None:
    assert version_key(older) < version_key(newer)


def test_trailing_zeros_and_suffixes_do_not_count() -> None:
    assert version_key("1.36") == version_key("v1.36.0") == version_key("1.36.0-rc1")
    assert minor_of("2") == (2, 0)


@pytest.mark.parametrize("text", ["", "latest", "x1.2"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        version_key(text)


def test_vbios_parts_are_hexadecimal() -> None:
    assert vbios_key("96.00.67.00.01") < vbios_key("96.00.68.00") < vbios_key("96.00.A5.00.01")
    assert vbios_key("96.00.9F.00") < vbios_key("96.00.A0.00")
    with pytest.raises(ValueError, match="is not a VBIOS version"):
        vbios_key("96.0.68")


def test_fabric_manager_is_bound_to_the_driver_before_620_only() -> None:
    assert SUPPORT.fabric_manager_rule("595.91.07") is not None
    assert SUPPORT.fabric_manager_rule("580.65.06") is not None
    assert SUPPORT.fabric_manager_rule("620") is None
    assert SUPPORT.fabric_manager_rule("620.12.01") is None


@pytest.mark.parametrize(
    ("driver", "architecture", "subrevision", "rules"),
    [
        ("595.91.07", "hopper", 3, 1),
        ("595.91.07", "hopper", None, 1),
        ("595.91.07", "hopper", 2, 0),
        ("595.91.07", "blackwell", 3, 0),
        ("570.26", "hopper", 3, 0),
    ],
)
def test_hopper_subrevision_3_needs_a_vbios(
    driver: str, architecture: str, subrevision: int | None, rules: int
) -> None:
    found = SUPPORT.firmware_rules(driver, architecture, subrevision)
    assert len(found) == rules
    for rule in found:
        assert vbios_key("96.00.67.00.01") < vbios_key(rule.minimum_vbios) <= vbios_key("96.00.68.00.01")


@pytest.mark.parametrize(
    ("kubernetes", "supported"),
    [("1.32", False), ("1.33", True), ("1.36.4", True), ("v1.37.0", True), ("1.38", False)],
)
def test_gpu_operator_26_7_2_supports_kubernetes_1_33_to_1_37(kubernetes: str, supported: bool) -> None:
    operator = SUPPORT.operator("v26.7.2")
    assert operator is not None
    assert operator.supports_kubernetes(kubernetes, "Ubuntu 24.04") is supported


def test_a_range_of_one_system_goes_before_the_general_one() -> None:
    operator = SUPPORT.operator("26.7.0")
    assert operator is not None
    assert operator.supports_kubernetes("1.32", "ubuntu 24.04")
    assert not operator.supports_kubernetes("1.32", "Ubuntu 22.04")
    assert not operator.supports_kubernetes("1.32")


def test_what_nobody_published_is_unknown() -> None:
    operator = SUPPORT.operator("26.7.2")
    assert operator is not None
    assert operator.supports_containerd("2.3.6") is None
    assert SUPPORT.operator("27.1.0") is None
    assert SUPPORT.containerd_for("1.40") is None
    assert SUPPORT.nccl_cuda("9.9") is None
    assert SUPPORT.driver_branch("600.1") is None
    assert SUPPORT.engine_formats("sglang", "mxfp4") == ()


def test_containerd_2_3_is_recommended_for_kubernetes_1_36() -> None:
    rule = SUPPORT.containerd_for("v1.36.2")
    assert rule is not None
    assert rule.recommended == "2.3"
    assert all(minor_of(r.recommended) == max(minor_of(s) for s in r.supported) for r in SUPPORT.containerd)


def test_a_kubelet_may_be_three_minors_behind() -> None:
    rule = SUPPORT.skew_rule("kubelet", "1.36.1")
    assert rule is not None
    assert (rule.older_minors, rule.newer_minors) == (3, 0)
    assert SUPPORT.skew_rule("etcd", "1.36") is None


@pytest.mark.parametrize(
    ("cuda", "compatibility", "driver"),
    [
        ("13.2", "toolkit", "595.45.04"),
        ("12.8", "toolkit", "570.26"),
        ("13.2", "minor-version", "580"),
        ("12.9", "minor-version", "525.60.13"),
    ],
)
def test_cuda_needs_a_driver(cuda: str, compatibility: str, driver: str) -> None:
    entry = SUPPORT.cuda_driver(cuda, compatibility)  # type: ignore[arg-type]
    assert entry is not None
    assert entry.minimum_driver == driver


def test_nccl_works_within_the_majors_it_is_published_for() -> None:
    nccl = SUPPORT.nccl_cuda("2.27.5")
    assert nccl is not None
    assert nccl.supports("12.8")
    assert not nccl.supports("13.0")
    latest = SUPPORT.nccl_cuda("2.30.7")
    assert latest is not None
    assert latest.supports("13.2")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_fp8_computes_from_ada_on_and_nvfp4_from_blackwell_on(engine: str) -> None:
    fp8 = SUPPORT.engine_formats(engine, "fp8")
    assert fp8[0].native
    assert fp8[0].capability == (8, 9)
    nvfp4 = SUPPORT.engine_formats(engine, "nvfp4")
    assert nvfp4[0].native
    assert nvfp4[0].capability == (10, 0)


def test_vllm_unpacks_fp8_weights_on_older_gpus() -> None:
    assert [(f.native, f.minimum_capability) for f in SUPPORT.engine_formats("vllm", "fp8")] == [
        (True, "8.9"),
        (False, "7.5"),
    ]


def test_driver_branches_end() -> None:
    branch = SUPPORT.driver_branch("595.91.07")
    assert branch is not None
    assert branch.kind == "production"
    assert str(branch.end_of_life) == "2027-03-31"


def test_kubernetes_minors_end() -> None:
    release = SUPPORT.kubernetes_release("v1.36.3")
    assert release is not None
    assert str(release.end_of_life) == "2027-06-28"
    assert SUPPORT.kubernetes_release("1.20") is None
