"""Versions of fio: what the number decides, and which are refused."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.readers.refusing import Refused

_VERSION: Final = re.compile(r"(?:fio-)?(\d{1,3})\.(\d{1,4})")


def major_version(text: str, line: int) -> int:
    """2 or 3 of `fio-2.17`, `fio-3.36-17-gb2ce`; 2.99 prints as 3 does.

    Raises:
        Refused: for a version whose units are not known.
    """
    found = _VERSION.match(text)
    if found is None:
        raise Refused("the version of fio decides its units and is not readable", line, text)
    major, minor = int(found[1]), int(found[2])
    if (major, minor) >= (2, 99) and major < 4:
        return 3
    if major == 2:
        return 2
    raise Refused("units of this version of fio are not known (2 and 3 are)", line, text)
