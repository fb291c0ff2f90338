"""The manifest of collected results: which files were there, with their digests; what it does not protect is unused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from clusterwright.files.streams import stream_bytes


@dataclass(frozen=True, slots=True)
class Protection:
    """What the manifest of a directory says about its files.

    Args:
        digests: path → digest as collected.
        broken: why no file is protected though results were collected here, "" when files are.
        absent: there never was a manifest, so nothing can be said about any file.
    """

    digests: Mapping[str, str] = field(default_factory=dict)
    broken: str = ""
    absent: bool = False

    def why_unusable(self, root: Path, name: str) -> str:
        """Why a file is not the one that was collected, "" when it is or there never was a manifest."""
        if self.absent:
            return ""
        if self.broken:
            return f"not protected by the manifest: {self.broken}"
        if name not in self.digests:
            return "not protected by the manifest: it is not in it"
        digest = sha256()
        try:
            for piece in stream_bytes(str(root / name)):
                digest.update(piece)
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"
        return "" if digest.hexdigest() == self.digests[name] else "was altered after it was collected"


def read_protection(manifest: Mapping[str, Any] | None, *, there: bool, runs: bool) -> Protection:
    """The protection by a manifest.

    Args:
        manifest: its content, None when it cannot be read or is not there.
        there: whether the directory holds a manifest.
        runs: whether it holds records of runs, which are only whole together with one.
    """
    if manifest is None:
        if there:
            return Protection(broken="it cannot be read")
        return Protection(broken="there is none; collect.sh writes it") if runs else Protection(absent=True)
    files = manifest.get("files")
    digests = {
        f["path"]: f["sha256"]
        for f in (files if isinstance(files, list) else ())
        if isinstance(f, dict) and isinstance(f.get("path"), str) and isinstance(f.get("sha256"), str)
    }
    return Protection(digests, "" if digests else "it lists no file")
