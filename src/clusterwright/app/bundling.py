"""Bundles of evidence: write one that others can verify offline."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clusterwright.files.bundles import MANIFEST, RECORDS, SIGNATURE, BundleWriter
from clusterwright.files.signing import create_key, fingerprint, load_private_key, public_bytes, public_pem
from clusterwright.lib.errors import InvalidInput
from clusterwright.lib.hostlists import HostlistError, expand
from clusterwright.lib.identifiers import Redactor
from clusterwright.lib.lines import withhold_lines
from clusterwright.model.observations import Transcript
from clusterwright.model.records import Record, record_values, redact
from clusterwright.ports.evidence import EvidenceStore
from clusterwright.readers.reading import read_output

FORMAT: Final = "clusterwright-evidence-bundle"
VERSION: Final = 1
#: What is signed: this and the bytes of the manifest, so that a signature for one purpose fits no other.
PURPOSE: Final = f"{FORMAT} {VERSION}\n".encode()
#: Fields of which the value would let a guess at a withheld name be checked, as digests of short texts do.
_CHECKABLE: Final = ("/.digest", "/.line_secret", "/.raw_digest")
#: kind of identifier → keys under which records and readers name it.
_NAMING: Final = {
    "host": ("node", "nodes", "host", "hosts", "hostname", "server", "client", "peer", "nodelist", "node_list"),
    "user": ("user", "users", "username", "user_name", "account_user", "by", "owner"),
    "serial": ("serial", "serial_number", "board_serial", "asic_serial", "gpu_serial", "chassis_serial"),
}
_MOST_HOSTS: Final = 100_000


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
    redactor = Redactor(_words(store, records)) if redacted else None
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
        if place.startswith("/.raw/") and place.endswith("/.name"):
            return "an output"
        if not isinstance(value, str):
            return None
        shown = redactor(value)
        return None if shown == value else shown

    return redact(record, stand_in)


def _words(store: EvidenceStore, records: Iterable[Record]) -> dict[str, set[str]]:
    """Hosts, users and serials that records and their raw outputs name, by kind."""
    words: dict[str, set[str]] = {kind: set() for kind in _NAMING}
    for record in records:
        content = record.content
        words["host"] |= set(content["evidence"].get("nodes", ()))
        words["user"].add(str(content.get("by", "")))
        for key, value in _pairs_in(content["evidence"]):
            _note(words, key, value)
        for raw in content.get("raw", ()):
            if raw["line_root"]:
                for key, value in _pairs_of(read_output(store.raw(raw["digest"]), kind=content.get("kind", ""))):
                    _note(words, key, value)
    return words


def _note(words: dict[str, set[str]], key: str, value: str) -> None:
    for kind, names in _NAMING.items():
        if key in names or key.endswith("_" + kind):
            parts = [part for part in re.split(r"[,\s]+(?![^\[]*\])", value) if part]
            for part in parts if kind == "host" else [value]:
                words[kind] |= set(_expanded(part)) if kind == "host" else {part}


def _expanded(text: str) -> tuple[str, ...]:
    try:
        found = expand(text)
    except HostlistError:
        return (text,)
    return found[:_MOST_HOSTS]


def _pairs_in(value: Any) -> Iterator[tuple[str, str]]:
    """(key, text) of every labelled text in a record's evidence."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                yield key, item
            elif isinstance(item, list) and key == "nodes":
                yield from ((key, name) for name in item if isinstance(name, str))
            else:
                yield from _pairs_in(item)
    elif isinstance(value, list):
        if len(value) == 2 and all(isinstance(part, str) for part in value):
            yield value[0], value[1]
        for item in value:
            yield from _pairs_in(item)


def _pairs_of(transcript: Transcript) -> Iterator[tuple[str, str]]:
    """(key, text) of everything that a reader labelled in an output."""
    for run in transcript.runs:
        for key, value in run.conditions:
            if isinstance(value, str):
                yield key, value
        for observation in run.observations:
            yield from observation.subject
            if isinstance(observation.value, str):
                yield observation.name, observation.value
