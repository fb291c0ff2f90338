"""The platform's pairs: GPU Operator, Kubernetes, operating system, containerd, kubelet; and how long they live."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Final

from clusterwright.model.findings import Severity
from clusterwright.model.support import OperatorSupport, minor_of, version_key
from clusterwright.review.rules import Hit, Rule, RuleTable
from clusterwright.review.subjects import Subject, counted, listed
from clusterwright.review.versions import gpu_profiles, key_of, nvidia_profiles, unpublished

_TABLE = RuleTable("scheduler")


def _operator(subject: Subject) -> tuple[str, OperatorSupport | None]:
    software = subject.architecture.software
    version = software.gpu_operator if software else None
    if version is None or key_of(version) is None:
        return "", None
    return version, subject.support.operator(version)


@_TABLE.rule(
    "operator-unknown",
    Severity.WARNING,
    55,
    why="An operator release whose support range nobody read may not run on this Kubernetes, OS or runtime.",
    satisfy="use a release with a published range, or add its range to a catalogue file of your own",
    example="software: {gpu_operator: 26.7.2}",
    source="NVIDIA GPU Operator, platform support pages; the catalogue's operator entries",
)
def operator_unknown(subject: Subject) -> Iterator[Hit]:
    """The GPU Operator release has no published range in the catalogue."""
    version, operator = _operator(subject)
    if version and operator is None:
        known = listed(o.operator for o in subject.support.operators)
        yield unpublished("software.gpu_operator", f"support range of GPU Operator {version} (known: {known})")


@_TABLE.rule(
    "operator-kubernetes-unsupported",
    Severity.ERROR,
    80,
    why="Outside the published range the operator's pods may not schedule, and nobody fixes it.",
    satisfy="choose a Kubernetes minor inside the range, or another operator release",
    example="software: {kubernetes: 1.36.2, gpu_operator: 26.7.2}",
    source="NVIDIA GPU Operator 26.7, platform support",
)
def operator_kubernetes(subject: Subject) -> Iterator[Hit]:
    """Kubernetes is outside the GPU Operator's published range."""
    version, operator = _operator(subject)
    software = subject.architecture.software
    if operator is None or software is None or key_of(software.kubernetes) is None or not software.kubernetes:
        return
    systems = {profile.os or "" for _, _, profile in gpu_profiles(subject)} or {""}
    for system in sorted(systems):
        if not operator.supports_kubernetes(software.kubernetes, system):
            low, high = operator.kubernetes_range(system)
            on = f" on {system}" if system else ""
            yield Hit(
                "software.kubernetes",
                f"GPU Operator {version} supports Kubernetes {low} to {high}{on}; found {software.kubernetes}",
            )


@_TABLE.rule(
    "operator-os-unsupported",
    Severity.ERROR,
    65,
    why="The operator's driver and toolkit containers exist for listed systems only.",
    satisfy="choose a listed operating system, or another operator release",
    example="profiles: {gpu-node: {os: Ubuntu 24.04, ...}}",
    source="NVIDIA GPU Operator, platform support",
)
def operator_os(subject: Subject) -> Iterator[Hit]:
    """The operating system of GPU nodes is not listed for the GPU Operator release."""
    version, operator = _operator(subject)
    if operator is None:
        return
    if not operator.os:
        yield unpublished("software.gpu_operator", f"list of operating systems for GPU Operator {version}")
        return
    for pool, path, profile in gpu_profiles(subject):
        if profile.os and profile.os.lower() not in {o.label.lower() for o in operator.os}:
            known = listed((o.label for o in operator.os), "or")
            yield Hit(f"{path}.os", f"GPU Operator {version} lists {known}; pool {pool} runs {profile.os}")


@_TABLE.rule(
    "operator-containerd-unsupported",
    Severity.ERROR,
    60,
    why="The operator configures the container runtime; an unknown configuration format leaves pods without GPUs.",
    satisfy="choose a containerd release inside the range, or another operator release",
    example="profiles: {gpu-node: {containerd: 2.3.6, ...}}",
    source="NVIDIA GPU Operator, platform support",
)
def operator_containerd(subject: Subject) -> Iterator[Hit]:
    """containerd is outside the GPU Operator's published range."""
    version, operator = _operator(subject)
    if operator is None:
        return
    if operator.containerd is None:
        yield unpublished("software.gpu_operator", f"containerd range for GPU Operator {version}")
        return
    low, high = operator.containerd
    for _, path, profile in gpu_profiles(subject):
        if profile.containerd and key_of(profile.containerd) and not operator.supports_containerd(profile.containerd):
            message = f"GPU Operator {version} supports containerd {low} to {high}; found {profile.containerd}"
            yield Hit(f"{path}.containerd", message)


@_TABLE.rule(
    "operator-driver-unlisted",
    Severity.WARNING,
    45,
    why="A driver that the operator's component matrix does not list was not tested with it.",
    satisfy="choose a listed driver, or test the pair in acceptance",
    example="profiles: {gpu-node: {driver: 595.91.07, ...}}",
    source="NVIDIA GPU Operator, component matrix",
)
def operator_driver(subject: Subject) -> Iterator[Hit]:
    """The driver is not in the GPU Operator's component matrix."""
    version, operator = _operator(subject)
    if operator is None:
        return
    for _, path, profile in nvidia_profiles(subject):
        if not profile.driver or key_of(profile.driver) is None:
            continue
        if not operator.drivers:
            yield unpublished(f"{path}.driver", f"component matrix for GPU Operator {version}")
        elif version_key(profile.driver) not in {version_key(d) for d in operator.drivers}:
            known = listed(operator.drivers)
            yield Hit(f"{path}.driver", f"GPU Operator {version} lists drivers {known}; found {profile.driver}")


@_TABLE.rule(
    "kubelet-skew",
    Severity.ERROR,
    70,
    why="A kubelet newer than the control plane, or too many minors older, is outside the version skew policy.",
    satisfy="keep kubelets at the control plane's minor, or at most three behind during an upgrade",
    example="software: {kubernetes: 1.36.2, profiles: {gpu-node: {kubelet: 1.36.2}}}",
    source="Kubernetes documentation, version skew policy",
)
def kubelet_skew(subject: Subject) -> Iterator[Hit]:
    """A kubelet is newer than the control plane or too many minors older."""
    software = subject.architecture.software
    control = software.kubernetes if software else None
    if software is None or not control or key_of(control) is None:
        return
    rule = subject.support.skew_rule("kubelet", control)
    for name, profile in software.profiles.items():
        if not profile.kubelet or key_of(profile.kubelet) is None:
            continue
        path = f"software.profiles.{name}.kubelet"
        if rule is None:
            yield unpublished(path, f"skew policy for Kubernetes {control}")
            continue
        (major, minor), (own_major, own_minor) = minor_of(control), minor_of(profile.kubelet)
        behind = minor - own_minor
        if own_major != major or behind < -rule.newer_minors:
            yield Hit(path, f"kubelet {profile.kubelet} is newer than the control plane {control}")
        elif behind > rule.older_minors:
            yield Hit(
                path,
                f"kubelet {profile.kubelet} is {counted(behind, 'minor')} behind {control}; "
                f"{rule.older_minors} are supported",
            )


@_TABLE.rule(
    "containerd-branch",
    Severity.WARNING,
    50,
    why="containerd is tested against a Kubernetes minor by branch; fixes for the pair land in the recommended one.",
    satisfy="run the branch that containerd recommends for the Kubernetes minor (2.3 for 1.36)",
    example="software: {kubernetes: 1.36.2, profiles: {gpu-node: {containerd: 2.3.6}}}",
    source="containerd RELEASES.md, Kubernetes support",
)
def containerd_branch(subject: Subject) -> Iterator[Hit]:
    """containerd is not the branch recommended for the Kubernetes minor; a branch not listed at all is an error."""
    software = subject.architecture.software
    if software is None or not software.kubernetes or key_of(software.kubernetes) is None:
        return
    rule = subject.support.containerd_for(software.kubernetes)
    if rule is None:
        yield unpublished("software.kubernetes", f"containerd branches for Kubernetes {software.kubernetes}")
        return
    listed_branches = {minor_of(v): version_key(v) for v in (rule.recommended, *rule.supported)}
    for name, profile in software.profiles.items():
        if not profile.containerd or key_of(profile.containerd) is None:
            continue
        path, branch = f"software.profiles.{name}.containerd", minor_of(profile.containerd)
        message = (
            f"for Kubernetes {software.kubernetes} containerd recommends {rule.recommended}; found {profile.containerd}"
        )
        if branch not in listed_branches:
            known = listed(rule.supported or (rule.recommended,), "or")
            yield Hit(path, f"{message}, which is not listed for it ({known})", severity=Severity.ERROR)
        elif version_key(profile.containerd) < listed_branches[branch]:
            since = ".".join(str(n) for n in listed_branches[branch])
            yield Hit(path, f"{message}; that branch is listed from {since} on", severity=Severity.ERROR)
        elif branch != minor_of(rule.recommended):
            yield Hit(path, message)


def _ends(subject: Subject, end: datetime.date, what: str, path: str) -> Iterator[Hit]:
    economics = subject.architecture.economics
    term_days = economics.term.to("days") if economics and economics.term else 0.0
    starts = subject.architecture.contract.starts if subject.architecture.contract else None
    last = max(starts or subject.today, subject.today) + datetime.timedelta(days=term_days)
    if end < subject.today:
        yield Hit(path, f"{what} went out of support on {end}")
    elif end < last:
        yield Hit(
            path,
            f"{what} goes out of support on {end}, before the term ends on {last}",
            "plan the upgrade before that day, with acceptance repeated",
            weight=35,
        )


@_TABLE.rule(
    "driver-out-of-support",
    Severity.WARNING,
    75,
    area="compute",
    why="A branch without fixes keeps its bugs and its vulnerabilities.",
    satisfy="choose a branch that is supported for the whole term, or plan the upgrade",
    example="profiles: {gpu-node: {driver: 595.91.07, ...}}",
    source="NVIDIA data centre drivers, supported drivers and end of life by branch",
)
def driver_end(subject: Subject) -> Iterator[Hit]:
    """The driver branch is out of support, or goes out of it within the term."""
    for _, path, profile in nvidia_profiles(subject):
        if not profile.driver or key_of(profile.driver) is None:
            continue
        branch = subject.support.driver_branch(profile.driver)
        if branch is None or branch.end_of_life is None:
            yield unpublished(f"{path}.driver", f"end of life of the branch of driver {profile.driver}")
        else:
            yield from _ends(subject, branch.end_of_life, f"driver branch {branch.branch}", f"{path}.driver")


@_TABLE.rule(
    "kubernetes-out-of-support",
    Severity.WARNING,
    75,
    why="A minor without patches keeps its vulnerabilities.",
    satisfy="choose a minor that is patched, and plan the upgrades within the term",
    example="software: {kubernetes: 1.36.2}",
    source="Kubernetes documentation, patch releases",
)
def kubernetes_end(subject: Subject) -> Iterator[Hit]:
    """The Kubernetes minor is out of support, or goes out of it within the term."""
    software = subject.architecture.software
    if software is None or not software.kubernetes or key_of(software.kubernetes) is None:
        return
    release = subject.support.kubernetes_release(software.kubernetes)
    if release is None:
        yield unpublished("software.kubernetes", f"end of life of Kubernetes {software.kubernetes}")
    else:
        yield from _ends(subject, release.end_of_life, f"Kubernetes {release.minor}", "software.kubernetes")


RULES: Final[tuple[Rule, ...]] = tuple(_TABLE.rules)
