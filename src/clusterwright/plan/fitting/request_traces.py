"""A trace of requests → the lengths, rate and prefix reuse that a fit asks for.

Sources of the columns: Azure LLM inference traces (`TIMESTAMP`, `ContextTokens`, `GeneratedTokens`), Mooncake traces
(`timestamp` in ms, `input_length`, `output_length`, `hash_ids` of 512 tokens), names of benchmark tools.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from clusterwright.lib.errors import InvalidInput
from clusterwright.physics.serving.prefixes import prefix_reuse

_IN: Final = ("contexttokens", "inputlength", "prompttokens", "inputtokens", "promptlen", "isl", "in")
_OUT: Final = ("generatedtokens", "outputlength", "completiontokens", "outputtokens", "outputlen", "osl", "out")
_TIME: Final = ("timestamp", "arrivedat", "arrivaltime", "arrival", "time", "starttime")
_BLOCKS: Final = "hashids"
#: Tokens of a block that a trace names (Mooncake: Qin et al., FAST 2025, section 4).
BLOCK_TOKENS: Final = 512
#: Sizes of a cache at which the reuse of a trace is counted, tokens; between them it is read off the logarithm.
CACHE_TOKENS: Final = tuple(BLOCK_TOKENS * 2**k for k in range(6, 20, 2))
#: Window in which the rate is counted, s.
WINDOW_S: Final = 60.0


@dataclass(frozen=True)
class Requests:
    """What a trace says.

    Args:
        rows, skipped: requests, and rows without readable lengths.
        options: of a fit, as text. window_s: over which the rate is the highest; None where there are no times.
        prompts: tokens of the prompts, in order. blocks: ids of their blocks, empty where the trace has none.
    """

    rows: int
    skipped: int
    options: Mapping[str, str]
    window_s: float | None = None
    prompts: tuple[int, ...] = ()
    blocks: tuple[Sequence[int], ...] = ()

    @property
    def told(self) -> str:
        """In one sentence."""
        said = ", ".join(f"--{name} {text}" for name, text in self.options.items())
        left = f", {self.skipped:,} rows without readable lengths left out" if self.skipped else ""
        when = f"; the rate is that of the busiest {self.window_s:g} s" if self.window_s else ""
        return f"{self.rows:,} requests{left}: {said}{when}"

    def reuse_by_cache(self, sizes: Sequence[int] = CACHE_TOKENS) -> tuple[tuple[int, float], ...]:
        """(tokens that a cache holds, share of prompt tokens found in it), until a larger one saves no more."""
        found = list[tuple[int, float]]()
        for tokens in sizes if self.blocks else ():
            requests = zip(self.prompts, self.blocks, strict=True)
            share = prefix_reuse(requests, block=BLOCK_TOKENS, blocks=tokens // BLOCK_TOKENS).share
            if found and share <= found[-1][1]:
                break
            found.append((tokens, share))
        return tuple(found)


def summarise(rows: Iterable[Mapping[str, Any]], *, times_in_ms: bool = False) -> Requests:
    """Means and 95th percentiles of lengths, the rate of the busiest minute, and the reuse where blocks are named.

    Args:
        rows: columns by name. times_in_ms: what a bare number in a column of times counts.

    Raises:
        InvalidInput: no row has lengths of prompt and output.
    """
    prompts, outputs, times, blocks = list[int](), list[int](), list[float](), list[Sequence[int]]()
    skipped = 0
    for row in rows:
        plain = {_plain(name): value for name, value in row.items()}
        prompt, output = (_tokens(plain, names) for names in (_IN, _OUT))
        if prompt is None or output is None:
            skipped += 1
            continue
        prompts.append(prompt)
        outputs.append(output)
        when = _time(plain, times_in_ms)
        if when is not None:
            times.append(when)
        named = plain.get(_BLOCKS)
        if isinstance(named, list) and all(isinstance(block, int | str) for block in named):
            blocks.append(named)
    if not prompts:
        raise InvalidInput(f"no request in the trace has lengths: columns such as {_IN[0]} and {_OUT[0]} are wanted")
    if len(times) == len(prompts):
        order = sorted(range(len(times)), key=times.__getitem__)
        prompts, outputs = ([column[i] for i in order] for column in (prompts, outputs))
        blocks = [blocks[i] for i in order] if len(blocks) == len(prompts) else blocks
    options = _lengths("in", prompts) | _lengths("out", outputs)
    window = None
    if len(times) == len(prompts):
        rate, window = _rate(times)
        options |= {"rate": _digits(rate)} if rate else {}
    if len(blocks) == len(prompts):
        share = prefix_reuse(zip(prompts, blocks, strict=True), block=BLOCK_TOKENS).share
        options |= {"reuse": _digits(share)} if share > 0 else {}
    known = tuple(blocks) if len(blocks) == len(prompts) else ()
    return Requests(len(prompts), skipped, options, window, tuple(prompts), known)


def _lengths(name: str, values: list[int]) -> dict[str, str]:
    mean, high = float(np.mean(values)), float(np.quantile(values, 0.95))
    return {name: _digits(mean), f"{name}-p95": _digits(max(high, mean * 1.001))}


def _digits(value: float) -> str:
    """Four digits, without an exponent."""
    return f"{float(f'{value:.4g}'):.12g}"


def _rate(times: list[float]) -> tuple[float, float | None]:
    """Requests per second of the busiest minute, or of the whole of a shorter trace."""
    first = min(times)
    span = max(times) - first
    if span < 2 * WINDOW_S:
        return (len(times) / span, span) if span > 0 else (0.0, None)
    return max(Counter(int((t - first) // WINDOW_S) for t in times).values()) / WINDOW_S, WINDOW_S


def _tokens(row: Mapping[str, Any], names: Sequence[str]) -> int | None:
    value = next((row[name] for name in names if name in row), None)
    try:
        found = int(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found >= 1 else None


def _time(row: Mapping[str, Any], in_ms: bool) -> float | None:
    value = next((row[name] for name in _TIME if name in row), None)
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value) / (1e3 if in_ms else 1.0)
    except ValueError:
        pass
    except TypeError:
        return None
    try:
        return datetime.datetime.fromisoformat(str(value)).replace(tzinfo=datetime.UTC).timestamp()
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _plain(name: object) -> str:
    return "".join(c for c in str(name).lower() if c.isalnum())
