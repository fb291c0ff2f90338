"""Published bus bandwidths of collectives, as references beside the ceilings; GB/s per GPU, long messages.

Out-of-place results of nccl-tests or rccl-tests as their publishers printed them. None exceeds its bound (a test).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from clusterwright.lib.scales import GIB
from clusterwright.physics.ceilings import Collective

_AWS: Final = "AWS, awsome-distributed-training, micro-benchmarks/nccl-tests"
_GCP: Final = "Google Cloud, cluster-toolkit, nccl-tests on A3 Mega"
_COREWEAVE: Final = "CoreWeave, github.com/coreweave/nccl-tests, README"
_ONE_NODE: Final = "published nccl-tests results of one node, NCCL_NVLS_ENABLE 1 and 0"


@dataclass(frozen=True, slots=True)
class Published:
    """One published result.

    Args:
        gpus: catalogue names of the GPUs that it is about.
        domain_gpus: GPUs per scale-up domain as the run used it (MNNVL off: those of one node).
        domains: scale-up domains.
        nic_gbytes_s: NIC rate per GPU in GB/s; None inside one domain.
        nvls: whether switches of the domain added up; None where not said.
        sharp: whether switches of the network added up.
        size_bytes: message size.
        busbw: GB/s.
    """

    gpus: tuple[str, ...]
    domain_gpus: int
    domains: int
    nic_gbytes_s: float | None
    operation: Collective
    size_bytes: float
    busbw: float
    source: str
    nvls: bool | None = None
    sharp: bool = False

    @property
    def system(self) -> str:
        """The system in words."""
        name = self.gpus[0]
        if self.domains == 1:
            said = {True: ", NVLS", False: ", ring", None: ""}[self.nvls]
            return f"{self.domain_gpus} × {name} in one domain{said}"
        said = " + SHARP" if self.sharp else ""
        return f"{self.domains} domains of {self.domain_gpus} × {name}{said}, {self.nic_gbytes_s:g} GB/s NIC per GPU"


_H100, _GB200, _GB300, _B200 = ("h100-sxm-80",), ("gb200-186",), ("gb300-279",), ("b200-sxm-180",)

PUBLISHED: Final[tuple[Published, ...]] = (
    Published(_H100, 8, 2, 25, "all-reduce", 16e9, 337, _GCP),
    Published(_H100, 8, 2, 25, "all-gather", 16e9, 189, _GCP),
    Published(_H100, 8, 2, 25, "all-to-all", 16e9, 40.2, _GCP),
    Published(_H100, 8, 2, 50, "all-reduce", 16e9, 488, _AWS),
    Published(_H100, 8, 2, 50, "all-gather", 16e9, 339, _AWS),
    Published(_H100, 8, 2, 50, "all-to-all", 16e9, 79.1, _AWS),
    Published(_GB200, 4, 4, 50, "all-reduce", 16e9, 191, _AWS),
    Published(_GB200, 4, 4, 50, "all-gather", 16e9, 191, _AWS),
    Published(_GB200, 4, 4, 50, "all-to-all", 16e9, 58.2, _AWS),
    Published(_GB300, 4, 8, 100, "all-reduce", 16e9, 376, _AWS),
    Published(_GB300, 4, 8, 100, "all-gather", 16e9, 366, _AWS),
    Published(_GB300, 4, 8, 100, "all-to-all", 16e9, 85.6, _AWS),
    Published(_B200, 8, 4, 50, "all-reduce", 16 * GIB, 382, "published nccl-tests results of 8×B200 over 4 nodes"),
    Published(
        _H100, 8, 8, 50, "all-reduce", 8 * GIB, 387, "published nccl-tests results of 8×H100 over 8 nodes", sharp=True
    ),
    Published(("h200-sxm-141",), 8, 1, None, "all-reduce", 16 * GIB, 480, _ONE_NODE, nvls=True),
    Published(("h200-sxm-141",), 8, 1, None, "all-reduce", 16 * GIB, 367, _ONE_NODE, nvls=False),
    Published(("h200-sxm-141",), 8, 1, None, "all-gather", 16 * GIB, 361, _ONE_NODE),
    Published(_B200, 8, 1, None, "all-reduce", 16 * GIB, 846, _ONE_NODE, nvls=True),
    Published(_B200, 8, 1, None, "all-reduce", 16 * GIB, 682, _ONE_NODE, nvls=False),
    Published(("mi300x",), 8, 1, None, "all-reduce", 4 * GIB, 313, "published rccl-tests results of one node"),
    Published(_GB200, 72, 1, None, "all-reduce", 8 * GIB, 835, _COREWEAVE),
    Published(_GB200, 72, 2, 50, "all-reduce", 8 * GIB, 793, _COREWEAVE),
    Published(_GB200, 72, 20, 50, "all-reduce", 16 * GIB, 406, _COREWEAVE),
)


def best_published(
    gpu: str, domain_gpus: float, domains: float, operation: Collective, nic_gbytes_s: float | None
) -> Published | None:
    """The highest published result for a GPU on the same shape of system, None when there is none.

    Inside one domain that is the same number of GPUs; over several the same domain, a NIC of the same rate (within a
    tenth), and at least as many domains, since bandwidth falls with their number.
    """
    fitting = [
        p
        for p in PUBLISHED
        if gpu in p.gpus
        and (p.operation, p.domain_gpus) == (operation, domain_gpus)
        and (
            p.domains == 1
            if domains < 2
            else p.domains >= max(2, domains)
            and nic_gbytes_s is not None
            and p.nic_gbytes_s is not None
            and abs(p.nic_gbytes_s / nic_gbytes_s - 1) < 0.1
        )
    ]
    return max(fitting, key=lambda p: p.busbw, default=None)
