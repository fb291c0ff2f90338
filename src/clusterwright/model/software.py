"""Software: exact versions by profile, images, lifecycle."""

from pydantic import Field

from clusterwright.model.section import Section
from clusterwright.model.units import Text, Version


class Profile(Section):
    """What is installed on the nodes of a pool, with exact versions."""

    os: Text | None = Field(default=None, description="distribution and release, such as Ubuntu 24.04")
    kernel: Version | None = Field(default=None, description="Linux kernel")
    driver: Version | None = Field(default=None, description="NVIDIA or AMD GPU driver")
    fabric_manager: Version | None = Field(default=None, description="NVIDIA Fabric Manager, for NVSwitch")
    cuda: Version | None = Field(default=None, description="CUDA toolkit in the images")
    rocm: Version | None = Field(default=None, description="ROCm")
    nccl: Version | None = Field(default=None, description="NCCL or RCCL in the images")
    dcgm: Version | None = Field(default=None, description="NVIDIA DCGM")
    containerd: Version | None = Field(default=None, description="containerd")
    container_toolkit: Version | None = Field(default=None, description="NVIDIA Container Toolkit")
    kubelet: Version | None = Field(default=None, description="kubelet")
    slurm: Version | None = Field(default=None, description="slurmd")
    doca_ofed: Version | None = Field(default=None, description="DOCA-OFED or MLNX_OFED")


class Lifecycle(Section):
    """How software changes after the first day."""

    drivers: Text | None = Field(default=None, description="who installs them and how (host, operator)")
    patching: Text | None = Field(default=None, description="how and when patches come in")
    upgrades: Text | None = Field(default=None, description="how and when releases change")
    provisioning: Text | None = Field(default=None, description="inputs and history of the nodes' configuration")


class Software(Section):
    """Versions of the cluster as a whole, profiles of its pools, images by name."""

    kubernetes: Version | None = Field(default=None, description="control plane version")
    gpu_operator: Version | None = Field(default=None, description="NVIDIA or AMD GPU Operator")
    network_operator: Version | None = Field(default=None, description="NVIDIA Network Operator")
    kueue: Version | None = Field(default=None, description="Kueue")
    slurm: Version | None = Field(default=None, description="slurmctld")
    profiles: dict[str, Profile] = Field(default_factory=dict, description="what is installed on nodes, by name")
    images: dict[str, Text] = Field(default_factory=dict, description="name → reference with digest")
    lifecycle: Lifecycle | None = Field(default=None, description="how software changes")
