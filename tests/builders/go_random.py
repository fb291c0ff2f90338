"""The random numbers of Go's math/rand for a seed, so that published runs of Go programs can be repeated draw by draw.

An additive lagged Fibonacci generator, x(n) = x(n-607) + x(n-273) mod 2^64. Its table of start values is the state of
the same generator after 7.8e12 steps from a simpler start; it is computed here by raising x to that power modulo the
characteristic polynomial.

Source: Go 1.20, src/math/rand/rng.go, rand.go and gen_cooked.go.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

LENGTH = 607
TAP = 273
COOKED_STEPS = 7_800_000_000_000
MASK_63 = (1 << 63) - 1
MASK_64 = (1 << 64) - 1
PRIME = (1 << 31) - 1


class GoRandom:
    """`rand.New(rand.NewSource(seed))`."""

    def __init__(self, seed: int) -> None:
        words = _lehmer(seed, (40, 20, 0))
        start = [word ^ cooked for word, cooked in zip(words, _cooked(), strict=True)]
        self._past = [start[(LENGTH - TAP - 1 - k) % LENGTH] for k in range(LENGTH)]
        self._next = 0

    def int63(self) -> int:
        return self._uint64() & MASK_63

    def uint32(self) -> int:
        return self.int63() >> 31

    def intn(self, n: int) -> int:
        """From 0 to n - 1, for n below 2^31."""
        value = self.int63() >> 32
        if n & (n - 1) == 0:
            return value & (n - 1)
        while value > PRIME - (1 << 31) % n:
            value = self.int63() >> 32
        return value % n

    def shuffle(self, items: list[int]) -> None:
        for i in range(len(items) - 1, 0, -1):
            j = self._below(i + 1)
            items[i], items[j] = items[j], items[i]

    def perm(self, n: int) -> list[int]:
        out = [0] * n
        for i in range(n):
            j = self.intn(i + 1)
            out[i] = out[j]
            out[j] = i
        return out

    def skip(self, draws: int) -> None:
        for _ in range(draws):
            self._uint64()

    def _below(self, n: int) -> int:
        product = self.uint32() * n
        if (low := product & 0xFFFFFFFF) < n:
            threshold = ((1 << 32) - n) % n
            while low < threshold:
                product = self.uint32() * n
                low = product & 0xFFFFFFFF
        return product >> 32

    def _uint64(self) -> int:
        k = self._next
        value = (self._past[k] + self._past[(k - TAP) % LENGTH]) & MASK_64
        self._past[k] = value
        self._next = (k + 1) % LENGTH
        return value


def _lehmer(seed: int, shifts: tuple[int, int, int]) -> list[int]:
    x = seed % PRIME or 89482311
    for _ in range(20):
        x = x * 48271 % PRIME
    words = []
    for _ in range(LENGTH):
        word = 0
        for shift in shifts:
            x = x * 48271 % PRIME
            word ^= x << shift
        words.append(word & MASK_64)
    return words


@cache
def _cooked() -> tuple[int, ...]:
    """The table by Go's index: after n steps the value n + k of the stream lies at (333 - n - k) mod 607."""
    simple = _lehmer(1, (20, 10, 0))
    stream = [simple[(LENGTH - TAP - 1 - k) % LENGTH] for k in range(LENGTH)]
    for k in range(LENGTH):
        stream.append((stream[k] + stream[k + LENGTH - TAP]) & MASK_64)
    values = np.array(stream, dtype=np.uint64)
    power = _power_of_x(COOKED_STEPS)
    table = [0] * LENGTH
    for k in range(LENGTH):
        table[(LENGTH - TAP - 1 - COOKED_STEPS - k) % LENGTH] = int((power * values[k : k + LENGTH]).sum())
    return tuple(table)


def _power_of_x(exponent: int) -> NDArray[np.uint64]:
    """Coefficients of x^exponent modulo x^607 - x^334 - 1, lowest first: (607,) uint64."""
    out = np.zeros(LENGTH, dtype=np.uint64)
    out[0] = 1
    for bit in bin(exponent)[2:]:
        out = _reduced(np.convolve(out, out))
        if bit == "1":
            out = _reduced(np.concatenate([np.zeros(1, dtype=np.uint64), out]))
    return out


def _reduced(product: NDArray[np.uint64]) -> NDArray[np.uint64]:
    out = product.copy()
    end = len(out)
    while end > LENGTH:
        begin = max(LENGTH, end - TAP)
        out[begin - LENGTH : end - LENGTH] += out[begin:end]
        out[begin - TAP : end - TAP] += out[begin:end]
        end = begin
    return out[:LENGTH]
