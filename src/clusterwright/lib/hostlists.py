"""Host lists in Slurm and ClusterShell syntax: `node-[001-004,007],cp1`.

Source: Slurm `hostlist` grammar (man scontrol, HOSTLIST EXPRESSIONS); padding widths are kept apart: `n1` and `n01`
are different hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from typing import Final

#: More names than any known cluster; a guard against `gpu-[0-999999999]`.
MAX_HOSTS: Final = 200_000
_SHOWN: Final = 60
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_RANGE: Final = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?(?:/([0-9]{1,9}))?")
_TRAILING: Final = re.compile(r"(.*?)([0-9]{1,15})([^0-9]*)")


class HostlistError(ValueError):
    """A host list that cannot be read; the message quotes the offending part."""


def expand(text: str) -> tuple[str, ...]:
    """Host names in written order without repeats.

    Raises:
        HostlistError: on syntax, impossible names, descending ranges, or more than MAX_HOSTS names.
    """
    names: dict[str, None] = {}
    written = 0  # repeats count too: the work is bounded, not only its result
    for part in _split(text):
        for name in _expand_part(part):
            names[name] = None
            written += 1
            if written > MAX_HOSTS:
                raise HostlistError(f"more than {MAX_HOSTS:,} hosts")
    return tuple(names)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _split(text: str) -> list[str]:
    parts, depth, current = list[str](), 0, ""
    for char in text:
        depth += {"[": 1, "]": -1}.get(char, 0)
        if depth not in (0, 1):
            raise HostlistError(f"unbalanced brackets in '{_short(text)}'")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    if depth:
        raise HostlistError(f"unbalanced brackets in '{_short(text)}'")
    parts.append(current.strip())
    if any(not p for p in parts):
        raise HostlistError(f"empty name in '{_short(text)}'")
    return parts


def _expand_part(part: str) -> Iterable[str]:
    pieces = re.split(r"\[([^\]]*)\]", part)
    choices = [[piece] if i % 2 == 0 else _ranges(piece, part) for i, piece in enumerate(pieces)]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MAX_HOSTS:
        raise HostlistError(f"'{_short(part)}' names more than {MAX_HOSTS:,} hosts")
    for combination in product(*choices):
        name = "".join(combination)
        if not _NAME.fullmatch(name) or len(name) > 253:
            raise HostlistError(f"'{_short(name or part)}' is not a host name")
        yield name


def _ranges(text: str, part: str) -> list[str]:
    names: list[str] = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item.strip())
        if match is None:
            raise HostlistError(f"'{_short(item)}' in '{_short(part)}' is not a number or a range like 001-004")
        low, high, step = match.group(1), match.group(2) or match.group(1), int(match.group(3) or 1)
        if int(high) < int(low):
            raise HostlistError(f"range '{_short(item)}' in '{_short(part)}' runs backwards")
        if not step or (int(high) - int(low)) // step >= MAX_HOSTS:
            raise HostlistError(f"range '{_short(item)}' in '{_short(part)}' names more than {MAX_HOSTS:,} hosts")
        width = len(low) if low.startswith("0") or len(low) == len(high) else 0
        names.extend(str(n).zfill(width) for n in range(int(low), int(high) + 1, step))
        if len(names) > MAX_HOSTS:
            raise HostlistError(f"'{_short(part)}' names more than {MAX_HOSTS:,} hosts")
    return names


def fold(hosts: Iterable[str]) -> str:
    """The shortest list in this syntax: one bracket over the last number of each name, groups in order of first use."""
    groups: dict[tuple[str, str, int], list[int]] = {}
    plain: dict[str, None] = {}
    for host in hosts:
        match = _TRAILING.fullmatch(host)
        if match is None:
            plain[host] = None
            continue
        prefix, digits, suffix = match.groups()
        # Names padded with zeros keep their width; 9 and 10 without padding share one group of width 0.
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        groups.setdefault((prefix, suffix, width), []).append(int(digits))
    _merge_widths(groups)
    folded = [f"{p}{_fold_numbers(sorted(set(n)), w)}{s}" for (p, s, w), n in groups.items()]
    return ",".join(folded + list(plain))


def _merge_widths(groups: dict[tuple[str, str, int], list[int]]) -> None:
    """`009` and `010` belong together: unpadded numbers of exactly the padded width join the padded group."""
    for prefix, suffix, width in [k for k in groups if k[2]]:
        loose = groups.get((prefix, suffix, 0))
        if loose is None:
            continue
        fitting = [n for n in loose if len(str(n)) == width]
        groups[(prefix, suffix, width)].extend(fitting)
        rest = [n for n in loose if len(str(n)) != width]
        if rest:
            groups[(prefix, suffix, 0)] = rest
        else:
            del groups[(prefix, suffix, 0)]


def _fold_numbers(numbers: list[int], width: int) -> str:
    runs: list[tuple[int, int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], n)
        else:
            runs.append((n, n))
    if len(numbers) == 1:
        return str(numbers[0]).zfill(width)
    return "[" + ",".join(_fold_run(a, b, width) for a, b in runs) + "]"


def _fold_run(low: int, high: int, width: int) -> str:
    if low == high:
        return str(low).zfill(width)
    return f"{str(low).zfill(width)}-{str(high).zfill(width)}"
