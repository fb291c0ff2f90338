"""gdscheck -p: which file systems GPUDirect Storage can reach directly, and whether a copy may stand in for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import NoValue, Run, Weight
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Line, Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused
from clusterwright.readers.values import lacking, read_flag

_VERSIONS: Final = re.compile(
    r"(GDS release version|nvidia_fs version|libcufile version|Platform|Cuda Driver Version Installed):\s*(\S+)"
)
_SECTION: Final = re.compile(r"\s*(ENVIRONMENT|DRIVER CONFIGURATION|CUFILE CONFIGURATION|GPU INFO|PLATFORM INFO):?\s*$")
_PAIR: Final = re.compile(r"\s*(?:--)?([A-Za-z][\w .()-]{0,60}?)\s*: ?(\S.*)")
_GPU: Final = re.compile(r"\s*GPU index (\d+) (.+?) bar:\d+ bar size \(MiB\):\d+ (supports GDS|does not support GDS)")
_FORCED: Final = "properties.force_compat_mode"
_ALLOWED: Final = ("properties.use_compat_mode", "properties.allow_compat_mode")


def recognise(head: Head) -> int:
    """Sure by the version line."""
    if re.search(r"^[ \t]*GDS release version:", head.text, re.MULTILINE):
        return 100
    return 90 if "CUFILE CONFIGURATION" in head.text and "DRIVER CONFIGURATION" in head.text else 0


def read(source: Source) -> Sequence[Run]:
    """The one run of the file."""
    builder = RunBuilder("gdscheck")
    section, seen = "", set[str]()
    for line in source.lines():
        if found := _SECTION.match(line.text):
            section = found[1]
            seen.add(section)
        elif found := _GPU.match(line.text):
            subject = (("gpu", found[1]),)
            builder.observe("gpu", found[2], subject, line.number)
            builder.observe("gds_supported", found[3] == "supports GDS", subject, line.number)
        elif found_versions := _VERSIONS.findall(line.text):
            for key, value in found_versions:
                _version(builder, key, value)
        elif "verification" in line.text.lower():
            builder.observe("platform_verification", line.text.strip()[:100], (), line.number)
        elif section:
            _row(builder, section, line)
    if not seen and not builder.version:
        raise Refused("no section of gdscheck")
    for part in ("DRIVER CONFIGURATION", "CUFILE CONFIGURATION", "GPU INFO", "PLATFORM INFO"):
        if part not in seen:
            builder.missing(f"the section {part}")
    return [builder.build()]


def _version(builder: RunBuilder, key: str, value: str) -> None:
    if key.startswith("GDS"):
        builder.version = value
    else:
        builder.condition(key.lower().replace(" version", "").replace(" ", "_"), value)


def _row(builder: RunBuilder, section: str, line: Line) -> None:
    found = _PAIR.match(line.text)
    if found is None:
        return
    key, value = found[1].strip(), found[2].strip()
    if section == "DRIVER CONFIGURATION":
        said = lacking(value) if value.lower() != "unsupported" else None
        builder.observe("gds_driver", said or value[:80], (("driver", key),), line.number)
    elif section == "CUFILE CONFIGURATION":
        _property(builder, key, value, line.number)
    elif key.upper().startswith("IOMMU") and "enabled" in value.lower():
        builder.notice("iommu-enabled", f"{key}: {value}; the direct path may be slow or absent", Weight.WARNING)


def _property(builder: RunBuilder, key: str, value: str, number: int) -> None:
    flag = read_flag(value)
    builder.observe("gds_property", value[:120], (("property", key),), number)
    if key in _ALLOWED and not isinstance(flag, NoValue):
        builder.observe("compat_mode", flag, (), number)
        if flag:
            message = f"{key} is true: where no direct path exists, cuFile copies through the host without a word"
            builder.notice("compat-mode-allowed", message + "; a gdsio result proves none", Weight.WARNING, number)
    if key == _FORCED and flag is True:
        message = "the compatibility mode is forced: nothing takes the direct path"
        builder.notice("compat-mode-forced", message, Weight.ERROR, number)


GDSCHECK: Final = Reader("gdscheck", "gdscheck -p: support of GPUDirect Storage", recognise, read)
