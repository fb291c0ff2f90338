"""Logs of pods → the files that a run printed into them.

Each file stands between two marks; the second has its digest. A file that is not what its digest says is left out. The
log comes from a machine that is not ours, so nothing in it is a path: names are only compared with those of records.
"""

from __future__ import annotations

import binascii
import gzip
import io
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

_FILE: Final = "clusterwright-file: "
_SUM: Final = "clusterwright-sum: "
_END: Final = "clusterwright-end"
_PATH: Final = re.compile(r"[A-Za-z0-9_+.-]+/[A-Za-z0-9_+.-]+/[A-Za-z0-9_+.-]+")
_LARGEST: Final = 64 * 2**20


def files_in_log(text: str) -> dict[str, dict[str, bytes]]:
    """`TEST/UNIT` → name of a file → its bytes, of files that came back whole."""
    found: dict[str, dict[str, bytes]] = {}
    for path, content in _marked(text):
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, {})[name] = content
    return found


def _marked(text: str) -> Iterator[tuple[str, bytes]]:
    path = ""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith((_FILE, _SUM)) or line == _END:
            if path and (content := _content(lines, line.split() if line.startswith(_SUM) else None)) is not None:
                yield path, content
            rest = line.removeprefix(_FILE)
            path, lines = (rest if line.startswith(_FILE) and _PATH.fullmatch(rest) else ""), []
        elif path and line.startswith("|"):
            lines.append(line[2:])


def _content(lines: list[str], mark: list[str] | None) -> bytes | None:
    """The bytes of a file, None when they are not those that were printed.

    Args:
        mark: words of the line with its digest, None for a log of before there was one.
    """
    plain = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    if mark is None:
        return plain
    if len(mark) < 5:
        return None
    _, digest, _, ending, form = mark[:5]
    if form == "gzip":
        try:
            with gzip.open(io.BytesIO(b64decode(plain))) as packed:
                plain = packed.read(_LARGEST + 1)
        except (OSError, EOFError, ValueError, binascii.Error, zlib.error):
            return None
    elif ending == "open":
        plain = plain.removesuffix(b"\n")
    return plain if sha256(plain).hexdigest() == digest else None
