"""Which type each kind of entry has; needed by those who read or check everything."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from clusterwright.model.calibrations import Calibration
from clusterwright.model.entries import Entry
from clusterwright.model.failures import FailureRates
from clusterwright.model.hardware import Gpu, Nic, NodeShape
from clusterwright.model.language_models import LanguageModel
from clusterwright.model.prices import ApiPrice, Price
from clusterwright.model.support import (
    ContainerdRule,
    CudaDriver,
    DriverBranch,
    EngineFormat,
    FabricManagerRule,
    FirmwareRule,
    KubernetesRelease,
    NcclCuda,
    OperatorSupport,
    SkewRule,
)

#: Type of each kind of entry, by its section in a file.
TYPES: Final[Mapping[str, type[Entry]]] = MappingProxyType(
    {
        "gpus": Gpu,
        "shapes": NodeShape,
        "nics": Nic,
        "models": LanguageModel,
        "prices": Price,
        "api_prices": ApiPrice,
        "failures": FailureRates,
        "calibrations": Calibration,
        "support.driver_branches": DriverBranch,
        "support.fabric_manager": FabricManagerRule,
        "support.firmware": FirmwareRule,
        "support.operators": OperatorSupport,
        "support.containerd": ContainerdRule,
        "support.skew": SkewRule,
        "support.kubernetes": KubernetesRelease,
        "support.cuda": CudaDriver,
        "support.nccl": NcclCuda,
        "support.engines": EngineFormat,
    }
)
