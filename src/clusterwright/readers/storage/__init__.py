"""Storage benchmarks: fio, ior, mdtest, IO500, elbencho, gdsio, and the GPUDirect Storage check."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.readers import Reader
from clusterwright.readers.storage.elbencho import ELBENCHO
from clusterwright.readers.storage.fio import FIO
from clusterwright.readers.storage.gdscheck import GDSCHECK
from clusterwright.readers.storage.gdsio import GDSIO
from clusterwright.readers.storage.io500 import IO500
from clusterwright.readers.storage.ior import IOR
from clusterwright.readers.storage.mdtest import MDTEST

READERS: Final[tuple[Reader, ...]] = (FIO, IOR, MDTEST, IO500, ELBENCHO, GDSIO, GDSCHECK)
