"""What the keys of rocm-smi and the paths of amd-smi mean.

rocm-smi prints the unit in the key; spelling and capitals changed between releases, so keys are compared in lower
case. amd-smi prints `MB` for 2**20 bytes (amdsmi_commands.py divides by 1024 twice); in CSV it prints no unit at all,
and the units here are those of its text output. Source: rocm_smi.py of ROCm 3.5 to 7.0, amd-smi 23 to 26.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.model.observations import Lack, NoValue, Value
from clusterwright.readers.nvidia.cells import Field, Read, as_amount, as_count, as_text, in_unit, nothing
from clusterwright.readers.values import read_amount, unreadable

#: Spelling of a unit by amd-smi → ours.
AMD_UNITS: Final = {
    "C": "°C",
    "°C": "°C",
    "MB": "MiB",
    "KB": "KiB",
    "GB": "GiB",
    "Mb/s": "Mb/s",
    "GT/s": "GT/s",
    "us": "µs",
}

_CLOCK: Final = re.compile(r"(?P<domain>[a-z0-9_]{2,12}) clock (?:speed|level)")
_SENSOR: Final = re.compile(r"temperature \(sensor (?P<sensor>[a-z0-9 ]{2,20})\) \((?P<unit>c|°c)\)")
_IN_BRACKETS: Final = re.compile(r"\(([\d.]{1,10})\s*mhz\)", re.I)


def key_of(label: str) -> str:
    """A key of rocm-smi in lower case, without a colon at its end and with single spaces."""
    return " ".join(label[:120].lower().split()).rstrip(":").strip()


def as_clock(text: str) -> Value:
    """`(300Mhz)`, `0 (300Mhz)`, `1: (300Mhz)`, `300Mhz`."""
    if (lack := nothing(text)) is not None:
        return lack
    match = _IN_BRACKETS.search(text[:80])
    return (
        in_unit("MHz")(match[1]) if match else as_amount(text) if "hz" in text.lower() else unreadable(text, "no clock")
    )


def as_node(text: str) -> Value:
    """A NUMA node; -1 is the kernel's mark for none."""
    return NoValue(Lack.ABSENT, "-1", "no NUMA node") if text.strip() == "-1" else as_text(text)


def _rocm() -> dict[str, Field]:
    fields: dict[str, Field] = {
        "gpu use (%)": Field("utilization", in_unit("%"), (("part", "gpu"),)),
        "gpu memory use (%)": Field("memory_use", in_unit("%"), (("measure", "busy"),)),
        "gpu memory read/write activity (%)": Field("memory_use", in_unit("%"), (("measure", "busy"),)),
        "gpu memory allocated (vram%)": Field("memory_use", in_unit("%"), (("measure", "allocated"),)),
        "pcie replay count": Field("pcie_replays", as_count),
        "xgmi error count": Field("xgmi_errors", as_count),
        "average graphics package power (w)": Field("power", in_unit("W"), (("window", "average"),)),
        "current socket graphics package power (w)": Field("power", in_unit("W"), (("window", "instant"),)),
        "max graphics package power (w)": Field("power_limit", in_unit("W")),
        "fan speed (%)": Field("fan_speed", in_unit("%")),
        "(topology) numa node": Field("numa_node", as_node),
        "(topology) numa affinity": Field("numa_affinity", as_node),
    }  # fmt: skip
    for key, name in {
        "performance level": "performance_state", "serial number": "serial", "vbios version": "vbios",
        "memory partition": "memory_partition", "compute partition": "compute_partition", "gfx version": "architecture",
        "card sku": "sku", "unique id": "unique_id",
    }.items():  # fmt: skip
        fields[key] = Field(name, as_text)
    for part, prefix in (("vram", "memory"), ("vis_vram", "visible_memory"), ("gtt", "gtt")):
        fields[f"{part} total memory (b)"] = Field(f"{prefix}_total", in_unit("B"))
        fields[f"{part} total used memory (b)"] = Field(f"{prefix}_used", in_unit("B"))
    return fields


_ROCM: Final = _rocm()


def rocm_field(label: str) -> Field | None:
    """What a key of rocm-smi means; None for a key that is not read, such as the levels `0`, `1` of the clocks."""
    key = key_of(label)
    if (field := _ROCM.get(key)) is not None:
        return field
    if (sensor := _SENSOR.fullmatch(key)) is not None:
        name = "temperature_memory" if sensor["sensor"] == "memory" else "temperature"
        labels = () if name == "temperature_memory" else (("sensor", sensor["sensor"]),)
        return Field(name, in_unit("°C"), labels)
    if (clock := _CLOCK.fullmatch(key)) is not None and "pcie" not in key and key.endswith(("speed", "level")):
        return Field("clock", as_clock, (("domain", clock["domain"]),)) if key.endswith("speed") else None
    return None


def as_bad_pages(text: str) -> Value:
    """0 for `No bad pages found.`; a list of pages has its own lines."""
    return 0.0 if text.strip().rstrip(".").lower() == "no bad pages found" else as_count(text)


def in_amd_unit(usual: str) -> Read:
    """Reader of amd-smi cells: `141 W`, `N/A`, and in CSV a bare number of the usual unit."""

    def read(text: str) -> Value:
        if (lack := nothing(text)) is not None:
            return lack
        word = text.strip()
        if word.startswith("N/A "):
            return nothing("N/A") or as_text(word)
        return read_amount(word if re.search(r"[A-Za-z%°]", word) else f"{word} {usual}", AMD_UNITS)

    return read


#: Last two labels of an amd-smi path in lower case → meaning.
AMD: Final[dict[str, Field]] = {
    "power/socket_power": Field("power", in_amd_unit("W")), "power/current_power": Field("power", in_amd_unit("W")),
    "limit/max_power": Field("power_limit_max", in_amd_unit("W")),
    "limit/socket_power": Field("power_limit", in_amd_unit("W")),
    "limit/slowdown_hotspot_temperature": Field("temperature_slowdown", in_amd_unit("°C")),
    "usage/gfx_activity": Field("utilization", in_amd_unit("%"), (("part", "gpu"),)),
    "usage/umc_activity": Field("utilization", in_amd_unit("%"), (("part", "memory"),)),
    "temperature/edge": Field("temperature", in_amd_unit("°C"), (("sensor", "edge"),)),
    "temperature/hotspot": Field("temperature", in_amd_unit("°C"), (("sensor", "junction"),)),
    "temperature/mem": Field("temperature_memory", in_amd_unit("°C")),
    "pcie/width": Field("pcie_width", as_count), "pcie/replay_count": Field("pcie_replays", as_count),
    "bus/max_pcie_width": Field("pcie_width_max", as_count),
    "ecc/total_correctable_count": Field("ecc_corrected", as_count, (("scope", "volatile"),)),
    "ecc/total_uncorrectable_count": Field("ecc_uncorrected", as_count, (("scope", "volatile"),)),
    "ecc/total_deferred_count": Field("ecc_deferred", as_count, (("scope", "volatile"),)),
    "mem_usage/total_vram": Field("memory_total", in_amd_unit("MB")),
    "mem_usage/used_vram": Field("memory_used", in_amd_unit("MB")),
    "mem_usage/free_vram": Field("memory_free", in_amd_unit("MB")),
    "vram/size": Field("memory_total", in_amd_unit("MB")), "vram/vram_size": Field("memory_total", in_amd_unit("MB")),
    "fan/usage": Field("fan_speed", in_amd_unit("%")), "asic/asic_serial": Field("serial", as_text),
    "partition/compute_partition": Field("compute_partition", as_text),
    "partition/accelerator_partition": Field("compute_partition", as_text),
    "partition/memory_partition": Field("memory_partition", as_text), "vbios/version": Field("vbios", as_text),
    "retired": Field("retired_pages", as_bad_pages),
    "numa/node": Field("numa_node", as_node), "process_isolation": Field("process_isolation", as_text),
    "gfx_0/clk": Field("clock", in_amd_unit("MHz"), (("domain", "graphics"),)),
    "mem_0/clk": Field("clock", in_amd_unit("MHz"), (("domain", "memory"),)),
}  # fmt: skip

#: Columns of `amd-smi monitor` (text and CSV), and of the CSV of `metric`, where a path is only its last label.
MONITOR: Final[dict[str, Field]] = {
    column: AMD[path]
    for path, columns in {
        "power/socket_power": "power power_usage socket_power pwr",
        "temperature/hotspot": "gpu_temp gpu_t hotspot_temperature hotspot",
        "temperature/edge": "edge",
        "temperature/mem": "mem_temp mem_t memory_temperature",
        "usage/gfx_activity": "gfx_util gfx% gfx gfx_activity",
        "usage/umc_activity": "mem_util mem% umc_activity",
        "gfx_0/clk": "gfx_clock gfx_clk",
        "mem_0/clk": "mem_clock mem_clk",
        "ecc/total_correctable_count": "single_ecc single_bit_ecc total_correctable_count",
        "ecc/total_uncorrectable_count": "double_ecc double_bit_ecc total_uncorrectable_count",
        "pcie/replay_count": "pcie_replay",
        "mem_usage/used_vram": "vram_used used_vram",
        "mem_usage/total_vram": "vram_total total_vram",
    }.items()
    for column in columns.split()
}
