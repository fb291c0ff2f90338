"""Verifying a bundle of evidence offline: signature, members, chain, openings."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clusterwright.app.bundling import FORMAT, PURPOSE, VERSION
from clusterwright.files.bundles import MANIFEST, RECORDS, SIGNATURE, BundleReader
from clusterwright.files.signing import fingerprint, load_public_key, signature_fits
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.lines import root_of_withheld
from clusterwright.model.records import Record, find_faults, parse_record

#: Digits of an id by which a record may be named.
_FEWEST_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class Verified:
    """What verification found.

    Args:
        faults: what is wrong, in words; empty when nothing is.
        signer: fingerprint of the key that signed.
        known: whether that key is one of those given.
        exported: time and person as the bundle says.
        withheld_fields: values of records that are stand-ins.
        withheld_lines: lines of raw outputs that are stand-ins.
        left_out: raw outputs that the bundle does not hold.
    """

    faults: tuple[str, ...]
    records: tuple[Record, ...] = ()
    head: str = ""
    signer: str = ""
    known: bool = False
    exported: str = ""
    withheld_fields: int = 0
    withheld_lines: int = 0
    left_out: int = 0


def verify_bundle(path: Path, keys: Sequence[Path] = (), *, head: str = "") -> Verified:
    """Verify a bundle without any network.

    Args:
        keys: files with the public keys of those whose signature counts.
        head: id of a record that must be in the chain, from an earlier bundle; "" when none is known.

    Raises:
        InvalidInput: when nothing is there, a key cannot be read, or `head` is no id.
    """
    known = {load_public_key(key) for key in keys}
    wanted = head.removeprefix("sha256:").lower()
    if head and (len(wanted) < _FEWEST_DIGITS or not all(c in "0123456789abcdef" for c in wanted)):
        raise InvalidInput(f"'{head[:80]}' is no id of a record; give {_FEWEST_DIGITS} of its hex digits or more")
    if not path.exists():
        raise InvalidInput(Problem(Place(str(path)), "", "no such file or directory"))
    try:
        bundle = BundleReader(path)
        try:
            return _verify(bundle, known, wanted)
        finally:
            bundle.close()
    except InvalidInput as error:
        return Verified(tuple(problem.message for problem in error.problems))


def is_private(key: Path) -> bool:
    """Whether a file holds a private key, which nobody but its owner should have."""
    try:
        with key.open("rb") as stream:
            return b"PRIVATE KEY" in stream.read(4096)
    except OSError:
        return False


def open_records(path: Path, keys: Sequence[Path] = ()) -> tuple[Record, ...]:
    """The records of a bundle that verifies.

    Raises:
        InvalidInput: when it does not verify, or keys are given and none of them signed it.
    """
    verified = verify_bundle(path, keys)
    faults = list(verified.faults)
    if keys and not verified.known:
        faults.append(f"signed by {verified.signer}, which is none of the given keys")
    if faults:
        raise InvalidInput(*[f"{path}: {fault}" for fault in faults])
    return verified.records


def _verify(bundle: BundleReader, known: set[bytes], head: str) -> Verified:
    body = bundle.read(MANIFEST)
    manifest = _load(body, MANIFEST)
    if manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
        return Verified((f"the manifest is not one of {FORMAT} version {VERSION}",))
    public, faults = _check_signature(bundle, body)
    faults += _check_members(bundle, manifest)
    records, record_faults = _read_records(bundle)
    faults += record_faults
    if not record_faults:
        faults += find_faults(records, head=str(manifest.get("head", "")))
        if len(records) != manifest.get("count"):
            faults.append(f"holds {len(records)} records, the manifest says {manifest.get('count')}")
        if head and not any(record.id.removeprefix("sha256:").startswith(head) for record in records):
            faults.append(f"record {head[:12]}… of an earlier bundle is not in this chain: it was rewritten or cut")
    raw_faults, lines, left_out = _check_raw(bundle, records) if not record_faults else ([], 0, 0)
    faults += raw_faults
    if not raw_faults and left_out != manifest.get("left_out"):
        faults.append(f"{left_out} raw outputs are left out, the manifest says {manifest.get('left_out')}")
    return Verified(
        faults=tuple(faults),
        records=tuple(records),
        head=str(manifest.get("head", "")),
        signer=fingerprint(public) if public else "",
        known=public in known,
        exported=f"{manifest.get('exported', '')} by {manifest.get('by', '')}",
        withheld_fields=sum(len(record.withheld) for record in records),
        withheld_lines=lines,
        left_out=left_out,
    )


def _check_signature(bundle: BundleReader, body: bytes) -> tuple[bytes, list[str]]:
    if SIGNATURE not in bundle.names:
        return b"", ["is not signed"]
    signature = _load(bundle.read(SIGNATURE), SIGNATURE)
    try:
        if signature["algorithm"] != "Ed25519" or set(signature) != {"algorithm", "public_key", "signature"}:
            return b"", ["the signature is not one of Ed25519"]
        public = base64.b64decode(signature["public_key"], validate=True)
        made = base64.b64decode(signature["signature"], validate=True)
    except (KeyError, ValueError, TypeError):
        return b"", ["the signature cannot be read"]
    if not signature_fits(public, made, PURPOSE + body):
        return public, ["the signature does not fit: the manifest was altered, or signed by another key"]
    return public, []


def _check_members(bundle: BundleReader, manifest: dict[str, Any]) -> list[str]:
    members = manifest.get("members")
    if not isinstance(members, dict):
        return ["the manifest lists no members"]
    faults = [f"{name} is in the bundle and not in its manifest" for name in sorted(bundle.names - set(members))]
    faults = [f for f in faults if not f.startswith((MANIFEST, SIGNATURE))]
    for name, said in members.items():
        if name not in bundle.names:
            faults.append(f"{name} is missing")
            continue
        digest, size = hashlib.sha256(), 0
        if not isinstance(said, dict) or said.get("bytes") != bundle.size(name):
            faults.append(f"{name} was altered: its size is another")
            continue
        for piece in bundle.stream(name):
            digest.update(piece)
            size += len(piece)
        found = {"digest": f"sha256:{digest.hexdigest()}", "bytes": size}
        if found != said or (name.startswith("raw/") and found["digest"] != f"sha256:{name[4:]}"):
            faults.append(f"{name} was altered: its digest is another")
    return faults


def _read_records(bundle: BundleReader) -> tuple[list[Record], list[str]]:
    if RECORDS not in bundle.names:
        return [], [f"{RECORDS} is missing"]
    records: list[Record] = []
    for number, line in enumerate(bundle.read(RECORDS, 2**30).splitlines(), 1):
        try:
            records.append(parse_record(json.loads(line)))
            _ = records[-1].content
        except (ValueError, RecursionError) as error:
            return records, [f"{RECORDS}, line {number}: {error}"]
    return records, []


def _check_raw(bundle: BundleReader, records: list[Record]) -> tuple[list[str], int, int]:
    """(faults, withheld lines, raw outputs left out)."""
    faults, lines, left_out = list[str](), 0, 0
    checked: dict[str, int] = {}
    wanted = {MANIFEST, SIGNATURE, RECORDS}
    for record in records:
        content = record.content
        for raw in content.get("raw", ()) if isinstance(content, dict) else ():
            try:
                whole = f"raw/{raw['digest'].removeprefix('sha256:')}"
                root = raw["line_root"]
                part = f"lines/{root.removeprefix('sha256:')}.jsonl" if root else ""
            except (KeyError, TypeError, AttributeError):
                faults.append(f"record {record.sequence}: its raw outputs cannot be read")
                continue
            wanted |= {whole, part}
            if whole in bundle.names:
                continue  # the name is the digest, which the manifest's check has compared
            if part not in bundle.names:
                left_out += 1
                continue
            if part not in checked:
                try:
                    found, checked[part] = root_of_withheld(bundle.stream(part))
                except ValueError as error:
                    found, checked[part] = str(error), 0
                if found != root:
                    faults.append(f"record {record.sequence}: lines of {raw['name']} were altered")
                lines += checked[part]
    faults += [f"{name} belongs to no record" for name in sorted(bundle.names - wanted)]
    return faults, lines, left_out


def _load(body: bytes, name: str) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except RecursionError:
        raise InvalidInput(f"{name} cannot be read: nested too deeply") from None
    except ValueError as error:
        raise InvalidInput(f"{name} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} cannot be read: not an object")
    return value
