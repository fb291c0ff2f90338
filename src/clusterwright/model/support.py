"""Which software and firmware go together: published support ranges and the rules between versions.

A range that no entry covers is unknown, not allowed: lookups return None then, and a rule built on them says that it
could not be evaluated.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Annotated, Literal

from clusterwright.model.entries import Capability, Entry, Natural, Record, Text, matching, not_empty, within

Version = Annotated[str, matching(r"v?\d+(\.[0-9A-Za-z]+)*([-+][0-9A-Za-z.+-]+)?")]
VersionKey = tuple[int, ...]


def version_key(text: str) -> VersionKey:
    """Comparable numbers of a version: `v1.36.2`, `595.91.07`, `2.3.6-rc1`.

    Trailing zeros do not count (1.36 equals 1.36.0); what follows `-` or `+` is ignored.

    Raises:
        ValueError: if the text does not start with a number.
    """
    match = re.match(r"\s*v?(\d+(?:\.\d+)*)", text)
    if match is None:
        raise ValueError(f"'{text}' is not a version")
    return _trimmed([int(part) for part in match.group(1).split(".")])


def vbios_key(text: str) -> VersionKey:
    """Comparable numbers of a VBIOS version such as `96.00.A5.00.01`, whose parts are hexadecimal.

    Raises:
        ValueError: if a part is not hexadecimal.
    """
    parts = text.strip().split(".")
    if len(parts) < 2 or not all(re.fullmatch(r"[0-9A-Fa-f]{2}", p) for p in parts):
        raise ValueError(f"'{text}' is not a VBIOS version")
    return _trimmed([int(part, 16) for part in parts])


def minor_of(text: str) -> tuple[int, int]:
    """(major, minor) of a version; a missing minor is 0."""
    key = (*version_key(text), 0, 0)
    return key[0], key[1]


def _trimmed(numbers: list[int]) -> VersionKey:
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@dataclass(frozen=True, kw_only=True)
class DriverBranch(Entry):
    """An NVIDIA data-centre driver branch.

    Args:
        branch: its number (595).
        kind: long-term, production or new-feature, as NVIDIA calls it.
        end_of_life: None if not published.
        cuda: the CUDA version that it ships with, None if the source does not say.
    """

    branch: Annotated[int, within(300)]
    kind: Literal["long-term", "production", "new-feature"]
    end_of_life: datetime.date | None = None
    cuda: Version | None = None


@dataclass(frozen=True, kw_only=True)
class FabricManagerRule(Entry):
    """On NVSwitch nodes Fabric Manager must have the driver's version, for drivers older than `before_driver`."""

    before_driver: Version


@dataclass(frozen=True, kw_only=True)
class FirmwareRule(Entry):
    """GPUs of an architecture and board subrevision need at least a VBIOS version from a driver on.

    Args:
        driver: the driver with which the requirement is published.
        applies: to that driver alone, or to it and later ones.
        architecture: as in the GPU entry.
        subrevision: of the GPU, None for all.
        minimum_vbios: lowest VBIOS that works.
    """

    driver: Version
    applies: Literal["this driver", "this driver and later"]
    architecture: Text
    subrevision: int | None = None
    minimum_vbios: Annotated[str, matching(r"[0-9A-Fa-f]{2}(\.[0-9A-Fa-f]{2}){1,4}")]


@dataclass(frozen=True, kw_only=True)
class Os(Record):
    """An operating system in a support range, with the Kubernetes minors it is supported for if they differ."""

    name: Text
    version: Text
    kubernetes: tuple[Version, Version] | None = None

    @property
    def label(self) -> str:
        """Name and version ("Ubuntu 24.04")."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, kw_only=True)
class OperatorSupport(Entry):
    """Support range of one NVIDIA GPU Operator release.

    Args:
        operator: the release ("26.7.2").
        kubernetes: lowest and highest supported minor, both included.
        containerd: lowest and highest supported minor; None if the source does not say.
        os: supported systems; empty if the source was not read that far.
        default_driver: what the operator deploys unless told otherwise.
        drivers: driver releases that the component matrix lists.
    """

    operator: Version
    kubernetes: tuple[Version, Version]
    containerd: tuple[Version, Version] | None = None
    os: tuple[Os, ...] = ()
    default_driver: Version | None = None
    drivers: tuple[Version, ...] = ()

    def kubernetes_range(self, os: str = "") -> tuple[Version, Version]:
        """Lowest and highest minor, on an operating system ("Ubuntu 24.04") where the source gives it a range."""
        own = next((o.kubernetes for o in self.os if o.label.lower() == os.lower()), None)
        return own or self.kubernetes

    def supports_kubernetes(self, version: str, os: str = "") -> bool:
        """Whether the minor of a Kubernetes version is inside the range."""
        low, high = self.kubernetes_range(os)
        return minor_of(low) <= minor_of(version) <= minor_of(high)

    def supports_containerd(self, version: str) -> bool | None:
        """Whether the minor of a containerd version is inside the range; None if no range is published."""
        if self.containerd is None:
            return None
        return minor_of(self.containerd[0]) <= minor_of(version) <= minor_of(self.containerd[1])


@dataclass(frozen=True, kw_only=True)
class ContainerdRule(Entry):
    """containerd minors that the containerd project lists for a Kubernetes minor.

    Args:
        kubernetes: the minor ("1.36").
        recommended: the branch to run ("2.3").
        supported: every branch listed for it, the recommended one included.
    """

    kubernetes: Version
    recommended: Version
    supported: tuple[Version, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SkewRule(Entry):
    """How many minors a component may be older than the API server, for API servers from a version on."""

    component: Literal["kubelet", "kube-proxy", "kubectl", "kube-controller-manager"]
    from_kubernetes: Version
    older_minors: Natural
    newer_minors: Natural = 0


@dataclass(frozen=True, kw_only=True)
class KubernetesRelease(Entry):
    """A Kubernetes minor and the day its patches end."""

    minor: Version
    end_of_life: datetime.date


@dataclass(frozen=True, kw_only=True)
class CudaDriver(Entry):
    """Lowest NVIDIA driver (Linux) for a CUDA version.

    Args:
        cuda: toolkit version ("12.8") or major ("12") for minor-version compatibility.
        minimum_driver: lowest driver.
        compatibility: toolkit (the driver shipped with it, full function) or minor-version (it starts; PTX JIT and
            newer features are missing).
    """

    cuda: Version
    minimum_driver: Version
    compatibility: Literal["toolkit", "minor-version"]


@dataclass(frozen=True, kw_only=True)
class NcclCuda(Entry):
    """CUDA versions that an NCCL release is published for."""

    nccl: Version
    cuda: Annotated[tuple[Version, ...], not_empty]

    def supports(self, cuda: str) -> bool:
        """Whether a CUDA version has the major of one that the release is published for.

        Source: CUDA minor-version compatibility holds within a major (CUDA Compatibility, minor version compatibility).
        """
        return minor_of(cuda)[0] in {minor_of(version)[0] for version in self.cuda}


@dataclass(frozen=True, kw_only=True)
class EngineFormat(Entry):
    """Lowest compute capability on which an inference engine runs a weight format.

    Args:
        engine: vllm, sglang, tensorrt-llm.
        since: first release for which the source says so, None if it does not say.
        precision: weights format; kv-fp8 is the KV cache.
        minimum_capability: lowest CUDA capability; None where only AMD is meant.
        native: computes in that format; False when weights are unpacked to a wider one first (Marlin kernels).
        gfx: AMD targets on which it runs.
    """

    engine: Literal["vllm", "sglang", "tensorrt-llm"]
    since: Version | None = None
    precision: Literal["fp16", "bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4", "kv-fp8"]
    minimum_capability: Capability | None = None
    native: bool = True
    gfx: tuple[str, ...] = ()

    @property
    def capability(self) -> tuple[int, int] | None:
        """Lowest capability as (major, minor)."""
        if self.minimum_capability is None:
            return None
        major, minor = self.minimum_capability.split(".")
        return int(major), int(minor)


@dataclass(frozen=True, kw_only=True)
class Support(Record):
    """The software support matrix: every list may be empty, which means unknown."""

    driver_branches: tuple[DriverBranch, ...] = ()
    fabric_manager: tuple[FabricManagerRule, ...] = ()
    firmware: tuple[FirmwareRule, ...] = ()
    operators: tuple[OperatorSupport, ...] = ()
    containerd: tuple[ContainerdRule, ...] = ()
    skew: tuple[SkewRule, ...] = ()
    kubernetes: tuple[KubernetesRelease, ...] = ()
    cuda: tuple[CudaDriver, ...] = ()
    nccl: tuple[NcclCuda, ...] = ()
    engines: tuple[EngineFormat, ...] = ()

    def driver_branch(self, driver: str) -> DriverBranch | None:
        """The branch a driver version belongs to."""
        number = version_key(driver)[0]
        return next((b for b in self.driver_branches if b.branch == number), None)

    def fabric_manager_rule(self, driver: str) -> FabricManagerRule | None:
        """The rule that binds Fabric Manager to this driver's version; None when they may differ."""
        return next((r for r in self.fabric_manager if version_key(driver) < version_key(r.before_driver)), None)

    def firmware_rules(self, driver: str, architecture: str, subrevision: int | None) -> tuple[FirmwareRule, ...]:
        """Rules on the VBIOS of these GPUs under this driver.

        An undeclared subrevision gets every rule of the architecture: it cannot be excluded.
        """
        key = version_key(driver)
        return tuple(
            rule
            for rule in self.firmware
            if rule.architecture == architecture
            and (rule.subrevision is None or subrevision is None or rule.subrevision == subrevision)
            and (
                key == version_key(rule.driver)
                or (rule.applies == "this driver and later" and key > version_key(rule.driver))
            )
        )

    def operator(self, version: str) -> OperatorSupport | None:
        """Support range of a GPU Operator release, None when that release is not in the catalogue."""
        return next((o for o in self.operators if version_key(o.operator) == version_key(version)), None)

    def containerd_for(self, kubernetes: str) -> ContainerdRule | None:
        """containerd branches for a Kubernetes version, None when its minor is not in the catalogue."""
        return next((r for r in self.containerd if minor_of(r.kubernetes) == minor_of(kubernetes)), None)

    def skew_rule(self, component: str, control_plane: str) -> SkewRule | None:
        """The newest skew rule that holds for a component under this API server version."""
        held = [
            r for r in self.skew if r.component == component and minor_of(r.from_kubernetes) <= minor_of(control_plane)
        ]
        return max(held, key=lambda r: minor_of(r.from_kubernetes), default=None)

    def kubernetes_release(self, version: str) -> KubernetesRelease | None:
        """Life of a Kubernetes minor, None when it is not in the catalogue."""
        return next((k for k in self.kubernetes if minor_of(k.minor) == minor_of(version)), None)

    def cuda_driver(
        self, cuda: str, compatibility: Literal["toolkit", "minor-version"] = "minor-version"
    ) -> CudaDriver | None:
        """Lowest driver for a CUDA version; minor-version compatibility counts by major, toolkit by minor."""
        for entry in self.cuda:
            if entry.compatibility != compatibility:
                continue
            if compatibility == "toolkit" and minor_of(entry.cuda) == minor_of(cuda):
                return entry
            if compatibility == "minor-version" and minor_of(entry.cuda)[0] == minor_of(cuda)[0]:
                return entry
        return None

    def nccl_cuda(self, nccl: str) -> NcclCuda | None:
        """What an NCCL release is published for, by minor; None when it is not in the catalogue."""
        return next((n for n in self.nccl if minor_of(n.nccl) == minor_of(nccl)), None)

    def engine_formats(self, engine: str, precision: str) -> tuple[EngineFormat, ...]:
        """How an engine runs a weight format, natively first; empty when the catalogue does not say."""
        found = [e for e in self.engines if e.engine == engine and e.precision == precision]
        return tuple(sorted(found, key=lambda e: not e.native))
