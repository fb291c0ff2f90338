"""The kind `rocm-smi`: which of the forms of rocm-smi and amd-smi an output is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.documents import find_json, load_json
from clusterwright.readers.nvidia.amd_smi import read_amd_csv, read_amd_json, read_amd_text
from clusterwright.readers.nvidia.devices import LARGEST, runs_of_hosts
from clusterwright.readers.nvidia.rocm import read_rocm_csv, read_rocm_json, read_rocm_text
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_ROCM_JSON: Final = re.compile(r'[{,]\s{0,64}"(?:card\d+|system)"\s*:\s*\{')
_AMD_JSON: Final = re.compile(r'"gpu"\s*:\s*\d+')
_AMD_KEY: Final = re.compile(
    r'"(?:asic|kfd_id|mem_usage|gfx_activity|socket_power|total_uncorrectable_count|link_type|bdf)"'
)
_AMD_TEXT: Final = re.compile(r"^GPU: \d+[ \t]*\n[ \t]+[A-Z][A-Z0-9_]+:", re.MULTILINE)
_MONITOR: Final = re.compile(
    r"^[ \t]*(?:TIMESTAMP[ \t]+)?GPU[ \t]+(?:XCP[ \t]+)?"
    r"(?:POWER|PWR|VRAM_USED|GPU_T|GPU_TEMP|GFX_UTIL|GFX%|MEM_UTIL|ENC_UTIL|ENC%|SINGLE_ECC|PCIE_REPLAY)(?=\s)",
    re.MULTILINE,
)
_KEYED: Final = re.compile(r"^[ \t]*GPU\[\d+\]\s*: ", re.MULTILINE)
_CONCISE: Final = re.compile(r"^[ \t]*(?:GPU|Device)[ \t][^\n]{0,200}\bTemp\b[^\n]{1,200}\bVRAM%", re.MULTILINE)
_ROCM_CSV: Final = re.compile(r"^[ \t]*device,[^\n]{1,16000}\n[ \t]*(?:card\d+|system),", re.MULTILINE | re.I)
_AMD_CSV: Final = re.compile(
    r"^(?:timestamp,)?gpu,(?:gpu_bdf|xcp|power_usage|market_name|gfx_activity|vendor_id|bdf)\b", re.MULTILINE
)


def recognise(head: Head) -> int:
    """By the banners of the tools, their JSON keys, or their way to name a GPU."""
    text = head.text
    if "ROCm System Management Interface" in text or "End of ROCm SMI Log" in text or "| AMD-SMI " in text:
        return 99
    if text.lstrip().startswith(("{", "[")) or find_json(text) is not None:
        if _ROCM_JSON.search(text[:4000]) and ("card0" in text or "DRM devices" in text):
            return 96
        return 86 if _AMD_JSON.search(text) and _AMD_KEY.search(text) else 0
    if "LINK TYPE TABLE:" in text or "AMDSMI Tool:" in text or _AMD_TEXT.search(text) or _MONITOR.search(text):
        return 92
    return 88 if any(form.search(text) for form in (_KEYED, _CONCISE, _ROCM_CSV, _AMD_CSV)) else 0


def read(source: Source) -> Sequence[Run]:
    """JSON as a whole; everything else by lines, for each host."""
    found = find_json(source.head)
    plain = "ROCm System" in source.head or "| AMD-SMI " in source.head
    if found is not None and not plain:
        return _read_json(source.text())
    return runs_of_hosts(source, _read_lines)


def _read_json(text: str) -> list[Run]:
    if len(text) > LARGEST:
        raise Refused(f"larger than {LARGEST // 2**20} MiB; split it")
    span = find_json(text)
    begin = span[0] if span else 0
    end = max(text.rfind("}"), text.rfind("]")) + 1
    body = text[begin:end] if end > begin else text[begin:]
    document = load_json(body, first_line=text.count("\n", 0, begin) + 1)
    value = document.value
    if isinstance(value, dict) and "gpu_data" not in value and "gpu" not in value:
        return read_rocm_json(document)
    if isinstance(value, (list, dict)):
        return read_amd_json(document)
    raise Refused("an object or a list was expected", 1, body)


def _read_lines(lines: list[Line], node: str) -> list[Run]:
    text = "\n".join(line.text[:400] for line in lines[:400])
    if _ROCM_CSV.search(text):
        return read_rocm_csv(lines, node)
    if _AMD_CSV.search(text):
        return read_amd_csv(lines, node)
    rocm = "ROCm System" in text or "End of ROCm" in text or _KEYED.search(text) or _CONCISE.search(text)
    return read_rocm_text(lines, node) if rocm else read_amd_text(lines, node)


READER: Final = Reader("rocm-smi", "rocm-smi and amd-smi: text, JSON, CSV", recognise, read)
