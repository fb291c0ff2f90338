"""Versions and images: exact, and inside published support ranges, pair by pair.

A pair that the catalogue has no range for is undecided with the weight of a warning: nobody published that it works.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.model.software import Profile
from clusterwright.model.support import VersionKey, vbios_key, version_key
from clusterwright.review.rules import BUILD, Hit, Rule, RuleTable, undecided
from clusterwright.review.subjects import Subject, listed

_TABLE = RuleTable("compute")

#: Numbers that an exact version has, by component; what is not listed here has three.
_PARTS: Final[dict[str, int]] = {"cuda": 2, "doca_ofed": 2}
_DIGEST: Final = re.compile(r"@sha256:[0-9a-f]{64}$")


def unpublished(path: str, what: str) -> Hit:
    """Undecided because no published range covers it; a warning, since the file itself lacks nothing."""
    return Hit(
        path,
        f"cannot be evaluated: the catalogue has no published {what}",
        "look for the vendor's statement and add it to a catalogue file of your own, or test the pair in acceptance",
        severity=Severity.WARNING,
        undecided=True,
    )


def key_of(text: str | None, read: Callable[[str], VersionKey] = version_key) -> VersionKey | None:
    """Comparable key of a version, None where there is none; version-not-exact speaks about what cannot be read."""
    try:
        return read(text) if text else None
    except ValueError:
        return None


def gpu_profiles(subject: Subject) -> Iterator[tuple[str, str, Profile]]:
    """(pool, path of its profile, profile) of every GPU pool whose profile is declared."""
    for pool, declared in subject.gpu_pools.items():
        profile = subject.profile(pool)
        if profile is not None:
            yield pool, f"software.profiles.{declared.software}", profile


def nvidia_profiles(subject: Subject) -> Iterator[tuple[str, str, Profile]]:
    """The same for pools whose GPUs are, or may be, NVIDIA's."""
    for pool, path, profile in gpu_profiles(subject):
        gpu = subject.gpu(pool)
        if gpu is None or gpu.vendor == "nvidia":
            yield pool, path, profile


@_TABLE.rule(
    "version-not-exact",
    Severity.ERROR,
    60,
    why="'1.36', 'latest' and '>=580' name many things; what was tested cannot be told from what will be installed.",
    satisfy="write the whole version",
    example="kubernetes: 1.36.2\ndriver: 595.91.07",
    source="Semantic Versioning 2.0.0; NVIDIA driver releases have three numbers",
    stages=BUILD,
)
def version_not_exact(subject: Subject) -> Iterator[Hit]:
    """A version is a range, a branch or a moving name."""
    for path, component, version in subject.versions():
        if component == "os":
            if not re.search(r"\d", version):
                yield Hit(path, f"os '{version}' has no release number", "write distribution and release: Ubuntu 24.04")
            continue
        wanted = _PARTS.get(component, 3)
        found = re.fullmatch(r"v?(\d+(?:\.\d+)*)([-+~][0-9A-Za-z.+~_-]+)?", version.strip())
        if found is None:
            yield Hit(path, f"{component} '{version}' is not one exact version")
        elif len(found.group(1).split(".")) < wanted:
            yield Hit(path, f"{component} '{version}' names a branch; an exact version has {wanted} numbers")


@_TABLE.rule(
    "engine-release-missing",
    Severity.WARNING,
    40,
    why="Memory, speed and formats of an inference engine or framework change with every release.",
    satisfy="write name and release",
    example="serve: {engine: vllm 0.11, ...}\ntrain: {framework: torchtitan 0.2, ...}",
    source="Clusterwright: plans are made per engine release",
    area="workload",
)
def engine_release(subject: Subject) -> Iterator[Hit]:
    """A serving engine or training framework is named without its release."""
    for name, workload in subject.workloads.items():
        for path, text in (
            (f"workloads.{name}.serve.engine", workload.serve.engine if workload.serve else ""),
            (f"workloads.{name}.train.framework", workload.train.framework if workload.train else ""),
        ):
            if text and not re.search(r"\s+v?\d+(\.\d+)+", text):
                yield Hit(path, f"'{text}' names no release")


@_TABLE.rule(
    "image-without-digest",
    Severity.ERROR,
    65,
    why="A tag can be moved; evidence taken with one image says nothing about another under the same tag.",
    satisfy="refer to the image by its sha256 digest",
    example="image: registry.example.com/serving/vllm@sha256:" + "3f1c" * 16,
    source="OCI Image Specification, content descriptors",
    stages=BUILD,
    area="security",
)
def image_without_digest(subject: Subject) -> Iterator[Hit]:
    """An image is referred to by tag."""
    for path, image in subject.images():
        if not _DIGEST.search(image):
            said = "has a digest that is not 64 hexadecimal digits" if "@sha256:" in image else "has no sha256 digest"
            yield Hit(path, f"image '{image}' {said}")


@_TABLE.rule(
    "fabric-manager-mismatch",
    Severity.ERROR,
    90,
    why="Before driver 620 Fabric Manager refuses to start unless its version is exactly the driver's; without it no "
    "CUDA program starts on NVSwitch nodes.",
    satisfy="install and hold both packages at one version",
    example="profiles: {gpu-node: {driver: 595.91.07, fabric_manager: 595.91.07}}",
    source="NVIDIA Fabric Manager user guide; the catalogue's rule same-version-before-620",
)
def fabric_manager_mismatch(subject: Subject) -> Iterator[Hit]:
    """On NVSwitch nodes Fabric Manager has another version than the driver, which drivers before 620 refuse."""
    for pool, path, profile in nvidia_profiles(subject):
        driver, manager = key_of(profile.driver), key_of(profile.fabric_manager)
        if driver is None or manager is None or not profile.driver:
            continue
        rule = subject.support.fabric_manager_rule(profile.driver)
        if rule is None or driver == manager:
            continue
        nvswitch = subject.nvswitch(pool)
        if nvswitch is None:
            yield undecided(f"pools.{pool}.hardware.nvswitch", f"whether the GPUs of pool {pool} share NVSwitch")
        elif nvswitch:
            message = (
                f"driver {profile.driver} and Fabric Manager {profile.fabric_manager} on NVSwitch nodes of pool {pool}"
            )
            yield Hit(f"{path}.fabric_manager", f"{message}; before driver {rule.before_driver} they must be equal")


@_TABLE.rule(
    "fabric-manager-missing",
    Severity.ERROR,
    85,
    why="GPUs behind NVSwitch are not usable until Fabric Manager has set up the switches.",
    satisfy="declare the version of Fabric Manager in the profile",
    example="profiles: {gpu-node: {driver: 595.91.07, fabric_manager: 595.91.07}}",
    source="NVIDIA Fabric Manager user guide, 'Getting started'",
    stages=BUILD,
)
def fabric_manager_missing(subject: Subject) -> Iterator[Hit]:
    """An NVSwitch node has no Fabric Manager."""
    for pool, path, profile in nvidia_profiles(subject):
        shape = subject.shape(pool)
        on_node = shape is None or shape.fabric_manager != "switch-tray"
        if subject.nvswitch(pool) and on_node and profile.fabric_manager is None:
            yield Hit(f"{path}.fabric_manager", f"pool {pool} has NVSwitch and its profile declares no Fabric Manager")


@_TABLE.rule(
    "vbios-below-driver",
    Severity.ERROR,
    90,
    why="The driver does not initialise a GPU whose firmware is older than it needs; after delivery that costs weeks.",
    satisfy="have the GPUs' firmware updated before the driver is installed",
    example="hardware: {gpu_subrevision: 3, vbios: 96.00.74.00.01}",
    source="NVIDIA data centre driver release notes, known issues; the catalogue's firmware rules",
    stages=BUILD,
)
def vbios_below_driver(subject: Subject) -> Iterator[Hit]:
    """GPU firmware is older than the driver needs, or is not stated where a driver needs a minimum."""
    for pool, _, profile in nvidia_profiles(subject):
        gpu, hardware = subject.gpu(pool), subject.pools[pool].hardware
        if key_of(profile.driver) is None or not profile.driver or gpu is None:
            continue
        subrevision = hardware.gpu_subrevision if hardware else None
        path = f"pools.{pool}.hardware.vbios"
        for rule in subject.support.firmware_rules(profile.driver, gpu.architecture, subrevision):
            minimum, found = vbios_key(rule.minimum_vbios), key_of(hardware.vbios if hardware else None, vbios_key)
            about = f"{gpu.architecture} GPUs" + (f" of subrevision {rule.subrevision}" if rule.subrevision else "")
            needs = f"driver {profile.driver} needs VBIOS {rule.minimum_vbios} or newer on {about}"
            if hardware is None or hardware.vbios is None:
                yield undecided(path, f"the GPUs' VBIOS version; {needs}", "read it with nvidia-smi -q and declare it")
            elif found is None:
                yield undecided(
                    path, f"a VBIOS version such as {rule.minimum_vbios}.01, not '{hardware.vbios}'; {needs}"
                )
            elif found < minimum and subrevision is None:
                yield undecided(
                    f"pools.{pool}.hardware.gpu_subrevision",
                    f"the GPUs' subrevision; {needs}, found {hardware.vbios}",
                    "read it with nvidia-smi -q and declare it",
                )
            elif found < minimum:
                yield Hit(path, f"{needs}; pool {pool} has {hardware.vbios}")


@_TABLE.rule(
    "cuda-above-driver",
    Severity.ERROR,
    80,
    why="A CUDA program does not start on a driver older than its runtime's minimum.",
    satisfy="raise the driver or lower CUDA",
    example="profiles: {gpu-node: {driver: 595.91.07, cuda: 13.2}}",
    source="CUDA Toolkit release notes, tables of minimum drivers (toolkit, minor-version compatibility)",
    stages=BUILD,
)
def cuda_above_driver(subject: Subject) -> Iterator[Hit]:
    """CUDA needs a newer driver."""
    for _, path, profile in nvidia_profiles(subject):
        driver = key_of(profile.driver)
        if driver is None or key_of(profile.cuda) is None or not profile.cuda:
            continue
        runs = subject.support.cuda_driver(profile.cuda, "minor-version")
        full = subject.support.cuda_driver(profile.cuda, "toolkit")
        if runs is None and full is None:
            yield unpublished(f"{path}.cuda", f"minimum driver for CUDA {profile.cuda}")
        elif runs is not None and driver < version_key(runs.minimum_driver):
            yield Hit(
                f"{path}.cuda", f"CUDA {profile.cuda} starts from driver {runs.minimum_driver}; found {profile.driver}"
            )
        elif full is not None and driver < version_key(full.minimum_driver):
            only = "only within minor-version compatibility (no PTX JIT, no newer features)" if runs else "not"
            yield Hit(
                f"{path}.cuda",
                f"CUDA {profile.cuda} came with driver {full.minimum_driver}; on {profile.driver} it works {only}",
                severity=Severity.WARNING if runs else None,
            )
        elif full is None:
            yield unpublished(
                f"{path}.cuda", f"driver that CUDA {profile.cuda} came with (known: {_toolkits(subject)})"
            )


def _toolkits(subject: Subject) -> str:
    return listed(entry.cuda for entry in subject.support.cuda if entry.compatibility == "toolkit")


@_TABLE.rule(
    "nccl-cuda-mismatch",
    Severity.ERROR,
    55,
    why="A NCCL built for another CUDA major does not load.",
    satisfy="choose an NCCL build for the CUDA major of the profile",
    example="profiles: {gpu-node: {cuda: 13.2, nccl: 2.30.7}}",
    source="NCCL release notes, compatibility; CUDA minor-version compatibility",
    stages=BUILD,
)
def nccl_cuda(subject: Subject) -> Iterator[Hit]:
    """NCCL is not published for the CUDA version."""
    for _, path, profile in nvidia_profiles(subject):
        if key_of(profile.nccl) is None or key_of(profile.cuda) is None or not profile.nccl or not profile.cuda:
            continue
        entry = subject.support.nccl_cuda(profile.nccl)
        if entry is None:
            yield unpublished(f"{path}.nccl", f"list of CUDA versions for NCCL {profile.nccl}")
        elif not entry.supports(profile.cuda):
            built = listed(entry.cuda, "or")
            yield Hit(f"{path}.nccl", f"NCCL {profile.nccl} is published for CUDA {built}; found CUDA {profile.cuda}")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
