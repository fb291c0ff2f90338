"""What the lines of `nvidia-smi -q` and the elements of `nvidia-smi -q -x` mean.

A key is the path below the GPU, each label in lower case with `_` for everything else. Both forms and all drivers from
400 to 610 share the table; the XML elements are those of nvsmi_device_v9 to v13.dtd. A label that is in no entry is
not read (part numbers, supported clocks, vGPU licences).
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from clusterwright.model.observations import Labels
from clusterwright.readers.nvidia.cells import Field, Read, as_amount, as_count, as_flag, as_text, as_width, as_word


def slug(label: str) -> str:
    """`gpu_t_limit_temp` of `GPU T.Limit Temp`; no label of the tool is longer than 80 characters."""
    return re.sub(r"[^a-z0-9]+", "_", label[:80].lower()).strip("_")


class _Add(Protocol):
    def __call__(self, name: str, read: Read, keys: str, labels: Labels = ()) -> None: ...


def _table() -> dict[str, Field]:
    table: dict[str, Field] = {}

    def add(name: str, read: Read, keys: str, labels: Labels = ()) -> None:
        for key in keys.split():
            table[key] = Field(name, read, labels)

    add("architecture", as_text, "product_architecture")
    add("serial", as_text, "serial_number serial")
    add("minor_number", as_count, "minor_number")
    add("vbios", as_text, "vbios_version")
    add("gsp_firmware", as_text, "gsp_firmware_version")
    add("persistence_mode", as_flag, "persistence_mode")
    add("addressing_mode", as_text, "addressing_mode")
    add("mig_mode", as_flag, "mig_mode/current mig_mode/current_mig")
    add("mig_mode_pending", as_flag, "mig_mode/pending mig_mode/pending_mig")
    add("driver_model", as_text, "driver_model/current driver_model/current_dm")
    add("virtualization", as_word, "gpu_virtualization_mode/virtualization_mode gpu_virtualization_mode/virtualization")
    add("recovery_action", as_word, "gpu_recovery_action")
    add("reset_required", as_flag, "gpu_reset_status/reset_required")
    add("drain_and_reset_recommended", as_flag, "gpu_reset_status/drain_and_reset_recommended")
    add("performance_state", as_text, "performance_state")
    add("compute_mode", as_text, "compute_mode")
    add("fan_speed", as_amount, "fan_speed")
    add("module_id", as_count, "module_id gpu_module_id platform_info/module_id platforminfo/module_id")
    for kind in ("chassis_serial_number", "slot_number", "tray_index", "host_id", "gpu_fabric_guid"):
        add(f"platform_{kind}", as_text, f"platform_info/{kind} platforminfo/{kind}")
    for tail, xml, name in (
        ("current", "current_link_gen", "pcie_generation"),
        ("max", "max_link_gen", "pcie_generation_max"),
    ):
        add(name, as_count, f"pci/gpu_link_info/pcie_generation/{tail} pci/pci_gpu_link_info/pcie_gen/{xml}")
    for tail, xml, name in (
        ("current", "current_link_width", "pcie_width"),
        ("max", "max_link_width", "pcie_width_max"),
    ):
        add(name, as_width, f"pci/gpu_link_info/link_width/{tail} pci/pci_gpu_link_info/link_widths/{xml}")
    add("pcie_replays", as_count, "pci/replays_since_reset pci/replay_counter")
    add("pcie_replay_rollovers", as_count, "pci/replay_number_rollovers pci/replay_rollover_counter")
    add("pcie_transmitted", as_amount, "pci/tx_throughput pci/tx_util")
    add("pcie_received", as_amount, "pci/rx_throughput pci/rx_util")
    for kind in ("total", "reserved", "used", "free"):
        add(f"memory_{kind}", as_amount, f"fb_memory_usage/{kind}")
        add(f"bar1_{kind}", as_amount, f"bar1_memory_usage/{kind}")
    for part, keys in {
        "gpu": "gpu gpu_util", "memory": "memory memory_util", "encoder": "encoder encoder_util",
        "decoder": "decoder decoder_util", "jpeg": "jpeg jpeg_util", "ofa": "ofa ofa_util",
    }.items():  # fmt: skip
        add("utilization", as_amount, " ".join(f"utilization/{key}" for key in keys.split()), (("part", part),))
    _add_reliability(add)
    _add_physics(add)
    return table


def _add_reliability(add: _Add) -> None:
    add("ecc_mode", as_flag, "ecc_mode/current ecc_mode/current_ecc")
    add("ecc_mode_pending", as_flag, "ecc_mode/pending ecc_mode/pending_ecc")
    for flag in ("channel_repair_pending", "tpc_repair_pending", "unrepairable_memory"):
        add(flag, as_flag, f"ecc_errors/{flag}")
    add("sram_threshold_exceeded", as_flag, "ecc_errors/aggregate/sram_threshold_exceeded")
    pages = "retired_pages"
    add(pages, as_count, f"{pages}/single_bit_ecc {pages}/multiple_single_bit_retirement/retired_count",
        (("cause", "single-bit"),))  # fmt: skip
    add(
        pages,
        as_count,
        f"{pages}/double_bit_ecc {pages}/double_bit_retirement/retired_count",
        (("cause", "double-bit"),),
    )
    waiting = ("pending_page_blacklist", "pending", "pending_retirement", "pending_page_retirement")
    add("retired_pages_pending", as_flag, " ".join(f"{pages}/{key}" for key in waiting))
    rows = "remapped_rows"
    for cause, keys in {
        "correctable": "correctable_error remapped_row_corr", "uncorrectable": "uncorrectable_error remapped_row_unc",
        "inactive correctable": "inactive_correctable_error remapped_row_inactive_corr",
        "inactive uncorrectable": "inactive_uncorrectable_error remapped_row_inactive_unc",
    }.items():  # fmt: skip
        add(rows, as_count, " ".join(f"{rows}/{key}" for key in keys.split()), (("cause", cause),))
    add("remap_pending", as_flag, f"{rows}/pending {rows}/remapped_row_pending")
    add("remap_failure", as_flag, f"{rows}/remapping_failure_occurred {rows}/remapped_row_failure")
    for level in ("max", "high", "partial", "low", "none"):
        add("remap_banks", as_count, f"{rows}/bank_remap_availability_histogram/{level} "
            f"{rows}/row_remapper_histogram/row_remapper_histogram_{level}", (("availability", level),))  # fmt: skip
    add("fabric_state", as_text, "fabric/state")
    add("fabric_status", as_text, "fabric/status")
    add("fabric_clique", as_text, "fabric/cliqueid")
    add("fabric_cluster", as_text, "fabric/clusteruuid")
    for check in ("summary", "bandwidth", "route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery",
                  "incorrect_configuration", "partition_assigned"):  # fmt: skip
        add("fabric_health" if check != "partition_assigned" else "fabric_partition_assigned", as_word,
            f"fabric/health/{check}", (("check", check.replace("_", " ")),))  # fmt: skip


def _add_physics(add: _Add) -> None:
    heat = "temperature"
    add(heat, as_amount, f"{heat}/gpu_current_temp {heat}/gpu_temp {heat}/gpu")
    margins = ("gpu_t_limit_temp", "gpu_current_t_limit_temp", "gpu_temp_tlimit", "gpu_t_limit")
    add("temperature_margin", as_amount, " ".join(f"{heat}/{key}" for key in margins))
    for name, text, xml in (
        ("shutdown", "gpu_shutdown", "max"), ("slowdown", "gpu_slowdown", "slow"),
        ("max_operating", "gpu_max_operating", "max_gpu"), ("memory_max_operating", "memory_max_operating", "max_mem"),
    ):  # fmt: skip
        add(f"{heat}_{name}", as_amount, f"{heat}/{text}_temp {heat}/gpu_temp_{xml}_threshold")
        add(f"{heat}_margin_{name}", as_amount, f"{heat}/{text}_t_limit_temp {heat}/gpu_temp_{xml}_tlimit_threshold")
    add("temperature_memory", as_amount, f"{heat}/memory_current_temp {heat}/memory_temp")
    for section, name in (
        ("power_readings", "power"), ("gpu_power_readings", "power"),
        ("gpu_memory_power_readings", "power_memory"), ("module_power_readings", "power_module"),
    ):  # fmt: skip
        add(name, as_amount, f"{section}/power_draw")
        add(name, as_amount, f"{section}/average_power_draw", (("window", "average"),))
        add(
            name,
            as_amount,
            f"{section}/instantaneous_power_draw {section}/instant_power_draw",
            (("window", "instant"),),
        )
        inner = (section, f"{section}/gpu_ceiling_power_limit")
        for limit, keys in {
            "": "enforced_power_limit current_power_limit", "_requested": "requested_power_limit power_limit",
            "_default": "default_power_limit", "_min": "min_power_limit", "_max": "max_power_limit",
        }.items():  # fmt: skip
            add(
                f"{name}_limit{limit}", as_amount, " ".join(f"{place}/{key}" for place in inner for key in keys.split())
            )
    for domain, key in (("graphics", "graphics"), ("sm", "sm"), ("memory", "memory"), ("video", "video")):
        xml = {"memory": "mem"}.get(key, key) + "_clock"
        add("clock", as_amount, f"clocks/{key} clocks/{xml}", (("domain", domain),))
        add("clock_max", as_amount, f"max_clocks/{key} max_clocks/{xml}", (("domain", domain),))


#: Path below a GPU → its meaning.
FIELDS: Final[dict[str, Field]] = _table()

#: Sections whose single line `N/A` means that every value below has none; one value stands for them all.
SECTIONS: Final[dict[str, tuple[Field, ...]]] = {
    "remapped_rows": (FIELDS["remapped_rows/pending"], FIELDS["remapped_rows/remapping_failure_occurred"],
                      FIELDS["remapped_rows/uncorrectable_error"]),
    "retired_pages": (FIELDS["retired_pages/pending"], FIELDS["retired_pages/double_bit_ecc"]),
    "utilization": (FIELDS["utilization/gpu"],), "temperature": (FIELDS["temperature/gpu"],),
    "ecc_mode": (FIELDS["ecc_mode/current"],), "fb_memory_usage": (FIELDS["fb_memory_usage/total"],),
    "mig_mode": (FIELDS["mig_mode/current"],), "fabric": (FIELDS["fabric/state"],),
    "power_readings": (FIELDS["power_readings/power_draw"],),
}  # fmt: skip
