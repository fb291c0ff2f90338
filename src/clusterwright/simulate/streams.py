"""Random streams by purpose: a further cause of failures, or one more draw of one purpose, moves no other purpose.

Each purpose is a child of the seed's SeedSequence. The child's key is made from the purpose's name, not from the order
in which children are asked for (numpy.random.SeedSequence, `spawn_key`), so that the order does not matter either.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from numpy.random import PCG64, Generator, SeedSequence


@dataclass(frozen=True, slots=True)
class Streams:
    """Where every random number of one replication comes from.

    Args:
        seed: at least 0.
        replication: number of the repetition; each has streams of its own.
    """

    seed: int
    replication: int = 0

    def of(self, *purpose: str) -> Generator:
        """A new generator for one purpose, always at its beginning; the same for the same names.

        The bit generator is named (PCG64), because numpy may change its default. The methods that draw from it may
        change between numpy versions: an event log is the same byte for byte under one numpy version.
        """
        name = "\0".join(purpose).encode()
        words = struct.unpack("<4I", hashlib.blake2b(name, digest_size=16).digest())
        return Generator(PCG64(SeedSequence(self.seed, spawn_key=(self.replication, *words))))
