from fractions import Fraction

import pytest

from clusterwright.lib.quantities import Quantity
from clusterwright.model.observations import Lack, NoValue
from clusterwright.readers.kubernetes.amounts import (
    is_accelerator,
    is_nic,
    is_no_limit,
    read_exact,
    read_resource,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", Fraction(0)),
        ("48", Fraction(48)),
        (48, Fraction(48)),
        ("95690m", Fraction(95690, 1000)),
        ("1n", Fraction(1, 10**9)),
        ("250u", Fraction(250, 10**6)),
        ("263412492Ki", Fraction(263412492 * 1024)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("12e-1", Fraction(12, 10)),
        ("5M", Fraction(5 * 10**6)),
        (0.1, Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
    ],
)
def test_quantities_are_read_exactly(text, number):
    assert read_exact(text) == number


@pytest.mark.parametrize("text", ["", "1K", "1KB", "8 Gi", "1e99", "0x10", "NaN", True, None, [], "1,000", "½"])
def test_what_is_no_quantity_is_none(text):
    assert read_exact(text) is None


def test_memory_is_bytes_and_devices_are_counts():
    memory = read_resource("memory", "263412492Ki")
    assert isinstance(memory, Quantity)
    assert memory.to("KiB") == 263412492
    assert str(memory) == "263412492 KiB"
    assert read_resource("ephemeral-storage", "9391196145").to("B") == 9391196145
    assert read_resource("hugepages-2Mi", "21122Mi").to("MiB") == 21122
    assert read_resource("nvidia.com/gpu", "8") == 8.0
    assert read_resource("cpu", "500m") == 0.5


def test_absent_and_unreadable_amounts_are_never_zero():
    assert read_resource("cpu", None) == NoValue(Lack.ABSENT)
    for text, lack in (
        ("<none>", Lack.UNREADABLE),
        ("many", Lack.UNREADABLE),
        ("N/A", Lack.ABSENT),
        ("-1", Lack.UNREADABLE),
    ):
        value = read_resource("nvidia.com/gpu", text)
        assert isinstance(value, NoValue), text
        assert value.lack is lack, text


def test_accelerators_are_told_from_their_memory_and_from_nics():
    devices = (
        "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "gpu.intel.com/i915",
        "google.com/tpu", "habana.ai/gaudi", "huawei.com/Ascend910", "aws.amazon.com/neuron", "example.com/shared-gpu",
        "requests.nvidia.com/gpu", "volcano.sh/vgpu-number",
    )  # fmt: skip
    others = (
        "cpu",
        "memory",
        "nvidia.com/gpumem",
        "nvidia.com/gpucores",
        "aliyun.com/gpu-mem",
        "lab.example/gpu-count",
    )
    nics = ("rdma/hca_a", "vpc.amazonaws.com/efa", "intel.com/mlnx_sriov_rdma1", "nvidia.com/hostdev")
    assert [name for name in devices if not is_accelerator(name)] == []
    assert [name for name in (*others, *nics) if is_accelerator(name)] == []
    assert [name for name in nics if not is_nic(name)] == []
    assert [name for name in devices if is_nic(name)] == []


def test_numbers_that_stand_for_no_limit_are_known():
    assert is_no_limit("nvidia.com/gpu", 9999)
    assert is_no_limit("nvidia.com/gpu", "1000000")
    assert is_no_limit("memory", "9999Gi")
    assert not is_no_limit("memory", "1000000Ki")
    assert not is_no_limit("nvidia.com/gpu", 1024)
    assert not is_no_limit("cpu", "many")
