"""Systems with published training runs, made from the catalogue's GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from clusterwright.files.catalogue import load_catalogue
from clusterwright.physics.training.systems import System, system_of

#: Name in published tables → GPU, GPUs per NVLink domain, GB/s of the NIC of one GPU.
_BUILT: Final = {
    "DGX-H100": ("h100-sxm-80", 8, 50.0),
    "DGX-H200": ("h200-sxm-141", 8, 50.0),
    "DGX-B200": ("b200-sxm-180", 8, 50.0),
    "DGX-B300": ("b300-sxm-270", 8, 100.0),
    "DGX-GB200": ("gb200-186", 72, 50.0),
    "DGX-GB300": ("gb300-279", 72, 100.0),
}


def systems() -> dict[str, System]:
    """Systems by name; H100-500W is torchtitan's, with HBM2e at 2.4 TB/s and a 500 W limit."""
    found = {}
    catalogue = load_catalogue()
    for name, (gpu, domain, nic) in _BUILT.items():
        entry = catalogue.gpu(gpu)
        assert entry.scale_up is not None
        rate = float(entry.scale_up.per_direction.value)
        found[name] = system_of(entry, domain=domain, link_bytes_s=rate, nic_bytes_s=nic * 1e9)
        assert found[name].name == name
    found["H100-500W"] = replace(found["DGX-H100"], name="H100-500W", memory_bytes_s=2.4e12)
    return found


SYSTEMS: Final = systems()
