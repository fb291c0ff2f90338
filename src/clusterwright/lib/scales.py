"""Units of size and time in which people count, in bytes and seconds."""

from __future__ import annotations

from typing import Final

#: Bytes of a GiB (IEC 80000-13).
GIB: Final = 2.0**30
DAY_S: Final = 86400.0
