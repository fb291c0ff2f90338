"""`cw evidence`: keep what was measured, list, show and compare it, hand it out signed, verify it."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from clusterwright.app.evidencing import (
    add_outputs,
    compare_evidence,
    evidence_of,
    find_record,
    load_records,
    open_store,
    store_path,
    verify_store,
)
from clusterwright.app.judging_outputs import OutputRequest
from clusterwright.cli.main import command_group
from clusterwright.cli.output import Exit, Format, columns, is_terminal, note, say, say_bytes, say_json
from clusterwright.lib.errors import InvalidInput
from clusterwright.report.evidence import (
    comparison_values,
    record_summary,
    render_comparison,
    render_list,
    render_record,
    short,
)

#: Name of the signing key in a store.
KEY: Final = "signing.key"

evidence = command_group("Keep what was measured, list, show and compare it, hand it out signed, verify it.")

Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="The evidence store; else $CLUSTERWRIGHT_EVIDENCE, else ./evidence."),
]
Keys = Annotated[
    list[Path] | None,
    typer.Option("--key", metavar="FILE", help="Public key (PEM or OpenSSH) of somebody whose signature counts."),
]
Output = Annotated[Format, typer.Option("--format", help="Text for people, or JSON.")]


@evidence.command("add")
def add(
    outputs: Annotated[list[str], typer.Argument(help="Outputs of tools; a directory stands for the files in it.")],
    nodes: Annotated[
        str, typer.Option(metavar="HOSTS", help="Hosts they were taken on, where neither output nor path names them.")
    ] = "",
    engine: Annotated[str, typer.Option(metavar="ENGINE", help="What ran them: slurm, kubernetes or local.")] = "",
    workload: Annotated[str, typer.Option(metavar="NAME", help="Declared workload that they are about.")] = "",
    taken: Annotated[
        str, typer.Option(metavar="DATE", help="Day or time of outputs that print none; else the file's own time.")
    ] = "",
    kind: Annotated[str, typer.Option(metavar="KIND", help="What they are; found out for each if absent.")] = "",
    claims: Annotated[
        list[str] | None, typer.Option("--for", metavar="CLAIM", help="Requirement that they were taken for.")
    ] = None,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who ran them; you if absent.")] = "",
    store: Store = None,
    output: Output = Format.text,
) -> None:
    """Keep outputs with what they prove: the raw bytes by their digest, and a record in a chain that only grows.

    The same evidence is kept once. What an output could not prove is kept too, with the reason.

    Exit codes: 0 kept; 2 invalid input; 3 kept, and one of them could not be read whole.
    """
    opened = open_store(store, create=True)
    try:
        progress = (lambda path: note(f"keeping {path}")) if is_terminal() and len(outputs) > 1 else None
        request = OutputRequest(outputs, nodes, engine, workload, taken, kind)
        added = add_outputs(opened, request, home=store_path(store), claims=claims or (), by=by, progress=progress)
    finally:
        opened.close()
    if output is Format.json:
        say_json(
            [
                {
                    "file": a.path,
                    "sequence": a.record.sequence,
                    "id": a.record.id,
                    "was_there": a.was_there,
                    "kind": a.output.transcript.kind,
                    "outcome": a.output.transcript.outcome.value,
                }
                for a in added
            ]
        )
    else:
        for a in added:
            outcome = "was there" if a.was_there else "kept"
            kind_ = a.output.transcript.kind or "unknown kind"
            say(f"{a.path}: {outcome} as record {a.record.sequence} ({short(a.record.id)}), {kind_}, "
                f"{a.output.transcript.outcome.value}")  # fmt: skip
    if not all(a.output.whole for a in added):
        raise typer.Exit(Exit.INCOMPLETE)


@evidence.command("list")
def list_(
    bundle: Annotated[Path | None, typer.Argument(help="A bundle instead of the store.")] = None,
    store: Store = None,
    keys: Keys = None,
    output: Output = Format.text,
) -> None:
    """List records with their tool, time, hosts and metrics, oldest first."""
    records = load_records(bundle or store_path(store), keys or ())
    pairs = list(zip(records, evidence_of(records), strict=True))
    if output is Format.json:
        say_json([record_summary(*pair) for pair in pairs])
    else:
        say(render_list(pairs))


@evidence.command("show")
def show(
    record: Annotated[str, typer.Argument(help="Number of a record, or the beginning of its id.")],
    bundle: Annotated[Path | None, typer.Argument(help="A bundle instead of the store.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print the raw output itself, byte for byte.")] = False,
    store: Store = None,
    keys: Keys = None,
    output: Output = Format.text,
) -> None:
    """Show one record: every reading, the environment, where its raw output is."""
    records = load_records(bundle or store_path(store), keys or ())
    found = find_record(records, record)
    if raw:
        if bundle is not None:
            raise InvalidInput("--raw reads from the store; a bundle holds its raw outputs as files or tar members")
        opened = open_store(store)
        try:
            for item in found.content.get("raw", ()):
                for piece in opened.raw(item["digest"]):
                    say_bytes(piece)
        finally:
            opened.close()
        return
    (one,) = evidence_of([found])
    if output is Format.json:
        say_json(record_summary(found, one))
    else:
        say(render_record(found, one, columns()))


@evidence.command("diff")
def diff(
    before: Annotated[str, typer.Argument(help="A bundle, a store, or numbers of records such as 1-4,7.")],
    after: Annotated[str, typer.Argument(help="The same.")],
    store: Store = None,
    keys: Keys = None,
    output: Output = Format.text,
) -> None:
    """Compare two sets of evidence: the same test before and after, and what changed in the system between.

    A change is called better or worse only when both sides were repeated (three times or more) and their values do
    not overlap; counts of errors are compared as they are.

    Exit codes: 0 nothing is worse; 1 something is; 2 invalid input; 3 something was measured on one side only.
    """
    comparison = compare_evidence(before, after, store, keys or ())
    if output is Format.json:
        say_json(comparison_values(comparison))
    else:
        say(render_comparison(comparison, columns()))
    verdicts = {change.verdict for change in comparison.changes}
    if verdicts & {"worse", "different"}:
        raise typer.Exit(Exit.FAILED)
    if not verdicts or verdicts & {"only before", "only after"}:
        raise typer.Exit(Exit.INCOMPLETE)


@evidence.command("export")
def export(
    path: Annotated[Path, typer.Argument(help="The new bundle: a directory, or one file when it ends in .tar.")],
    redact: Annotated[
        bool, typer.Option("--redact", help="Withhold host names, addresses, serials and device ids.")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option("--sign", metavar="FILE", help="Ed25519 private key (PEM); else one that the store keeps."),
    ] = None,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who exports; you if absent.")] = "",
    store: Store = None,
    output: Output = Format.text,
) -> None:
    """Write everything in the store as one signed bundle that others verify offline.

    With --redact the values stand in the bundle as salted commitments: the chain and every other value still verify,
    and nobody can guess what is withheld. Lines of raw outputs are withheld singly; outputs too large for that are
    left out. Give the public key that is printed to those who verify, by another way than the bundle.
    """
    opened = open_store(store)
    from clusterwright.app.bundling import export_bundle

    try:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        done = export_bundle(
            opened,
            path,
            key or store_path(store) / KEY,
            exported=now,
            by=by or _user(),
            redacted=redact,
            new_key=key is None,
        )
    finally:
        opened.close()
    if output is Format.json:
        say_json(
            {
                "bundle": str(path),
                "records": done.records,
                "head": done.head,
                "signer": done.signer,
                "public_key": done.public_key,
                "withheld": done.withheld,
                "left_out": done.left_out,
            }
        )
        return
    say(f"{path}: {done.records} records, head {done.head}")
    if redact:
        kinds = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in done.withheld.items())
        left = f"; {done.left_out} raw outputs left out" if done.left_out else ""
        say(f"withheld: {kinds or 'nothing was found to withhold'}{left}")
    say(f"signed by {done.signer}; its public key, for those who verify:\n{done.public_key}")


@evidence.command("verify")
def verify(
    bundle: Annotated[Path | None, typer.Argument(help="A bundle; the store if absent.")] = None,
    keys: Keys = None,
    head: Annotated[
        str, typer.Option(metavar="ID", help="Record that must be in the chain, as an earlier export printed it.")
    ] = "",
    store: Store = None,
    output: Output = Format.text,
) -> None:
    """Verify a bundle, or the store, offline: signature, every member, the chain, every value that is not withheld.

    A signature proves that somebody signed, --key says who may. Without it the fingerprint of the signer is printed
    and the exit code is 3. A store is not signed: somebody who may write there could write all of it anew; only an
    earlier bundle, or its head, shows that.

    Exit codes: 0 it verifies; 1 something was altered, cut, reordered or signed by somebody else; 3 it is sound and
    nobody said whose signature counts.
    """
    if bundle is None:
        faults = verify_store(store)
        wanted = head.removeprefix("sha256:").lower()
        if head and (len(wanted) < 8 or not all(c in "0123456789abcdef" for c in wanted)):
            raise InvalidInput(f"'{head[:80]}' is no id of a record; give 8 of its hex digits or more")
        values: dict[str, Any] = {"store": str(store_path(store)), "faults": faults}
        records = load_records(store_path(store)) if not faults else ()
        if head and not faults and not any(r.id.removeprefix("sha256:").startswith(wanted) for r in records):
            faults.append(f"record {wanted[:12]}… is not in the chain: it was rewritten or cut")
        if output is Format.json:
            say_json(values)
        else:
            say("\n".join(faults) or f"{store_path(store)}: {len(records)} records verify")
        if faults:
            raise typer.Exit(Exit.FAILED)
        return
    from clusterwright.app.extras import require_evidence

    require_evidence()
    from clusterwright.app.verifying import is_private, verify_bundle

    for key in keys or ():
        if is_private(key):
            note(f"{key} is a private key: those who verify need the public one, which cw evidence export prints")
    found = verify_bundle(bundle, keys or (), head=head)
    faults = list(found.faults)
    if keys and not found.known:
        faults.append(f"signed by {found.signer or 'nobody'}, which is none of the given keys")
    if output is Format.json:
        say_json(
            {
                "bundle": str(bundle),
                "faults": faults,
                "signer": found.signer,
                "known": found.known,
                "records": len(found.records),
                "head": found.head,
                "exported": found.exported,
                "withheld_fields": found.withheld_fields,
                "withheld_lines": found.withheld_lines,
                "left_out": found.left_out,
            }
        )
    else:
        for fault in faults:
            say(f"fault: {fault}")
        say(
            f"{bundle}: {'does not verify' if faults else 'verifies'}: {len(found.records)} records, exported "
            f"{found.exported}, signed by {found.signer or 'nobody'}"
        )
        if found.withheld_fields or found.withheld_lines or found.left_out:
            say(
                f"withheld: {found.withheld_fields} values, {found.withheld_lines} lines; "
                f"{found.left_out} raw outputs left out"
            )
        if not faults and not keys:
            say("nobody said whose signature counts: compare the fingerprint, or give --key FILE")
    if faults:
        raise typer.Exit(Exit.FAILED)
    if not keys:
        raise typer.Exit(Exit.INCOMPLETE)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
