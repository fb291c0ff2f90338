"""Tables of plain `nvidia-smi` whose beginning is cut off: rows of GPUs without the headings over them."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.readers.cleaning import Line

#: The first line of a GPU: `|   1  NVIDIA A100-SXM4-80GB          On  | 00000000:2A:00.0 Off |                    0 |`.
ROW: Final = re.compile(
    r"^[ \t]*\|[ \t]+\d{1,3}[ \t]+\S[^|\n]{0,60}?[ \t](?P<state>On|Off|WDDM|TCC|MCDM)[ \t]+"
    r"\|[ \t]+[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7][ \t]+(?:On|Off|N/A)[ \t]+\|[^|\n]+\|[ \t]*$",
    re.MULTILINE,
)
_BORDER: Final = "+----------------------+----------------------+----------------------+"
_RULE: Final = "|======================+======================+======================|"


def with_head(lines: list[Line]) -> tuple[list[Line], bool]:
    """The lines with the headings that their rows need, and whether those were missing."""
    if any("Bus-Id" in line.text for line in lines) or not any(ROW.match(line.text) for line in lines):
        return lines, False
    found = next(match for line in lines if (match := ROW.match(line.text)))
    third = "Persistence-M" if found["state"] in ("On", "Off") else "Driver-Model"
    heads = [
        f"| GPU  Name  {third} | Bus-Id  Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp  Perf  Pwr:Usage/Cap | Memory-Usage | GPU-Util  Compute M. |",
    ]
    if any(re.match(r"[ \t]*\|[ \t]+\|[ \t]+\|[^|]+\|", line.text) for line in lines):
        heads.append("| | | MIG M. |")
    first = next(n for n, line in enumerate(lines) if line.text.lstrip().startswith(("|", "+")))
    number = lines[first].number
    added = [Line(number, text) for text in (_BORDER, *heads, _RULE)]
    return [*lines[:first], *added, *lines[first:]], True
