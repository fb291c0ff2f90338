"""What the columns of `nvidia-smi --query-…  --format=csv` mean, by their names without the unit in brackets.

Source: `nvidia-smi --help-query-gpu`, `--help-query-compute-apps`, `--help-query-accounted-apps`,
`--help-query-remapped-rows` of drivers 418 to 610. The header prints the unit; without one it is a count or °C.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.readers.nvidia.cells import Field, as_count, as_flag, as_text, as_width, as_word, in_unit

#: Columns that name the device or the time of a row.
IDENTITY: Final = {
    "index": "gpu", "uuid": "uuid", "gpu_uuid": "uuid", "pci.bus_id": "pci", "gpu_bus_id": "pci", "hostname": "node",
}  # fmt: skip
NAMES: Final = ("name", "gpu_name")
#: Columns that only rows about processes have.
PROCESS: Final = ("pid", "process_name")

_COUNTS: Final = {
    "pcie.link.gen.current": "pcie_generation", "pcie.link.gen.max": "pcie_generation_max",
    "retired_pages.single_bit_ecc.count": "retired_pages",
    "retired_pages.double_bit.count": "retired_pages", "remapped_rows.correctable": "remapped_rows",
    "remapped_rows.uncorrectable": "remapped_rows", "remapped_rows.correctable_inactive": "remapped_rows",
    "remapped_rows.uncorrectable_inactive": "remapped_rows", "pcie.replay_counter": "pcie_replays",
}  # fmt: skip
_LABELS: Final = {
    "retired_pages.single_bit_ecc.count": (("cause", "single-bit"),),
    "retired_pages.double_bit.count": (("cause", "double-bit"),),
    "remapped_rows.correctable": (("cause", "correctable"),),
    "remapped_rows.uncorrectable": (("cause", "uncorrectable"),),
    "remapped_rows.correctable_inactive": (("cause", "inactive correctable"),),
    "remapped_rows.uncorrectable_inactive": (("cause", "inactive uncorrectable"),),
}
_FLAGS: Final = {
    "persistence_mode": "persistence_mode", "mig.mode.current": "mig_mode", "mig.mode.pending": "mig_mode_pending",
    "ecc.mode.current": "ecc_mode", "ecc.mode.pending": "ecc_mode_pending",
    "retired_pages.pending": "retired_pages_pending",
    "remapped_rows.pending": "remap_pending", "remapped_rows.failure": "remap_failure",
    "reset_status.reset_required": "reset_required",
    "ecc.errors.uncorrected.aggregate.sram.thresholdexceeded": "sram_threshold_exceeded",
}  # fmt: skip
_TEXTS: Final = {
    "vbios_version": "vbios", "serial": "serial", "gpu_serial": "serial", "pstate": "performance_state",
    "compute_mode": "compute_mode", "driver_model.current": "driver_model", "addressing_mode": "addressing_mode",
    "fabric.state": "fabric_state", "fabric.status": "fabric_status", "fabric.cliqueid": "fabric_clique",
    "fabric.clusteruuid": "fabric_cluster", "retired_pages.address": "retired_page_address",
    "retired_pages.cause": "retired_page_cause", "compute_cap": "compute_capability",
    "inforom.checksum_validation": "inforom_checksum",
}  # fmt: skip
#: Column → (observation, unit where the header prints none).
_AMOUNTS: Final = {
    "temperature.gpu": ("temperature", "°C"), "temperature.memory": ("temperature_memory", "°C"),
    "temperature.gpu.tlimit": ("temperature_margin", "°C"), "power.limit": ("power_limit_requested", "W"),
    "enforced.power.limit": ("power_limit", "W"), "power.default_limit": ("power_limit_default", "W"),
    "power.min_limit": ("power_limit_min", "W"), "power.max_limit": ("power_limit_max", "W"),
    "fan.speed": ("fan_speed", "%"), "used_gpu_memory": ("process_memory", "MiB"),
    "used_memory": ("process_memory", "MiB"),
    "gpu_utilization": ("process_utilization", "%"), "mem_utilization": ("process_memory_utilization", "%"),
    "max_memory_usage": ("process_memory_max", "MiB"), "time": ("process_time", "ms"),
    "bbx.time_run": ("time_run", "s"),
}  # fmt: skip
_ECC: Final = re.compile(r"ecc\.errors\.(corrected|uncorrected)\.(volatile|aggregate)\.([a-z0-9_.]+)")
_CLOCKS: Final = re.compile(r"clocks\.(?:(current|max)\.)?(graphics|gr|sm|memory|mem|video)")
_REASON: Final = re.compile(r"clocks_(?:event|throttle)_reasons\.(\w+)")
_WORD: Final = re.compile(r"[A-Za-z_][\w.]*(?: \[[A-Za-z%/]{1,8}\])?")


def split_header(cell: str) -> tuple[str, str]:
    """(name in lower case, unit or "") of `memory.used [MiB]`."""
    name, _, unit = cell.strip().partition(" [")
    return name.strip().lower(), unit.rstrip("]").strip()


def field_of(cell: str) -> Field | None:
    """What a header cell means; None for a column that is not read."""
    name, unit = split_header(cell)
    if name in _COUNTS:
        return Field(_COUNTS[name], as_count, _LABELS.get(name, ()))
    if name in _FLAGS:
        return Field(_FLAGS[name], as_flag)
    if name in _TEXTS:
        return Field(_TEXTS[name], as_text)
    if name in _AMOUNTS:
        observed, usual = _AMOUNTS[name]
        return Field(observed, in_unit(unit or usual))
    return _patterned(name, unit)


def _patterned(name: str, unit: str) -> Field | None:
    head, _, tail = name.partition(".")
    if head in ("memory", "protected_memory") and tail in ("total", "used", "free", "reserved"):
        return Field(f"{head}_{tail}", in_unit(unit or "MiB"))
    if head == "utilization" and tail:
        return Field("utilization", in_unit(unit or "%"), (("part", tail),))
    if name in ("power.draw", "power.draw.average", "power.draw.instant", "module.power.draw.average",
                "module.power.draw.instant"):  # fmt: skip
        window = name.rsplit(".", 1)[1]
        labels = (("window", window),) if window != "draw" else ()
        return Field("power_module" if head == "module" else "power", in_unit(unit or "W"), labels)
    if name in ("pcie.link.width.current", "pcie.link.width.max"):
        return Field("pcie_width" + ("_max" if name.endswith("max") else ""), as_width)
    if (ecc := _ECC.fullmatch(name)) is not None:
        where = () if ecc[3] == "total" else (("location", _location(ecc[3])),)
        return Field(f"ecc_{ecc[1]}", as_count, (("scope", ecc[2]), *where))
    if (clock := _CLOCKS.fullmatch(name)) is not None:
        domain = {"gr": "graphics", "mem": "memory"}.get(clock[2], clock[2])
        return Field("clock_max" if clock[1] == "max" else "clock", in_unit(unit or "MHz"), (("domain", domain),))
    if name.startswith("remapped_rows.histogram."):
        return Field("remap_banks", as_count, (("availability", name.rsplit(".", 1)[1]),))
    if name.startswith("fabric.health."):
        return Field("fabric_health", as_word, (("check", tail.removeprefix("health.").replace("_", " ")),))
    if name == "gpu_recovery_action":
        return Field("recovery_action", as_word)
    return None


def _location(tail: str) -> str:
    return tail.replace("device_memory", "device memory").replace(".", " ").replace("_", " ")


def reason_column(cell: str) -> str:
    """`hw_slowdown` of a column about one clock event reason, `active` of the one with all as bits, else ""."""
    match = _REASON.fullmatch(split_header(cell)[0])
    return match[1] if match and match[1] != "supported" else ""


#: Bits of clocks_event_reasons.active. Source: nvmlClocksEventReasons in nvml.h.
REASON_BITS: Final = {
    0x1: "idle", 0x2: "applications clocks setting", 0x4: "sw power cap", 0x8: "hw slowdown", 0x10: "sync boost",
    0x20: "sw thermal slowdown", 0x40: "hw thermal slowdown", 0x80: "hw power brake slowdown",
    0x100: "display clock setting",
}  # fmt: skip

_GENERAL: Final = frozenset({"index", "name", "uuid", "timestamp", "count", "serial", "pid", "process_name", "time",
                             "driver_version", "hostname", "used_memory", "pstate", "compute_mode"})  # fmt: skip


def header_score(cells: list[str]) -> int:
    """How sure it is that the cells are a header of nvidia-smi."""
    if not cells or not all(_WORD.fullmatch(cell.strip()) for cell in cells if cell.strip()):
        return 0
    known = [split_header(cell)[0] for cell in cells if _known(cell)]
    own = [name for name in known if name not in _GENERAL]
    if 2 * len(known) < len(cells):
        return 0
    if own:
        return 92
    return (
        72 if {"driver_version", "used_memory", "pstate", "compute_mode"} & set(known) else 38 if len(known) > 1 else 0
    )


_OTHERS: Final = ("timestamp", "driver_version", "kmd_version", "count")
_FAMILIES: Final = (
    "pci.", "pcie.", "vgpu_", "clocks", "power", "inforom.", "ecc.", "platform.", "gpu.base", "edpp", "module.",
    "encoder.", "gsp.", "display_", "accounting.", "gom.", "retired_pages.",
)  # fmt: skip


def _known(cell: str) -> bool:
    name = split_header(cell)[0]
    if name in IDENTITY or name in NAMES or name in PROCESS or name in _OTHERS or name.startswith(_FAMILIES):
        return True
    return field_of(cell) is not None or bool(reason_column(cell))
