"""Bundles of evidence: write one that others can verify offline."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clusterwright.files.bundles import MANIFEST, RECORDS, SIGNATURE, BundleWriter
from clusterwright.files.signing import create_key, fingerprint, load_private_key, public_bytes, public_pem
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.identifiers import Redactor
from clusterwright.lib.lines import withhold_lines
from clusterwright.model.records import Record, record_values, redact
from clusterwright.ports.evidence import EvidenceStore

FORMAT: Final = "clusterwright-evidence-bundle"
VERSION: Final = 1
#: What is signed: this and the bytes of the manifest, so that a signature for one purpose fits no other.
PURPOSE: Final = f"{FORMAT} {VERSION}\n".encode()
#: Fields of which the value would let a guess at a withheld name be checked, as digests of short texts do.
_CHECKABLE: Final = ("/.digest", "/.line_secret", "/.raw_digest")


@dataclass(frozen=True, slots=True)
class Exported:
    """What a bundle was written with.

    Args:
        head: id of the last record.
        signer: fingerprint of the key.
        withheld: identifiers by kind that were replaced.
        left_out: raw outputs that are not in the bundle, because they could not be redacted line by line.
        public_key: of the signer, as PEM.
    """

    path: Path
    records: int
    head: str
    signer: str
    withheld: dict[str, int]
    left_out: int
    public_key: str


def export_bundle(
    store: EvidenceStore,
    path: Path,
    key: Path,
    *,
    exported: str,
    by: str,
    redacted: bool = False,
    new_key: bool = False,
) -> Exported:
    """Write everything in the store as a signed bundle; all or nothing.

    Args:
        path: of the bundle; `.tar` makes one file of it.
        key: file with the private key; with `new_key` it is made when it is not there.
        exported: time as ISO 8601.
        by: who exports it.
        redacted: withhold host names, addresses, serials and device ids, also in the raw outputs.

    Raises:
        InvalidInput: when there is nothing to export, evidence was altered, or the path is taken.
    """
    if new_key:
        create_key(key)
    private = load_private_key(key)
    faults = store.find_faults()
    if faults:
        raise InvalidInput(*[f"the evidence does not verify, nothing was exported: {fault}" for fault in faults])
    records = list(store.records())
    if not records:
        raise InvalidInput("there is no evidence to export; cw evidence add adds some")
    redactor = Redactor(_hosts(records)) if redacted else None
    writer = BundleWriter(path)
    try:
        left_out = sum(_add_raw(writer, store, record, redactor) for record in records)
        shown = [_redact(record, redactor) for record in records] if redactor else records
        writer.add(RECORDS, (json.dumps(record_values(record)).encode() + b"\n" for record in shown))
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "exported": exported,
            "by": redactor(by) if redactor else by,
            "head": records[-1].id,
            "count": len(records),
            "left_out": left_out,
            "members": {name: {"digest": d, "bytes": size} for name, (d, size) in sorted(writer.members.items())},
        }
        body = (json.dumps(manifest, indent=1) + "\n").encode()
        writer.add(MANIFEST, [body])
        public = public_bytes(private.public_key())
        signature = {
            "algorithm": "Ed25519",
            "public_key": base64.b64encode(public).decode(),
            "signature": base64.b64encode(private.sign(PURPOSE + body)).decode(),
        }
        writer.add(SIGNATURE, [(json.dumps(signature, indent=1) + "\n").encode()])
        writer.finish()
    except BaseException:
        writer.discard()
        raise
    withheld = redactor.counts if redactor else {}
    return Exported(path, len(records), records[-1].id, fingerprint(public), withheld, left_out, public_pem(public))


def _add_raw(writer: BundleWriter, store: EvidenceStore, record: Record, redactor: Redactor | None) -> int:
    """Add the raw outputs of a record; returns how many had to be left out."""
    left_out = 0
    for raw in record.content.get("raw", ()):
        whole = f"raw/{raw['digest'].removeprefix('sha256:')}"
        lines = f"lines/{raw['line_root'].removeprefix('sha256:')}.jsonl" if raw["line_root"] else ""
        if redactor is None:
            if whole not in writer.members:
                writer.add(whole, store.raw(raw["digest"]))
        elif not lines:
            left_out += 1
        elif lines not in writer.members:
            writer.add(lines, withhold_lines(store.raw(raw["digest"]), raw["line_secret"], redactor))
    return left_out


def _redact(record: Record, redactor: Redactor) -> Record:
    def stand_in(place: str, value: Any) -> Any | None:
        if place.endswith(_CHECKABLE):
            return "withheld"
        if place == "/.by":
            return "a person"
        if not isinstance(value, str):
            return None
        shown = redactor(value)
        return None if shown == value else shown

    return redact(record, stand_in)


def _hosts(records: Iterable[Record]) -> set[str]:
    return {name for record in records for name in _names_in(record.content)}


def _names_in(value: Any) -> Iterator[str]:
    """Host names of a record: whatever stands under `nodes`, and values of the key `node`."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "nodes" and isinstance(item, list):
                yield from (name for name in item if isinstance(name, str))
            elif key in ("node", "host", "hostname") and isinstance(item, str):
                yield item
            else:
                yield from _names_in(item)
    elif isinstance(value, list):
        if len(value) == 2 and value[0] in ("node", "host", "hostname") and isinstance(value[1], str):
            yield value[1]
        for item in value:
            yield from _names_in(item)
