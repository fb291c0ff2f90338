"""nvidia-smi in its forms, rocm-smi and their kin."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.readers import Reader

READERS: Final[tuple[Reader, ...]] = ()
