"""`dcgmi discovery -c`: GPUs with their MIG instances.

Source: dcgmi/Query.cpp of DCGM 2 to 4. Observations: `gpu_listed` (uuid; subject gpu), `mig_instance` (as printed;
subject gpu, instance, and compute_instance of a compute instance). Conditions: `attached_gpus`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clusterwright.model.observations import Run
from clusterwright.readers.building import RunBuilder
from clusterwright.readers.cleaning import Source
from clusterwright.readers.readers import Head, Reader
from clusterwright.readers.refusing import Refused

_ROW: Final = re.compile(r"\|\s*(?P<left>[^|]{1,60}?)\s*\|\s*(?P<right>[^|]{1,120}?)\s*\|$")
_GPU: Final = re.compile(r"GPU (?P<gpu>\d{1,4})$")
_INSTANCE: Final = re.compile(r"-> (?P<kind>C?I) (?P<gpu>\d{1,4})/(?P<instance>\d{1,4})(?:/(?P<compute>\d{1,4}))?$")
_UUID: Final = re.compile(r"(?P<uuid>GPU-[0-9a-f-]{8,40})")


def recognise(head: Head) -> int:
    """How sure this is a hierarchy of instances."""
    return 96 if re.search(r"^\|\s*Instance Hierarchy\s*\|", head.text, re.MULTILINE) else 0


def read(source: Source) -> Sequence[Run]:
    """The hierarchy as one run."""
    run = RunBuilder("dcgmi discovery")
    gpus: set[str] = set()
    ruled = False
    for line in source.lines():
        text = line.text.strip()
        if text[:1] == "+":
            ruled = text[-1] == "+"
        elif text[:1] == "|":
            ruled = False
            _read_row(run, gpus, line.number, text)
    if run.bare:
        raise Refused("the hierarchy holds no GPU")
    run.condition("attached_gpus", float(len(gpus)))
    if not ruled:
        run.missing("the end of the table")
    return [run.build()]


def _read_row(run: RunBuilder, gpus: set[str], number: int, text: str) -> None:
    row = _ROW.match(text)
    if row is None:
        if "Instance Hierarchy" not in text:
            run.reject(number, text, "the row is cut")
    elif gpu := _GPU.match(row["left"]):
        uuid = _UUID.search(row["right"])
        gpus.add(gpu["gpu"])
        run.observe("gpu_listed", uuid["uuid"] if uuid else row["right"], (("gpu", gpu["gpu"]),), number)
    elif instance := _INSTANCE.match(row["left"]):
        pairs = (
            ("gpu", instance["gpu"]),
            ("instance", instance["instance"]),
            ("compute_instance", instance["compute"]),
        )
        run.observe("mig_instance", row["right"], tuple((k, v) for k, v in pairs if v), number)
    else:
        run.reject(number, text, "neither a GPU nor an instance")


READER: Final = Reader("dcgm-hierarchy", "dcgmi discovery -c: MIG instances of each GPU", recognise, read)
