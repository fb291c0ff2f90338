"""Evidence: outputs → records of the store; records → lists, one whole, a comparison."""

from __future__ import annotations

import getpass
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from clusterwright.app.extras import require_evidence
from clusterwright.app.judging_outputs import OutputRequest, judge_outputs
from clusterwright.files.inputs import STANDARD_INPUT
from clusterwright.files.streams import find_outputs, stream_bytes
from clusterwright.judging.comparing_bundles import BundleComparison, compare_bundles
from clusterwright.judging.outputs import JudgedOutput
from clusterwright.lib.commitments import SALT, canonical, digest_of
from clusterwright.lib.errors import InvalidInput, Place, Problem
from clusterwright.lib.lines import commit_lines
from clusterwright.model.evidence import Evidence
from clusterwright.model.evidence_values import evidence_values, parse_evidence
from clusterwright.model.records import Record
from clusterwright.ports.evidence import EvidenceStore

#: Where evidence is kept when neither an option nor $CLUSTERWRIGHT_EVIDENCE says.
DEFAULT_STORE: Final = "evidence"
#: Largest raw output of which single lines can be withheld later; a larger one is withheld whole.
_LINES_UP_TO: Final = 64 * 1024 * 1024


@dataclass(frozen=True)
class AddedOutput:
    """An output with its record.

    Args:
        was_there: whether the same evidence was in the store already.
    """

    path: str
    output: JudgedOutput
    record: Record
    was_there: bool


def store_path(given: Path | None) -> Path:
    """Directory of the store: as given, else $CLUSTERWRIGHT_EVIDENCE, else `evidence` here."""
    return given or Path(os.environ.get("CLUSTERWRIGHT_EVIDENCE") or DEFAULT_STORE)


def open_store(given: Path | None, *, create: bool = False) -> EvidenceStore:
    """The evidence store in a directory.

    Raises:
        InvalidInput: when there is none and it may not be made.
        Unavailable: when it cannot be used, or the extra is not installed.
    """
    require_evidence()
    from clusterwright.store.evidence import EvidenceDirectory

    return EvidenceDirectory(store_path(given), create=create)


def add_outputs(
    store: EvidenceStore,
    request: OutputRequest,
    *,
    home: Path,
    claims: Sequence[str] = (),
    by: str = "",
    progress: Callable[[str], None] | None = None,
) -> list[AddedOutput]:
    """Keep outputs, with what they prove, as evidence.

    Args:
        home: directory of the store, of which nothing is evidence.
        claims: ids of the requirements that they were taken for.
        by: who ran them; the user of this process when empty.

    Raises:
        InvalidInput: when an output cannot be read, or changed while it was.
    """
    if STANDARD_INPUT in request.paths:
        raise InvalidInput("evidence is kept from files: write the output to a file first")
    inside = home.resolve()
    outputs = [path for path in find_outputs(request.paths) if inside not in Path(path).resolve().parents]
    judged = judge_outputs(replace(request, paths=outputs))
    added = []
    for output in judged.outputs:
        if progress is not None:
            progress(output.path)
        content = _content(store, output, claims, by or _user())
        same = digest_of(canonical(content["evidence"]))
        appended = store.append(content, datetime.now(UTC).isoformat(timespec="seconds"), same)
        added.append(AddedOutput(output.path, output, appended.record, appended.was_there))
    return added


def evidence_of(records: Iterable[Record]) -> list[Evidence]:
    """The evidence in records, each named by its record.

    Raises:
        InvalidInput: at a record that holds none.
    """
    found = []
    for record in records:
        try:
            content = record.content
            found.append(parse_evidence(content["evidence"], record.id))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"record {record.sequence} holds no evidence that can be read: {error}") from None
    return found


def load_evidence(path: Path, keys: Sequence[Path] = ()) -> list[Evidence]:
    """The evidence of a store or of a bundle that verifies.

    Args:
        keys: for a bundle, public keys of those whose signature counts; without any, a sound signature is enough.

    Raises:
        InvalidInput: when it is neither, or does not verify.
    """
    return evidence_of(load_records(path, keys))


def load_records(path: Path, keys: Sequence[Path] = ()) -> tuple[Record, ...]:
    """The records of a store or of a bundle that verifies; InvalidInput otherwise."""
    require_evidence()
    if not path.exists():
        raise InvalidInput(Problem(Place(str(path)), "", "no such evidence", "give a store or a bundle"))
    if (path / "index.sqlite").is_file():
        store = open_store(path)
        try:
            if faults := store.find_faults():
                raise InvalidInput(*[Problem(Place(str(path)), "", fault) for fault in faults])
            return tuple(store.records())
        finally:
            store.close()
    from clusterwright.app.verifying import open_records

    return open_records(path, keys)


def find_record(records: Sequence[Record], name: str) -> Record:
    """The record of that number, or whose id begins so; InvalidInput when there is none, or more than one."""
    wanted = name.removeprefix("sha256:").lower()
    if name.isdigit() and len(name) < 10:
        found = [r for r in records if r.sequence == int(name)]
    else:
        found = [r for r in records if len(wanted) >= 4 and r.id.removeprefix("sha256:").startswith(wanted)]
    if len(found) != 1:
        how = "more than one record" if found else "no record"
        last = records[-1].sequence if records else 0
        raise InvalidInput(
            f"{how} '{name}'; give its number (1 to {last}) or the beginning of its id, 4 digits or more"
        )
    return found[0]


def compare_evidence(before: str, after: str, store: Path | None, keys: Sequence[Path] = ()) -> BundleComparison:
    """What changed between two sets of evidence: each a bundle, a store, or numbers of records such as `1-4,7`."""
    return compare_bundles(_side(before, store, keys), _side(after, store, keys))


def verify_store(given: Path | None) -> list[str]:
    """What is wrong with a store, in words."""
    store = open_store(given)
    try:
        return store.find_faults()
    finally:
        store.close()


def _side(name: str, store: Path | None, keys: Sequence[Path]) -> list[Evidence]:
    if not all(c in "0123456789,-" for c in name) or Path(name).exists():
        return load_evidence(Path(name), keys)
    records = load_records(store_path(store))
    chosen: dict[int, Record] = {}
    for part in name.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise InvalidInput(f"'{name}' is neither a bundle, nor a store, nor numbers of records such as 1-4,7")
        for number in range(int(first), min(int(last or first), records[-1].sequence if records else 0) + 1):
            chosen[number] = find_record(records, str(number))
        if int(last or first) > len(records):
            find_record(records, last or first)
    return evidence_of(chosen.values())


def _content(store: EvidenceStore, output: JudgedOutput, claims: Sequence[str], by: str) -> dict[str, Any]:
    digest, size = store.keep(stream_bytes(output.path))
    if digest != output.evidence.raw_digest:
        raise InvalidInput(Problem(Place(output.path), "", "changed while it was read", "add it when it is complete"))
    secret = secrets.token_hex(SALT) if size <= _LINES_UP_TO else None
    values = evidence_values(output.evidence)
    values["requirements"] = list(dict.fromkeys((*values["requirements"], *claims)))
    return {
        "evidence": values,
        "kind": output.transcript.kind,
        "outcome": output.transcript.outcome.value,
        "timed": output.timed,
        "by": by,
        "raw": [
            {
                "name": os.path.basename(output.path),
                "digest": digest,
                "bytes": size,
                "line_root": None if secret is None else commit_lines(store.raw(digest), secret),
                "line_secret": secret,
            }
        ],
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
