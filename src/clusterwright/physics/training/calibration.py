"""Constants of the step-time model: what one run gets of them by system, number format, software release and kind.

A calibration is data: values, where they come from, when, and how far they were off on models left out. `fitting`
makes a new one from a user's own runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np


@dataclass(frozen=True, slots=True)
class SpeedConstants:
    """Factors on ideal times for one system, format and release.

    Args:
        products, experts: achieved time ÷ (FLOP ÷ peak) of dense and of expert products; head: of the output table.
        attention: achieved ÷ ideal time of attention kernels; scan: of recurrent states on vector units.
        passes: times that what a layer keeps is read or written in all.
        launch_s: s per layer pass that no data explains (launches, synchronisation with the host).
        tensor: achieved ÷ ideal time of tensor and context exchange, without what products hide.
        exchange, overlapped: the same of expert exchange; under an interleaved schedule, which hides part of it, and of
            what stages hand each other, behind another chunk.
        gradients: the same for gradients and weights between steps; optimizer: of its pass over the states.
    """

    products: float = 1.8
    experts: float = 2.5
    head: float = 1.8
    attention: float = 1.2
    scan: float = 1.5
    passes: float = 10.0
    launch_s: float = 5e-4
    tensor: float = 0.6
    exchange: float = 0.8
    overlapped: float = 0.4
    gradients: float = 0.7
    optimizer: float = 1.5

    def of_micro_batch(self, virtual: Any) -> dict[str, Any]:
        """Factor of each term of a micro-batch; `virtual` stages decide whether exchanges are hidden."""
        return {
            "dense products": self.products,
            "expert products": self.experts,
            "head": self.head,
            "attention": self.attention,
            "state scan": self.scan,
            "elementwise passes": self.passes,
            "launches": self.launch_s,
            "dequantisation": 1.0,
            "tensor exchange": self.tensor,
            "context exchange": self.tensor,
            "stage exchange": np.where(np.asarray(virtual) > 1, self.overlapped, 1.0),
            "expert exchange": np.where(np.asarray(virtual) > 1, self.overlapped, self.exchange),
        }

    def of_step(self) -> dict[str, float]:
        """Factor of each term of a step."""
        return {"gradients and weights": self.gradients, "optimizer": self.optimizer, "host transfers": 1.0}


#: System that the factors of the others are relative to.
REFERENCE_SYSTEM: Final = "DGX-GB200"
#: Systems whose GPU has the die of one that was measured: GH100 (NVIDIA H200 and GH200 datasheets: the rates of H100).
DIES: Final[Mapping[str, str]] = {"DGX-H200": "DGX-H100", "DGX-GH200": "DGX-H100"}


@dataclass(frozen=True)
class Calibration:
    """Fitted constants.

    Args:
        base: by name of a SpeedConstants field, for GB200, fp8 and release `release`; eager: factor on launches of
            expert layers without CUDA graphs.
        compute: factor on products and attention by system (clocks under power limits).
        host: factor on launches by system (host processor).
        formats: factor on products by number format, which low precision does not speed up in proportion.
        software: factor on passes, launches and exchange of expert layers by release.
        frameworks: (factor on a whole micro-batch, on attention besides) of frameworks other than the fitted one.
        fitted_on, date, error: where the values come from; mean and median error with the model left out.
    """

    base: Mapping[str, float]
    compute: Mapping[str, float]
    host: Mapping[str, float]
    formats: Mapping[str, float]
    software: Mapping[str, float]
    fitted_on: str
    date: str
    error: tuple[float, float]
    frameworks: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def constants(
        self,
        system: str,
        precision: str,
        release: str = "",
        moe: bool = True,
        framework: str = "megatron",
        graphs: bool = True,
    ) -> SpeedConstants:
        """Constants of a run; the newest release where none is named, plain x86 hosts where the system is unknown.

        Args:
            graphs: as of a `Recipe`; frameworks other than Megatron have none for experts.
        """
        b = self.base
        compute = self._compute(system)
        x86 = sum(self.host.values()) / len(self.host) if self.host else 1.0
        host = self.host.get(system, 1.0 if system.startswith("DGX-GB") else x86)
        software = self._software(release) if moe else 1.0
        eager = b.get("eager", 1.0) if moe and not (graphs and framework == "megatron") else 1.0
        form = self.formats.get("bf16" if precision == "fp16" else precision, 1.0)
        slower, attention = self.frameworks.get(framework, (1.0, 1.0))
        compute, software = compute * slower, software * slower
        return SpeedConstants(
            products=b["products"] * compute * form,
            experts=b["experts"] * compute * form,
            head=b["products"] * compute,
            attention=b["attention"] * compute * attention,
            scan=b["scan"] * compute,
            passes=b["passes"] * software,
            launch_s=b["launch_s"] * host * software * eager,
            tensor=b["tensor"] * slower,
            exchange=b["exchange"] * software,
            overlapped=b["overlapped"] * software,
            gradients=b["gradients"],
            optimizer=b["optimizer"],
        )

    def knows(self, system: str) -> bool:
        """Whether runs on a system, or on another with its die, were among those that were fitted."""
        return DIES.get(system, system) in (REFERENCE_SYSTEM, *self.compute)

    def _compute(self, system: str) -> float:
        """Factor of a system, of another with its die, else the mean of all."""
        if self.knows(system):
            return self.compute.get(DIES.get(system, system), 1.0)
        return (1.0 + sum(self.compute.values())) / (1 + len(self.compute))

    def _software(self, release: str) -> float:
        """Factor of a release; of the oldest for older ones, of the newest where none is named."""
        known = sorted(self.software)
        if not known:
            return 1.0
        if not release:
            return self.software[known[-1]]
        return self.software[max((r for r in known if r <= release), default=known[0])]


CALIBRATED: Final = Calibration(
    base={
        "products": 1.542,
        "experts": 1.541,
        "attention": 1.098,
        "scan": 2.117,
        "passes": 17.01,
        "launch_s": 0.0007884,
        "tensor": 0.9413,
        "exchange": 0.5227,
        "overlapped": 0.2641,
        "gradients": 1.019,
        "eager": 1.852,
        "optimizer": 1.5,
    },
    compute={"DGX-B200": 0.9832, "DGX-B300": 0.9111, "DGX-GB300": 0.8194, "DGX-H100": 0.8217},
    host={"DGX-B200": 1.156, "DGX-B300": 1.868, "DGX-H100": 1.196},
    formats={"bf16": 1.067, "mxfp8": 1.093, "nvfp4": 1.379},
    software={"25.09": 1.287, "25.11": 1.403, "26.02": 1.349, "26.04": 1.23, "26.06": 1.0, "26.08": 0.9524},
    fitted_on="NVIDIA Megatron-Bridge performance summary and archive, 25.09 to 26.08",
    date="2026-12-01",
    error=(0.125, 0.090),
    frameworks={"torchtitan": (0.971, 4.515)},
)
