"""Software: exact versions by profile, images, lifecycle."""

from __future__ import annotations

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import Text, Version


class Profile(Section):
    """What is installed on the nodes of a pool, with exact versions."""

    os: Text | None = Field(default=None, description="distribution and release, such as Ubuntu 24.04")
    kernel: Version | None = None
    driver: Version | None = Field(default=None, description="NVIDIA or AMD GPU driver")
    fabric_manager: Version | None = None
    cuda: Version | None = None
    rocm: Version | None = None
    nccl: Version | None = None
    dcgm: Version | None = None
    containerd: Version | None = None
    container_toolkit: Version | None = None
    kubelet: Version | None = None
    slurm: Version | None = None
    doca_ofed: Version | None = None


class Lifecycle(Section):
    """How software changes after the first day."""

    drivers: Text | None = Field(default=None, description="who installs them and how (host, operator)")
    patching: Text | None = None
    upgrades: Text | None = None
    provisioning: Text | None = Field(default=None, description="inputs and history of the nodes' configuration")


class Software(Section):
    """Versions of the cluster as a whole, profiles of its pools, images by name."""

    kubernetes: Version | None = Field(default=None, description="control plane version")
    gpu_operator: Version | None = None
    network_operator: Version | None = None
    kueue: Version | None = None
    slurm: Version | None = None
    profiles: dict[str, Profile] = Field(default_factory=dict)
    images: dict[str, Text] = Field(default_factory=dict, description="name → reference with digest")
    lifecycle: Lifecycle | None = None
