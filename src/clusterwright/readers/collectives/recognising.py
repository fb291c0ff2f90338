"""Whether a beginning was printed by nccl-tests or by rccl-tests."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.readers.collectives.programs import program_in
from clusterwright.readers.collectives.structured import holds_json
from clusterwright.readers.readers import Head

_TABLE: Final = re.compile(
    r"^[ \t#>|\[\],\w<:.+-]{0,60}\b(?:size|bytes)[ \t#].{0,80}\btime[ \t].{0,40}\bbusbw\b", re.MULTILINE
)
_PARAMETERS: Final = re.compile(r"^[ \t#>|\w\[\],<:.+-]{0,60}nThreads? +\d+ +nGpus +\d+ +minBytes\b", re.MULTILINE)
_BANNER: Final = re.compile(r"\b[nr]ccl-tests(?: version|: Version)|Collective test (?:starting|concluded): *\w+_perf")
_FOOTER: Final = re.compile(r"Out of bounds values *:|Avg bus bandwidth *:")
_ROW: Final = re.compile(
    r"^[ \t]{0,12}\d{1,20} +\d{1,20} +(?:u?int\d*|char|half|float|double|bfloat16|f8e\w+|fp8_\w+) .{0,24}"
    r" \d+(?:\.\d+)? +\d+\.\d+ +\d+\.\d+ +\S+",
    re.MULTILINE,
)
_TORN: Final = re.compile(
    r"^(?:\[\d+\])?[ \t]{1,12}\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+.{0,200}NCCL INFO", re.MULTILINE
)
_FAILURE: Final = re.compile(r"Test (?:NCCL|CUDA|HIP) failure ")
_RCCL: Final = re.compile(
    r"\brccl-tests\b|\bRCCL version\b|\brccl-headers=|\blibrccl\b|^ROCm version *:", re.MULTILINE | re.I
)
_AMD: Final = re.compile(r"^[ \t#>]*Rank +\d+ .{0,200}\] *AMD ", re.MULTILINE)


def recognise_nccl(head: Head) -> int:
    """How sure it is that NVIDIA's tests printed this."""
    score = _score(head)
    return max(score - 30, 1) if score and _is_rccl(head) else score


def recognise_rccl(head: Head) -> int:
    """How sure it is that AMD's tests printed this."""
    score = _score(head)
    return score if score and _is_rccl(head) else 0


def _is_rccl(head: Head) -> bool:
    return bool(
        _RCCL.search(head.text) or _AMD.search(head.text) or ('"numCycle"' in head.text and '"busBw"' in head.text)
    )


def _score(head: Head) -> int:
    text = head.text
    if holds_json(text):
        return 95
    if _TABLE.search(text) or _PARAMETERS.search(text):
        return 98
    if _BANNER.search(text):
        return 92
    if _FOOTER.search(text) or _ROW.search(text):
        return 80
    if _TORN.search(text) or _FAILURE.search(text):
        return 60
    named = program_in(text) is not None or "nccl" in head.name or "rccl" in head.name
    return 40 if named and re.search(r"^[ \t#>]*Rank +\d+ .{0,40}Pid +\d+ on ", text, re.MULTILINE) else 0
