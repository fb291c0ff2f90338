"""`cw prove`: from a file to a verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clusterwright.app.interrupting import Stop
from clusterwright.cli.output import Format, is_terminal, note, say, say_json

if TYPE_CHECKING:
    from clusterwright.app.proving import Request
    from clusterwright.judging.outputs import Kept
    from clusterwright.report.proofs import Step


class LineProgress:
    """Progress as plain lines, for logs."""

    def begin(self, step: str) -> None:
        """See `Progress.begin`."""
        note(f"{step} …")

    def note(self, text: str) -> None:
        """See `Progress.note`."""
        note(f"    {text}")

    def end(self, step: Step) -> None:
        """See `Progress.end`."""
        spent = f" ({step.seconds:.1f} s)" if step.seconds else ""
        note(f"{_MARKS[step.state]} {step.name}: {step.reason}{spent}")

    def close(self) -> None:
        """Nothing stays behind a line."""


_MARKS = {"done": "ok  ", "failed": "FAIL", "not run": "--  "}
_COLOURS = {"done": "green", "failed": "red", "not run": "yellow"}


class LiveProgress:
    """Progress for a terminal: one line that moves, and what has ended above it."""

    def __init__(self) -> None:
        from rich.console import Console  # only for terminals: plain runs start faster without it
        from rich.markup import escape

        self._console, self._escape = Console(stderr=True, highlight=False), escape
        self._status = self._console.status("")
        self._step, self._began_s = "", 0.0

    def begin(self, step: str) -> None:
        """See `Progress.begin`."""
        self._step, self._began_s = step, time.monotonic()
        self._status.update(self._escape(f"{step} …"))
        self._status.start()

    def note(self, text: str) -> None:
        """See `Progress.note`."""
        self._status.update(self._escape(f"{self._step}: {text} ({time.monotonic() - self._began_s:.0f} s)"))

    def end(self, step: Step) -> None:
        """See `Progress.end`."""
        self._status.stop()
        spent = f" ({step.seconds:.1f} s)" if step.seconds else ""
        mark = f"[{_COLOURS[step.state]}]{_MARKS[step.state]}[/]"
        self._console.print(f"{mark} {self._escape(step.name + ': ' + step.reason)}{spent}", soft_wrap=True)

    def close(self) -> None:
        """Give the terminal its cursor back."""
        self._status.stop()


def prove(
    files: Annotated[list[str], typer.Argument(help="Architecture files, merged in order; - reads standard input.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Directory for the report; proof/CLUSTER if not given.")
    ] = None,
    skip_rehearsal: Annotated[
        bool, typer.Option("--skip-rehearsal", help="Start no processes; both rehearsals count as not run.")
    ] = False,
    evidence: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="A store or a bundle of evidence that was measured on the cluster."),
    ] = None,
    keys: Annotated[
        list[Path] | None,
        typer.Option("--key", metavar="FILE", help="Public key of somebody whose signature on a bundle counts."),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Write over a value of the files.")
    ] = None,
    catalogues: Annotated[
        list[str] | None, typer.Option("--catalogue", metavar="FILE", help="A catalogue of your own, over the shipped.")
    ] = None,
    output: Annotated[
        Format, typer.Option("--format", help="Summary for people, or everything as JSON.")
    ] = Format.text,
) -> None:
    """Prove one architecture: plan and review it, rehearse it with real processes, judge every claim, write the report.

    Two rehearsals run the declared workloads' jobs on virtual nodes of this machine: every task reports where it
    runs and whom it meets; then a checkpointing job loses a node while all others hold their planned GPUs. They take
    under a minute, need no root and no GPU, and prove nothing about the declared cluster: a claim is met only by
    evidence measured there, which --evidence gives.

    Writes report.html and report.json. Ctrl-C leaves no process behind and still writes what was found.

    Exit codes: 0 every required claim is met; 1 something fails; 2 invalid input; 3 nothing fails and something
    required was not measured; 130 interrupted.
    """
    with Stop() as stop:  # before the imports, which take most of a second: no signal ends this without a word
        from clusterwright.app.proving import Request

        stop.check()
        kept = _load_kept(evidence, keys) if evidence else ()
        _prove(Request(files, overrides or (), catalogues or (), out, skip_rehearsal, kept), output)


def _load_kept(paths: Sequence[Path], keys: Sequence[Path] | None) -> Sequence[Kept]:
    from clusterwright.app.kept_evidence import load_kept  # the store and its readers: only where they are needed

    found = load_kept(paths, keys or ())
    for kept in found:
        if kept.remark:
            note(kept.remark)
    return found


def _prove(request: Request, output: Format) -> None:
    from clusterwright.app.proving import HTML, describe_proof, proof_values
    from clusterwright.app.proving import prove as prove_files

    progress = LiveProgress() if is_terminal() else LineProgress()
    try:
        proven = prove_files(request, progress)
    finally:
        progress.close()
    if output is Format.json:
        say_json(proof_values(proven.proof))
    else:
        say(describe_proof(proven.proof, str(proven.out / HTML)))
    if proven.proof.exit_code:
        raise typer.Exit(proven.proof.exit_code)
