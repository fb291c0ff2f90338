"""Kept evidence for a judgement: stores and verified bundles by their paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clusterwright.app.evidencing import load_evidence
from clusterwright.judging.outputs import Kept


def load_kept(paths: Sequence[Path], keys: Sequence[Path] = ()) -> tuple[Kept, ...]:
    """The evidence of every store and bundle; a record that several of them hold counts once.

    Args:
        keys: for bundles, public keys of those whose signature counts; without any, a sound signature is enough.

    Raises:
        InvalidInput: when one is neither, or does not verify.
    """
    seen: set[str] = set()
    found = []
    for path in paths:
        records = [record for record in load_evidence(path, keys) if record.id not in seen]
        seen |= {record.id for record in records}
        found.append(Kept(str(path), tuple(records), _remark(path, keys)))
    return tuple(found)


def _remark(path: Path, keys: Sequence[Path]) -> str:
    if keys or (path / "index.sqlite").is_file():
        return ""
    return f"{path} counts whoever signed it: --key FILE names those whose signature counts"
